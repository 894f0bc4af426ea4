//! Differences between the products whose servers the lab runs.
//!
//! A product defines how its servers are recognised, initialised, configured for the lab and queried. It starts nothing
//! and drives no load.

mod bootstrap;
mod layout;
mod mariadb;
mod mysql;
mod option_file;
mod postgresql;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use dbduel_driver::Dialect;
use dbduel_text::Version;
use nix::sys::signal::Signal;

use super::build::Build;
use super::reserved;
use super::settings::Setting;

pub use layout::Layout;
pub use postgresql::SETTINGS as POSTGRESQL_SETTINGS;

/// A product whose servers the lab runs.
pub trait ServerProduct: Sync {
    /// Name in server names and files.
    fn name(&self) -> &'static str;

    /// Name in messages and reports.
    fn title(&self) -> &'static str;

    /// True for the product whose daemon, or whose `VERSION()` with `@@version_comment`, returns `version_text`.
    fn recognises(&self, version_text: &str) -> bool;

    /// Where the parts of its servers lie in a tree.
    fn layout(&self) -> &'static Layout {
        &layout::MYSQL
    }

    /// The version in the daemon's answer.
    fn version(&self, said: &str) -> Option<Version> {
        Version::parse(after_ver(said)?)
    }

    /// Creates a data directory at `data`, which does not exist, with the work folder `staging`. `settings` are those
    /// of [`ServerProduct::init_time_settings`].
    ///
    /// # Errors
    /// The server refuses a setting ([`RefusedSetting`](super::RefusedSetting), by downcast), cannot be initialised, or
    /// its tree is incomplete; the text quotes the server.
    fn initialise(
        &self,
        build: &Build,
        settings: &[Setting],
        data: &Path,
        staging: &Path,
    ) -> Result<()>;

    /// Settings that are fixed when the data directory is created; later changes are refused or do not affect existing
    /// files. Names with underscores.
    fn init_time_settings(&self, version: Version) -> &'static [&'static str];

    /// File name of its configuration in a sandbox.
    fn configuration_name(&self) -> &'static str {
        "my.cnf"
    }

    /// The whole configuration: the lab's lines first, then the contender's settings in order.
    fn configuration(&self, build: &Build, places: &Places<'_>, settings: &[Setting]) -> String;

    /// The argument that names the configuration; it identifies a server in the process list.
    fn configuration_argument(&self, configuration: &Path) -> OsString {
        let mut argument = OsString::from("--defaults-file=");
        argument.push(configuration);
        argument
    }

    /// Arguments after [`ServerProduct::configuration_argument`] that the daemon needs to serve or to check.
    fn more_arguments(&self, _data: &Path) -> Vec<OsString> {
        Vec::new()
    }

    /// Arguments, after all others, that make the daemon check the configuration and exit.
    fn check_arguments(&self, version: Version) -> &'static [&'static str];

    /// File name of its socket.
    fn socket_name(&self) -> &'static str {
        "s.sock"
    }

    /// File name of its socket when it also listens on this TCP port.
    fn socket_name_at(&self, _port: u16) -> String {
        self.socket_name().to_owned()
    }

    /// Lets the lab's account log in from other machines, in a data directory whose server does not run.
    ///
    /// # Errors
    /// A file of the data directory cannot be read or written.
    fn admit_clients(&self, _version: Version, _data: &Path) -> Result<()> {
        Ok(())
    }

    /// Signals that ask the daemon to exit, the gentlest first; after the last one it is killed.
    fn stop_signals(&self) -> &'static [Signal] {
        &[Signal::SIGTERM]
    }

    /// True when the daemon refuses to run as root.
    fn refuses_root(&self) -> bool {
        false
    }

    /// SQL dialect of its servers.
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    /// How to verify that a server runs in its sandbox: a statement that returns names and values, and the required
    /// values.
    fn read_back(&self, places: &Places<'_>) -> ReadBack {
        option_file::read_back(places)
    }

    /// Settings that a contender needs for this many connections unless it sets them itself.
    fn needed_settings(&self, connections: u32) -> Vec<(&'static str, u32)> {
        option_file::needed_settings(connections)
    }

    /// Settings, unless it sets them itself, by which a server that is awake for 1/`contenders` of the time does its
    /// periodic work as often, per second awake, as one that always runs.
    fn paced_settings(&self, contenders: u32) -> Vec<(&'static str, u32)> {
        let _ = contenders;
        Vec::new()
    }

    /// Why a setting belongs to the lab alone; `None` when a contender may have it.
    fn reserved(&self, name: &str, value: &str) -> Option<String> {
        reserved::reserved(name, value)
    }

    /// Why a setting is unsafe with this version, although the server would accept it.
    fn forbids(&self, _version: Version, _setting: &Setting) -> Option<&'static str> {
        None
    }

    /// Files of a data directory that identify one instance and must not be copied.
    fn identity_files(&self) -> &'static [&'static str];

    /// Lock files in a data directory by which a killed server blocks the next start.
    fn lock_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Queries about the server's state, for the record.
    fn fact_queries(&self, version: Version) -> Vec<FactQuery>;
}

