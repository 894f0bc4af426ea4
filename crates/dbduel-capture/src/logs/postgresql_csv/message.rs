//! Messages of PostgreSQL's logs: times, what a message says, values of prepared statements.

use std::borrow::Cow;

use dbduel_sql::{Lexer, Syntax, TokenKind};

use super::super::text::{LogTime, find, long_time, number};

/// Identity of a session in a log: second of its start since 1970, and process id. Where a log has the process id alone, the start
/// is 0 and the id recurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::logs) struct SessionKey {
    pub(in crate::logs) start_s: u64,
    pub(in crate::logs) pid: u64,
}

/// Level of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::logs) enum Level {
    Log,
    Error,
    /// The session ends.
    Fatal,
    /// Says nothing about statements.
    Other,
}

/// A message, in the terms of all three formats.
#[derive(Debug, Clone, Copy)]
pub(in crate::logs) struct Message<'a> {
    pub(in crate::logs) key: SessionKey,
    pub(in crate::logs) time: Option<LogTime>,
    pub(in crate::logs) user: Option<&'a [u8]>,
    pub(in crate::logs) database: Option<&'a [u8]>,
    /// False where the log says that another process than a session's wrote it: a parallel worker repeats the error of its leader.
    pub(in crate::logs) is_client: bool,
    /// Place of the message among those of its session, from 1.
    pub(in crate::logs) place: Option<u64>,
    pub(in crate::logs) level: Level,
    pub(in crate::logs) state: Option<[u8; 5]>,
    /// Command tag or activity of the process: `BIND`, `idle`.
    pub(in crate::logs) activity: Option<&'a [u8]>,
    pub(in crate::logs) text: &'a [u8],
    pub(in crate::logs) detail: &'a [u8],
    pub(in crate::logs) context: &'a [u8],
    pub(in crate::logs) statement: Option<&'a [u8]>,
    pub(in crate::logs) line: u64,
}

/// What a message of level LOG says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::logs) enum Event<'a> {
    /// A statement: at its start without a duration, otherwise at its end.
    Statement {
        duration_ns: Option<u64>,
        step: Step,
        text: &'a [u8],
    },
    /// The statement that was logged at its start has ended.
    Duration(u64),
    Connected,
    Authorized,
    Disconnected,
    /// The server starts: all sessions before have ended.
    Started,
    /// A setting of the log was changed.
    LogChanged,
    Other,
}

/// Step of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::logs) enum Step {
    /// Sent as text and run.
    Simple,
    ParseUnnamed,
    ParseNamed,
    Bind,
    Execute,
    /// More rows of a statement that ran before.
    Refetch,
}

impl Level {
    /// `None` for a label that is no level.
    pub(in crate::logs) fn named(label: &[u8]) -> Option<Self> {
        Some(match label {
            b"LOG" => Self::Log,
            b"ERROR" => Self::Error,
            b"FATAL" | b"PANIC" => Self::Fatal,
            b"WARNING" | b"NOTICE" | b"INFO" | b"DEBUG" | b"DEBUG1" | b"DEBUG2" | b"DEBUG3"
            | b"DEBUG4" | b"DEBUG5" => Self::Other,
            _ => return None,
        })
    }

    /// The level by its label; where the label is translated, by the SQLSTATE.
    pub(in crate::logs) fn of(label: &[u8], state: Option<[u8; 5]>) -> Self {
        Self::named(label).unwrap_or(match state {
            Some([b'0', b'0'..=b'2', ..]) | None => Self::Other,
            Some(_) => Self::Error,
        })
    }
}

/// Whether a process of this type may serve a session; an empty type is unknown. Before it is known a session is "not initialized".
pub(in crate::logs) fn is_client(backend_type: &[u8]) -> bool {
    matches!(backend_type, b"" | b"client backend" | b"not initialized")
}

/// SQLSTATE of a field.
pub(in crate::logs) fn sql_state(text: &[u8]) -> Option<[u8; 5]> {
    let state: [u8; 5] = text.try_into().ok()?;
    let is_code = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    state.iter().all(is_code).then_some(state)
}

