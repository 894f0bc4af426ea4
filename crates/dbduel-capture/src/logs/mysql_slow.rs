//! The slow log of MySQL, Percona Server and MariaDB, as a file.
//!
//! An entry is lines that begin with `#`, optionally `use DATABASE;`, `SET timestamp=N;`, then the statement with a semicolon and a
//! newline. Nothing is escaped: a literal that has all of that forges an entry, and no reader can tell it from others. Less does not:
//! an entry is recognised by `# User@Host` after a semicolon at the end of a line, and by `# Query_time` after nothing but such lines.

use std::io::BufRead;

use super::mysql_header::{HeaderFinder, LogServer};
use super::mysql_sessions::{Command, LoggedStatement, Sessions};
use super::mysql_slow_head::{Head, HeadLine, SchemaName};
use super::text::{CUT_OFF, Lacks, LineRead, Lines, LogTime, TOO_LONG, is_full, offset_s};
use super::{LogOptions, LogProduct, ReadError};
use crate::entry::{Lack, Outcome, Sink};

/// Statements after which the shortest one says whether the log has all.
const SAMPLE_STATEMENTS: u64 = 100;

/// A log of so many statements has one shorter than this, nanoseconds, unless `long_query_time` kept it out.
const SHORT_STATEMENT_NS: u64 = 1_000_000;

/// From this version on `SET timestamp` in MySQL's log is the start of a statement, before it the end.
const TIMESTAMP_IS_START: (u32, u32, u32) = (8, 0, 14);

/// Reads a slow log to its end.
///
/// # Errors
/// When it cannot be read, when the sink refuses an entry, or when nothing in it is an entry.
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut reader = Reader {
        sink,
        sessions: Sessions::default(),
        lacks: Lacks::default(),
        product: options.product,
        version: None,
        offset_s: offset_s(options),
        head: Head::default(),
        schema: SchemaName::default(),
        time: None,
        entries: 0,
        shortest_ns: u64::MAX,
    };
    reader.read(&mut Lines::new(input))
}

struct Reader<'s> {
    sink: &'s mut dyn Sink,
    sessions: Sessions,
    lacks: Lacks,
    product: Option<LogProduct>,
    version: Option<(u32, u32, u32)>,
    offset_s: i32,
    /// Of the entry that is being read.
    head: Head,
    /// The last `use` of the file, for all sessions.
    schema: SchemaName,
    /// The last `# Time` of the file.
    time: Option<LogTime>,
    entries: u64,
    shortest_ns: u64,
}

/// What the current line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// No entry.
    Outside,
    /// The lines before a statement.
    Head,
    /// A statement.
    Text,
}

/// Lines that begin an entry if `# Query_time` follows.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Where they begin in the buffer.
    at: usize,
    line: u64,
    has_user: bool,
}

/// The statement that is being read.
#[derive(Debug, Clone, Copy, Default)]
struct OpenText {
    line: u64,
    is_too_long: bool,
}

