//! Sessions of PostgreSQL's logs: which messages make a statement.
//!
//! With `log_statement` a statement is logged at its start, with `log_min_duration_statement` at its end, with both its text at the
//! start and a duration without text at its end. A statement that was logged at its start waits here for its duration or its error
//! until the session's next message shows that it has ended.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::ReadError;
use super::super::text::{Lacks, LogTime, find};
use super::message::{Event, Level, Message, SessionKey, Step, Values, event, has_places, values};
use crate::entry::{Entry, Lack, Outcome, Protocol, SessionNumber, Sink, Statement, UnixNs};

/// Sessions that are followed at a time. Above it the half that was silent longest counts as ended: ends are logged with
/// `log_disconnections` only.
const OPEN_MAX: usize = 1 << 16;

/// Texts that wait in all sessions, bytes. Above it all are passed on without their ends.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// Longest text whose memory a session keeps for its next one, bytes.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Longest user or database name that is believed, bytes. The server's limit is 63.
const NAME_BYTES_MAX: usize = 512;

/// Statement whose start was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    /// Its text and values are kept.
    Kept,
    /// It was passed on already; its duration and its error belong to it and are dropped.
    Passed,
}

struct Session {
    /// `None` until it has a statement: failed logins are no sessions.
    number: Option<SessionNumber>,
    begin: Option<UnixNs>,
    is_whole: bool,
    user: Vec<u8>,
    database: Option<Vec<u8>>,
    /// Count of all messages at its last one.
    last_used: u64,
    /// Place of its last message.
    last_place: u64,
    /// Start of its last statement: times have milliseconds and a start may be computed from an end, so the order of the session is
    /// kept by never going back.
    last_start: Option<UnixNs>,
    /// Durations of the parse and bind steps before the next execution. Planning is in them, so they are part of how long it takes.
    steps_ns: u64,
    waiting: Waiting,
    /// Text of the waiting statement, then its detail.
    text: Vec<u8>,
    text_length: usize,
    step: Step,
    at: Option<LogTime>,
    line: u64,
}

/// A statement that is complete.
struct Complete<'a> {
    text: &'a [u8],
    protocol: Protocol<'a>,
    at: Option<LogTime>,
    duration_ns: Option<u64>,
    outcome: Option<Outcome>,
    line: u64,
}

/// The sessions of a log.
pub(in crate::logs) struct Sessions<'s> {
    sink: &'s mut dyn Sink,
    lacks: Lacks,
    /// A log may have keys that collide in a hash without a secret.
    open: HashMap<SessionKey, Session>,
    next: u32,
    messages: u64,
    waiting_bytes: usize,
    /// From here on the log has all statements: its beginning, or a change of its settings.
    complete_from: Option<UnixNs>,
    has_ends: bool,
}

impl<'s> Sessions<'s> {
    pub(in crate::logs) fn new(sink: &'s mut dyn Sink) -> Self {
        Self {
            sink,
            lacks: Lacks::default(),
            open: HashMap::default(),
            next: 0,
            messages: 0,
            waiting_bytes: 0,
            complete_from: None,
            has_ends: false,
        }
    }

    /// A part of the log that is not understood.
    pub(in crate::logs) fn unreadable(&mut self, line: u64, lines: u64, why: &str) {
        self.sink.unreadable(line, lines, why);
    }

    /// Takes the next message.
    pub(in crate::logs) fn message(&mut self, message: &Message<'_>) -> Result<(), ReadError> {
        self.messages += 1;
        let at = message.time.map(|time| time.at);
        self.complete_from = self.complete_from.or(at);
        let result = match message.level {
            Level::Log => self.log(message),
            Level::Error | Level::Fatal if !message.is_client => Ok(()),
            Level::Error => self.error(message),
            Level::Fatal => {
                // Without its text the session was idle.
                if message.statement.is_some() {
                    self.error(message)?;
                }
                self.end(message.key, at)
            }
            Level::Other => Ok(()),
        };
        result?;
        if self.waiting_bytes > WAITING_BYTES_MAX {
            self.pass_all()?;
        }
        Ok(())
    }

    /// To be called at the end of the log.
    pub(in crate::logs) fn finish(mut self) -> Result<(), ReadError> {
        // How the last statement of each session ended is not known.
        for key in self.keys_by_line() {
            self.complete(key, None, None)?;
        }
        if self.next > 0 && !self.has_ends {
            self.lacks.report(Lack::SessionEnds, &mut *self.sink);
        }
        Ok(())
    }

    /// Sessions in the order of the log, so that an import is repeatable.
    fn keys_by_line(&self) -> Vec<SessionKey> {
        let open = self.open.iter();
        let mut keys: Vec<(u64, SessionKey)> =
            open.map(|(key, session)| (session.line, *key)).collect();
        keys.sort_unstable_by_key(|(line, key)| (*line, key.start_s, key.pid));
        keys.into_iter().map(|(_, key)| key).collect()
    }