/// Reads `START.PID`, both hexadecimal: `%c`, `session_id`.
pub(in crate::logs) fn session_key(text: &[u8]) -> Option<SessionKey> {
    let point = memchr::memchr(b'.', text)?;
    Some(SessionKey {
        start_s: hexadecimal(&text[..point])?,
        pid: hexadecimal(&text[point + 1..])?,
    })
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// Reads `YYYY-MM-DD HH:MM:SS[.mmm] ZONE`; also returns its length. `offset_s` is that of zones whose abbreviation is ambiguous.
pub(in crate::logs) fn time(text: &[u8], offset_s: i32) -> Option<(LogTime, usize)> {
    let (time, zone, length) = time_and_zone(text)?;
    let offset_s = zone_offset_s(zone).unwrap_or(offset_s);
    let at = time.at.checked_sub(i64::from(offset_s) * 1_000_000_000)?;
    Some((LogTime { at, ..time }, length))
}

/// Whether the time at the beginning of a text has a zone whose offset is known; `None` where there is no time.
pub(in crate::logs) fn names_zone(text: &[u8]) -> Option<bool> {
    let (_, zone, _) = time_and_zone(text)?;
    Some(zone_offset_s(zone).is_some())
}

/// The time at the beginning of a text as if it were UTC, its zone, which may be empty, and the length of both.
fn time_and_zone(text: &[u8]) -> Option<(LogTime, &[u8], usize)> {
    let head = &text[..text.len().min(23)];
    let (time, end) = long_time(head, b' ', 0)?;
    if text.get(end) == Some(&b' ') {
        let is_zone = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'+' | b'-');
        let count = text[end + 1..].iter().take(8).take_while(is_zone).count();
        if count > 0 {
            let length = end + 1 + count;
            return Some((time, &text[end + 1..length], length));
        }
    }
    Some((time, b"", end))
}

/// Seconds east of UTC of a zone. Abbreviations that mean several zones, as CST, IST and BST do, are unknown.
fn zone_offset_s(zone: &[u8]) -> Option<i32> {
    let quarters = match zone {
        b"UTC" | b"GMT" | b"UCT" | b"WET" => 0,
        b"CET" | b"WEST" => 4,
        b"CEST" | b"EET" | b"SAST" => 8,
        b"EEST" | b"MSK" => 12,
        b"WIB" => 28,
        b"AWST" | b"HKT" => 32,
        b"JST" | b"KST" => 36,
        b"ACST" => 38,
        b"AEST" => 40,
        b"ACDT" => 42,
        b"AEDT" => 44,
        b"NZST" => 48,
        b"NZDT" => 52,
        b"EDT" => -16,
        b"EST" => -20,
        b"MDT" => -24,
        b"MST" | b"PDT" => -28,
        _ => return numeric_offset_s(zone),
    };
    Some(quarters * 900)
}

/// `+03`, `-0330`.
fn numeric_offset_s(zone: &[u8]) -> Option<i32> {
    let (sign, digits) = zone.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let value = i32::try_from(number(digits)?).ok()?;
    let minutes = match digits.len() {
        2 => value * 60,
        4 => value / 100 * 60 + value % 100,
        _ => return None,
    };
    Some(sign * minutes * 60)
}

/// What a message of level LOG says.
pub(in crate::logs) fn event(text: &[u8]) -> Event<'_> {
    match text.first() {
        Some(b's') => {
            if let Some(text) = text.strip_prefix(b"statement: ") {
                let step = Step::Simple;
                return Event::Statement {
                    duration_ns: None,
                    step,
                    text,
                };
            }
            if text.starts_with(b"starting PostgreSQL ") {
                return Event::Started;
            }
        }
        Some(b'd') => {
            if let Some(rest) = text.strip_prefix(b"duration: ") {
                return duration_event(rest).unwrap_or(Event::Other);
            }
            if text.starts_with(b"disconnection: ") {
                return Event::Disconnected;
            }
            // The last one ends a start of a server older than 12, which does not log its version.
            if text.starts_with(b"database system was ") {
                return Event::Started;
            }
        }
        Some(b'e') => {
            if let Some((step, text)) = step_event(text).filter(|(step, _)| step.is_execute()) {
                return Event::Statement {
                    duration_ns: None,
                    step,
                    text,
                };
            }
        }
        Some(b'c') => {
            if text.starts_with(b"connection received: ") {
                return Event::Connected;
            }
            if text.starts_with(b"connection authorized: ") {
                return Event::Authorized;
            }
        }
        Some(b'p') if text.starts_with(b"parameter \"log_") => return Event::LogChanged,
        _ => {}
    }
    Event::Other
}

