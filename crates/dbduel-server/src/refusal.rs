//! Determines from a server's messages which setting it refuses, changes or ignores.
//!
//! The wording differs between servers; in every case the line names the setting.

use super::settings::{Setting, normal_name};
use super::variables::nearest_variable;

/// A setting that the server does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server refuses the setting `{}`: {said}{}", written(setting), did_you_mean(*suggestion))]
pub struct RefusedSetting {
    /// The requested setting.
    pub setting: Setting,
    /// The server's message, or the lab's where the lab refuses.
    pub said: String,
    /// A variable with a similar name.
    pub suggestion: Option<&'static str>,
}

/// A server's remark on a setting that it accepts: it changed or ignores the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRemark {
    /// Name of the requested setting.
    pub name: String,
    /// The server's message.
    pub said: String,
}

fn written(setting: &Setting) -> String {
    match &setting.value {
        Some(value) => format!("{} = {value}", setting.name),
        None => setting.name.clone(),
    }
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

impl RefusedSetting {
    /// A refusal; suggests a name when the product has no such variable.
    pub fn new(setting: &Setting, said: String, product: &str) -> Self {
        let suggestion = match setting.normal_name().as_str() {
            // Variables whose option has another name, on every version.
            "tx_isolation" => Some("transaction_isolation"),
            "tx_read_only" => Some("transaction_read_only"),
            name if ["unknown", "unrecognized"]
                .iter()
                .any(|word| said.to_ascii_lowercase().contains(word)) =>
            {
                nearest_variable(name, product)
            }
            _ => None,
        };
        RefusedSetting {
            setting: setting.clone(),
            said,
            suggestion,
        }
    }
}

/// The setting that the log of an ended server blames: one that a line names, otherwise one whose value an error
/// quotes, as in `Unknown collation: 'utf8mb4_x'`.
pub fn refused(said: &str, settings: &[Setting], product: &str) -> Option<RefusedSetting> {
    // What a server writes about its own crash names settings that it does not complain of.
    let before_a_crash = said.lines().take_while(|line| !is_crash(line));
    let complaints = || before_a_crash.clone().filter(|line| !is_harmless(line));
    let by_name = complaints().find_map(|line| Some((line, named_in(line, settings)?)));
    let (line, setting) = by_name.or_else(|| {
        complaints()
            .filter(|line| line.contains("[ERROR]"))
            .find_map(|line| Some((line, quoted_in(line, settings)?)))
    })?;
    Some(RefusedSetting::new(setting, message(line), product))
}

/// Remarks on settings of a server that continues.
pub fn remarks(said: &str, settings: &[Setting]) -> Vec<SettingRemark> {
    said.lines()
        .filter(|line| line.contains("[Warning]"))
        .filter_map(|line| {
            named_in(line, settings).map(|setting| SettingRemark {
                name: setting.name.clone(),
                said: message(line),
            })
        })
        .collect()
}

/// The line with which MySQL and MariaDB begin to report a fatal signal.
pub fn is_crash(line: &str) -> bool {
    line.contains("got signal")
}

fn is_harmless(line: &str) -> bool {
    ["[Warning]", "[Note]", "[System]"]
        .iter()
        .any(|level| line.contains(level))
}

/// The setting that a line names: the longest match, since one name may be a prefix of another.
fn named_in<'a>(line: &str, settings: &'a [Setting]) -> Option<&'a Setting> {
    let line = normal_name(line);
    settings
        .iter()
        .filter(|setting| holds_word(&line, &setting.normal_name()))
        .max_by_key(|setting| setting.name.len())
}

/// The setting whose value a line quotes.
fn quoted_in<'a>(line: &str, settings: &'a [Setting]) -> Option<&'a Setting> {
    settings.iter().find(|setting| {
        setting
            .value
            .as_ref()
            .is_some_and(|value| !value.is_empty() && line.contains(&format!("'{value}'")))
    })
}

/// True when `text` contains `word` as a whole name.
fn holds_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // A dash before the word is the option's own: `--x` reads `__x` here.
    let starts =
        |before: &str| !before.trim_end_matches('_').ends_with(is_name) || before.ends_with("__");
    text.match_indices(word)
        .any(|(at, _)| starts(&text[..at]) && !text[at + word.len()..].starts_with(is_name))
}