impl Reader<'_> {
    fn read(&mut self, lines: &mut Lines<'_>) -> Result<(), ReadError> {
        let mut buffer = Vec::new();
        let mut part = Part::Outside;
        let mut text = OpenText::default();
        let mut candidate: Option<Candidate> = None;
        let mut header = HeaderFinder::default();
        // Lines that belong to no entry: first and count.
        let mut strays: (u64, u64) = (1, 0);
        let mut is_fit = false;
        loop {
            let is_kept = candidate.is_some() || part == Part::Text;
            if !is_kept {
                buffer.clear();
                header.buffer_emptied();
            } else if is_full(&buffer) {
                text.is_too_long = true;
                candidate = shorten(&mut buffer, candidate);
                header.buffer_emptied();
            }
            let at = buffer.len();
            let Some(read) = lines.append(&mut buffer)? else {
                break;
            };
            if let Some((begin, server)) = header.push(&buffer[at..], at) {
                // Its first two lines were counted.
                strays.1 = strays.1.saturating_sub(2);
                let begin_line = lines.number() - 2;
                self.finish_piece(text, &buffer[..begin], part, candidate, begin_line)?;
                self.report_strays(&mut strays);
                strays = (lines.number() + 1, 0);
                self.open_header(server)?;
                (part, candidate, is_fit) = (Part::Outside, None, true);
                continue;
            }
            if part == Part::Head {
                let line = &buffer[at..];
                if is_entry_begin(line) && self.head.duration_ns.is_some() {
                    self.finish(text, b"", part, lines.number())?;
                    self.head.reset(lines.number());
                }
                let head_line = self.head.read_line(line, self.offset_s);
                if head_line != HeadLine::Head {
                    part = Part::Text;
                    let follows = u64::from(head_line == HeadLine::Last);
                    text = OpenText {
                        line: lines.number() + follows,
                        is_too_long: read == LineRead::Cut,
                    };
                }
                if head_line == HeadLine::Last {
                    buffer.clear();
                    header.buffer_emptied();
                }
                continue;
            }
            let is_text = part == Part::Text;
            if read == LineRead::Cut {
                // Whether a semicolon ended the line is not known.
                buffer.truncate(at);
                buffer.extend(b";\n");
                text.is_too_long = true;
            }
            candidate = next_candidate(candidate, &buffer, at, is_text, lines.number());
            let begun = candidate.filter(|candidate| {
                candidate.has_user && buffer[at..].starts_with(b"# Query_time: ")
            });
            let Some(begun) = begun else {
                if part == Part::Outside {
                    strays.1 += 1;
                }
                continue;
            };
            if is_text {
                self.finish(text, &buffer[..begun.at], part, begun.line)?;
            } else {
                // The lines of this head but the last were counted.
                strays.1 = strays.1.saturating_sub(lines.number() - begun.line);
                self.report_strays(&mut strays);
            }
            self.head.reset(begun.line);
            for line in buffer[begun.at..].split_inclusive(|byte| *byte == b'\n') {
                self.head.read_line(line, self.offset_s);
            }
            (part, candidate, is_fit) = (Part::Head, None, true);
        }
        if !is_fit {
            return Err(ReadError::Unfit {
                line: 1,
                why: "no line begins an entry of a slow log".to_owned(),
            });
        }
        self.finish_piece(text, &buffer, part, candidate, lines.number() + 1)?;
        self.report_strays(&mut strays);
        if self.entries >= SAMPLE_STATEMENTS && self.shortest_ns >= SHORT_STATEMENT_NS {
            self.lacks.report(Lack::Sampled, self.sink);
        }
        Ok(())
    }

    fn report_strays(&mut self, strays: &mut (u64, u64)) {
        let (first, count) = std::mem::take(strays);
        if count > 0 {
            self.sink.unreadable(first, count, "before the first entry");
        }
    }

    /// A server opened the log here.
    fn open_header(&mut self, server: LogServer) -> Result<(), ReadError> {
        self.product = Some(server.product);
        self.version = Some(server.version);
        self.schema.is_known = false;
        self.time = None;
        self.sessions.log_opened(server, self.sink)
    }

    /// Keeps what a head says about the entries after it.
    fn apply_head(&mut self) {
        if self.head.used.is_known {
            std::mem::swap(&mut self.schema, &mut self.head.used);
            // Still says that the entry has a `use`.
            self.head.used.is_known = true;
        }
        self.time = self.head.time.or(self.time);
        if self.head.is_mariadb {
            self.product.get_or_insert(LogProduct::Mariadb);
        }
        if self.head.is_of_sample {
            self.lacks.report(Lack::Sampled, self.sink);
        }
    }

    /// Takes what is open at the end of a log, or before the header of another one.
    fn finish_piece(
        &mut self,
        open: OpenText,
        text: &[u8],
        part: Part,
        candidate: Option<Candidate>,
        next: u64,
    ) -> Result<(), ReadError> {
        match (part, candidate) {
            (Part::Outside, _) => Ok(()),
            (Part::Text, Some(candidate)) if candidate.at <= text.len() => {
                self.finish(open, &text[..candidate.at], part, candidate.line)?;
                let count = next.saturating_sub(candidate.line);
                self.sink.unreadable(candidate.line, count, CUT_OFF);
                Ok(())
            }
            _ => self.finish(open, text, part, next),
        }
    }

    /// Takes an entry that is complete; the next one begins at line `next`.
    fn finish(
        &mut self,
        open: OpenText,
        text: &[u8],
        part: Part,
        next: u64,
    ) -> Result<(), ReadError> {
        self.apply_head();
        let line = self.head.line;
        let mut leave = |why| self.sink.unreadable(line, next - line, why);
        if part == Part::Head {
            leave(CUT_OFF);
            return Ok(());
        }
        if open.is_too_long {
            leave(TOO_LONG);
            return Ok(());
        }
        let text = text.strip_suffix(b"\n").unwrap_or_default();
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let Some(text) = text.strip_suffix(b";") else {
            leave(CUT_OFF);
            return Ok(());
        };
        let Some(id) = self.head.id else {
            leave("no number of its session (MySQL before 5.6)");
            return Ok(());
        };
        self.note_lacks();
        self.entries += 1;
        let head = &self.head;
        self.shortest_ns = self.shortest_ns.min(head.duration_ns.unwrap_or(0));
        let start = self.start();
        let command = text.strip_prefix(b"# administrator command: ");
        let schema = [&head.schema, &self.schema];
        let schema = schema.into_iter().find(|schema| schema.is_known);
        let logged = LoggedStatement {
            id,
            user: &head.user,
            command: command.map(|name| Command::named(name).unwrap_or(Command::Other)),
            text,
            start: start.map(|start| start.at),
            step_ns: start.map_or(0, |start| start.step_ns),
            duration_ns: head.duration_ns,
            schema: schema.map(|schema| &schema.name[..]),
            is_schema_certain: head.schema.is_known || head.used.is_known,
            outcome: head.error.map(|error| match error {
                0 => Outcome::Ok,
                error => Outcome::Number(error),
            }),
            rows_sent: head.rows_sent,
            rows_affected: head.rows_affected,
            line: open.line,
        };
        self.sessions
            .statement(&logged, &mut self.lacks, &mut *self.sink)
    }

    /// When the statement began. `# Time` is its end in MySQL and its start in MariaDB; `SET timestamp` is the end in MySQL before
    /// 8.0.14 and the start in all others.
    fn start(&self) -> Option<LogTime> {
        let head = &self.head;
        if head.start.is_some() {
            return head.start;
        }
        let before = |end: LogTime| end.before(head.duration_ns.unwrap_or(0));
        let timestamp = head.timestamp.and_then(LogTime::of_seconds);
        let is_mariadb = self.product == Some(LogProduct::Mariadb);
        // Entries that have no time of their own share the last one, which has seconds. `SET timestamp` needs no zone.
        let exact = head.time.filter(|time| !time.is_coarse());
        if is_mariadb {
            return exact.or(timestamp).or(self.time);
        }
        if let Some(end) = exact {
            return before(end);
        }
        let is_start = self
            .version
            .is_some_and(|version| version >= TIMESTAMP_IS_START);
        match timestamp {
            Some(start) if is_start => Some(start),
            end => end.or(self.time).and_then(before),
        }
    }

    fn note_lacks(&mut self) {
        let head = &self.head;
        let is_mariadb = self.product == Some(LogProduct::Mariadb);
        let has_exact_end = head.time.is_some_and(|time| !time.is_coarse());
        let lacks = [
            (Lack::Errors, head.error.is_none()),
            (
                Lack::FractionsOfSeconds,
                head.start.is_none() && !has_exact_end,
            ),
            // MariaDB logs no requests.
            (Lack::SessionEnds, is_mariadb),
            (Lack::Schemas, !head.schema.is_known),
            // MySQL writes times of this form since 5.7, and logs after parsing since then.
            (Lack::SyntaxErrors, !is_mariadb && has_exact_end),
        ];
        for (lack, is_lacking) in lacks {
            if is_lacking {
                self.lacks.report(lack, self.sink);
            }
        }
    }
}

