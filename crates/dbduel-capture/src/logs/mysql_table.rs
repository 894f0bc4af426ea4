//! `mysql.general_log` and `mysql.slow_log` of MySQL and MariaDB (`log_output=TABLE`), as the CSV files that hold them.
//!
//! A row is a line: values are in quotes with `\"`, `\\`, `\n` and `\r`, numbers bare.

use std::io::BufRead;
use std::ops::Range;

use super::mysql_header::login_name;
use super::mysql_sessions::{Command, LoggedCommand, LoggedStatement, Sessions};
use super::text::{
    CUT_OFF, Lacks, LineRead, Lines, LogTime, TOO_LONG, is_full, long_time, number, offset_s,
    seconds_ns, without_line_end,
};
use super::{LogOptions, LogProduct, ReadError};
use crate::entry::{Lack, Sink};

/// Columns of `mysql.general_log`: event_time, user_host, thread_id, server_id, command_type, argument.
pub const GENERAL_COLUMNS: usize = 6;

/// Columns of `mysql.slow_log` in MySQL: start_time, user_host, query_time, lock_time, rows_sent, rows_examined, db,
/// last_insert_id, insert_id, server_id, sql_text, thread_id.
const SLOW_COLUMNS: usize = 12;

/// In MariaDB rows_affected follows.
const SLOW_COLUMNS_MARIADB: usize = 13;

/// Reads a table of the general or the slow log to its end.
///
/// # Errors
/// When it cannot be read, when the sink refuses an entry, or when no line is a row of these tables.
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut lines = Lines::new(input);
    let mut reader = Reader {
        sink,
        sessions: Sessions::default(),
        lacks: Lacks::default(),
        product: options.product,
        offset_s: offset_s(options),
    };
    let (mut line, mut row) = (Vec::new(), Row::default());
    let mut is_fit = false;
    loop {
        line.clear();
        let Some(read) = lines.append(&mut line)? else {
            break;
        };
        if read == LineRead::Cut || is_full(&line) {
            reader.sink.unreadable(lines.number(), 1, TOO_LONG);
            continue;
        }
        let why = match row.parse(without_line_end(&line)) {
            _ if read == LineRead::Unended => Some(CUT_OFF),
            Ok(()) => reader.row(&row, lines.number())?,
            Err(why) => Some(why),
        };
        is_fit |= why.is_none();
        if let Some(why) = why {
            reader.sink.unreadable(lines.number(), 1, why);
        }
    }
    if !is_fit && lines.number() > 0 {
        return Err(ReadError::Unfit {
            line: 1,
            why: "no line is a row of mysql.general_log or mysql.slow_log".to_owned(),
        });
    }
    Ok(())
}

/// Appends a row of `mysql.general_log` to the text of its file. The values are those of the columns in order; the time is UTC.
pub fn append_general_row(text: &mut Vec<u8>, values: [&[u8]; GENERAL_COLUMNS]) {
    for (place, value) in values.into_iter().enumerate() {
        text.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
        for byte in value {
            match byte {
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\r' => text.extend_from_slice(b"\\r"),
                b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
                byte => text.push(*byte),
            }
        }
        text.extend_from_slice(if place == 0 { b"Z\"" } else { b"\"" });
    }
    text.push(b'\n');
}

struct Reader<'s> {
    sink: &'s mut dyn Sink,
    sessions: Sessions,
    lacks: Lacks,
    product: Option<LogProduct>,
    offset_s: i32,
}

const NO_ROW: &str = "not a row of mysql.general_log or mysql.slow_log";

