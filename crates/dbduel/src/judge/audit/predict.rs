//! What a server would show if a setting were in its option file.
//!
//! Starts from recorded defaults and applies what is known of clamping, rounding and side effects. A
//! prediction is weaker than a reading, and evidence made of it says so.

use super::evidence::{ServerEvidence, Texts};
use super::server::{Product, Servers, Version};
use super::value::{Value, option_value, variable_name};

/// The recorded defaults, one column per server.
const DEFAULTS: &str = include_str!("../../../data/audit/defaults.tsv");

/// Variables with their compiled defaults, from a recorded server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// The server that they were read from, `mysql-5.6.24`.
    pub server: String,
    /// The variables.
    pub variables: Texts,
}

impl Defaults {
    /// The recorded servers, as product and version.
    pub fn servers() -> impl Iterator<Item = (&'static str, Product, Version)> {
        let header = DEFAULTS.lines().next().unwrap_or_default();
        header.split('\t').skip(1).filter_map(|server| {
            let (product, version) = server.split_once('-')?;
            Some((server, Product::named(product)?, Version::parse(version)?))
        })
    }

    /// The defaults of the recorded server nearest to this one: same product, same series where there
    /// is one, otherwise the nearest before it. `None` when there is none.
    #[must_use]
    pub fn nearest(product: Product, version: Version) -> Option<Self> {
        let wanted = if product == Product::MariaDb {
            Product::MariaDb
        } else {
            Product::MySql
        };
        let same_product = || Self::servers().filter(move |(_, product, _)| *product == wanted);
        let series = |version: Version| (version.major, version.minor);
        let patch_distance = |other: &Version| other.patch.abs_diff(version.patch);
        let in_series = same_product().filter(|(_, _, other)| series(*other) == series(version));
        let nearest = in_series.min_by_key(|(_, _, other)| patch_distance(other));
        let before = || {
            same_product()
                .filter(|(_, _, other)| *other < version)
                .max_by_key(|(_, _, other)| *other)
        };
        let after = || same_product().min_by_key(|(_, _, other)| *other);
        let (server, _, _) = nearest.or_else(before).or_else(after)?;
        Self::of(server)
    }

    /// The defaults of the recorded server called `server`.
    #[must_use]
    pub fn of(server: &str) -> Option<Self> {
        let mut lines = DEFAULTS.lines();
        let column = lines.next()?.split('\t').position(|name| name == server)?;
        let variables = lines
            .filter_map(|line| {
                let mut cells = line.split('\t');
                let name = cells.next()?;
                let value = cells.nth(column - 1)?;
                (value != "-").then(|| (name.to_owned(), value.to_owned()))
            })
            .collect();
        Some(Defaults {
            server: server.to_owned(),
            variables,
        })
    }

    /// Evidence of this server with nothing set.
    #[must_use]
    pub fn evidence(&self, name: &str) -> Option<ServerEvidence> {
        let mut evidence = ServerEvidence::of_variables(name, self.variables.clone())?;
        evidence.is_predicted = true;
        evidence.source = format!("compiled defaults of {}", self.server);
        Some(evidence)
    }
}

/// What a server does with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is in effect, perhaps clamped or rounded.
    Yes,
    /// An option that is no variable.
    NoVariable,
    /// It is accepted and ignored.
    Ignored,
    /// The server refuses to start.
    Refused,
}

/// Variables that MariaDB accepts without effect since 10.6.
const IGNORED_BY_MARIADB: &[&str] = &[
    "innodb_buffer_pool_instances",
    "innodb_page_cleaners",
    "innodb_log_files_in_group",
    "innodb_thread_concurrency",
    "innodb_commit_concurrency",
    "innodb_sync_array_size",
    "innodb_file_format",
    "innodb_log_optimize_ddl",
];

/// Applies a setting to predicted variables, and keeps that it was asked for.
pub fn predict(evidence: &mut ServerEvidence, name: &str, written: &str) -> Taken {
    let mut name = variable_name(name);
    let mut value = option_value(written.trim().trim_matches(['"', '\'']));
    evidence.ask(&name, &value);
    if let Some(bare) = name
        .strip_prefix("skip_")
        .filter(|bare| evidence.variables.contains_key(*bare))
    {
        value = if Value::read(&value).switch() == Some(false) {
            "ON"
        } else {
            "OFF"
        }
        .to_owned();
        name = bare.to_owned();
    }
    if name == "transaction_isolation" && !evidence.variables.contains_key("transaction_isolation")
    {
        "tx_isolation".clone_into(&mut name);
    }
    let Some(current) = evidence.variables.get(&name) else {
        return without_variable(evidence, &name);
    };
    // An option without a value switches on; a file name after log_bin too.
    let is_switch = matches!(current.as_str(), "ON" | "OFF");
    if is_switch {
        match Value::read(&value).switch() {
            Some(on) => value = if on { "ON" } else { "OFF" }.to_owned(),
            None if value.is_empty() || name == "log_bin" => "ON".clone_into(&mut value),
            None => {}
        }
    }
    evidence.variables.insert(name.clone(), value);
    side_effects(evidence, &name);
    Taken::Yes
}

