//! Which values a server takes for a setting, as far as that is known without starting it.
//!
//! A setting's kind follows from its compiled default: a number takes numbers, a switch takes switches.
//! Words are listed in `data/audit/values.tsv`. What is in neither is not doubted. Says nothing about
//! bounds: servers clamp a number that is out of them, which a prediction and the running server show.

use std::sync::LazyLock;

use super::defaults::Defaults;
use super::evidence::ServerEvidence;
use super::forms;
use super::server::{Product, Servers, Version};
use super::value::{Value, variable_name};

const VALUES: &str = include_str!("../../../data/audit/values.tsv");

/// Words of one variable on some servers.
#[derive(Debug)]
struct Words {
    variable: &'static str,
    on: Servers,
    takes: Takes,
    words: Vec<&'static str>,
}

/// How many of the words a value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    One,
    Several,
    /// Whatever the default looks like, a value may be any text: `log_bin` is a switch or a file.
    Any,
}

static WORDS: LazyLock<Vec<Words>> =
    LazyLock::new(|| parse(VALUES).expect("the table that is compiled in parses"));

fn parse(text: &'static str) -> Result<Vec<Words>, String> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [variable, on, takes, words] = cells[..] else {
            return Err(format!("`{line}` has not four cells"));
        };
        let takes = match takes {
            "one" => Takes::One,
            "several" => Takes::Several,
            "any" => Takes::Any,
            other => return Err(format!("`{other}` is neither one, several nor any")),
        };
        Ok(Words {
            variable,
            on: Servers::parse(on)?,
            takes,
            words: words.split(',').filter(|word| !word.is_empty()).collect(),
        })
    };
    text.lines().skip(1).map(row).collect()
}

/// Whether `server`, whose variables are compiled defaults or were read, would take `written` as the
/// value of `name`.
///
/// # Errors
/// What the server expects there, when it is certain that it refuses the value.
pub fn check_value(server: &ServerEvidence, name: &str, written: &str) -> Result<(), String> {
    let name = variable_name(name);
    let value = written.trim().trim_matches(['"', '\'']);
    if !server.product.has_innodb() {
        return forms::canonical(server.product, &name, value, server.version).map(|_| ());
    }
    // What a server shows it also takes: an empty flush method of old versions, for example.
    if server
        .variables
        .get(&name)
        .is_some_and(|shown| shown == value)
    {
        return Ok(());
    }
    let words: Vec<&Words> = WORDS
        .iter()
        .filter(|words| words.variable == name)
        .collect();
    let of_server = words
        .iter()
        .find(|words| words.on.includes(server.product, server.version));
    if let Some(found) = of_server {
        // Between two recorded versions nobody looked when a word came or went.
        let is_known = || words.iter().any(|words| is_word(words, value));
        let is_taken = if is_recorded(server.product, server.version) {
            is_word(found, value)
        } else {
            is_known()
        };
        return if is_taken {
            Ok(())
        } else {
            let list = found.words.join(", ");
            let many = if found.takes == Takes::Several {
                " or several of them"
            } else {
                ""
            };
            Err(refusal(&name, value, &format!("one of {list}{many}")))
        };
    }
    let Some(default) = server.variables.get(&name) else {
        return Ok(());
    };
    // What is not listed for this server may be a word on it.
    if !words.is_empty() {
        return Ok(());
    }
    if matches!(default.as_str(), "ON" | "OFF") {
        // An option without a value switches on.
        return match Value::read(value).switch() {
            None if !value.is_empty() => Err(refusal(&name, value, "ON or OFF")),
            _ => Ok(()),
        };
    }
    let is_version = name.starts_with("version") || name == "innodb_version";
    if default.parse::<f64>().is_ok() && !is_version && !is_number(value) {
        let expected = "a number, perhaps with one of the suffixes K, M, G, T, P, E";
        return Err(refusal(&name, value, expected));
    }
    Ok(())
}

/// The word of `name` on `server` that goes by this number; `None` where words have none.
#[must_use]
pub fn word_at(server: &ServerEvidence, name: &str, number: usize) -> Option<&'static str> {
    let is_of = |words: &&Words| {
        words.variable == name
            && words.takes == Takes::One
            && words.on.includes(server.product, server.version)
    };
    WORDS.iter().find(is_of)?.words.get(number).copied()
}

fn refusal(name: &str, value: &str, expected: &str) -> String {
    let shown: String = value.chars().take(60).collect();
    format!("`{name} = {shown}`: the server expects {expected}")
}

/// True when defaults of this series are recorded.
fn is_recorded(product: Product, version: Version) -> bool {
    let wanted = product.recorded_as();
    let series = |version: Version| product.series(version);
    Defaults::servers()
        .any(|(_, product, recorded)| product == wanted && series(recorded) == series(version))
}

