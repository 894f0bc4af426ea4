//! Client output of `SHOW …`: tab-separated, boxed, or one field a line (`\G`).
//!
//! Files are recognised by their content, not their names.

use dbduel_audit::{Product, Texts};
use dbduel_record::tsv::unescape;
use serde_json::Value;
use std::path::Path;

use super::includes::Includes;
use super::option_file::Setting;
use super::program_version::ProgramVersion;
use super::text::{self, TextError};
use super::{postgresql, sqlite};

/// Longest name of a variable or counter, bytes.
const NAME_BYTES_MAX: usize = 100;

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// `SHOW VARIABLES`.
    Variables(Texts),
    /// `SHOW STATUS`.
    Status(Texts),
    /// `SHOW ENGINE INNODB STATUS`.
    EngineStatus(String),
    /// `SHOW CREATE TABLE`.
    Schema(String),
    /// A server's error log.
    ErrorLog(String),
    /// A configuration file.
    OptionFile,
    /// Settings that `SET PERSIST` of MySQL or ALTER SYSTEM of PostgreSQL wrote, in file order.
    Persisted(Vec<Setting>),
    /// The version output of a server's program.
    Version(ProgramVersion),
    /// Something else.
    Other,
}

impl Content {
    /// Description for messages.
    pub fn what(&self) -> &'static str {
        match self {
            Content::Variables(_) => "SHOW VARIABLES",
            Content::Status(_) => "SHOW STATUS",
            Content::EngineStatus(_) => "InnoDB status text",
            Content::Schema(_) => "table definitions",
            Content::ErrorLog(_) => "a server's log",
            Content::OptionFile => "an option file",
            Content::Persisted(_) => {
                "a file of SET PERSIST or ALTER SYSTEM, which belongs beside an option file"
            }
            Content::Version(_) => "a version",
            Content::Other => "in no format that an audit reads",
        }
    }
}

/// Variables of every server that no status output contains.
const OF_VARIABLES: &[&str] = &[
    "max_connections",
    "sql_mode",
    "version_comment",
    "innodb_buffer_pool_size",
];
/// Counters of every server that no variables output contains.
const OF_STATUS: &[&str] = &["uptime", "threads_running", "questions", "bytes_sent"];
/// Lines read to recognise a file.
const LINES_FOR_RECOGNITION: usize = 400;

/// The file of `SET PERSIST` in a data directory of MySQL since 8.0.
const PERSISTED: &str = "mysqld-auto.cnf";

/// The settings of such a file: every object with a `Value` is one, in any group of its format version.
fn persisted(path: &Path, text: &str) -> Result<Vec<Setting>, TextError> {
    let document: Value = serde_json::from_str(text).map_err(|error| {
        TextError::at(
            path,
            error.line(),
            format!("not in the format of SET PERSIST: {error}"),
        )
    })?;
    let mut settings = Vec::new();
    let mut groups = vec![&document];
    while let Some(Value::Object(group)) = groups.pop() {
        for (name, value) in group {
            match value.get("Value").and_then(Value::as_str) {
                Some(value) => settings.push(Setting {
                    name: name.clone(),
                    value: Some(value.to_owned()),
                    path: path.to_owned(),
                    line: 1,
                    column: 1,
                }),
                None => groups.push(value),
            }
        }
    }
    Ok(settings)
}

