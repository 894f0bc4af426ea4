//! The configuration file of a PostgreSQL server, and the settings that belong to the lab.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::super::super::reserved::is_path;
use super::super::super::sandbox::USER;
use super::{Places, ReadBack, Setting, Version};

const OWN_PLACE: &str = "dbduel gives every contender a private place of its own";
const OWN_LOGIN: &str = "dbduel must be able to start the server and to log in";
const OUTSIDE: &str = "it refers to files or programs outside of the sandbox, which contenders would share and snapshots would miss";
const FILE: &str =
    "settings from an included file would be neither read back nor recorded; write them here";

/// Settings that belong to the lab, with the reason.
const RESERVED: &[(&[&str], &str)] = &[
    (
        &[
            "bonjour",
            "config_file",
            "data_directory",
            "external_pid_file",
            "hba_file",
            "ident_file",
            "listen_addresses",
            "log_destination",
            "log_directory",
            "log_filename",
            "logging_collector",
            "port",
            "stats_temp_directory",
            "unix_socket_directories",
            "unix_socket_group",
            "unix_socket_permissions",
        ],
        OWN_PLACE,
    ),
    (&["krb_server_keyfile", "restart_after_crash"], OWN_LOGIN),
    (
        &[
            "archive_cleanup_command",
            "archive_command",
            "dynamic_library_path",
            "extension_control_path",
            "primary_conninfo",
            "recovery_end_command",
            "restore_command",
            "ssl_passphrase_command",
        ],
        OUTSIDE,
    ),
    (&["include", "include_dir", "include_if_exists"], FILE),
];

/// Timers that continue while a server is frozen: the setting with its default and its largest value in all versions,
/// in its own unit (seconds, seconds, milliseconds, milliseconds).
const TIMERS: [(&str, u32, u32); 4] = [
    ("checkpoint_timeout", 300, 86_400),
    ("autovacuum_naptime", 60, 2_147_483),
    ("bgwriter_delay", 200, 10_000),
    ("wal_writer_delay", 200, 10_000),
];

/// The timers of a server that is awake for 1/`contenders` of the time: that multiple of their defaults. The work that
/// they start runs only while the server is awake, so it keeps its pace in the server's own time.
pub fn paced(contenders: u32) -> Vec<(&'static str, u32)> {
    let each = TIMERS.iter().map(|&(name, default, largest)| {
        let stretched = default.saturating_mul(contenders.max(1));
        (name, stretched.min(largest))
    });
    each.collect()
}

/// Why a setting belongs to the lab alone; `None` when a contender may have it.
pub fn reserved(name: &str, value: &str) -> Option<String> {
    let name = super::super::super::settings::normal_name(name);
    let mut lists = RESERVED.iter();
    let list = lists.find(|(names, _)| names.contains(&name.as_str()));
    // Of an extension, such as `plperl.on_init`: code that a language runs when a session begins.
    let is_code = name
        .split_once('.')
        .is_some_and(|(_, own)| own.starts_with("on_"));
    let why = list.map(|(_, why)| *why).or(is_code.then_some(OUTSIDE));
    let why = why.or_else(|| is_path(&name, value).then_some(OUTSIDE));
    why.map(str::to_owned)
}

/// The whole file: the choices of `initdb` for this machine first, the contender's settings last. Those named in
/// `at_init` are in the data directory already and would be refused here.
pub fn render(places: &Places<'_>, settings: &[Setting], at_init: &[&str]) -> String {
    let mut text = String::from(
        "# Written by dbduel. The lab's own lines first, then the contender's settings.\n",
    );
    let path = |path: &Path| path.display().to_string();
    let socket_folder = places.socket.parent().map(path).unwrap_or_default();
    // Absent while settings are checked.
    let chosen = path(&places.data.join("postgresql.conf"));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "include_if_exists {}", quoted(&chosen));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {}", quoted(value));
    };
    let (addresses, port) = listening(places);
    line("listen_addresses", &addresses);
    line("port", &port);
    line("unix_socket_directories", &socket_folder);
    line("unix_socket_permissions", "0700");
    line("external_pid_file", &path(places.pid_file));
    line("log_destination", "stderr");
    line("logging_collector", "off");
    // Otherwise the server goes on after a crash of one process, with all sessions lost and nothing said to its parent.
    line("restart_after_crash", "off");
    for setting in settings {
        let name = setting.normal_name();
        if !at_init.contains(&name.as_str()) {
            line(&name, setting.value.as_deref().unwrap_or_default());
        }
    }
    text
}