fn is_word(words: &Words, value: &str) -> bool {
    let is_listed = |word: &str| {
        let is_same = |listed: &&str| listed.eq_ignore_ascii_case(word.trim());
        // Words can be given by their numbers, and ON and OFF in other ways.
        let is_number = word
            .trim()
            .parse::<u64>()
            .is_ok_and(|number| words.takes == Takes::Several || number < words.words.len() as u64);
        let is_switch = || {
            let has = |wanted: &str| words.words.contains(&wanted);
            Value::read(word).switch().is_some() && has("ON") && has("OFF")
        };
        words.words.iter().any(is_same) || is_number || is_switch()
    };
    match words.takes {
        Takes::Any => true,
        Takes::One => is_listed(value),
        Takes::Several => value
            .split(',')
            .all(|word| word.trim().is_empty() || is_listed(word)),
    }
}

/// A number as option files have it: `-1`, `0.5`, `16K`. Of a suffix servers read the first letter only, so
/// `8GB` is one, too.
fn is_number(value: &str) -> bool {
    if value.parse::<f64>().is_ok_and(f64::is_finite) {
        return true;
    }
    let end = value
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')))
        .map_or(value.len(), |(at, _)| at);
    let (digits, suffix) = value.split_at(end);
    let is_suffix = suffix
        .chars()
        .next()
        .is_some_and(|first| "kmgtpe".contains(first.to_ascii_lowercase()));
    is_suffix && digits.parse::<i128>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerEvidence {
        Defaults::of(name).unwrap().evidence("a").unwrap()
    }

    #[track_caller]
    fn taken(name: &str, settings: &[(&str, &str)]) {
        for (setting, value) in settings {
            assert_eq!(
                check_value(&server(name), setting, value),
                Ok(()),
                "{name}: {setting} = {value}"
            );
        }
    }

    #[track_caller]
    fn refused(name: &str, settings: &[(&str, &str, &str)]) {
        for (setting, value, expected) in settings {
            let why = check_value(&server(name), setting, value).expect_err(setting);
            assert!(why.contains(expected), "{name}: {why}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_was_expected() {
        refused(
            "mysql-5.6.24",
            &[
                ("innodb_buffer_pool_size", "banana", "a number"),
                ("innodb_log_file_size", "8Q", "suffixes"),
                ("innodb_log_file_size", "G", "suffixes"),
                ("innodb-io-capacity", "", "a number"),
                ("innodb_file_per_table", "maybe", "ON or OFF"),
                ("innodb_flush_method", "O_DIRCT", "O_DIRECT_NO_FSYNC"),
                ("transaction-isolation", "REPEATABLE READ", "SERIALIZABLE"),
                ("sql_mode", "ANSI,TIME_TRUNCATE_FRACTIONAL", "several"),
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

    #[test]
    fn what_servers_take_is_taken() {
        taken(
            "mysql-5.6.24",
            &[
                ("innodb_buffer_pool_size", "50G"),
                ("innodb_max_dirty_pages_pct", "75.5"),
                ("table_definition_cache", "-1"),
                ("log-bin", "mysql-bin"),
                ("innodb_file_per_table", ""),
                ("query_cache_type", "2"),
                ("query_cache_type", "DEMAND"),
                ("sql_mode", ""),
                ("no_such_variable", "banana"),
                ("innodb_checksum_algorithm", "CRC32"),
            ],
        );
        taken(
            "mysql-8.0.33",
            &[("innodb_doublewrite", "TRUE"), ("innodb_doublewrite", "1")],
        );
        taken("mariadb-11.4.5", &[("innodb_doublewrite", "fast")]);
        // Nobody recorded a 10.6; its words are somewhere between those of its neighbours.
        let mut unrecorded = server("mariadb-10.5.23");
        unrecorded.version = Version::parse("10.6.12").unwrap();
        for word in ["innodb", "full_crc32"] {
            assert!(check_value(&unrecorded, "innodb_checksum_algorithm", word).is_ok());
        }
        assert!(check_value(&unrecorded, "innodb_checksum_algorithm", "md5").is_err());
    }

    /// A table that refuses a compiled default would refuse what every server runs with.
    #[test]
    fn every_recorded_default_is_taken() {
        for (name, _, _) in Defaults::servers() {
            let server = server(name);
            for (variable, value) in &server.variables {
                assert_eq!(check_value(&server, variable, value), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn every_row_of_the_table_has_words_or_takes_any() {
        for words in WORDS.iter() {
            assert_eq!(
                words.takes == Takes::Any,
                words.words.is_empty(),
                "{}",
                words.variable
            );
        }
    }
}
