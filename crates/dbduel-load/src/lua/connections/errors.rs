//! Numbers and texts that scripts know errors of connections by.

use std::io::ErrorKind;

use dbduel_wire::{LoginError, ServerError};

use crate::address::Address;
use crate::conn::LostError;

/// `CR_SERVER_GONE_ERROR`.
const SERVER_GONE: u16 = 2006;
/// `CR_SERVER_LOST`.
const SERVER_LOST: u16 = 2013;
/// `CR_CONNECTION_ERROR`.
const NO_SOCKET: u16 = 2002;
/// `CR_CONN_HOST_ERROR`.
const NO_HOST: u16 = 2003;
/// `CR_MALFORMED_PACKET`.
const MALFORMED: u16 = 2027;

/// The number and text that libmysqlclient would give to a connection that broke.
pub(super) fn lost_error(lost: &LostError) -> ServerError {
    let (code, message) = match lost {
        LostError::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::NotConnected
            ) =>
        {
            (SERVER_GONE, "MySQL server has gone away".to_owned())
        }
        LostError::Io(_) => (
            SERVER_LOST,
            "Lost connection to MySQL server during query".to_owned(),
        ),
        other => (MALFORMED, other.to_string()),
    };
    ServerError {
        code,
        sqlstate: *b"HY000",
        message,
    }
}

/// The number and text that libmysqlclient would give to a connection that cannot be made.
pub(super) fn connect_error(address: &Address, lost: &LostError) -> ServerError {
    let (code, message) = match lost {
        LostError::Login(LoginError::Refused(error)) => return error.clone(),
        LostError::Io(error) => match address {
            Address::Unix { path } => (
                NO_SOCKET,
                format!(
                    "Can't connect to local MySQL server through socket '{}' ({error})",
                    path.display()
                ),
            ),
            Address::Tcp { host, port } => (
                NO_HOST,
                format!("Can't connect to MySQL server on '{host}:{port}' ({error})"),
            ),
        },
        other => (SERVER_LOST, other.to_string()),
    };
    ServerError {
        code,
        sqlstate: *b"HY000",
        message,
    }
}