/// Empties a buffer up to what shows that an entry may begin: the end of the last line, and the lines of the candidate.
fn shorten(buffer: &mut Vec<u8>, candidate: Option<Candidate>) -> Option<Candidate> {
    let end = candidate.map_or(buffer.len(), |candidate| candidate.at);
    let from = end.saturating_sub(b";\r\n".len());
    buffer.drain(..from);
    if is_full(buffer) {
        buffer.clear();
        return None;
    }
    let shortened = |candidate: Candidate| Candidate {
        at: candidate.at - from,
        ..candidate
    };
    candidate.map(shortened)
}

fn is_entry_begin(line: &[u8]) -> bool {
    line.starts_with(b"# Time: ") || line.starts_with(b"# User@Host: ")
}

/// Whether the line at `at` begins an entry, or belongs to the lines that may.
fn next_candidate(
    candidate: Option<Candidate>,
    buffer: &[u8],
    at: usize,
    is_text: bool,
    number: u64,
) -> Option<Candidate> {
    let line = &buffer[at..];
    if !line.starts_with(b"#") {
        return None;
    }
    let has_user = line.starts_with(b"# User@Host: ");
    if let Some(candidate) = candidate {
        let has_user = candidate.has_user || has_user;
        return Some(Candidate {
            has_user,
            ..candidate
        });
    }
    let is_free = || {
        let text = buffer[..at].strip_suffix(b"\n").unwrap_or_default();
        text.strip_suffix(b"\r").unwrap_or(text).ends_with(b";")
    };
    let begins = is_entry_begin(line) && (!is_text || is_free());
    begins.then_some(Candidate {
        at,
        line: number,
        has_user,
    })
}

