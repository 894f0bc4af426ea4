//! Server settings: differences between contenders in effective settings.
//!
//! Compares texts and sizes, not what a setting means for performance or durability.

use std::collections::BTreeSet;

use dbduel_audit::variable_name;
use dbduel_record::Record;

use super::summary::SettingDifference;

/// Variables that name an instance, its files or its moment; they differ between any two servers.
const OF_THE_INSTANCE: &[&str] = &[
    "basedir",
    "bind_address",
    "character_sets_dir",
    "datadir",
    "general_log_file",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_purged",
    "hostname",
    "identity",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "innodb_tmpdir",
    "insert_id",
    "last_insert_id",
    "lc_messages_dir",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "port",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "relay_log_basename",
    "relay_log_index",
    "relay_log_info_file",
    "report_host",
    "report_port",
    "server_id",
    "server_uid",
    "server_uuid",
    "slave_load_tmpdir",
    "replica_load_tmpdir",
    "slow_query_log_file",
    "socket",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "timestamp",
    "tmpdir",
    "secure_file_priv",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
];

/// Variables that say which build it is; the report shows them with the contender.
const OF_THE_BUILD: &[&str] = &[
    "innodb_version",
    "version",
    "version_comment",
    "version_compile_machine",
    "version_compile_os",
    "version_compile_zlib",
    "version_malloc_library",
    "version_source_revision",
    "version_ssl_library",
    "protocol_version",
    "server_version",
    "server_version_num",
    "sqlite_version",
    "license",
    "immediate_server_version",
    "original_server_version",
];

/// True when two servers that show these values are set alike.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    let (one, other) = (normalised(one), normalised(other));
    one == other || matches!((number(&one), number(&other)), (Some(a), Some(b)) if a == b)
}

fn normalised(value: &str) -> String {
    let value = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    match value.as_str() {
        "on" | "true" | "yes" => "1".to_owned(),
        "off" | "false" | "no" | "" => "0".to_owned(),
        _ => value,
    }
}

/// A number with the suffixes of option files: `16k`, `1g`.
fn number(value: &str) -> Option<f64> {
    let (digits, factor) = match value.chars().last()? {
        'k' => (&value[..value.len() - 1], 1024_f64),
        'm' => (&value[..value.len() - 1], 1024_f64.powi(2)),
        'g' => (&value[..value.len() - 1], 1024_f64.powi(3)),
        't' => (&value[..value.len() - 1], 1024_f64.powi(4)),
        _ => (value, 1.0),
    };
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * factor)
}

/// Effective variables that are not the same on all contenders, those asked for first.
#[must_use]
pub fn differences(record: &Record) -> Vec<SettingDifference> {
    // A contender whose variables were not read says nothing about differences.
    let read: Vec<usize> = (0..record.contenders.len())
        .filter(|&contender| !record.contenders[contender].variables_before.is_empty())
        .collect();
    if read.len() < 2 {
        return Vec::new();
    }
    let asked: BTreeSet<String> = record
        .plan
        .contenders
        .iter()
        .flat_map(|contender| &contender.settings)
        .map(|setting| variable_name(&setting.name))
        .collect();
    let names: BTreeSet<&String> = read
        .iter()
        .flat_map(|&contender| record.contenders[contender].variables_before.keys())
        .collect();
    let mut differences: Vec<SettingDifference> = names
        .into_iter()
        .filter(|name| {
            !OF_THE_INSTANCE.contains(&name.as_str()) && !OF_THE_BUILD.contains(&name.as_str())
        })
        .filter_map(|name| {
            let values: Vec<Option<String>> = record
                .contenders
                .iter()
                .map(|files| files.variables_before.get(name).cloned())
                .collect();
            let first = &values[read[0]];
            let is_same = |value: &Option<String>| match (first, value) {
                (Some(one), Some(other)) => is_same_value(one, other),
                (None, None) => true,
                _ => false,
            };
            if values.iter().flatten().all(|value| value.starts_with('/')) {
                // A path inside a sandbox is of the instance, whatever the variable is called.
                return None;
            }
            let is_asked_for = asked.contains(name);
            let differs = !read.iter().all(|&contender| is_same(&values[contender]));
            differs.then(|| SettingDifference {
                name: name.clone(),
                is_asked_for,
                values,
            })
        })
        .collect();
    // Stable, so within each group the names stay sorted.
    differences.sort_by_key(|difference| {
        let is_everywhere = read
            .iter()
            .all(|&contender| difference.values[contender].is_some());
        (!difference.is_asked_for, !is_everywhere)
    });
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn paths_of_a_sandbox_are_no_difference() {
        let mut record = Scenario {
            blocks: 0,
            ..Scenario::duel()
        }
        .record();
        for (files, path) in record
            .contenders
            .iter_mut()
            .zip(["/run/one/aria", "/run/two/aria"])
        {
            files
                .variables_before
                .insert("aria_log_dir_path".to_owned(), path.to_owned());
        }
        let differences = differences(&record);
        assert!(
            differences
                .iter()
                .all(|difference| difference.name != "aria_log_dir_path")
        );
        assert_eq!(differences.len(), 2);
    }

    #[test]
    fn values_are_compared_by_meaning() {
        for (asked, effective) in [
            ("1G", "1073741824"),
            ("ON", "1"),
            ("off", "OFF"),
            ("O_DIRECT", "o_direct"),
            ("16", "16"),
            ("0.5", "0.500000"),
        ] {
            assert!(is_same_value(asked, effective), "{asked} {effective}");
        }
        for (asked, effective) in [("1G", "1073741825"), ("ON", "OFF"), ("2", "1"), ("g", "k")] {
            assert!(!is_same_value(asked, effective), "{asked} {effective}");
        }
    }
}
