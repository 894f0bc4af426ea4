//! Which server it is: product, version, and the ranges of versions that table rows are about.
//!
//! Reads the texts that servers print about themselves.

use std::fmt;

use dbduel_text::Version;
use serde::{Deserialize, Serialize};

/// A family of servers with one history of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// PostgreSQL.
    #[serde(rename = "postgresql")]
    PostgreSql,
    /// SQLite, which runs in the process of its client. Its settings are its PRAGMAs.
    #[serde(rename = "sqlite")]
    Sqlite,
}

impl Product {
    /// Every product; those with InnoDB first.
    const ALL: &[Self] = &[
        Product::MySql,
        Product::MariaDb,
        Product::Percona,
        Product::PostgreSql,
        Product::Sqlite,
    ];

    /// Recognises the product by `VERSION()` and `@@version_comment` or what a build calls itself. The comment alone does not do:
    /// distributions write what they like there.
    #[must_use]
    pub fn recognise(version: &str, comment: &str) -> Self {
        let calls_itself = |word: &str| {
            let texts = [version, comment].map(str::to_ascii_lowercase);
            texts.iter().any(|text| text.contains(word))
        };
        if calls_itself("postgres") {
            Product::PostgreSql
        } else if calls_itself("sqlite") {
            Product::Sqlite
        } else if version.to_ascii_lowercase().contains("mariadb") {
            Product::MariaDb
        } else if comment.to_ascii_lowercase().contains("percona") {
            Product::Percona
        } else {
            Product::MySql
        }
    }

    /// The product called `name`, as people write it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "mariadb" | "mariadb server" => Some(Product::MariaDb),
            "mysql" => Some(Product::MySql),
            "percona" | "percona server" => Some(Product::Percona),
            "postgresql" | "postgres" => Some(Product::PostgreSql),
            "sqlite" | "sqlite3" => Some(Product::Sqlite),
            _ => None,
        }
    }

    /// True for the products whose settings are those of MySQL and its InnoDB.
    #[must_use]
    pub fn has_innodb(self) -> bool {
        matches!(self, Product::MySql | Product::MariaDb | Product::Percona)
    }

    /// True when the settings of both have one history: MySQL, Percona Server and MariaDB, or one product.
    #[must_use]
    pub fn is_related_to(self, other: Self) -> bool {
        self == other || self.has_innodb() && other.has_innodb()
    }

    /// The product whose recorded servers stand for this one.
    #[must_use]
    pub fn recorded_as(self) -> Self {
        match self {
            Product::MySql | Product::Percona => Product::MySql,
            Product::MariaDb | Product::PostgreSql | Product::Sqlite => self,
        }
    }

    /// The numbers of a version that name its series: two, and since PostgreSQL 10 one.
    #[must_use]
    pub fn series(self, version: Version) -> (u32, u32) {
        match self {
            Product::PostgreSql if version.major >= 10 => (version.major, 0),
            Product::PostgreSql
            | Product::MySql
            | Product::MariaDb
            | Product::Percona
            | Product::Sqlite => (version.major, version.minor),
        }
    }

    /// The version that a person writes of this product: of PostgreSQL a single number too, for its series.
    #[must_use]
    pub fn parse_version(self, text: &str) -> Option<Version> {
        let is_number = || !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        match self {
            Product::PostgreSql if is_number() => Version::parse(&format!("{text}.0")),
            Product::PostgreSql
            | Product::MySql
            | Product::MariaDb
            | Product::Percona
            | Product::Sqlite => Version::parse(text),
        }
    }

    /// The word that tables and the command line use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Product::MariaDb => "mariadb",
            Product::MySql => "mysql",
            Product::Percona => "percona",
            Product::PostgreSql => "postgresql",
            Product::Sqlite => "sqlite",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Product::MariaDb => "MariaDB",
            Product::MySql => "MySQL",
            Product::Percona => "Percona Server",
            Product::PostgreSql => "PostgreSQL",
            Product::Sqlite => "SQLite",
        })
    }
}

/// Servers that a table row is about: `any`, `innodb`, `mysql`, `mysql 5.7..`, `mariadb 10.2..10.5`.
///
/// The end of a range does not belong to it. A row about MySQL is about Percona Server too, and one about `innodb`
/// about all that have it: MySQL, Percona Server and MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Servers {
    products: &'static [Product],
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
        let products: &'static [Product] = match words.next() {
            Some("any") => Product::ALL,
            Some("innodb") => &[Product::MySql, Product::MariaDb, Product::Percona],
            Some("mysql") => &[Product::MySql, Product::Percona],
            Some("mariadb") => &[Product::MariaDb],
            Some("percona") => &[Product::Percona],
            Some("postgresql") => &[Product::PostgreSql],
            Some("sqlite") => &[Product::Sqlite],
            Some(name) => return Err(format!("`{name}` is not a product")),
            None => return Err("names no product".to_owned()),
        };
        let Some(range) = words.next() else {
            return Ok(Servers {
                products,
                since: Version::default(),
                before: None,
            });
        };
        let (since, before) = range
            .split_once("..")
            .ok_or_else(|| format!("`{range}` has no `..`"))?;
        let version = |text: &str| {
            let first = products.first().copied().unwrap_or(Product::MySql);
            first
                .parse_version(text)
                .ok_or_else(|| format!("`{text}` is not a version"))
        };
        Ok(Servers {
            products,
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
        self.products.contains(&product)
    }

    /// The first server of the range, and the first after it.
    #[cfg(test)]
    pub fn starts(&self) -> impl Iterator<Item = (Product, Version)> {
        let product = self.products.first().copied().unwrap_or(Product::MySql);
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
        assert_eq!(Product::recognise("3.54.1", "SQLite"), Product::Sqlite);
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