/// The line without its time, thread, level and program.
fn message(line: &str) -> String {
    let mut rest = line;
    for mark in [
        "[ERROR] ",
        "[Warning] ",
        "[Server] ",
        "[InnoDB] ",
        "LOG:  ",
        "FATAL:  ",
    ] {
        if let Some(at) = rest.find(mark) {
            rest = &rest[at + mark.len()..];
        }
    }
    if let Some(after) = rest
        .strip_prefix("[MY-")
        .and_then(|code| code.split_once("] "))
    {
        rest = after.1;
    }
    // `/path/of/mysqld: unknown variable …`
    if rest.starts_with('/')
        && let Some((_, after)) = rest.split_once(": ")
    {
        rest = after;
    }
    // The file is the lab's own.
    if let Some((before, place)) = rest.rsplit_once(" in file \"")
        && place.contains("\" line ")
    {
        rest = before;
    }
    rest.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, setting: (&str, Option<&str>), message: &str) {
        let settings = [
            Setting::new("innodb_log_file", None),
            Setting::new("sync_binlog", Some("1")),
            Setting::new(setting.0, setting.1),
        ];
        let refused = refused(said, &settings, "mysql").expect(said);
        assert_eq!(
            (refused.setting.name.as_str(), refused.said.as_str()),
            (setting.0, message)
        );
    }

    #[test]
    fn a_crash_refuses_no_setting() {
        let said = "261124 13:08:57 [ERROR] mysqld got signal 11 ;\nIt is possible that mysqld could use up to \n\
            key_buffer_size + (read_buffer_size + sort_buffer_size)*max_threads = 192928 K  bytes of memory\n";
        let settings = [Setting::new("sort_buffer_size", Some("256K"))];
        assert_eq!(refused(said, &settings, "mariadb"), None);
    }

    #[test]
    fn refusals_of_many_versions() {
        check(
            "261120 10:00:00 [Warning] something else\n261120 10:00:00 [ERROR] /x/bin/mysqld: unknown variable 'innodb-page-cleaners=4'\n",
            ("innodb_page_cleaners", Some("4")),
            "unknown variable 'innodb-page-cleaners=4'",
        );
        check(
            "2026-11-20T10:00:00Z 0 [ERROR] [MY-000067] [Server] unknown variable 'innodb_use_mtflush=1'.\n",
            ("innodb_use_mtflush", Some("1")),
            "unknown variable 'innodb_use_mtflush=1'.",
        );
        check(
            "2026 0 [ERROR] [MY-000077] [Server] /x/bin/mysqld: Error while setting value 'pool-of-threads' to 'thread_handling'.\n",
            ("thread-handling", Some("pool-of-threads")),
            "Error while setting value 'pool-of-threads' to 'thread_handling'.",
        );
        check(
            "Unknown suffix 'Q' used for variable 'innodb_buffer_pool_size' (value '1Q')\n",
            ("innodb_buffer_pool_size", Some("1Q")),
            "Unknown suffix 'Q' used for variable 'innodb_buffer_pool_size' (value '1Q')",
        );
        check(
            "2026 0 [ERROR] [MY-010933] [Server] Unknown collation: 'utf8mb4_x'.\n2026 0 [ERROR] [MY-010119] [Server] Aborting\n",
            ("collation_server", Some("utf8mb4_x")),
            "Unknown collation: 'utf8mb4_x'.",
        );
        check(
            "/x/mysqld: unknown option '--skip-foo'\n",
            ("skip-foo", None),
            "unknown option '--skip-foo'",
        );
        check(
            "2026-11-20 10:00:00.000 GMT [42] LOG:  unrecognized configuration parameter \"shared_bufers\" in file \
             \"/x/postgresql.conf\" line 12\n2026 [42] FATAL:  configuration file \"/x/postgresql.conf\" contains errors\n",
            ("shared_bufers", Some("1GB")),
            "unrecognized configuration parameter \"shared_bufers\"",
        );
    }

    #[test]
    fn a_warning_is_a_notice_and_no_refusal() {
        let said = "2026-11-20 10:00:00 0 [Warning] 'innodb-page-cleaners' was removed. It does nothing now.\n";
        let settings = [Setting::new("innodb_page_cleaners", Some("4"))];
        assert_eq!(refused(said, &settings, "mariadb"), None);
        let found = remarks(said, &settings);
        assert_eq!(
            found[0].said,
            "'innodb-page-cleaners' was removed. It does nothing now."
        );
    }

    #[test]
    fn words_about_something_else_name_no_setting() {
        let settings = [Setting::new("innodb_log_file", Some("1"))];
        assert_eq!(
            refused(
                "[ERROR] unknown variable 'innodb_log_file_size=1'",
                &settings,
                "mysql"
            ),
            None
        );
        assert_eq!(refused("[ERROR] Aborting", &settings, "mysql"), None);
    }

    #[test]
    fn a_slip_comes_with_the_right_name() {
        let settings = [Setting::new("innodb_bufer_pool_size", Some("1G"))];
        let said = "[ERROR] /x/mysqld: unknown variable 'innodb_bufer_pool_size=1G'";
        let text = refused(said, &settings, "mysql").unwrap().to_string();
        assert_eq!(
            text,
            "the server refuses the setting `innodb_bufer_pool_size = 1G`: unknown variable 'innodb_bufer_pool_size=1G' \
             (did you mean `innodb_buffer_pool_size`?)"
        );
    }
}