    fn log(&mut self, message: &Message<'_>) -> Result<(), ReadError> {
        // RAISE LOG in a function may forge any text and has a context, which the server's own messages lack. In a stderr log with
        // log_error_verbosity = terse there is none, and the two cannot be distinguished.
        let event = match message.context {
            b"" => event(message.text),
            _ => Event::Other,
        };
        let is_of_server = matches!(event, Event::Started | Event::LogChanged);
        if !is_of_server && !message.is_client {
            return Ok(());
        }
        let key = message.key;
        let at = message.time.map(|time| time.at);
        match event {
            Event::Statement {
                duration_ns,
                step,
                text,
            } => self.statement(message, duration_ns, step, text),
            Event::Duration(duration_ns) => {
                match self.open.get(&key).map(|session| session.waiting) {
                    Some(Waiting::Kept) => self.complete(key, Some(duration_ns), Some(Outcome::Ok)),
                    Some(Waiting::Passed) => {
                        self.session(message)?.waiting = Waiting::Nothing;
                        Ok(())
                    }
                    // Of a step, or of a statement whose text is not logged: which one is not known.
                    _ => Ok(()),
                }
            }
            Event::Connected => {
                // Where the key is the process id, this is another session of the same id.
                self.end(key, None)?;
                let session = self.session(message)?;
                session.is_whole = true;
                session.begin = at;
                Ok(())
            }
            Event::Authorized => {
                let (user, database) = login_of(message.text);
                let session = self.session(message)?;
                session.is_whole = true;
                session.begin = session.begin.or(at);
                if session.user.is_empty() {
                    session.user = believed(user).unwrap_or_default().to_vec();
                }
                if session.database.is_none() {
                    session.database = believed(database).map(<[u8]>::to_vec);
                }
                Ok(())
            }
            Event::Disconnected => {
                self.has_ends = true;
                self.end(key, at)
            }
            Event::Started if message.user.is_none() => {
                self.end_all()?;
                // Sessions name the second of their start, as this process does.
                self.complete_from = start_of(key).or(at);
                Ok(())
            }
            Event::LogChanged if message.user.is_none() => {
                self.complete_from = at.or(self.complete_from);
                Ok(())
            }
            Event::Started | Event::LogChanged | Event::Other => Ok(()),
        }
    }

    fn statement(
        &mut self,
        message: &Message<'_>,
        duration_ns: Option<u64>,
        step: Step,
        text: &[u8],
    ) -> Result<(), ReadError> {
        let key = message.key;
        // The session's next statement: the one before has ended, and errors are logged in every mode.
        self.complete(key, None, Some(Outcome::Ok))?;
        let session = self.session(message)?;
        match (step, duration_ns) {
            (Step::Refetch, None) => {
                session.waiting = Waiting::Passed;
                Ok(())
            }
            (Step::Refetch | Step::ParseNamed, Some(_)) => Ok(()),
            (Step::ParseUnnamed, Some(duration_ns)) => {
                session.steps_ns = duration_ns;
                Ok(())
            }
            (Step::Bind, Some(duration_ns)) => {
                session.steps_ns = session.steps_ns.saturating_add(duration_ns);
                Ok(())
            }
            (Step::ParseUnnamed | Step::ParseNamed | Step::Bind, None) => Ok(()),
            (Step::Simple | Step::Execute, None) => {
                session.waiting = Waiting::Kept;
                session.text.clear();
                session.text.extend_from_slice(text);
                session.text_length = text.len();
                if step == Step::Execute {
                    session.text.extend_from_slice(message.detail);
                } else {
                    session.steps_ns = 0;
                }
                session.step = step;
                session.at = message.time;
                session.line = message.line;
                self.waiting_bytes += session.text.len();
                Ok(())
            }
            (Step::Simple | Step::Execute, Some(duration_ns)) => {
                let steps_ns = std::mem::take(&mut session.steps_ns);
                let protocol = match step {
                    Step::Execute => {
                        prepared(text, message.detail, &mut self.lacks, &mut *self.sink)
                    }
                    _ => Protocol::Text,
                };
                let steps_ns = match step {
                    Step::Execute => steps_ns,
                    _ => 0,
                };
                let duration_ns = duration_ns.saturating_add(steps_ns);
                let at = message.time;
                self.emit(
                    key,
                    Complete {
                        text,
                        protocol,
                        at: at.and_then(|end| end.before(duration_ns)).or(at),
                        duration_ns: Some(duration_ns),
                        outcome: Some(Outcome::Ok),
                        line: message.line,
                    },
                )
            }
        }
    }

