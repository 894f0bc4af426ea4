//! What PostgreSQL's clients print of its settings, and its option file.
//!
//! `SHOW ALL` and `SELECT … FROM pg_settings` as psql prints them: aligned, separated by tabs, bars or commas, with a
//! header or without. Columns are found by their names in the header; without one they are name, value, and a unit
//! where the third column has nothing else.

use std::path::{Path, PathBuf};

use super::option_file::{Setting, Settings};
use super::text::{self, TextError};
use crate::judge::audit::postgresql::{in_units, is_unit};
use crate::judge::audit::{MissingInclude, Texts};

/// Includes nested deeper than this are refused, as the server does.
const DEPTH_MAX: usize = 10;
/// Most files of one configuration.
const FILES_MAX: usize = 200;

/// Settings that every PostgreSQL shows and no other product has.
const OWN: &[&str] = &["shared_buffers", "wal_level", "synchronous_commit"];
/// Settings by which an option file is recognised; one of them is in use or commented out in every file.
const IN_FILES: &[&str] = &[
    "shared_buffers",
    "listen_addresses",
    "max_wal_size",
    "checkpoint_timeout",
    "unix_socket_directories",
    "synchronous_commit",
    "wal_level",
    "work_mem",
];

/// The settings in a dump; `None` when these lines are none of PostgreSQL's. `pg_config` may follow in the same file:
/// of it the compiler's flags are kept, as `cflags`.
#[must_use]
pub fn dump(lines: &[String]) -> Option<Texts> {
    ['\t', '|', ','].into_iter().find_map(|separator| {
        let texts = rows(lines, separator);
        let is_own = OWN.iter().all(|name| texts.contains_key(*name));
        is_own.then_some(texts)
    })
}

fn rows(lines: &[String], separator: char) -> Texts {
    let mut columns = Columns::default();
    let mut texts = Texts::new();
    for line in lines {
        let cells = cells(line, separator);
        if let Some(header) = Columns::of(&cells) {
            columns = header;
            continue;
        }
        let cell = |column: usize| cells.get(column).map(|cell| cell.trim());
        let Some((name, value)) = cell(columns.name).zip(cell(columns.value)) else {
            continue;
        };
        let unit = cell(columns.unit).filter(|unit| is_unit(unit));
        let value = unit.map_or_else(|| value.to_owned(), |unit| in_units(value, unit));
        if is_name(name) {
            texts.insert(name.to_ascii_lowercase(), value);
        }
    }
    texts
}

/// Where in a row the name, the value and the unit are.
struct Columns {
    name: usize,
    value: usize,
    unit: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Columns {
            name: 0,
            value: 1,
            unit: 2,
        }
    }
}

impl Columns {
    /// The columns that a header names; `None` for any other row.
    fn of(cells: &[String]) -> Option<Self> {
        let find = |word: &str| cells.iter().position(|cell| cell.trim() == word);
        Some(Columns {
            name: find("name")?,
            value: find("setting")?,
            unit: find("unit").unwrap_or(usize::MAX),
        })
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_part)
}

/// The cells of a row; commas may stand in quotes, which are doubled inside of them.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' if separator == ',' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(character),
        }
    }
    cells.push(cell);
    cells
}

/// True for the lines of an option file: each is empty, a comment or a setting, and a known one is among them.
#[must_use]
pub fn is_option_file(lines: &[String]) -> bool {
    let is_setting = |line: &String| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.contains('=') || line.contains(' ')
    };
    let names_one = |line: &String| {
        let line = line.trim().trim_start_matches('#').trim_start();
        let name = line.split(|c: char| c == '=' || c.is_whitespace()).next();
        name.is_some_and(|name| IN_FILES.contains(&name)) && line.contains('=')
    };
    lines.iter().all(is_setting) && lines.iter().any(names_one)
}

/// Reads an option file with what it includes, which is relative to it.
///
/// # Errors
/// When a file cannot be read or understood, or includes are nested too deeply.
pub fn option_file(path: &Path) -> Result<Settings, TextError> {
    let mut found = Settings::default();
    read(path, 0, &mut found)?;
    Ok(found)
}

fn read(path: &Path, depth: usize, found: &mut Settings) -> Result<(), TextError> {
    if depth > DEPTH_MAX || found.files.len() >= FILES_MAX {
        let why = format!(
            "includes are nested deeper than {DEPTH_MAX}, or there are more than {FILES_MAX} files"
        );
        return Err(TextError::at(path, 1, why));
    }
    let lines = text::lines(path)?;
    found.files.push(path.to_owned());
    for (index, line) in lines.iter().enumerate() {
        let number = index + 1;
        let Some((name, value)) = setting(line) else {
            continue;
        };
        if name.is_empty() || value.is_empty() && !line.contains(['=', '\'']) {
            let shown: String = line.trim().chars().take(40).collect();
            return Err(TextError::at(
                path,
                number,
                format!("`{shown}` is not a setting: write `name = value`"),
            ));
        }
        match name.as_str() {
            "include" | "include_if_exists" | "include_dir" => {
                include(path, number, &value, depth, found)?;
            }
            _ => found.settings.push(Setting {
                name,
                value,
                path: path.to_owned(),
                line: number,
                column: line.len() - line.trim_start().len() + 1,
            }),
        }
    }
    Ok(())
}

