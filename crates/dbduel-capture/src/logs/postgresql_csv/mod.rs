//! PostgreSQL's csvlog.
//!
//! A record is a row of CSV whose message may have line breaks. A record whose end is missing, after a crash of the server, would
//! turn the meaning of all quotes after it: a line within a quoted field begins a record if it does so in every detail. A literal
//! cannot forge that, since its quotes are doubled.

pub(super) mod message;
pub(super) mod sessions;

use std::io::BufRead;

use message::{Level, Message, is_client, session_key, sql_state, time};
use sessions::Sessions;

use super::text::{
    CUT_OFF, LineRead, Lines, TOO_LONG, is_full, number, offset_s, without_line_end,
};
use super::{LogOptions, ReadError};
use crate::entry::Sink;

/// Fields that are kept of a record; later ones are not used.
const FIELDS: usize = 24;
/// Fields of a record: 23 until version 12, 24 in 13, 26 since 14, with room for later ones.
const FIELD_COUNTS: std::ops::RangeInclusive<usize> = 22..=40;

const TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const SESSION: usize = 5;
const PLACE: usize = 6;
const ACTIVITY: usize = 7;
const LEVEL: usize = 11;
const STATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;
const STATEMENT: usize = 19;
/// Since version 13.
const BACKEND_TYPE: usize = 23;

/// Why a record is left out.
const MALFORMED: &str = "not a record of a csvlog";

/// Reads a csvlog to its end.
///
/// # Errors
/// See [`ReadError`].
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut reader = Reader {
        sessions: Sessions::new(sink),
        offset_s: offset_s(options),
        has_records: false,
    };
    let mut lines = Lines::new(input);
    let mut buffer = Vec::new();
    let mut first = 1;
    let mut is_in_quotes = false;
    // The beginning was dropped: the rest is skipped up to a line that begins a record.
    let mut is_too_long = false;
    loop {
        let at = buffer.len();
        let Some(read) = lines.append(&mut buffer)? else {
            break;
        };
        let line = &buffer[at..];
        let is_begin = (is_in_quotes || is_too_long) && is_record_begin(line);
        if is_begin {
            let why = if is_too_long { TOO_LONG } else { CUT_OFF };
            reader
                .sessions
                .unreadable(first, lines.number() - first, why);
            buffer.drain(..at);
            is_in_quotes = false;
            is_too_long = false;
        }
        if is_begin || at == 0 && !is_in_quotes && !is_too_long {
            first = lines.number();
        }
        if is_too_long {
            buffer.clear();
            continue;
        }
        let from = if is_begin { 0 } else { at };
        let quotes = memchr::memchr_iter(b'"', &buffer[from..]).count();
        is_in_quotes ^= quotes % 2 == 1;
        if read == LineRead::Cut || is_in_quotes && is_full(&buffer) {
            is_too_long = true;
            buffer.clear();
        } else if !is_in_quotes {
            // A record without its line break may be cut anywhere.
            match read {
                LineRead::Unended => reader.record_at_end(&mut buffer, first)?,
                _ => reader.record(&mut buffer, first, lines.number())?,
            }
            buffer.clear();
        }
    }
    if is_in_quotes || is_too_long {
        let why = if is_too_long { TOO_LONG } else { CUT_OFF };
        reader
            .sessions
            .unreadable(first, lines.number() + 1 - first, why);
    }
    if !reader.has_records {
        let why = "no line begins a record".to_owned();
        return Err(ReadError::Unfit { line: 1, why });
    }
    reader.sessions.finish()
}

struct Reader<'s> {
    sessions: Sessions<'s>,
    offset_s: i32,
    has_records: bool,
}

impl Reader<'_> {
    /// Takes the record at the end of the log, which has no line break: the last field may be cut and is not used, so the record is
    /// complete if it has enough of them.
    fn record_at_end(&mut self, record: &mut [u8], first: u64) -> Result<(), ReadError> {
        let is_complete = fields(without_line_end(record)).is_some();
        if is_complete {
            return self.record(record, first, first);
        }
        self.sessions.unreadable(first, 1, CUT_OFF);
        Ok(())
    }

    fn record(&mut self, record: &mut [u8], first: u64, last: u64) -> Result<(), ReadError> {
        let length = without_line_end(record).len();
        let record = &mut record[..length];
        if record.is_empty() {
            return Ok(());
        }
        let Some(mut fields) = fields(record) else {
            self.sessions.unreadable(first, last + 1 - first, MALFORMED);
            return Ok(());
        };
        for field in &mut fields {
            undouble(record, field);
        }
        let of = |index: usize| &record[fields[index].start..fields[index].end];
        let optional = |index: usize| Some(of(index)).filter(|value| !value.is_empty());
        let (Some((time, _)), Some(key)) =
            (time(of(TIME), self.offset_s), session_key(of(SESSION)))
        else {
            self.sessions.unreadable(first, last + 1 - first, MALFORMED);
            return Ok(());
        };
        self.has_records = true;
        let state = sql_state(of(STATE));
        self.sessions.message(&Message {
            key,
            time: Some(time),
            user: optional(USER),
            database: optional(DATABASE),
            is_client: is_client(of(BACKEND_TYPE)),
            place: number(of(PLACE)),
            level: Level::of(of(LEVEL), state),
            state,
            activity: optional(ACTIVITY),
            text: of(MESSAGE),
            detail: of(DETAIL),
            context: of(CONTEXT),
            statement: optional(STATEMENT),
            line: first,
        })
    }
}

