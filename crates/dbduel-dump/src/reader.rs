//! Splits a dump into statements and the rows of COPY, in memory bounded by the largest statement.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use dbduel_sql::{Syntax, TokenKind};
use memchr::memmem;

use crate::DumpError;
use crate::input::unreadable;
use crate::tokens::{Found, Mark, Tokens};

/// Longest statement, bytes; the most that MySQL's protocol takes.
pub const STATEMENT_BYTES_MAX: usize = 1 << 30;
/// Read at once, bytes.
const CHUNK: usize = 256 << 10;
/// Bytes after a token that must be read before it counts: they could continue it. More than the longest tag of a dollar quote
/// and than the longest delimiter.
const LOOKAHEAD: usize = 256;
/// Longest line of a client's command, bytes.
const COMMAND_BYTES_MAX: usize = 4096;
/// Longest delimiter, bytes.
const DELIMITER_BYTES_MAX: usize = 32;

/// What a piece of a dump is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A statement without its delimiter.
    Statement,
    /// A `COPY … FROM stdin` of PostgreSQL, whose rows follow: [`Reader::rows`].
    Copy,
    /// A command of psql, a line that begins with a backslash.
    Command,
    /// The comment that turns on the sandbox of MariaDB's client.
    Sandbox,
}

/// Reads a dump piece by piece. Its text and position are those of the current piece.
pub struct Reader<'a> {
    path: PathBuf,
    input: Box<dyn Read + 'a>,
    syntax: Syntax,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the part of the buffer begins whose position is `line` and `column`.
    start: usize,
    /// The current piece.
    current: Range<usize>,
    /// Where the search for the next one begins.
    next: usize,
    line: u64,
    column: u64,
    is_ended: bool,
    delimiter: Vec<u8>,
}

/// State of the search for the end of a statement.
struct Search {
    at: usize,
    inside: Option<Mark>,
    first: Option<usize>,
    /// Parentheses around `at`.
    depth: u32,
}

impl Search {
    fn from(at: usize) -> Self {
        Search {
            at,
            inside: None,
            first: None,
            depth: 0,
        }
    }
}

/// Result of a search in the bytes that were read.
enum Step {
    /// A piece, with the place after it.
    Piece(Piece, Range<usize>, usize),
    /// Nothing that matters until this place.
    Skip(usize),
    /// The end may follow.
    More,
}

impl<'a> Reader<'a> {
    /// The pieces of `input`, which is named `path` in errors.
    pub fn new(path: &Path, input: Box<dyn Read + 'a>, syntax: Syntax) -> Self {
        Self::with_limit(path, input, syntax, STATEMENT_BYTES_MAX)
    }

    fn with_limit(path: &Path, input: Box<dyn Read + 'a>, syntax: Syntax, limit: usize) -> Self {
        Self {
            path: path.to_owned(),
            input,
            syntax,
            limit,
            buffer: Vec::new(),
            start: 0,
            current: 0..0,
            next: 0,
            line: 1,
            column: 1,
            is_ended: false,
            delimiter: b";".to_vec(),
        }
    }

    /// The current piece.
    pub fn text(&self) -> &[u8] {
        &self.buffer[self.current.clone()]
    }

    /// Line and byte of the line, from 1, on which the current piece begins.
    pub fn position(&self) -> (u64, u64) {
        (self.line, self.column)
    }

    /// The dump's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Goes to the next piece.
    ///
    /// # Errors
    /// When the dump cannot be read, ends within a statement, or has one that is too long.
    pub fn advance(&mut self) -> Result<Option<Piece>, DumpError> {
        self.pass(self.next);
        self.compact();
        let mut search = Search::from(self.start);
        loop {
            match self.step(&mut search)? {
                Step::Piece(piece, range, next) => {
                    self.pass(range.start);
                    (self.current, self.next) = (range, next);
                    return Ok(Some(piece));
                }
                Step::Skip(at) => search = Search::from(at),
                Step::More if self.is_ended => {
                    let Some(first) = search.first else {
                        return Ok(None);
                    };
                    self.pass(first);
                    return Err(self.unfit(
                        "unfinished",
                        "the dump ends within this statement; was it cut off?",
                    ));
                }
                Step::More => self.read_more(&search)?,
            }
        }
    }

