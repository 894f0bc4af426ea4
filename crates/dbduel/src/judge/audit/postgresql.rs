//! Settings of PostgreSQL as it shows and takes them: units, switches, and which settings a version has.
//!
//! Evidence holds sizes in bytes and times in seconds, as the fact tables expect; this file converts both ways.

use super::defaults::{Defaults, PostgresqlUnits};
use super::options::{OptionFate, OptionForm};
use super::server::{Product, Version};

/// Sizes, in bytes. The longest word that fits counts.
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1024.0),
    ("8kB", 8192.0),
    ("MB", 1_048_576.0),
    ("16MB", 16_777_216.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
];

/// Times, in seconds.
const TIMES: &[(&str, f64)] = &[
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

/// True for a word that `pg_settings.unit` may have.
#[must_use]
pub fn is_unit(word: &str) -> bool {
    factor(word).is_some()
}

/// Bytes or seconds of one unit.
fn factor(unit: &str) -> Option<f64> {
    let mut units = SIZES.iter().chain(TIMES);
    units
        .find(|(word, _)| *word == unit)
        .map(|(_, factor)| *factor)
}

/// The unit of a bare number of this setting; `None` for a setting without one. Settings of extensions have none.
fn unit(name: &str, version: Version) -> Option<&'static str> {
    let unit = PostgresqlUnits::of(name)?;
    // Before 10 these two counted segments.
    let counts_segments = version.major < 10 && matches!(name, "max_wal_size" | "min_wal_size");
    Some(if counts_segments { "16MB" } else { unit })
}

/// A number of units as bytes or seconds. Special values (-1, 0) have no unit.
#[must_use]
pub fn in_units(number: &str, unit: &str) -> String {
    match (number.trim().parse::<f64>(), factor(unit)) {
        (Ok(parsed), Some(factor)) if parsed > 0.0 => show(parsed * factor),
        _ => number.to_owned(),
    }
}

fn show(number: f64) -> String {
    // Thousandths of milliseconds are exact enough, and hide that 0.001 is not a binary fraction.
    ((number * 1e6).round() / 1e6).to_string()
}

/// A value as `SHOW`, an option file or an experiment has it, in the form of evidence: sizes in bytes, times in
/// seconds, switches `on` and `off`.
///
/// # Errors
/// What the server expects instead, a sentence without its end.
pub fn canonical(name: &str, written: &str, version: Version) -> Result<String, String> {
    let text = written.trim();
    let refuse = |expected: &str| {
        let shown: String = text.chars().take(60).collect();
        Err(format!("`{name} = {shown}`: the server expects {expected}"))
    };
    if let Some(unit) = unit(name, version) {
        let end = text
            .find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c))
            .unwrap_or(text.len());
        let (number, suffix) = (&text[..end], text[end..].trim());
        if number.parse::<f64>().is_err() {
            return refuse("a number with or without a unit");
        }
        let family = |unit: &str| SIZES.iter().any(|(word, _)| *word == unit);
        let is_of_family = suffix.is_empty() || is_unit(suffix) && family(suffix) == family(unit);
        if !is_of_family {
            let words = if family(unit) { SIZES } else { TIMES };
            let words: Vec<&str> = words
                .iter()
                .map(|(word, _)| *word)
                .filter(|word| !word.starts_with(|first: char| first.is_ascii_digit()))
                .collect();
            return refuse(&format!(
                "a number with one of the units {}",
                words.join(", ")
            ));
        }
        let used = if suffix.is_empty() { unit } else { suffix };
        return Ok(in_units(number, used));
    }
    let default = Defaults::postgresql(version).and_then(|defaults| defaults.get(name).cloned());
    let is_switch = default.is_some_and(|default| matches!(default.as_str(), "on" | "off"));
    if is_switch {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" | "on" => return Ok("on".to_owned()),
            "false" | "no" | "0" | "off" => return Ok("off".to_owned()),
            // Some of these have words too: synchronous_commit = remote_apply.
            _ => {}
        }
    }
    // Blanks are part of a text.
    Ok(written.to_owned())
}

