//! The server that `load` and `check` were given on the command line.

use anyhow::Result;
use dbduel_load::address::Address;
use dbduel_load::blocking::{Credentials, TlsMode};

use crate::cli;
use crate::lab::login;

/// Where it listens and what to log in with.
///
/// # Errors
/// When the address is none, or the password file cannot be read.
pub fn way_in(server: &cli::Server) -> Result<(Address, Credentials)> {
    let (address, user) = Address::parse_with_user(&server.address)?;
    let credentials = login::credentials(user.as_deref(), server.password_file.as_deref(), None)?;
    Ok((address, credentials))
}

/// How much TLS; the command line sees to it that a mode which needs an authority has one.
pub fn tls(asked: &cli::Tls) -> TlsMode {
    let ca = asked.ca.clone().unwrap_or_default();
    match asked.mode {
        cli::TlsUse::Off => TlsMode::Off,
        cli::TlsUse::Preferred => TlsMode::Preferred,
        cli::TlsUse::Required => TlsMode::Required,
        cli::TlsUse::VerifyCa => TlsMode::VerifyCa { ca },
        cli::TlsUse::VerifyIdentity => TlsMode::VerifyIdentity { ca },
    }
}