/// Reads a file and recognises it.
///
/// # Errors
/// When it cannot be read, or begins as a dump and continues as something else.
pub fn read(path: &Path) -> Result<Content, TextError> {
    let lines = text::lines(path)?;
    let start = &lines[..lines.len().min(LINES_FOR_RECOGNITION)];
    let has = |words: &[&str]| {
        start
            .iter()
            .any(|line| words.iter().any(|word| line.contains(word)))
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        PERSISTED => return persisted(path, &lines.join("\n")).map(Content::Persisted),
        postgresql::PERSISTED => {
            let settings = postgresql::option_file(path, &Includes::default())?;
            return Ok(Content::Persisted(settings.settings));
        }
        postgresql::VERSION => {
            let version = postgresql::major_version(&lines);
            return Ok(version.map_or(Content::Other, |version| {
                let product = Some(Product::PostgreSql);
                Content::Version(ProgramVersion { product, version })
            }));
        }
        _ => {}
    }
    if has(&["INNODB MONITOR OUTPUT"]) {
        return Ok(Content::EngineStatus(lines.join("\n")));
    }
    if let Some(texts) = postgresql::dump(&lines) {
        return Ok(Content::Variables(texts));
    }
    if let Some(texts) = sqlite::dump(&lines) {
        return Ok(Content::Variables(texts));
    }
    let is_option_file = name == postgresql::FILE
        || is_option_file(start)
        || postgresql::is_option_file(start)
        || sqlite::is_script(start);
    if is_option_file {
        return Ok(Content::OptionFile);
    }
    if has(&["CREATE TABLE"]) {
        return Ok(Content::Schema(lines.join("\n")));
    }
    if has(&["ready for connections", "[Note] InnoDB:", "[System] [MY-"]) {
        return Ok(Content::ErrorLog(lines.join("\n")));
    }
    if let Some(version) = ProgramVersion::read(&name, start) {
        return Ok(Content::Version(version));
    }
    let Some(texts) = pairs(path, &lines)? else {
        return Ok(Content::Other);
    };
    let has = |names: &[&str]| names.iter().any(|name| texts.contains_key(*name));
    Ok(match (has(OF_VARIABLES), has(OF_STATUS)) {
        (true, _) => Content::Variables(texts),
        (false, true) => Content::Status(texts),
        (false, false) => Content::Other,
    })
}

/// True for settings in groups of which one belongs to a program of these servers. A page that quotes such a file
/// begins with something else.
fn is_option_file(lines: &[String]) -> bool {
    let is_content =
        |line: &&String| !line.trim().is_empty() && !line.trim().starts_with(['#', ';', '!']);
    let first = lines.iter().find(is_content);
    first.is_some_and(|line| line.trim().starts_with('['))
        && lines.iter().any(|line| is_section(line))
}

fn is_section(line: &str) -> bool {
    let line = line.trim();
    let name = line
        .strip_prefix('[')
        .and_then(|line| line.split(']').next())
        .unwrap_or_default();
    let words = [
        "mysqld",
        "mysql",
        "mariadb",
        "mariadbd",
        "server",
        "client",
        "client-server",
        "galera",
    ];
    words.iter().any(|word| {
        name == *word
            || name
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with('-'))
    })
}

/// Names and values in any of the three formats; `None` for other content.
fn pairs(path: &Path, lines: &[String]) -> Result<Option<Texts>, TextError> {
    // Before the first result of a session stands the client's welcome.
    let welcome = match lines.iter().position(|line| is_prompt(line)) {
        Some(_) => lines.iter().position(|line| begins_result(line)),
        None => Some(0),
    };
    let content = lines
        .iter()
        .enumerate()
        .map(|(index, line)| (index + 1, line.as_str()))
        .skip(welcome.unwrap_or(lines.len()));
    let mut content = content.filter(|(_, line)| !line.trim().is_empty() && !is_chatter(line));
    let Some((_, first)) = content.clone().next() else {
        return Ok(None);
    };
    if first.starts_with("***") {
        return vertical(path, &mut content).map(Some);
    }
    if first.starts_with('+') || first.starts_with('|') {
        return boxed(path, &mut content).map(Some);
    }
    if first.contains('\t') {
        return tabbed(path, &mut content).map(Some);
    }
    Ok(None)
}

/// True for a statement in a pasted session of the client: `mysql> …`, `MariaDB [test]> …`, and its further lines `    -> …`.
fn is_prompt(line: &str) -> bool {
    let is_mariadb = || line.starts_with("MariaDB [") && line.contains("]> ");
    line.starts_with("mysql> ") || line.starts_with("    -> ") || is_mariadb()
}

/// True for the first line of a result in a session.
fn begins_result(line: &str) -> bool {
    line.starts_with("+-") || line.starts_with("***")
}

/// True for client output before and after the result.
fn is_chatter(line: &str) -> bool {
    const BEFORE: &[&str] = &[
        "mysql: ",
        "mariadb: ",
        "mysqladmin: ",
        "Warning: ",
        "--------------",
        "SHOW ",
        "show ",
    ];
    let is_count =
        line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" in set");
    is_count
        || line == "Bye"
        || is_prompt(line)
        || BEFORE.iter().any(|start| line.starts_with(start))
}

