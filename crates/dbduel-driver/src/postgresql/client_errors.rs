//! SQLSTATEs and texts of connection errors as scripts see them; the texts are libpq's.

use super::errors::with_state;
use crate::address::Address;
use crate::socket::is_unknown_host;
use crate::{LostError, ServerError};

/// `sqlclient_unable_to_establish_sqlconnection`.
const NOT_CONNECTED: [u8; 5] = *b"08001";
/// `connection_failure`.
const LOST: [u8; 5] = *b"08006";
/// `protocol_violation`.
const BROKEN_PROTOCOL: [u8; 5] = *b"08P01";

/// The error of a connection that broke.
pub fn lost_error(lost: &LostError) -> ServerError {
    match lost {
        LostError::Io(error) => with_state(
            LOST,
            format!("server closed the connection unexpectedly ({error})"),
        ),
        other => with_state(BROKEN_PROTOCOL, other.to_string()),
    }
}

/// The error of a connection that cannot be made; its message names the server.
pub fn connect_error(address: &Address, lost: &LostError) -> ServerError {
    let place = match address {
        Address::Unix { path } => format!("on socket \"{}\"", path.display()),
        Address::Tcp { host, port } => format!("at \"{host}\", port {port}"),
        Address::File { path, .. } => format!("in file \"{}\"", path.display()),
    };
    let (state, why) = match lost {
        LostError::Refused(error) => (error.sqlstate, format!("FATAL:  {}", error.message)),
        LostError::Io(error) => (NOT_CONNECTED, error.to_string()),
        other => (NOT_CONNECTED, other.to_string()),
    };
    if let (Address::Tcp { host, .. }, LostError::Io(error)) = (address, lost)
        && is_unknown_host(error)
    {
        // The system's words after Rust's own.
        let reason = why.rsplit(": ").next().unwrap_or(&why);
        let message = format!("could not translate host name \"{host}\" to address: {reason}");
        return with_state(state, message);
    }
    with_state(state, format!("connection to server {place} failed: {why}"))
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;
    use crate::socket::UnknownHost;

    #[test]
    fn a_connection_that_cannot_be_made_says_where_to_and_why() {
        let address = Address::Unix {
            path: "/run/.s.PGSQL.5432".into(),
        };
        let refused = with_state(*b"3D000", "database \"x\" does not exist".to_owned());
        let error = connect_error(&address, &LostError::Refused(refused));
        assert_eq!(error.sqlstate(), "3D000");
        assert_eq!(
            error.message,
            "connection to server on socket \"/run/.s.PGSQL.5432\" failed: FATAL:  database \"x\" does not exist"
        );
        let silent = LostError::Io(Error::from(ErrorKind::ConnectionRefused));
        let error = connect_error(&address, &silent);
        assert_eq!(error.sqlstate(), "08001");
        assert_eq!(error.name(), "08001");
        assert_eq!(lost_error(&silent).sqlstate(), "08006");
        let unknown = Error::other(UnknownHost(Error::other(
            "failed to lookup address information: Name or service not known",
        )));
        let address = Address::Tcp {
            host: "db.invalid".to_owned(),
            port: 5432,
        };
        assert_eq!(
            connect_error(&address, &unknown.into()).message,
            "could not translate host name \"db.invalid\" to address: Name or service not known"
        );
    }
}
