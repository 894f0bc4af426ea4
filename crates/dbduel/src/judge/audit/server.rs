//! Which server it is: product, version, and the ranges of versions that table rows are about.
//!
//! Reads the texts that servers print about themselves. It does not know what any version does.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A family of servers with one history of settings.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Product {
    /// MariaDB Server.
    #[serde(rename = "mariadb")]
    MariaDb,
    /// MySQL.
    #[serde(rename = "mysql")]
    MySql,
    /// Percona Server; its settings are those of the MySQL version that it is built on, and more.
    Percona,
}

impl Product {
    /// Recognises the product by `VERSION()` and `@@version_comment`. The comment alone does not do:
    /// distributions write what they like there.
    #[must_use]
    pub fn recognise(version: &str, comment: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") {
            Product::MariaDb
        } else if comment.to_ascii_lowercase().contains("percona") {
            Product::Percona
        } else {
            Product::MySql
        }
    }

    /// The product that a person calls `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "mariadb" | "mariadb server" => Some(Product::MariaDb),
            "mysql" => Some(Product::MySql),
            "percona" | "percona server" => Some(Product::Percona),
            _ => None,
        }
    }

    /// The word that tables and the command line use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Product::MariaDb => "mariadb",
            Product::MySql => "mysql",
            Product::Percona => "percona",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Product::MariaDb => "MariaDB",
            Product::MySql => "MySQL",
            Product::Percona => "Percona Server",
        })
    }
}

/// `major.minor.patch`. What is not written is 0, so `5.7` comes before every 5.7.x.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

/// Patch of the release that stands for a series: later than all that there are.
const LAST_PATCH: u32 = 999;

impl Version {
    /// The last release of the series that this version is of.
    #[must_use]
    pub fn last_of_series(self) -> Self {
        Version {
            patch: LAST_PATCH,
            ..self
        }
    }

    /// The version at the start of `text`, which may go on as `-MariaDB-log` and may begin with the
    /// `5.5.5-` that MariaDB 10 puts before its own version for the sake of old replicas.
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
        let mut numbers = text[..end].split('.').filter(|part| !part.is_empty());
        let mut next = || numbers.next().map(str::parse::<u32>);
        let major = next()?.ok()?;
        let minor = next()?.ok()?;
        let patch = next().unwrap_or(Ok(0)).ok()?;
        Some(Version {
            major,
            minor,
            patch,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.patch == LAST_PATCH {
            return write!(out, "{}.{}", self.major, self.minor);
        }
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Servers that a table row is about: `any`, `mysql`, `mysql 5.7..`, `mariadb 10.2..10.5`.
///
/// The end of a range does not belong to it. A row about MySQL is about Percona Server too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Servers {
    product: Option<Product>,
    since: Version,
    before: Option<Version>,
}

impl Servers {
    /// Reads the notation.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let product = match words.next() {
            Some("any") => None,
            Some(name) => {
                Some(Product::named(name).ok_or_else(|| format!("`{name}` is not a product"))?)
            }
            None => return Err("names no product".to_owned()),
        };
        let Some(range) = words.next() else {
            return Ok(Servers {
                product,
                since: Version::default(),
                before: None,
            });
        };
        let (since, before) = range
            .split_once("..")
            .ok_or_else(|| format!("`{range}` has no `..`"))?;
        let version =
            |text: &str| Version::parse(text).ok_or_else(|| format!("`{text}` is not a version"));
        Ok(Servers {
            product,
            since: if since.is_empty() {
                Version::default()
            } else {
                version(since)?
            },
            before: if before.is_empty() {
                None
            } else {
                Some(version(before)?)
            },
        })
    }

    /// True when the row is about servers of this product.
    #[must_use]
    pub fn is_about(&self, product: Product) -> bool {
        match self.product {
            None => true,
            Some(Product::MySql) => product != Product::MariaDb,
            Some(wanted) => product == wanted,
        }
    }

    /// The first server of the range, and the first after it.
    #[cfg(test)]
    pub fn starts(&self) -> impl Iterator<Item = (Product, Version)> {
        let product = self.product.unwrap_or(Product::MySql);
        let ends = [Some(self.since), self.before];
        ends.into_iter()
            .flatten()
            .map(move |version| (product, version))
    }

    /// True when the row is about this server.
    #[must_use]
    pub fn includes(&self, product: Product, version: Version) -> bool {
        self.is_about(product)
            && version >= self.since
            && self.before.is_none_or(|before| version < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: (u32, u32, u32)) {
        let version = Version::parse(text).unwrap();
        assert_eq!(
            (version.major, version.minor, version.patch),
            expected,
            "{text}"
        );
    }

    #[test]
    fn versions_are_found_in_what_servers_print() {
        check("5.6.24", (5, 6, 24));
        check("5.5.5-10.11.19-MariaDB-0+deb12u1", (10, 11, 19));
        check("11.8.6-MariaDB-0+deb13u1 from Debian", (11, 8, 6));
        check("9.7.4-2", (9, 7, 4));
        check("10.11", (10, 11, 0));
        check("5.5.5", (5, 5, 5));
        for text in ["", "MariaDB", "8", "8.", "99999999999.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn products_are_told_apart_by_version_and_comment() {
        assert_eq!(
            Product::recognise("10.11.19-MariaDB-0+deb12u1", "Debian 12"),
            Product::MariaDb
        );
        assert_eq!(Product::recognise("9.7.4-2", "(Debian)"), Product::MySql);
        assert_eq!(
            Product::recognise("8.0.33-25", "Percona Server (GPL)"),
            Product::Percona
        );
    }

    #[test]
    fn a_range_has_its_start_and_not_its_end() {
        let row = Servers::parse("mysql 5.6..5.7").unwrap();
        let is_about = |text: &str| row.includes(Product::MySql, Version::parse(text).unwrap());
        assert!(
            is_about("5.6.0") && is_about("5.6.51") && !is_about("5.7.0") && !is_about("5.5.34")
        );
        assert!(row.includes(Product::Percona, Version::parse("5.6.14").unwrap()));
        assert!(!row.includes(Product::MariaDb, Version::parse("5.6.14").unwrap()));
    }

    #[test]
    fn broken_ranges_are_refused() {
        for text in ["", "oracle", "mysql 5.7", "mysql x..", "mysql 5.6..x"] {
            assert!(Servers::parse(text).is_err(), "{text}");
        }
    }
}
