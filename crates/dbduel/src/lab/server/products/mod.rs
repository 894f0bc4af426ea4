//! What differs between the products whose servers the lab runs.
//!
//! A product knows how its servers are recognised, initialised, configured for the lab and asked about themselves. It
//! starts nothing and drives no load.

mod bootstrap;
mod mariadb;
mod mysql;

use anyhow::Result;

use super::build::Build;
use super::settings::Setting;
use super::version::Version;

pub trait Product: Sync {
    /// Name in server names and files.
    fn name(&self) -> &'static str;

    /// Name for people.
    fn title(&self) -> &'static str;

    /// Whether this is the product whose daemon, or whose `VERSION()` with `@@version_comment`, says `version_text`.
    fn recognises(&self, version_text: &str) -> bool;

    /// How an empty data directory is initialised.
    ///
    /// # Errors
    /// The tree lacks the product's system SQL.
    fn initialisation(&self, build: &Build) -> Result<Initialisation>;

    /// Settings that must have their values when the data directory is made; changing them later is refused or has no
    /// effect on what exists. Names with underscores.
    fn init_time_settings(&self, version: Version) -> &'static [&'static str];

    /// Lines of the lab's own configuration that only this product has.
    fn lab_lines(&self, version: Version) -> Vec<&'static str>;

    /// Arguments, after those that name the configuration, that make the daemon check it and end.
    fn check_arguments(&self, version: Version) -> &'static [&'static str];

    /// Why a setting must not be used with this version, although the server would take it.
    fn forbids(&self, version: Version, setting: &Setting) -> Option<&'static str>;

    /// Files of a data directory that name one instance and must not be in a copy.
    fn identity_files(&self) -> &'static [&'static str];

    /// What to ask a server about itself, for the record.
    fn fact_queries(&self, version: Version) -> Vec<FactQuery>;
}

/// How an empty data directory is initialised.
#[derive(Debug, PartialEq, Eq)]
pub struct Initialisation {
    /// Arguments of the daemon, after those that name its folders.
    pub arguments: Vec<&'static str>,
    /// SQL for its standard input; empty when it has its own.
    pub sql: Vec<u8>,
    /// Folders to make in the data directory beforehand.
    pub folders: &'static [&'static str],
}

/// One question to a server about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactQuery {
    /// What the answer is called in the record.
    pub name: &'static str,
    /// The statement.
    pub sql: &'static str,
}

/// The statement that reads every counter, on every product and version.
pub const COUNTERS: &str = "SHOW GLOBAL STATUS";
/// The statement that reads every setting, on every product and version.
pub const VARIABLES: &str = "SHOW GLOBAL VARIABLES";

/// Questions that every product answers.
const COMMON_FACTS: &[FactQuery] = &[
    FactQuery {
        name: "variables",
        sql: VARIABLES,
    },
    FactQuery {
        name: "status",
        sql: COUNTERS,
    },
    FactQuery {
        name: "engines",
        sql: "SHOW ENGINES",
    },
    FactQuery {
        name: "plugins",
        sql: "SHOW PLUGINS",
    },
    FactQuery {
        name: "engine-status",
        sql: "SHOW ENGINE INNODB STATUS",
    },
    // The variable innodb_buffer_pool_instances shows what was asked for; this counts the pools that exist.
    FactQuery {
        name: "buffer-pool-instances",
        sql: "SELECT COUNT(*) FROM information_schema.INNODB_BUFFER_POOL_STATS",
    },
];

/// Every product. A new one is a file beside this and a line here. The first that recognises a server has it.
pub const PRODUCTS: &[&dyn Product] = &[&mariadb::MariaDb, &mysql::MySql];

pub fn by_name(name: &str) -> Option<&'static dyn Product> {
    PRODUCTS
        .iter()
        .copied()
        .find(|product| product.name() == name)
}

/// The product whose daemon or server says `version_text` of itself.
pub fn recognise(version_text: &str) -> Option<&'static dyn Product> {
    PRODUCTS
        .iter()
        .copied()
        .find(|product| product.recognises(version_text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_product_has_a_unique_name_and_sane_tables() {
        let mut seen = BTreeSet::new();
        for product in PRODUCTS {
            assert!(
                seen.insert(product.name()),
                "`{}` stands twice",
                product.name()
            );
            for version in [
                (5, 5, 34),
                (5, 6, 24),
                (8, 0, 33),
                (9, 7, 4),
                (10, 1, 8),
                (10, 11, 19),
                (11, 8, 6),
            ] {
                let version = Version::new(version.0, version.1, version.2);
                for name in product.init_time_settings(version) {
                    assert!(
                        !name.contains('-'),
                        "`{name}` is compared with normalised names"
                    );
                }
                for line in product.lab_lines(version) {
                    assert!(!line.contains('\n') && !line.contains(' '), "`{line}`");
                }
                let facts = product.fact_queries(version);
                let names: BTreeSet<_> = facts.iter().map(|fact| fact.name).collect();
                assert_eq!(names.len(), facts.len(), "a fact stands twice");
            }
        }
    }

    #[track_caller]
    fn check(version_text: &str, expected: Option<&str>) {
        assert_eq!(
            recognise(version_text).map(Product::name),
            expected,
            "{version_text}"
        );
    }

    #[test]
    fn products_are_told_apart_by_what_they_say() {
        check(
            "mysqld  Ver 5.5.34 for linux2.6 on x86_64 (MySQL Community Server (GPL))",
            Some("mysql"),
        );
        check(
            "/x/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
            Some("mysql"),
        );
        check(
            "/x/bin/mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)",
            Some("mariadb"),
        );
        check(
            "mariadbd  Ver 11.8.6-MariaDB-0+deb13u1 from Debian for debian-linux-gnu on x86_64 (x)",
            Some("mariadb"),
        );
        check(
            "mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)",
            None,
        );
        check("10.11.19-MariaDB-0+deb12u1 Debian 12", Some("mariadb"));
        check("postgres (PostgreSQL) 16.1", None);
    }
}
