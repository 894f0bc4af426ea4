//! TLS for connections to servers: mode, and verification of the server's certificate.
//!
//! Makes the client half of a TLS connection; no sockets, no packets.

mod certificate;
mod error;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use serde::{Deserialize, Serialize};

use self::certificate::Verifier;
pub(super) use self::error::HandshakeError;
pub use self::error::TlsError;
use crate::address::Address;

/// TLS mode. The names are those of the MySQL client's `--ssl-mode`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TlsMode {
    /// Never.
    #[default]
    Off,
    /// If the server offers it; its certificate is not verified. When the handshake then fails the connection fails;
    /// there is no fallback to an unencrypted one.
    Preferred,
    /// Always; its certificate is not verified.
    Required,
    /// Always; the certificate must be signed by a CA in the file, or be in the file itself; its name is not checked.
    VerifyCa {
        /// PEM file with the CA certificates.
        ca: PathBuf,
    },
    /// Always; the certificate must be signed by a CA in the file and bear the host's name.
    VerifyIdentity {
        /// PEM file with the CA certificates.
        ca: PathBuf,
    },
}

impl TlsMode {
    fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let verifier = match self {
            TlsMode::VerifyIdentity { ca } => Verifier::signed_by(ca, true, &provider)?,
            TlsMode::VerifyCa { ca } => Verifier::signed_by(ca, false, &provider)?,
            TlsMode::Off | TlsMode::Preferred | TlsMode::Required => Verifier::Any(provider),
        };
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        // Every connection pays for its whole handshake, as those of the servers' own client library do.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

/// TLS state shared by the connections to one server: the CA certificates are read once.
#[derive(Debug)]
pub struct Tls {
    mode: TlsMode,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(mode: TlsMode) -> Self {
        Tls {
            mode,
            config: OnceLock::new(),
        }
    }

    /// TLS mode.
    #[must_use]
    pub fn mode(&self) -> &TlsMode {
        &self.mode
    }

    /// The client half of a TLS connection to `address`.
    ///
    /// # Errors
    /// [`TlsError`] when the CA file or the host's name cannot be used.
    pub fn client(&self, address: &Address) -> Result<ClientConnection, TlsError> {
        let host = match address {
            Address::Tcp { host, .. } => host.as_str(),
            Address::Unix { .. } | Address::File { .. } => "localhost",
        };
        let name = match (ServerName::try_from(host.to_owned()), &self.mode) {
            (Ok(name), _) => name,
            (Err(_), TlsMode::VerifyIdentity { .. }) => {
                return Err(TlsError::HostName(host.to_owned()));
            }
            // Where no name is checked any will do, and an address is not announced to the server.
            (Err(_), _) => ServerName::IpAddress(IpAddr::from([127, 0, 0, 1]).into()),
        };
        Ok(ClientConnection::new(self.config()?, name)?)
    }

    /// Made when the first connection needs it.
    fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let made = Arc::new(self.mode.config()?);
        Ok(Arc::clone(self.config.get_or_init(|| made)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_authority_is_an_error_that_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let address = Address::Tcp {
            host: "localhost".to_owned(),
            port: 1,
        };
        let mode = TlsMode::VerifyCa { ca: path.clone() };
        assert!(
            Tls::new(mode.clone())
                .client(&address)
                .unwrap_err()
                .to_string()
                .contains("ca.pem"),
            "missing file"
        );
        std::fs::write(&path, "no certificate here").unwrap();
        assert!(
            Tls::new(mode.clone())
                .client(&address)
                .unwrap_err()
                .to_string()
                .contains("none in it"),
            "empty file"
        );
    }

    #[test]
    fn connections_share_what_was_read_for_the_first() {
        let tls = Tls::new(TlsMode::Required);
        assert!(Arc::ptr_eq(&tls.config().unwrap(), &tls.config().unwrap()));
    }

    #[test]
    fn only_the_strict_mode_needs_a_proper_host_name() {
        let address = Address::Tcp {
            host: "not a name".to_owned(),
            port: 1,
        };
        assert!(Tls::new(TlsMode::Required).client(&address).is_ok());
        let strict = TlsMode::VerifyIdentity {
            ca: PathBuf::from("/nowhere"),
        };
        assert!(matches!(
            Tls::new(strict).client(&address),
            Err(TlsError::HostName(_))
        ));
    }
}
