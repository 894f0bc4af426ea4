//! What the tests of all readers share: a sink that writes down what it gets.

use std::io::{self, BufRead, BufReader};

use super::{LogOptions, ReadError};
use crate::entry::{Entry, Lack, Outcome, Protocol, Request, Sink};

/// Statements that the sample logs of MySQL and MariaDB have, as their client sent them.
pub(in crate::logs) const MYSQL_TEXTS: [&[u8]; 2] = [
    b"/* leading comment */ SELECT *\n\tFROM item\n WHERE name = 'two\nlines'   -- trailing",
    b"SELECT LAST_INSERT_ID(), 'tab\there', 'it''s', 'back\\\\slash', '\xc3\xbcn\xc3\xaf', x'00ff0a'",
];

/// A reader of one format.
pub(in crate::logs) type ReadLog =
    fn(&mut dyn BufRead, &LogOptions, &mut dyn Sink) -> Result<(), ReadError>;

/// What a log has. Sessions are numbered from 1.
#[derive(Debug, Default)]
pub(in crate::logs) struct Notes {
    pub(in crate::logs) entries: Vec<String>,
    pub(in crate::logs) unreadable: Vec<(u64, u64, String)>,
    pub(in crate::logs) lacks: Vec<Lack>,
    /// Texts of statements, of requests not.
    pub(in crate::logs) texts: Vec<Vec<u8>>,
    pub(in crate::logs) outcomes: Vec<Option<Outcome>>,
    /// Start and duration, nanoseconds.
    pub(in crate::logs) times: Vec<(Option<i64>, u32, Option<u64>)>,
}

impl Notes {
    /// Reads a log.
    pub(in crate::logs) fn of(read: ReadLog, log: &[u8], options: &LogOptions) -> Self {
        Self::try_of(read, log, options).unwrap()
    }

    pub(in crate::logs) fn try_of(
        read: ReadLog,
        mut log: &[u8],
        options: &LogOptions,
    ) -> Result<Self, ReadError> {
        let mut notes = Self::default();
        read(&mut log, options, &mut notes)?;
        Ok(notes)
    }

    /// Entries of this session.
    pub(in crate::logs) fn of_session(&self, number: u32) -> Vec<&str> {
        let start = format!("{number} ");
        let entries = self.entries.iter();
        entries
            .filter_map(|entry| entry.strip_prefix(&start))
            .collect()
    }

    /// Asserts that these statements are among the texts.
    #[track_caller]
    pub(in crate::logs) fn assert_has(&self, expected: &[&[u8]]) {
        for text in expected {
            let is_there = self.texts.iter().any(|found| found == text);
            assert!(is_there, "{}", text.escape_ascii());
        }
    }

    pub(in crate::logs) fn sessions(&self) -> usize {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.contains(" begins ")).count()
    }
}

impl Sink for Notes {
    fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        let note = match entry {
            Entry::SessionBegun {
                session,
                user,
                schema,
                is_whole,
                ..
            } => format!(
                "{} begins {} on {} {}",
                session.0 + 1,
                user.escape_ascii(),
                schema.map_or("?".to_owned(), |name| name.escape_ascii().to_string()),
                if is_whole { "whole" } else { "open before" },
            ),
            Entry::SessionEnded { session, at } => {
                let is_known = if at.is_some() { "ends" } else { "ended" };
                format!("{} {is_known}", session.0 + 1)
            }
            Entry::Statement(statement) => {
                let protocol = match statement.protocol {
                    Protocol::Text => "",
                    Protocol::Prepared(_) => "[prepared] ",
                    Protocol::PreparedInline => "[inline] ",
                    Protocol::Request(request) => match request {
                        Request::InitDb => "[init] ",
                        Request::ChangeUser => "[user] ",
                        Request::Reset => "[reset] ",
                    },
                };
                if !matches!(statement.protocol, Protocol::Request(_)) {
                    self.texts.push(statement.text.to_vec());
                    self.outcomes.push(statement.outcome);
                    self.times.push((
                        statement.start,
                        statement.start_step_ns,
                        statement.duration_ns,
                    ));
                }
                let schema = statement.schema.as_deref();
                let schema =
                    schema.map_or(String::new(), |name| format!("{}: ", name.escape_ascii()));
                format!(
                    "{} {protocol}{schema}{}",
                    statement.session.0 + 1,
                    statement.text.escape_ascii()
                )
            }
        };
        self.entries.push(note);
        Ok(())
    }

    fn unreadable(&mut self, line: u64, lines: u64, why: &str) {
        self.unreadable.push((line, lines, why.to_owned()));
    }

    fn lacks(&mut self, lack: Lack) {
        assert!(!self.lacks.contains(&lack), "{lack:?} twice");
        self.lacks.push(lack);
    }
}

/// Asserts that a log is refused at its first line.
pub(in crate::logs) fn assert_is_unfit(read: ReadLog, log: &[u8], options: &LogOptions) {
    let found = Notes::try_of(read, log, options);
    let text = log.escape_ascii();
    assert!(
        matches!(found, Err(ReadError::Unfit { line: 1, .. })),
        "{text}: {found:?}"
    );
}

/// Asserts that a log is read the same in pieces of a few bytes.
pub(in crate::logs) fn assert_buffer_changes_nothing(
    read: ReadLog,
    log: &[u8],
    options: &LogOptions,
) {
    let mut notes = Notes::default();
    let mut input = BufReader::with_capacity(7, log);
    read(&mut input, options, &mut notes).unwrap();
    let whole = Notes::of(read, log, options);
    assert_eq!((notes.entries, notes.texts), (whole.entries, whole.texts));
}