fn without_variable(evidence: &ServerEvidence, name: &str) -> Taken {
    let is_ignored = is(evidence, "mariadb 10.6..") && IGNORED_BY_MARIADB.contains(&name)
        || is(evidence, "mariadb 11.0..") && name == "innodb_change_buffering"
        || is(evidence, "mariadb") && name == "default_authentication_plugin";
    let no_variable = [
        "plugin_load",
        "plugin_load_add",
        "early_plugin_load",
        "user",
        "console",
        "symbolic_links",
    ];
    if is_ignored {
        Taken::Ignored
    } else if no_variable.contains(&name) || name.starts_with("skip_") {
        Taken::NoVariable
    } else {
        Taken::Refused
    }
}

fn is(evidence: &ServerEvidence, servers: &str) -> bool {
    Servers::parse(servers)
        .is_ok_and(|servers| servers.includes(evidence.product, evidence.version))
}

fn set(evidence: &mut ServerEvidence, name: &str, value: &str) {
    if let Some(current) = evidence.variables.get_mut(name) {
        value.clone_into(current);
    }
}

/// Largest `innodb_io_capacity_max` by default, where the lower value does not raise it.
const IO_CAPACITY_MAX_DEFAULT: f64 = 2000.0;

fn side_effects(evidence: &mut ServerEvidence, name: &str) {
    let number = |evidence: &ServerEvidence, name: &str| evidence.number(name);
    let switch =
        |evidence: &ServerEvidence, name: &str| Value::read(evidence.variables.get(name)?).switch();
    match name {
        // What is too large is clamped; of MySQL that is 3 already, and 2 promises less than 1.
        "innodb_flush_log_at_trx_commit" => {
            let most = if is(evidence, "mariadb") { "3" } else { "2" };
            let is_beyond = |asked: f64| most.parse().is_ok_and(|most: f64| asked > most);
            if number(evidence, name).is_some_and(is_beyond) {
                set(evidence, name, most);
            }
        }
        "innodb_use_atomic_writes"
            if is(evidence, "mariadb ..10.2") && switch(evidence, name) == Some(true) =>
        {
            set(evidence, "innodb_doublewrite", "OFF");
            set(evidence, "innodb_flush_method", "O_DIRECT");
        }
        "innodb_flush_method" if is(evidence, "mariadb 11.0..") => {
            let method = evidence
                .variables
                .get(name)
                .cloned()
                .unwrap_or_default()
                .to_ascii_uppercase();
            let buffering = if method.starts_with("O_DIRECT") {
                "OFF"
            } else {
                "ON"
            };
            set(evidence, "innodb_data_file_buffering", buffering);
            if method == "O_DIRECT_NO_FSYNC" {
                set(evidence, "innodb_doublewrite", "fast");
            }
        }
        "innodb_io_capacity" if !evidence.asked.contains_key("innodb_io_capacity_max") => {
            let doubled = number(evidence, name).unwrap_or(0.0) * 2.0;
            if doubled > IO_CAPACITY_MAX_DEFAULT {
                set(evidence, "innodb_io_capacity_max", &doubled.to_string());
            }
        }
        "innodb_buffer_pool_size" | "innodb_buffer_pool_instances" => size_pool(evidence),
        _ => {}
    }
}

/// A pool of this size or more gets several instances by default, bytes.
const POOL_OF_SEVERAL: f64 = 1_073_741_824.0;
/// What the size of a pool is a multiple of, times the instances, bytes.
const POOL_CHUNK: f64 = 134_217_728.0;