    fn error(&mut self, message: &Message<'_>) -> Result<(), ReadError> {
        let key = message.key;
        // Without %e the prefix of a stderr log names no SQLSTATE: XX000 stands for any.
        let outcome = message.state.unwrap_or(*b"XX000");
        let outcome = Some(Outcome::State(outcome));
        if let Some(session) = self.open.get_mut(&key) {
            session.steps_ns = 0;
            // The same statement may fail at its next bind, before a line of its own. Only the activity shows that.
            let is_in_step = matches!(message.activity, Some(b"PARSE" | b"BIND"));
            let kept = &session.text[..session.text_length];
            let is_its_own = match message.statement {
                Some(statement) => !is_in_step && statement == kept,
                None => true,
            };
            match session.waiting {
                Waiting::Kept if is_its_own => return self.complete(key, None, outcome),
                Waiting::Kept => self.complete(key, None, Some(Outcome::Ok))?,
                Waiting::Passed => {
                    session.waiting = Waiting::Nothing;
                    return Ok(());
                }
                Waiting::Nothing => {}
            }
        }
        let Some(text) = message.statement else {
            return Ok(());
        };
        self.session(message)?;
        // It failed before its line, or its line would have come at its end.
        let protocol = match values(message.context) {
            Values::None if !has_places(text) => Protocol::Text,
            _ => prepared(text, message.context, &mut self.lacks, &mut *self.sink),
        };
        self.emit(
            key,
            Complete {
                text,
                protocol,
                at: message.time,
                duration_ns: None,
                outcome,
                line: message.line,
            },
        )
    }

    /// Passes on the statement that waits in a session, if any.
    fn complete(
        &mut self,
        key: SessionKey,
        duration_ns: Option<u64>,
        outcome: Option<Outcome>,
    ) -> Result<(), ReadError> {
        let Some(session) = self.open.get_mut(&key) else {
            return Ok(());
        };
        if std::mem::replace(&mut session.waiting, Waiting::Nothing) != Waiting::Kept {
            return Ok(());
        }
        let mut kept = std::mem::take(&mut session.text);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(kept.len());
        let steps_ns = std::mem::take(&mut session.steps_ns);
        let (text, detail) = kept.split_at(session.text_length);
        let (step, at, line) = (session.step, session.at, session.line);
        let protocol = match step {
            Step::Execute => prepared(text, detail, &mut self.lacks, &mut *self.sink),
            _ => Protocol::Text,
        };
        let is_ok = outcome == Some(Outcome::Ok);
        if duration_ns.is_none() && is_ok {
            self.lacks.report(Lack::Durations, &mut *self.sink);
        }
        let complete = Complete {
            text,
            protocol,
            at: at.and_then(|start| start.before(steps_ns)).or(at),
            duration_ns: duration_ns.map(|duration| duration.saturating_add(steps_ns)),
            outcome,
            line,
        };
        self.emit(key, complete)?;
        if let Some(session) = self.open.get_mut(&key) {
            session.text_length = 0;
            if kept.capacity() <= KEPT_BYTES_MAX {
                kept.clear();
                session.text = kept;
            }
        }
        Ok(())
    }