fn include(
    path: &Path,
    number: usize,
    value: &str,
    depth: usize,
    found: &mut Settings,
) -> Result<(), TextError> {
    let target = path.parent().unwrap_or(Path::new("")).join(value);
    if target.is_file() {
        return read(&target, depth + 1, found);
    }
    let Ok(entries) = std::fs::read_dir(&target) else {
        found.missing.push(MissingInclude {
            place: format!("{}:{number}", path.display()),
            target: value.to_owned(),
        });
        return Ok(());
    };
    let mut files: Vec<PathBuf> = entries
        .take(FILES_MAX * 10)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "conf")
        })
        .collect();
    files.sort();
    let mut files = files.iter();
    files.try_for_each(|file| read(file, depth + 1, found))
}

/// Name and value of a line; `None` for one without a setting. Values may be quoted, quotes in them are doubled.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line
        .find(|c: char| c == '=' || c.is_whitespace())
        .unwrap_or(line.len());
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => {
            let mut value = String::new();
            let mut characters = quoted.chars().peekable();
            while let Some(character) = characters.next() {
                match character {
                    '\'' if characters.peek() == Some(&'\'') => value.extend(characters.next()),
                    '\'' => break,
                    _ => value.push(character),
                }
            }
            value
        }
        None => rest.split('#').next().unwrap_or_default().trim().to_owned(),
    };
    Some((line[..end].to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(text: &str) {
        let texts = dump(&lines(text)).unwrap();
        let expected = [
            ("shared_buffers", ["128MB", "134217728"]),
            ("wal_level", ["replica", "replica"]),
            ("synchronous_commit", ["on", "on"]),
            ("search_path", ["$user, public", "\"$user\", public"]),
        ];
        for (name, values) in expected {
            let shown = texts[name].as_str();
            assert!(values.contains(&shown), "{name}: {shown} in {text}");
        }
    }

    #[test]
    fn every_form_of_psql_says_the_same() {
        check(
            "        name        |     setting     | description\n--------------------+-----------------+-----\n shared_buffers     | 128MB           | Sets it.\n wal_level          | replica         |\n synchronous_commit | on              | Sets, a level.\n search_path        | \"$user\", public | x\n(4 rows)\n",
        );
        check(
            "shared_buffers\t128MB\twal_level is next\nwal_level\treplica\nsynchronous_commit\ton\nsearch_path\t\"$user\", public\n",
        );
        check(
            "name,setting,description\nshared_buffers,128MB,\"a, b\"\nwal_level,replica,c\nsynchronous_commit,on,d\nsearch_path,\"\"\"$user\"\", public\",e\n",
        );
        check(
            "name|setting|unit\nshared_buffers|16384|8kB\nwal_level|replica|\nsynchronous_commit|on|\nsearch_path|\"$user\", public|\n",
        );
        check(
            "shared_buffers,16384,8kB\nwal_level,replica,\nsynchronous_commit,on,\nsearch_path,\"\"\"$user\"\", public\",\n",
        );
    }

    #[test]
    fn other_text_is_no_dump_of_postgresql() {
        for text in ["", "max_connections\t100\nsql_mode\t\n", "a,b\nc,d\n"] {
            assert_eq!(dump(&lines(text)), None, "{text}");
            assert!(!is_option_file(&lines(text)), "{text}");
        }
    }

    #[test]
    fn an_option_file_is_read_as_the_server_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postgresql.conf");
        std::fs::create_dir(directory.path().join("conf.d")).unwrap();
        std::fs::write(directory.path().join("conf.d/a.conf"), "jit off\n").unwrap();
        let text = "# comment\nshared_buffers = 1GB # of 8\nmax_wal_size 2GB\nsearch_path = 'it''s, public'\ninclude_dir = 'conf.d'\ninclude_if_exists 'other.conf'\n";
        std::fs::write(&path, text).unwrap();
        assert!(is_option_file(&lines(text)));
        let found = option_file(&path).unwrap();
        let pairs: Vec<(&str, &str)> = found
            .settings
            .iter()
            .map(|setting| (setting.name.as_str(), setting.value.as_str()))
            .collect();
        let expected = [
            ("shared_buffers", "1GB"),
            ("max_wal_size", "2GB"),
            ("search_path", "it's, public"),
            ("jit", "off"),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(found.missing[0].target, "other.conf");
        std::fs::write(&path, "shared_buffers = 1GB\nnonsense\n").unwrap();
        let error = option_file(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 2: `nonsense` is not a setting"),
            "{error}"
        );
    }
}