    /// Looks for the end of a piece in what was read.
    fn step(&self, search: &mut Search) -> Result<Step, DumpError> {
        let tokens = Tokens::resume(&self.buffer, self.syntax, search.at, search.inside);
        for found in tokens {
            let token = found.token;
            if !self.is_ended && token.end + LOOKAHEAD > self.buffer.len() {
                return Ok(Step::More);
            }
            if search.first.is_none() {
                if let Some(step) = self.command(&found)? {
                    return Ok(step);
                }
                search.first = Some(found.mark.map_or(token.start, |mark| mark.start));
            }
            if found.mark.is_none()
                && search.depth == 0
                && let Some(end) = self.delimiter_in(&found)
            {
                let next = end + self.delimiter.len();
                let first = search.first.unwrap_or(end).min(end);
                let text = self.buffer[first..end].trim_ascii_end();
                if text.is_empty() {
                    return Ok(Step::Skip(next));
                }
                let range = first..first + text.len();
                let piece = match self.syntax.is_postgresql && is_copy(text) {
                    true => Piece::Copy,
                    false => Piece::Statement,
                };
                return Ok(Step::Piece(piece, range, next));
            }
            // Within parentheses it ends an action of a rule, which MySQL lacks.
            if self.syntax.is_postgresql {
                match token.of(&self.buffer) {
                    b"(" => search.depth += 1,
                    b")" => search.depth = search.depth.saturating_sub(1),
                    _ => {}
                }
            }
            (search.at, search.inside) = (token.end, found.mark);
        }
        Ok(Step::More)
    }

    /// A command of a client at the beginning of a statement.
    fn command(&self, found: &Found) -> Result<Option<Step>, DumpError> {
        let token = found.token;
        let text = token.of(&self.buffer);
        if token.kind == TokenKind::Executed && found.mark.is_none() {
            let range = token.start..token.end;
            return Ok(Some(Step::Piece(Piece::Sandbox, range, token.end)));
        }
        let is_psql = self.syntax.is_postgresql && text == b"\\";
        let is_delimiter = self.syntax.is_mysql
            && token.kind == TokenKind::Word
            && text.eq_ignore_ascii_case(b"DELIMITER");
        if !is_psql && !is_delimiter {
            return Ok(None);
        }
        let rest = &self.buffer[token.start..];
        let end = memchr::memchr(b'\n', rest);
        let length = match end {
            Some(end) => end,
            None if self.is_ended => rest.len(),
            None if rest.len() <= COMMAND_BYTES_MAX => return Ok(Some(Step::More)),
            None => rest.len(),
        };
        let range = token.start..token.start + length;
        let next = range.end + usize::from(end.is_some());
        Ok(Some(Step::Piece(Piece::Command, range, next)))
    }

    /// Where the delimiter begins in a token, or at it.
    fn delimiter_in(&self, found: &Found) -> Option<usize> {
        let token = found.token;
        if matches!(
            token.kind,
            TokenKind::String | TokenKind::Name | TokenKind::Hint | TokenKind::Executed
        ) {
            return None;
        }
        if token.kind == TokenKind::Terminator && self.delimiter == b";" {
            return Some(token.start);
        }
        (token.start..token.end).find(|&at| self.buffer[at..].starts_with(&self.delimiter))
    }

    /// Sets the delimiter from a line `DELIMITER x`, which is the current piece.
    ///
    /// # Errors
    /// When it has none, or one that is longer than any client writes.
    pub fn set_delimiter(&mut self) -> Result<(), DumpError> {
        let words = self.text().split(u8::is_ascii_whitespace);
        let mut words = words.filter(|word| !word.is_empty());
        let delimiter = words
            .nth(1)
            .filter(|word| word.len() <= DELIMITER_BYTES_MAX);
        match delimiter.map(<[u8]>::to_vec) {
            Some(delimiter) if !delimiter.contains(&b'\\') => {
                self.delimiter = delimiter;
                Ok(())
            }
            _ => Err(self.unfit("delimiter", "DELIMITER names none, or one that is too long")),
        }
    }

    /// The rows after a [`Piece::Copy`], up to the line `\.`, which is passed.
    pub fn rows(&mut self) -> CopyRows<'_, 'a> {
        CopyRows {
            reader: self,
            state: CopyState::Head,
            rows: 0,
        }
    }

    /// The error for the piece at the current position.
    pub fn unfit(&self, rule: &'static str, why: &str) -> DumpError {
        let (line, column) = self.position();
        DumpError::Refused {
            path: self.path.clone(),
            line,
            column,
            rule,
            why: why.to_owned(),
            head: crate::rules::head(&self.buffer[self.start..], self.syntax),
        }
    }

