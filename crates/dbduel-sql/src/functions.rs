//! Functions that a statement calls, and which of them are known to be harmless.
//!
//! A list of what is harmless, per family of products: a function that is not on it may be one of the application, of an extension or
//! of a newer server. No grammar: a word before a parenthesis is a call unless a rule below says otherwise, so that what the rules do
//! not know is refused. Calls without parentheses, by operators, casts, views and triggers are not found; the account of a replay has
//! no privilege that they could use.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::lexer::{Lexer, Syntax, Token, TokenKind};

/// Longest name in a reason, characters.
const NAME_MAX: usize = 64;

static MYSQL: LazyLock<HashSet<&str>> =
    LazyLock::new(|| words(include_str!("../data/functions-mysql.txt")));
static POSTGRESQL: LazyLock<HashSet<&str>> =
    LazyLock::new(|| words(include_str!("../data/functions-postgresql.txt")));
static BEFORE_PARENTHESES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| words(include_str!("../data/before-parentheses.txt")));

/// The words of a table; lines that begin with `#` have none.
fn words(table: &'static str) -> HashSet<&'static str> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_ascii_whitespace).collect()
}

/// The first function of a statement that is not known to be harmless: its name in lower case.
pub(crate) fn unknown_call(text: &[u8], syntax: Syntax) -> Option<String> {
    let mut calls = Calls::new(syntax);
    Lexer::new(text, syntax).find_map(|token| calls.token(token, text))
}

/// What stands before a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Before {
    /// Nothing in this statement.
    Nothing,
    /// An unquoted word, in lower case.
    Word(String),
    /// A parenthesis that closes what an alias may follow.
    Table,
    /// `::`.
    Cast,
    Comma,
    Open,
    Other,
}

/// A name, perhaps with a schema, after which a parenthesis may follow.
#[derive(Debug)]
struct Name {
    /// The last part, in lower case.
    last: String,
    is_quoted: bool,
    /// Whether it has capital letters in quotes.
    keeps_case: bool,
    /// The part before the last point.
    schema: Option<String>,
    before: Before,
}

/// Where a list of common table expressions is: `WITH name (columns) AS (statement), …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Outside,
    BeforeName,
    AfterName,
    AfterColumns,
    BeforeBody,
    AfterBody,
}

/// What is between two parentheses, or outside of all.
#[derive(Debug, Clone, Copy)]
struct Frame {
    with: With,
    /// Whether an alias with a list of columns may follow it.
    is_table: bool,
}

/// Reads the tokens of a statement and finds calls.
struct Calls {
    syntax: Syntax,
    /// First word of the statement.
    verb: Option<String>,
    /// Whether all words so far are `INSERT` or `REPLACE` and their modifiers.
    is_before_target: bool,
    name: Option<Name>,
    /// Whether a point follows the name.
    is_after_point: bool,
    /// What stands before the next token if that is a name.
    before: Before,
    is_after_colon: bool,
    frames: Vec<Frame>,
}

const OUTSIDE: Frame = Frame {
    with: With::Outside,
    is_table: false,
};

