//! The server that `load` and `check` were given on the command line.

use anyhow::Result;
use dbduel_load::address::Address;
use dbduel_load::blocking::{Credentials, TlsMode};
use dbduel_wire::ServerError;

use crate::cli;
use crate::lab::login;

/// Access denied, for one of several reasons that servers keep to themselves.
const DENIED: u16 = 1045;
/// Access denied, without a password having been looked at.
const DENIED_WITHOUT_PASSWORD: u16 = 1698;

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

/// Where to look when the server lets nobody in; none where its own words say it.
pub fn advice(refusal: &ServerError, tls: &TlsMode) -> Option<String> {
    match refusal.code {
        DENIED => {
            let demand = match tls {
                TlsMode::Off => "; an account may also demand TLS, see --tls",
                _ => "",
            };
            let password = login::PASSWORD;
            Some(format!(
                "the password is read from --password-file or {password}{demand}"
            ))
        }
        DENIED_WITHOUT_PASSWORD => Some(
            "this account looks at no password: it lets in the operating system's user of that name, over the unix socket"
                .to_owned(),
        ),
        _ => None,
    }
}
