//! The original's configuration files, such as `LinkConfigMysql.properties` and `FBWorkload.properties`.
//!
//! All of their keys are known. Most are parameters; some set the number and rate of clients; the others have no
//! meaning here, each for the reason stated beside it.

use dbduel_text::nearest;

use super::specs::specs;
use crate::completion::{Import, ImportError};

/// Keys of the original without effect, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("data_file", "the published sample is known by its knots"),
    ("linkstore", "the store is MySQL or MariaDB"),
    ("nodestore", "the store is MySQL or MariaDB"),
    ("host", "contenders say where their servers are"),
    ("port", "contenders say where their servers are"),
    ("user", "contenders say who logs in"),
    ("password", "passwords stand in files of their own"),
    ("dbid", "contests have a database of their own"),
    ("linktable", "tables have fixed names"),
    ("counttable", "tables have fixed names"),
    ("nodetable", "tables have fixed names"),
    ("debuglevel", "messages are not for debugging"),
    ("progressfreq", "progress is shown as it comes"),
    ("displayfreq", "progress is shown as it comes"),
    ("load_progress_interval", "progress is shown as it comes"),
    ("req_progress_interval", "progress is shown as it comes"),
    ("maxsamples", "every latency is counted"),
    (
        "loader_chunk_size",
        "chunks are part of the definition of a dataset",
    ),
    ("load_random_seed", "the plan has the seeds"),
    ("request_random_seed", "the plan has the seeds"),
    ("requests", "the budget of a contest ends it"),
    ("maxtime", "the budget of a contest ends it"),
    (
        "warmup_time",
        "a warm-up ends when it is seen to have ended",
    ),
    ("max_failed_requests", "failures are counted and judged"),
    (
        "mysql_bulk_insert_batch",
        "INSERTs are as long as a packet allows",
    ),
    (
        "MySQL_bulk_insert_batch",
        "INSERTs are as long as a packet allows",
    ),
    (
        "mysql_disable_binlog_load",
        "settings of a server are the contender's",
    ),
    (
        "MySQL_disable_binlog_load",
        "settings of a server are the contender's",
    ),
];

/// Parses a file of properties.
pub(super) fn import(text: &str) -> Result<Import, ImportError> {
    let specs = specs();
    let mut import = Import::default();
    for Property { key, value, line } in properties(text)? {
        let wrong = |why| ImportError { line, why };
        let number = || {
            value
                .parse::<f64>()
                .map_err(|_| wrong(format!("`{key}` takes a number, found `{value}`")))
        };
        match key.as_str() {
            "workload_file" => import.next_file = Some(value),
            "requesters" => {
                let clients = number()?;
                if clients < 1.0 || clients.fract() != 0.0 || clients > f64::from(u32::MAX) {
                    return Err(wrong(format!(
                        "`requesters` takes a whole number from 1, found `{value}`"
                    )));
                }
                import.clients = Some(clients as u32);
            }
            "requestrate" => {
                let rate = number()?;
                import.rate_each = (rate > 0.0).then_some(rate);
            }
            key if specs.iter().any(|spec| spec.name == key) => {
                import.parameters.push((key.to_owned(), value.into(), line));
            }
            key if WITHOUT_EFFECT.iter().any(|(known, _)| *known == key) => {}
            key => {
                let others = ["workload_file", "requesters", "requestrate"];
                let meant = nearest(key, specs.iter().map(|spec| spec.name).chain(others));
                let meant = meant
                    .map(|name| format!(" (did you mean `{name}`?)"))
                    .unwrap_or_default();
                return Err(wrong(format!("`{key}` is not a key of LinkBench{meant}")));
            }
        }
    }
    Ok(import)
}

/// A key with its value.
struct Property {
    key: String,
    value: String,
    line: usize,
}

/// The properties of a text in Java's format: `key = value`, with `:` or white space for `=`, comments after `#` or
/// `!`, and lines continued by a backslash.
fn properties(text: &str) -> Result<Vec<Property>, ImportError> {
    let mut found = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((first, line)) = lines.next() {
        let mut logical = first.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while let Some(begun) = logical.strip_suffix('\\') {
            let next = lines.next().map_or("", |(next, _)| next.trim_start());
            logical = format!("{begun}{next}");
        }
        let end =
            logical.find(|letter: char| letter == '=' || letter == ':' || letter.is_whitespace());
        let (key, rest) = logical.split_at(end.unwrap_or(logical.len()));
        let rest = rest.trim_start();
        let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
        if value.is_empty() && key != "link_multiget_dist" {
            return Err(ImportError {
                line,
                why: format!("`{key}` has no value"),
            });
        }
        found.push(Property {
            key: key.to_owned(),
            value: value.to_owned(),
            line,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_as_java_does() {
        let text = "# comment\n! another\n\n  maxid1 = 5\nrequesters:7\nlinkstore com.\\\n   example\nread_shape=0.5 \n";
        let found: Vec<_> = properties(text)
            .unwrap()
            .into_iter()
            .map(|property| (property.key, property.value, property.line))
            .collect();
        let expected = [
            ("maxid1", "5", 4),
            ("requesters", "7", 5),
            ("linkstore", "com.example", 6),
            ("read_shape", "0.5", 8),
        ];
        assert_eq!(
            found,
            expected.map(|(key, value, line)| (key.to_owned(), value.to_owned(), line))
        );
    }

    #[test]
    fn no_key_has_two_meanings() {
        for (key, why) in WITHOUT_EFFECT {
            assert!(specs().iter().all(|spec| spec.name != *key), "{key}");
            assert!(!why.is_empty());
        }
    }

    #[test]
    fn keys_without_effect_are_accepted_and_unknown_ones_are_not() {
        let import = |text| super::import(text);
        assert_eq!(
            import("host = somewhere\nmaxtime = 5\n"),
            Ok(Import::default())
        );
        assert_eq!(import("requestrate = 0"), Ok(Import::default()));
        assert_eq!(import("\nreadshape = 1").unwrap_err().line, 2);
    }
}
