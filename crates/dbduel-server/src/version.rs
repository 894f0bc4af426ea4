//! Server versions as three numbers, for comparisons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The numeric part of a server's version. Orders as versions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// First number: 10 in 10.11.5.
    pub major: u32,
    /// Second number: 11 in 10.11.5.
    pub minor: u32,
    /// Third number: 5 in 10.11.5.
    pub patch: u32,
}

impl Version {
    /// A version of three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version {
            major,
            minor,
            patch,
        }
    }

    /// Reads the version at the start of what `VERSION()` or a greeting says.
    ///
    /// MariaDB 10 puts `5.5.5-` before its own version in the greeting packet, for the sake of old replicas; that
    /// prefix is skipped.
    pub fn parse(text: &str) -> Option<Self> {
        let text = match text.strip_prefix("5.5.5-") {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
            _ => text,
        };
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        Some(Version::new(next()?, next()?, next()?))
    }

    /// True for this version and every later one.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(u32, u32, u32)>) {
        assert_eq!(
            Version::parse(text),
            expected.map(|(a, b, c)| Version::new(a, b, c)),
            "{text}"
        );
    }

    #[test]
    fn versions_are_read_from_what_servers_say() {
        check("5.5.34", Some((5, 5, 34)));
        check("5.5.5", Some((5, 5, 5)));
        check("9.7.4-2", Some((9, 7, 4)));
        check("10.11.19-MariaDB-0+deb12u1", Some((10, 11, 19)));
        check("5.5.5-10.11.19-MariaDB-0+deb12u1", Some((10, 11, 19)));
        check("11.8.6-MariaDB-0+deb13u1 from Debian", Some((11, 8, 6)));
    }

    #[test]
    fn what_is_not_a_version_is_none() {
        check("", None);
        check("10.11", None);
        check("MariaDB", None);
        check("10..3", None);
        check("99999999999.1.1", None);
    }

    #[test]
    fn minor_versions_order_as_numbers() {
        assert!(Version::new(10, 11, 5).at_least(10, 5));
        assert!(!Version::new(10, 2, 11).at_least(10, 11));
        assert!(Version::new(10, 1, 23) < Version::new(10, 11, 5));
    }
}
