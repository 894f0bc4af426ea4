//! Settings of PostgreSQL as it shows and takes them: units, switches, and which settings a version has.
//!
//! Evidence holds sizes in bytes and times in seconds, as the fact tables expect; this file converts both ways.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use dbduel_text::Version;

use super::defaults::{Defaults, POSTGRESQL, PostgresqlUnits};
use super::evidence::Texts;
use super::options::{OptionFate, OptionForm};
use super::server::Product;
use super::value_table::ValueTable;

const VALUES: &str = include_str!("../data/values-postgresql.tsv");

/// The form that a value has.
#[derive(Debug)]
enum ValueForm {
    /// `on` or `off`, or as much of `true`, `no`, … as tells them apart.
    Switch,
    /// One of these words, whole and in whatever case, each with what the server shows for it.
    One(Vec<(&'static str, &'static str)>),
    /// A whole number of its unit.
    Integer(RangeInclusive<f64>),
    /// A number of its unit.
    Real(RangeInclusive<f64>),
    /// None: it cannot be set in a file.
    Fixed,
}

static TABLE: LazyLock<ValueTable<ValueForm>> = LazyLock::new(|| {
    let form = |takes: &'static str, values: &'static str| {
        form(takes, values).ok_or_else(|| "has no form of a value".to_owned())
    };
    ValueTable::parse(VALUES, form).expect("the table that is compiled in parses")
});

fn form(takes: &str, values: &'static str) -> Option<ValueForm> {
    let bounds = || {
        let (least, most) = values.split_once("..")?;
        Some(least.parse().ok()?..=most.parse().ok()?)
    };
    Some(match takes {
        "switch" => ValueForm::Switch,
        "one" => {
            let words = values.split(',');
            let words = words.map(|word| word.split_once('=').unwrap_or((word, word)));
            ValueForm::One(words.collect())
        }
        "integer" => ValueForm::Integer(bounds()?),
        "real" => ValueForm::Real(bounds()?),
        "fixed" => ValueForm::Fixed,
        _ => return None,
    })
}

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
/// The values that the server expects, a sentence without its full stop.
pub fn canonical(name: &str, written: &str, version: Version) -> Result<String, String> {
    let unit = unit(name, version);
    let read = match TABLE.of(name, Product::PostgreSql, version) {
        Some(ValueForm::Switch) => switch(written)
            .map(|on| if on { "on" } else { "off" }.to_owned())
            .ok_or_else(|| "on or off".to_owned()),
        Some(ValueForm::One(words)) => one_of(words, written),
        Some(ValueForm::Integer(bounds)) => {
            let number = number(written, unit, version, true, Some(bounds));
            number.map(|number| in_octal(name, number))
        }
        Some(ValueForm::Real(bounds)) => number(written, unit, version, false, Some(bounds)),
        Some(ValueForm::Fixed) | None if unit.is_some() => {
            number(written, unit, version, version.major < 12, None)
        }
        // Blanks are part of a text.
        Some(ValueForm::Fixed) | None => Ok(written.to_owned()),
    };
    read.map_err(|expected| {
        let shown: String = written.chars().take(60).collect();
        format!("`{name} = {shown}`: the server expects {expected}")
    })
}

/// Permissions of files are shown as such.
fn in_octal(name: &str, number: String) -> String {
    const PERMISSIONS: &[&str] = &["log_file_mode", "unix_socket_permissions"];
    match number.parse::<u32>() {
        Ok(number) if PERMISSIONS.contains(&name) => format!("{number:04o}"),
        _ => number,
    }
}

/// True for a setting that was decided when the server was built or its data were made: no file sets it.
#[must_use]
pub fn is_fixed(name: &str, version: Version) -> bool {
    let form = TABLE.of(name, Product::PostgreSql, version);
    matches!(form, Some(ValueForm::Fixed))
}