fn keep(
    texts: &mut Texts,
    path: &Path,
    number: usize,
    name: &str,
    value: String,
) -> Result<(), TextError> {
    let name = name.trim();
    if name.eq_ignore_ascii_case("variable_name") {
        return Ok(());
    }
    // Option trackers of MySQL 9 have blanks in their names.
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.: -".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_name) {
        let shown: String = name.chars().take(40).collect();
        return Err(TextError::at(
            path,
            number,
            format!("`{shown}` is not the name of a variable"),
        ));
    }
    texts.insert(name.to_ascii_lowercase(), value);
    Ok(())
}

fn tabbed(path: &Path, lines: &mut dyn Iterator<Item = (usize, &str)>) -> Result<Texts, TextError> {
    let mut texts = Texts::new();
    for (number, line) in lines {
        let (name, value) = line.split_once('\t').ok_or_else(|| {
            TextError::at(
                path,
                number,
                "a line without a tab between tab-separated ones",
            )
        })?;
        keep(&mut texts, path, number, name, unescape(value))?;
    }
    Ok(texts)
}

fn boxed(path: &Path, lines: &mut dyn Iterator<Item = (usize, &str)>) -> Result<Texts, TextError> {
    let mut texts = Texts::new();
    for (number, line) in lines {
        let line = line.trim();
        // What follows the table counts rows and time.
        if line.starts_with('+') || !line.starts_with('|') {
            continue;
        }
        // A value may have a bar in it; a name has none.
        let cells = line[1..]
            .strip_suffix('|')
            .and_then(|line| line.split_once('|'));
        let (name, value) = cells
            .ok_or_else(|| TextError::at(path, number, "a row of a table without two cells"))?;
        keep(&mut texts, path, number, name, value.trim().to_owned())?;
    }
    Ok(texts)
}

