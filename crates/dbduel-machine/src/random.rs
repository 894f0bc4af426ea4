//! Random values without a seed: fresh seeds and secrets. All other randomness derives from a seed.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// A fresh seed, below 2^53, so that every JSON reader keeps all its digits.
#[must_use]
pub fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    // Without the system's random numbers the clock still makes two runs differ.
    let seed = match fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => jiff::Timestamp::now().as_microsecond().unsigned_abs(),
    };
    seed & ((1 << 53) - 1)
}

/// `bytes` random bytes as hexadecimal digits, two for each.
///
/// # Errors
/// The system returns no random bytes.
pub fn secret(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    fill(&mut buffer)?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    // At most 256 bytes come in one piece; nothing here needs more.
    let filled = getrandom(&mut *bytes, GetRandomFlags::empty())?;
    if filled < bytes.len() {
        return Err(io::Error::other("the system returned too few random bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_keep_their_digits_in_json() {
        let seeds = [fresh_seed(), fresh_seed()];
        assert_ne!(seeds[0], seeds[1]);
        assert!(seeds.iter().all(|seed| (*seed as f64) as u64 == *seed));
    }

    #[test]
    fn a_secret_is_as_long_as_asked_for() {
        let (one, other) = (secret(16).unwrap(), secret(16).unwrap());
        assert_eq!(one.len(), 32);
        assert!(one != other && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
