//! PostgreSQL's jsonlog (15 and newer): an object a line.

use std::io::BufRead;
use std::ops::Range;

use super::postgresql_csv::message::{
    Level, Message, SessionKey, is_client, session_key, sql_state, time,
};
use super::postgresql_csv::sessions::Sessions;
use super::text::{CUT_OFF, LineRead, Lines, TOO_LONG, number, offset_s, without_line_end};
use super::{LogOptions, ReadError};
use crate::entry::Sink;

/// Why a line is left out.
const MALFORMED: &str = "not an entry of a jsonlog";

/// Keys of an entry that are used, in the order of [`Entry`].
const KEYS: [&[u8]; 14] = [
    b"timestamp",
    b"user",
    b"dbname",
    b"session_id",
    b"line_num",
    b"ps",
    b"error_severity",
    b"state_code",
    b"message",
    b"detail",
    b"context",
    b"statement",
    b"pid",
    b"backend_type",
];

/// Values of [`KEYS`] in the text of an entry; those that are absent are empty.
type Entry = [Range<usize>; KEYS.len()];

/// Reads a jsonlog to its end.
///
/// # Errors
/// See [`ReadError`].
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut sessions = Sessions::new(sink);
    let offset_s = offset_s(options);
    let mut lines = Lines::new(input);
    let mut buffer = Vec::new();
    let mut has_entries = false;
    loop {
        buffer.clear();
        let Some(read) = lines.append(&mut buffer)? else {
            break;
        };
        let line = lines.number();
        if read == LineRead::Cut {
            sessions.unreadable(line, 1, TOO_LONG);
            continue;
        }
        let length = without_line_end(&buffer).len();
        if length == 0 {
            continue;
        }
        let text = &mut buffer[..length];
        let entry = entry(text);
        let message = entry
            .as_ref()
            .and_then(|entry| message(text, entry, offset_s, line));
        match message {
            Some(message) => {
                has_entries = true;
                sessions.message(&message)?;
            }
            None => {
                let is_cut = read == LineRead::Unended && has_entries;
                let why = if is_cut { CUT_OFF } else { MALFORMED };
                sessions.unreadable(line, 1, why);
            }
        }
    }
    if !has_entries {
        let why = "no line is an entry".to_owned();
        return Err(ReadError::Unfit { line: 1, why });
    }
    sessions.finish()
}

fn message<'a>(text: &'a [u8], entry: &Entry, offset_s: i32, line: u64) -> Option<Message<'a>> {
    let values = entry.clone().map(|range| &text[range]);
    let [
        timestamp,
        user,
        database,
        session,
        place,
        activity,
        level,
        state,
        message,
        detail,
        context,
        statement,
        pid,
        backend_type,
    ] = values;
    let optional = |value: &'a [u8]| Some(value).filter(|value| !value.is_empty());
    let key = session_key(session).or_else(|| {
        let pid = number(pid)?;
        Some(SessionKey { start_s: 0, pid })
    })?;
    let state = sql_state(state);
    Some(Message {
        key,
        time: Some(time(timestamp, offset_s)?.0),
        user: optional(user),
        database: optional(database),
        is_client: is_client(backend_type),
        place: number(place),
        level: Level::of(level, state),
        state,
        activity: optional(activity),
        text: message,
        detail,
        context,
        statement: optional(statement),
        line,
    })
}

/// Reads an object whose values are strings, numbers or literals, and replaces escapes in place. The bytes of strings are not
/// required to be UTF-8, as a server writes them in the encoding of its database.
fn entry(text: &mut [u8]) -> Option<Entry> {
    let mut found = Entry::default();
    let mut at = expect(text, 0, b'{')?;
    loop {
        let (key, after) = string(text, at)?;
        at = expect(text, after, b':')?;
        let (value, after) = value(text, at)?;
        // An empty key or a second one of a name is not written by the server; the last one counts.
        if let Some(place) = KEYS.iter().position(|name| *name == &text[key.clone()]) {
            found[place] = value;
        }
        at = skip_blanks(text, after);
        match text.get(at)? {
            b',' => at = skip_blanks(text, at + 1),
            b'}' => break,
            _ => return None,
        }
    }
    (skip_blanks(text, at + 1) == text.len()).then_some(found)
}

fn skip_blanks(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    at + blanks.count()
}

/// Where what follows this byte begins.
fn expect(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    let at = skip_blanks(text, at);
    (text.get(at) == Some(&byte)).then(|| skip_blanks(text, at + 1))
}

fn value(text: &mut [u8], at: usize) -> Option<(Range<usize>, usize)> {
    match text.get(at)? {
        b'"' => string(text, at),
        b'-' | b'0'..=b'9' | b'a'..=b'z' => {
            let is_part =
                |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
            let end = at + text[at..].iter().take_while(is_part).count();
            Some((at..end, end))
        }
        _ => None,
    }
}

/// Reads the string that begins here with its quote: where its bytes are now, and where what follows it begins.
fn string(text: &mut [u8], at: usize) -> Option<(Range<usize>, usize)> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let start = at + 1;
    let (mut from, mut to) = (start, start);
    loop {
        let special = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if to != from {
            text.copy_within(from..special, to);
        }
        to += special - from;
        if text[special] == b'"' {
            return Some((start..to, special + 1));
        }
        let (length, next) = escape(text, special, to)?;
        to += length;
        from = next;
    }
}

