//! Sessions of MySQL's and MariaDB's logs: what commands and statements mean for them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ReadError;
use super::mysql_header::LogServer;
use super::text::{Lacks, find};
use crate::entry::{
    Entry, Lack, Outcome, Protocol, Request, SessionNumber, Sink, Statement, UnixNs,
};

/// Sessions that are followed at a time. Above it the half that was silent longest counts as ended: not every end is logged.
/// The servers' own limit is 100,000.
const OPEN_MAX: usize = 1 << 17;

/// Entries since its last one after which a session counts as silent.
pub(super) const RECENT_ENTRIES: u64 = 10_000;

/// Longest user or database name that is believed, bytes. The servers' limit is 128 characters.
const NAME_BYTES_MAX: usize = 512;

/// Command of the protocol, as logs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Connect,
    Query,
    Prepare,
    Execute,
    InitDb,
    ChangeUser,
    Reset,
    Quit,
    /// One that sends no SQL and does not change the session.
    Other,
}

impl Command {
    /// True where the argument is a text that may have several lines.
    pub(super) fn has_text(self) -> bool {
        match self {
            Self::Query | Self::Execute | Self::Prepare => true,
            Self::Connect
            | Self::Quit
            | Self::InitDb
            | Self::ChangeUser
            | Self::Reset
            | Self::Other => false,
        }
    }

    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"Query" => Self::Query,
            b"Execute" | b"Bulk_execute" => Self::Execute,
            b"Prepare" => Self::Prepare,
            b"Connect" => Self::Connect,
            b"Quit" => Self::Quit,
            b"Init DB" => Self::InitDb,
            b"Change user" => Self::ChangeUser,
            b"Reset Connection" | b"Reset connection" => Self::Reset,
            // Close stmt, Reset stmt and Statistics occur in ordinary logs; the others are in the sources of the servers.
            b"Close stmt" | b"Reset stmt" | b"Statistics" | b"Binlog Dump"
            | b"Binlog Dump GTID" | b"Connect Out" | b"Create DB" | b"Daemon" | b"Debug"
            | b"Delayed insert" | b"Drop DB" | b"Error" | b"Fetch" | b"Field List" | b"Kill"
            | b"Long Data" | b"Ping" | b"Processlist" | b"Refresh" | b"Register Replica"
            | b"Register Slave" | b"Set option" | b"Shutdown" | b"Sleep" | b"Table Dump"
            | b"Time" => Self::Other,
            _ => return None,
        })
    }
}

/// An entry of a general log.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedCommand<'a> {
    /// Number of the connection, which servers give again after a restart.
    pub(super) id: u64,
    pub(super) at: Option<UnixNs>,
    pub(super) step_ns: u32,
    pub(super) command: Command,
    pub(super) argument: &'a [u8],
    /// Login name, empty where the log does not have it with every entry.
    pub(super) user: &'a [u8],
    pub(super) line: u64,
}

/// An entry of a slow log.
#[derive(Debug, Clone)]
pub(super) struct LoggedStatement<'a> {
    pub(super) id: u64,
    pub(super) user: &'a [u8],
    /// For an entry that is no statement.
    pub(super) command: Option<Command>,
    pub(super) text: &'a [u8],
    pub(super) start: Option<UnixNs>,
    pub(super) step_ns: u32,
    pub(super) duration_ns: Option<u64>,
    pub(super) schema: Option<&'a [u8]>,
    /// Whether `schema` is known to be the session's.
    pub(super) is_schema_certain: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) rows_sent: Option<u64>,
    pub(super) rows_affected: Option<u64>,
    pub(super) line: u64,
}

struct Session {
    /// `None` until it has a statement: failed logins and refused databases are no sessions.
    number: Option<SessionNumber>,
    /// Its Connect, until it has a statement.
    login: Option<Box<Login>>,
    /// Count of all entries at its last one.
    last_used: u64,
    /// Whether its last entry is a statement EXECUTE. A general log has it twice: as it was sent, then as an Execute with what was
    /// run. The second one is kept, since it has the values and does not depend on a PREPARE before the log began.
    is_in_execute: bool,
}

