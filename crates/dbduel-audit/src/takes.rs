//! Which values a server takes for a setting, and what it makes of them, as far as that is known without starting it.
//!
//! `data/values.tsv` has the form of each option's value: words, a switch, a number and its bounds. For an option
//! without a row the compiled default decides: a number takes numbers, a switch takes switches. Any other value is
//! accepted. The reading is that of `my_getopt`, which both products share.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use dbduel_text::Version;

use super::defaults::Defaults;
use super::evidence::ServerEvidence;
use super::forms;
use super::server::Product;
use super::value::variable_name;
use super::value_table::ValueTable;

const VALUES: &str = include_str!("../data/values.tsv");

/// How a server handles a value that it starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueFate {
    /// It shows this afterwards: a word spelt out, a number within its bounds.
    InEffect(String),
    /// It warns and leaves the setting as it is.
    Ignored,
}

/// The values of one option.
#[derive(Debug)]
struct Values {
    form: ValueForm,
    /// True when the option may stand without a value: a switch whose row has no `!`, and others whose row has a `?`.
    is_optional: bool,
}

/// The form that a value has.
#[derive(Debug, Clone, PartialEq)]
enum ValueForm {
    /// One of these words, or enough of it to tell it from the others, or its place among them from 0.
    One(Vec<&'static str>),
    /// Several of them, or the number that has their bits.
    Several(Vec<&'static str>),
    /// One of these words, letter by letter.
    Exact(Vec<&'static str>),
    /// Whatever the default looks like, any text or none: `log_bin` is a switch or a file.
    Any,
    /// Any text.
    Text,
    /// Nothing: the option stands for itself.
    Nothing,
    /// ON or OFF; anything else switches off.
    Switch,
    /// ON or OFF; anything else is ignored.
    Flag,
    /// A whole number, and of what it is a multiple.
    Whole(Option<RangeInclusive<i128>>, i128),
    /// A whole number that takes no sign.
    Natural(Option<RangeInclusive<i128>>, i128),
    /// A decimal fraction.
    Real(Option<RangeInclusive<f64>>),
}

static TABLE: LazyLock<ValueTable<Values>> = LazyLock::new(|| {
    let values = |takes: &'static str, values: &'static str| {
        let form = form(takes.trim_end_matches(['?', '!']), values)?;
        let is_switch = matches!(form, ValueForm::Switch | ValueForm::Flag);
        Ok(Values {
            form,
            is_optional: takes.ends_with('?') || is_switch && !takes.ends_with('!'),
        })
    };
    ValueTable::parse(VALUES, values).expect("the table that is compiled in parses")
});

fn form(takes: &str, values: &'static str) -> Result<ValueForm, String> {
    let words = || values.split(',').filter(|word| !word.is_empty()).collect();
    Ok(match takes {
        "one" => ValueForm::One(words()),
        "several" => ValueForm::Several(words()),
        "exact" => ValueForm::Exact(words()),
        "any" => ValueForm::Any,
        "text" => ValueForm::Text,
        "nothing" => ValueForm::Nothing,
        "switch" => ValueForm::Switch,
        "flag" => ValueForm::Flag,
        "whole" | "natural" => {
            let (range, step) = values.split_once('/').unwrap_or((values, "1"));
            let step = step.parse().map_err(|_| format!("`{step}` is no step"))?;
            match takes {
                "whole" => ValueForm::Whole(bounds(range)?, step),
                _ => ValueForm::Natural(bounds(range)?, step),
            }
        }
        "real" => ValueForm::Real(bounds(values)?),
        other => return Err(format!("`{other}` is no form of a value")),
    })
}

fn bounds<N: std::str::FromStr>(text: &str) -> Result<Option<RangeInclusive<N>>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let ends = text.split_once("..");
    let ends = ends.and_then(|(least, most)| Some(least.parse().ok()?..=most.parse().ok()?));
    ends.map(Some)
        .ok_or_else(|| format!("`{text}` has no two ends"))
}

/// What `server`, whose variables are compiled defaults or were read, makes of `written` as the value of `name`; `None`
/// stands for an option without a value. A value of which nothing is known is in effect as it is.
///
/// # Errors
/// What the server expects there, when it is certain that it refuses the value.
pub fn value_fate(
    server: &ServerEvidence,
    name: &str,
    written: Option<&str>,
) -> Result<ValueFate, String> {
    let name = variable_name(name);
    if !server.product.has_innodb() {
        let written = written.unwrap_or_default();
        let canonical = forms::canonical(server.product, &name, written, server.version);
        return canonical.map(ValueFate::InEffect);
    }
    let value = written;
    let shown = server.variables.get(&name);
    // What a server shows it also takes: an empty flush method of old versions, for example.
    if let Some(shown) = shown.filter(|shown| Some(shown.as_str()) == value) {
        return Ok(ValueFate::InEffect(shown.clone()));
    }
    let refused = |expected: String| {
        let shown: String = value.unwrap_or_default().chars().take(60).collect();
        format!("`{name} = {shown}`: the server expects {expected}")
    };
    let Some(found) = TABLE.of(&name, server.product, server.version) else {
        let form = shown.map_or(ValueForm::Any, |default| {
            ValueForm::of_default(&name, default)
        });
        return match form.read(value, server) {
            // What is listed for other servers may be a word on this one.
            Err(_) if TABLE.all_of(&name).next().is_some() => ValueForm::Any.read(value, server),
            fate => fate,
        }
        .map_err(refused);
    };
    let value = match value {
        // A text that is left out is empty.
        None if found.is_optional && found.form == ValueForm::Text => Some(""),
        None if found.is_optional => Some("1"),
        None if matches!(found.form, ValueForm::Switch | ValueForm::Flag) => {
            return Err(refused(found.form.expected()));
        }
        value => value,
    };
    if is_recorded(server.product, server.version) {
        return found.form.read(value, server).map_err(refused);
    }
    // Between two recorded versions it is not recorded when a word or a bound came or went.
    let mut fates = TABLE
        .all_of(&name)
        .map(|row| row.form.unbounded().read(value, server));
    match fates.find_map(Result::ok) {
        Some(fate) => Ok(fate),
        None => Err(refused(found.form.expected())),
    }
}

impl ValueForm {
    /// The form of a value of which only the compiled default is known.
    fn of_default(name: &str, default: &str) -> Self {
        let is_version = name.starts_with("version") || name == "innodb_version";
        if matches!(default, "ON" | "OFF") {
            ValueForm::Switch
        } else if default.parse::<i128>().is_ok() && !is_version {
            ValueForm::Whole(None, 1)
        } else if default.parse::<f64>().is_ok() && !is_version {
            ValueForm::Real(None)
        } else {
            ValueForm::Any
        }
    }

    /// The same without bounds, which are those of recorded versions only.
    fn unbounded(&self) -> ValueForm {
        match self {
            ValueForm::Whole(..) => ValueForm::Whole(None, 1),
            ValueForm::Natural(..) => ValueForm::Natural(None, 1),
            ValueForm::Real(_) => ValueForm::Real(None),
            other => other.clone(),
        }
    }

    /// What a server makes of a value.
    ///
    /// # Errors
    /// What it expects instead.
    fn read(&self, value: Option<&str>, server: &ServerEvidence) -> Result<ValueFate, String> {
        let Some(value) = value else {
            return match self {
                ValueForm::Switch | ValueForm::Flag => Ok(ValueFate::InEffect("ON".to_owned())),
                ValueForm::Any => Ok(ValueFate::InEffect(String::new())),
                ValueForm::Nothing => Ok(ValueFate::InEffect("ON".to_owned())),
                _ => Err(self.expected()),
            };
        };
        let refused = || self.expected();
        // Since 5.7 MySQL refuses a value that is empty where it is no text.
        let refuses_empty = server.product != Product::MariaDb
            && (server.version.major, server.version.minor) >= (5, 7);
        if value.is_empty() && refuses_empty && !self.may_be_empty() {
            return Err(refused());
        }
        let shown = match self {
            ValueForm::Nothing => return Err(refused()),
            ValueForm::Any | ValueForm::Text => value.to_owned(),
            ValueForm::Switch => shown_switch(switch(value) == Some(true)),
            ValueForm::Flag => match flag(value, server) {
                Some(on) => shown_switch(on),
                None => return Ok(ValueFate::Ignored),
            },
            ValueForm::Exact(words) => {
                let word = words.iter().find(|word| **word == value);
                (*word.ok_or_else(refused)?).to_owned()
            }
            ValueForm::One(words) => {
                let number = || leading_number(value).and_then(|number| words.get(number as usize));
                let word = match word_of(words, value) {
                    WordMatch::Word(word) => Some(word),
                    WordMatch::Several => None,
                    WordMatch::None => number().copied(),
                };
                word.ok_or_else(refused)?.to_owned()
            }
            ValueForm::Several(words) => several(words, value).ok_or_else(refused)?,
            ValueForm::Whole(bounds, step) | ValueForm::Natural(bounds, step) => {
                let is_natural = matches!(self, ValueForm::Natural(..));
                let is_negative = value.trim_start().starts_with('-');
                let is_unsigned = bounds.as_ref().is_some_and(|bounds| *bounds.start() >= 0);
                let number = match bounds {
                    // Of what no sign may stand before, MySQL since 5.7 reads nothing but the sign.
                    Some(bounds) if is_negative && is_unsigned && refuses_empty => *bounds.start(),
                    _ => whole(value, server).ok_or_else(refused)?,
                };
                if is_negative && is_natural {
                    return Err(refused());
                }
                // Before MySQL 5.7, and of MariaDB that takes a sign, a negative number wraps around.
                let is_signed = server.product == Product::MariaDb
                    && (server.version.major, server.version.minor) >= (10, 11);
                let wraps = !refuses_empty && is_unsigned && !is_signed;
                let number = if number < 0 && wraps {
                    number + (1 << 64)
                } else {
                    number
                };
                let number = match bounds {
                    Some(bounds) => {
                        let number = number.min(*bounds.end());
                        (number - number.rem_euclid(*step)).max(*bounds.start())
                    }
                    None => number,
                };
                number.to_string()
            }
            ValueForm::Real(bounds) => {
                let number = real(value).ok_or_else(refused)?;
                let number = match bounds {
                    Some(bounds) => number.clamp(*bounds.start(), *bounds.end()),
                    None => number,
                };
                format!("{number:.6}")
            }
        };
        Ok(ValueFate::InEffect(shown))
    }

    /// A switch that is empty is off, and a list or a text may be.
    fn may_be_empty(&self) -> bool {
        !matches!(
            self,
            ValueForm::One(_) | ValueForm::Whole(..) | ValueForm::Natural(..) | ValueForm::Real(_)
        )
    }

    fn expected(&self) -> String {
        match self {
            ValueForm::One(words) | ValueForm::Exact(words) => {
                format!("one of {}", words.join(", "))
            }
            ValueForm::Several(words) => format!("one or more of {}", words.join(", ")),
            ValueForm::Whole(..) => {
                "a number, optionally with a suffix K, M, G, T, P or E".to_owned()
            }
            ValueForm::Natural(..) => {
                "a number that is not negative, optionally with a suffix K, M, G, T, P or E"
                    .to_owned()
            }
            ValueForm::Real(_) => "a number without a suffix".to_owned(),
            ValueForm::Text | ValueForm::Any => "a value".to_owned(),
            ValueForm::Nothing => "no value".to_owned(),
            ValueForm::Switch | ValueForm::Flag => "ON or OFF".to_owned(),
        }
    }
}

/// True for an option whose value is a text.
#[must_use]
pub fn is_text(server: &ServerEvidence, name: &str) -> bool {
    let row = TABLE.of(name, server.product, server.version);
    row.is_some_and(|row| matches!(row.form, ValueForm::Any | ValueForm::Text))
}

/// The word of `name` on `server` that goes by this number; `None` where words have none.
#[must_use]
pub fn word_at(server: &ServerEvidence, name: &str, number: usize) -> Option<&'static str> {
    match &TABLE.of(name, server.product, server.version)?.form {
        ValueForm::One(words) => words.get(number).copied(),
        _ => None,
    }
}

/// True when defaults of this series are recorded.
fn is_recorded(product: Product, version: Version) -> bool {
    let wanted = product.recorded_as();
    let series = |version: Version| product.series(version);
    Defaults::servers()
        .any(|(_, product, recorded)| product == wanted && series(recorded) == series(version))
}

/// How a text matches words.
enum WordMatch {
    Word(&'static str),
    /// It is the beginning of more than one.
    Several,
    None,
}

/// The word that is written, in whatever case, or of which enough is written.
fn word_of(words: &[&'static str], written: &str) -> WordMatch {
    let begins = |word: &&&'static str| {
        let start = word.as_bytes().get(..written.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(written.as_bytes()))
    };
    if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(written)) {
        return WordMatch::Word(word);
    }
    if written.is_empty() {
        return WordMatch::None;
    }
    let mut longer = words.iter().filter(begins);
    match (longer.next(), longer.next()) {
        (Some(word), None) => WordMatch::Word(word),
        (Some(_), Some(_)) => WordMatch::Several,
        (None, _) => WordMatch::None,
    }
}

/// Words between commas, in the order of the server's list; or those whose bits a number has.
fn several(words: &[&'static str], value: &str) -> Option<String> {
    let mut bits: u128 = 0;
    let named = value.split(',').filter(|_| !value.is_empty());
    let is_named = named.into_iter().all(|part| match word_of(words, part) {
        WordMatch::Word(word) => {
            let place = words.iter().position(|other| *other == word).unwrap_or(0);
            bits |= 1 << place;
            true
        }
        _ => false,
    });
    if !is_named {
        bits = leading_number(value)?.into();
        if bits >> words.len() > 0 {
            return None;
        }
    }
    let set = words.iter().enumerate();
    let set = set.filter(|(place, _)| bits >> place & 1 == 1);
    let set: Vec<&str> = set.map(|(_, word)| *word).collect();
    Some(set.join(","))
}

/// A text that is a number from its first letter to its last; an empty one is 0.
fn leading_number(value: &str) -> Option<u64> {
    let value = value.trim_start();
    match value {
        "" => Some(0),
        _ => value.strip_prefix('+').unwrap_or(value).parse().ok(),
    }
}

fn shown_switch(on: bool) -> String {
    if on { "ON" } else { "OFF" }.to_owned()
}

fn switch(value: &str) -> Option<bool> {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    if is("true") || is("on") || is("1") {
        return Some(true);
    }
    (is("false") || is("off") || is("0")).then_some(false)
}

/// A switch whose value is ignored when it is none. But for MySQL since 5.6, one that begins with 1 or 0 is that.
fn flag(value: &str, server: &ServerEvidence) -> Option<bool> {
    let is_exact = server.product != Product::MariaDb
        && (server.version.major, server.version.minor) >= (5, 6);
    switch(value).or(match value.chars().next() {
        Some('1') if !is_exact => Some(true),
        Some('0') if !is_exact => Some(false),
        _ => None,
    })
}

/// A number as option files have it: `-1`, `16K`, `8GB`, of whose suffix servers read the first letter only.
fn whole(value: &str, server: &ServerEvidence) -> Option<i128> {
    let text = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let number: i128 = match digits {
        "" => 0,
        // A text without digits is no number, whose end is then where it began: at its sign.
        _ => u64::try_from(digits.parse::<u128>().ok()?).ok()?.into(),
    };
    let suffix = if digits.is_empty() { text } else { suffix };
    let knows_large = match server.product {
        Product::MariaDb => (server.version.major, server.version.minor) >= (10, 3),
        Product::MySql | Product::Percona | Product::PostgreSql | Product::Sqlite => {
            server.version.major >= 8
        }
    };
    let shift = match suffix.chars().next().map(|c| c.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') if knows_large => 40,
        Some('p') if knows_large => 50,
        Some('e') if knows_large => 60,
        Some(_) => return None,
    };
    let is_negative = text.starts_with('-');
    let number = match u64::try_from(number << shift) {
        Ok(number) => number,
        // MySQL since 8.0 refuses what does not fit; before, and MariaDB, it is cut to 64 bits.
        Err(_)
            if !is_negative && server.product != Product::MariaDb && server.version.major >= 8 =>
        {
            return None;
        }
        Err(_) => (number << shift) as u64,
    };
    Some(if is_negative {
        -i128::from(number)
    } else {
        number.into()
    })
}

/// A decimal fraction; an empty text is 0.
fn real(value: &str) -> Option<f64> {
    let text = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
    if text.is_empty() {
        return Some(0.0);
    }
    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    text.parse().ok().filter(|_| text.chars().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerEvidence {
        Defaults::of(name).unwrap().evidence("a").unwrap()
    }

    /// Of an option without a value, when the value is empty.
    fn fate(server: &ServerEvidence, setting: &str, value: &str) -> Result<ValueFate, String> {
        value_fate(
            server,
            setting,
            Some(value).filter(|value| !value.is_empty()),
        )
    }

    #[track_caller]
    fn taken(name: &str, settings: &[(&str, &str)]) {
        for (setting, value) in settings {
            let fate = fate(&server(name), setting, value);
            assert!(fate.is_ok(), "{name}: {setting} = {value}: {fate:?}");
        }
    }

    #[track_caller]
    fn refused(name: &str, settings: &[(&str, &str, &str)]) {
        for (setting, value, expected) in settings {
            let why = fate(&server(name), setting, value).expect_err(setting);
            assert!(why.contains(expected), "{name}: {why}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_was_expected() {
        refused(
            "mysql-5.6.24",
            &[
                ("innodb_buffer_pool_size", "banana", "a number"),
                ("innodb_log_file_size", "8Q", "suffix"),
                ("innodb-io-capacity", "", "a number"),
                ("innodb_flush_method", "O_DIRCT", "O_DIRECT_NO_FSYNC"),
                ("transaction-isolation", "REPEATABLE READ", "SERIALIZABLE"),
                (
                    "sql_mode",
                    "ANSI,TIME_TRUNCATE_FRACTIONAL",
                    "one or more of",
                ),
                ("innodb_checksum_algorithm", "full_crc32", "one of"),
            ],
        );
        // Words come and go with versions.
        refused(
            "mariadb-10.11.5",
            &[("innodb_checksum_algorithm", "innodb", "full_crc32")],
        );
        refused(
            "mysql-8.0.33",
            &[("innodb_doublewrite", "fast", "DETECT_ONLY")],
        );
    }

    /// Answers of the servers' own `--verbose --help`.
    #[test]
    fn values_become_what_their_server_shows() {
        let shown = |of: &str, setting: &str, value: &str, expected: Option<&str>| {
            let fate = value_fate(&server(of), setting, Some(value));
            let expected = expected.map(|shown| ValueFate::InEffect(shown.to_owned()));
            assert_eq!(fate.ok(), expected, "{of}: {setting} = `{value}`");
        };
        for of in ["mysql-5.6.24", "mysql-8.0.33", "mariadb-10.11.19"] {
            shown(of, "general_log", "maybe", Some("OFF"));
            shown(of, "general_log", "yes", Some("OFF"));
            shown(of, "general_log", "True", Some("ON"));
            shown(of, "innodb_file_per_table", "off", Some("OFF"));
            shown(of, "binlog_format", "r", Some("ROW"));
            shown(of, "sql_mode", "ansi_q", Some("ANSI_QUOTES"));
            shown(of, "sql_mode", "3", Some("REAL_AS_FLOAT,PIPES_AS_CONCAT"));
            shown(of, "sql_mode", "ANSI, ANSI_QUOTES", None);
            shown(of, "max_connections", "+12", Some("12"));
            shown(of, "max_connections", "12kb", Some("12288"));
            shown(of, "max_connections", "1.5", None);
            shown(of, "long_query_time", "1.5", Some("1.500000"));
            shown(of, "long_query_time", "1.5s", None);
        }
        shown(
            "mariadb-10.11.19",
            "transaction_isolation",
            "1",
            Some("READ-COMMITTED"),
        );
        shown("mariadb-10.11.19", "transaction_isolation", "READ", None);
        shown(
            "mariadb-10.11.19",
            "transaction_isolation",
            "",
            Some("READ-UNCOMMITTED"),
        );
        shown("mysql-8.0.33", "transaction_isolation", "", None);
        shown("mariadb-10.11.19", "max_connections", "-5", None);
        shown("mysql-8.0.33", "max_connections", "-5", Some("1"));
        shown("mysql-5.6.24", "max_connections", "-5", Some("100000"));
        shown("mariadb-11.8.6", "tcp_keepalive_interval", "-5", Some("0"));
        shown("mysql-5.6.24", "max_connections", "", Some("1"));
        shown("mysql-8.0.33", "max_connections", "", None);
        shown("mysql-5.6.24", "innodb_log_file_size", "1T", None);
        shown(
            "mysql-8.0.33",
            "innodb_log_file_size",
            "1T",
            Some("1099511627776"),
        );
        let overflowing = "30000000000G";
        shown("mysql-8.0.33", "sort_buffer_size", overflowing, None);
        let cut = Some("13765510646290448384");
        shown("mariadb-10.11.19", "sort_buffer_size", overflowing, cut);
        shown("mysql-5.6.24", "innodb_flush_method", "o_direct", None);
        shown(
            "mariadb-10.11.19",
            "innodb_flush_method",
            "o_direct",
            Some("O_DIRECT"),
        );
        shown("mariadb-10.11.19", "innodb_flush_method", "o_dir", None);
        for of in ["mysql-5.6.24", "mariadb-10.11.19"] {
            let fate = value_fate(&server(of), "innodb_doublewrite", Some("DETECT_ONLY"));
            assert_eq!(fate, Ok(ValueFate::Ignored), "{of}");
        }
        let fate = value_fate(&server("mysql-5.6.24"), "innodb_file_per_table", Some("1x"));
        assert_eq!(fate, Ok(ValueFate::Ignored));
        shown(
            "mariadb-10.11.19",
            "innodb_file_per_table",
            "0x",
            Some("OFF"),
        );
    }

    #[test]
    fn what_servers_take_is_taken() {
        taken(
            "mysql-5.6.24",
            &[
                ("innodb_buffer_pool_size", "50G"),
                ("innodb_log_file_size", "G"),
                ("innodb_file_per_table", "maybe"),
                ("table_definition_cache", "-1"),
                ("log-bin", "mysql-bin"),
                ("innodb_file_per_table", ""),
                ("query_cache_type", "2"),
                ("query_cache_type", "DEMAND"),
                ("no_such_variable", "banana"),
                ("innodb_checksum_algorithm", "CRC32"),
            ],
        );
        let empty = value_fate(&server("mysql-5.6.24"), "sql_mode", Some(""));
        assert_eq!(empty, Ok(ValueFate::InEffect(String::new())));
        taken(
            "mysql-8.0.33",
            &[("innodb_doublewrite", "TRUE"), ("innodb_doublewrite", "1")],
        );
        taken("mariadb-11.4.5", &[("innodb_doublewrite", "fast")]);
        // 10.6 is not recorded; its words are between those of its neighbours.
        let mut unrecorded = server("mariadb-10.5.23");
        unrecorded.version = Version::parse("10.6.12").unwrap();
        for word in ["innodb", "full_crc32"] {
            assert!(fate(&unrecorded, "innodb_checksum_algorithm", word).is_ok());
        }
        assert!(fate(&unrecorded, "innodb_checksum_algorithm", "md5").is_err());
    }

    /// A table that refuses a compiled default would refuse what every server runs with.
    #[test]
    fn every_recorded_default_is_taken() {
        for (name, _, _) in Defaults::servers() {
            let server = server(name);
            for (variable, value) in &server.variables {
                let value = &forms::written(server.product, variable, value, server.version);
                let fate = value_fate(&server, variable, Some(value));
                let shown = ValueFate::InEffect(server.variables[variable].clone());
                assert_eq!(fate, Ok(shown), "{name}: {variable}");
            }
        }
    }

    #[test]
    fn every_word_is_there_and_every_bound_in_order() {
        for (variable, row) in TABLE.iter() {
            let is_sound = match &row.form {
                ValueForm::One(words) | ValueForm::Several(words) | ValueForm::Exact(words) => {
                    !words.is_empty() && words.len() < 128
                }
                ValueForm::Whole(bounds, step) | ValueForm::Natural(bounds, step) => {
                    *step > 0 && bounds.as_ref().is_none_or(|bounds| !bounds.is_empty())
                }
                ValueForm::Real(bounds) => bounds.as_ref().is_none_or(|bounds| !bounds.is_empty()),
                _ => true,
            };
            assert!(is_sound, "{variable}");
        }
    }
}