fn vertical(
    path: &Path,
    lines: &mut dyn Iterator<Item = (usize, &str)>,
) -> Result<Texts, TextError> {
    let mut texts = Texts::new();
    let mut name: Option<String> = None;
    let mut last: Option<String> = None;
    for (number, line) in lines {
        let field = |title: &str| {
            let (key, value) = line.split_once(':')?;
            key.trim()
                .eq_ignore_ascii_case(title)
                .then(|| value.strip_prefix(' ').unwrap_or(value))
        };
        if line.starts_with("***") {
            (name, last) = (None, None);
        } else if let Some(found) = field("Variable_name") {
            name = Some(found.trim().to_owned());
        } else if let (Some(name), Some(value)) = (&name, field("Value")) {
            keep(&mut texts, path, number, name, value.trim_end().to_owned())?;
            last = Some(name.to_ascii_lowercase());
        } else if let Some(value) = last.as_ref().and_then(|last| texts.get_mut(last)) {
            // A value of several lines.
            value.push('\n');
            value.push_str(line);
        } else {
            return Err(TextError::at(
                path,
                number,
                "expected `Variable_name:` or `Value:`",
            ));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(content: &str) -> Result<Content, TextError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        read(&path)
    }

    #[track_caller]
    fn check(content: &str) {
        let expected: Texts = [
            ("version", "5.6.24"),
            ("ft_boolean_syntax", "+ -><()~*:\"\"&|"),
            ("max_connections", "151"),
            ("init_connect", ""),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(
            read_text(content).unwrap(),
            Content::Variables(expected),
            "{content}"
        );
    }

    #[test]
    fn the_three_formats_say_the_same() {
        check(
            "version\t5.6.24\nft_boolean_syntax\t+ -><()~*:\"\"&|\nmax_connections\t151\ninit_connect\t\n",
        );
        check(
            "mysql: [Warning] Using a password is insecure.\nVariable_name\tValue\nversion\t5.6.24\nft_boolean_syntax\t+ -><()~*:\"\"&|\nmax_connections\t151\ninit_connect\t\n",
        );
        check(
            "+---+---+\n| Variable_name | Value |\n+---+---+\n| version | 5.6.24 |\n| ft_boolean_syntax | + -><()~*:\"\"&| |\n| max_connections | 151 |\n| init_connect | |\n+---+---+\n4 rows in set (0.00 sec)\n",
        );
        check(
            "*************************** 1. row ***************************\nVariable_name: version\n        Value: 5.6.24\n*************************** 2. row ***************************\nVariable_name: ft_boolean_syntax\n        Value: + -><()~*:\"\"&|\n*** 3. row ***\nVariable_name: max_connections\n        Value: 151\n*** 4. row ***\nVariable_name: init_connect\n        Value: \n4 rows in set (0.00 sec)\n",
        );
    }

    #[test]
    fn a_pasted_session_is_read_as_its_result() {
        let table = "+---+---+\n| Variable_name | Value |\n+---+---+\n| version | 5.6.24 |\n| ft_boolean_syntax | + -><()~*:\"\"&| |\n| max_connections | 151 |\n| init_connect | |\n+---+---+\n4 rows in set (0.00 sec)\n";
        for (before, after) in [
            ("mysql> SHOW GLOBAL VARIABLES;\n", "\nmysql> exit\nBye\n"),
            (
                "Welcome to the MariaDB monitor.  Commands end with ; or \\g.\nYour connection id is 7\n\nMariaDB [(none)]> SHOW GLOBAL\n    -> VARIABLES;\n",
                "\nMariaDB [(none)]> \n",
            ),
        ] {
            check(&format!("{before}{table}{after}"));
        }
        let rows = "*** 1. row ***\nVariable_name: version\nValue: 5.6.24\n*** 2. row ***\nVariable_name: ft_boolean_syntax\nValue: + -><()~*:\"\"&|\n*** 3. row ***\nVariable_name: max_connections\nValue: 151\n*** 4. row ***\nVariable_name: init_connect\nValue: \n4 rows in set (0.00 sec)\n";
        check(&format!(
            "mysql> SHOW VARIABLES\\G\n{rows}\nmysql> exit\nBye\n"
        ));
    }

    #[test]
    fn files_of_postgresql_are_recognised_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let read_as = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            read(&path).unwrap()
        };
        for content in ["", "# CREATE TABLE\n", "own.setting = 1\n", "nonsense\n"] {
            assert_eq!(read_as("postgresql.conf", content), Content::OptionFile);
        }
        let Content::Persisted(settings) =
            read_as("postgresql.auto.conf", "# Do not edit\njit = 'off'\n")
        else {
            panic!()
        };
        assert_eq!(settings[0].value.as_deref(), Some("off"));
        let expected = Content::Version(ProgramVersion {
            product: Some(Product::PostgreSql),
            version: dbduel_audit::Version::parse("17.0").unwrap(),
        });
        assert_eq!(read_as("PG_VERSION", "17\n"), expected);
    }

    #[test]
    fn escapes_and_values_of_several_lines_are_kept() {
        let Content::Variables(texts) =
            read_text("sql_mode\t\ninit_connect\ta\\nb\\tc\\\\d\n").unwrap()
        else {
            panic!()
        };
        assert_eq!(texts["init_connect"], "a\nb\tc\\d");
        let Content::Variables(texts) =
            read_text("*** 1. row ***\nVariable_name: sql_mode\nValue: A\nB\n").unwrap()
        else {
            panic!()
        };
        assert_eq!(texts["sql_mode"], "A\nB");
    }

    #[test]
    fn files_are_recognised_by_content() {
        for (content, expected) in [
            ("Uptime\t5\nQuestions\t7\n", "SHOW STATUS"),
            (
                "=====\n2014 7f INNODB MONITOR OUTPUT\n",
                "InnoDB status text",
            ),
            (
                "t\tCREATE TABLE `t` (a int) ENGINE=InnoDB\n",
                "table definitions",
            ),
            ("# ours\n[mysqld]\nport=1\n", "an option file"),
            ("[mariadb-10.1]\n", "an option file"),
            (
                "2014 [Note] mysqld: ready for connections.\n",
                "a server's log",
            ),
            (
                "/usr/sbin/mysqld  Ver 8.4.8 for Linux on x86_64 (MySQL Community Server - GPL)\n",
                "a version",
            ),
            ("threads\ttps\n1\t500\n", "in no format that an audit reads"),
            ("just words\n", "in no format that an audit reads"),
            ("", "in no format that an audit reads"),
        ] {
            assert_eq!(read_text(content).unwrap().what(), expected, "{content}");
        }
    }

    #[test]
    fn dumps_that_break_off_into_something_else_are_errors_with_a_line() {
        for (content, expected) in [
            (
                "version\t5.6\nmax_connections\t1\nwithout tab\n",
                "line 3: a line without a tab",
            ),
            (
                "max_connections\t1\n<html>\t2\n",
                "line 2: `<html>` is not the name",
            ),
            ("| a | b |\n| broken\n", "line 2: a row of a table"),
            (
                "*** 1. row ***\nnonsense\n",
                "line 2: expected `Variable_name:`",
            ),
        ] {
            let error = read_text(content).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
