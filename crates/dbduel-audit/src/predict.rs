//! Predicts the variables of a server with a setting in its option file.
//!
//! Starts from defaults and applies what is known of clamping, rounding and side effects. A prediction is
//! weaker than a reading, and evidence made of it says so.

use super::defaults::following;
use super::evidence::ServerEvidence;
use super::options::{OptionFate, OptionForm, option_fate, other_name};
use super::server::Servers;
use super::table::table;
use super::takes::{ValueFate, is_text, value_fate};
use super::value::{Value, option_value, variable_name};

/// How a server handles a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is in effect, perhaps clamped or rounded.
    Yes,
    /// An option that is no variable, or one that is not among the recorded ones.
    NoVariable,
    /// It is accepted and ignored.
    Ignored,
    /// The server refuses to start.
    Refused,
}

/// Applies a setting of an option file, unless the server rejects it; `None` stands for an option without a value.
///
/// # Errors
/// The reason of the rejection, a sentence without its full stop.
pub fn set_option(
    evidence: &mut ServerEvidence,
    written: &str,
    value: Option<&str>,
) -> Result<Taken, String> {
    match option_fate(evidence.product, evidence.version, written) {
        OptionFate::Refused(why) => Err(format!("`{}` {why}", written.trim())),
        OptionFate::Ignored => {
            evidence.ask(written, value.unwrap_or_default());
            Ok(Taken::Ignored)
        }
        _ => apply(evidence, written, value),
    }
}

/// Applies a setting to predicted variables, and records that it was requested. An empty value stands for none.
pub fn predict(evidence: &mut ServerEvidence, written: &str, value: &str) -> Taken {
    let value = Some(value).filter(|value| !value.is_empty());
    apply(evidence, written, value).unwrap_or(Taken::Refused)
}

fn apply(
    evidence: &mut ServerEvidence,
    written: &str,
    value: Option<&str>,
) -> Result<Taken, String> {
    if !evidence.product.has_innodb() {
        return apply_plain(evidence, written, value);
    }
    let asked = value.unwrap_or_default().trim().trim_matches(['"', '\'']);
    let asked = option_value(asked);
    let bare = variable_name(written);
    let (name, form) = if may_exist(evidence, &bare) {
        (bare.clone(), OptionForm::Plain)
    } else {
        match option_fate(evidence.product, evidence.version, written) {
            OptionFate::Taken { name, form } => (name, form),
            fate => {
                evidence.ask(&bare, &asked);
                return Ok(match fate {
                    OptionFate::Ignored => Taken::Ignored,
                    OptionFate::Refused(_) => Taken::Refused,
                    _ if is_of_loaded_plugin(evidence, &bare) => {
                        put(evidence, &bare, asked);
                        Taken::Yes
                    }
                    _ => Taken::NoVariable,
                });
            }
        }
    };
    let fate = match form {
        OptionForm::Plain => value_fate(evidence, &name, value)?,
        OptionForm::On => switched(evidence, &name, unless_zero(value, "0", "1"))?,
        OptionForm::Off => switched(evidence, &name, unless_zero(value, "1", "0"))?,
        OptionForm::Bound => {
            value_fate(evidence, &name, value)?;
            evidence.ask(&bare, &asked);
            return Ok(Taken::NoVariable);
        }
    };
    let ValueFate::InEffect(mut shown) = fate else {
        evidence.ask(&bare, &asked);
        return Ok(Taken::Ignored);
    };
    let name = shown_as(evidence, name);
    if !may_exist(evidence, &name) {
        evidence.ask(&bare, &asked);
        return Ok(Taken::NoVariable);
    }
    if is_left_to_the_server(&name, &asked) {
        evidence.ask(&bare, &asked);
        return Ok(Taken::Yes);
    }
    if bare == "log_bin" {
        // Whatever it says is the name of a file, OFF and 0 too.
        "ON".clone_into(&mut shown);
    }
    change(evidence, &name, |evidence| {
        evidence.ask(&bare, &asked);
        evidence.variables.insert(name.clone(), shown);
    });
    side_effects(evidence, &name);
    Ok(Taken::Yes)
}

/// Effect of a switch prefix on an option.
fn switched(evidence: &ServerEvidence, name: &str, to: &str) -> Result<ValueFate, String> {
    let is_switch = |shown: &String| matches!(shown.as_str(), "ON" | "OFF");
    match (is_text(evidence, name), to) {
        (false, to) => value_fate(evidence, name, Some(to)),
        // A text that shows whether there is one.
        (true, to) if evidence.variables.get(name).is_some_and(is_switch) => {
            let shown = if to == "0" { "OFF" } else { "ON" };
            Ok(ValueFate::InEffect(shown.to_owned()))
        }
        (true, "1") => Ok(ValueFate::InEffect(String::new())),
        (true, to) => Ok(ValueFate::InEffect(to.to_owned())),
    }
}

