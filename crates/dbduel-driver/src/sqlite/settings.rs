//! SQLite's settings (PRAGMA), applied to a connection when it opens its file and then read back.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rusqlite::Connection;

use super::errors;
use crate::{LostError, StatementError};

/// Settings by name, as written.
pub type Settings = BTreeMap<String, String>;

/// Default time that a connection waits for a lock, milliseconds.
const BUSY_TIMEOUT_MS: u64 = 5_000;

const BUSY_TIMEOUT: &str = "busy_timeout";

/// Allowed values of a setting.
enum Values {
    /// One of these words, or its number, which SQLite returns for some.
    Words(&'static [(&'static str, i64)]),
    /// A whole number between these.
    Number(i64, i64),
    /// A power of two between these.
    PowerOfTwo(i64, i64),
}

const SWITCH: Values = Values::Words(&[("off", 0), ("on", 1)]);
const ANY: Values = Values::Number(i64::MIN, i64::MAX);
const COUNT: Values = Values::Number(0, i32::MAX as i64);

/// Settings in the order in which a connection applies them: those stored in the file before those that create it.
const SETTINGS: &[(&str, Values)] = &[
    ("page_size", Values::PowerOfTwo(512, 65_536)),
    (
        "auto_vacuum",
        Values::Words(&[("none", 0), ("full", 1), ("incremental", 2)]),
    ),
    ("busy_timeout", Values::Number(0, 3_600_000)),
    (
        "locking_mode",
        Values::Words(&[("normal", -1), ("exclusive", -1)]),
    ),
    (
        "journal_mode",
        Values::Words(&[
            ("delete", -1),
            ("truncate", -1),
            ("persist", -1),
            ("memory", -1),
            ("wal", -1),
            ("off", -1),
        ]),
    ),
    (
        "synchronous",
        Values::Words(&[("off", 0), ("normal", 1), ("full", 2), ("extra", 3)]),
    ),
    ("cache_size", ANY),
    ("cache_spill", COUNT),
    ("mmap_size", Values::Number(0, i64::MAX)),
    ("wal_autocheckpoint", COUNT),
    ("journal_size_limit", Values::Number(-1, i64::MAX)),
    (
        "temp_store",
        Values::Words(&[("default", 0), ("file", 1), ("memory", 2)]),
    ),
    (
        "secure_delete",
        Values::Words(&[("off", 0), ("on", 1), ("fast", 2)]),
    ),
    ("threads", Values::Number(0, 8)),
    ("automatic_index", SWITCH),
    ("cell_size_check", SWITCH),
    ("checkpoint_fullfsync", SWITCH),
    ("foreign_keys", SWITCH),
    ("fullfsync", SWITCH),
    ("read_uncommitted", SWITCH),
];

/// Why a setting is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The name is unknown, or not allowed in contests.
    #[error(
        "`{name}` is not a SQLite setting that can be set here{}; available: {}",
        suggestion(name),
        names()
    )]
    Name {
        /// As written.
        name: String,
    },
    /// The value is not allowed.
    #[error("`{name}` cannot be `{value}`; it takes {takes}")]
    Value {
        /// The setting.
        name: String,
        /// As written.
        value: String,
        /// Allowed values.
        takes: String,
    },
}

fn suggestion(name: &str) -> String {
    let known = SETTINGS.iter().map(|(name, _)| *name);
    dbduel_text::nearest(name, known)
        .map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}

fn names() -> String {
    let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

impl Values {
    /// The value in its canonical form; `None` when it is not allowed.
    fn canonical(&self, value: &str) -> Option<String> {
        let value = value.trim().to_ascii_lowercase();
        match self {
            Values::Words(words) => {
                let number: Option<i64> = value.parse().ok().filter(|number| *number >= 0);
                let mut words = words.iter();
                let word = words.find(|(word, of_word)| value == *word || number == Some(*of_word));
                word.map(|(word, _)| (*word).to_owned())
            }
            Values::Number(low, high) => {
                let number: i64 = value.parse().ok()?;
                (*low..=*high).contains(&number).then(|| number.to_string())
            }
            Values::PowerOfTwo(low, high) => {
                let number: i64 = value.parse().ok()?;
                let is_one = (*low..=*high).contains(&number) && number.count_ones() == 1;
                is_one.then(|| number.to_string())
            }
        }
    }

    fn takes(&self) -> String {
        match self {
            Values::Words(words) => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                words.join(", ")
            }
            Values::Number(i64::MIN, _) => "a whole number".to_owned(),
            Values::Number(low, i64::MAX) => format!("a whole number of at least {low}"),
            Values::Number(low, high) => format!("a whole number from {low} to {high}"),
            Values::PowerOfTwo(low, high) => format!("a power of two from {low} to {high}"),
        }
    }
}

