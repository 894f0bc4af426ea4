//! What a server would show if a setting were in its option file.
//!
//! Starts from defaults and applies what is known of clamping, rounding and side effects. A prediction is
//! weaker than a reading, and evidence made of it says so.

use super::defaults::following;
use super::evidence::ServerEvidence;
use super::options::{OptionFate, OptionForm, option_fate};
use super::server::Servers;
use super::table::table;
use super::takes::check_value;
use super::value::{Value, option_value, variable_name};

/// What a server does with a setting.
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

/// Applies a setting of an option file, unless the server does not take it.
///
/// # Errors
/// Why not, a sentence without its end.
pub fn set_option(evidence: &mut ServerEvidence, name: &str, value: &str) -> Result<(), String> {
    let checked = match option_fate(evidence.product, evidence.version, name) {
        OptionFate::Refused(why) => return Err(format!("`{}` {why}", name.trim())),
        OptionFate::Taken {
            name,
            form: OptionForm::Plain,
        } => check_value(evidence, &name, value),
        _ => Ok(()),
    };
    checked?;
    predict(evidence, name, value);
    Ok(())
}

/// Applies a setting to predicted variables, and keeps that it was asked for.
pub fn predict(evidence: &mut ServerEvidence, written: &str, value: &str) -> Taken {
    if !evidence.product.has_innodb() {
        return predict_plain(evidence, written, value);
    }
    let mut name = variable_name(written);
    let mut value = option_value(value.trim().trim_matches(['"', '\'']));
    evidence.ask(&name, &value);
    let is_log_by_name = name == "log_bin";
    if !may_exist(evidence, &name) {
        let (whole, form) = match option_fate(evidence.product, evidence.version, written) {
            OptionFate::Taken { name, form } => (name, form),
            OptionFate::Ignored => return Taken::Ignored,
            OptionFate::Refused(_) => return Taken::Refused,
            OptionFate::Unknown if is_of_loaded_plugin(evidence, &name) => {
                put(evidence, &name, value);
                return Taken::Yes;
            }
            OptionFate::Unknown => return Taken::NoVariable,
        };
        let is_off = Value::read(&value).switch() == Some(false);
        match form {
            OptionForm::Plain => {}
            OptionForm::On => value = if is_off { "OFF" } else { "ON" }.to_owned(),
            OptionForm::Off => value = if is_off { "ON" } else { "OFF" }.to_owned(),
            OptionForm::Bound => return Taken::NoVariable,
        }
        name = whole;
    }
    if name == "transaction_isolation" && !evidence.variables.contains_key("transaction_isolation")
    {
        "tx_isolation".clone_into(&mut name);
    }
    if !may_exist(evidence, &name) {
        return Taken::NoVariable;
    }
    if is_left_to_the_server(&name, &value) {
        return Taken::Yes;
    }
    // An option without a value switches on; a file name after log_bin too.
    let current = evidence.variables.get(&name);
    let is_switch = current.is_some_and(|current| matches!(current.as_str(), "ON" | "OFF"));
    if is_log_by_name {
        // Whatever it says is the name of a file, OFF and 0 too.
        "ON".clone_into(&mut value);
    } else if is_switch {
        match Value::read(&value).switch() {
            Some(on) => value = if on { "ON" } else { "OFF" }.to_owned(),
            None if value.is_empty() => "ON".clone_into(&mut value),
            None => {}
        }
    }
    put(evidence, &name, value);
    side_effects(evidence, &name);
    Taken::Yes
}

/// The same for PostgreSQL and SQLite, whose settings have one name and no side effects.
fn predict_plain(evidence: &mut ServerEvidence, written: &str, value: &str) -> Taken {
    evidence.ask(written, value);
    match option_fate(evidence.product, evidence.version, written) {
        OptionFate::Taken { name, .. } => {
            let value = evidence.asked.get(&name).cloned().unwrap_or_default();
            put(evidence, &name, value);
            Taken::Yes
        }
        OptionFate::Refused(_) => Taken::Refused,
        OptionFate::Ignored | OptionFate::Unknown => Taken::NoVariable,
    }
}

fn may_exist(evidence: &ServerEvidence, variable: &str) -> bool {
    evidence.variables.contains_key(variable)
        || evidence.basis.undetermined.contains(variable)
        || evidence.basis.inferred.contains(variable)
}

/// True for an option that begins with the name of a plugin that the server is told to load (`ha_rocksdb`). No list of a
/// server without it has the option.
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
        OptionFate::Unknown => {
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

/// Sets a variable, and recomputes the defaults that follow from it. What was set keeps its value.
fn put(evidence: &mut ServerEvidence, name: &str, value: String) {
    let followers = following(evidence.product, evidence.version, name);
    let before: Vec<Option<String>> = followers.iter().map(|row| row.value_of(evidence)).collect();
    evidence.basis.inferred.remove(name);
    evidence.basis.undetermined.remove(name);
    evidence.variables.insert(name.to_owned(), value);
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
        "innodb_buffer_pool_size" | "innodb_buffer_pool_instances" => size_pool(evidence),
        _ => {}
    }
}

/// What the size of a pool is a multiple of, times the instances, bytes.
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
            set(evidence, "innodb_buffer_pool_size", &rounded.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Defaults;

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