struct Login {
    at: Option<UnixNs>,
    user: Vec<u8>,
    schema: Vec<u8>,
}

/// The sessions of a log.
#[derive(Default)]
pub(super) struct Sessions {
    /// By id. A log may have ids that collide in a hash without a secret.
    open: HashMap<u64, Session>,
    next: u32,
    entries: u64,
    /// Version of the server that opened the log last.
    version: Option<(u32, u32, u32)>,
    /// Whether the log was opened again and no entry has shown yet whether the server was started again.
    is_log_opened: bool,
    /// Highest id since the server's start.
    highest_id: u64,
}

impl Sessions {
    /// A server opened the log: after its start, when ids begin again, or for FLUSH LOGS, after which sessions stay open. The header
    /// that it writes is the same in both cases; another version in it shows a start, otherwise the next entries do.
    pub(super) fn log_opened(
        &mut self,
        server: LogServer,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let before = self.version.replace(server.version);
        self.is_log_opened = true;
        match before.is_some_and(|before| before != server.version) {
            true => self.end_all(sink),
            false => Ok(()),
        }
    }

    /// Ends all sessions if this entry of a general log, which has logins, shows that the server was started again: after FLUSH LOGS
    /// an id that is open cannot connect, and new ids are higher than all before.
    fn note_login(&mut self, id: u64, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let is_open = self.open.contains_key(&id);
        match std::mem::take(&mut self.is_log_opened) && (is_open || id < self.highest_id / 2) {
            true => self.end_all(sink),
            false => Ok(()),
        }
    }

    /// Ends all sessions if this entry of a slow log, which has no logins, shows that the server was started again: after FLUSH LOGS
    /// its id is a new one, higher than all before, or that of a session that is open. MariaDB does not log ends, so that the session
    /// must not have been silent for long.
    fn note_statement(&mut self, id: u64, sink: &mut dyn Sink) -> Result<(), ReadError> {
        if !std::mem::take(&mut self.is_log_opened) || id > self.highest_id {
            return Ok(());
        }
        let is_recent = |session: &Session| self.entries - session.last_used <= RECENT_ENTRIES;
        match self.open.get(&id).is_some_and(is_recent) {
            true => Ok(()),
            false => self.end_all(sink),
        }
    }

    /// An entry of a general log.
    pub(super) fn command(
        &mut self,
        logged: &LoggedCommand<'_>,
        lacks: &mut Lacks,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        if logged.command == Command::Connect {
            self.note_login(logged.id, sink)?;
        }
        self.highest_id = self.highest_id.max(logged.id);
        let text = logged.argument;
        match logged.command {
            Command::Connect => self.connect(logged, sink),
            Command::Quit => self.end(logged.id, logged.at, sink),
            Command::Query => self.query(logged, lacks, sink),
            Command::Execute => {
                lacks.report(Lack::ParameterTypes, sink);
                let session = self.session(logged.id, sink)?;
                let protocol = match std::mem::take(&mut session.is_in_execute) {
                    true => Protocol::Text,
                    false => Protocol::PreparedInline,
                };
                self.emit(logged, text, protocol, None, sink)
            }
            // Every Execute has its text. It may stand between a statement EXECUTE and its Execute: servers prepare again.
            Command::Prepare => Ok(()),
            Command::InitDb => {
                self.emit(logged, text, Protocol::Request(Request::InitDb), None, sink)
            }
            Command::ChangeUser => {
                let schema = login_of(text).map(|(_, schema)| schema);
                let protocol = Protocol::Request(Request::ChangeUser);
                self.emit(logged, text, protocol, schema, sink)
            }
            Command::Reset => self.emit(logged, b"", Protocol::Request(Request::Reset), None, sink),
            Command::Other => {
                if let Some(session) = self.open.get_mut(&logged.id) {
                    session.is_in_execute = false;
                }
                Ok(())
            }
        }
    }

