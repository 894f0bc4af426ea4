//! The option file of a server of MySQL or MariaDB, and the settings that each of them needs.

use std::fmt::Write;
use std::path::Path;

use super::super::sandbox::USER;
use super::{Build, Places, ReadBack, Setting};

/// How to verify that a server runs in its sandbox.
pub fn read_back(places: &Places<'_>) -> ReadBack {
    let mut values = vec![("init_file", String::new())];
    match places.listen {
        None => values.push(("skip_networking", "ON".to_owned())),
        Some(at) => {
            values.push(("skip_networking", "OFF".to_owned()));
            values.push(("port", at.port().to_string()));
        }
    }
    ReadBack {
        settings: "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                   ('bind_address', 'datadir', 'init_file', 'port', 'skip_networking', 'socket', 'tmpdir')",
        values,
        // Before 5.6 it is no variable.
        values_if_present: vec![("bind_address", bind_address(places))],
        paths: vec![
            ("datadir", places.data.to_path_buf()),
            ("socket", places.socket.to_path_buf()),
            ("tmpdir", places.tmp.to_path_buf()),
        ],
        // Where the tables of accounts are skipped, every login is accepted, as another account.
        account: "SELECT CURRENT_USER()",
        expected_account: format!("{USER}@localhost"),
    }
}

/// The only address of this machine that may connect.
fn bind_address(places: &Places<'_>) -> String {
    let address = places.listen.map(|at| at.ip().to_string());
    address.unwrap_or_else(|| "127.0.0.1".to_owned())
}

/// Settings that a contender needs for this many connections unless it sets them itself: room for its connections, and
/// for their prepared statements.
pub fn needed_settings(connections: u32) -> Vec<(&'static str, u32)> {
    vec![
        ("max_connections", connections),
        ("max_prepared_stmt_count", 1_000_000),
    ]
}

/// The whole file.
pub fn render(
    build: &Build,
    lab_lines: &[&str],
    places: &Places<'_>,
    settings: &[Setting],
) -> String {
    let mut text = String::from(
        "# Written by dbduel. The lab's own lines first, then the contender's settings.\n[mysqld]\n",
    );
    let mut line = |name: &str, value: Option<&str>| {
        // Writing to a string cannot fail.
        let _ = match value {
            Some(value) => writeln!(text, "{name}={}", quote(value)),
            None => writeln!(text, "{name}"),
        };
    };
    let path = |path: &Path| path.display().to_string();
    line("basedir", Some(&path(&build.basedir)));
    line("datadir", Some(&path(places.data)));
    line("tmpdir", Some(&path(places.tmp)));
    line("socket", Some(&path(places.socket)));
    line("pid-file", Some(&path(places.pid_file)));
    match places.listen {
        // The load comes through the socket. Should a later line turn this off, only this machine gets in.
        None => line("skip-networking", None),
        Some(at) => line("port", Some(&at.port().to_string())),
    }
    line("bind-address", Some(&bind_address(places)));
    if let Some(log) = places.log {
        line("log-error", Some(&path(log)));
    }
    line("lc-messages-dir", Some(&path(&build.share)));
    line(
        "character-sets-dir",
        Some(&path(&build.share.join("charsets"))),
    );
    if let Some(plugins) = &build.plugins {
        line("plugin-dir", Some(&path(plugins)));
    }
    if nix::unistd::geteuid().is_root() {
        // Otherwise refused: the server wants it said that it shall run as root.
        line("user", Some("root"));
    }
    line("skip-name-resolve", None);
    // The fastest way to load a dataset; only the lab has an account here.
    line("local-infile", Some("1"));
    for plumbing in lab_lines {
        line(plumbing, None);
    }
    for setting in settings {
        line(&setting.name, setting.value.as_deref());
    }
    text
}

/// A value in the syntax of an option file: quoted where it contains characters that would end or change it.
fn quote(value: &str) -> String {
    let plain =
        !value.is_empty() && !value.contains(['#', ';', '"', '\'', '\\']) && value.trim() == value;
    if plain || value.is_empty() {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::digest::Digests;
    use super::super::Version;
    use super::*;
    use std::path::PathBuf;

    fn build() -> Build {
        Build {
            id: "x".to_owned(),
            source: "path".to_owned(),
            locator: "/opt/x".to_owned(),
            artifacts: Vec::new(),
            product: "mysql".to_owned(),
            version: Version::new(8, 0, 33),
            version_text: String::new(),
            daemon: PathBuf::from("/opt/x/bin/mysqld"),
            daemon_digests: Digests {
                bytes: 0,
                sha256: String::new(),
                blake3: String::new(),
            },
            basedir: PathBuf::from("/opt/x"),
            share: PathBuf::from("/opt/x/share"),
            plugins: None,
            library_path: Vec::new(),
            loader: None,
        }
    }

    #[test]
    fn the_contenders_settings_come_last_and_in_order() {
        let places = Places {
            data: Path::new("/s/data"),
            tmp: Path::new("/s/tmp"),
            socket: Path::new("/s/s.sock"),
            listen: None,
            pid_file: Path::new("/s/pid"),
            log: Some(Path::new("/s/error.log")),
        };
        let settings = [
            Setting::new("sync_binlog", Some("1")),
            Setting::new("skip-log-bin", None),
            Setting::new("init_connect", Some("SET @a='#'")),
        ];
        let listening = Places {
            listen: Some("10.0.0.1:4000".parse().unwrap()),
            ..places
        };
        let text = render(&build(), &[], &listening, &[]);
        assert!(
            text.contains("\nport=4000\nbind-address=10.0.0.1\n") && !text.contains("skip-net")
        );
        let places = Places {
            listen: None,
            ..listening
        };
        let text = render(&build(), &["loose-mysqlx=OFF"], &places, &settings);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "[mysqld]");
        assert!(lines.contains(&"skip-networking") && lines.contains(&"loose-mysqlx=OFF"));
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "sync_binlog=1",
                "skip-log-bin",
                "init_connect=\"SET @a='#'\""
            ]
        );
    }

    #[test]
    fn values_are_quoted_only_when_they_must_be() {
        assert_eq!(quote("1G"), "1G");
        assert_eq!(quote(""), "");
        assert_eq!(quote(" x"), "\" x\"");
        assert_eq!(quote("a\\b"), "\"a\\\\b\"");
    }
}
