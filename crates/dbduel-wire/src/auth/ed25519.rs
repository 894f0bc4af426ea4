//! MariaDB's `client_ed25519`.
//!
//! Ed25519 as in RFC 8032, except that the secret scalar comes from SHA-512 over the password of any length
//! instead of over a 32-byte seed.

use ed25519_dalek::VerifyingKey;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha2::{Digest, Sha512};

/// Signs the challenge.
pub(super) fn sign(password: &[u8], challenge: &[u8]) -> [u8; 64] {
    let digest: [u8; 64] = Sha512::digest(password).into();
    let secret = ExpandedSecretKey::from_bytes(&digest);
    let public = VerifyingKey::from(&secret);
    raw_sign::<Sha512>(&secret, challenge, &public).to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::Signature;

    /// The server stores the public key only.
    #[test]
    fn the_signature_holds_against_the_public_key() {
        let digest: [u8; 64] = Sha512::digest(b"secret").into();
        let public = VerifyingKey::from(&ExpandedSecretKey::from_bytes(&digest));
        let signature = Signature::from_bytes(&sign(b"secret", &[7; 32]));
        assert!(public.verify_strict(&[7; 32], &signature).is_ok());
        assert!(public.verify_strict(&[8; 32], &signature).is_err());
    }
}
