//! Settings that belong to the lab, or contenders would share files, ports or processes.
//!
//! Servers take an option by any unambiguous beginning of its name, behind prefixes such as `skip-` and `enable-`, in
//! any number and order, and behind a name with a dot. All these forms are resolved here as servers resolve them.
//!
//! Asked when an experiment is read, with the place in the file at hand, and again before a
//! configuration is written.

use super::settings::normal_name;
use super::variables::is_variable;

const OWN_PLACE: &str = "dbduel gives every contender a private place of its own";
const OWN_LOGIN: &str = "dbduel must be able to start the server and to log in";
const NO_SERVICE: &str = "with it the program does not run as a server";
const HIDES: &str = "with this prefix a server ignores what it does not know, and a contest must not rest on an ignored \
                     setting";
const OUTSIDE: &str = "a path outside of the sandbox would be shared by contenders and missing in snapshots; put the \
                       whole sandbox on that device with `--home`";

/// Settings that name a place, a port or an identity of one instance.
const PLACES: &[&str] = &[
    "admin_address",
    "admin_port",
    "basedir",
    "bind_address",
    "character_sets_dir",
    "chroot",
    "daemonize",
    "datadir",
    "extra_port",
    "language",
    "lc_messages_dir",
    "log_basename",
    "log_error",
    "mysqlx",
    "mysqlx_bind_address",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "port",
    "socket",
    "tmpdir",
];
/// Settings that decide who may log in, and how.
const LOGINS: &[&str] = &["init_file", "skip_grant_tables", "skip_networking", "user"];
/// Options with which a server does something else than serve.
const MODES: &[&str] = &[
    "bootstrap",
    "help",
    "initialize",
    "initialize_insecure",
    "validate_config",
    "version",
];
/// Settings whose value may be a path.
const FILES: &[&str] = &[
    "aria_log_dir_path",
    "general_log_file",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_redo_log_archive_dirs",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "log",
    "log_bin",
    "log_bin_index",
    "log_slow_queries",
    "log_slow_query_file",
    "log_tc",
    "master_info_file",
    "relay_log",
    "relay_log_index",
    "relay_log_info_file",
    "replica_load_tmpdir",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
    "slave_load_tmpdir",
    "slow_query_log_file",
];
/// What servers take before the name of an option.
const PREFIXES: &[&str] = &[
    "skip_", "disable_", "enable_", "maximum_", "loose_", "autoset_",
];

/// Why a setting belongs to the lab alone, under whatever form of its name; `None` when a contender may have it.
#[must_use]
pub fn reserved(name: &str, value: &str) -> Option<String> {
    let name = normal_name(name);
    let lists = [
        (PLACES, OWN_PLACE),
        (LOGINS, OWN_LOGIN),
        (MODES, NO_SERVICE),
        (FILES, OUTSIDE),
    ];
    let forms = forms(&name);
    for (options, why) in lists {
        if options == FILES && !value.contains('/') {
            continue;
        }
        for &option in options {
            if name == option {
                return Some(why.to_owned());
            }
            // The prefix may be part of the option's own name, as in `skip_networking`.
            let own_forms = self::forms(option);
            let is_form = own_forms
                .iter()
                .any(|own| forms.iter().any(|form| is_taken_for(form, own)));
            if is_form {
                return Some(format!("servers take it for `{option}`; {why}"));
            }
        }
    }
    let hides = |form: &&str| form.starts_with("loose_") || form.starts_with("maximum_");
    forms.iter().any(hides).then(|| HIDES.to_owned())
}

/// A name, and what is left of it without the prefixes and dots that servers skip.
fn forms(name: &str) -> Vec<&str> {
    let mut forms = vec![name];
    let mut rest = name;
    while let Some(shorter) = PREFIXES
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))
        .or_else(|| rest.split_once('.').map(|(_, after)| after))
    {
        rest = shorter;
        forms.push(rest);
    }
    forms
}

/// Whether a server may take `form` for `option`: it is its name or begins it, and no variable is called so.
fn is_taken_for(form: &str, option: &str) -> bool {
    form == option || (!form.is_empty() && option.starts_with(form) && !is_variable(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, why: &str) {
        let said = reserved(name, value);
        assert!(
            said.as_ref().is_some_and(|said| said.contains(why)),
            "{name}: {said:?}"
        );
    }

    #[test]
    fn what_contenders_would_share_is_reserved() {
        check("DataDir", "/x", OWN_PLACE);
        check("skip-grant-tables", "", OWN_LOGIN);
        check("loose-innodb_x", "1", HIDES);
        check("help", "", NO_SERVICE);
        check("innodb_log_group_home_dir", "/mnt/fast", OUTSIDE);
        check("log-bin", "../elsewhere", OUTSIDE);
    }

    #[test]
    fn every_form_that_servers_take_for_a_reserved_setting_is_reserved() {
        for (name, option) in [
            ("bind-addres", "bind_address"),
            ("datadi", "datadir"),
            ("Init-Fil", "init_file"),
            ("skip-grant", "skip_grant_tables"),
            ("enable-skip-grant-tables", "skip_grant_tables"),
            ("disable_skip-networking", "skip_networking"),
            ("enable-networking", "skip_networking"),
            ("skip-enable-skip-net", "skip_networking"),
            ("loose-bind_address", "bind_address"),
            ("Loose-Skip-Bind-Addr", "bind_address"),
            ("maximum-port", "port"),
            ("autoset-datadir", "datadir"),
            ("x.datadir", "datadir"),
            ("loose-x.skip_datadi", "datadir"),
        ] {
            check(name, "/x", &format!("servers take it for `{option}`"));
        }
    }

    #[test]
    fn what_is_a_contender_s_own_is_not() {
        for (name, value) in [
            ("log_bin", "ON"),
            ("log_bin", "binlog"),
            ("skip-log-bin", ""),
            ("skip-name-resolve", ""),
            ("lc_messages", "de_DE"),
            ("hot_cache.key_buffer_size", "1M"),
            ("innodb_buffer_pool_size", "1G"),
            ("init_connect", "SELECT 1/2"),
            ("port_range", "1"),
        ] {
            assert_eq!(reserved(name, value), None, "{name}");
        }
    }
}