/// `0.276 ms`, or `0.276 ms  parse S_1: SELECT …`.
fn duration_event(rest: &[u8]) -> Option<Event<'_>> {
    let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let length = rest.iter().take_while(is_number).count();
    let duration_ns = milliseconds_ns(&rest[..length])?;
    let rest = rest[length..].strip_prefix(b" ms")?;
    if rest.is_empty() {
        return Some(Event::Duration(duration_ns));
    }
    let (step, text) = step_event(rest.strip_prefix(b"  ")?)?;
    Some(Event::Statement {
        duration_ns: Some(duration_ns),
        step,
        text,
    })
}

fn milliseconds_ns(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let whole = number(&text[..point])?.checked_mul(1_000_000)?;
    let mut scale = 1_000_000;
    let mut fraction = 0;
    for digit in text.get(point + 1..).unwrap_or_default() {
        if !digit.is_ascii_digit() {
            return None;
        }
        scale /= 10;
        fraction += u64::from(digit - b'0') * scale;
    }
    whole.checked_add(fraction)
}

impl Step {
    fn is_execute(self) -> bool {
        matches!(self, Self::Execute | Self::Refetch)
    }
}

/// `statement: …`, `execute NAME: …`. Names of statements and portals are the client's; up to the first `: `.
fn step_event(text: &[u8]) -> Option<(Step, &[u8])> {
    if let Some(text) = text.strip_prefix(b"statement: ") {
        return Some((Step::Simple, text));
    }
    let steps: [(&[u8], Step); 4] = [
        (b"execute fetch from ", Step::Refetch),
        (b"execute ", Step::Execute),
        (b"bind ", Step::Bind),
        (b"parse ", Step::ParseNamed),
    ];
    let (step, rest) = steps
        .into_iter()
        .find_map(|(label, step)| Some((step, text.strip_prefix(label)?)))?;
    let colon = find(rest, b": ")?;
    let step = match step {
        Step::ParseNamed if rest.starts_with(b"<unnamed>: ") => Step::ParseUnnamed,
        step => step,
    };
    Some((step, &rest[colon + 2..]))
}

/// Values of a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::logs) enum Values<'a> {
    /// All of them; `None` is NULL.
    All(Vec<Option<Cow<'a, [u8]>>>),
    /// Some were cut by `log_parameter_max_length`, or the list is not understood.
    Cut,
    /// The text has no list of values.
    None,
}

/// Reads `parameters: $1 = '2', $2 = NULL`, with a capital since version 17, or the context of an error, `unnamed portal with
/// parameters: $1 = '0'`.
pub(in crate::logs) fn values(text: &[u8]) -> Values<'_> {
    let is_list = [b"parameters: ".as_slice(), b"Parameters: "];
    let mut rest = is_list.iter().find_map(|label| text.strip_prefix(*label));
    if rest.is_none()
        && (text.starts_with(b"unnamed portal with ") || text.starts_with(b"portal \""))
    {
        let label = b" with parameters: ";
        let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        rest = find(&text[..end], label).map(|at| &text[at + label.len()..]);
    }
    match rest {
        Some(rest) => value_list(rest).map_or(Values::Cut, Values::All),
        None => Values::None,
    }
}

/// `None` when a value is cut. A value that ends in three full stops cannot be distinguished from a cut one.
fn value_list(mut rest: &[u8]) -> Option<Vec<Option<Cow<'_, [u8]>>>> {
    let mut values = Vec::new();
    loop {
        rest = rest.strip_prefix(b"$")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if number(&rest[..digits]) != Some(values.len() as u64 + 1) {
            return None;
        }
        rest = rest[digits..].strip_prefix(b" = ")?;
        if let Some(after) = rest.strip_prefix(b"NULL") {
            values.push(None);
            rest = after;
        } else {
            let (value, after) = quoted(rest)?;
            if value.ends_with(b"...") {
                return None;
            }
            values.push(Some(value));
            rest = after;
        }
        // A context has further lines after the list.
        match rest.first() {
            None | Some(b'\n') => return Some(values),
            Some(_) => rest = rest.strip_prefix(b", ")?,
        }
    }
}

/// A value in quotes, and what follows it.
fn quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let text = text.strip_prefix(b"'")?;
    let mut value = Cow::Borrowed(b"".as_slice());
    let mut from = 0;
    loop {
        let end = from + memchr::memchr(b'\'', &text[from..])?;
        let is_doubled = text.get(end + 1) == Some(&b'\'');
        let part = &text[from..end + usize::from(is_doubled)];
        match &mut value {
            Cow::Borrowed(_) if from == 0 && !is_doubled => value = Cow::Borrowed(part),
            value => value.to_mut().extend_from_slice(part),
        }
        if !is_doubled {
            return Some((value, &text[end + 1..]));
        }
        from = end + 2;
    }
}

