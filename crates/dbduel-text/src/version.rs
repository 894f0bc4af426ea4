//! Server versions as three numbers, for comparisons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `major.minor.patch` of a server. Orders as versions do; a missing patch is 0, so `5.7` orders before every later 5.7.x.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    /// First number: 10 in 10.11.5.
    pub major: u32,
    /// Second number: 11 in 10.11.5.
    pub minor: u32,
    /// Third number: 5 in 10.11.5.
    pub patch: u32,
}

/// Patch of the release that stands for a series: later than every real one.
const LAST_PATCH: u32 = 999;

impl Version {
    /// A version of three numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version {
            major,
            minor,
            patch,
        }
    }

    /// The version at the start of `text`, which has at least two numbers: the output of `VERSION()`, of a greeting or of
    /// `--version`, such as `10.11.19-MariaDB-log`.
    ///
    /// MariaDB 10 puts `5.5.5-` before its own version in the greeting, for old replicas; that prefix is skipped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = match text.strip_prefix("5.5.5-") {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => rest,
            _ => text,
        };
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let numbers = text[..end].trim_end_matches('.');
        let mut numbers = numbers.split('.').map(str::parse::<u32>);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next()?.ok()?;
        let patch = numbers.next().unwrap_or(Ok(0)).ok()?;
        Some(Version::new(major, minor, patch))
    }

    /// True for every release of series `major.minor` and of later ones.
    #[must_use]
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// A version that orders after every release of the same series; shown without its patch.
    #[must_use]
    pub fn last_of_series(self) -> Self {
        Version {
            patch: LAST_PATCH,
            ..self
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)?;
        match self.patch {
            LAST_PATCH => Ok(()),
            patch => write!(out, ".{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(u32, u32, u32)>) {
        let version = Version::parse(text);
        let numbers = version.map(|own| (own.major, own.minor, own.patch));
        assert_eq!(numbers, expected, "{text}");
    }

    #[test]
    fn versions_are_read_from_the_output_of_servers() {
        check("5.5.34", Some((5, 5, 34)));
        check("5.5.5", Some((5, 5, 5)));
        check("9.7.4-2", Some((9, 7, 4)));
        check("10.11", Some((10, 11, 0)));
        check("8.0.-log", Some((8, 0, 0)));
        check("10.11.19-MariaDB-0+deb12u1", Some((10, 11, 19)));
        check("5.5.5-10.11.19-MariaDB-0+deb12u1", Some((10, 11, 19)));
        check("11.8.6-MariaDB-0+deb13u1 from Debian", Some((11, 8, 6)));
        for text in ["", "MariaDB", "8", "8.", "10..3", "99999999999.1.1"] {
            check(text, None);
        }
    }

    #[test]
    fn versions_order_as_numbers_and_a_series_ends_after_its_releases() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("10.11.5").at_least(10, 5));
        assert!(!version("10.2.11").at_least(10, 11));
        assert!(version("10.1.23") < version("10.11.5"));
        let series = version("10.11").last_of_series();
        assert!(version("10.11.98") < series && series < version("11.0"));
        assert_eq!(series.to_string(), "10.11");
        assert_eq!(version("10.11").to_string(), "10.11.0");
    }
}
