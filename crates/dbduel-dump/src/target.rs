//! The server that a dump is loaded into.

use dbduel_driver::{Connection, Dialect};
use dbduel_sql::Syntax;
use dbduel_text::Version;

use crate::tokens::Mark;

/// Product of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// MySQL, and Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
    /// PostgreSQL.
    PostgreSql,
}

/// Product and version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its product.
    pub product: Product,
    /// Its version.
    pub version: Version,
}

impl Target {
    /// The server behind a connection; `None` for SQLite, and where the greeting has no version.
    #[must_use]
    pub fn of(connection: &Connection) -> Option<Self> {
        Self::named(connection.dialect(), connection.server_version())
    }

    /// The server of a dialect with this greeting, such as `10.11.19-MariaDB-log`.
    #[must_use]
    pub fn named(dialect: Dialect, greeting: &str) -> Option<Self> {
        let product = match dialect {
            Dialect::PostgreSql => Product::PostgreSql,
            Dialect::MySql if greeting.contains("MariaDB") => Product::MariaDb,
            Dialect::MySql => Product::MySql,
            Dialect::Sqlite => return None,
        };
        let version = Version::parse(greeting)?;
        Some(Self { product, version })
    }

    /// How its statements are read.
    #[must_use]
    pub fn syntax(&self) -> Syntax {
        match self.product {
            Product::PostgreSql => Syntax::POSTGRESQL,
            Product::MySql | Product::MariaDb => Syntax::MYSQL,
        }
    }

    /// True for this product, with `major.minor` or later.
    #[must_use]
    pub fn is_since(&self, product: Product, major: u32, minor: u32) -> bool {
        self.product == product && self.version.at_least(major, minor)
    }

    /// True for this product before `major.minor`.
    #[must_use]
    pub fn is_before(&self, product: Product, major: u32, minor: u32) -> bool {
        self.product == product && !self.version.at_least(major, minor)
    }

    /// True when the server executes what is in a comment with this mark. MariaDB skips MySQL's from 5.7 to 9.x.
    pub(crate) fn executes(&self, mark: Mark) -> bool {
        let Version {
            major,
            minor,
            patch,
        } = self.version;
        let own = major * 10_000 + minor * 100 + patch;
        match self.product {
            Product::PostgreSql => false,
            Product::MySql => !mark.is_mariadb && mark.number <= own,
            Product::MariaDb => {
                (mark.is_mariadb || !(50_700..100_000).contains(&mark.number)) && mark.number <= own
            }
        }
    }

    /// Its name and version, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        let product = match self.product {
            Product::MySql => "MySQL",
            Product::MariaDb => "MariaDB",
            Product::PostgreSql => "PostgreSQL",
        };
        match self.product {
            // Its versions have two numbers since 10.
            Product::PostgreSql if self.version.major >= 10 => {
                format!("{product} {}", self.version.major)
            }
            _ => format!("{product} {}", self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_product_executes_its_own_comments() {
        let mark = |number, is_mariadb| Mark {
            start: 0,
            is_mariadb,
            number,
        };
        let of = |greeting: &str| Target::named(Dialect::MySql, greeting).unwrap();
        let (mariadb, mysql) = (of("5.5.5-10.11.19-MariaDB"), of("8.0.33"));
        for (number, is_mariadb, expected) in [
            (40_101, false, (true, true)),
            (50_003, false, (true, true)),
            (80_023, false, (false, true)),
            (80_034, false, (false, false)),
            (100_100, true, (true, false)),
            (0, false, (true, true)),
            (999_999, false, (false, false)),
        ] {
            let mark = mark(number, is_mariadb);
            let found = (mariadb.executes(mark), mysql.executes(mark));
            assert_eq!(found, expected, "{number}");
        }
        assert_eq!(mariadb.name(), "MariaDB 10.11.19");
    }
}