/// Whether a text has places for values, `$1`, outside of strings. A PREPARE has those of the statement that it names.
pub(in crate::logs) fn has_places(text: &[u8]) -> bool {
    if memchr::memchr(b'$', text).is_none() {
        return false;
    }
    let mut tokens = Lexer::new(text, Syntax::POSTGRESQL).peekable();
    let first = tokens.peek().map(|token| &text[token.start..token.end]);
    if first.is_some_and(|word| word.eq_ignore_ascii_case(b"prepare")) {
        return false;
    }
    tokens.any(|token| token.kind == TokenKind::Parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_zones() {
        let at = |text: &[u8], offset| {
            time(text, offset).map(|(time, end)| (time.at, time.step_ns, end))
        };
        let utc = 1_795_823_144_456_000_000;
        let milli = 1_000_000;
        assert_eq!(
            at(b"2026-11-27 23:45:44.456 UTC,", 9),
            Some((utc, milli, 27))
        );
        assert_eq!(
            at(b"2026-11-28 00:45:44.456 CET [1]", 9),
            Some((utc, milli, 27))
        );
        assert_eq!(
            at(b"2026-11-27 20:15:44.456 -0330 ", 9),
            Some((utc, milli, 29))
        );
        assert_eq!(
            at(b"2026-11-28 07:45:44.456 CST", 28_800),
            Some((utc, milli, 27))
        );
        assert_eq!(
            at(b"2026-11-28 07:45:44.456", 28_800),
            Some((utc, milli, 23))
        );
        assert_eq!(at(b"2026-13-28 07:45:44.456", 0), None);
    }

    #[test]
    fn values_are_read() {
        let borrowed = |text: &'static [u8]| Some(Cow::Borrowed(text));
        assert_eq!(
            values(b"parameters: $1 = '2', $2 = NULL, $3 = '', $4 = 'it''s ''', $5 = ', $6 = '"),
            Values::All(vec![
                borrowed(b"2"),
                None,
                borrowed(b""),
                borrowed(b"it's '"),
                borrowed(b", $6 = ")
            ])
        );
        let context = b"unnamed portal with parameters: $1 = '0'\nPL/pgSQL function f() line 1";
        assert_eq!(values(context), Values::All(vec![borrowed(b"0")]));
        for cut in [
            b"Parameters: $1 = 'abc...'".as_slice(),
            b"parameters: $1 = 'abc",
            b"parameters: $2 = '1'",
            b"parameters: $1 = 1",
            b"parameters: ",
        ] {
            assert_eq!(values(cut), Values::Cut, "{}", cut.escape_ascii());
        }
        assert_eq!(values(b"prepare: PREPARE p AS SELECT 1"), Values::None);
    }

    #[test]
    fn messages_are_classified() {
        let statement = |duration_ns, step, text| Event::Statement {
            duration_ns,
            step,
            text,
        };
        let cases: [(&[u8], Event<'_>); 10] = [
            (
                b"statement: SELECT 1",
                statement(None, Step::Simple, b"SELECT 1"),
            ),
            (
                b"execute <unnamed>: S: T",
                statement(None, Step::Execute, b"S: T"),
            ),
            (
                b"execute fetch from a/b: S",
                statement(None, Step::Refetch, b"S"),
            ),
            (b"duration: 0.276 ms", Event::Duration(276_000)),
            (
                b"duration: 12.5 ms  parse <unnamed>: S",
                statement(Some(12_500_000), Step::ParseUnnamed, b"S"),
            ),
            (
                b"duration: 1 ms  statement: S",
                statement(Some(1_000_000), Step::Simple, b"S"),
            ),
            (b"duration: 1.2.3 ms", Event::Other),
            (b"duration: 1 s", Event::Other),
            (b"parse x: S", Event::Other),
            (b"disconnection: session time: 0", Event::Disconnected),
        ];
        for (text, expected) in cases {
            assert_eq!(event(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn places_for_values_are_outside_of_strings() {
        assert!(has_places(b"SELECT 1/$1::int"));
        assert!(!has_places(b"SELECT '$1', $q$ $2 $q$"));
        assert!(!has_places(b"PREPARE p AS SELECT $1"));
    }
}
