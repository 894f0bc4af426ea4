//! The servers that `load`, `check` and `audit` were given on the command line.

use anyhow::Result;
use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};

use crate::cli;
use crate::lab::login::{self, Told};

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

/// A connection to the server of `load` or `check`. A refusal comes with a word on where to look.
///
/// # Errors
/// When there is none.
pub fn connect(
    address: &Address,
    credentials: &Credentials,
    options: &ConnectOptions,
) -> Result<Connection> {
    login::connect(
        address,
        credentials,
        options,
        Told::Options("--password-file"),
    )
}