    fn connect(
        &mut self,
        logged: &LoggedCommand<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        // A second Connect with the same id is a refused login, whose text is in the server's language, or another connection
        // after an end that was not logged.
        self.end(logged.id, None, sink)?;
        let Some((user, schema)) = login_of(logged.argument) else {
            return Ok(());
        };
        let is_believed = user.len().max(schema.len()) <= NAME_BYTES_MAX;
        let session = self.session(logged.id, sink)?;
        if is_believed {
            session.login = Some(Box::new(Login {
                at: logged.at,
                user: user.to_vec(),
                schema: schema.to_vec(),
            }));
        }
        Ok(())
    }

    fn query(
        &mut self,
        logged: &LoggedCommand<'_>,
        lacks: &mut Lacks,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let text = logged.argument;
        let session = self.session(logged.id, sink)?;
        let statement = prepared_statement(text);
        session.is_in_execute = statement == PreparedStatement::Execute;
        if session.is_in_execute || is_empty(text) {
            return Ok(());
        }
        if statement == PreparedStatement::PrepareWithoutText {
            lacks.report(Lack::PreparedText, sink);
        }
        self.emit(logged, text, Protocol::Text, None, sink)
    }

    fn emit(
        &mut self,
        logged: &LoggedCommand<'_>,
        text: &[u8],
        protocol: Protocol<'_>,
        schema: Option<&[u8]>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let session = self.begun(logged.id, logged.at, logged.user, None, sink)?;
        sink.entry(Entry::Statement(Statement {
            session,
            start: logged.at,
            start_step_ns: logged.step_ns,
            duration_ns: None,
            text: Cow::Borrowed(text),
            protocol,
            schema: schema.map(Cow::Borrowed),
            outcome: None,
            rows_sent: None,
            rows_affected: None,
            line: logged.line,
        }))?;
        Ok(())
    }

    /// An entry of a slow log.
    pub(super) fn statement(
        &mut self,
        logged: &LoggedStatement<'_>,
        lacks: &mut Lacks,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        self.note_statement(logged.id, sink)?;
        self.highest_id = self.highest_id.max(logged.id);
        let (protocol, text) = match logged.command {
            None => (Protocol::Text, logged.text),
            Some(Command::Quit) => {
                let end = logged.start.zip(logged.duration_ns);
                let end = end.and_then(|(start, duration)| start.checked_add_unsigned(duration));
                return self.end(logged.id, end, sink);
            }
            Some(Command::InitDb) => match logged.schema {
                Some(schema) => (Protocol::Request(Request::InitDb), schema),
                None => return Ok(()),
            },
            Some(Command::ChangeUser) => (Protocol::Request(Request::ChangeUser), &b""[..]),
            Some(Command::Reset) => (Protocol::Request(Request::Reset), &b""[..]),
            Some(Command::Prepare) => {
                lacks.report(Lack::ParameterTypes, sink);
                return Ok(());
            }
            Some(_) => return Ok(()),
        };
        if protocol == Protocol::Text {
            if is_empty(text) {
                return Ok(());
            }
            // What a statement EXECUTE runs is in the log once, as if it had been sent.
            if prepared_statement(text) == PreparedStatement::PrepareWithoutText {
                lacks.report(Lack::PreparedText, sink);
            }
        }
        let schema_at_begin = logged.schema.filter(|_| logged.is_schema_certain);
        let session = self.begun(logged.id, logged.start, logged.user, schema_at_begin, sink)?;
        sink.entry(Entry::Statement(Statement {
            session,
            start: logged.start,
            start_step_ns: logged.step_ns,
            duration_ns: logged.duration_ns,
            text: Cow::Borrowed(text),
            protocol,
            schema: logged.schema.map(Cow::Borrowed),
            outcome: logged.outcome.clone(),
            rows_sent: logged.rows_sent,
            rows_affected: logged.rows_affected,
            line: logged.line,
        }))?;
        Ok(())
    }