/// Paths and address of a server.
pub struct Places<'a> {
    /// Data directory.
    pub data: &'a Path,
    /// Folder for temporary files.
    pub tmp: &'a Path,
    pub socket: &'a Path,
    /// Address for clients of other machines; `None` without a TCP port.
    pub listen: Option<SocketAddr>,
    /// Process ID file.
    pub pid_file: &'a Path,
    /// Error log; `None` for standard error.
    pub log: Option<&'a Path>,
}

/// How the lab's own settings are read back from a running server.
pub struct ReadBack {
    /// Returns rows of a name and a value.
    pub settings: &'static str,
    /// Names with the values that they must have.
    pub values: Vec<(&'static str, String)>,
    /// The same for names that not every version has.
    pub values_if_present: Vec<(&'static str, String)>,
    /// Names with the required paths. Servers may resolve links in them and append a slash to folders.
    pub paths: Vec<(&'static str, PathBuf)>,
    /// Statement that returns the account of the session.
    pub account: &'static str,
    /// The required account.
    pub expected_account: String,
}

/// One query of a server's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactQuery {
    /// Name of the answer in the record.
    pub name: &'static str,
    /// The statement.
    pub sql: &'static str,
}

/// The statement that reads every counter, on every product and version.
pub const COUNTERS: &str = "SHOW GLOBAL STATUS";
/// The statement that reads every setting, on every product and version.
pub const VARIABLES: &str = "SHOW GLOBAL VARIABLES";

/// The query whose answers, names and values, an audit needs besides settings.
pub const PROBE: &str = "probe";

/// Queries for both MySQL and MariaDB.
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

/// Every product. To add one, add a file beside this and a line here. The first that recognises a server owns it.
pub const PRODUCTS: &[&dyn ServerProduct] = &[
    &mariadb::MariaDb,
    &mysql::MySql::Oracle,
    &mysql::MySql::Percona,
    &postgresql::PostgreSql,
];

/// The product of that name, if known.
pub fn by_name(name: &str) -> Option<&'static dyn ServerProduct> {
    PRODUCTS
        .iter()
        .copied()
        .find(|product| product.name() == name)
}

/// The text after `Ver` in the answer of a daemon of MySQL or MariaDB. The path before it is in a folder that may be
/// renamed.
fn after_ver(said: &str) -> Option<&str> {
    said.split_once("Ver ").map(|(_, version)| version.trim())
}

/// Possible file names of a daemon, the preferred one first.
pub fn daemons() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for &name in PRODUCTS.iter().flat_map(|product| product.layout().daemons) {
        // Several products have one layout.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Layout of a tree with this daemon. Daemons with unknown names count as the first product's.
pub fn layout(daemon: &Path) -> &'static Layout {
    let name = daemon.file_name().unwrap_or_default();
    let mut layouts = PRODUCTS.iter().map(|product| product.layout());
    layouts
        .find(|layout| layout.daemons.iter().any(|daemon| name == *daemon))
        .unwrap_or_else(|| PRODUCTS[0].layout())
}

/// The product whose daemon or server returns `version_text`.
pub fn recognise(version_text: &str) -> Option<&'static dyn ServerProduct> {
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
                let facts = product.fact_queries(version);
                let names: BTreeSet<_> = facts.iter().map(|fact| fact.name).collect();
                assert_eq!(names.len(), facts.len(), "a fact stands twice");
            }
        }
    }

    #[test]
    fn a_daemon_of_several_products_is_named_once() {
        let names = daemons();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len(), "{names:?}");
        assert!(distinct.contains("mysqld") && distinct.contains("postgres"));
    }

    #[track_caller]
    fn check(version_text: &str, expected: Option<&str>) {
        assert_eq!(
            recognise(version_text).map(ServerProduct::name),
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
            Some("percona"),
        );
        check("10.11.19-MariaDB-0+deb12u1 Debian 12", Some("mariadb"));
        check("postgres (PostgreSQL) 16.15", Some("postgresql"));
        check("postgres (PostgreSQL) 9.6.24", Some("postgresql"));
        check(
            "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
            Some("postgresql"),
        );
        check(
            "9.6.24 PostgreSQL 9.6.24 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 4.4.7",
            Some("postgresql"),
        );
    }
}
