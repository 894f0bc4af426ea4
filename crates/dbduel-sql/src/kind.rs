//! Kinds of statements, and which of them a replay may run.
//!
//! A list of what is allowed, since a list of what is not would have gaps. It is not the only guard: a replay logs in to an
//! account without the privileges for files, other accounts and the server's settings, on a server whose paths are confined.

use std::borrow::Cow;

use super::functions::{unknown_call, unquoted};
use super::lexer::{Lexer, Syntax, TokenKind};
use super::settings::refused_setting;

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Returns rows and changes none; with `FOR UPDATE` it locks them.
    Read,
    /// Changes rows.
    Write,
    /// Changes the schema, or maintains tables. Ends a transaction in MySQL.
    Definition,
    /// Begins a transaction.
    Begin,
    /// Commits one.
    Commit,
    /// Rolls one back.
    Rollback,
    /// Sets, releases or rolls back to a savepoint.
    Savepoint,
    /// Changes the session's settings.
    Set,
    /// Chooses a default database.
    Use,
    /// Asks about the server or the schema.
    Show,
    /// Prepares a statement in SQL.
    Prepare,
    /// Executes one in SQL.
    Execute,
    /// Forgets one.
    Deallocate,
    /// Calls a procedure.
    Call,
    /// Locks or unlocks tables.
    Lock,
    /// Anything else.
    Other,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 16] = [
        Self::Read,
        Self::Write,
        Self::Definition,
        Self::Begin,
        Self::Commit,
        Self::Rollback,
        Self::Savepoint,
        Self::Set,
        Self::Use,
        Self::Show,
        Self::Prepare,
        Self::Execute,
        Self::Deallocate,
        Self::Call,
        Self::Lock,
        Self::Other,
    ];

    /// Its name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Definition => "definition",
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
            Self::Savepoint => "savepoint",
            Self::Set => "set",
            Self::Use => "use",
            Self::Show => "show",
            Self::Prepare => "prepare",
            Self::Execute => "execute",
            Self::Deallocate => "deallocate",
            Self::Call => "call",
            Self::Lock => "lock",
            Self::Other => "other",
        }
    }
}

/// Why a statement is not replayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refused {
    /// A short phrase for a table: `SET GLOBAL`, ``calls the function `f`, which is not known to be harmless``.
    pub what: Cow<'static, str>,
}

/// What a statement does.
#[must_use]
pub fn kind_of(text: &[u8], syntax: Syntax) -> Kind {
    Words::of(text, syntax).kind()
}

/// What a statement does, if a replay may run it. Judged by the default quotes and escapes of the product; what changes them is refused.
///
/// # Errors
/// Why it may not.
pub fn replayable(text: &[u8], syntax: Syntax) -> Result<Kind, Refused> {
    // A statement that is one executed comment, as dumps have them, is what is in it.
    if let Some(inner) = only_executed(text, syntax) {
        return replayable(inner, syntax);
    }
    let words = Words::of(text, syntax);
    let kind = words.kind();
    let setting = || match kind {
        Kind::Set => refused_setting(text, syntax),
        _ => None,
    };
    if let Some(what) = words.refused(kind).or_else(setting) {
        return Err(Refused { what: what.into() });
    }
    match unknown_call(text, syntax) {
        Some(name) => Err(Refused {
            what: format!("calls the function `{name}`, which is not known to be harmless").into(),
        }),
        None => Ok(kind),
    }
}

/// The text in an executed comment that is all of a statement. None where something in it is not closed, which for the server ends
/// behind the comment, and where it has several statements.
fn only_executed(text: &[u8], syntax: Syntax) -> Option<&[u8]> {
    let mut tokens = Lexer::new(text, syntax).filter(|token| token.kind != TokenKind::Terminator);
    let only = tokens
        .next()
        .filter(|token| token.kind == TokenKind::Executed)?;
    let inner = executed(only.of(text));
    let ended = [inner, b";"].concat();
    let is_end = |kind| matches!(kind, TokenKind::Terminator | TokenKind::Executed);
    let end = Lexer::new(&ended, syntax).find(|token| is_end(token.kind))?;
    let is_whole = end.kind == TokenKind::Terminator && end.start == inner.len();
    (tokens.next().is_none() && is_whole).then_some(inner)
}

