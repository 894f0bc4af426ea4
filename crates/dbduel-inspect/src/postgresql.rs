//! Client output of PostgreSQL's settings, and its option file.
//!
//! `SHOW ALL` and `SELECT … FROM pg_settings` as psql prints them: aligned, or separated by tabs, bars or commas, with
//! or without a header. A header names the columns; without one they are name, value, and a unit where the third column
//! holds nothing else.

use std::path::{Path, PathBuf};

use dbduel_audit::postgresql::{in_units, is_setting, is_unit};
use dbduel_audit::{MissingInclude, Product, Texts, Version};

use super::includes::Includes;
use super::option_file::{Setting, Settings, column_of_first};
use super::text::{self, TextError};

/// Includes nested deeper than this are refused, as the server does.
const DEPTH_MAX: usize = 10;
/// Limit of files of one configuration.
const FILES_MAX: usize = 200;

/// Settings that every PostgreSQL shows and no other product has.
const OWN: &[&str] = &["shared_buffers", "wal_level", "synchronous_commit"];
/// Name of the option file, by which it is recognised whatever it holds.
pub const FILE: &str = "postgresql.conf";
/// Name of the file of ALTER SYSTEM, which the server reads after its option file.
pub const PERSISTED: &str = "postgresql.auto.conf";
/// Name of the file with the major version in a data directory.
pub const VERSION: &str = "PG_VERSION";
/// Settings by which an option file with faults is recognised.
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

/// The settings in a dump; `None` when these lines are not PostgreSQL's. Output of `pg_config` may follow in the same
/// file; its compiler flags are kept as `cflags`.
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

/// Columns of the name, the value and the unit in a row.
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
    /// The columns of a header; `None` for any other row.
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

/// The cells of a row; commas may be in quotes, in which quotes are doubled.
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

/// The major version in the file [`VERSION`].
#[must_use]
pub fn major_version(lines: &[String]) -> Option<Version> {
    let [line] = lines else {
        return None;
    };
    Product::PostgreSql.parse_version(line.trim())
}

/// True for the lines of an option file: each is empty, a comment or a setting of the server, and one is in use or commented
/// out. In a file with faults it must be one of those that other text hardly names.
#[must_use]
pub fn is_option_file(lines: &[String]) -> bool {
    let resembles_one = |line: &String| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.contains('=') || line.contains(' ')
    };
    let is_valid = |line: &String| match setting(line) {
        Ok(None) => true,
        Ok(Some((name, _))) => {
            is_setting(&name) || name.contains('.') || Directive::of(&name).is_some()
        }
        Err(_) => false,
    };
    let names_one = |is_known: &dyn Fn(&str) -> bool| {
        lines.iter().any(|line| {
            let line = line.trim().trim_start_matches('#').trim_start();
            let name = line.split(|c: char| c == '=' || c.is_whitespace()).next();
            name.is_some_and(is_known) && line.contains('=')
        })
    };
    // Names and values with a tab between are the output of SHOW.
    let is_used = |line: &String| {
        matches!(setting(line), Ok(Some(_))) && (line.contains('=') || !line.contains('\t'))
    };
    lines.iter().all(resembles_one) && names_one(&|name| IN_FILES.contains(&name))
        || lines.iter().all(is_valid)
            && (lines.iter().any(is_used) || names_one(&|name| is_setting(name)))
}

/// Reads an option file with its includes from `includes`.
///
/// # Errors
/// When a file cannot be read, or includes are nested too deeply.
pub fn option_file(path: &Path, includes: &Includes) -> Result<Settings, TextError> {
    let mut found = Settings::default();
    read(path, 0, includes, &mut found)?;
    Ok(found)
}

