//! PostgreSQL's stderr log.
//!
//! A line begins with `log_line_prefix` and a label, as in `LOG:  `; further lines of a message begin with a tab, so that a literal
//! cannot forge a message. Details, contexts and statements of a message follow it as messages of their own with the same prefix.
//! Names of users and applications are in the prefix as clients chose them, so that these can forge.

mod prefix;

use std::io::{BufRead, Read as _};
use std::ops::Range;

use prefix::{Head, Prefix};

use super::postgresql_csv::message::{Level, Message, SessionKey, is_client, sql_state};
use super::postgresql_csv::sessions::Sessions;
use super::text::{CUT_OFF, LineRead, Lines, LogTime, TOO_LONG, is_full, offset_s};
use super::{LogOptions, ReadError};
use crate::entry::Sink;

/// Prefixes that are tried where the user gave none, the more exact ones first.
const USUAL_PREFIXES: [&[u8]; 13] = [
    b"%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    b"%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    b"%m [%p]: user=%u,db=%d,app=%a,client=%h ",
    b"%t [%p]: [%l-1] user=%u,db=%d ",
    b"%t:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    b"%t:%r:%u@%d:[%p]:",
    b"%m [%p] %q%u@%d ",
    b"%t [%p-%l] %q%u@%d ",
    b"%m [%p] %u@%d ",
    b"%t-%c-",
    b"%t [%p]: ",
    b"%m [%p]: ",
    b"%m [%p] ",
];
/// Bytes of a log that its prefix and its line ends are recognised by, and lines for the prefix.
const HEAD_BYTES: u64 = 64 << 10;
const HEAD_LINES: usize = 500;

/// Why lines are left out.
const STRAY: &str = "neither the log_line_prefix and a label nor a further line of a message";

/// Reads a stderr log to its end.
///
/// # Errors
/// See [`ReadError`].
pub fn read(
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let unfit = |why: String| ReadError::Unfit { line: 1, why };
    let mut head = Vec::new();
    (&mut *input).take(HEAD_BYTES).read_to_end(&mut head)?;
    let prefix = match &options.line_prefix {
        Some(pattern) => Prefix::new(pattern).map_err(unfit)?,
        None => usual_prefix(&head).ok_or_else(|| {
            unfit("its log_line_prefix is none of the usual ones that name the session; give it with --prefix".to_owned())
        })?,
    };
    let line_end = line_end(&head);
    let mut whole = head.as_slice().chain(input);
    read_with(&prefix, line_end, &mut whole, options, sink)
}

/// The line ends of a log: with a carriage return where each line has one, as on Windows. A line break within a literal may have one
/// in any log, and then it belongs to the literal.
fn line_end(head: &[u8]) -> &'static [u8] {
    let mut ends = memchr::memchr_iter(b'\n', head).peekable();
    let is_any = ends.peek().is_some();
    let has_return = |end: usize| end > 0 && head[end - 1] == b'\r';
    match is_any && ends.all(has_return) {
        true => b"\r\n",
        false => b"\n",
    }
}

/// The usual prefix that most lines have; of equal ones the most exact.
fn usual_prefix(head: &[u8]) -> Option<Prefix> {
    let mut best = None;
    let mut most = 0;
    for pattern in USUAL_PREFIXES {
        let Ok(prefix) = Prefix::new(pattern).map(Prefix::guessed) else {
            continue;
        };
        let lines = head.split(|byte| *byte == b'\n').take(HEAD_LINES);
        let count = lines.filter(|line| prefix.read(line, 0).is_some()).count();
        if count > most {
            most = count;
            best = Some(prefix);
        }
    }
    best
}

