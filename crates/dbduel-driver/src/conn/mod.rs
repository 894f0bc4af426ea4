//! A connection with its request and reply, for every protocol; [`Session`] holds the protocol's part. Requests are in
//! the files beside: single statements, groups, loading.
//!
//! A client's connection waits on the event loop of its thread, a [`super::Connection`] in system calls. A statement
//! costs one write and one read; rows are skipped unread; nothing is allocated unless the server answers with an error
//! or a statement outgrows all earlier ones. The protocol is matched between waits and never around them, so it costs
//! a statement a few branches and no further future.

mod bulk;
mod execute;
mod group;
mod replay;
mod session;
mod statement;

use std::io;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;

use super::socket::{OnLoop, Socket, Waiter};
use super::{
    Credentials, Dialect, Effects, LostError, SessionStart, Sink, StatementError, Summary, Tls,
    mysql, postgresql, session_start, sqlite,
};
use crate::address::Address;
use crate::executor::{Reactor, Token};
use crate::statement_examples::StatementExamples;
use crate::statement_watch::{StatementWatch, WatchedConnection};
pub use bulk::BulkKind;
pub(super) use bulk::Content;
use bulk::FileContent;
pub use execute::Request;
pub use group::Group;
pub(super) use group::Results;
pub(super) use session::Progress;
use session::{Session, foreign_statement};
pub use statement::{Protocol, Statement};

/// The connection of one client.
pub type ClientConnection = Conn<OnLoop>;

/// A connection that is logged in.
#[derive(Debug)]
pub struct Conn<W: Waiter> {
    /// Dropped before the socket, which it may shut down.
    watched: Option<WatchedConnection>,
    /// `None` where the database is in this process.
    socket: Option<Socket>,
    waiter: W,
    session: Session,
    out: Vec<u8>,
    text: Vec<u8>,
    statements: u64,
    preparations: u64,
    effects: Effects,
    /// Store for one statement of each class; `None` while the load is measured.
    examples: Option<Arc<StatementExamples>>,
}

/// Optional feature that must be agreed on at login.
pub(super) enum Extra {
    None,
    /// Loading files of the client.
    Files,
    /// Several statements in one request.
    Groups,
}

impl ClientConnection {
    /// Connects and logs in. Has no deadline of its own: the caller drops it when time is up.
    ///
    /// # Errors
    /// [`LostError`] shows whether no server answered or it refused the login.
    pub async fn open(
        reactor: Rc<Reactor>,
        token: Token,
        dialect: Dialect,
        address: &Address,
        credentials: Credentials,
        database: &str,
        tls: &Tls,
    ) -> Result<Self, LostError> {
        let waiter = OnLoop { reactor, token };
        let database = Some(database.to_owned());
        let extra = Extra::Groups;
        Conn::connect(waiter, dialect, address, credentials, database, extra, tls).await
    }
}

impl Effects {
    #[inline]
    fn count(&mut self, summary: &Summary) {
        if summary.result_sets > 0 {
            self.reads += 1;
        } else if summary.affected_rows > 0 {
            self.writes += 1;
        } else {
            self.others += 1;
        }
    }
}

impl<W: Waiter> Conn<W> {
    /// Connects and logs in, or opens a file.
    pub(super) async fn connect(
        waiter: W,
        dialect: Dialect,
        address: &Address,
        credentials: Credentials,
        database: Option<String>,
        extra: Extra,
        tls: &Tls,
    ) -> Result<Self, LostError> {
        if let Address::File { path, settings } = address {
            let session = sqlite::Session::open(path, settings, waiter.cancel())?;
            return Ok(Conn::new(None, waiter, Session::Sqlite(session)));
        }
        let mut socket = Socket::connect(&waiter, address).await?;
        let session = match dialect {
            Dialect::MySql => Session::MySql(
                mysql::log_in(
                    &mut socket,
                    &waiter,
                    address,
                    credentials,
                    database,
                    extra,
                    tls,
                )
                .await?,
            ),
            Dialect::PostgreSql => Session::PostgreSql(
                postgresql::log_in(&mut socket, &waiter, address, credentials, database, tls)
                    .await?,
            ),
            Dialect::Sqlite => {
                let text = format!("`{address}` is not a SQLite file; write `sqlite:/path`");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
            }
        };
        Ok(Conn::new(Some(socket), waiter, session))
    }

    fn new(socket: Option<Socket>, waiter: W, session: Session) -> Self {
        Conn {
            watched: None,
            socket,
            waiter,
            session,
            out: Vec::with_capacity(1024),
            text: Vec::new(),
            statements: 0,
            preparations: 0,
            effects: Effects::default(),
            examples: None,
        }
    }