#[cfg(test)]
mod tests {
    use super::super::mysql_sessions::RECENT_ENTRIES;
    use super::super::testing::{
        MYSQL_TEXTS, Notes, assert_buffer_changes_nothing, assert_is_unfit,
    };
    use super::*;

    const MYSQL_5_6: &[u8] = include_bytes!("../../tests/data/slow-mysql-5.6.log");
    const MYSQL_8_0: &[u8] = include_bytes!("../../tests/data/slow-mysql-8.0.log");
    const MYSQL_9_7: &[u8] = include_bytes!("../../tests/data/slow-mysql-9.7.log");
    const MARIADB_10_11: &[u8] = include_bytes!("../../tests/data/slow-mariadb-10.11.log");
    const MARIADB_11_8: &[u8] = include_bytes!("../../tests/data/slow-mariadb-11.8.log");
    /// Four sessions, one of them without a database, and a forged entry.
    const USE: &[u8] = include_bytes!("../../tests/data/slow-use-mysql-8.0.log");
    const SECOND_NS: i64 = 1_000_000_000;

    fn notes_of(log: &[u8]) -> Notes {
        Notes::of(read, log, &LogOptions::default())
    }

    fn count(log: &[u8], what: &[u8]) -> usize {
        memchr::memmem::find_iter(log, what).count()
    }

    #[test]
    fn every_entry_of_mysql_5_6_is_a_statement_or_a_request() {
        let notes = notes_of(MYSQL_5_6);
        // One of the statements is empty.
        let statements =
            count(MYSQL_5_6, b"# Query_time") - count(MYSQL_5_6, b"# administrator") - 1;
        assert_eq!(notes.texts.len(), statements);
        assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
        assert_eq!(notes.sessions(), 3);
        assert_eq!(notes.of_session(1)[0], "begins root on ? open before");
        assert!(notes.of_session(1).contains(&"[init] shop: shop"));
        assert!(notes.of_session(2).contains(&"[user] shop: "));
        assert!(notes.of_session(2).contains(&"shop: SELECT 41 + 1"));
        assert_eq!(*notes.of_session(2).last().unwrap(), "ends");
        assert_eq!(notes.of_session(3)[1], "shop: set global general_log=0");
    }