/// The value of a setting in the words of SQLite's documentation.
///
/// # Errors
/// [`SettingError`] when there is no such setting or it does not take the value.
pub fn check(name: &str, value: &str) -> Result<String, SettingError> {
    let Some((_, values)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
        return Err(SettingError::Name {
            name: name.to_owned(),
        });
    };
    values.canonical(value).ok_or_else(|| SettingError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        takes: values.takes(),
    })
}

/// Applies settings to a connection and reads them back. Returns the lock timeout.
pub(super) fn apply(connection: &Connection, settings: &Settings) -> Result<Duration, LostError> {
    let default_timeout = BUSY_TIMEOUT_MS.to_string();
    for (name, values) in SETTINGS {
        let value = match settings.get(*name) {
            Some(value) => value,
            None if *name == BUSY_TIMEOUT => &default_timeout,
            None => continue,
        };
        let failed = |error: rusqlite::Error| match errors::meaning(error) {
            StatementError::Lost(lost) => lost,
            StatementError::Server(error) => refused(name, value, &error.to_string()),
        };
        connection
            .pragma_update(None, name, value)
            .map_err(failed)?;
        let found = connection.pragma_query_value(None, name, |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                text => text.as_str().unwrap_or_default().to_owned(),
            })
        });
        let found = found.map_err(failed)?;
        if values.canonical(&found) != values.canonical(value) {
            return Err(refused(name, value, &differs(name, &found)));
        }
    }
    let timeout = settings
        .get(BUSY_TIMEOUT)
        .and_then(|value| value.parse().ok());
    Ok(Duration::from_millis(timeout.unwrap_or(BUSY_TIMEOUT_MS)))
}

/// Error text for a setting that reads back differently, with the probable reason.
fn differs(name: &str, found: &str) -> String {
    let why = match name {
        "page_size" | "auto_vacuum" => "it is fixed when the file is created",
        "journal_mode" => {
            "another connection may have the file open in another mode; the write-ahead log needs a file system with shared memory"
        }
        "mmap_size" => "SQLite was built with a lower limit",
        _ => "SQLite did not take the value",
    };
    format!("it is `{found}`; {why}")
}

fn refused(name: &str, value: &str, why: &str) -> LostError {
    io::Error::other(format!("cannot set `{name}` to `{value}`: {why}")).into()
}

/// Names of the PRAGMAs that return one value about a connection or its file.
pub(super) const READABLE: &[&str] = &[
    "analysis_limit",
    "application_id",
    "auto_vacuum",
    "automatic_index",
    "busy_timeout",
    "cache_size",
    "cache_spill",
    "cell_size_check",
    "checkpoint_fullfsync",
    "defer_foreign_keys",
    "encoding",
    "foreign_keys",
    "fullfsync",
    "hard_heap_limit",
    "ignore_check_constraints",
    "journal_mode",
    "journal_size_limit",
    "legacy_alter_table",
    "locking_mode",
    "max_page_count",
    "mmap_size",
    "page_size",
    "query_only",
    "read_uncommitted",
    "recursive_triggers",
    "reverse_unordered_selects",
    "secure_delete",
    "soft_heap_limit",
    "synchronous",
    "temp_store",
    "threads",
    "trusted_schema",
    "user_version",
    "wal_autocheckpoint",
    "writable_schema",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_or_numbers_and_have_one_form() {
        for (name, written, canonical) in [
            ("synchronous", "FULL", "full"),
            ("synchronous", "2", "full"),
            ("journal_mode", "WAL", "wal"),
            ("cache_size", "-2000", "-2000"),
            ("page_size", " 8192 ", "8192"),
            ("foreign_keys", "1", "on"),
        ] {
            assert_eq!(check(name, written).as_deref(), Ok(canonical), "{name}");
        }
        for (name, written) in [
            ("synchronous", "4"),
            ("journal_mode", "-1"),
            ("journal_mode", "wal2"),
            ("page_size", "5000"),
            ("mmap_size", "-1"),
            ("busy_timeout", "1; DROP TABLE t"),
        ] {
            let error = check(name, written).unwrap_err().to_string();
            assert!(error.contains("it takes"), "{error}");
        }
        let error = check("sync", "full").unwrap_err().to_string();
        assert!(error.contains("synchronous"), "{error}");
    }

    #[test]
    fn what_can_be_set_can_be_read() {
        for (name, _) in SETTINGS {
            assert!(READABLE.contains(name), "{name}");
        }
    }
}
