//! `mysql_native_password`: SHA1(password) XOR SHA1(challenge, SHA1(SHA1(password))).

use sha1::{Digest, Sha1};

use super::xor;

/// The challenge's first 20 bytes are used; a trailing NUL, if any, follows them.
pub(super) fn scramble(password: &[u8], challenge: &[u8]) -> [u8; 20] {
    let once: [u8; 20] = Sha1::digest(password).into();
    let twice = Sha1::digest(once);
    let challenge = &challenge[..challenge.len().min(20)];
    let mixed: [u8; 20] = Sha1::new()
        .chain_update(challenge)
        .chain_update(twice)
        .finalize()
        .into();
    xor(once, mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server stores SHA1(SHA1(password)) and must be able to get SHA1(password) back from the answer.
    #[test]
    fn the_server_can_check_the_answer_with_what_it_stores() {
        let challenge = *b"0123456789abcdefghij";
        let answer = scramble(b"secret", &challenge);
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mixed: [u8; 20] = Sha1::new()
            .chain_update(challenge)
            .chain_update(stored)
            .finalize()
            .into();
        assert_eq!(Sha1::digest(xor(answer, mixed)), stored);
    }
}
