//! Digests of files, which identify in a record the bytes that ran.

use std::io::{self, Read};
use std::path::Path;

use dbduel_record::foreign;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A file's size and its digests in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256, as published by vendors.
    pub sha256: String,
    /// BLAKE3, for fast verification.
    pub blake3: String,
}

/// Reads a file once and computes both digests.
///
/// # Errors
/// The file cannot be read; the text names it.
pub fn of_file(path: &Path) -> io::Result<Digests> {
    let named = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("could not read `{}`: {error}", path.display()),
        )
    };
    foreign::open(path).and_then(of).map_err(named)
}

/// Reads to the end and computes both digests.
///
/// # Errors
/// An error of the reader.
pub fn of(mut reader: impl Read) -> io::Result<Digests> {
    let mut sha256 = Sha256::new();
    let mut blake3 = blake3::Hasher::new();
    let mut bytes = 0u64;
    let mut buffer = vec![0u8; 1 << 18];
    loop {
        let n = reader.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        sha256.update(&buffer[..n]);
        blake3.update(&buffer[..n]);
        bytes += n as u64;
    }
    let sha256 = sha256
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(Digests {
        bytes,
        sha256,
        blake3: blake3.finalize().to_hex().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_three_letters_are_the_published_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let digests = of_file(&path).unwrap();
        assert_eq!(digests.bytes, 3);
        assert_eq!(
            digests.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            digests.blake3,
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
    }
}
