//! Why a TLS connection failed, and advice.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rustls::{
    AlertDescription, CertificateError, ClientConnection, Error, InvalidMessage, PeerIncompatible,
};

use super::certificate::is_authoritys;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA certificates cannot be read.
    #[error("cannot read certificates from `{path}`: {problem}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// The host cannot be compared with a certificate's names.
    #[error("`{0}` cannot be checked as a host name in a certificate; use mode `verify-ca`")]
    HostName(String),
    /// The handshake failed.
    #[error("the TLS handshake failed: {problem}; {advice}")]
    Handshake {
        /// The error.
        problem: String,
        /// Advice.
        advice: &'static str,
    },
    /// The server went away during the handshake, as one that is being shut down does.
    #[error("the server closed the connection during the TLS handshake; {advice}")]
    Closed {
        /// Advice.
        advice: &'static str,
    },
    /// The TLS library refused.
    #[error("cannot set up TLS")]
    Library(#[from] Error),
}

/// Advice for a server without a common TLS version.
const VERSIONS: &str = "dbduel speaks TLS 1.2 and 1.3; a server limited to older versions, as many of MySQL 5.5, MySQL 5.6 and \
                        MariaDB 10.1 are, can be reached with mode `off`, which sends everything unencrypted";

/// Advice for a server that closed the connection without an answer: servers of old versions do, and so do those that
/// shut down.
const SILENT: &str = "if it does so every time, it may not speak TLS 1.2 or newer, like many of MySQL 5.5, MySQL 5.6 and \
                      MariaDB 10.1; such a server can be reached with mode `off`, which sends everything unencrypted";

/// Advice when neither certificate nor version is the cause.
const ELSE: &str = "the server's log may say why";

/// Cause of a failed handshake.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// A TLS error, or a server that closed the connection.
    Tls(TlsError),
    /// An error of the system, or a timeout.
    Io(io::Error),
}

impl HandshakeError {
    /// Classifies the error of a handshake by the state of the client's side.
    pub(crate) fn of(error: io::Error, client: &ClientConnection) -> Self {
        if let Some(cause) = error.get_ref().and_then(|it| it.downcast_ref::<Error>()) {
            return HandshakeError::Tls(TlsError::Handshake {
                problem: cause.to_string(),
                advice: advice(cause),
            });
        }
        match error.kind() {
            // It may do so before it has read all that it was sent.
            ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted => {
                let has_answered = client.protocol_version().is_some();
                HandshakeError::Tls(TlsError::Closed {
                    advice: if has_answered { ELSE } else { SILENT },
                })
            }
            _ => HandshakeError::Io(error),
        }
    }
}

fn advice(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(why) => advice_on_certificate(why),
        Error::AlertReceived(AlertDescription::ProtocolVersion)
        // What the library of MySQL 5.5 and 5.6 answers with has no version in it.
        | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => VERSIONS,
        _ => ELSE,
    }
}

/// Advice for a rejected certificate. It never suggests to skip verification: a certificate that cannot be checked may
/// be an attacker's.
fn advice_on_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate was not signed by the listed CA; verify that it is the right server, then list the \
             CA that signed it"
        }
        CertificateError::Other(why) if is_authoritys(why) => {
            "the server presents a CA certificate that is not listed; verify that it is the right server, then list that \
             certificate, or install a server certificate signed by a listed CA"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "connect by one of the certificate's subject alternative names, or use mode `verify-ca`"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "check the clocks of both sides, or install a currently valid certificate on the server"
        }
        _ => {
            "this form of certificate cannot be checked; install a version 3 server certificate signed by a listed CA"
        }
    }
}
