//! The server that `load` and `check` were given on the command line.

use anyhow::Result;
use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};
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

/// A connection to the server. A refusal comes with a word on where to look.
///
/// # Errors
/// When there is none.
pub fn connect(
    address: &Address,
    credentials: &Credentials,
    options: &ConnectOptions,
) -> Result<Connection> {
    Connection::connect(address, credentials, options).map_err(|error| {
        let refusal = error.refused();
        let advice = refusal.and_then(|refusal| advice(refusal, &options.tls));
        let error = anyhow::Error::from(error);
        match advice {
            Some(advice) => error.context(advice),
            None => error,
        }
    })
}

/// Where to look when the server lets nobody in; none where its own words say it.
fn advice(refusal: &ServerError, tls: &TlsMode) -> Option<String> {
    match refusal.code {
        DENIED => {
            let demand = match tls {
                TlsMode::Off => "; an account may also demand TLS, see --tls",
                _ => "; an account that demands a certificate of the client (REQUIRE X509) cannot be used",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_on_passwords_is_for_whose_password_was_looked_at() {
        let word = |code, tls: &TlsMode| {
            let message = String::new();
            let refusal = ServerError {
                code,
                sqlstate: *b"28000",
                message,
            };
            advice(&refusal, tls).unwrap_or_default()
        };
        let denied = word(1045, &TlsMode::Off);
        assert!(denied.contains("--password-file") && denied.contains("--tls"));
        let denied = word(1045, &TlsMode::Required);
        assert!(denied.contains("--password-file") && !denied.contains("--tls"));
        assert!(denied.contains("X509"), "{denied}");
        assert!(word(1698, &TlsMode::Off).contains("operating system"));
        // Locked, expired, used up: the server says it all.
        for code in [3118, 4151, 1862, 1226] {
            assert_eq!(word(code, &TlsMode::Off), "");
        }
    }
}
