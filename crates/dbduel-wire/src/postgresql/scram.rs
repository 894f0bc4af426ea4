//! SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding. Passwords are used unchanged: PostgreSQL also accepts
//! passwords that SASLprep would change or refuse, as long as they are ASCII or not in normal form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};

/// The name of the mechanism.
pub(super) const MECHANISM: &str = "SCRAM-SHA-256";

/// Header without channel binding; the last message repeats it in base64.
const HEADER: &str = "n,,";
const HEADER_BASE64: &str = "biws";

/// Maximum number of rounds that are computed; a server that asks for more would keep the client busy for minutes.
/// 4096 is usual.
const ROUNDS_MAX: u32 = 1_000_000;

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

type Hash = [u8; 32];

/// A client's side of one login.
#[derive(Debug)]
pub(super) struct Scram {
    password: Vec<u8>,
    nonce: String,
    /// Expected proof that the server knows the password too, once ours is sent.
    server_signature: Option<Hash>,
}

impl Scram {
    /// `nonce` must be printable ASCII without commas.
    pub(super) fn new(password: &str, nonce: String) -> Self {
        Scram {
            password: password.as_bytes().to_vec(),
            nonce,
            server_signature: None,
        }
    }

    fn first_bare(&self) -> String {
        // The server takes the user's name from the startup message.
        format!("n=,r={}", self.nonce)
    }

    /// The first message.
    pub(super) fn first(&self) -> String {
        format!("{HEADER}{}", self.first_bare())
    }

    /// The second message, which answers the server's first.
    pub(super) fn second(&mut self, server_first: &[u8]) -> Result<String, &'static str> {
        let text = std::str::from_utf8(server_first).map_err(|_| "its challenge is not text")?;
        let field = |name: &str| text.split(',').find_map(|field| field.strip_prefix(name));
        let nonce = field("r=").ok_or("its challenge has no nonce")?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err("its nonce does not continue ours");
        }
        let salt = field("s=").and_then(|salt| BASE64.decode(salt).ok());
        let salt = salt.ok_or("its challenge has no salt")?;
        let rounds = field("i=").and_then(|rounds| rounds.parse().ok());
        let rounds: u32 = rounds.ok_or("its challenge has no number of rounds")?;
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return Err("it asks for too many rounds or zero");
        }
        let salted = pbkdf2(&self.password, &salt, rounds);
        let client_key = hmac(&salted, &[b"Client Key"]);
        let stored_key: Hash = Sha256::digest(client_key).into();
        let without_proof = format!("c={HEADER_BASE64},r={nonce}");
        let message = [self.first_bare().as_str(), text, &without_proof].join(",");
        let signature = hmac(&stored_key, &[message.as_bytes()]);
        let proof = BASE64.encode(xor(client_key, signature));
        let server_key = hmac(&salted, &[b"Server Key"]);
        self.server_signature = Some(hmac(&server_key, &[message.as_bytes()]));
        Ok(format!("{without_proof},p={proof}"))
    }

    /// Checks the server's last message.
    pub(super) fn check(&self, server_final: &[u8]) -> Result<(), &'static str> {
        let text = std::str::from_utf8(server_final).map_err(|_| "its proof is not text")?;
        let proof = text.split(',').find_map(|field| field.strip_prefix("v="));
        let proof = proof.and_then(|proof| BASE64.decode(proof).ok());
        match (&self.server_signature, proof) {
            (Some(expected), Some(proof)) if proof == expected => Ok(()),
            _ => Err("it does not prove that it knows the password"),
        }
    }
}

fn hmac(key: &[u8], pieces: &[&[u8]]) -> Hash {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    for piece in pieces {
        inner.update(piece);
    }
    let outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

fn pbkdf2(password: &[u8], salt: &[u8], rounds: u32) -> Hash {
    let mut last = hmac(password, &[salt, &1_u32.to_be_bytes()]);
    let mut sum = last;
    for _ in 1..rounds {
        last = hmac(password, &[&last]);
        sum = xor(sum, last);
    }
    sum
}

fn xor(mut left: Hash, right: Hash) -> Hash {
    for (byte, other) in left.iter_mut().zip(right) {
        *byte ^= other;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &[u8] =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    #[test]
    fn keyed_hashes_are_those_of_rfc_4231() {
        let hash = hmac(&[0x0b; 20], &[b"Hi ", b"There"]);
        assert_eq!(hash[..4], [0xb0, 0x34, 0x4c, 0x61]);
        let hash = hmac(
            &[0xaa; 131],
            &[b"Test Using Larger Than Block-Size Key - Hash Key First"],
        );
        assert_eq!(hash[..4], [0x60, 0xe4, 0x31, 0x59]);
    }

    /// The example of RFC 7677, whose messages carry the user's name: only the salted password and the keys are the same, so
    /// the proof is checked as a server would.
    #[test]
    fn a_server_that_stores_keys_can_check_the_proof_and_proves_itself() {
        let mut scram = Scram::new("pencil", NONCE.to_owned());
        let second = scram.second(CHALLENGE).unwrap();
        let (without_proof, proof) = second.split_once(",p=").unwrap();
        let salted = pbkdf2(
            b"pencil",
            &BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap(),
            4096,
        );
        let stored: Hash = Sha256::digest(hmac(&salted, &[b"Client Key"])).into();
        let challenge = std::str::from_utf8(CHALLENGE).unwrap();
        let message = format!("n=,r={NONCE},{challenge},{without_proof}");
        let signature = hmac(&stored, &[message.as_bytes()]);
        let proof: Hash = BASE64.decode(proof).unwrap().try_into().unwrap();
        let key: Hash = Sha256::digest(xor(proof, signature)).into();
        assert_eq!(key, stored);
        let server = hmac(&hmac(&salted, &[b"Server Key"]), &[message.as_bytes()]);
        scram
            .check(format!("v={}", BASE64.encode(server)).as_bytes())
            .unwrap();
        assert!(scram.check(b"v=AAAA").is_err());
        assert!(scram.check(b"e=other-error").is_err());
    }

    #[test]
    fn challenges_that_are_none_are_refused() {
        for challenge in [
            &b"r=other,s=W22Z,i=4096"[..],
            b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=0",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=4294967295",
            b"\xff",
            b"",
        ] {
            let mut scram = Scram::new("pencil", NONCE.to_owned());
            assert!(scram.second(challenge).is_err());
            assert!(scram.check(b"v=").is_err(), "no proof without a challenge");
        }
    }
}
