//! What must differ from run to run, or be guessed by nobody. Everything else that is random follows from a seed.

use std::fs::File;
use std::io::{self, Read as _};

const SOURCE: &str = "/dev/urandom";

/// A seed that nobody chose. Below 2^53, so that every JSON reader keeps all its digits.
#[must_use]
pub fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    // Without the system's chance the clock still makes two runs differ.
    let seed = match fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => jiff::Timestamp::now().as_microsecond().unsigned_abs(),
    };
    seed & ((1 << 53) - 1)
}

/// So many bytes that nobody guesses, as hexadecimal digits, two for each.
///
/// # Errors
/// The system's source of chance cannot be read; the text names it.
pub fn secret(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    fill(&mut buffer).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("could not read random bytes from `{SOURCE}`: {error}"),
        )
    })?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open(SOURCE)?.read_exact(bytes)
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
