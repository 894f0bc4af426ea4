//! Verification of a server's certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::TlsError;

/// Whether a server's certificate was refused because it is a CA certificate. The library checks that after the
/// validity period and before the issuer.
pub(super) fn is_authoritys(error: &OtherError) -> bool {
    let cause = error.0.downcast_ref::<webpki::Error>();
    cause == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// Verifies certificates as far as the mode asks for.
#[derive(Debug)]
pub(super) enum Verifier {
    /// Accepts any: servers create their own at first start, and encryption alone was asked for. The signatures of a
    /// certificate that anyone can create prove nothing either, and some servers create certificates in an old form
    /// that the library cannot parse.
    Any(Arc<CryptoProvider>),
    /// Verifies the chain, and the name if the mode asks for it: certificates that servers create bear no host name.
    Signed {
        chain: Arc<WebPkiServerVerifier>,
        authorities: Vec<CertificateDer<'static>>,
        bears_name: bool,
    },
}

impl Verifier {
    /// Accepts certificates signed by the CAs in a file.
    pub(super) fn signed_by(
        ca: &Path,
        bears_name: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let problem = |problem: String| TlsError::Authority {
            path: ca.to_owned(),
            problem,
        };
        let mut authorities = Vec::new();
        let mut roots = RootCertStore::empty();
        for certificate in
            CertificateDer::pem_file_iter(ca).map_err(|error| problem(error.to_string()))?
        {
            let certificate = certificate.map_err(|error| problem(error.to_string()))?;
            roots
                .add(certificate.clone())
                .map_err(|error| problem(error.to_string()))?;
            authorities.push(certificate);
        }
        if roots.is_empty() {
            return Err(problem("there is none in it".to_owned()));
        }
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| problem(error.to_string()))?;
        Ok(Verifier::Signed {
            chain,
            authorities,
            bears_name,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Verifier::Signed {
            chain,
            authorities,
            bears_name,
        } = self
        else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last, when the chain has been found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !bears_name => Ok(ServerCertVerified::assertion()),
            // A certificate that is its own authority is none that an authority has signed, says the library. But it is
            // the very one that was named, and its time has been looked at.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if is_authoritys(&why) && authorities.contains(end_entity) =>
            {
                if *bears_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Verifier::Any(_) => Ok(HandshakeSignatureValid::assertion()),
            Verifier::Signed { chain, .. } => {
                chain.verify_tls12_signature(message, certificate, signature)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Verifier::Any(_) => Ok(HandshakeSignatureValid::assertion()),
            Verifier::Signed { chain, .. } => {
                chain.verify_tls13_signature(message, certificate, signature)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Verifier::Any(provider) => provider
                .signature_verification_algorithms
                .supported_schemes(),
            Verifier::Signed { chain, .. } => chain.supported_verify_schemes(),
        }
    }
}