/// Words of a statement that are looked at; one with more is not replayed.
const WORDS_MAX: usize = 1 << 20;

/// What an executed comment may hold beside other words: hints that older servers do not know.
const HARMLESS_COMMENTS: [&str; 4] = [
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
    "STRAIGHT_JOIN",
];
/// Words of a statement among which the table that it changes is looked for.
const TARGET_WORDS: usize = 6;

/// The words of a statement in capital letters, with what follows each.
struct Words {
    words: Vec<Word>,
    syntax: Syntax,
    /// Why the words do not say what the statement does.
    unclear: Option<&'static str>,
}

struct Word {
    text: String,
    /// True before an opening parenthesis: a function, or a table's list of columns.
    is_called: bool,
    /// Parentheses around it.
    depth: u32,
    is_quoted: bool,
}

impl Words {
    fn of(text: &[u8], syntax: Syntax) -> Self {
        let mut found = Self {
            words: Vec::new(),
            syntax,
            unclear: None,
        };
        let mut depth = 0;
        found.add(text, &mut depth, 0);
        found
    }

    fn add(&mut self, text: &[u8], depth: &mut u32, nesting: u32) {
        for token in Lexer::new(text, self.syntax) {
            if self.words.len() >= WORDS_MAX {
                return;
            }
            let bytes = token.of(text);
            let word = match (token.kind, bytes) {
                (TokenKind::Word, word) => word,
                (TokenKind::Name, name) => {
                    // `UESCAPE` chooses the sign of its escapes.
                    if name[0] != b'"' && name[0] != b'`' {
                        self.unclear = Some("name with escapes");
                    }
                    unquoted(name)
                }
                // Whether a server executes it depends on its product and version.
                (TokenKind::Executed, comment) => {
                    let inner = executed(comment).trim_ascii().to_ascii_uppercase();
                    let is_harmless = HARMLESS_COMMENTS
                        .iter()
                        .any(|word| word.as_bytes() == inner);
                    if !is_harmless {
                        self.unclear = Some("executed comment");
                    }
                    if nesting == 0 {
                        self.add(executed(comment), depth, 1);
                    }
                    continue;
                }
                // Where the server's scanner of hints lets a quote hold the end of the comment, more follows than is seen.
                (TokenKind::Hint, hint)
                    if self.syntax.is_mysql
                        && hint.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'`')) =>
                {
                    self.unclear = Some("hint with quotes");
                    continue;
                }
                (TokenKind::Sign, b"(") => {
                    if let Some(last) = self.words.last_mut() {
                        last.is_called = true;
                    }
                    *depth += 1;
                    continue;
                }
                (TokenKind::Sign, b")") => {
                    *depth = depth.saturating_sub(1);
                    continue;
                }
                _ => continue,
            };
            let text = String::from_utf8_lossy(word).to_ascii_uppercase();
            self.words.push(Word {
                text,
                is_called: false,
                depth: *depth,
                is_quoted: token.kind == TokenKind::Name,
            });
        }
    }

    fn at(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word.text.as_str())
    }

    fn has(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| word.text == wanted)
    }

    fn kind(&self) -> Kind {
        match self.at(0) {
            "WITH" => self.kind_after_with(),
            first => self.kind_of_word(first),
        }
    }

    /// The statement after common table expressions: the first verb outside of their parentheses.
    fn kind_after_with(&self) -> Kind {
        let mut outer = self.words.iter().skip(1).filter(|word| word.depth == 0);
        let is_write = |word: &Word| {
            matches!(
                word.text.as_str(),
                "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE"
            )
        };
        let verb = outer.find(|word| word.text == "SELECT" || is_write(word));
        // PostgreSQL's expressions may write themselves.
        let mut all = self.words.iter();
        match verb.is_some_and(is_write)
            || (self.syntax.is_postgresql && all.any(|word| is_write(word) && !word.is_called))
        {
            true => Kind::Write,
            false => Kind::Read,
        }
    }

    fn kind_of_word(&self, first: &str) -> Kind {
        let second = self.at(1);
        match first {
            "SELECT" | "TABLE" | "VALUES" | "HANDLER" | "FETCH" | "MOVE" | "DECLARE" | "CLOSE" => {
                Kind::Read
            }
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => Kind::Write,
            "BEGIN" => Kind::Begin,
            "START" if second == "TRANSACTION" => Kind::Begin,
            "COMMIT" | "END" => Kind::Commit,
            "ROLLBACK" if self.has("TO") => Kind::Savepoint,
            "ROLLBACK" | "ABORT" => Kind::Rollback,
            "SAVEPOINT" | "RELEASE" => Kind::Savepoint,
            "SET" | "RESET" | "DISCARD" => Kind::Set,
            "USE" => Kind::Use,
            "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN" | "HELP" => Kind::Show,
            "PREPARE" => Kind::Prepare,
            "EXECUTE" => Kind::Execute,
            "DEALLOCATE" => Kind::Deallocate,
            "DROP" if second == "PREPARE" => Kind::Deallocate,
            "CALL" => Kind::Call,
            "LOCK" | "UNLOCK" => Kind::Lock,
            "CREATE" | "ALTER" | "DROP" | "RENAME" | "TRUNCATE" | "COMMENT" | "GRANT"
            | "REVOKE" | "ANALYZE" | "OPTIMIZE" | "VACUUM" | "REINDEX" | "CLUSTER" | "CHECK"
            | "REPAIR" | "REFRESH" => Kind::Definition,
            _ => Kind::Other,
        }
    }

    /// Why a replay may not run the statement.
    fn refused(&self, kind: Kind) -> Option<&'static str> {
        if self.words.len() >= WORDS_MAX {
            return Some("statement of more than a million words");
        }
        if self.unclear.is_some() {
            return self.unclear;
        }
        // Without a blank a number and the word may be one.
        let is_file = |word: &Word| {
            let ends = ["OUTFILE", "DUMPFILE"];
            !word.is_quoted && ends.iter().any(|end| word.text.ends_with(end))
        };
        if self.syntax.is_mysql && self.words.iter().any(is_file) {
            return Some("INTO a file of the server");
        }
        match kind {
            Kind::Write if self.changes_system() => Some("change of the server's own tables"),
            // What it does is not in the log.
            Kind::Call => Some("calls a procedure"),
            Kind::Read if self.syntax.is_postgresql && self.selects_into() => Some("SELECT INTO"),
            Kind::Begin
                if self.syntax.is_mysql
                    && self.at(0) == "BEGIN"
                    && !matches!(self.at(1), "" | "WORK") =>
            {
                Some("compound statement")
            }
            Kind::Read
            | Kind::Write
            | Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Use => None,
            Kind::Set => self.refused_set(),
            Kind::Show => self.refused_show(),
            Kind::Lock => match self.at(1) {
                "INSTANCE" | "BINLOG" => Some("lock of the whole server"),
                _ => None,
            },
            // A general log has each execution as such, too.
            Kind::Prepare | Kind::Execute | Kind::Deallocate if self.syntax.is_mysql => {
                Some("PREPARE in SQL (its executions are replayed)")
            }
            Kind::Prepare => match self.kind_of_prepared() {
                Kind::Read | Kind::Write => None,
                _ => Some("PREPARE of another statement than reads and writes"),
            },
            Kind::Execute | Kind::Deallocate => None,
            Kind::Definition => self.refused_definition(),
            Kind::Other => Some(self.other()),
        }
    }

    /// True when a table of the server itself is among the first words.
    fn changes_system(&self) -> bool {
        let mut first = self.words.iter().take(TARGET_WORDS);
        first.any(|word| match self.syntax.is_mysql {
            true => matches!(word.text.as_str(), "MYSQL" | "SYS" | "PERFORMANCE_SCHEMA"),
            false => word.text.starts_with("PG_"),
        })
    }

    /// PostgreSQL: `SELECT … INTO table`, which makes one.
    fn selects_into(&self) -> bool {
        self.at(0) != "FETCH"
            && self
                .words
                .iter()
                .any(|word| word.text == "INTO" && word.depth == 0)
    }

    /// PostgreSQL: `PREPARE name (types) AS statement`.
    fn kind_of_prepared(&self) -> Kind {
        let mut words = self
            .words
            .iter()
            .skip_while(|word| word.text != "AS")
            .skip(1);
        words
            .next()
            .map_or(Kind::Other, |word| self.kind_of_word(&word.text))
    }

    fn refused_set(&self) -> Option<&'static str> {
        let is_global = |word: &Word| {
            ["GLOBAL", "PERSIST", "PERSIST_ONLY"]
                .iter()
                .any(|scope| word.text.ends_with(scope))
                || ["@@GLOBAL", "@@PERSIST"]
                    .iter()
                    .any(|scope| word.text.starts_with(scope))
        };
        if self.syntax.is_mysql && self.words.iter().any(is_global) {
            return Some("SET GLOBAL");
        }
        if self.syntax.is_mysql && self.at(1) == "STATEMENT" {
            return Some("SET STATEMENT");
        }
        let mut first = self.words.iter().skip(1).take(3);
        let names_account = first.any(|word| {
            matches!(
                word.text.as_str(),
                "PASSWORD" | "ROLE" | "AUTHORIZATION" | "SESSION_AUTHORIZATION"
            )
        });
        match (names_account, self.at(1), self.at(2)) {
            (true, ..) => Some("account or role"),
            (_, "RESOURCE", "GROUP") => Some("resource group"),
            _ => None,
        }
    }

    fn refused_show(&self) -> Option<&'static str> {
        match self.at(0) {
            "EXPLAIN" | "DESCRIBE" | "DESC" if self.has("ANALYZE") || self.has("ANALYSE") => {
                Some("EXPLAIN ANALYZE")
            }
            "SHOW" if (self.at(1), self.at(2)) == ("CREATE", "USER") => {
                Some("SHOW of accounts or replication")
            }
            "SHOW"
                if matches!(
                    self.at(1),
                    "GRANTS"
                        | "BINLOG"
                        | "BINARY"
                        | "MASTER"
                        | "SLAVE"
                        | "REPLICA"
                        | "REPLICAS"
                        | "RELAYLOG"
                ) =>
            {
                Some("SHOW of accounts or replication")
            }
            _ => None,
        }
    }

    /// True for `CREATE [OR REPLACE] [GLOBAL | LOCAL] TEMPORARY TABLE` and `DROP TEMPORARY TABLE`.
    fn is_of_temporary_table(&self) -> bool {
        let mut words = self.words.iter().map(|word| word.text.as_str()).skip(1);
        let modifiers = ["OR", "REPLACE", "GLOBAL", "LOCAL"];
        let first = words.find(|word| !modifiers.contains(word));
        matches!(first, Some("TEMPORARY" | "TEMP")) && words.next() == Some("TABLE")
    }

    fn refused_definition(&self) -> Option<&'static str> {
        match self.at(0) {
            "CREATE" | "DROP" if self.is_of_temporary_table() => None,
            "GRANT" | "REVOKE" => Some("accounts"),
            "CREATE" | "ALTER" | "DROP" | "RENAME"
                if matches!(self.at(1), "USER" | "ROLE" | "GROUP") =>
            {
                Some("accounts")
            }
            "ALTER" if matches!(self.at(1), "SYSTEM" | "INSTANCE") => Some("setting of the server"),
            "ANALYZE" | "OPTIMIZE" | "VACUUM" | "REINDEX" | "CLUSTER" | "CHECK" | "REPAIR"
            | "REFRESH" => Some("maintenance of tables"),
            _ => Some("change of the schema"),
        }
    }

    fn other(&self) -> &'static str {
        match self.at(0) {
            "SHUTDOWN" | "RESTART" => "end of the server",
            "KILL" => "end of another session",
            "LOAD" | "IMPORT" => "file of the client or the server",
            "COPY" => "COPY (its data are not in the log)",
            "DO" => "DO",
            "LISTEN" | "NOTIFY" | "UNLISTEN" => "messages between sessions",
            "XA" => "distributed transaction",
            "FLUSH" | "PURGE" | "CACHE" | "CHECKPOINT" => "state of the server",
            "CHANGE" | "STOP" | "START" | "BINLOG" => "replication",
            "INSTALL" | "UNINSTALL" => "plugin",
            _ => "statement that is not on the list",
        }
    }
}

