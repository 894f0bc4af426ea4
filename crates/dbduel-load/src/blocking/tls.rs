//! TLS for connections to servers: which mode, and what of the server's certificate is checked.
//!
//! Knows no socket and no packets; it makes the client half of a TLS connection.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use dbduel_wire::TlsWish;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use serde::{Deserialize, Serialize};

use crate::address::Address;

/// How much TLS is asked for. The names are those of the MySQL client's `--ssl-mode`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TlsMode {
    /// Never.
    #[default]
    Off,
    /// If the server offers it; its certificate is not looked at.
    Preferred,
    /// Always; its certificate is not looked at.
    Required,
    /// Always; the certificate must come from the authority, for whatever name.
    VerifyCa {
        /// PEM file with the authority's certificates.
        ca: PathBuf,
    },
    /// Always; the certificate must come from the authority and bear the host's name.
    VerifyIdentity {
        /// PEM file with the authority's certificates.
        ca: PathBuf,
    },
}

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
    /// The TLS library refused.
    #[error("cannot set up TLS")]
    Library(#[from] Error),
}

impl TlsMode {
    /// The mode as the login sees it.
    #[must_use]
    pub fn wish(&self) -> TlsWish {
        match self {
            TlsMode::Off => TlsWish::Off,
            TlsMode::Preferred => TlsWish::Preferred,
            TlsMode::Required | TlsMode::VerifyCa { .. } | TlsMode::VerifyIdentity { .. } => {
                TlsWish::Required
            }
        }
    }

    fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match self {
            TlsMode::VerifyIdentity { ca } => builder.with_root_certificates(authorities(ca)?),
            TlsMode::VerifyCa { ca } => {
                let chain = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(authorities(ca)?),
                    provider,
                )
                .build()
                .map_err(|error| TlsError::Authority {
                    path: ca.clone(),
                    problem: error.to_string(),
                })?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(AnyName(chain)))
            }
            TlsMode::Off | TlsMode::Preferred | TlsMode::Required => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
        };
        let mut config = builder.with_no_client_auth();
        // Every connection pays for its whole handshake, as those of the servers' own client library do.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

/// What the connections to one server share of TLS: the authority's certificates are read once for all.
#[derive(Debug)]
pub struct Tls {
    mode: TlsMode,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(mode: TlsMode) -> Self {
        Tls {
            mode,
            config: OnceLock::new(),
        }
    }

    /// How much TLS.
    #[must_use]
    pub fn mode(&self) -> &TlsMode {
        &self.mode
    }

    /// The mode as the login sees it.
    #[must_use]
    pub fn wish(&self) -> TlsWish {
        self.mode.wish()
    }

    /// The client half of a TLS connection to `address`.
    ///
    /// # Errors
    /// [`TlsError`] when the authority's file or the host's name cannot be used.
    pub fn client(&self, address: &Address) -> Result<ClientConnection, TlsError> {
        let host = match address {
            Address::Tcp { host, .. } => host.as_str(),
            Address::Unix { .. } => "localhost",
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

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let problem = |problem: String| TlsError::Authority {
        path: path.to_owned(),
        problem,
    };
    let mut store = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| problem(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        store
            .add(certificate)
            .map_err(|error| problem(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(problem("there is none in it".to_owned()));
    }
    Ok(store)
}

/// Accepts any certificate: servers make their own at first start, and encryption alone was asked for.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    // A certificate that anyone may have made proves nothing by its signatures either, and some servers make
    // certificates in an old form that the library would not read.
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks the chain of certificates but not the name: servers' own certificates bear no host's name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self
            .0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        {
            // The name is looked at last, when the chain has been found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
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
