//! Settings that belong to the lab, or contenders would share files, ports or fates.
//!
//! Asked when an experiment is read, with the place in the file at hand, and again before a
//! configuration is written.

use super::settings::normal_name;

const OWN_PLACE: &str = "dbduel gives every contender a private place of its own";
const OWN_LOGIN: &str = "dbduel must be able to start the server and to log in";
const HIDES: &str = "with this prefix a server ignores what it does not know, and a contest must not rest on an ignored \
                     setting";
const OUTSIDE: &str = "a path outside of the sandbox would be shared by contenders and missing in snapshots; put the \
                       whole sandbox on that device with `--home`";

/// Settings that name a place, a port or an identity of one instance.
const PLACES: &[&str] = &[
    "admin_port",
    "basedir",
    "bind_address",
    "character_sets_dir",
    "daemonize",
    "datadir",
    "lc_messages_dir",
    "log_error",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "port",
    "socket",
    "tmpdir",
];
/// Settings that decide who may come in.
const LOGINS: &[&str] = &["init_file", "skip_grant_tables", "skip_networking", "user"];
/// Settings whose value may be a path.
const FILES: &[&str] = &[
    "aria_log_dir_path",
    "general_log_file",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "log_bin",
    "log_bin_index",
    "relay_log",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
    "slow_query_log_file",
];

/// Why a setting belongs to the lab alone; `None` when a contender may have it.
#[must_use]
pub fn reserved(name: &str, value: &str) -> Option<&'static str> {
    let name = normal_name(name);
    if name.starts_with("loose_") || name.starts_with("maximum_") {
        return Some(HIDES);
    }
    let is_in = |list: &[&str]| list.contains(&name.as_str());
    if is_in(PLACES) {
        Some(OWN_PLACE)
    } else if is_in(LOGINS) {
        Some(OWN_LOGIN)
    } else if is_in(FILES) && value.contains('/') {
        Some(OUTSIDE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contenders_would_share_is_reserved() {
        assert_eq!(reserved("DataDir", "/x"), Some(OWN_PLACE));
        assert_eq!(reserved("skip-grant-tables", ""), Some(OWN_LOGIN));
        assert_eq!(reserved("loose-innodb_x", "1"), Some(HIDES));
        assert_eq!(
            reserved("innodb_log_group_home_dir", "/mnt/fast"),
            Some(OUTSIDE)
        );
        assert_eq!(reserved("log-bin", "../elsewhere"), Some(OUTSIDE));
    }

    #[test]
    fn what_is_a_contender_s_own_is_not() {
        for (name, value) in [
            ("log_bin", "ON"),
            ("log_bin", "binlog"),
            ("innodb_buffer_pool_size", "1G"),
            ("port_range", "1"),
        ] {
            assert_eq!(reserved(name, value), None, "{name}");
        }
    }
}