    /// The session with this id, which is open now.
    fn session(&mut self, id: u64, sink: &mut dyn Sink) -> Result<&mut Session, ReadError> {
        self.entries += 1;
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&id) {
            self.end_silent(sink)?;
        }
        let session = self.open.entry(id).or_insert(Session {
            number: None,
            login: None,
            last_used: 0,
            is_in_execute: false,
        });
        session.last_used = self.entries;
        Ok(session)
    }

    /// The number of the session with this id, which has a statement now.
    fn begun(
        &mut self,
        id: u64,
        at: Option<UnixNs>,
        user: &[u8],
        schema: Option<&[u8]>,
        sink: &mut dyn Sink,
    ) -> Result<SessionNumber, ReadError> {
        let next = self.next;
        let session = self.session(id, sink)?;
        if let Some(number) = session.number {
            return Ok(number);
        }
        let number = SessionNumber(next);
        session.number = Some(number);
        let login = session.login.take();
        let entry = match &login {
            Some(login) => Entry::SessionBegun {
                session: number,
                at: login.at,
                user: Cow::Borrowed(&login.user),
                schema: Some(Cow::Borrowed(&login.schema)),
                is_whole: true,
            },
            None => Entry::SessionBegun {
                session: number,
                at,
                user: Cow::Borrowed(user),
                schema: schema.map(Cow::Borrowed),
                is_whole: false,
            },
        };
        self.next = next.checked_add(1).ok_or_else(|| {
            ReadError::Io(std::io::Error::other("the log has more than 2^32 sessions"))
        })?;
        sink.entry(entry)?;
        Ok(number)
    }

    fn end(&mut self, id: u64, at: Option<UnixNs>, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let ended = self.open.remove(&id);
        if let Some(session) = ended.and_then(|session| session.number) {
            sink.entry(Entry::SessionEnded { session, at })?;
        }
        Ok(())
    }

    /// Ends all sessions: the server has started again.
    fn end_all(&mut self, sink: &mut dyn Sink) -> Result<(), ReadError> {
        self.highest_id = 0;
        self.end_until(u64::MAX, sink)
    }

    /// Ends the half that was silent longest.
    fn end_silent(&mut self, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let mut last_used: Vec<u64> = self.open.values().map(|open| open.last_used).collect();
        let middle = last_used.len() / 2;
        let (_, median, _) = last_used.select_nth_unstable(middle);
        let median = *median;
        self.end_until(median, sink)
    }

    /// Ends all whose last entry is not after this count, in the order of their numbers.
    fn end_until(&mut self, last_used: u64, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let mut ended = Vec::new();
        self.open.retain(|_, session| {
            let stays = session.last_used > last_used;
            if !stays {
                ended.extend(session.number);
            }
            stays
        });
        ended.sort_unstable();
        for session in ended {
            sink.entry(Entry::SessionEnded { session, at: None })?;
        }
        Ok(())
    }
}

/// User and database of `USER@HOST [as USER ]on DATABASE[ using TRANSPORT]`; `None` for a refused login.
fn login_of(argument: &[u8]) -> Option<(&[u8], &[u8])> {
    // A user's name may have `@`, a host's name has no blank.
    let on = find(argument, b" on ")?;
    let (account, schema) = (&argument[..on], &argument[on + 4..]);
    let account = &account[..find(account, b" as ").unwrap_or(account.len())];
    let user = &account[..account.iter().rposition(|byte| *byte == b'@')?];
    const TRANSPORTS: [&[u8]; 5] = [
        b" using Socket",
        b" using TCP/IP",
        b" using SSL/TLS",
        b" using Named Pipe",
        b" using Shared Memory",
    ];
    let mut transports = TRANSPORTS.iter();
    let schema = transports.find_map(|transport| schema.strip_suffix(*transport));
    Some((user, schema.unwrap_or(&argument[on + 4..])))
}

