//! Numbers and texts of connection errors as scripts see them.

use std::io::ErrorKind;

use dbduel_wire::LoginError;

use crate::address::Address;
use crate::socket::is_unknown_host;
use crate::{ErrorClass, LostError, ServerError};

/// `CR_SERVER_GONE_ERROR`.
const SERVER_GONE: u32 = 2006;
/// `CR_SERVER_LOST`.
const SERVER_LOST: u32 = 2013;
/// `CR_CONNECTION_ERROR`.
const NO_SOCKET: u32 = 2002;
/// `CR_CONN_HOST_ERROR`.
const NO_HOST: u32 = 2003;
/// `CR_UNKNOWN_HOST`.
const UNKNOWN_HOST: u32 = 2005;
/// `CR_SSL_CONNECTION_ERROR`: any TLS failure, including a connection that breaks during the handshake.
const NO_TLS: u32 = 2026;
/// `CR_MALFORMED_PACKET`.
const MALFORMED: u32 = 2027;

/// The number and text that libmysqlclient reports for a connection that broke.
pub fn lost_error(lost: &LostError) -> ServerError {
    let (code, message) = match lost {
        LostError::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::NotConnected
            ) =>
        {
            (SERVER_GONE, "MySQL server has gone away".to_owned())
        }
        LostError::Io(error) => {
            let mut message = "Lost connection to MySQL server during query".to_owned();
            if error.kind() == ErrorKind::TimedOut {
                message = format!("{message} ({error})");
            }
            (SERVER_LOST, message)
        }
        other => (MALFORMED, other.to_string()),
    };
    of_client(code, message)
}

/// The number and text that libmysqlclient reports for a connection that cannot be made.
pub fn connect_error(address: &Address, lost: &LostError) -> ServerError {
    let (code, message) = match lost {
        LostError::Refused(error) => return error.clone(),
        LostError::Io(error) => match address {
            Address::File { path, .. } => (
                NO_SOCKET,
                format!("Can't open file '{}' ({error})", path.display()),
            ),
            Address::Unix { path } => (
                NO_SOCKET,
                format!(
                    "Can't connect to local MySQL server through socket '{}' ({error})",
                    path.display()
                ),
            ),
            // The system's error number, which resolvers do not set.
            Address::Tcp { host, .. } if is_unknown_host(error) => (
                UNKNOWN_HOST,
                format!("Unknown MySQL server host '{host}' (0)"),
            ),
            Address::Tcp { host, port } => (
                NO_HOST,
                format!("Can't connect to MySQL server on '{host}:{port}' ({error})"),
            ),
        },
        LostError::Tls(_) => (NO_TLS, format!("SSL connection error: {lost}")),
        LostError::Login(why) if matches!(why.downcast_ref(), Some(LoginError::NoTls)) => {
            (NO_TLS, format!("SSL connection error: {lost}"))
        }
        other => (SERVER_LOST, other.to_string()),
    };
    of_client(code, message)
}

fn of_client(code: u32, message: String) -> ServerError {
    ServerError {
        class: ErrorClass::Other,
        code,
        sqlstate: *b"HY000",
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsError;

    #[test]
    fn what_stands_in_the_way_of_tls_has_its_own_number() {
        let address = Address::Unix {
            path: "/nowhere".into(),
        };
        let closed = TlsError::Closed { advice: "wait" };
        for lost in [LostError::from(closed), LostError::from(LoginError::NoTls)] {
            let error = connect_error(&address, &lost);
            assert_eq!(error.code, 2026);
            assert!(
                error.message.starts_with("SSL connection error: "),
                "{error}"
            );
        }
        let silent = std::io::Error::from(ErrorKind::UnexpectedEof);
        assert_eq!(connect_error(&address, &silent.into()).code, 2002);
    }
}