/// What is inside of an executed comment, without its mark and its version.
#[must_use]
pub fn executed(comment: &[u8]) -> &[u8] {
    let inner = comment.strip_prefix(b"/*").unwrap_or(comment);
    let inner = inner.strip_suffix(b"*/").unwrap_or(inner);
    let inner = inner.strip_prefix(b"M").unwrap_or(inner);
    let inner = inner.strip_prefix(b"!").unwrap_or(inner);
    let digits = inner
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    &inner[digits..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_and_writes_are_distinguished() {
        for (sql, kind) in [
            ("select 1", Kind::Read),
            (" ( SELECT a FROM t ) UNION SELECT b FROM u", Kind::Read),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Kind::Read),
            ("WITH x AS (SELECT 1) DELETE FROM t", Kind::Write),
            ("insert into t values (1)", Kind::Write),
            ("/*!50000 UPDATE */ t SET a = 1", Kind::Write),
            ("BEGIN", Kind::Begin),
            ("start transaction with consistent snapshot", Kind::Begin),
            ("ROLLBACK TO a", Kind::Savepoint),
            ("rollback", Kind::Rollback),
            ("SET NAMES utf8", Kind::Set),
            ("DROP PREPARE p", Kind::Deallocate),
            ("DROP TABLE t", Kind::Definition),
            ("KILL 5", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(kind_of(sql.as_bytes(), Syntax::MYSQL), kind, "{sql}");
        }
        let writing = "WITH gone AS (DELETE FROM t RETURNING a) SELECT a FROM gone";
        assert_eq!(kind_of(writing.as_bytes(), Syntax::POSTGRESQL), Kind::Write);
    }

    #[test]
    fn what_could_harm_is_never_replayed() {
        for sql in [
            "SHUTDOWN",
            "kill 7",
            "SET GLOBAL max_connections = 5",
            "SET a = 1, @@global.max_connections = 5",
            "SET PERSIST x = 1",
            "/*!50000 SET GLOBAL*/ x = 1",
            "/*M!100100 SET GLOBAL*/ x = 1",
            "SELECT a INTO OUTFILE '/tmp/x' FROM t",
            "SELECT LOAD_FILE('/etc/passwd')",
            "SELECT `load_file`('/etc/passwd')",
            "SELECT load_file/**/('/etc/passwd')",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "CREATE USER a",
            "SET PASSWORD = 'x'",
            "GRANT ALL ON *.* TO a",
            "CREATE TABLE t (a INT)",
            "DROP TABLE t",
            "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'",
            "INSTALL PLUGIN a SONAME 'b'",
            "CHANGE MASTER TO MASTER_HOST = 'a'",
            "PREPARE p FROM 'SHUTDOWN'",
            "DO SLEEP(5)",
            "FLUSH TABLES WITH READ LOCK",
            "EXPLAIN ANALYZE DELETE FROM t",
            "/*!99999 SELECT */ SHUTDOWN",
            "DROP /*!99999 TEMPORARY */ TABLE t",
            "SELECT a INTO /*!99999 x*/ OUTFILE '/x' FROM t",
            "SELECT LOAD_FILE/*!99999 x*/('/x')",
            "SELECT 1 /*!, '*/', LOAD_FILE('/x'), '*/' */",
            "SET STATEMENT max_statement_time = 9 FOR DROP DATABASE shop",
            "BEGIN NOT ATOMIC DROP TABLE t; END",
            "DROP TABLE temp",
            "CREATE TABLE temp (a INT)",
            "SELECT 1.INTO OUTFILE '/tmp/x'",
            r"SELECT @'a\'', LOAD_FILE('/etc/passwd'), '",
            "SELECT 1 --\u{7f}\n, LOAD_FILE('/x')",
            "SET @@GLOBAL .max_connections = 5",
            "SHOW CREATE USER a",
            "SELECT 1e5INTO OUTFILE '/tmp/x'",
            "SELECT 1.OUTFILE '/tmp/x'",
            "SET a = 1GLOBAL",
            "SELECT /*+ SET_VAR(a = '*/') */ 1",
            "/*!50000 SELECT '*/# ' */; DROP TABLE t",
            "/*!50000 SELECT `*/# ` */",
            "/*!50000 SELECT 1 -- */",
            "/*!50000 SELECT 1; DROP TABLE t */",
            "SET SESSION sql_mode = 'ANSI_QUOTES'",
            "/*!40101 SET NAMES gbk */",
            "CALL sys.execute_prepared_stmt('DROP DATABASE shop')",
            "UPDATE mysql.user SET x = 1",
            "CALL p(1)",
            "SELECT shop_total(5)",
            "SELECT shop.total(5)",
            "SELECT sys_exec('x')",
            "SELECT BENCHMARK(1000000, MD5('a'))",
            "nonsense",
        ] {
            assert!(replayable(sql.as_bytes(), Syntax::MYSQL).is_err(), "{sql}");
        }
        for sql in [
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT pg_catalog.pg_read_file('/etc/passwd')",
            "SELECT \"pg_read_file\" ('x')",
            "COPY t TO PROGRAM 'x'",
            "COPY t FROM STDIN",
            "DO $$ begin end $$",
            "ALTER SYSTEM SET x = 1",
            "SET ROLE postgres",
            "SET SESSION AUTHORIZATION postgres",
            "VACUUM",
            "LISTEN a",
            "PREPARE p AS DROP TABLE t",
            "SELECT dblink_exec('x')",
            "SELECT lo_import('/etc/passwd')",
            "SELECT pg_ls_dir('/')",
            "SELECT DISTINCT ON (a) pg_read_file(a) FROM t",
            "SELECT shop_total(5)",
            "SELECT public.lower('x')",
            "SELECT 1 --\r, pg_read_file('/etc/passwd')",
            r#"SELECT U&"\0070g_read_file"('x')"#,
            "SET LOCAL ROLE x",
            "SET SESSION SESSION AUTHORIZATION x",
            "SET session_authorization = x",
            "SELECT set_config('role', 'x', false)",
            "UPDATE pg_authid SET rolsuper = true",
            "SELECT query_to_xml('select 1', true, true, '')",
            "SELECT pg_ls_replslotdir()",
            "SELECT * INTO new FROM t",
            r"SELECT E'a'
'b\'' || pg_read_file('/x') || '...'",
            r#"SELECT U&"!0070g_read_file" UESCAPE '!' ('/x')"#,
            "SET standard_conforming_strings = off",
        ] {
            assert!(
                replayable(sql.as_bytes(), Syntax::POSTGRESQL).is_err(),
                "{sql}"
            );
        }
    }

    #[test]
    fn what_applications_send_is_replayed() {
        for sql in [
            "SELECT option_value FROM wp_options WHERE option_name = 'kill' LIMIT 1",
            "SELECT `global` FROM t",
            "INSERT INTO t (a) VALUES ('SHUTDOWN; SET GLOBAL x')",
            "SET SESSION sql_mode = ''",
            "SET NAMES utf8mb4",
            "SET autocommit = 0",
            "USE shop",
            "SHOW FULL COLUMNS FROM t",
            "LOCK TABLES t WRITE",
            "CREATE TEMPORARY TABLE x (a INT)",
            "DROP TEMPORARY TABLE x",
            "/*!40101 SET NAMES utf8 */",
            "SELECT /*!40001 SQL_NO_CACHE */ a FROM t",
            r"SELECT 'it\'s' FROM t",
            r"INSERT INTO p (b) VALUES ('it\'s fun (really)')",
            r#"INSERT INTO p (b) VALUES ("call f(1)")"#,
            "SELECT `outfile` FROM t",
            "SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1",
            "COMMIT",
        ] {
            assert!(replayable(sql.as_bytes(), Syntax::MYSQL).is_ok(), "{sql}");
        }
        for sql in [
            "PREPARE p (int) AS SELECT $1",
            "EXECUTE p (1)",
            "DECLARE c CURSOR FOR SELECT 1",
            "FETCH 10 FROM c",
            "CREATE TEMP TABLE x (a int)",
            "SET search_path = shop",
            "INSERT INTO p (b) VALUES ('C:\\', 'a (b)')",
            "SELECT outfile FROM t",
            "DISCARD ALL",
        ] {
            assert!(
                replayable(sql.as_bytes(), Syntax::POSTGRESQL).is_ok(),
                "{sql}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_kind(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            for syntax in [Syntax::MYSQL, Syntax::POSTGRESQL, Syntax::SQLITE] {
                let kind = kind_of(&text, syntax);
                if let Ok(replayed) = replayable(&text, syntax) {
                    prop_assert_eq!(replayed, kind);
                }
            }
        }
    }
}
