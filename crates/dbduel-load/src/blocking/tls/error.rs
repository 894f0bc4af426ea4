//! Why there is no TLS connection, and what to do about it.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rustls::{CertificateError, Error};

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
    /// The TLS library refused.
    #[error("cannot set up TLS")]
    Library(#[from] Error),
}

/// For what a server says that speaks no version of this side's, which is not always that.
const VERSIONS: &str = "this side speaks TLS 1.2 and 1.3; a server that speaks older ones only, as many of MySQL 5.5, \
                        MySQL 5.6 and MariaDB 10.1, can be reached with mode `off`";

impl TlsError {
    /// Reads what broke a handshake. None when it was not TLS but the connection, or the patience with it.
    pub(crate) fn of_handshake(error: &io::Error) -> Option<Self> {
        let cause = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
        let (problem, advice) = match cause {
            Some(cause) => (cause.to_string(), advice(cause)),
            None => match error.kind() {
                // It may do so before it has read all that it was sent.
                ErrorKind::UnexpectedEof
                | ErrorKind::BrokenPipe
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted => {
                    ("the server closed the connection".to_owned(), VERSIONS)
                }
                _ => return None,
            },
        };
        Some(TlsError::Handshake { problem, advice })
    }
}

fn advice(error: &Error) -> &'static str {
    let Error::InvalidCertificate(why) = error else {
        return VERSIONS;
    };
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "another authority than the one that is named has signed the server's certificate; name that one, and make \
             sure that it is the right server"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "connect under a name that the certificate bears among its alternative names, or use mode `verify-ca`"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "give the server a certificate of today, or use mode `required`, which does not look at it"
        }
        _ => {
            "a certificate of this form cannot be checked; give the server one of version 3 that an authority has signed, \
             name the very one if it is its own authority, or use mode `required`, which does not look at it"
        }
    }
}
