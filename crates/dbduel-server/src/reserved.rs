//! Settings that belong to the lab; otherwise contenders would share files, ports or processes.
//!
//! Servers accept an option by any unambiguous prefix of its name, after prefixes such as `skip-` and `enable-` in any
//! number and order, and after a name with a dot. All these forms are resolved here as servers resolve them.
//!
//! Checked when an experiment is read, where the place in the file is known, and again before a configuration is
//! written.

use super::settings::normal_name;
use super::variables::is_variable;

const OWN_PLACE: &str = "dbduel gives every contender a private place of its own";
const OWN_LOGIN: &str = "dbduel must be able to start the server and to log in";
const NO_SERVICE: &str = "with this option the program does not run as a server";
const HIDES: &str = "with this prefix a server ignores unknown settings, and a contest must not depend on an ignored \
                     setting";
const OUTSIDE: &str = "contenders would share a path outside of the sandbox, and snapshots would miss it; put the \
                       whole sandbox on that device with `--home`";

/// Settings that define a path, a port or an identity of one instance.
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
/// Settings that control who may log in, and how.
const LOGINS: &[&str] = &["init_file", "skip_grant_tables", "skip_networking", "user"];
/// Options with which the program does not serve.
const MODES: &[&str] = &[
    "bootstrap",
    "help",
    "initialize",
    "initialize_insecure",
    "validate_config",
    "version",
];
/// Settings whose value may contain a slash without naming a file: statements, formats, time zones, object names. For
/// all others a value with a slash counts as a path, so that an unknown variable cannot name one.
const TEXTS: &[&str] = &[
    "application_name",
    "binlog_do_db",
    "binlog_ignore_db",
    "cluster_name",
    "date_format",
    "datestyle",
    "datetime_format",
    "default_time_zone",
    "ft_boolean_syntax",
    "init_connect",
    "init_replica",
    "init_slave",
    "innodb_ft_server_stopword_table",
    "innodb_ft_user_stopword_table",
    "log_line_prefix",
    "log_timezone",
    "mandatory_roles",
    "performance_schema_instrument",
    "replicate_do_db",
    "replicate_do_table",
    "replicate_ignore_db",
    "replicate_ignore_table",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
    "search_path",
    "synchronous_standby_names",
    "time_format",
    "timezone",
    "version_suffix",
];
/// Prefixes that servers accept before an option's name.
const PREFIXES: &[&str] = &[
    "skip_", "disable_", "enable_", "maximum_", "loose_", "autoset_",
];

/// Why a setting belongs to the lab alone, in any form of its name; `None` when a contender may set it.
#[must_use]
pub fn reserved(name: &str, value: &str) -> Option<String> {
    let name = normal_name(name);
    let lists = [
        (PLACES, OWN_PLACE),
        (LOGINS, OWN_LOGIN),
        (MODES, NO_SERVICE),
    ];
    let forms = forms(&name);
    for (options, why) in lists {
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
                return Some(format!("servers read it as `{option}`; {why}"));
            }
        }
    }
    let hides = |form: &&str| form.starts_with("loose_") || form.starts_with("maximum_");
    if forms.iter().any(hides) {
        return Some(HIDES.to_owned());
    }
    is_path(&name, value).then(|| OUTSIDE.to_owned())
}

/// True when the value of a setting, by its [`normal_name`], may be a path that leaves the server's folder.
pub(super) fn is_path(name: &str, value: &str) -> bool {
    !TEXTS.contains(&name) && leaves_folder(value)
}

/// True when a value may name a file outside of the server's working directory. A relative name without a slash stays
/// in its data directory, a library without one comes from the server's own; a tilde stands for a home directory.
#[must_use]
pub fn leaves_folder(value: &str) -> bool {
    let mut parts = value.split([';', ',', ':']).map(str::trim);
    value.contains('/') || parts.any(|part| part.starts_with('~') || part == "..")
}

/// A name, and its remainders without the prefixes and dots that servers skip.
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

/// True when a server may read `form` as `option`: it is its name or a prefix of it, and no variable has that name.
fn is_taken_for(form: &str, option: &str) -> bool {
    form == option || (!form.is_empty() && option.starts_with(form) && !is_variable(form))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
        check("log-bin", "..", OUTSIDE);
        check("innodb_tmpdir", "~root", OUTSIDE);
        check("innodb_data_file_path", "a:1M;~/b:1M", OUTSIDE);
    }

    /// Every option and setting of every recorded server, and drawn names.
    #[test]
    fn no_setting_names_a_path_outside_of_the_sandbox_unless_it_is_a_text() {
        let names: BTreeSet<String> = dbduel_audit::recorded_names().map(normal_name).collect();
        assert!(names.len() > 1400, "{}", names.len());
        let taken = names
            .iter()
            .filter(|name| reserved(name, "/etc/elsewhere").is_none());
        let taken: Vec<&str> = taken.map(String::as_str).collect();
        let texts: Vec<&str> = TEXTS
            .iter()
            .copied()
            .filter(|text| names.contains(*text))
            .collect();
        assert_eq!(taken, texts);
        for name in [
            "server_audit_file_path",
            "wsrep_provider",
            "ssl_ca",
            "file_key_management_filename",
            "plugin_load_add",
            "general_log_file",
            "jit_provider",
            "rocksdb_a_new_path",
        ] {
            check(name, "/etc/elsewhere", OUTSIDE);
        }
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
            check(name, "/x", &format!("servers read it as `{option}`"));
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
            ("default-time-zone", "Europe/Berlin"),
            ("log_line_prefix", "%t/%p "),
            ("performance-schema-instrument", "wait/%=OFF"),
            ("innodb_ft_server_stopword_table", "test/stop"),
            ("synchronous_standby_names", "ANY 1 (\"a/b\")"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend"),
            ("plugin_load_add", "server_audit"),
            ("server_audit_file_path", "audit.log"),
            ("port_range", "1"),
        ] {
            assert_eq!(reserved(name, value), None, "{name}");
        }
    }
}
