//! The configuration file of a sandboxed server: the lab's plumbing first, then the contender's settings in order.

use std::fmt::Write;
use std::path::Path;

use super::super::build::Build;
use super::super::products::Product;
use super::super::refusal::RefusedSetting;
use super::super::reserved::reserved;
use super::super::settings::Setting;

/// Where a server keeps its things.
pub struct Places<'a> {
    /// Data directory.
    pub data: &'a Path,
    /// Folder for temporary files.
    pub tmp: &'a Path,
    pub socket: &'a Path,
    /// Process id.
    pub pid_file: &'a Path,
    /// Error log; `None` for standard error.
    pub log: Option<&'a Path>,
}

/// Refuses settings that cannot be written, that belong to the lab, or that destroy data with this version.
///
/// # Errors
/// The first such setting, with the reason.
pub fn check_settings(
    settings: &[Setting],
    build: &Build,
    product: &dyn Product,
) -> Result<(), RefusedSetting> {
    for setting in settings {
        let refuse = |reason: &str| RefusedSetting {
            setting: setting.clone(),
            said: reason.to_owned(),
            suggestion: None,
        };
        let name = setting.normal_name();
        let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty()
            || !name.chars().all(usable)
            || !name.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            return Err(refuse("this is not the name of a setting"));
        }
        if setting
            .value
            .as_ref()
            .is_some_and(|value| value.contains(['\n', '\r', '\0']))
        {
            return Err(refuse("a value must be one line"));
        }
        if let Some(reason) = reserved(&name, setting.value.as_deref().unwrap_or_default()) {
            return Err(refuse(&reason));
        }
        if let Some(reason) = product.forbids(build.version, setting) {
            return Err(refuse(reason));
        }
    }
    Ok(())
}

/// The whole file.
pub fn render(
    build: &Build,
    product: &dyn Product,
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
    // The load comes through the socket. Should a later line turn this off, only this machine gets in.
    line("skip-networking", None);
    line("bind-address", Some("127.0.0.1"));
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
    for plumbing in product.lab_lines(build.version) {
        line(plumbing, None);
    }
    for setting in settings {
        line(&setting.name, setting.value.as_deref());
    }
    text
}

/// A value as an option file reads it back: quoted when it holds what would end or change it.
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
    use super::super::super::products;
    use super::super::super::version::Version;
    use super::*;
    use std::path::PathBuf;

    fn build(version: Version) -> Build {
        Build {
            id: "x".to_owned(),
            source: "path".to_owned(),
            locator: "/opt/x".to_owned(),
            artifacts: Vec::new(),
            product: "mysql".to_owned(),
            version,
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

    fn refusal(setting: Setting) -> Option<String> {
        let product = products::by_name("mysql").unwrap();
        check_settings(&[setting], &build(Version::new(8, 0, 33)), product)
            .err()
            .map(|refused| refused.said)
    }

    #[test]
    fn settings_that_the_lab_refuses_itself() {
        assert_eq!(
            refusal(Setting::new("innodb_buffer_pool_size", Some("1G"))),
            None
        );
        assert_eq!(refusal(Setting::new("skip-log-bin", None)), None);
        assert_eq!(
            refusal(Setting::new("hot_cache.key_buffer_size", Some("1M"))),
            None
        );
        assert!(
            refusal(Setting::new("DataDir", Some("/tmp")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(Setting::new("bind-address", Some("0.0.0.0")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(Setting::new("loose-innodb_x", Some("1")))
                .unwrap()
                .contains("must not rest on an ignored setting")
        );
        assert!(
            refusal(Setting::new("a\nport", Some("1")))
                .unwrap()
                .contains("not the name")
        );
        assert!(
            refusal(Setting::new("sql_mode", Some("x\nport=1")))
                .unwrap()
                .contains("one line")
        );
        assert!(refusal(Setting::new("", None)).is_some());
    }

    #[test]
    fn the_contenders_settings_come_last_and_in_order() {
        let product = products::by_name("mysql").unwrap();
        let places = Places {
            data: Path::new("/s/data"),
            tmp: Path::new("/s/tmp"),
            socket: Path::new("/s/s.sock"),
            pid_file: Path::new("/s/pid"),
            log: Some(Path::new("/s/error.log")),
        };
        let settings = [
            Setting::new("sync_binlog", Some("1")),
            Setting::new("skip-log-bin", None),
            Setting::new("init_connect", Some("SET @a='#'")),
        ];
        let text = render(&build(Version::new(8, 0, 33)), product, &places, &settings);
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