fn read_with(
    prefix: &Prefix,
    line_end: &[u8],
    input: &mut dyn BufRead,
    options: &LogOptions,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut reader = Reader {
        sessions: Sessions::new(sink),
        group: Group::default(),
        strays: (0, 0),
        has_levels: false,
    };
    let offset_s = offset_s(options);
    let mut lines = Lines::new(input);
    let mut line = Vec::new();
    let mut last = LineRead::Whole;
    loop {
        line.clear();
        let Some(read) = lines.append(&mut line)? else {
            break;
        };
        last = read;
        let is_cut = read == LineRead::Cut;
        let text = line.strip_suffix(line_end).unwrap_or(&line);
        if let Some(further) = text.strip_prefix(b"\t") {
            if reader.group.head.is_some() {
                reader.group.add_line(further, is_cut);
            } else {
                reader.note_stray(lines.number());
            }
            continue;
        }
        let found = prefix.read(text, offset_s);
        let found =
            found.and_then(|(head, label, from)| Some((head, head.key()?, label, &text[from..])));
        match found {
            Some((head, key, label, text)) => {
                reader.labelled(&head, key, label, text, lines.number())?;
                reader.group.is_too_long |= is_cut;
            }
            // Without the logging collector other programs write to the same file.
            None => reader.note_stray(lines.number()),
        }
    }
    // Half of a statement may be a valid one.
    if last == LineRead::Unended {
        reader.group.is_cut_off = true;
    }
    reader.finish_group()?;
    reader.report_strays();
    if !reader.has_levels {
        let why = "no line has the log_line_prefix and then a level in English, as in `LOG:  `"
            .to_owned();
        return Err(ReadError::Unfit { line: 1, why });
    }
    reader.sessions.finish()
}

/// Part of a message that has a label of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Text,
    Detail,
    Context,
    Statement,
    /// Hints, internal queries and places in the server's source.
    Other,
}

impl Section {
    const COUNT: usize = 5;

    fn named(label: &[u8]) -> Option<Self> {
        Some(match label {
            b"DETAIL" => Self::Detail,
            b"CONTEXT" => Self::Context,
            b"STATEMENT" => Self::Statement,
            b"HINT" | b"QUERY" | b"LOCATION" | b"BACKTRACE" => Self::Other,
            _ => return None,
        })
    }
}

/// What the first line of a message says, apart from its text.
#[derive(Debug, Clone, Copy)]
struct GroupHead {
    key: SessionKey,
    time: Option<LogTime>,
    is_client: bool,
    place: Option<u64>,
    state: Option<[u8; 5]>,
    level: Level,
    line: u64,
}

/// A message with what follows it. Its memory is used again.
#[derive(Default)]
struct Group {
    head: Option<GroupHead>,
    lines: u64,
    is_too_long: bool,
    is_cut_off: bool,
    user: Option<Vec<u8>>,
    database: Option<Vec<u8>>,
    activity: Option<Vec<u8>>,
    buffer: Vec<u8>,
    sections: [Option<Range<usize>>; Section::COUNT],
    current: usize,
}

impl Group {
    fn begin_section(&mut self, section: Section, text: &[u8]) {
        self.lines += 1;
        self.current = section as usize;
        if self.is_too_long || is_full(&self.buffer) {
            self.is_too_long = true;
            return;
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(text);
        // The first of a name: RAISE in nested functions has one context of several lines.
        let range = &mut self.sections[self.current];
        if range.is_none() || section == Section::Other {
            *range = Some(start..self.buffer.len());
        } else {
            self.current = Section::Other as usize;
            self.sections[self.current] = Some(start..self.buffer.len());
        }
    }

    fn add_line(&mut self, text: &[u8], is_cut: bool) {
        self.lines += 1;
        self.is_too_long |= is_cut;
        if self.is_too_long || is_full(&self.buffer) {
            self.is_too_long = true;
            return;
        }
        self.buffer.push(b'\n');
        self.buffer.extend_from_slice(text);
        if let Some(range) = &mut self.sections[self.current] {
            range.end = self.buffer.len();
        }
    }
}

struct Reader<'s> {
    sessions: Sessions<'s>,
    group: Group,
    /// The first of some lines that belong to no message, and how many.
    strays: (u64, u64),
    has_levels: bool,
}