impl Calls {
    fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            verb: None,
            is_before_target: true,
            name: None,
            is_after_point: false,
            before: Before::Nothing,
            is_after_colon: false,
            frames: vec![OUTSIDE],
        }
    }

    /// Takes the next token; returns the name of a call that is not known to be harmless.
    fn token(&mut self, token: Token, text: &[u8]) -> Option<String> {
        let bytes = token.of(text);
        match (token.kind, bytes) {
            (TokenKind::Word, word) => self.word(word, false),
            (TokenKind::Name, name) => self.word(unquoted(name), true),
            // They have no calls: what an executed comment may hold is a list of words.
            (TokenKind::Hint | TokenKind::Executed, _) => {}
            (TokenKind::Sign, b".") if self.name.is_some() => self.is_after_point = true,
            (TokenKind::Sign, b"(") => return self.open(),
            (TokenKind::Sign, b")") => self.close(),
            (TokenKind::Terminator, _) => *self = Self::new(self.syntax),
            (_, other) => self.other(other),
        }
        None
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(OUTSIDE);
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn word(&mut self, word: &[u8], is_quoted: bool) {
        let keeps_case = is_quoted && word.iter().any(u8::is_ascii_uppercase);
        let word = String::from_utf8_lossy(word).to_ascii_lowercase();
        self.is_after_colon = false;
        if std::mem::take(&mut self.is_after_point)
            && let Some(name) = &mut self.name
        {
            name.schema = Some(std::mem::replace(&mut name.last, word));
            name.is_quoted = is_quoted;
            name.keeps_case = keeps_case;
            return;
        }
        let before = match self.name.take() {
            Some(Name {
                last,
                is_quoted: false,
                schema: None,
                ..
            }) => Before::Word(last),
            Some(_) => Before::Other,
            None => std::mem::replace(&mut self.before, Before::Other),
        };
        let is = |wanted: &str| !is_quoted && word == wanted;
        let with = &mut self.frame().with;
        *with = match *with {
            _ if is("with") => With::BeforeName,
            With::BeforeName if is("recursive") => With::BeforeName,
            With::BeforeName => With::AfterName,
            With::AfterName | With::AfterColumns if is("as") => With::BeforeBody,
            With::BeforeBody if is("not") || is("materialized") => With::BeforeBody,
            _ => With::Outside,
        };
        if let Before::Word(previous) = &before {
            self.is_before_target &= matches!(
                previous.as_str(),
                "insert" | "replace" | "ignore" | "low_priority" | "high_priority" | "delayed"
            );
        } else {
            self.is_before_target &= before == Before::Nothing;
        }
        if self.verb.is_none() && !is_quoted {
            self.is_before_target &= matches!(word.as_str(), "insert" | "replace");
            self.verb = Some(word.clone());
        }
        self.name = Some(Name {
            last: word,
            is_quoted,
            keeps_case,
            schema: None,
            before,
        });
    }

    fn open(&mut self) -> Option<String> {
        let name = self.name.take();
        let with = self.frame().with;
        let unknown = name
            .as_ref()
            .filter(|name| with != With::AfterName && !self.is_harmless(name))
            .map(|name| {
                let schema = name.schema.iter().flat_map(|schema| [schema.as_str(), "."]);
                let whole: String = schema.chain([name.last.as_str()]).collect();
                whole.chars().take(NAME_MAX).collect()
            });
        let is_table = match &name {
            Some(name) if self.is_keyword(name) => {
                matches!(name.last.as_str(), "from" | "join" | "lateral")
            }
            Some(_) => true,
            None => matches!(self.before, Before::Comma | Before::Open),
        };
        self.frame().with = match with {
            With::AfterName => With::AfterColumns,
            With::BeforeBody => With::AfterBody,
            _ => With::Outside,
        };
        self.frames.push(Frame {
            is_table,
            ..OUTSIDE
        });
        self.before = Before::Open;
        self.is_after_point = false;
        self.is_after_colon = false;
        unknown
    }

    fn close(&mut self) {
        let closed = self.frames.pop();
        self.name = None;
        self.is_after_point = false;
        self.is_after_colon = false;
        self.before = match closed {
            Some(Frame { is_table: true, .. }) => Before::Table,
            _ => Before::Other,
        };
    }

    /// A sign, or a value.
    fn other(&mut self, bytes: &[u8]) {
        self.name = None;
        self.is_after_point = false;
        let with = &mut self.frame().with;
        *with = match (*with, bytes) {
            (With::AfterBody, b",") => With::BeforeName,
            _ => With::Outside,
        };
        self.before = match bytes {
            b"," => Before::Comma,
            b":" if self.is_after_colon => Before::Cast,
            _ => Before::Other,
        };
        self.is_after_colon = bytes == b":";
    }

    /// True for a word before a parenthesis that is none of a call.
    fn is_keyword(&self, name: &Name) -> bool {
        !name.is_quoted && name.schema.is_none() && BEFORE_PARENTHESES.contains(name.last.as_str())
    }

    fn is_harmless(&self, name: &Name) -> bool {
        self.is_keyword(name) || self.is_declared(name) || self.is_builtin(name)
    }

    fn is_builtin(&self, name: &Name) -> bool {
        // In MySQL a schema makes it a stored function, in PostgreSQL capital letters in quotes make it another function.
        match (self.syntax.is_mysql, name.schema.as_deref()) {
            (true, None) => MYSQL.contains(name.last.as_str()),
            (true, Some(_)) => false,
            (false, None | Some("pg_catalog")) => {
                !name.keeps_case && POSTGRESQL.contains(name.last.as_str())
            }
            (false, Some(_)) => false,
        }
    }

    /// True where the parenthesis has columns of a table, an alias or an index, a type's length, or the values of a prepared statement.
    fn is_declared(&self, name: &Name) -> bool {
        let verb = self.verb.as_deref().unwrap_or_default();
        let before = match &name.before {
            // `FROM f(x) alias (columns)`.
            Before::Table | Before::Cast => return true,
            Before::Word(before) => before.as_str(),
            _ => return false,
        };
        match before {
            "as" | "into" | "table" | "references" | "ordinality" => true,
            "insert" | "replace" | "ignore" | "low_priority" | "high_priority" | "delayed" => {
                self.is_before_target
            }
            "exists" | "key" | "index" | "unique" | "fulltext" | "spatial" | "constraint" => {
                verb == "create"
            }
            "prepare" => verb == "prepare",
            "execute" => self.syntax.is_postgresql,
            _ => false,
        }
    }
}