/// What a statement has to do with prepared statements of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PreparedStatement {
    /// `PREPARE p FROM ...`: MySQL logs no more, unless `log_raw` is on.
    PrepareWithoutText,
    Execute,
    Other,
}

fn prepared_statement(text: &[u8]) -> PreparedStatement {
    let text = text.trim_ascii_start();
    // Most statements end here.
    if !matches!(
        text.first(),
        Some(b'P' | b'p' | b'E' | b'e' | b'/' | b'-' | b'#')
    ) {
        return PreparedStatement::Other;
    }
    let (word, rest) = first_word(text);
    if word.eq_ignore_ascii_case(b"execute") {
        return PreparedStatement::Execute;
    }
    if word.eq_ignore_ascii_case(b"prepare")
        && let Some(rest) = rest.trim_ascii_end().strip_suffix(b"...")
        && ends_with_word(rest, b"from")
    {
        return PreparedStatement::PrepareWithoutText;
    }
    PreparedStatement::Other
}

fn ends_with_word(text: &[u8], word: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let start = text.len().checked_sub(word.len());
    start.is_some_and(|start| text[start..].eq_ignore_ascii_case(word))
}

/// The first word after blanks and comments, and what follows it.
fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = after_comments(text);
    let is_in_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    text.split_at(text.iter().take_while(is_in_word).count())
}

fn after_comments(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let is_line = text.starts_with(b"#") || text.starts_with(b"-- ");
        let end = if is_line {
            memchr::memchr(b'\n', text).map(|at| at + 1)
        } else if text.starts_with(b"/*") && !text.starts_with(b"/*!") {
            find(&text[2..], b"*/").map(|at| at + 4)
        } else {
            return text;
        };
        text = &text[end.unwrap_or(text.len())..];
    }
}