impl Reader<'_> {
    fn labelled(
        &mut self,
        head: &Head<'_>,
        key: SessionKey,
        label: &[u8],
        text: &[u8],
        line: u64,
    ) -> Result<(), ReadError> {
        if let Some(section) = Section::named(label) {
            let is_of_group = self.group.head.is_some_and(|group| group.key == key);
            if is_of_group {
                self.group.begin_section(section, text);
            } else {
                self.note_stray(line);
            }
            return Ok(());
        }
        self.finish_group()?;
        self.report_strays();
        self.has_levels |= Level::named(label).is_some();
        // With log_error_verbosity = verbose the SQLSTATE stands before the text.
        let state = text.get(..5).and_then(sql_state);
        let state = state.filter(|_| text[5..].starts_with(b": "));
        let text = if state.is_some() { &text[7..] } else { text };
        let state = head.state.or(state);
        let group = &mut self.group;
        group.head = Some(GroupHead {
            key,
            time: head.time,
            is_client: is_client(head.backend_type.unwrap_or_default()),
            place: head.place,
            state,
            level: Level::of(label, state),
            line,
        });
        keep(&mut group.user, head.user);
        keep(&mut group.database, head.database);
        keep(&mut group.activity, head.activity);
        group.begin_section(Section::Text, text);
        Ok(())
    }

    fn finish_group(&mut self) -> Result<(), ReadError> {
        let group = &mut self.group;
        if let Some(head) = group.head.take() {
            let why = match () {
                () if group.is_too_long => Some(TOO_LONG),
                () if group.is_cut_off => Some(CUT_OFF),
                () => None,
            };
            if let Some(why) = why {
                self.sessions.unreadable(head.line, group.lines, why);
            } else {
                let section = |section: Section| {
                    let range = group.sections[section as usize].clone();
                    range.map(|range| &group.buffer[range])
                };
                self.sessions.message(&Message {
                    key: head.key,
                    time: head.time,
                    user: group.user.as_deref(),
                    database: group.database.as_deref(),
                    is_client: head.is_client,
                    place: head.place,
                    level: head.level,
                    state: head.state,
                    activity: group.activity.as_deref(),
                    text: section(Section::Text).unwrap_or_default(),
                    detail: section(Section::Detail).unwrap_or_default(),
                    context: section(Section::Context).unwrap_or_default(),
                    statement: section(Section::Statement),
                    line: head.line,
                })?;
            }
        }
        group.lines = 0;
        group.is_too_long = false;
        group.sections = Default::default();
        group.buffer.clear();
        Ok(())
    }

    fn note_stray(&mut self, line: u64) {
        let (first, count) = self.strays;
        if first + count != line {
            self.report_strays();
            self.strays.0 = line;
        }
        self.strays.1 += 1;
    }

    fn report_strays(&mut self) {
        let (first, count) = std::mem::take(&mut self.strays);
        if count > 0 {
            self.sessions.unreadable(first, count, STRAY);
        }
    }
}