/// A quoted name without its quotes and its prefix; doubled quotes stay.
pub(crate) fn unquoted(name: &[u8]) -> &[u8] {
    let open = name.iter().position(|byte| matches!(byte, b'"' | b'`'));
    let inner = open.and_then(|open| name.get(open + 1..name.len() - 1));
    inner.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_lower_case_without_repetitions() {
        for table in [
            include_str!("../data/functions-mysql.txt"),
            include_str!("../data/functions-postgresql.txt"),
            include_str!("../data/before-parentheses.txt"),
        ] {
            let lines = table.lines().filter(|line| !line.starts_with('#'));
            let all: Vec<&str> = lines.flat_map(str::split_ascii_whitespace).collect();
            assert_eq!(all.len(), words(table).len());
            let is_name =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(all.iter().all(|word| word.bytes().all(is_name)));
        }
    }

    #[test]
    fn what_applications_call_is_known() {
        for sql in [
            "SELECT COUNT(*), MAX (a), IFNULL(b, 1) FROM t WHERE a IN (1) AND (b) OR NOT (c)",
            "SELECT CAST(a AS DECIMAL(10,2)), CONVERT(a, CHAR(5)), GROUP_CONCAT(DISTINCT b SEPARATOR ',')",
            "INSERT INTO shop.t (a, b) VALUES (1, NOW()), (2, uuid()) ON DUPLICATE KEY UPDATE b = VALUES(b)",
            "INSERT IGNORE t (a) VALUE (1)",
            "REPLACE LOW_PRIORITY `t`(a) SELECT b FROM u USE INDEX (i) WHERE MATCH (a) AGAINST ('x')",
            "WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x), y (m) AS (SELECT 1) SELECT * FROM x",
            "CREATE TEMPORARY TABLE IF NOT EXISTS x (a VARCHAR(9), KEY i (a), UNIQUE j (a), PRIMARY KEY USING BTREE (a))",
            "SELECT RANK() OVER (PARTITION BY a ORDER BY b), SUM(a) OVER w FROM t WINDOW w AS (ORDER BY a)",
            "SELECT a.n FROM (SELECT 1 n) x (n) JOIN JSON_TABLE('[]', '$[*]' COLUMNS (n INT PATH '$')) AS a ON (a.n = x.n)",
        ] {
            assert_eq!(unknown_call(sql.as_bytes(), Syntax::MYSQL), None, "{sql}");
        }
        for sql in [
            "SELECT pg_catalog.lower(a), \"upper\"(b), count(*) FILTER (WHERE a), a::numeric(10,2), b::public.geometry(Point,4)",
            "SELECT * FROM unnest($1::int[]) WITH ORDINALITY t(a, n), generate_series(1, 2) g(i)",
            "WITH a AS MATERIALIZED (SELECT 1), b (x) AS NOT MATERIALIZED (SELECT 2) SELECT * FROM a, b",
            "INSERT INTO t AS n (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET (a, b) = (1, 2) RETURNING (a)",
            "UPDATE t SET a = v.a FROM (VALUES (1, 2)) v(a, b) WHERE t.b = ANY (ARRAY[1])",
            "SELECT extract(epoch FROM now()), substring(a FROM 1 FOR 2), coalesce(json_build_object('a', 1) ->> 'a', '')",
            "SELECT DISTINCT ON (a) lower(b) FROM t TABLESAMPLE bernoulli (1)",
            "EXECUTE p (lower('A'))",
            "PREPARE p (int, text) AS SELECT $1",
            "SELECT n.nspname OPERATOR(pg_catalog.~) '^(a)$' COLLATE pg_catalog.default FROM pg_catalog.pg_namespace n",
        ] {
            assert_eq!(
                unknown_call(sql.as_bytes(), Syntax::POSTGRESQL),
                None,
                "{sql}"
            );
        }
    }

    #[test]
    fn calls_of_other_functions_are_found() {
        for (sql, name) in [
            ("SELECT LOAD_FILE('/x')", "load_file"),
            ("SELECT `load_file`('/x')", "load_file"),
            ("SELECT HIGH_PRIORITY load_file('/x')", "load_file"),
            ("INSERT t SELECT HIGH_PRIORITY f('/x')", "f"),
            ("INSERT INTO t (a) VALUES (f(1))", "f"),
            ("SELECT shop.lower('x')", "shop.lower"),
            ("SELECT a FROM t ORDER BY f (a)", "f"),
            ("WITH x (a) AS (SELECT f(1)) SELECT a FROM x", "f"),
            ("SELECT 1 FROM t GROUP BY a WITH ROLLUP HAVING f(a)", "f"),
            ("SET @a = f(1)", "f"),
            ("SELECT `and`(1)", "and"),
            ("SELECT benchmark(1000000000, md5('a'))", "benchmark"),
        ] {
            let found = unknown_call(sql.as_bytes(), Syntax::MYSQL);
            assert_eq!(found.as_deref(), Some(name), "{sql}");
        }
        for (sql, name) in [
            (
                "SELECT pg_catalog.pg_read_file('/x')",
                "pg_catalog.pg_read_file",
            ),
            ("SELECT DISTINCT ON (a) pg_read_file('/x')", "pg_read_file"),
            ("SELECT * FROM dblink('x', 'y') AS (a int)", "dblink"),
            ("SELECT * FROM g(1), dblink(a, b) AS (c int)", "g"),
            (
                "SELECT * FROM lower('a') x(a), dblink(a, b) AS (c int)",
                "dblink",
            ),
            (
                "SELECT '{}' IS JSON WITH UNIQUE KEYS, pg_ls_dir('/')",
                "pg_ls_dir",
            ),
            ("SELECT \"LOWER\"('x')", "lower"),
            ("SELECT public.lower('x')", "public.lower"),
            ("SELECT (1) + pg_ls_dir('/')", "pg_ls_dir"),
            (
                "WITH x AS (SELECT 1) SELECT pg_ls_dir('/') FROM x",
                "pg_ls_dir",
            ),
            (
                "WITH x AS (SELECT 1), y AS (SELECT pg_ls_dir('/')) SELECT 1",
                "pg_ls_dir",
            ),
            ("EXECUTE p (f(1))", "f"),
            ("SELECT set_config('role', 'x', false)", "set_config"),
        ] {
            let found = unknown_call(sql.as_bytes(), Syntax::POSTGRESQL);
            assert_eq!(found.as_deref(), Some(name), "{sql}");
        }
    }
}