    /// The dialect.
    #[inline]
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.session.dialect()
    }

    /// Sets the session variables that our statements rely on. The first statement of a session.
    ///
    /// # Errors
    /// When the server refuses it, or the connection is lost.
    pub async fn start_session(&mut self, session_start: SessionStart) -> Result<(), LostError> {
        let version = self.session.server_version();
        let Some(sql) = session_start::statement(self.dialect(), version, session_start) else {
            return Ok(());
        };
        match self.query(sql.as_bytes()).await {
            Ok(_) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => return Err(LostError::Session(error)),
        }
        // They count statements of the load.
        self.statements = 0;
        self.effects = Effects::default();
        Ok(())
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn waiter(&self) -> &W {
        &self.waiter
    }

    /// Lets a watch end statements that the server at `address` will never answer.
    pub fn watch(&mut self, watch: &StatementWatch, address: &Address) {
        // What runs in this process always answers.
        if let Some(socket) = &self.socket {
            self.watched = Some(watch.enter(socket.as_fd(), address, self.session.id()));
        }
    }

    /// True when the connection changed to TLS at login.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.socket.as_ref().is_some_and(Socket::is_encrypted)
    }

    /// From now on statements are sent as text, and one of each class is kept.
    pub fn keep_examples(&mut self, examples: &Arc<StatementExamples>) {
        self.examples = Some(Arc::clone(examples));
    }

    /// True when the session can be asked to report to the server's statistics: PostgreSQL 15 and later, whose
    /// sessions otherwise report at most once a second.
    #[must_use]
    pub fn flushes_statistics(&self) -> bool {
        let version = self.session.server_version();
        let digits = version.find(|c: char| !c.is_ascii_digit());
        let major = version[..digits.unwrap_or(version.len())].parse::<u32>();
        self.dialect() == Dialect::PostgreSql && major.is_ok_and(|major| major >= 15)
    }

    /// Statements sent so far.
    #[inline]
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// Statements to be prepared by the server so far, including those that were sent as text instead.
    #[must_use]
    pub fn preparations(&self) -> u64 {
        self.preparations
    }

    /// Counts of the statements so far by effect.
    #[inline]
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    #[inline]
    fn begin_wait(&self) {
        self.waiter.restart();
        if let Some(watched) = &self.watched {
            watched.begin();
        }
        if let Some(deadline) = self.waiter.deadline()
            && let Session::Sqlite(session) = &self.session
        {
            session.set_deadline(deadline);
        }
    }

    #[inline]
    fn end_wait(&self) {
        if let Some(watched) = &self.watched {
            watched.end();
        }
    }

    /// The error, with the reason when the watch ended the wait.
    #[cold]
    fn explain(&self, lost: LostError) -> LostError {
        match (lost, &self.watched) {
            (LostError::Io(error), Some(watched)) => watched.explain(error).into(),
            (lost, _) => lost,
        }
    }

    /// As [`Conn::explain`], of a statement.
    #[cold]
    fn explain_failure(&self, error: StatementError) -> StatementError {
        match error {
            StatementError::Lost(lost) => self.explain(lost).into(),
            refused @ StatementError::Server(_) => refused,
        }
    }

    /// Sends what is in `out` and reads the reply.
    #[inline]
    async fn round_trip<S: Sink, C: FileContent>(
        &mut self,
        sink: &mut S,
        mut content: C,
    ) -> Result<Summary, StatementError> {
        self.statements += 1;
        self.begin_wait();
        let Some(socket) = &mut self.socket else {
            return self.run_here(sink);
        };
        // In one future: another one around the exchange costs a point query 5 % of its instructions in user mode.
        let outcome = 'exchange: {
            if let Err(error) = socket.send(&self.waiter, &self.out).await {
                break 'exchange Err(error.into());
            }
            loop {
                let Some(socket) = &mut self.socket else {
                    break 'exchange Err(no_socket().into());
                };
                if let Err(error) = socket.wait(&self.waiter).await {
                    break 'exchange Err(error.into());
                }
                match read_reply(socket, &self.waiter, &mut self.session, sink) {
                    Ok(Progress::NeedMore) => {}
                    Ok(Progress::Done) => break 'exchange self.session.outcome(),
                    Ok(Progress::Content) => {
                        // In memory of its own, so that what a client keeps for a statement is small.
                        let sending = Box::pin(self.send_content(&mut content));
                        if let Err(error) = sending.await {
                            break 'exchange Err(error.into());
                        }
                    }
                    Err(error) => break 'exchange Err(error.into()),
                }
            }
        };
        self.end_wait();
        match outcome {
            Ok(summary) => {
                self.effects.count(&summary);
                Ok(summary)
            }
            Err(error) => Err(self.explain_failure(error)),
        }
    }

    /// Runs the statement in the output buffer, where the database is in this process.
    fn run_here<S: Sink>(&mut self, sink: &mut S) -> Result<Summary, StatementError> {
        let Session::Sqlite(session) = &mut self.session else {
            return Err(LostError::from(foreign_statement(&[])).into());
        };
        let outcome = session.run_pending(&self.out, sink);
        outcome.inspect(|summary| self.effects.count(summary))
    }
}

/// Consumes the bytes of a reply that have arrived.
#[inline]
fn read_reply<S: Sink>(
    socket: &mut Socket,
    waiter: &impl Waiter,
    session: &mut Session,
    sink: &mut S,
) -> Result<Progress, LostError> {
    let mut buffer = waiter.buffer();
    while let Some(bytes) = socket.receive(&mut buffer)? {
        match session.feed(bytes, sink)? {
            Progress::NeedMore => {}
            progress => return Ok(progress),
        }
    }
    Ok(Progress::NeedMore)
}

/// The socket of a server.
fn wired(socket: &mut Option<Socket>) -> Result<&mut Socket, LostError> {
    socket.as_mut().ok_or_else(no_socket)
}

#[cold]
fn no_socket() -> LostError {
    foreign_statement(&[]).into()
}

impl<W: Waiter> Drop for Conn<W> {
    /// Sends a quit command, so that the server does not count an aborted client. One attempt without waiting, because
    /// the server may be frozen.
    fn drop(&mut self) {
        self.out.clear();
        self.session.put_quit(&mut self.out);
        if let Some(socket) = &mut self.socket {
            let _ = socket.write(&self.out);
        }
    }
}
