//! Client output of SQLite's PRAGMAs, and scripts that set them.
//!
//! Names and values as the program `sqlite3` prints them in its modes `line`, `list`, `tabs`, `csv`, `box`, `table`,
//! `column` and `markdown`. PRAGMAs belong to a connection: a dump holds for the connection that made it.

use std::path::Path;

use dbduel_audit::Texts;
use dbduel_sql::Syntax;

use super::option_file::{Setting, Settings};
use super::text::{self, TextError};

/// PRAGMAs that every SQLite has. `sqlite_version` is no PRAGMA; a dump has it when it was queried.
const OWN: &[&str] = &["journal_mode", "synchronous", "page_size"];

/// Precedes a statement in a pasted session of the client.
const PROMPT: &str = "sqlite> ";

/// The PRAGMAs in a dump; `None` when these lines are not SQLite's.
#[must_use]
pub fn dump(lines: &[String]) -> Option<Texts> {
    if is_script(lines) {
        return None;
    }
    let texts: Texts = lines.iter().filter_map(|line| pair(line)).collect();
    let is_own = OWN.iter().all(|name| texts.contains_key(*name));
    is_own.then_some(texts)
}

/// Name and value of a row.
fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_matches(['|', '│']).trim();
    let separators = ['\t', '|', '│', ',', '='];
    let (name, value) = match line.find(separators) {
        Some(at) => {
            let rest = line[at..].chars().next().map_or(0, char::len_utf8);
            (&line[..at], &line[at + rest..])
        }
        // Columns that blanks align.
        None => line.split_once(char::is_whitespace)?,
    };
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let name = bare(name).to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_pragma =
        name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(is_name);
    // The column of this PRAGMA has another name.
    let name = match name.as_str() {
        "timeout" => "busy_timeout".to_owned(),
        _ => name,
    };
    is_pragma.then(|| (name, bare(value)))
}

/// True for a script of statements that set PRAGMAs.
#[must_use]
pub fn is_script(lines: &[String]) -> bool {
    lines.iter().any(|line| {
        let statements = statements(line);
        statements
            .into_iter()
            .any(|(_, text)| setting(text).is_some())
    })
}

/// The PRAGMAs that a script sets, in their order.
///
/// A PRAGMA without a value is a refused line.
///
/// # Errors
/// When it cannot be read.
pub fn script(path: &Path) -> Result<Settings, TextError> {
    let lines = text::lines(path)?;
    let mut found = Settings {
        files: vec![path.to_owned()],
        ..Settings::default()
    };
    for (index, line) in lines.iter().enumerate() {
        for (column, statement) in statements(line) {
            if !starts_as_pragma(statement) {
                continue;
            }
            let Some((name, value)) = setting(statement) else {
                let why = "sets nothing: write `PRAGMA name = value;`, on one line";
                found.refuse(path, index + 1, column, statement, why);
                continue;
            };
            found.settings.push(Setting {
                name,
                value: Some(value),
                path: path.to_owned(),
                line: index + 1,
                column,
            });
        }
    }
    Ok(found)
}

/// The statements of a line, each with its column, from 1.
fn statements(line: &str) -> Vec<(usize, &str)> {
    let text = line.strip_prefix(PROMPT).unwrap_or(line);
    let before = line.len() - text.len();
    dbduel_sql::statements(text.as_bytes(), Syntax::SQLITE)
        .map(|range| {
            let column = line[..before + range.start].chars().count() + 1;
            (column, &text[range])
        })
        .collect()
}

fn starts_as_pragma(statement: &str) -> bool {
    let word = statement.split_ascii_whitespace().next();
    word.is_some_and(|word| word.eq_ignore_ascii_case("pragma"))
}

/// Name and value of `PRAGMA schema.name = value` or `PRAGMA name(value)`.
fn setting(statement: &str) -> Option<(String, String)> {
    if !starts_as_pragma(statement) {
        return None;
    }
    let rest = statement.split_once(char::is_whitespace)?.1;
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, value),
        None => rest.trim_end().strip_suffix(')')?.split_once('(')?,
    };
    let name = name.trim().rsplit('.').next().unwrap_or_default();
    let value = value.trim().trim_matches(['"', '\'']);
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(text: &str) {
        let found = dump(&lines(text)).unwrap_or_else(|| panic!("no dump: {text}"));
        let of = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(of("journal_mode"), Some("wal"), "{text}");
        assert_eq!(of("synchronous"), Some("1"), "{text}");
        assert_eq!(of("cache_size"), Some("-2000"), "{text}");
        assert_eq!(of("sqlite_version"), Some("3.46.1"), "{text}");
    }

    #[test]
    fn a_dump_is_read_in_every_form_that_clients_print() {
        let rows = [
            ("sqlite_version", "3.46.1"),
            ("journal_mode", "wal"),
            ("synchronous", "1"),
            ("cache_size", "-2000"),
            ("page_size", "4096"),
        ];
        for (before, between, after) in [
            ("", "|", ""),
            ("", "\t", ""),
            ("", ",", ""),
            ("", " = ", ""),
            ("| ", " | ", " |"),
            ("│ ", " │ ", " │"),
            ("", "          ", ""),
        ] {
            let line =
                |(name, value): &(&str, &str)| format!("{before}{name}{between}{value}{after}\n");
            check(&rows.iter().map(line).collect::<String>());
        }
        let boxed = "┌───────┬───────┐\n│ name  │ value │\n├───────┼───────┤\n";
        let row = |(name, value): &(&str, &str)| format!("│ {name} │ {value} │\n");
        check(&format!(
            "{boxed}{}",
            rows.iter().map(row).collect::<String>()
        ));
        for other in [
            "",
            "max_connections\t100\nsql_mode\t\n",
            "journal_mode|wal\n",
        ] {
            assert_eq!(dump(&lines(other)), None, "{other}");
        }
    }

    #[test]
    fn a_script_is_read_with_the_places_of_its_settings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("open.sql");
        let text = "-- as the application opens its file\nPRAGMA journal_mode=WAL; pragma main.synchronous(normal);\nSELECT 'a; pragma cache_size=1';\n";
        std::fs::write(&path, text).unwrap();
        assert!(is_script(&lines(text)));
        assert_eq!(dump(&lines(text)), None);
        let found = script(&path).unwrap();
        let found: Vec<(&str, Option<&str>, usize, usize)> = found
            .settings
            .iter()
            .map(|one| {
                (
                    one.name.as_str(),
                    one.value.as_deref(),
                    one.line,
                    one.column,
                )
            })
            .collect();
        let expected = [
            ("journal_mode", Some("WAL"), 2, 1),
            ("synchronous", Some("normal"), 2, 26),
        ];
        assert_eq!(found, expected);
        // A session of the client, with its answer.
        let text = "sqlite> PRAGMA journal_mode=WAL;\nwal\nsqlite> PRAGMA synchronous;\n2\n";
        std::fs::write(&path, text).unwrap();
        assert!(is_script(&lines(text)));
        let found = script(&path).unwrap();
        assert_eq!((found.settings[0].line, found.settings[0].column), (1, 9));
        let [refused] = found.refused.as_slice() else {
            panic!("{:?}", found.refused);
        };
        assert!(refused.place.ends_with("open.sql:3:9"), "{refused:?}");
        assert!(refused.why.contains("sets nothing"), "{refused:?}");
    }
}