    #[test]
    fn statements_are_as_the_client_sent_them() {
        for log in [MYSQL_5_6, MYSQL_8_0, MYSQL_9_7, MARIADB_10_11, MARIADB_11_8] {
            let notes = notes_of(log);
            notes.assert_has(&MYSQL_TEXTS);
            notes.assert_has(&[
                b"INSERT INTO item (name, blobby) VALUES ('bin', '\\0\x01\xff\\n\\r\\'\\\\')",
            ]);
        }
    }

    #[test]
    fn a_cut_end_is_unreadable() {
        // Entries before the one that is cut, less the Prepare of 9.7. A Quit of 8.0 ends its session.
        for (log, count_of_entries) in [
            (MYSQL_8_0, 14),
            (MYSQL_9_7, 14 - 1),
            (MARIADB_10_11, 22),
            (MARIADB_11_8, 22),
        ] {
            let notes = notes_of(log);
            let lines = count(log, b"\n") as u64 + 1;
            assert_eq!(notes.unreadable.len(), 1);
            let (line, number, why) = &notes.unreadable[0];
            assert_eq!((line + number - 1, why.as_str()), (lines, CUT_OFF));
            let entries = notes.entries.iter();
            let entries = entries.filter(|entry| !entry.contains(" begins "));
            assert_eq!(entries.count(), count_of_entries);
        }
    }

    #[test]
    fn starts_are_exact_where_the_log_has_them() {
        let extra = notes_of(MYSQL_8_0);
        let start = Some(1_795_824_902_782_807_000);
        assert_eq!(extra.times[0], (start, 1000, Some(180_000)));
        // The end in microseconds, less the duration.
        let plain = notes_of(USE);
        let start = Some(1_795_825_292_304_407_000 - 130_000);
        assert_eq!(plain.times[0], (start, 1000, Some(130_000)));
        // `SET timestamp` is the end.
        let old = notes_of(MYSQL_5_6);
        let sleep = old
            .texts
            .iter()
            .position(|text| text == b"SELECT SLEEP(1.1)");
        let start = Some(1_795_823_080 * SECOND_NS - 1_100_202_000);
        let expected = (start, 1_000_000_000, Some(1_100_202_000));
        assert_eq!(old.times[sleep.unwrap()], expected);
        // `SET timestamp` is the start.
        let mariadb = notes_of(MARIADB_10_11);
        let start = Some(1_795_824_901 * SECOND_NS);
        assert_eq!(mariadb.times[0], (start, 1_000_000_000, Some(4_352_000)));
    }

    #[test]
    fn errors_are_known_with_log_slow_extra() {
        let notes = notes_of(MYSQL_8_0);
        let failed = notes
            .texts
            .iter()
            .position(|text| text == b"SELECT nothing FROM item");
        assert_eq!(notes.outcomes[failed.unwrap()], Some(Outcome::Number(1054)));
        assert_eq!(notes.outcomes[0], Some(Outcome::Ok));
        assert!(!notes.lacks.contains(&Lack::Errors));
        assert!(notes.lacks.contains(&Lack::SyntaxErrors));
        assert!(notes_of(USE).lacks.contains(&Lack::Errors));
    }

    #[test]
    fn mariadb_names_the_database_of_every_entry() {
        let notes = notes_of(MARIADB_11_8);
        assert_eq!(notes.of_session(1)[0], "begins root on  open before");
        let dropped = ": DROP DATABASE IF EXISTS shop";
        assert_eq!(notes.of_session(1)[1], dropped);
        assert_eq!(notes.of_session(1)[4], "shop: SET NAMES utf8mb4");
        assert!(!notes.lacks.contains(&Lack::Schemas));
        assert!(notes.lacks.contains(&Lack::SessionEnds));
        assert!(notes.lacks.contains(&Lack::FractionsOfSeconds));
    }