/// Whether nothing was sent but blanks: error 1065, without an effect.
fn is_empty(text: &[u8]) -> bool {
    text.trim_ascii_start().is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Notes;
    use super::*;

    fn logged(id: u64, command: Command, argument: &'static str) -> LoggedCommand<'static> {
        LoggedCommand {
            id,
            at: Some(1),
            step_ns: 1,
            command,
            argument: argument.as_bytes(),
            user: b"",
            line: 1,
        }
    }

    fn entries_of(commands: &[(u64, Command, &'static str)]) -> Notes {
        let mut notes = Notes::default();
        let mut sessions = Sessions::default();
        let mut lacks = Lacks::default();
        for (id, command, argument) in commands {
            let logged = logged(*id, *command, argument);
            sessions.command(&logged, &mut lacks, &mut notes).unwrap();
        }
        notes
    }

    #[test]
    fn logins_of_all_servers_are_understood() {
        for (argument, user, schema) in [
            ("root@localhost on shop using Socket", "root", "shop"),
            ("root@localhost on  using SSL/TLS", "root", ""),
            ("root@localhost on shop", "root", "shop"),
            ("root@localhost on ", "root", ""),
            ("nobody@localhost as  on ", "nobody", ""),
            (
                "a@b@10.0.0.1 as c on my shop using TCP/IP",
                "a@b",
                "my shop",
            ),
        ] {
            let expected = (user.as_bytes(), schema.as_bytes());
            assert_eq!(login_of(argument.as_bytes()), Some(expected), "{argument}");
        }
        let refused = b"Access denied for user 'nobody'@'localhost' (using password: YES)";
        assert_eq!(login_of(refused), None);
    }

    #[test]
    fn statements_about_prepared_ones_are_found_after_comments() {
        for (text, expected) in [
            ("PREPARE p FROM 'SELECT 1'", PreparedStatement::Other),
            ("prepare p from ...", PreparedStatement::PrepareWithoutText),
            ("/* a */ -- b\n# c\n EXECUTE p", PreparedStatement::Execute),
            ("EXECUTE/**/IMMEDIATE 'x'", PreparedStatement::Execute),
            ("EXECUTED", PreparedStatement::Other),
            ("PREPARED", PreparedStatement::Other),
            ("/* open", PreparedStatement::Other),
            ("#", PreparedStatement::Other),
            ("", PreparedStatement::Other),
        ] {
            assert_eq!(prepared_statement(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn sql_execute_is_kept_once_with_its_values() {
        let notes = entries_of(&[
            (1, Command::Query, "PREPARE p FROM ..."),
            (1, Command::Prepare, "SELECT ?"),
            (1, Command::Query, "EXECUTE p USING @v"),
            (1, Command::Prepare, "SELECT ?"),
            (2, Command::Execute, "SELECT 'other'"),
            (1, Command::Execute, "SELECT 41"),
            (1, Command::Execute, "SELECT 'sent'"),
            (1, Command::Query, "DEALLOCATE PREPARE p"),
        ]);
        assert_eq!(
            notes.of_session(1)[1..],
            [
                "PREPARE p FROM ...",
                "SELECT 41",
                "[inline] SELECT \\'sent\\'",
                "DEALLOCATE PREPARE p",
            ]
        );
        assert_eq!(notes.of_session(2)[1], "[inline] SELECT \\'other\\'");
        assert!(notes.lacks.contains(&Lack::PreparedText));
    }

    #[test]
    fn a_connection_that_sends_nothing_is_no_session() {
        let notes = entries_of(&[
            (7, Command::Quit, ""),
            (8, Command::Connect, "root@localhost on nosuchdb"),
            (9, Command::Connect, "nobody@localhost on "),
            (9, Command::Connect, "Access denied for user 'nobody'"),
            (10, Command::Connect, "root@localhost on "),
            (10, Command::Query, ""),
            (10, Command::Quit, ""),
        ]);
        assert_eq!(notes.entries, [""; 0]);
    }

    #[test]
    fn requests_change_the_session() {
        let notes = entries_of(&[
            (1, Command::Connect, "root@localhost on "),
            (1, Command::InitDb, "shop"),
            (
                1,
                Command::ChangeUser,
                "web@localhost on other using Socket",
            ),
            (1, Command::Reset, ""),
            (1, Command::Quit, ""),
        ]);
        assert_eq!(
            notes.entries,
            [
                "1 begins root on  whole",
                "1 [init] shop",
                "1 [user] other: web@localhost on other using Socket",
                "1 [reset] ",
                "1 ends",
            ]
        );
    }

    #[test]
    fn an_id_that_connects_again_is_another_session() {
        let notes = entries_of(&[
            (1, Command::Connect, "a@localhost on x"),
            (1, Command::Query, "SELECT 1"),
            (1, Command::Connect, "b@localhost on y"),
            (1, Command::Query, "SELECT 2"),
        ]);
        assert_eq!(
            notes.entries,
            [
                "1 begins a on x whole",
                "1 SELECT 1",
                "1 ended",
                "2 begins b on y whole",
                "2 SELECT 2",
            ]
        );
    }

    #[test]
    fn sessions_without_an_end_are_forgotten() {
        let mut notes = Notes::default();
        let mut sessions = Sessions::default();
        let mut lacks = Lacks::default();
        for id in 0..OPEN_MAX as u64 + 10 {
            let logged = logged(id, Command::Query, "SELECT 1");
            sessions.command(&logged, &mut lacks, &mut notes).unwrap();
        }
        assert!(sessions.open.len() < OPEN_MAX);
        assert!(sessions.open.contains_key(&(OPEN_MAX as u64)) && !sessions.open.contains_key(&0));
        assert!(notes.entries.contains(&"1 ended".to_owned()));
    }
}