    /// Moves the known position to this place of the buffer.
    fn pass(&mut self, to: usize) {
        let passed = &self.buffer[self.start..to.max(self.start)];
        match memchr::memrchr(b'\n', passed) {
            Some(last) => {
                self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
                self.column = (passed.len() - last) as u64;
            }
            None => self.column += passed.len() as u64,
        }
        self.start = to.max(self.start);
        self.next = self.next.max(self.start);
        self.current = self.start..self.start;
    }

    /// Forgets what is before the known position, once that is worth a copy of the rest.
    fn compact(&mut self) {
        if self.start < CHUNK.min(self.buffer.len() / 2 + 1) {
            return;
        }
        self.buffer.drain(..self.start);
        self.next -= self.start;
        (self.start, self.current) = (0, 0..0);
    }

    /// Reads on: as much again as was searched in vain, so that long strings are not searched from their begin too often.
    fn read_more(&mut self, search: &Search) -> Result<(), DumpError> {
        let first = search.first.unwrap_or(search.at);
        if self.buffer.len() - first > self.limit {
            self.pass(first);
            return Err(self.unfit(
                "long",
                "the statement has more than 1 GiB, or a quote or comment is not closed",
            ));
        }
        let searched = self.buffer.len() - search.at;
        self.fill(searched.clamp(CHUNK, self.limit.max(CHUNK)))
            .map_err(unreadable(&self.path))
    }

    /// Appends up to `length` bytes to the buffer.
    fn fill(&mut self, length: usize) -> io::Result<()> {
        let before = self.buffer.len();
        let mut input = self.input.by_ref().take(length as u64);
        input.read_to_end(&mut self.buffer)?;
        self.is_ended = self.buffer.len() < before + length;
        Ok(())
    }
}