/// The value after a prefix as `my_getopt` reads it: one result for 0, another for any other value or none.
fn unless_zero(value: Option<&str>, zero: &'static str, otherwise: &'static str) -> &'static str {
    if value == Some("0") { zero } else { otherwise }
}

/// The same for PostgreSQL and SQLite, whose settings have one name and no side effects.
fn apply_plain(
    evidence: &mut ServerEvidence,
    written: &str,
    value: Option<&str>,
) -> Result<Taken, String> {
    let value = value.unwrap_or_default();
    match option_fate(evidence.product, evidence.version, written) {
        OptionFate::Taken { name, .. } => {
            let fate = value_fate(evidence, &name, Some(value))?;
            evidence.ask(written, value);
            match fate {
                // It is computed from shared_buffers then.
                ValueFate::InEffect(shown) if name == "wal_buffers" && shown == "-1" => {}
                ValueFate::InEffect(shown) => put(evidence, &name, shown),
                ValueFate::Ignored => return Ok(Taken::Ignored),
            }
            Ok(Taken::Yes)
        }
        fate => {
            evidence.ask(written, value);
            Ok(match fate {
                OptionFate::Refused(_) => Taken::Refused,
                _ => Taken::NoVariable,
            })
        }
    }
}

/// The variable that shows what a setting of an option file is set to; `None` when there is none.
#[must_use]
pub fn variable_of(evidence: &ServerEvidence, written: &str) -> Option<String> {
    let bare = variable_name(written);
    let name = match option_fate(evidence.product, evidence.version, written) {
        _ if may_exist(evidence, &bare) => bare,
        OptionFate::Taken { name, form } if form != OptionForm::Bound => name,
        _ => return None,
    };
    let name = shown_as(evidence, name);
    may_exist(evidence, &name).then_some(name)
}

/// The variable of an option, which may have another name.
fn shown_as(evidence: &ServerEvidence, option: String) -> String {
    match other_name(&option) {
        Some(other) if !may_exist(evidence, &option) && may_exist(evidence, other) => {
            other.to_owned()
        }
        _ => option,
    }
}

fn may_exist(evidence: &ServerEvidence, variable: &str) -> bool {
    evidence.variables.contains_key(variable)
        || evidence.basis.undetermined.contains(variable)
        || evidence.basis.inferred.contains(variable)
}

/// True for an option that begins with the name of a plugin that the server is configured to load (`ha_rocksdb`). No
/// list of a server without it has the option.
fn is_of_loaded_plugin(evidence: &ServerEvidence, option: &str) -> bool {
    let plugin = option.split('_').next().unwrap_or(option);
    ["plugin_load", "plugin_load_add"].iter().any(|name| {
        let asked = evidence.asked.get(*name);
        asked.is_some_and(|files| files.to_ascii_lowercase().contains(plugin))
    })
}

/// True when the server takes this option, as far as is known.
#[must_use]
pub fn has_option(evidence: &ServerEvidence, name: &str) -> bool {
    match option_fate(evidence.product, evidence.version, name) {
        OptionFate::Taken { .. } => true,
        OptionFate::Unknown | OptionFate::ProbablyRefused(_) => {
            let name = variable_name(name);
            may_exist(evidence, &name) || table().is_unrecorded(&name)
        }
        OptionFate::Ignored | OptionFate::Refused(_) => false,
    }
}

/// True for a value by which a variable is left to the server, as if it were not set.
#[must_use]
pub fn is_left_to_the_server(name: &str, value: &str) -> bool {
    /// Variables that -1 and 0 leave to the server.
    const AT_0: &[&str] = &[
        "back_log",
        "innodb_buffer_pool_instances",
        "innodb_open_files",
        "open_files_limit",
        "table_definition_cache",
    ];
    /// Variables that only -1 leaves to the server.
    const BELOW_0: &[&str] = &["host_cache_size", "thread_cache_size"];
    let number = Value::read(value).number();
    number.is_some_and(|number| {
        AT_0.contains(&name) && (number == 0.0 || number == -1.0)
            || BELOW_0.contains(&name) && number == -1.0
    })
}

/// Sets a variable, and recomputes the defaults that follow from it.
fn put(evidence: &mut ServerEvidence, name: &str, value: String) {
    change(evidence, name, |evidence| {
        evidence.variables.insert(name.to_owned(), value);
    });
}