fn read(
    path: &Path,
    depth: usize,
    includes: &Includes,
    found: &mut Settings,
) -> Result<(), TextError> {
    if depth > DEPTH_MAX || found.files.len() >= FILES_MAX {
        let why = format!(
            "includes are nested deeper than {DEPTH_MAX}, or there are more than {FILES_MAX} files"
        );
        return Err(TextError::at(path, 1, why));
    }
    let lines = text::lines(path)?;
    found.files.push(path.to_owned());
    if text::has_mark(path) {
        let first = lines.first().map_or("", String::as_str);
        found.refuse(path, 1, 1, first, text::MARK);
    }
    for (index, line) in lines.iter().enumerate() {
        let number = index + 1;
        let (name, value) = match setting(line) {
            Ok(Some(setting)) => setting,
            Ok(None) => continue,
            Err(shown) => {
                let why = "is not `name = value` or `name = 'value'`; quote a value that is neither a word nor a number";
                found.refuse(path, number, column_of_first(line), shown, why);
                continue;
            }
        };
        match Directive::of(&name) {
            Some(directive) => {
                include(directive, path, number, &value, depth, includes, found)?;
            }
            None => found.settings.push(Setting {
                name,
                value: Some(value),
                path: path.to_owned(),
                line: number,
                column: column_of_first(line),
            }),
        }
    }
    Ok(())
}

/// What a line includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    File,
    FileIfThere,
    Folder,
}

impl Directive {
    fn of(name: &str) -> Option<Self> {
        match name {
            "include" => Some(Directive::File),
            "include_if_exists" => Some(Directive::FileIfThere),
            "include_dir" => Some(Directive::Folder),
            _ => None,
        }
    }
}

fn include(
    directive: Directive,
    path: &Path,
    number: usize,
    value: &str,
    depth: usize,
    includes: &Includes,
    found: &mut Settings,
) -> Result<(), TextError> {
    let mut missing = |target: String| {
        found.missing.push(MissingInclude {
            place: format!("{}:{number}", path.display()),
            target,
        });
    };
    let Some(target) = includes.find(path, Path::new(value)) else {
        // Of a relative path it is known here that nothing is there.
        let is_known = Path::new(value).is_relative() && !value.contains("..");
        if !(is_known && directive == Directive::FileIfThere) {
            missing(value.to_owned());
        }
        return Ok(());
    };
    if directive != Directive::Folder {
        return read(&target, depth + 1, includes, found);
    }
    let Ok(entries) = std::fs::read_dir(&target) else {
        missing(value.to_owned());
        return Ok(());
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries.take(FILES_MAX * 10) {
        let Ok(file) = entry.map(|entry| entry.path()) else {
            continue;
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || !name.ends_with(".conf") || file.is_dir() {
            continue;
        }
        if includes.hold(&file) {
            files.push(file);
        } else {
            missing(format!("{value}/{name}"));
        }
    }
    files.sort();
    let mut files = files.iter();
    files.try_for_each(|file| read(file, depth + 1, includes, found))
}

/// Name and value of a line, by the grammar of the server's scanner; `None` for a line without a setting.
///
/// # Errors
/// The part of the line that the server rejects.
fn setting(line: &str) -> Result<Option<(String, String)>, &str> {
    let mut rest = line;
    let mut next = || {
        let (token, text, after) = token(rest)?;
        rest = after;
        Some((token, text))
    };
    let name = match next() {
        None => return Ok(None),
        Some((Token::Identifier | Token::QualifiedIdentifier, text)) => text,
        Some((_, text)) => return Err(text),
    };
    let mut value = next();
    if matches!(value, Some((Token::Equals, _))) {
        value = next();
    }
    let value = match value {
        Some((Token::Text, text)) => unquoted(text),
        Some((Token::Identifier | Token::Word | Token::Integer | Token::Real, text)) => {
            text.to_owned()
        }
        Some((_, text)) => return Err(text),
        None => return Err(line),
    };
    match next() {
        None => Ok(Some((name.to_ascii_lowercase(), value))),
        Some((_, text)) => Err(text),
    }
}

/// Tokens of the scanner of `postgresql.conf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Identifier,
    QualifiedIdentifier,
    /// Between quotes.
    Text,
    /// A text that needs no quotes: letters, digits and `-._:/`.
    Word,
    Integer,
    Real,
    Equals,
    Other,
}

/// The token at the beginning of a text, after its blanks, and the remaining text; `None` at its end or before a
/// comment. The longest match wins, and of equally long ones the first in the order of [`Token`].
fn token(text: &str) -> Option<(Token, &str, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\r']);
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_inner = |c: char| is_letter(c) || c.is_ascii_digit();
    let run = |from: usize, is_part: &dyn Fn(char) -> bool| {
        let part = &text[from..];
        part.find(|c: char| !is_part(c)).unwrap_or(part.len())
    };
    let identifier = |from: usize| match text[from..].starts_with(is_letter) {
        true => run(from, &is_inner),
        false => 0,
    };
    let first = identifier(0);
    let qualified = match first > 0 && text[first..].starts_with('.') {
        true => match identifier(first + 1) {
            0 => 0,
            second => first + 1 + second,
        },
        false => 0,
    };
    let word = match first > 0 {
        true => run(0, &|c| is_inner(c) || "-._:/".contains(c)),
        false => 0,
    };
    let sign = usize::from(text.starts_with(['-', '+']));
    let is_digit = |c: char| c.is_ascii_digit();
    let with_unit = |number: usize| match number {
        0 => 0,
        _ => {
            let end = sign + number;
            end + run(end, &|c| c.is_ascii_alphabetic())
        }
    };
    let digits = run(sign, &is_digit);
    let hexadecimal = match text[sign..].starts_with("0x") {
        true => match run(sign + 2, &|c| c.is_ascii_hexdigit()) {
            0 => 0,
            digits => 2 + digits,
        },
        false => 0,
    };
    let real = match text[sign + digits..].starts_with('.') {
        true => {
            let end = sign + digits + 1;
            let end = end + run(end, &is_digit);
            end + exponent(&text[end..])
        }
        false => 0,
    };
    let tokens = [
        (Token::Identifier, first),
        (Token::QualifiedIdentifier, qualified),
        (Token::Text, quoted(text)),
        (Token::Word, word),
        (
            Token::Integer,
            with_unit(digits).max(with_unit(hexadecimal)),
        ),
        (Token::Real, real),
        (Token::Equals, usize::from(text.starts_with('='))),
    ];
    let longest = tokens.iter().map(|(_, length)| *length).max().unwrap_or(0);
    let mut fitting = tokens.into_iter().filter(|(_, length)| *length == longest);
    let (token, length) = match longest {
        0 => (Token::Other, text.chars().next().map_or(0, char::len_utf8)),
        _ => fitting.next()?,
    };
    Some((token, &text[..length], &text[length..]))
}

/// Length of the exponent at the beginning of a text; 0 where there is none.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(rest.starts_with(['-', '+']));
    let digits = rest[sign..].find(|c: char| !c.is_ascii_digit());
    match digits.unwrap_or(rest.len() - sign) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// Length of the text in quotes at the beginning of a text; 0 where there is none, or where it does not end.
fn quoted(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    if characters.next().is_none_or(|(_, first)| first != '\'') {
        return 0;
    }
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            '\'' => return at + 1,
            _ => {}
        }
    }
    0
}

