//! `caching_sha2_password`: the fast answer, and the password encrypted with the server's public key.

use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::xor;

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), challenge).
pub(super) fn scramble(password: &[u8], challenge: &[u8]) -> [u8; 32] {
    let once: [u8; 32] = Sha256::digest(password).into();
    let twice = Sha256::digest(once);
    let challenge = &challenge[..challenge.len().min(20)];
    let mixed: [u8; 32] = Sha256::new()
        .chain_update(twice)
        .chain_update(challenge)
        .finalize()
        .into();
    xor(once, mixed)
}

/// The NUL-terminated password, mixed with the challenge and encrypted for the owner of `pem` (RSA-OAEP, SHA-1).
///
/// # Errors
/// A phrase saying why the key cannot be used.
pub(crate) fn encrypt_password(
    password: &[u8],
    challenge: &[u8],
    pem: &[u8],
) -> Result<Vec<u8>, &'static str> {
    let pem = std::str::from_utf8(pem).map_err(|_| "the server's public key is not text")?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim_end_matches('\0').trim())
        .map_err(|_| "the server's public key cannot be read")?;
    if challenge.is_empty() {
        return Err("the server sent no challenge");
    }
    let mixed: Vec<u8> = password
        .iter()
        .chain(&[0])
        .zip(challenge.iter().cycle())
        .map(|(byte, other)| byte ^ other)
        .collect();
    key.encrypt(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), &mixed)
        .map_err(|_| "the password is too long for the server's public key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_can_check_the_answer_with_what_it_stores() {
        let challenge = *b"0123456789abcdefghij";
        let answer = scramble(b"secret", &challenge);
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mixed: [u8; 32] = Sha256::new()
            .chain_update(stored)
            .chain_update(challenge)
            .finalize()
            .into();
        assert_eq!(Sha256::digest(xor(answer, mixed)), stored);
    }

    #[test]
    fn a_key_that_is_none_is_an_error() {
        for pem in [
            &b""[..],
            b"\xff\xfe",
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        ] {
            assert!(encrypt_password(b"secret", b"0123456789abcdefghij", pem).is_err());
        }
    }
}