/// A switch as `parse_bool` of the server reads it: a word that `on`, `off`, `true`, `false`, `yes` or `no` begins with.
fn switch(written: &str) -> Option<bool> {
    let begins = |word: &str, least: usize| {
        let start = word.as_bytes().get(..written.len());
        written.len() >= least
            && start.is_some_and(|start| start.eq_ignore_ascii_case(written.as_bytes()))
    };
    if written == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        return Some(true);
    }
    let is_off = written == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2);
    is_off.then_some(false)
}

fn one_of(words: &[(&'static str, &'static str)], written: &str) -> Result<String, String> {
    let mut found = words
        .iter()
        .filter(|(word, _)| word.eq_ignore_ascii_case(written));
    match found.next() {
        Some((_, shown)) => Ok((*shown).to_owned()),
        None => {
            let own = words.iter().filter(|(word, shown)| word == shown);
            let own: Vec<&str> = own.map(|(word, _)| *word).collect();
            Err(format!("one of {}", own.join(", ")))
        }
    }
}

/// A number with or without a unit, as `parse_int` and `parse_real` of the server read it: hexadecimal and octal,
/// since 12 with a fraction and rounded, with blanks around the unit.
///
/// # Errors
/// The values that the server expects.
fn number(
    written: &str,
    unit: Option<&'static str>,
    version: Version,
    is_whole: bool,
    bounds: Option<&RangeInclusive<f64>>,
) -> Result<String, String> {
    let is_recent = version.major >= 12;
    let units = || match unit {
        Some(unit) => {
            let mut words: Vec<&str> = units_of(unit, version).map(|(word, _)| *word).collect();
            words.reverse();
            format!("a number with one of the units {}", words.join(", "))
        }
        None if is_whole && !is_recent => "a whole number without a unit".to_owned(),
        None => "a number without a unit".to_owned(),
    };
    let (number, rest) = match is_whole {
        true => whole(written, is_recent),
        false => decimal(written),
    }
    .ok_or_else(units)?;
    let suffix = rest.trim_matches(is_space);
    let mut number = number;
    match (suffix, unit) {
        ("", _) => {}
        (_, None) => return Err(units()),
        // Fractions had no units before 12.
        (_, Some(_)) if !is_whole && !is_recent => return Err(units()),
        (suffix, Some(unit)) => {
            let base = factor(unit).unwrap_or(1.0);
            let mut smaller = units_of(unit, version);
            let (_, factor) = smaller
                .by_ref()
                .find(|(word, _)| *word == suffix)
                .ok_or_else(units)?;
            number *= factor / base;
            if let Some((_, next)) = smaller.next().filter(|_| is_recent) {
                // A fraction is rounded to the next smaller unit.
                number = (number * base / next).round_ties_even() * next / base;
            }
        }
    }
    if is_whole {
        number = match is_recent {
            true => number.round_ties_even(),
            false => number.trunc(),
        };
    }
    if let Some(bounds) = bounds.filter(|bounds| !bounds.contains(&number)) {
        let (least, most) = (bounds.start(), bounds.end());
        return Err(match unit {
            Some(unit) => format!("{least} to {most}, in units of {unit}"),
            None => format!("{least} to {most}"),
        });
    }
    Ok(match unit {
        Some(unit) => in_units(&number.to_string(), unit),
        None => number.to_string(),
    })
}