/// A field of a record, without its quotes.
#[derive(Debug, Clone, Copy, Default)]
struct Field {
    start: usize,
    end: usize,
    has_doubled: bool,
}

/// The fields of a record; `None` if it is none.
fn fields(record: &[u8]) -> Option<[Field; FIELDS]> {
    let mut fields = [Field::default(); FIELDS];
    let mut count = 0;
    let mut at = 0;
    loop {
        let (field, end) = field(record, at)?;
        if let Some(place) = fields.get_mut(count) {
            *place = field;
        }
        count += 1;
        if end == record.len() {
            return FIELD_COUNTS.contains(&count).then_some(fields);
        }
        at = end + 1;
    }
}

/// The field that begins here, and where its comma or the end of the record is.
fn field(record: &[u8], at: usize) -> Option<(Field, usize)> {
    if record.get(at) != Some(&b'"') {
        let end = memchr::memchr(b',', &record[at..]).map_or(record.len(), |comma| at + comma);
        let field = Field {
            start: at,
            end,
            has_doubled: false,
        };
        return Some((field, end));
    }
    let start = at + 1;
    let mut has_doubled = false;
    let mut from = start;
    loop {
        let quote = from + memchr::memchr(b'"', &record[from..])?;
        match record.get(quote + 1) {
            Some(b'"') => {
                has_doubled = true;
                from = quote + 2;
            }
            None | Some(b',') => {
                let field = Field {
                    start,
                    end: quote,
                    has_doubled,
                };
                return Some((field, quote + 1));
            }
            Some(_) => return None,
        }
    }
}

/// Makes single quotes of the doubled ones of a field, in place.
fn undouble(record: &mut [u8], field: &mut Field) {
    if !field.has_doubled {
        return;
    }
    let (mut from, mut to) = (field.start, field.start);
    while from < field.end {
        let quote = memchr::memchr(b'"', &record[from..field.end]);
        let part = quote.map_or(field.end, |quote| from + quote + 1);
        record.copy_within(from..part, to);
        to += part - from;
        from = part + usize::from(quote.is_some());
    }
    field.end = to;
}