/// A value of evidence as an option file takes it: `134217728` of `shared_buffers` is `131072kB`.
#[must_use]
pub fn written(name: &str, value: &str, version: Version) -> String {
    let number = value.parse::<f64>().ok().filter(|number| *number > 0.0);
    let Some((unit, number)) = unit(name, version).zip(number) else {
        return value.to_owned();
    };
    let is_size = SIZES.iter().any(|(word, _)| *word == unit);
    let smallest = factor(unit).unwrap_or(1.0);
    let units = if is_size { SIZES } else { TIMES };
    // The largest unit that the number is a multiple of; what no unit of the setting divides is rounded up.
    let number = (number / smallest - 1e-9).ceil() * smallest;
    let is_plain = |word: &str| !word.starts_with(|first: char| first.is_ascii_digit());
    let fits = |(word, factor): &&(&str, f64)| {
        let count = number / factor;
        is_plain(word) && count >= 1.0 && (count - count.round()).abs() < 1e-9
    };
    match units.iter().rev().find(fits) {
        Some((word, factor)) => format!("{}{word}", (number / factor).round()),
        None => value.to_owned(),
    }
}

/// What a server of this version does with a setting called `written`.
#[must_use]
pub fn option_fate(version: Version, written: &str) -> OptionFate {
    let name = written.trim().to_ascii_lowercase();
    let Some(known) = Defaults::postgresql(version) else {
        return OptionFate::Unknown;
    };
    if known.contains_key(&name) {
        return OptionFate::Taken {
            name,
            form: OptionForm::Plain,
        };
    }
    // Settings of extensions have a dot, and the server takes them without knowing them.
    if name.contains('.') {
        return OptionFate::Unknown;
    }
    let series = match Product::PostgreSql.series(version) {
        (major, 0) => major.to_string(),
        (major, minor) => format!("{major}.{minor}"),
    };
    OptionFate::Refused(format!("is no setting of PostgreSQL {series}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[track_caller]
    fn check(name: &str, of: &str, written_as: &str, expected: &str) {
        assert_eq!(
            canonical(name, written_as, version(of)).as_deref(),
            Ok(expected),
            "{name} = {written_as}"
        );
    }

    #[test]
    fn units_become_bytes_and_seconds() {
        check("shared_buffers", "17.11", "16384", "134217728");
        check("shared_buffers", "17.11", "128MB", "134217728");
        check("work_mem", "17.11", "4096", "4194304");
        check("max_wal_size", "17.11", "1024", "1073741824");
        check("max_wal_size", "9.6.24", "64", "1073741824");
        check("deadlock_timeout", "17.11", "1s", "1");
        check("bgwriter_delay", "17.11", "200", "0.2");
        check("checkpoint_timeout", "17.11", "1d", "86400");
        check("log_min_duration_statement", "17.11", "-1", "-1");
        check("fsync", "17.11", "FALSE", "off");
        check(
            "synchronous_commit",
            "17.11",
            "remote_apply",
            "remote_apply",
        );
        check("commit_delay", "17.11", "10", "10");
    }

    #[test]
    fn a_unit_of_another_family_is_refused() {
        let refused = canonical("shared_buffers", "5min", version("17.11")).unwrap_err();
        assert_eq!(
            refused,
            "`shared_buffers = 5min`: the server expects a number with one of the units B, kB, MB, GB, TB"
        );
        assert!(canonical("work_mem", "much", version("17.11")).is_err());
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        let version = version("17.11");
        for (name, value, text) in [
            ("shared_buffers", "134217728", "128MB"),
            ("shared_buffers", "134217729", "131080kB"),
            ("max_wal_size", "167772161", "161MB"),
            ("deadlock_timeout", "0.2", "200ms"),
            ("checkpoint_timeout", "86400", "1d"),
            ("log_min_duration_statement", "-1", "-1"),
            ("jit", "off", "off"),
        ] {
            assert_eq!(written(name, value, version), text, "{name}");
        }
        for (name, value) in Defaults::postgresql(version).unwrap() {
            let back = canonical(name, &written(name, value, version), version);
            assert_eq!(back.as_deref(), Ok(value.as_str()), "{name}");
        }
    }

    #[test]
    fn settings_of_other_products_and_versions_are_refused() {
        let fate = |of: &str, name: &str| option_fate(version(of), name);
        assert!(matches!(fate("17.11", "jit"), OptionFate::Taken { .. }));
        assert_eq!(
            fate("10.23", "jit"),
            OptionFate::Refused("is no setting of PostgreSQL 10".to_owned())
        );
        assert!(matches!(
            fate("17.11", "innodb_buffer_pool_size"),
            OptionFate::Refused(_)
        ));
        assert_eq!(fate("17.11", "pg_prewarm.autoprewarm"), OptionFate::Unknown);
    }
}