/// The units that a setting with this one takes, the largest first.
fn units_of(unit: &str, version: Version) -> impl Iterator<Item = &'static (&'static str, f64)> {
    let is_size = SIZES.iter().any(|(word, _)| *word == unit);
    let units = if is_size { SIZES } else { TIMES };
    let is_known = move |word: &str| match word {
        "B" => version.major >= 11,
        "us" => version.major >= 12,
        _ => !word.starts_with(|first: char| first.is_ascii_digit()),
    };
    units.iter().rev().filter(move |(word, _)| is_known(word))
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

/// The number that a text begins with, by `strtol` of base 0, and what follows it; since 12 by `strtod` where a fraction or
/// an exponent follows.
fn whole(text: &str, is_recent: bool) -> Option<(f64, &str)> {
    let bare = text.trim_start_matches(is_space);
    let unsigned = bare.strip_prefix(['-', '+']).unwrap_or(bare);
    let (digits, radix) = match unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => (digits, 16),
        _ if unsigned.starts_with('0') => (unsigned, 8),
        _ => (unsigned, 10),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let number = i64::from_str_radix(digits, radix).ok();
    if number.is_none() || rest.starts_with(['.', 'e', 'E']) {
        return decimal(text).filter(|_| is_recent);
    }
    let number = number? as f64;
    Some((
        if bare.starts_with('-') {
            -number
        } else {
            number
        },
        rest,
    ))
}

/// The number that a text begins with, by `strtod`, and what follows it.
fn decimal(text: &str) -> Option<(f64, &str)> {
    let bare = text.trim_start_matches(is_space);
    let sign = usize::from(bare.starts_with(['-', '+']));
    let unsigned = &bare[sign..];
    if let Some(digits) = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X"))
        && digits.starts_with(|c: char| c.is_ascii_hexdigit())
    {
        return whole(text, false);
    }
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let mut end = digits(unsigned);
    let mut count = end;
    if unsigned[end..].starts_with('.') {
        let fraction = digits(&unsigned[end + 1..]);
        count += fraction;
        end += 1 + fraction;
    }
    if count == 0 {
        return None;
    }
    if let Some(exponent) = unsigned[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['-', '+']));
        if let length @ 1.. = digits(&exponent[sign..]) {
            end += 1 + sign + length;
        }
    }
    let number: f64 = bare[..sign + end].parse().ok()?;
    Some((number, &unsigned[end..])).filter(|(number, _)| number.is_finite())
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

/// How a server of this version handles a setting called `written`.
#[must_use]
pub fn option_fate(version: Version, written: &str) -> OptionFate {
    let name = written.trim().to_ascii_lowercase();
    // Names that were given up before 8.0 and are taken for their successors.
    let name = match name.as_str() {
        "sort_mem" => "work_mem".to_owned(),
        "vacuum_mem" => "maintenance_work_mem".to_owned(),
        _ => name,
    };
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
    OptionFate::Refused(format!("is not a setting of PostgreSQL {series}"))
}

/// True for the name of a setting of any recorded version.
#[must_use]
pub fn is_setting(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let names = POSTGRESQL.lines().skip(1);
        let names = names.filter_map(|row| row.split('\t').next());
        names.map(str::to_ascii_lowercase).collect()
    });
    NAMES.contains(&name.to_ascii_lowercase())
}