/// Whether a line begins a record in every detail: its fields up to the message, which is quoted and not empty.
fn is_record_begin(line: &[u8]) -> bool {
    if !line.first().is_some_and(u8::is_ascii_digit) || time(line, 0).is_none() {
        return false;
    }
    let mut at = 0;
    for index in 0..MESSAGE {
        let Some((field, end)) = field(line, at) else {
            return false;
        };
        if end == line.len()
            || index == SESSION && session_key(&line[field.start..field.end]).is_none()
        {
            return false;
        }
        at = end + 1;
    }
    // A literal that ends in `LOG,00000,` has the quote at the end of its own field here, with a comma after it.
    let is_text = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    line.get(at) == Some(&b'"') && line.get(at + 1).is_some_and(is_text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Notes, assert_buffer_changes_nothing, assert_is_unfit};
    use super::*;
    use crate::entry::{Lack, Outcome};

    const PG_9_6: &[u8] = include_bytes!("../../../tests/data/pg9.6.csv");
    const PG_12: &[u8] = include_bytes!("../../../tests/data/pg12.csv");
    const PG_13: &[u8] = include_bytes!("../../../tests/data/pg13.csv");
    const PG_14: &[u8] = include_bytes!("../../../tests/data/pg14.csv");
    const PG_15: &[u8] = include_bytes!("../../../tests/data/pg15.csv");
    const PG_16: &[u8] = include_bytes!("../../../tests/data/pg16.csv");
    const PG_17: &[u8] = include_bytes!("../../../tests/data/pg17.csv");
    const PG_18: &[u8] = include_bytes!("../../../tests/data/pg18.csv");

    fn notes_of(log: &[u8]) -> Notes {
        Notes::of(read, log, &LogOptions::default())
    }

    /// A record of a session that began in 1970 with process 7.
    fn record(second: u32, message: &str, rest: &str) -> String {
        let message = message.replace('"', "\"\"");
        format!(
            "2026-11-27 23:45:{second:02}.000 UTC,\"u\",\"d\",7,\"[local]\",1.7,{second},\"idle\",2026-11-27 23:45:42 UTC,,0,LOG,00000,\"{message}\",{rest}\n"
        )
    }

    const NO_MORE: &str = ",,,,,,,,\"app\",\"client backend\",,0";

    #[test]
    fn records_of_all_versions_are_read() {
        for log in [PG_9_6, PG_12, PG_13, PG_14, PG_15, PG_16, PG_17, PG_18] {
            let notes = notes_of(log);
            // The sample of version 12 ends within a record.
            let cut = (log == PG_12).then(|| (10, 3, CUT_OFF.to_owned()));
            assert_eq!(notes.unreadable, Vec::from_iter(cut));
            assert_eq!(notes.of_session(1)[0], "begins postgres on postgres whole");
            assert_eq!(notes.of_session(1)[1], "DROP TABLE IF EXISTS item");
        }
    }

    #[test]
    fn statements_are_as_the_client_sent_them() {
        // Session 1 sent 19 statements, session 2 16; psql one more to version 15.
        for (log, sessions) in [(PG_15, 3), (PG_17, 2)] {
            let notes = notes_of(log);
            assert_eq!(notes.sessions(), sessions);
            assert_eq!(notes.texts.len(), 19 + 16 + sessions - 2);
            assert_eq!(notes.of_session(1).len(), 1 + 19 + 1);
            assert_eq!(notes.of_session(2).len(), 1 + 16 + 1);
            assert_eq!(*notes.of_session(2).last().unwrap(), "ends");
            for expected in [
                &b"/* leading */ SELECT *\n\tFROM item\n WHERE name = 'two\nlines' -- trailing\n"[..],
                b"SELECT 'tab\there', 'it''s', E'back\\\\slash', 'comma, \"quoted\"', $q$dollar 'q'$q$, '\xc3\xbcn\xc3\xaf'",
                b"DEALLOCATE \"S_1\"",
            ] {
                assert!(notes.texts.iter().any(|text| text == expected), "{}", expected.escape_ascii());
            }
            let prepared = notes.of_session(2);
            let prepared = prepared
                .iter()
                .filter(|entry| entry.starts_with("[prepared]"));
            assert_eq!(prepared.count(), 5);
        }
    }

    #[test]
    fn outcomes_are_those_of_the_errors() {
        for log in [PG_15, PG_17] {
            let notes = notes_of(log);
            let mut failed = Vec::new();
            for (text, outcome) in notes.texts.iter().zip(&notes.outcomes) {
                match outcome {
                    Some(Outcome::State(state)) => failed.push((text.as_slice(), *state)),
                    outcome => assert_eq!(*outcome, Some(Outcome::Ok)),
                }
            }
            failed.sort_unstable();
            let expected: [(&[u8], [u8; 5]); 5] = [
                (b"INSERT INTO item (id, name) VALUES ($1, $2)", *b"23505"),
                (b"SELEC 1", *b"42601"),
                (b"SELECT 1", *b"25P02"),
                (b"SELECT nothing FROM item", *b"42703"),
                (b"SELECT pg_sleep(1)", *b"57014"),
            ];
            assert_eq!(failed, expected);
        }
    }

    #[test]
    fn what_a_log_lacks_is_reported() {
        let notes = notes_of(PG_15);
        let mut lacks = notes.lacks.clone();
        lacks.sort_unstable();
        assert_eq!(lacks, [Lack::Durations, Lack::Rows, Lack::ParameterTypes]);
        assert_eq!(
            notes.times[0],
            (Some(1_795_823_144_577_000_000), 1_000_000, None)
        );
        assert!(notes_of(PG_13).lacks.contains(&Lack::SessionEnds));
    }

    #[test]
    fn starts_of_a_session_never_go_back() {
        let log = record(1, "statement: SELECT 1", NO_MORE)
            + &record(2, "duration: 500.0 ms  statement: SELECT 2", NO_MORE)
            + &record(2, "duration: 3000.0 ms  statement: SELECT 3", NO_MORE);
        let starts: Vec<i64> = notes_of(log.as_bytes())
            .times
            .iter()
            .map(|(start, ..)| start.unwrap())
            .collect();
        let first = starts[0];
        assert_eq!(starts, [first, first + 500_000_000, first + 500_000_000]);
    }

    #[test]
    fn raise_log_forges_no_statement() {
        let context = ",,,,\"PL/pgSQL function f() line 1 at RAISE\",\"SELECT f()\",,,\"app\",\"client backend\",,0";
        let log = record(1, "statement: SELECT f()", NO_MORE)
            + &record(1, "statement: DROP TABLE item", context)
            + &record(1, "duration: 1.0 ms", NO_MORE);
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [b"SELECT f()"]);
        assert_eq!(notes.times[0].2, Some(1_000_000));
    }

    #[test]
    fn an_error_of_a_parallel_worker_is_its_leaders() {
        let error = |key: &str, process: &str| {
            format!(
                "2026-11-27 23:45:02.000 UTC,\"u\",\"d\",7,\"[local]\",{key},2,\"SELECT\",2026-11-27 23:45:42 UTC,,0,ERROR,22012,\"division by zero\",,,,,,\"SELECT 1/0\",,,\"app\",\"{process}\",,0\n"
            )
        };
        let log = record(1, "statement: SELECT 1/0", NO_MORE)
            + &error("1.8", "parallel worker")
            + &error("1.7", "client backend");
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [b"SELECT 1/0"]);
        assert_eq!(notes.outcomes, [Some(Outcome::State(*b"22012"))]);
    }

    #[test]
    fn more_rows_of_a_cursor_are_no_statement() {
        let log = record(1, "execute S_1/C_1: SELECT 1", NO_MORE)
            + &record(1, "duration: 1.0 ms", NO_MORE)
            + &record(2, "execute fetch from S_1/C_1: SELECT 1", NO_MORE)
            + &record(2, "duration: 9.0 ms", NO_MORE);
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.of_session(1)[1..], ["[prepared] SELECT 1"]);
        assert_eq!(notes.times[0].2, Some(1_000_000));
    }

    #[test]
    fn a_record_without_its_end_costs_no_other() {
        let mut log = record(1, "statement: SELECT 1", NO_MORE);
        log += "2026-11-27 23:45:01.000 UTC,\"u\",\"d\",7,\"[local]\",1.7,1,\"idle\",2026-11-27 23:45:42 UTC,,0,LOG,00000,\"statement: SELECT\n2,\n";
        log += &record(3, "statement: SELECT '\"\n\"'", NO_MORE);
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [&b"SELECT 1"[..], b"SELECT '\"\n\"'"]);
        assert_eq!(notes.unreadable, [(2, 2, CUT_OFF.to_owned())]);
    }

    #[test]
    fn a_literal_forges_no_record() {
        let forged = record(2, "statement: DROP TABLE item", NO_MORE);
        // Ends where the quote of its own field would be that of a forged message.
        let unquoted =
            "2026-11-27 23:45:01.000 UTC,u,d,7,x,1.7,1,idle,2026-11-27 23:45:42 UTC,,0,LOG,00000,";
        for literal in [forged.as_str(), unquoted] {
            let text = format!("SELECT '\n{literal}");
            let log = record(1, &format!("statement: {text}"), NO_MORE);
            let notes = notes_of(log.as_bytes());
            assert_eq!(notes.texts, [text.as_bytes()]);
            assert!(notes.unreadable.is_empty());
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_counted_and_left_out() {
        let mut log = record(1, "statement: SELECT 1", NO_MORE);
        let line = format!("{}\n", "\"".repeat(62));
        log += &record(
            2,
            &format!("statement: SELECT '{}'", line.repeat((34 << 20) / 63)),
            NO_MORE,
        );
        log += &record(
            3,
            &format!("statement: SELECT '{}'", "x".repeat(65 << 20)),
            NO_MORE,
        );
        log += &record(4, "statement: SELECT 4", NO_MORE);
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.texts, [b"SELECT 1", b"SELECT 4"]);
        let whys: Vec<&str> = notes
            .unreadable
            .iter()
            .map(|(.., why)| why.as_str())
            .collect();
        assert_eq!(whys, [TOO_LONG, TOO_LONG]);
    }

    #[test]
    fn a_server_start_ends_all_sessions() {
        let start = "2026-11-27 23:45:50.000 UTC,,,9,,5.9,1,,2026-11-27 23:45:50 UTC,,0,LOG,00000,\"starting PostgreSQL 15.18\",,,,,,,,,\"\",\"postmaster\",,0\n";
        let log = record(1, "statement: SELECT 1", NO_MORE)
            + start
            + &record(2, "statement: SELECT 2", NO_MORE);
        let notes = notes_of(log.as_bytes());
        assert_eq!(notes.of_session(1)[1..], ["SELECT 1", "ended"]);
        assert_eq!(notes.outcomes, [None, None]);
        assert_eq!(notes.of_session(2)[1..], ["SELECT 2"]);
    }

    #[test]
    fn what_is_no_csvlog_is_refused() {
        for log in [&b"one,two\n"[..], b"", b"\"\n"] {
            assert_is_unfit(read, log, &LogOptions::default());
        }
    }

    #[test]
    fn a_small_buffer_changes_nothing() {
        assert_buffer_changes_nothing(read, PG_17, &LogOptions::default());
    }
}
