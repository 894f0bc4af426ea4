//! PRAGMAs of SQLite as it shows and takes them: words for numbers, and which PRAGMAs there are.
//!
//! SQLite takes any value without an error: a word that it does not know, and a number with a suffix, become another
//! value than the one that was meant. They are refused here.

use dbduel_text::nearest;

use super::defaults::Defaults;
use super::options::{OptionFate, OptionForm};

/// PRAGMAs that are shown as numbers and take words, with the word of each number from 0.
const NUMBERED: &[(&str, &[&str])] = &[
    ("auto_vacuum", &["none", "full", "incremental"]),
    ("secure_delete", &["off", "on", "fast"]),
    ("synchronous", &["off", "normal", "full", "extra"]),
    ("temp_store", &["default", "file", "memory"]),
];

/// PRAGMAs that are words.
const WORDS: &[(&str, &[&str])] = &[
    ("encoding", &["utf-8", "utf-16", "utf-16le", "utf-16be"]),
    (
        "journal_mode",
        &["delete", "truncate", "persist", "memory", "wal", "off"],
    ),
    ("locking_mode", &["normal", "exclusive"]),
];

/// PRAGMAs that are numbers and no switches.
const NUMBERS: &[&str] = &[
    "analysis_limit",
    "application_id",
    "busy_timeout",
    "cache_size",
    "cache_spill",
    "hard_heap_limit",
    "journal_size_limit",
    "max_page_count",
    "mmap_size",
    "soft_heap_limit",
    "threads",
    "user_version",
    "wal_autocheckpoint",
];

fn words_of(
    table: &'static [(&str, &'static [&'static str])],
    name: &str,
) -> Option<&'static [&'static str]> {
    let mut rows = table.iter();
    let row = rows.find(|(pragma, _)| *pragma == name)?;
    Some(row.1)
}

/// A value as SQLite shows it, or as a script or an experiment has it, in the form of evidence: numbers, words in
/// lower case, switches 0 and 1. Names that are no PRAGMAs keep theirs.
///
/// # Errors
/// The values that SQLite expects, a sentence without its full stop.
pub fn canonical(name: &str, written: &str) -> Result<String, String> {
    let text = written
        .trim()
        .trim_matches(['\'', '"'])
        .to_ascii_lowercase();
    let refuse = |expected: &str| {
        let shown: String = text.chars().take(60).collect();
        Err(format!("`{name} = {shown}`: SQLite expects {expected}"))
    };
    let number = text.parse::<i64>().ok();
    let switch = match text.as_str() {
        "on" | "yes" | "true" => Some(1),
        "off" | "no" | "false" => Some(0),
        _ => None,
    };
    if let Some(words) = words_of(NUMBERED, name) {
        let by_word = words.iter().position(|word| *word == text);
        let by_number = number.and_then(|number| usize::try_from(number).ok());
        let found = by_word.or(by_number).or(switch);
        return match found.filter(|&found| found < words.len()) {
            Some(found) => Ok(found.to_string()),
            None => refuse(&format!("one of {}", words.join(", "))),
        };
    }
    if let Some(words) = words_of(WORDS, name) {
        return match words.contains(&text.as_str()) {
            true => Ok(text),
            false => refuse(&format!("one of {}", words.join(", "))),
        };
    }
    if name == "page_size" {
        let is_size = |size: &i64| (512..=65_536).contains(size) && size.count_ones() == 1;
        return match number.filter(is_size) {
            Some(size) => Ok(size.to_string()),
            None => refuse("a power of two from 512 to 65536, in bytes"),
        };
    }
    if !Defaults::sqlite().contains_key(name) || name == "sqlite_version" {
        return Ok(written.to_owned());
    }
    if NUMBERS.contains(&name) {
        return match number {
            Some(number) => Ok(number.to_string()),
            None => refuse("a whole number without a unit"),
        };
    }
    match number.filter(|number| matches!(number, 0 | 1)) {
        Some(number) => Ok(number.to_string()),
        None => match switch {
            Some(switch) => Ok(switch.to_string()),
            None => refuse("ON or OFF"),
        },
    }
}

/// A value of evidence as people write it: `2` of `synchronous` is `FULL`.
#[must_use]
pub fn written(name: &str, value: &str) -> String {
    let number = value.parse::<usize>().ok();
    let word = words_of(NUMBERED, name)
        .zip(number)
        .and_then(|(words, number)| words.get(number));
    word.map_or_else(|| value.to_owned(), |word| word.to_ascii_uppercase())
}

/// How SQLite handles a setting called `written`. SQLite itself ignores unknown names.
#[must_use]
pub fn option_fate(written: &str) -> OptionFate {
    let name = written.trim().to_ascii_lowercase();
    let pragmas = || {
        let known = Defaults::sqlite().keys().map(String::as_str);
        known.filter(|pragma| *pragma != "sqlite_version")
    };
    if pragmas().any(|pragma| pragma == name) {
        return OptionFate::Taken {
            name,
            form: OptionForm::Plain,
        };
    }
    let near = nearest(&name, pragmas())
        .map(|near| format!(" (did you mean `{near}`?)"))
        .unwrap_or_default();
    OptionFate::Refused(format!(
        "is not a SQLite PRAGMA that can be read and set{near}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &str) {
        assert_eq!(
            canonical(name, text).as_deref(),
            Ok(expected),
            "{name} = {text}"
        );
    }

    #[test]
    fn words_and_switches_become_what_the_pragma_shows() {
        check("synchronous", "FULL", "2");
        check("synchronous", "3", "3");
        check("synchronous", "on", "1");
        check("secure_delete", "fast", "2");
        check("temp_store", "memory", "2");
        check("journal_mode", "WAL", "wal");
        check("foreign_keys", "ON", "1");
        check("cache_size", "-2000", "-2000");
        check("page_size", "8192", "8192");
        check("sqlite_version", "3.54.1", "3.54.1");
    }

    #[test]
    fn values_that_sqlite_would_take_for_another_are_refused() {
        for (name, text) in [
            ("synchronous", "4"),
            ("synchronous", "safe"),
            ("journal_mode", "wall"),
            ("cache_size", "64M"),
            ("page_size", "5000"),
            ("mmap_size", "1G"),
            ("foreign_keys", "2"),
        ] {
            let refused = canonical(name, text).unwrap_err();
            assert!(refused.contains("SQLite expects"), "{refused}");
        }
        let near = OptionFate::Refused(
            "is not a SQLite PRAGMA that can be read and set (did you mean `journal_mode`?)"
                .to_owned(),
        );
        assert_eq!(option_fate("jurnal_mode"), near);
    }

    #[test]
    fn every_recorded_value_is_taken_and_written_back() {
        for (name, value) in Defaults::sqlite() {
            let taken = canonical(name, &written(name, value));
            assert_eq!(taken, canonical(name, value), "{name}");
            assert!(
                taken.is_ok_and(|taken| taken.eq_ignore_ascii_case(value)),
                "{name}"
            );
        }
    }
}