/// Settings that are valid by themselves but together keep a server from starting: the one to change, and the reason.
#[must_use]
pub fn contradiction(variables: &Texts) -> Option<(&'static str, String)> {
    let word = |name: &str| variables.get(name).map_or("", String::as_str);
    let number = |name: &str| word(name).parse::<f64>().unwrap_or(0.0);
    let is_minimal = word("wal_level") == "minimal";
    let reserved = number("superuser_reserved_connections") + number("reserved_connections");
    let connections = number("max_connections");
    if is_minimal && number("max_wal_senders") > 0.0 {
        let why = "`wal_level` = minimal needs `max_wal_senders` = 0";
        Some(("wal_level", why.to_owned()))
    } else if is_minimal && !matches!(word("archive_mode"), "" | "off") {
        let why = "`wal_level` = minimal needs `archive_mode` = off";
        Some(("wal_level", why.to_owned()))
    } else if connections > 0.0 && connections <= reserved {
        let why = format!("`max_connections` must exceed the {reserved} reserved connections");
        Some(("max_connections", why))
    } else {
        None
    }
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

    /// Answers of PostgreSQL 11, 12 and 17.
    #[test]
    fn numbers_and_words_are_read_as_the_server_reads_them() {
        for (name, text, before_12, since_12) in [
            ("work_mem", "0.25GB", None, Some("268435456")),
            ("work_mem", "64 MB ", Some("67108864"), Some("67108864")),
            ("work_mem", "65536B", Some("65536"), Some("65536")),
            ("work_mem", "1024B", None, None),
            ("work_mem", "64mb", None, None),
            ("work_mem", "2 MBx", None, None),
            ("work_mem", "", None, None),
            ("work_mem", "99999999999", None, None),
            ("work_mem", "0x10000", Some("67108864"), Some("67108864")),
            ("max_connections", "100.4", None, Some("100")),
            ("max_connections", "1e2", None, Some("100")),
            ("max_connections", "0144", Some("100"), Some("100")),
            ("max_connections", " 50 ", Some("50"), Some("50")),
            ("max_connections", "-5", None, None),
            ("commit_delay", "10us", None, None),
            ("deadlock_timeout", "500000us", None, Some("0.5")),
            ("vacuum_cost_delay", "1500us", None, Some("0.0015")),
            ("seq_page_cost", "0x10", Some("16"), Some("16")),
            ("seq_page_cost", "nan", None, None),
            ("fsync", "of", Some("off"), Some("off")),
            ("fsync", "tRU", Some("on"), Some("on")),
            ("fsync", "o", None, None),
            ("fsync", " on", None, None),
            ("fsync", "", None, None),
            ("synchronous_commit", "of", None, None),
            ("synchronous_commit", "NO", Some("off"), Some("off")),
            ("wal_level", "Archive", Some("replica"), Some("replica")),
        ] {
            for (of, expected) in [
                ("11.22", before_12),
                ("12.22", since_12),
                ("17.11", since_12),
            ] {
                let read = canonical(name, text, version(of)).ok();
                assert_eq!(read.as_deref(), expected, "{of}: {name} = `{text}`");
            }
        }
        assert!(is_fixed("block_size", version("17.11")) && !is_fixed("fsync", version("17.11")));
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

    /// As 17.11 itself.
    #[test]
    fn settings_that_contradict_each_other_are_found() {
        for (changes, name) in [
            (&[][..], None),
            (&[("wal_level", "minimal")], Some("wal_level")),
            (&[("wal_level", "minimal"), ("max_wal_senders", "0")], None),
            (
                &[
                    ("wal_level", "minimal"),
                    ("max_wal_senders", "0"),
                    ("archive_mode", "on"),
                ],
                Some("wal_level"),
            ),
            (&[("max_connections", "3")], Some("max_connections")),
            (&[("max_connections", "4")], None),
        ] {
            let defaults = Defaults::postgresql(version("17.11")).unwrap();
            let mut variables: Texts = defaults
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            for (name, value) in changes {
                variables.insert((*name).to_owned(), (*value).to_owned());
            }
            let found = contradiction(&variables).map(|(name, _)| name);
            assert_eq!(found, name, "{changes:?}");
        }
    }

    #[test]
    fn settings_of_other_products_and_versions_are_refused() {
        let fate = |of: &str, name: &str| option_fate(version(of), name);
        assert!(matches!(fate("17.11", "jit"), OptionFate::Taken { .. }));
        assert_eq!(
            fate("10.23", "jit"),
            OptionFate::Refused("is not a setting of PostgreSQL 10".to_owned())
        );
        assert!(matches!(
            fate("17.11", "innodb_buffer_pool_size"),
            OptionFate::Refused(_)
        ));
        assert_eq!(fate("17.11", "pg_prewarm.autoprewarm"), OptionFate::Unknown);
        let name = "work_mem".to_owned();
        let form = OptionForm::Plain;
        assert_eq!(fate("17.11", "sort_mem"), OptionFate::Taken { name, form });
    }
}