/// Addresses and port; the port is part of the socket's name too.
fn listening(places: &Places<'_>) -> (String, String) {
    match places.listen {
        Some(at) => (at.ip().to_string(), at.port().to_string()),
        None => (String::new(), "5432".to_owned()),
    }
}

/// Lets the lab's account log in from other machines with its password.
///
/// # Errors
/// The file cannot be read or written.
pub fn admit_clients(version: Version, data: &Path) -> Result<()> {
    let method = password_method(version);
    let lines = format!(
        "# Written by dbduel, for load from other machines.\nhost all {USER} 0.0.0.0/0 {method}\nhost all {USER} ::/0 {method}\n"
    );
    let path = data.join("pg_hba.conf");
    let failed = || format!("could not change `{}`", path.display());
    let mut text = fs::read_to_string(&path).with_context(failed)?;
    if !text.contains(&lines) {
        text.push_str(&lines);
        fs::write(&path, text).with_context(failed)?;
    }
    Ok(())
}

/// The password authentication method.
pub fn password_method(version: Version) -> &'static str {
    match version.at_least(10, 0) {
        true => "scram-sha-256",
        false => "md5",
    }
}

/// How to verify that a server runs in its sandbox.
pub fn read_back(places: &Places<'_>) -> ReadBack {
    let folder = places.socket.parent().unwrap_or(places.socket);
    let (addresses, port) = listening(places);
    ReadBack {
        settings: "SELECT name, setting FROM pg_settings WHERE name IN ('data_directory', 'hba_file', \
                   'listen_addresses', 'port', 'restart_after_crash', 'unix_socket_directories')",
        values: vec![
            ("listen_addresses", addresses),
            ("port", port),
            ("restart_after_crash", "off".to_owned()),
        ],
        values_if_present: Vec::new(),
        paths: vec![
            ("data_directory", places.data.to_path_buf()),
            ("hba_file", places.data.join("pg_hba.conf")),
            ("unix_socket_directories", folder.to_path_buf()),
        ],
        account: "SELECT current_user",
        expected_account: USER.to_owned(),
    }
}

/// A value in the syntax of the file: always quoted, which every type of setting accepts.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contenders_would_share_is_reserved() {
        for (name, value) in [
            ("data_directory", "/x"),
            ("Listen-Addresses", "*"),
            ("include_dir", "conf.d"),
            ("archive_command", "cp %p /backup"),
            ("shared_preload_libraries", "/tmp/x.so"),
            ("restart_after_crash", "on"),
            ("plperl.on_init", "use evil"),
        ] {
            assert!(reserved(name, value).is_some(), "{name}");
        }
        for (name, value) in [
            ("shared_buffers", "1GB"),
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.max", "100"),
            ("search_path", "a/b"),
        ] {
            assert_eq!(reserved(name, value), None, "{name}");
        }
    }

    #[test]
    fn a_contender_s_settings_come_last_and_those_of_initdb_not_at_all() {
        let places = Places {
            data: Path::new("/s/data"),
            tmp: Path::new("/s/tmp"),
            socket: Path::new("/s/.s.PGSQL.5432"),
            listen: None,
            pid_file: Path::new("/s/pid"),
            log: None,
        };
        let settings = [
            Setting::new("Shared-Buffers", Some("1GB")),
            Setting::new("data_checksums", Some("on")),
            Setting::new("search_path", Some("it's, c\\d")),
        ];
        let text = render(&places, &settings, &["data_checksums"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "include_if_exists '/s/data/postgresql.conf'");
        assert!(lines.contains(&"unix_socket_directories = '/s'"));
        assert_eq!(
            lines[lines.len() - 2..],
            ["shared_buffers = '1GB'", "search_path = 'it''s, c\\\\d'"]
        );
    }

    #[test]
    fn periodic_work_is_as_frequent_per_second_awake_as_alone() {
        let of = |contenders: u32, name: &str| {
            let all = paced(contenders);
            all.into_iter().find(|(own, _)| *own == name).unwrap().1
        };
        assert_eq!(of(1, "autovacuum_naptime"), 60);
        assert_eq!(of(2, "autovacuum_naptime"), 120);
        assert_eq!(of(8, "checkpoint_timeout"), 2400);
        assert_eq!(of(100, "bgwriter_delay"), 10_000);
        assert_eq!(of(u32::MAX, "checkpoint_timeout"), 86_400);
    }
}