fn size_pool(evidence: &mut ServerEvidence) {
    let rounds = is(evidence, "mysql 5.7..") || is(evidence, "mariadb 10.2..10.5");
    let Some(size) = evidence.number("innodb_buffer_pool_size") else {
        return;
    };
    if rounds
        && size >= POOL_OF_SEVERAL
        && !evidence.asked.contains_key("innodb_buffer_pool_instances")
    {
        set(evidence, "innodb_buffer_pool_instances", "8");
    }
    if rounds {
        let instances = evidence
            .number("innodb_buffer_pool_instances")
            .unwrap_or(1.0)
            .max(1.0);
        let unit = POOL_CHUNK * instances;
        let rounded = (size / unit).ceil() * unit;
        if size >= unit {
            set(evidence, "innodb_buffer_pool_size", &rounded.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerEvidence {
        Defaults::of(name).unwrap().evidence("a").unwrap()
    }

    #[track_caller]
    fn check(name: &str, settings: &[(&str, &str)], expected: &[(&str, &str)]) {
        let mut evidence = server(name);
        for (setting, value) in settings {
            predict(&mut evidence, setting, value);
        }
        for (variable, value) in expected {
            assert_eq!(
                evidence.variables.get(*variable).map(String::as_str),
                Some(*value),
                "{name} {variable}"
            );
        }
    }

    #[test]
    fn every_recorded_server_says_who_it_is() {
        let servers: Vec<_> = Defaults::servers().collect();
        assert_eq!(servers.len(), 15);
        for (name, product, version) in servers {
            let evidence = server(name);
            assert_eq!(
                (evidence.product, evidence.version),
                (product, version),
                "{name}"
            );
        }
    }

    #[test]
    fn the_nearest_recorded_server_stands_in_for_an_unrecorded_one() {
        let nearest = |product, version: &str| {
            Defaults::nearest(product, Version::parse(version).unwrap())
                .unwrap()
                .server
        };
        assert_eq!(nearest(Product::MySql, "5.6.23"), "mysql-5.6.24");
        assert_eq!(
            nearest(Product::MySql, "5.7.44"),
            "mysql-5.6.24",
            "nothing of the series: the one before"
        );
        assert_eq!(nearest(Product::MariaDb, "10.11"), "mariadb-10.11.5");
        assert_eq!(nearest(Product::Percona, "8.0.33"), "mysql-8.0.33");
        assert_eq!(nearest(Product::MySql, "5.1.73"), "mysql-5.5.34");
    }

    #[test]
    fn settings_are_written_as_the_server_would_show_them() {
        check(
            "mysql-8.0.33",
            &[("skip-log-bin", "")],
            &[("log_bin", "OFF")],
        );
        check(
            "mysql-5.6.24",
            &[("log-bin", "mysql-bin"), ("innodb-doublewrite", "0")],
            &[("log_bin", "ON"), ("innodb_doublewrite", "OFF")],
        );
        check(
            "mysql-5.6.24",
            &[("transaction-isolation", "READ-COMMITTED")],
            &[("tx_isolation", "READ-COMMITTED")],
        );
        check(
            "mariadb-10.11.5",
            &[("innodb_log_file_size", "2G")],
            &[("innodb_log_file_size", "2147483648")],
        );
    }

    #[test]
    fn clamping_rounding_and_side_effects_are_those_that_were_measured() {
        check(
            "mysql-5.6.24",
            &[("innodb_flush_log_at_trx_commit", "3")],
            &[("innodb_flush_log_at_trx_commit", "2")],
        );
        check(
            "mariadb-10.1.8",
            &[("innodb_flush_log_at_trx_commit", "7")],
            &[("innodb_flush_log_at_trx_commit", "3")],
        );
        check(
            "mysql-8.0.33",
            &[("innodb_buffer_pool_size", "1200M")],
            &[("innodb_buffer_pool_size", "2147483648")],
        );
        check(
            "mariadb-10.11.5",
            &[("innodb_buffer_pool_size", "1200M")],
            &[("innodb_buffer_pool_size", "1258291200")],
        );
        check(
            "mariadb-10.1.8",
            &[("innodb_use_atomic_writes", "1")],
            &[("innodb_doublewrite", "OFF")],
        );
        check(
            "mariadb-11.4.5",
            &[("innodb_flush_method", "O_DIRECT_NO_FSYNC")],
            &[("innodb_doublewrite", "fast")],
        );
        check(
            "mysql-5.6.24",
            &[("innodb_io_capacity", "5000")],
            &[("innodb_io_capacity_max", "10000")],
        );
    }

    #[test]
    fn settings_without_effect_are_told_from_those_that_stop_the_server() {
        assert_eq!(
            predict(&mut server("mariadb-10.11.5"), "innodb_page_cleaners", "4"),
            Taken::Ignored
        );
        assert_eq!(
            predict(&mut server("mysql-5.6.24"), "innodb_page_cleaners", "4"),
            Taken::Refused
        );
        assert_eq!(
            predict(&mut server("mysql-8.0.33"), "query_cache_type", "0"),
            Taken::Refused
        );
        assert_eq!(
            predict(&mut server("mysql-8.0.33"), "plugin-load-add", "x.so"),
            Taken::NoVariable
        );
    }
}