fn keep(place: &mut Option<Vec<u8>>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            let kept = place.get_or_insert_default();
            kept.clear();
            kept.extend_from_slice(value);
        }
        None => *place = None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::postgresql_csv;
    use super::super::testing::{Notes, assert_buffer_changes_nothing, assert_is_unfit};
    use super::*;
    use crate::entry::{Lack, Outcome};

    const PG_15: &[u8] = include_bytes!("../../../tests/data/pg15-stderr.log");
    const PG_17: &[u8] = include_bytes!("../../../tests/data/pg17-stderr.log");
    const CSV_15: &[u8] = include_bytes!("../../../tests/data/pg15.csv");
    const CSV_17: &[u8] = include_bytes!("../../../tests/data/pg17.csv");
    const DURATIONS: &[u8] = include_bytes!("../../../tests/data/pg15-mode-A.log");
    const ALL_AND_LOG_DURATION: &[u8] = include_bytes!("../../../tests/data/pg15-mode-B.log");
    const BOTH: &[u8] = include_bytes!("../../../tests/data/pg15-mode-C.log");
    const CUT_PARAMETERS: &[u8] = include_bytes!("../../../tests/data/pg15-mode-D.log");
    const SAMPLE_PREFIX: &str = "%m [%p] %c %l %v %x %u@%d %a %h %e ";
    const MODE_PREFIX: &str = "%c:%l %x ";

    fn with_prefix(prefix: &str) -> LogOptions {
        LogOptions {
            line_prefix: Some(prefix.as_bytes().to_vec()),
            ..LogOptions::default()
        }
    }

    fn notes_of(log: &[u8], prefix: &str) -> Notes {
        Notes::of(read, log, &with_prefix(prefix))
    }

    #[test]
    fn it_says_what_the_csvlog_of_the_same_server_says() {
        for (log, csv) in [(PG_15, CSV_15), (PG_17, CSV_17)] {
            let notes = notes_of(log, SAMPLE_PREFIX);
            let expected = Notes::of(postgresql_csv::read, csv, &LogOptions::default());
            assert!(notes.unreadable.is_empty(), "{:?}", notes.unreadable);
            assert_eq!(notes.entries, expected.entries);
            assert_eq!(notes.outcomes, expected.outcomes);
            assert_eq!(notes.times, expected.times);
            assert_eq!(notes.lacks, expected.lacks);
        }
    }

    #[test]
    fn all_settings_of_the_log_have_the_same_statements() {
        let expected = [
            "begins  on ? whole",
            "SELECT 1",
            "[prepared] SELECT $1::int + $2::int",
            "[prepared] SELECT length($1)",
            "SELECT 1/0",
            "[prepared] SELECT 1/$1::int",
            "[prepared] SELECT $1::int",
            "SELECT 1; SELECT 2",
            "SELECT \\'a\\nb\\'",
        ];
        for log in [DURATIONS, ALL_AND_LOG_DURATION, BOTH, CUT_PARAMETERS] {
            let notes = notes_of(log, MODE_PREFIX);
            assert_eq!(notes.of_session(1), expected);
            let failed: Vec<bool> = notes.outcomes[..7]
                .iter()
                .map(|outcome| *outcome != Some(Outcome::Ok))
                .collect();
            assert_eq!(failed, [false, false, false, true, true, true, false]);
            assert!(notes.unreadable.is_empty());
            assert!(
                notes.lacks.contains(&Lack::CutValues),
                "SELECT $1::int has none"
            );
        }
    }

    #[test]
    fn durations_have_the_steps_that_the_log_names() {
        let durations = |log| -> Vec<Option<u64>> {
            let times = notes_of(log, MODE_PREFIX).times;
            times.iter().map(|(.., duration)| *duration).collect()
        };
        // Parse of an unnamed statement, bind and execute; bind and execute of a named one.
        let expected = [
            Some(222_000),
            Some(309_000),
            Some(23_000),
            None,
            None,
            None,
            Some(21_000),
            Some(17_000),
        ];
        assert_eq!(durations(DURATIONS), expected);
        let expected = [
            Some(374_000),
            Some(352_000),
            Some(39_000),
            None,
            None,
            None,
            Some(35_000),
            Some(31_000),
        ];
        assert_eq!(durations(BOTH), expected);
        // Nameless durations before an execution may be of anything.
        let expected = [
            Some(302_000),
            Some(14_000),
            Some(26_000),
            None,
            None,
            None,
            Some(36_000),
            Some(24_000),
        ];
        assert_eq!(durations(ALL_AND_LOG_DURATION), expected);
        assert_eq!(durations(CUT_PARAMETERS), [None; 8]);
    }

    #[test]
    fn a_usual_prefix_is_found() {
        let log = "\
2026-11-27 23:45:45.041 CET [7] LOG:  database system is ready
2026-11-27 23:45:45.041 CET [8] u@d LOG:  statement: SELECT
\t1
2026-11-27 23:45:46.041 CET [8] u@d LOG:  duration: 2.5 ms
";
        let notes = Notes::of(read, log.as_bytes(), &LogOptions::default());
        assert_eq!(
            notes.of_session(1),
            ["begins u on d open before", "SELECT\\n1"]
        );
        assert_eq!(
            notes.times,
            [(Some(1_795_819_545_041_000_000), 1_000_000, Some(2_500_000))]
        );
        assert_is_unfit(read, PG_17, &LogOptions::default());
    }

    #[test]
    fn carriage_returns_of_literals_are_kept() {
        let log = "\
[7] LOG:  statement: SELECT 'a\r
\tb'
[7] LOG:  statement: SELECT 1
";
        let notes = notes_of(log.as_bytes(), "[%p] ");
        assert_eq!(notes.texts, [&b"SELECT 'a\r\nb'"[..], b"SELECT 1"]);
        let windows = log.replace('\n', "\r\n");
        let notes = notes_of(windows.as_bytes(), "[%p] ");
        assert_eq!(notes.texts, [&b"SELECT 'a\r\nb'"[..], b"SELECT 1"]);
        assert_eq!(line_end(b"no end"), b"\n");
    }

    #[test]
    fn process_ids_recur() {
        let log = "\
[7] 3 LOG:  statement: SELECT 1
[7] 4 LOG:  statement: SELECT 2
[7] 1 LOG:  statement: SELECT 3
[7] 2 LOG:  connection received: host=[local]
[7] 3 LOG:  connection authorized: user=u v database=d application_name=a
[7] 4 LOG:  statement: SELECT 4
[7] 5 FATAL:  terminating connection due to administrator command
";
        let notes = notes_of(log.as_bytes(), "[%p] %l ");
        assert_eq!(notes.of_session(1)[1..], ["SELECT 1", "SELECT 2", "ended"]);
        assert_eq!(notes.of_session(2)[1..], ["SELECT 3", "ended"]);
        assert_eq!(
            notes.of_session(3),
            ["begins u v on d whole", "SELECT 4", "ended"]
        );
    }

    #[test]
    fn lines_of_others_and_a_cut_end_are_unreadable() {
        let log = "\
\tx
[7] LOG:  statement: SELECT 1
sh: command not found
archived
\t+ 1
[8] DETAIL:  parameters: $1 = '1'
[7] LOG:  statement: DELETE
\tFROM item";
        let notes = notes_of(log.as_bytes(), "[%p] ");
        assert_eq!(notes.texts, [b"SELECT 1\n+ 1"]);
        assert_eq!(
            notes.unreadable,
            [
                (1, 1, STRAY.to_owned()),
                (3, 2, STRAY.to_owned()),
                (6, 1, STRAY.to_owned()),
                (7, 2, CUT_OFF.to_owned()),
            ]
        );
    }

    #[test]
    fn verbose_errors_have_their_state_in_the_text() {
        let log = "\
[7] LOG:  00000: statement: SELECT 1/0
[7] LOCATION:  exec_simple_query, postgres.c:1
[7] ERROR:  22012: division by zero
[7] LOCATION:  int4div, int.c:1
[7] STATEMENT:  SELECT 1/0
";
        let notes = notes_of(log.as_bytes(), "[%p] ");
        assert_eq!(notes.texts, [b"SELECT 1/0"]);
        assert_eq!(notes.outcomes, [Some(Outcome::State(*b"22012"))]);
    }

    #[test]
    fn a_message_that_is_too_long_is_counted_and_left_out() {
        let line = format!("\t{}\n", "x".repeat(62));
        let lines = (66 << 20) / 64;
        let log = format!(
            "[7] LOG:  statement: SELECT '\n{}[7] LOG:  statement: SELECT '{}'\n[7] LOG:  statement: SELECT 1\n",
            line.repeat(lines),
            "y".repeat(65 << 20)
        );
        let notes = notes_of(log.as_bytes(), "[%p] ");
        assert_eq!(notes.texts, [b"SELECT 1"]);
        let lines = lines as u64;
        assert_eq!(
            notes.unreadable,
            [
                (1, lines + 1, TOO_LONG.to_owned()),
                (lines + 2, 1, TOO_LONG.to_owned())
            ]
        );
    }

    #[test]
    fn what_is_no_stderr_log_is_refused() {
        for (log, prefix) in [
            ("one\ntwo\n", "[%p] "),
            ("", "[%p] "),
            ("[7] FEHLER:  x\n", "[%p] "),
            ("x\n", "%m "),
        ] {
            assert_is_unfit(read, log.as_bytes(), &with_prefix(prefix));
        }
    }

    #[test]
    fn a_small_buffer_changes_nothing() {
        assert_buffer_changes_nothing(read, PG_17, &with_prefix(SAMPLE_PREFIX));
    }

    proptest! {
        #[test]
        fn any_prefix_does_no_harm(prefix in "[%a-zA-Z0-9@: \\[\\]-]{0,20}", line in "\\PC{0,80}") {
            let log = format!("{line}\n7 LOG:  {line}\n");
            let _ = Notes::try_of(read, log.as_bytes(), &with_prefix(&prefix));
        }
    }
}