/// Changes a variable, and recomputes the defaults that follow from it. What was set keeps its value.
fn change(evidence: &mut ServerEvidence, name: &str, set: impl FnOnce(&mut ServerEvidence)) {
    let followers = following(evidence.product, evidence.version, name);
    let before: Vec<Option<String>> = followers.iter().map(|row| row.value_of(evidence)).collect();
    evidence.basis.inferred.remove(name);
    evidence.basis.undetermined.remove(name);
    set(evidence);
    for (row, before) in followers.into_iter().zip(before) {
        let asked = evidence.asked.get(row.variable);
        if asked.is_some_and(|asked| !is_left_to_the_server(row.variable, asked)) {
            continue;
        }
        let is_default = match (evidence.variables.get(row.variable), before) {
            (Some(shown), Some(default)) => Value::read(shown).is_same(&Value::read(&default)),
            (None, _) => evidence.basis.undetermined.contains(row.variable),
            (Some(_), None) => false,
        };
        let is_inferred = evidence.basis.inferred.contains(row.variable);
        match row.value_of(evidence) {
            Some(value) if is_default => {
                put(evidence, row.variable, value);
                if is_inferred {
                    evidence.basis.inferred.insert(row.variable.to_owned());
                }
            }
            None if is_default => {
                evidence.variables.remove(row.variable);
                evidence.basis.undetermined.insert(row.variable.to_owned());
            }
            _ => {}
        }
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

fn side_effects(evidence: &mut ServerEvidence, name: &str) {
    let switch =
        |evidence: &ServerEvidence, name: &str| Value::read(evidence.variables.get(name)?).switch();
    match name {
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
        "innodb_buffer_pool_size" | "innodb_buffer_pool_instances" | "innodb_dedicated_server" => {
            size_pool(evidence);
        }
        _ => {}
    }
}

/// The size of a pool is a multiple of this times the instances, bytes.
const POOL_CHUNK: f64 = 134_217_728.0;

fn size_pool(evidence: &mut ServerEvidence) {
    let rounds = is(evidence, "mysql 5.7..") || is(evidence, "mariadb 10.2..10.5");
    let Some(size) = evidence.number("innodb_buffer_pool_size") else {
        return;
    };
    if rounds {
        let instances = evidence
            .number("innodb_buffer_pool_instances")
            .unwrap_or(1.0)
            .max(1.0);
        let unit = POOL_CHUNK * instances;
        let rounded = (size / unit).ceil() * unit;
        if size >= unit {
            put(evidence, "innodb_buffer_pool_size", rounded.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, Machine, Product, Version};

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
    fn settings_of_a_plugin_are_shown_where_it_is_loaded() {
        let setting = ("rocksdb_flush_log_at_trx_commit", "2");
        let loaded = ("plugin_load_add", "ha_rocksdb");
        check("mariadb-10.11.19", &[loaded, setting], &[setting]);
        let mut without = server("mariadb-10.11.19");
        assert_eq!(
            predict(&mut without, setting.0, setting.1),
            Taken::NoVariable
        );
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
        // MySQL 8.0.33 and MariaDB 10.11 write a log that is called OFF.
        check("mysql-8.0.33", &[("log_bin", "OFF")], &[("log_bin", "ON")]);
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

    /// Answers of MySQL 8.0.33 and 9.7.4 on machines of 23.4 GiB and two processors; the others as documented.
    #[test]
    fn a_dedicated_server_is_sized_by_the_memory_of_its_machine() {
        let check = |version: &str,
                     memory: Option<u64>,
                     also: &[(&str, &str)],
                     expected: &[(&str, Option<u64>)]| {
            let machine = Machine {
                cpus: Some(2),
                memory_bytes: memory,
                files: None,
            };
            let version = Version::parse(version).unwrap();
            let mut server = super::super::expected("a", Product::MySql, version, machine).unwrap();
            for (name, value) in [&[("innodb_dedicated_server", "ON")], also].concat() {
                predict(&mut server, name, value);
            }
            for (variable, bytes) in expected {
                let shown = server
                    .variables
                    .get(*variable)
                    .map(|shown| shown.parse().unwrap());
                assert_eq!(shown, *bytes, "{version} {memory:?} {also:?} {variable}");
                assert_eq!(
                    shown.is_none(),
                    server.basis.undetermined.contains(*variable)
                );
            }
        };
        let (pool, redo) = ("innodb_buffer_pool_size", "innodb_redo_log_capacity");
        let memory = Some(25_178_000_000);
        check(
            "8.0.33",
            memory,
            &[],
            &[(pool, Some(18 << 30)), (redo, Some(14 << 30))],
        );
        let small = [("innodb_buffer_pool_size", "2G")];
        check(
            "8.0.33",
            memory,
            &small,
            &[(pool, Some(2 << 30)), (redo, Some(13 << 30))],
        );
        check(
            "8.0.33",
            Some(64 << 30),
            &[],
            &[(pool, Some(48 << 30)), (redo, Some(36 << 30))],
        );
        check(
            "8.0.33",
            Some(2 << 30),
            &[],
            &[(pool, Some(1 << 30)), (redo, Some(512 << 20))],
        );
        check("8.0.33", None, &[], &[(pool, None), (redo, None)]);
        check("9.7.4", memory, &[], &[(redo, Some(1 << 30))]);
        check("8.0.20", memory, &[], &[("innodb_log_file_size", None)]);
        let own = [("innodb_redo_log_capacity", "1G")];
        check("8.0.33", memory, &own, &[(redo, Some(1 << 30))]);
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
