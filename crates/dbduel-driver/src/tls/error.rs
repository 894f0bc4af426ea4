//! Why there is no TLS connection, and what to do about it.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rustls::{
    AlertDescription, CertificateError, ClientConnection, Error, InvalidMessage, PeerIncompatible,
};

use super::certificate::is_authoritys;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authority's certificates cannot be read.
    #[error("cannot read certificates from `{path}`: {problem}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
    /// A certificate's name cannot be checked against this host.
    #[error("`{0}` is not a host name that a certificate can bear; use mode `verify-ca`")]
    HostName(String),
    /// The two sides did not come to terms.
    #[error("the TLS handshake failed: {problem}; {advice}")]
    Handshake {
        /// What one of them objected to.
        problem: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The server went away before the two sides had come to terms, as one does that is being shut down.
    #[error("the server closed the connection during the TLS handshake; {advice}")]
    Closed {
        /// What to do about it.
        advice: &'static str,
    },
    /// The TLS library refused.
    #[error("cannot set up TLS")]
    Library(#[from] Error),
}

/// For a server that speaks no version of this side's.
const VERSIONS: &str = "this side speaks TLS 1.2 and 1.3; a server that speaks older ones only, as many of MySQL 5.5, \
                        MySQL 5.6 and MariaDB 10.1, can be reached with mode `off`, and then everything goes in clear";

/// For a server that has said nothing: servers of old versions close the connection, and so do those that end.
const SILENT: &str = "if it does so every time, it may speak older versions than TLS 1.2 only, as many of MySQL 5.5, \
                      MySQL 5.6 and MariaDB 10.1; such a server can be reached with mode `off`, and then everything goes in clear";

/// For what the certificate and the versions have nothing to do with.
const ELSE: &str = "the server's log may say why";

/// What broke a handshake.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// TLS, or the server that was to speak it.
    Tls(TlsError),
    /// The system, or no answer of the server in time.
    Io(io::Error),
}

impl HandshakeError {
    /// Reads what the client half of the connection came to.
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

/// None of it leads away from looking at the certificate: what cannot be checked may be another's.
fn advice_on_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "another authority than the one that is named has signed the server's certificate; name that one, and make \
             sure that it is the right server"
        }
        CertificateError::Other(why) if is_authoritys(why) => {
            "the server's certificate is an authority's own and none of those that are named; make sure that it is the \
             right server, and then name that very certificate, or give the server one that is not an authority's and \
             that the named one has signed"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "connect under a name that the certificate bears among its alternative names, or use mode `verify-ca`"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "look at the clocks of both sides, or give the server a certificate of today"
        }
        _ => {
            "a certificate of this form cannot be checked; give the server one of version 3 that the named authority has \
             signed"
        }
    }
}
