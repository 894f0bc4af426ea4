//! Client output of SQLite's PRAGMAs, and scripts that set them.
//!
//! Names and values as the program `sqlite3` prints them in its modes `line`, `list`, `tabs`, `csv`, `box`, `table`,
//! `column` and `markdown`. PRAGMAs belong to a connection: a dump holds for the connection that made it.

use std::ops::Range;
use std::path::Path;

use dbduel_audit::Texts;
use dbduel_sql::{Lexer, Syntax, Token, TokenKind};

use super::option_file::{Setting, Settings};
use super::text::{self, TextError};

/// PRAGMAs that every SQLite has. `sqlite_version` is no PRAGMA; a dump has it when it was queried.
const OWN: &[&str] = &["journal_mode", "synchronous", "page_size"];

/// Precedes a statement in a pasted session of the client.
const PROMPT: &str = "sqlite> ";

/// Precedes the further lines of such a statement.
const CONTINUATION: &str = "   ...> ";

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
    let text = joined(lines);
    statements(&text).any(|range| setting(&text[range]).is_some())
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
    let text = joined(&lines);
    for range in statements(&text) {
        let before = &text[..range.start];
        let (line, column) = (
            before.matches('\n').count() + 1,
            before.chars().rev().take_while(|c| *c != '\n').count() + 1,
        );
        let statement = &text[range];
        if !starts_as_pragma(statement) {
            continue;
        }
        let Some((name, value)) = setting(statement) else {
            let why = "sets nothing: write `PRAGMA name = value;`, on one line";
            found.refuse(path, line, column, statement, why);
            continue;
        };
        found.settings.push(Setting {
            name,
            value: Some(value),
            path: path.to_owned(),
            line,
            column,
        });
    }
    Ok(found)
}

/// The text of a script. Of a pasted session, the lines after prompts, with blanks in the place of these and of answers.
fn joined(lines: &[String]) -> String {
    let is_session = lines.iter().any(|line| line.starts_with(PROMPT));
    let text = lines.iter().map(|line| {
        let prompts = [PROMPT, CONTINUATION];
        let typed = prompts.iter().find_map(|prompt| line.strip_prefix(prompt));
        match (is_session, typed) {
            (false, _) => line.clone(),
            (true, Some(typed)) => format!("{}{typed}", " ".repeat(line.len() - typed.len())),
            (true, None) => String::new(),
        }
    });
    text.collect::<Vec<_>>().join("\n")
}

/// The statements of a script as ranges of its text. One ends with a semicolon or, as the client's dot-commands do, with a line
/// that ends outside of quotes and comments.
fn statements(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_end = |token: &Token| token.kind == TokenKind::Terminator;
    let mut tokens = Lexer::new(text.as_bytes(), Syntax::SQLITE).peekable();
    std::iter::from_fn(move || {
        let first = tokens.find(|token| !is_end(token))?;
        let mut end = first.end;
        while let Some(token) = tokens
            .next_if(|token| !is_end(token) && !text.as_bytes()[end..token.start].contains(&b'\n'))
        {
            end = token.end;
        }
        Some(first.start..end)
    })
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
        // A string over several lines, and what looks like a setting in it.
        let text = "INSERT INTO t VALUES ('x\nPRAGMA cache_size=1;\ny'); PRAGMA journal_mode=WAL;\n.headers on\nPRAGMA mmap_size=0;\n";
        std::fs::write(&path, text).unwrap();
        assert!(is_script(&lines(text)));
        let found = script(&path).unwrap();
        let places = found.settings.iter();
        let places = places.map(|one| (one.name.as_str(), one.line, one.column));
        let expected = [("journal_mode", 3, 6), ("mmap_size", 5, 1)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(found.refused.len(), 0, "{:?}", found.refused);
        // A session of the client, with its answer.
        let text = "sqlite> PRAGMA journal_mode=WAL;\nit's wal\nsqlite> PRAGMA synchronous;\n2\n";
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