    #[test]
    fn mysql_writes_use_once_per_file_and_not_per_session() {
        let notes = notes_of(USE);
        assert!(notes.lacks.contains(&Lack::Schemas));
        let texts = |session| notes.of_session(session)[1..].to_vec();
        assert_eq!(texts(3), ["dx: select \\'xx1\\'", "dx: select \\'xx2\\'"]);
        // This session has no database: an entry without one cannot be told from one with the database of the entry before it.
        assert_eq!(texts(5), ["dy: select \\'n1\\'", "dy: select \\'n2\\'"]);
        assert_eq!(*notes.of_session(2).last().unwrap(), "ends");
    }

    #[test]
    fn a_literal_with_half_an_entry_forges_none() {
        let notes = notes_of(USE);
        let forged = notes
            .texts
            .iter()
            .find(|text| text.starts_with(b"select 'forged"));
        assert!(forged.unwrap().ends_with(b"# User@Host: a[a] @ b []\n'"));
        // A whole entry after a semicolon is beyond recognition: the server writes the same bytes for two statements.
        let log = b"# User@Host: a[a] @ b []  Id: 1\n# Query_time: 0.1\nSET timestamp=1;\nSELECT ';\n# User@Host: x[x] @ b []  Id: 2\n# Query_time: 0.1\nSET timestamp=1;\nDROP TABLE t';\n";
        let notes = notes_of(log);
        assert_eq!(notes.texts, [&b"SELECT '"[..], b"DROP TABLE t'"]);
    }

    #[test]
    fn lines_of_other_servers_are_understood() {
        let percona = b"# Time: 190101 10:00:00\n# User@Host: web[web] @ app [10.0.0.2]  Id:    12\n# Schema: my  shop  Last_errno: 1146  Killed: 0\n# Query_time: 0.000300  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 5  Rows_affected: 2\n# Bytes_sent: 56\n# InnoDB_trx_id: 1F\n# Log_slow_rate_type: query  Log_slow_rate_limit: 10\nSET last_insert_id=5,insert_id=7,timestamp=1546336800;\n-- c\n# d\nSELECT 1;\n";
        let notes = notes_of(percona);
        assert_eq!(notes.of_session(1)[0], "begins web on my  shop open before");
        assert_eq!(notes.texts, [b"-- c\n# d\nSELECT 1"]);
        assert_eq!(notes.outcomes, [Some(Outcome::Number(1146))]);
        assert!(notes.lacks.contains(&Lack::Sampled));
        let warnings = b"# User@Host: a[a] @ b []\n# Thread_id: 5  Schema: s  QC_hit: No\n# Query_time: 0.1\n# Warnings\n# Note 1 a\nb;\nuse `a``b`;\nSET timestamp=1;\nSELECT 2;\n";
        let notes = notes_of(warnings);
        assert_eq!(notes.texts, [b"SELECT 2"]);
        assert_eq!(notes.times[0].0, Some(SECOND_NS));
    }

    #[test]
    fn a_log_with_long_statements_only_is_a_sample() {
        let entry =
            "# User@Host: a[a] @ b []  Id: 1\n# Query_time: 1.5\nSET timestamp=1;\nSELECT 1;\n";
        let notes = notes_of(entry.repeat(100).as_bytes());
        assert!(notes.lacks.contains(&Lack::Sampled));
        let entry = entry.replace("1.5", "0.0002");
        let notes = notes_of(entry.repeat(100).as_bytes());
        assert!(!notes.lacks.contains(&Lack::Sampled));
    }