impl Reader<'_> {
    /// Takes a row; returns why it cannot be read.
    fn row(&mut self, row: &Row, line: u64) -> Result<Option<&'static str>, ReadError> {
        let taken = match row.fields.len() {
            GENERAL_COLUMNS => self.general(row, line)?,
            SLOW_COLUMNS | SLOW_COLUMNS_MARIADB => self.slow(row, line)?,
            _ => None,
        };
        if row.has_replaced_bytes && taken.is_some() {
            self.lacks.report(Lack::CutValues, self.sink);
        }
        Ok(taken.is_none().then_some(NO_ROW))
    }

    fn general(&mut self, row: &Row, line: u64) -> Result<Option<()>, ReadError> {
        let Some((time, id)) = self.time(row.field(0)).zip(number(row.field(2))) else {
            return Ok(None);
        };
        let Some(command) = Command::named(row.field(4)) else {
            return Ok(None);
        };
        for lack in [Lack::Durations, Lack::Errors, Lack::Rows] {
            self.lacks.report(lack, self.sink);
        }
        if time.is_coarse() {
            self.lacks.report(Lack::FractionsOfSeconds, self.sink);
        }
        if self.product == Some(LogProduct::Mysql) {
            self.lacks.report(Lack::SyntaxErrors, self.sink);
        }
        let logged = LoggedCommand {
            id,
            at: Some(time.at),
            step_ns: time.step_ns,
            command,
            argument: row.field(5),
            user: login_name(row.field(1)),
            line,
        };
        self.sessions.command(&logged, &mut self.lacks, self.sink)?;
        Ok(Some(()))
    }

    fn slow(&mut self, row: &Row, line: u64) -> Result<Option<()>, ReadError> {
        let Some((time, id)) = self.time(row.field(0)).zip(number(row.field(11))) else {
            return Ok(None);
        };
        let duration_ns = clock_ns(row.field(2));
        if duration_ns.is_none() {
            self.lacks.report(Lack::Durations, self.sink);
        }
        self.lacks.report(Lack::Errors, self.sink);
        if time.is_coarse() {
            self.lacks.report(Lack::FractionsOfSeconds, self.sink);
        }
        // start_time is the start in MariaDB and the end in MySQL.
        let is_mariadb = row.fields.len() == SLOW_COLUMNS_MARIADB;
        let start = match duration_ns {
            Some(duration_ns) if !is_mariadb => time.before(duration_ns),
            _ => Some(time),
        };
        if is_mariadb {
            self.lacks.report(Lack::SessionEnds, self.sink);
        }
        let text = row.field(10);
        let logged = LoggedStatement {
            id,
            user: login_name(row.field(1)),
            // Requests have their name in place of a statement.
            command: Command::named(text),
            text,
            start: start.map(|start| start.at),
            step_ns: start.map_or(0, |start| start.step_ns),
            duration_ns,
            schema: Some(row.field(6)),
            is_schema_certain: true,
            outcome: None,
            rows_sent: number(row.field(4)),
            rows_affected: row.fields.get(12).and_then(|_| number(row.field(12))),
            line,
        };
        self.sessions
            .statement(&logged, &mut self.lacks, self.sink)?;
        Ok(Some(()))
    }

    fn time(&self, text: &[u8]) -> Option<LogTime> {
        let (time, end) = long_time(text, b' ', self.offset_s)?;
        (end == text.len()).then_some(time)
    }
}

/// The values of a row, in a buffer that is used again.
#[derive(Debug, Default)]
struct Row {
    text: Vec<u8>,
    fields: Vec<Range<usize>>,
    /// Whether bytes that are not valid in the table's character set seem to be written as `\xFF`.
    has_replaced_bytes: bool,
}

impl Row {
    fn field(&self, at: usize) -> &[u8] {
        let range = self.fields.get(at).cloned();
        range.map_or(&[], |range| &self.text[range])
    }