    /// Passes on all that wait, so that they need no memory.
    fn pass_all(&mut self) -> Result<(), ReadError> {
        for key in self.keys_by_line() {
            let is_kept = self
                .open
                .get(&key)
                .is_some_and(|session| session.waiting == Waiting::Kept);
            if is_kept {
                self.complete(key, None, None)?;
                if let Some(session) = self.open.get_mut(&key) {
                    session.waiting = Waiting::Passed;
                }
            }
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    fn emit(&mut self, key: SessionKey, complete: Complete<'_>) -> Result<(), ReadError> {
        let Some(session) = self.open.get_mut(&key) else {
            return Ok(());
        };
        let at = complete.at.map(|time| time.at);
        let number = match session.number {
            Some(number) => number,
            None => {
                let number = SessionNumber(self.next);
                self.next = self.next.wrapping_add(1);
                session.number = Some(number);
                self.sink.entry(Entry::SessionBegun {
                    session: number,
                    at: session.begin.or(at),
                    user: Cow::Borrowed(&session.user),
                    schema: session.database.as_deref().map(Cow::Borrowed),
                    is_whole: session.is_whole,
                })?;
                number
            }
        };
        let start = at.max(session.last_start).filter(|_| at.is_some());
        session.last_start = start.or(session.last_start);
        self.lacks.report(Lack::Rows, &mut *self.sink);
        if complete.at.is_some_and(LogTime::is_coarse) {
            self.lacks.report(Lack::FractionsOfSeconds, &mut *self.sink);
        }
        self.sink.entry(Entry::Statement(Statement {
            session: number,
            start,
            start_step_ns: complete.at.map_or(0, |time| time.step_ns),
            duration_ns: complete.duration_ns,
            text: Cow::Borrowed(complete.text),
            protocol: complete.protocol,
            schema: None,
            outcome: complete.outcome,
            rows_sent: None,
            rows_affected: None,
            line: complete.line,
        }))?;
        Ok(())
    }

    /// The session of a message.
    fn session(&mut self, message: &Message<'_>) -> Result<&mut Session, ReadError> {
        let key = message.key;
        let place = message.place.unwrap_or(0);
        // A process id alone recurs; the places of a session's messages only rise.
        let is_another = key.start_s == 0
            && place > 0
            && self
                .open
                .get(&key)
                .is_some_and(|session| place < session.last_place);
        if is_another {
            self.end(key, None)?;
        }
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&key) {
            self.end_silent()?;
        }
        let complete_from = self.complete_from;
        let messages = self.messages;
        let session = self.open.entry(key).or_insert_with(|| {
            // Without log_connections: its first message is in the log, and it began after the log.
            let begin = start_of(key);
            let is_after = begin
                .zip(complete_from)
                .is_some_and(|(begin, from)| begin >= from);
            Session {
                number: None,
                begin,
                is_whole: is_after && place <= 1,
                user: Vec::new(),
                database: None,
                last_used: messages,
                last_place: place,
                last_start: None,
                steps_ns: 0,
                waiting: Waiting::Nothing,
                text: Vec::new(),
                text_length: 0,
                step: Step::Simple,
                at: None,
                line: message.line,
            }
        });
        session.last_used = messages;
        session.last_place = place;
        if session.number.is_none() {
            if let Some(user) = message.user.and_then(believed) {
                session.user.clear();
                session.user.extend_from_slice(user);
            }
            if let Some(database) = message.database.and_then(believed) {
                let name = session.database.get_or_insert_default();
                name.clear();
                name.extend_from_slice(database);
            }
        }
        Ok(session)
    }

    fn end(&mut self, key: SessionKey, at: Option<UnixNs>) -> Result<(), ReadError> {
        self.complete(key, None, Some(Outcome::Ok))?;
        let number = self.open.remove(&key).and_then(|session| session.number);
        if let Some(session) = number {
            self.sink.entry(Entry::SessionEnded { session, at })?;
        }
        Ok(())
    }

    fn end_all(&mut self) -> Result<(), ReadError> {
        for key in self.keys_by_line() {
            // Whether its last statement ended is not known.
            self.complete(key, None, None)?;
            self.end(key, None)?;
        }
        Ok(())
    }

    fn end_silent(&mut self) -> Result<(), ReadError> {
        let mut used: Vec<u64> = self
            .open
            .values()
            .map(|session| session.last_used)
            .collect();
        let middle = used.len() / 2;
        let (_, median, _) = used.select_nth_unstable(middle);
        let median = *median;
        for key in self.keys_by_line() {
            if self
                .open
                .get(&key)
                .is_some_and(|session| session.last_used <= median)
            {
                self.complete(key, None, None)?;
                self.end(key, None)?;
            }
        }
        Ok(())
    }
}

/// The protocol of a prepared statement. One whose values are not all known has none, which no replay takes for all of them.
fn prepared<'a>(
    text: &[u8],
    list: &'a [u8],
    lacks: &mut Lacks,
    sink: &mut dyn Sink,
) -> Protocol<'a> {
    match values(list) {
        Values::All(values) => {
            lacks.report(Lack::ParameterTypes, sink);
            Protocol::Prepared(values)
        }
        Values::None if !has_places(text) => Protocol::Prepared(Vec::new()),
        Values::None | Values::Cut => {
            lacks.report(Lack::CutValues, sink);
            Protocol::Prepared(Vec::new())
        }
    }
}

/// When the process of a key started.
fn start_of(key: SessionKey) -> Option<UnixNs> {
    let start_s = i64::try_from(key.start_s).ok().filter(|start| *start > 0);
    start_s?.checked_mul(1_000_000_000)
}

/// Names in `connection authorized: user=U database=D application_name=A SSL enabled …`.
fn login_of(text: &[u8]) -> (&[u8], &[u8]) {
    let between = |label: &[u8], end: &[u8]| {
        let start = find(text, label)? + label.len();
        let rest = &text[start..];
        Some(&rest[..find(rest, end).unwrap_or(rest.len())])
    };
    let user = between(b" user=", b" database=");
    let database = between(b" database=", b" ");
    (user.unwrap_or_default(), database.unwrap_or_default())
}

fn believed(name: &[u8]) -> Option<&[u8]> {
    let is_known = !name.is_empty() && name != b"[unknown]" && name.len() <= NAME_BYTES_MAX;
    is_known.then_some(name)
}