    #[test]
    fn sessions_survive_flush_logs_and_end_at_a_start() {
        let header = |version: &str| {
            format!(
                "mysqld, Version: {version} (MySQL). started with:\nTcp port: 0  Unix socket: S\nTime                 Id Command    Argument\n"
            )
        };
        let entry = |id: u32, text: &str| {
            format!(
                "# User@Host: a[a] @ b []  Id: {id}\n# Query_time: 0.1\nSET timestamp=1;\n{text};\n"
            )
        };
        let quit = entry(10, "# administrator command: Quit");
        let log = [
            &header("8.0.33"),
            &entry(8, "SELECT 1"),
            &entry(10, "SELECT 2"),
            &quit,
            // FLUSH LOGS: an id that is open, then one that is new.
            &header("8.0.33"),
            &entry(8, "SELECT 3"),
            &header("8.0.33"),
            &entry(11, "SELECT 4"),
            // A start: an id that is neither.
            &header("8.0.33"),
            &entry(10, "SELECT 5"),
            // Another version.
            &header("8.0.34"),
            &entry(10, "SELECT 6"),
        ];
        let notes = notes_of(log.map(String::as_str).concat().as_bytes());
        assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
        assert_eq!(notes.of_session(1)[1..], ["SELECT 1", "SELECT 3", "ended"]);
        assert_eq!(notes.of_session(2)[1..], ["SELECT 2", "ends"]);
        assert_eq!(notes.of_session(3)[1..], ["SELECT 4", "ended"]);
        assert_eq!(notes.of_session(4)[1..], ["SELECT 5", "ended"]);
        assert_eq!(notes.of_session(5)[1..], ["SELECT 6"]);
        // MariaDB logs no end: an id is taken for another session where the one that had it has long been silent.
        let many = entry(20_000, "SELECT 7").repeat(RECENT_ENTRIES as usize + 1);
        let log = [
            header("10.11.19-MariaDB"),
            entry(8, "SELECT 1"),
            many,
            header("10.11.19-MariaDB"),
            entry(8, "SELECT 2"),
        ];
        assert_eq!(notes_of(log.concat().as_bytes()).sessions(), 3);
    }

    #[test]
    fn an_entry_that_a_header_cuts_off_is_unreadable() {
        let log = [MYSQL_9_7, b"\n", USE].concat();
        let notes = notes_of(&log);
        assert_eq!(notes.unreadable.len(), 1);
        assert!(notes.texts.contains(&b"select 'x1'".to_vec()));
    }

    #[test]
    fn an_entry_without_a_statement_or_session_is_unreadable() {
        let head = "# User@Host: a[a] @ b []  Id: 1\n# Query_time: 0.1\n";
        let log = format!(
            "x;\n# y\n{head}{head}SET timestamp=1;\nSELECT 1;\n# User@Host: a[a] @ b []\n# Query_time: 0.1\nSET timestamp=1;\nSELECT 2;\n{head}use x;\n"
        );
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [b"SELECT 1"]);
        let unreadable: Vec<_> = notes
            .unreadable
            .iter()
            .map(|(line, lines, _)| (*line, *lines))
            .collect();
        assert_eq!(unreadable, [(1, 2), (3, 2), (9, 4), (13, 3)]);
    }

    #[test]
    fn a_statement_that_is_too_long_is_counted_and_left_out() {
        let head: &[u8] = b"# User@Host: a[a] @ b []  Id: 1\n# Query_time: 0.1\nSET timestamp=1;\n";
        let long = vec![b'x'; super::super::ENTRY_BYTES_MAX + 100];
        let line = [&[b'y'; 63][..], b"\n"].concat();
        let lines = line.repeat((64 << 20) / 64 + 10);
        let next: &[u8] = b"SELECT 1;\n";
        let log = [
            head, &long, b";\n", head, next, head, &lines, b";\n", head, next,
        ]
        .concat();
        let notes = notes_of(&log);
        assert_eq!(notes.texts, [b"SELECT 1", b"SELECT 1"]);
        let why = notes.unreadable.iter().map(|(.., why)| why.as_str());
        assert_eq!(why.collect::<Vec<_>>(), [TOO_LONG, TOO_LONG]);
    }

    #[test]
    fn what_is_no_slow_log_is_refused() {
        assert_is_unfit(read, b"one\n# Time: two\n", &LogOptions::default());
    }

    #[test]
    fn a_small_buffer_changes_nothing() {
        assert_buffer_changes_nothing(read, MARIADB_10_11, &LogOptions::default());
    }
}