/// True for `COPY … FROM stdin`.
fn is_copy(text: &[u8]) -> bool {
    let verb = text.get(..4).unwrap_or_default();
    if !verb.eq_ignore_ascii_case(b"COPY") {
        return false;
    }
    let words: Vec<&[u8]> = Tokens::new(text, Syntax::POSTGRESQL)
        .filter(|found| found.token.kind == TokenKind::Word)
        .map(|found| found.token.of(text))
        .collect();
    words
        .windows(2)
        .any(|pair| pair[0].eq_ignore_ascii_case(b"FROM") && pair[1].eq_ignore_ascii_case(b"STDIN"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    /// Before the end of the statement's line.
    Head,
    /// At the beginning of a row.
    Row,
    /// Within a row.
    InRow,
    /// After the last row.
    Ended,
}

/// The rows of a COPY, as the server reads them.
pub struct CopyRows<'r, 'a> {
    reader: &'r mut Reader<'a>,
    state: CopyState,
    rows: u64,
}

impl CopyRows<'_, '_> {
    /// Rows that were read.
    pub fn count(&self) -> u64 {
        self.rows
    }

    /// True after the line `\.`.
    pub fn is_ended(&self) -> bool {
        self.state == CopyState::Ended
    }

    /// What is left of the buffer; reads on unless it has at least `wanted` bytes.
    fn rest(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while !self.reader.is_ended && self.reader.buffer.len() - self.reader.next < wanted {
            self.reader.pass(self.reader.next);
            self.reader.compact();
            self.reader.fill(CHUNK)?;
        }
        Ok(&self.reader.buffer[self.reader.next..])
    }

    /// Passes the remainder of the line on which the statement ends.
    fn pass_head(&mut self) -> io::Result<()> {
        let rest = self.rest(COMMAND_BYTES_MAX)?;
        let end = memchr::memchr(b'\n', rest);
        let line = end.map(|end| &rest[..end]);
        match (end, line) {
            (Some(end), Some(line)) if line.trim_ascii().is_empty() => {
                self.reader.next += end + 1;
                self.state = CopyState::Row;
                Ok(())
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the rows of COPY do not begin on the next line",
            )),
        }
    }

    /// Length of the line `\.` with its end, if it is next.
    fn end_mark(rest: &[u8]) -> Option<usize> {
        let after = rest.strip_prefix(b"\\.")?;
        match after {
            [] => Some(2),
            [b'\n', ..] => Some(3),
            [b'\r'] => Some(3),
            [b'\r', b'\n', ..] => Some(4),
            _ => None,
        }
    }
}

impl Read for CopyRows<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.state == CopyState::Head {
            self.pass_head()?;
        }
        if self.state == CopyState::Ended || out.is_empty() {
            return Ok(0);
        }
        let state = self.state;
        let rest = self.rest(4)?;
        if state == CopyState::Row
            && let Some(length) = Self::end_mark(rest)
        {
            self.reader.next += length;
            self.state = CopyState::Ended;
            return Ok(0);
        }
        if rest.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the dump ends within the rows of COPY; was it cut off?",
            ));
        }
        // Up to a line that may be the end. The last bytes may be the beginning of one.
        let mark = memmem::find(rest, b"\n\\.").map(|at| at + 1);
        let safe = rest.len().saturating_sub(2).max(1);
        let length = mark.unwrap_or(safe).min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        let lines = memchr::memchr_iter(b'\n', &out[..length]).count();
        self.rows += lines as u64;
        self.state = match out[length - 1] {
            b'\n' => CopyState::Row,
            _ => CopyState::InRow,
        };
        self.reader.next += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a few bytes at a time.
    struct Slow<'t>(&'t [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(out.len());
            (&mut self.0).take(length as u64).read(out)
        }
    }

    /// Pieces with line and column, and rows of COPY as a piece of their own.
    fn pieces(text: &[u8], syntax: Syntax) -> Result<Vec<(u64, u64, String)>, String> {
        let input = Box::new(Slow(text, 7));
        let mut reader = Reader::with_limit(Path::new("d.sql"), input, syntax, 1 << 20);
        let mut found = Vec::new();
        while let Some(piece) = reader.advance().map_err(|error| error.to_string())? {
            let (line, column) = reader.position();
            let text = String::from_utf8_lossy(reader.text()).into_owned();
            match piece {
                Piece::Command if syntax.is_mysql => {
                    reader.set_delimiter().map_err(|error| error.to_string())?;
                }
                Piece::Sandbox => {}
                _ => found.push((line, column, text)),
            }
            if piece == Piece::Copy {
                let mut rows = String::new();
                let read = reader.rows().read_to_string(&mut rows);
                read.map_err(|error| error.to_string())?;
                found.push((0, 0, rows));
            }
        }
        Ok(found)
    }

    fn texts(text: &str, syntax: Syntax) -> Vec<String> {
        let found = pieces(text.as_bytes(), syntax).unwrap();
        found.into_iter().map(|(_, _, text)| text).collect()
    }

    #[test]
    fn statements_have_their_line_and_column() {
        let dump = "-- a; comment\n/* b; */  SELECT 1;\n\nSELECT\n 2 ; SELECT ';''\\';';\n";
        let expected = [
            (2, 11, "SELECT 1".to_owned()),
            (4, 1, "SELECT\n 2".to_owned()),
            (5, 6, "SELECT ';''\\';'".to_owned()),
        ];
        assert_eq!(pieces(dump.as_bytes(), Syntax::MYSQL).unwrap(), expected);
    }

    #[test]
    fn delimiters_and_executed_comments_of_mysql() {
        let dump = "/*M!999999\\- enable the sandbox mode */ \n/*!40101 SET NAMES utf8 */;\nDELIMITER ;;\n\
            /*!50003 CREATE*/ /*!50003 TRIGGER t BEGIN SET a = '*/;;'; SET b = 1; END */;;\ndelimiter $$\n\
            CREATE PROCEDURE p() BEGIN SELECT ';$$'; END$$\nDELIMITER ;\nSELECT 1;";
        assert_eq!(
            texts(dump, Syntax::MYSQL),
            [
                "/*!40101 SET NAMES utf8 */",
                "/*!50003 CREATE*/ /*!50003 TRIGGER t BEGIN SET a = '*/;;'; SET b = 1; END */",
                "CREATE PROCEDURE p() BEGIN SELECT ';$$'; END",
                "SELECT 1",
            ]
        );
    }

    #[test]
    fn rows_of_copy_and_commands_of_psql() {
        let dump = "\\restrict abc\nCOPY public.t (a) FROM stdin;\n1\n\\.x\\\\.\n2;\n\\.\n\nCOPY u FROM stdin;\n\\.\n\
            CREATE FUNCTION f() AS $_$ a; $$ b; $_$;\nCREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; DELETE FROM v);\n\\unrestrict abc\n";
        assert_eq!(
            texts(dump, Syntax::POSTGRESQL),
            [
                "\\restrict abc",
                "COPY public.t (a) FROM stdin",
                "1\n\\.x\\\\.\n2;\n",
                "COPY u FROM stdin",
                "",
                "CREATE FUNCTION f() AS $_$ a; $$ b; $_$",
                "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; DELETE FROM v)",
                "\\unrestrict abc",
            ]
        );
        let windows = "COPY t FROM stdin;\r\n1\r\n\\.\r\nSELECT 1;\r\n";
        assert_eq!(
            texts(windows, Syntax::POSTGRESQL),
            ["COPY t FROM stdin", "1\r\n", "SELECT 1"]
        );
    }

    #[test]
    fn what_is_cut_off_or_endless_is_refused() {
        for (dump, syntax, part) in [
            (
                "SELECT 1;\nSELECT 'a",
                Syntax::MYSQL,
                "d.sql`:2:1: the dump ends within",
            ),
            ("SELECT 1", Syntax::MYSQL, "cut off"),
            ("DELIMITER\nSELECT 1;", Syntax::MYSQL, "DELIMITER"),
            (
                "COPY t FROM stdin;\n1\n",
                Syntax::POSTGRESQL,
                "within the rows",
            ),
            (
                "COPY t FROM stdin; 1\n\\.\n",
                Syntax::POSTGRESQL,
                "next line",
            ),
            ("SELECT $a$ ; $b$ ;", Syntax::POSTGRESQL, "cut off"),
        ] {
            let error = pieces(dump.as_bytes(), syntax).unwrap_err();
            assert!(error.contains(part), "{dump}: {error}");
        }
        let endless = format!(
            "SELECT 1;\n\n  INSERT INTO t VALUES ('{}",
            "x".repeat(2 << 20)
        );
        let error = pieces(endless.as_bytes(), Syntax::MYSQL).unwrap_err();
        assert!(
            error.contains("d.sql`:3:3") && error.contains("1 GiB"),
            "{error}"
        );
    }

    #[test]
    fn long_statements_cross_the_pieces_that_are_read() {
        let long = format!("INSERT INTO t VALUES ('{}')", "a;b''".repeat(CHUNK));
        let dump = format!("{long};\n{long};\n");
        let input = Box::new(dump.as_bytes());
        let mut reader = Reader::new(Path::new("d"), input, Syntax::MYSQL);
        for line in [1, 2] {
            assert_eq!(reader.advance().unwrap(), Some(Piece::Statement));
            assert_eq!(reader.text(), long.as_bytes());
            assert_eq!(reader.position(), (line, 1));
        }
        assert_eq!(reader.advance().unwrap(), None);
    }

    /// A statement whose quotes and comments have delimiters in them.
    fn statement(syntax: Syntax) -> impl Strategy<Value = String> {
        let mysql = vec![
            "'a;\\';'",
            "\"b;\"\"\"",
            "`c;`",
            "/* d; */",
            "/*!50003 e */",
            "-- f;\n",
            "# g;\n",
            "h",
            "1.5",
            "(",
            ")",
            "\n",
        ];
        let postgresql = vec![
            "'a;'''",
            "\"b;\"\"\"",
            "$$c;$$",
            "$t$d;$u$$t$",
            "/* e; /* ; */ */",
            "-- f;\n",
            "E'\\';'",
            "h",
            "1.5",
            "(i; (j); k)",
            "\n",
        ];
        let parts = match syntax.is_mysql {
            true => mysql,
            false => postgresql,
        };
        let part = proptest::sample::select(parts);
        proptest::collection::vec(part, 0..12)
            .prop_map(|parts| format!("SELECT {} x", parts.join(" ")))
    }

    proptest! {
        #[test]
        fn what_was_joined_is_split(
            mysql in proptest::collection::vec(statement(Syntax::MYSQL), 0..8),
            postgresql in proptest::collection::vec(statement(Syntax::POSTGRESQL), 0..8),
        ) {
            for (statements, syntax) in [(mysql, Syntax::MYSQL), (postgresql, Syntax::POSTGRESQL)] {
                let dump: String = statements.iter().map(|one| format!("{one};\n")).collect();
                prop_assert_eq!(texts(&dump, syntax), statements);
            }
        }

        #[test]
        fn junk_is_split_or_refused(
            text in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(b"'\"`\\$/*!-#;M \n".to_vec())], 0..400),
        ) {
            for syntax in [Syntax::MYSQL, Syntax::POSTGRESQL] {
                let _ = pieces(&text, syntax);
            }
        }
    }
}