/// Writes what the escape at `at` means to `to`: its length, and where what follows the escape begins. It is never longer.
fn escape(text: &mut [u8], at: usize, to: usize) -> Option<(usize, usize)> {
    let byte = match text.get(at + 1)? {
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode_escape(text, at, to),
        _ => return None,
    };
    text[to] = byte;
    Some((1, at + 2))
}

fn unicode_escape(text: &mut [u8], at: usize, to: usize) -> Option<(usize, usize)> {
    let unit = code_unit(text, at)?;
    let mut next = at + 6;
    let mut code = unit;
    if (0xd800..0xdc00).contains(&unit)
        && let Some(low) = code_unit(text, next).filter(|low| (0xdc00..0xe000).contains(low))
    {
        code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        next += 6;
    }
    let decoded = char::from_u32(code)?;
    let length = decoded.encode_utf8(&mut text[to..next]).len();
    Some((length, next))
}

/// The number in `\uXXXX`.
fn code_unit(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |value, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(value << 4 | digit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::postgresql_csv;
    use super::super::testing::{Notes, assert_is_unfit};
    use super::*;

    const PG_15: &[u8] = include_bytes!("../../tests/data/pg15.json");
    const PG_17: &[u8] = include_bytes!("../../tests/data/pg17.json");
    const CSV_15: &[u8] = include_bytes!("../../tests/data/pg15.csv");
    const CSV_17: &[u8] = include_bytes!("../../tests/data/pg17.csv");

    fn notes_of(log: &[u8]) -> Notes {
        Notes::of(read, log, &LogOptions::default())
    }

    #[test]
    fn it_says_what_the_csvlog_of_the_same_server_says() {
        for (log, csv, statements) in [(PG_15, CSV_15, [7, 10]), (PG_17, CSV_17, [6, 9])] {
            let notes = notes_of(log);
            let expected = Notes::of(postgresql_csv::read, csv, &LogOptions::default());
            assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
            // The samples have the beginning of what the csvlogs have: so many statements of either session.
            for (session, statements) in [1, 2].into_iter().zip(statements) {
                let entries = notes.of_session(session);
                assert_eq!(entries.len(), 1 + statements);
                assert_eq!(entries, expected.of_session(session)[..=statements]);
            }
            assert_eq!(notes.times[0], expected.times[0]);
            assert_eq!(notes.lacks.len(), expected.lacks.len() + 1);
        }
    }

    #[test]
    fn escapes_are_replaced_in_place() {
        let text = |json: &str| {
            let mut text = json.as_bytes().to_vec();
            let entry = entry(&mut text)?;
            Some(text[entry[8].clone()].to_vec())
        };
        let expected = "a\"b\\/\u{8}\u{c}\n\r\t\u{1}é😀".as_bytes();
        let json =
            r#"{"message":"a\"b\\\/\b\f\n\r\t\u0001\u00e9\ud83d\ude00","pid":-1.5e+3, "x":null}"#;
        assert_eq!(text(json).unwrap(), expected);
        assert_eq!(text(r#"{"x":"\\","message":"y"}"#).unwrap(), b"y");
        for damaged in [
            "",
            "{",
            "{}",
            "{\"message\"",
            "{\"message\":",
            r#"{"message":"a"#,
            r#"{"message":"a\"#,
            r#"{"message":"\ud83d"}"#,
            r#"{"message":"\u12"}"#,
            r#"{"message":"\x"}"#,
            r#"{"message":{}}"#,
            r#"{"message":"a"} x"#,
            r#"{"message":"a",}"#,
        ] {
            assert_eq!(text(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn bytes_need_not_be_utf_8() {
        let log = b"{\"timestamp\":\"2026-11-27 23:45:45.041 UTC\",\"session_id\":\"1.7\",\"error_severity\":\"LOG\",\"message\":\"statement: SELECT '\xff'\"}\n";
        assert_eq!(notes_of(log).texts, [b"SELECT '\xff'"]);
    }

    #[test]
    fn damaged_lines_cost_no_other() {
        let lines: Vec<&[u8]> = PG_17.split_inclusive(|byte| *byte == b'\n').collect();
        let log = [lines[10], b"{\"timestamp\":\n", lines[11], &lines[12][..90]].concat();
        let notes = notes_of(&log);
        assert_eq!(notes.texts.len(), 2);
        assert_eq!(
            notes.unreadable,
            [(2, 1, MALFORMED.to_owned()), (4, 1, CUT_OFF.to_owned())]
        );
    }

    #[test]
    fn what_is_no_jsonlog_is_refused() {
        for log in [&b""[..], b"{\"a\":1}\n"] {
            assert_is_unfit(read, log, &LogOptions::default());
        }
    }

    proptest! {
        #[test]
        fn any_string_is_read(text in any::<String>()) {
            let json = serde_json::json!({ "message": text }).to_string();
            let mut json = json.into_bytes();
            let entry = entry(&mut json).unwrap();
            prop_assert_eq!(&json[entry[8].clone()], text.as_bytes());
        }
    }
}