    /// Reads a line without its newline.
    fn parse(&mut self, mut line: &[u8]) -> Result<(), &'static str> {
        self.text.clear();
        self.fields.clear();
        self.has_replaced_bytes = false;
        loop {
            let start = self.text.len();
            line = match line.strip_prefix(b"\"") {
                Some(quoted) => self.parse_quoted(quoted).ok_or(NO_ROW)?,
                None => {
                    let end = memchr::memchr(b',', line).unwrap_or(line.len());
                    self.text.extend(&line[..end]);
                    &line[end..]
                }
            };
            self.fields.push(start..self.text.len());
            line = match line {
                [] => return Ok(()),
                [b',', rest @ ..] if self.fields.len() < SLOW_COLUMNS_MARIADB => rest,
                _ => return Err(NO_ROW),
            };
        }
    }

    /// Reads a value up to its closing quote; returns what follows.
    fn parse_quoted<'l>(&mut self, mut line: &'l [u8]) -> Option<&'l [u8]> {
        loop {
            let at = memchr::memchr2(b'"', b'\\', line)?;
            self.text.extend(&line[..at]);
            if line[at] == b'"' {
                return Some(&line[at + 1..]);
            }
            let escaped = *line.get(at + 1)?;
            self.text.push(match escaped {
                b'n' => b'\n',
                b'r' => b'\r',
                // `\"`, `\\`.
                other => other,
            });
            line = &line[at + 2..];
            self.has_replaced_bytes |= escaped == b'\\' && is_replaced_byte(line);
        }
    }
}

/// `xFF` after a backslash: the server writes bytes so that are not valid in the table's character set. A client may have sent the
/// same four characters, so they are not turned back.
fn is_replaced_byte(text: &[u8]) -> bool {
    matches!(
        text,
        [
            b'x',
            b'8'..=b'9' | b'A'..=b'F',
            b'0'..=b'9' | b'A'..=b'F',
            ..,
        ]
    )
}