/// A text without its quotes, doubled quotes and escapes: `\n`, `\101`, `\'`.
fn unquoted(text: &str) -> String {
    let text = &text[1..text.len() - 1];
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => {
                characters.next();
                plain.push('\'');
            }
            '\\' => match characters.next() {
                Some('b') => plain.push('\u{8}'),
                Some('f') => plain.push('\u{c}'),
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some('t') => plain.push('\t'),
                Some(first @ '0'..='7') => {
                    let mut code = first.to_digit(8).unwrap_or(0);
                    for _ in 0..2 {
                        let Some(digit) = characters.peek().and_then(|c| c.to_digit(8)) else {
                            break;
                        };
                        characters.next();
                        code = code * 8 + digit;
                    }
                    plain.push(char::from((code & 0xff) as u8));
                }
                Some(other) => plain.push(other),
                None => {}
            },
            other => plain.push(other),
        }
    }
    plain
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
        for text in [
            "# a comment\n",
            "threads = 16\ntime = 60\n",
            "[mysqld]\nport = 1\n",
            "max_connections\t151\n",
        ] {
            assert!(!is_option_file(&lines(text)), "{text}");
        }
    }

    #[test]
    fn an_option_file_is_recognised_by_any_of_its_settings() {
        for text in [
            "autovacuum_naptime = 10s\n",
            "# ours\njit off # c\nmy.own_setting = 3\n",
            "include_dir 'conf.d'\n",
            "#effective_cache_size = 4GB\n",
            "shared_buffers = 1GB\nwith a fault\n",
        ] {
            assert!(is_option_file(&lines(text)), "{text}");
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
        let includes = Includes::beside(&path, None);
        let found = option_file(&path, &includes).unwrap();
        let pairs: Vec<(&str, &str)> = found
            .settings
            .iter()
            .map(|setting| (setting.name.as_str(), setting.value.as_deref().unwrap()))
            .collect();
        let expected = [
            ("shared_buffers", "1GB"),
            ("max_wal_size", "2GB"),
            ("search_path", "it's, public"),
            ("jit", "off"),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(found.missing, []);
        std::fs::write(&path, "shared_buffers = 1GB\nnonsense\n").unwrap();
        let found = option_file(&path, &includes).unwrap();
        assert!(found.refused[0].place.ends_with("postgresql.conf:2:1"));
        assert!(found.refused[0].why.starts_with("`nonsense` is not"));
    }

    #[test]
    fn hidden_files_and_what_lies_elsewhere_are_not_included() {
        let (given, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        let secret = outside.path().join("secret.conf");
        write(secret.clone(), "port = 9\n");
        let folder = given.path().join("conf.d");
        std::fs::create_dir_all(folder.join("folder.conf")).unwrap();
        write(folder.join(".hidden.conf"), "fsync = off\n");
        write(folder.join("a.conf~"), "fsync = off\n");
        write(folder.join("a.conf"), "jit = off\n");
        std::os::unix::fs::symlink(&secret, folder.join("link.conf")).unwrap();
        let path = given.path().join("postgresql.conf");
        let secret = secret.to_str().unwrap();
        write(
            path.clone(),
            &format!("include_dir 'conf.d'\ninclude '{secret}'\ninclude_if_exists '/etc/x.conf'\n"),
        );
        let names = |includes: &Includes| -> Vec<String> {
            let found = option_file(&path, includes).unwrap();
            found.settings.into_iter().map(|one| one.name).collect()
        };
        let own = Includes::beside(&path, None);
        assert_eq!(names(&own), ["jit"]);
        let found = option_file(&path, &own).unwrap();
        let missing: Vec<&str> = found
            .missing
            .iter()
            .map(|one| one.target.as_str())
            .collect();
        assert_eq!(missing, ["conf.d/link.conf", secret, "/etc/x.conf"]);
        let named = Includes::beside(&path, Some(outside.path()));
        assert_eq!(names(&named), ["jit", "port", "port"]);
    }

    #[track_caller]
    fn reads(line: &str, expected: Result<(&str, &str), &str>) {
        let expected = expected.map(|(name, value)| Some((name.to_owned(), value.to_owned())));
        assert_eq!(setting(line), expected, "{line}");
    }

    /// Answers of PostgreSQL 15 and 17.
    #[test]
    fn a_line_is_scanned_as_the_server_scans_it() {
        reads("  WORK_MEM\t64MB# c", Ok(("work_mem", "64MB")));
        reads("a=-1", Ok(("a", "-1")));
        reads("a = 0x1Fkb", Ok(("a", "0x1Fkb")));
        reads("a = 1.5e-3", Ok(("a", "1.5e-3")));
        reads("a = .5", Ok(("a", ".5")));
        reads("a = log_%d", Err("%"));
        reads("a = /tmp", Err("/"));
        reads("a = en_US.UTF-8", Ok(("a", "en_US.UTF-8")));
        reads("a = b.c", Err("b.c"));
        reads("my.own = 3", Ok(("my.own", "3")));
        reads("a = 64 MB", Err("MB"));
        reads("a = 0.25GB", Err("GB"));
        reads("a = 1e5", Err("5"));
        reads("a = 0,9", Err(","));
        reads("a = 25%", Err("%"));
        reads("a = b a = c", Err("a"));
        reads("a = = b", Err("="));
        reads("a =", Err("a ="));
        reads("a", Err("a"));
        reads("1 = a", Err("1"));
        reads("a = 'it''s' # 'c'", Ok(("a", "it's")));
        reads(r"a = 'x\'y\\\101\n'", Ok(("a", "x'y\\A\n")));
        reads("a = 'b", Err("'"));
        reads("a = \"b\"", Err("\""));
        assert_eq!(setting(" # a = b"), Ok(None));
    }
}