/// `HH:MM:SS.ffffff` in nanoseconds. Without a fraction (MySQL 5.6) it is no duration: most statements take less than a second.
fn clock_ns(text: &[u8]) -> Option<u64> {
    let mut parts = text.split(|byte| *byte == b':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let has_fraction = seconds.contains(&b'.');
    let minutes = number(hours)?
        .checked_mul(60)?
        .checked_add(number(minutes)?)?;
    let whole_ns = minutes.checked_mul(60_000_000_000)?;
    let duration_ns = whole_ns.checked_add(seconds_ns(seconds)?)?;
    has_fraction.then_some(duration_ns)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MYSQL_TEXTS, Notes, assert_is_unfit};
    use super::*;

    const MARIADB_10_11: &[u8] = include_bytes!("../../tests/data/general-table-mariadb-10.11.csv");
    const MYSQL_5_6: &[u8] = include_bytes!("../../tests/data/general-table-mysql-5.6.csv");

    fn notes_of(log: &[u8]) -> Notes {
        Notes::of(read, log, &LogOptions::default())
    }

    #[test]
    fn the_general_log_of_mariadb_has_microseconds() {
        let notes = notes_of(MARIADB_10_11);
        assert_eq!(notes.sessions(), 2);
        assert_eq!(notes.of_session(1)[0], "begins root on  whole");
        assert_eq!(notes.of_session(2)[0], "begins root on shop whole");
        let start = Some(1_795_824_901_596_808_000);
        assert_eq!(notes.times[0], (start, 1000, None));
        assert!(!notes.lacks.contains(&Lack::FractionsOfSeconds));
        // The sample ends in a row.
        assert_eq!(notes.unreadable, [(47, 1, CUT_OFF.to_owned())]);
        // 30 rows with Query, one of them empty, and 4 with Execute, one of them of a statement EXECUTE.
        let count = |what: &[u8]| memchr::memmem::find_iter(MARIADB_10_11, what).count();
        let rows = count(b",\"Query\",") + count(b",\"Execute\",");
        assert_eq!(notes.texts.len(), rows - 2);
    }

    #[test]
    fn the_general_log_of_mysql_5_6_has_seconds() {
        let notes = notes_of(MYSQL_5_6);
        assert!(notes.lacks.contains(&Lack::FractionsOfSeconds));
        assert!(notes.lacks.contains(&Lack::PreparedText));
        assert_eq!(notes.unreadable.len(), 1);
        assert_eq!(notes.sessions(), 2);
    }

    #[test]
    fn escapes_are_undone() {
        let notes = notes_of(MARIADB_10_11);
        notes.assert_has(&MYSQL_TEXTS);
        notes.assert_has(&[
            b"SELECT id, name FROM item WHERE id = 2 AND name <> 'it\\'s \\\"x\\\"\\n2'",
            // Its byte 255 was replaced by the server.
            b"INSERT INTO item (name, blobby) VALUES ('bin', '\\0\x01\\xFF\\n\\r\\'\\\\')",
        ]);
        assert!(notes.lacks.contains(&Lack::CutValues));
    }

    #[test]
    fn the_slow_log_is_read_by_its_columns() {
        // In MySQL start_time is the end, in MariaDB, which has one more column, the start.
        let mysql = b"\"2026-11-28 00:15:02.784332\",\"web[web] @ localhost []\",\"00:00:01.000005\",\"00:00:00.000000\",3,9,\"shop\",0,0,1,\"SELECT\\n\\\"a\\\"\",2652\n\"2026-11-28 00:15:03.000000\",\"web[web] @ localhost []\",\"00:00:00.000000\",\"00:00:00.000000\",0,0,\"shop\",0,0,1,\"Quit\",2652\n";
        let notes = notes_of(mysql);
        assert_eq!(notes.entries[0], "1 begins web on shop open before");
        assert_eq!(notes.entries[1], "1 shop: SELECT\\n\\\"a\\\"");
        assert_eq!(notes.entries[2], "1 ends");
        let start = Some(1_795_824_902_784_332_000 - 1_000_005_000);
        assert_eq!(notes.times[0], (start, 1000, Some(1_000_005_000)));
        let mariadb = b"\"2026-11-28 00:15:02.784332\",\"web[web] @ localhost []\",\"00:00:01.000005\",\"00:00:00.000000\",3,9,\"shop\",0,0,1,\"SELECT 1\",2652,7\n";
        let notes = notes_of(mariadb);
        let start = Some(1_795_824_902_784_332_000);
        assert_eq!(notes.times[0], (start, 1000, Some(1_000_005_000)));
        assert!(notes.lacks.contains(&Lack::SessionEnds));
    }

    #[test]
    fn rows_that_are_written_come_back() {
        let statements = [
            &b"SELECT 'a\"b\\', '\n\r\t\0,'"[..],
            b"SELECT '\xff\xfe'",
            b"\\n\"",
            b"",
        ];
        let mut text = Vec::new();
        for statement in statements {
            let time = b"2026-11-28 00:15:02.784332";
            let values = [
                &time[..],
                b"web[web] @ localhost []",
                b"7",
                b"1",
                b"Query",
                statement,
            ];
            append_general_row(&mut text, values);
        }
        let offset = LogOptions {
            timezone_offset_s: Some(3600),
            ..LogOptions::default()
        };
        let notes = Notes::of(read, &text, &offset);
        // An empty statement is none.
        assert_eq!(notes.texts, statements[..3]);
        assert_eq!(notes.of_session(1)[0], "begins web on ? open before");
        assert_eq!(notes.times[0].0, Some(1_795_824_902_784_332_000));
    }

    #[test]
    fn durations_in_whole_seconds_are_none() {
        assert_eq!(clock_ns(b"01:00:02.5"), Some(3_602_500_000_000));
        assert_eq!(clock_ns(b"00:00:02"), None);
        assert_eq!(clock_ns(b"99999999999999999:00:00.0"), None);
    }

    #[test]
    fn a_damaged_row_costs_no_other() {
        let row =
            b"\"2026-11-27 23:44:39\",\"root[root] @ localhost []\",3,0,\"Query\",\"SELECT 1\"\n";
        let broken: &[u8] =
            b"\"2026-11-27 23:44:39\",\"root[root] @ localhost []\",3,0,\"Query\",\"SELECT\n";
        let log = [&row[..], broken, b"\"\\\n", b"\n", row].concat();
        let notes = notes_of(&log);
        assert_eq!(notes.texts.len(), 2);
        let lines = notes.unreadable.iter().map(|(line, ..)| *line);
        assert_eq!(lines.collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert_is_unfit(read, b"one,two\n", &LogOptions::default());
    }
}
