//! One client's connection: statements as `async` methods on the event loop.
//!
//! Knows the protocol through `dbduel-wire` and no workload. A statement costs one write and one read;
//! rows are skipped without being looked at; nothing is allocated unless the server answers with an
//! error or a statement grows beyond every earlier one.

mod deadline;
mod literal;
pub(crate) mod socket;
mod statement;

use std::os::fd::AsFd as _;
use std::rc::Rc;

use dbduel_wire::{
    Capabilities, Credentials, Login, LoginError, LoginOptions, LoginStep, PrepareParser, Prepared,
    ReplyParser, RowFormat, ServerError, Sink, Skip, Step, Summary, Value, WireError, command,
};

use crate::address::Address;
use crate::blocking::{HandshakeError, Tls, TlsError};
use crate::executor::{Reactor, Token};
use crate::statement_watch::{StatementWatch, WatchedConnection};
pub(crate) use deadline::{unless_over, within};
pub use literal::{BytesLiteral, TextLiteral};
use socket::Socket;
pub use statement::{Group, Protocol, Statement};

/// `ER_UNSUPPORTED_PS`: the server does not prepare this kind of statement.
const CANNOT_PREPARE: u16 = 1295;

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum LostError {
    /// The system says so.
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    /// The server's bytes make no sense.
    #[error("the server broke the protocol: {0}")]
    Wire(#[from] WireError),
    /// The server refused the login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The server refuses the workload's statements.
    #[error("the workload's statements cannot be prepared: {0}; was the data filled in?")]
    Prepare(ServerError),
    /// There is no TLS with the server that answers.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A statement was given the wrong number of values.
    #[error(transparent)]
    Command(#[from] dbduel_wire::CommandError),
    /// The script that decides what the client does is at fault.
    #[error("the script failed: {why}")]
    Script {
        /// Where and what.
        why: String,
    },
    /// The tables hold something else than the workload needs.
    #[error("the data cannot be used: {why}")]
    Data {
        /// What is wrong, and what to do about it.
        why: String,
    },
}

impl From<HandshakeError> for LostError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Tls(why) => why.into(),
            HandshakeError::Io(error) => error.into(),
        }
    }
}

/// Why a statement brought no result.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// The server answered with an error; the connection can be used further.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The connection cannot be used further.
    #[error(transparent)]
    Lost(#[from] LostError),
}

impl From<std::io::Error> for StatementError {
    fn from(error: std::io::Error) -> Self {
        StatementError::Lost(error.into())
    }
}

impl From<WireError> for StatementError {
    fn from(error: WireError) -> Self {
        StatementError::Lost(error.into())
    }
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Conn {
    /// Goes before the socket, which it may shut down.
    watched: Option<WatchedConnection>,
    socket: Socket,
    /// The server's number of the connection.
    id: u32,
    reactor: Rc<Reactor>,
    capabilities: Capabilities,
    parser: ReplyParser,
    out: Vec<u8>,
    text: Vec<u8>,
    statements: u64,
    effects: Effects,
}

/// Statements that succeeded, by what they did and not by their verb: a DELETE that found no row is one of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// They returned rows, or could have.
    pub reads: u64,
    /// They changed rows.
    pub writes: u64,
    /// They did neither.
    pub others: u64,
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

impl Conn {
    /// Connects and logs in. Has no deadline of its own: whoever waits for it drops it when time is up.
    ///
    /// # Errors
    /// [`LostError`] says whether there was no server, or it refused.
    pub async fn open(
        reactor: Rc<Reactor>,
        token: Token,
        address: &Address,
        credentials: Credentials,
        database: &str,
        tls: &Tls,
    ) -> Result<Self, LostError> {
        let mut socket = Socket::connect(&reactor, token, address).await?;
        let mut login = Login::new(LoginOptions {
            database: Some(database.to_owned()),
            tls: tls.wish(),
            // A workload may send several statements in one packet.
            wanted: Capabilities::MULTI_STATEMENTS,
            ..LoginOptions::new(credentials, socket.transport())
        });
        let mut fresh = Vec::new();
        loop {
            let (used, step) = login.feed(&fresh)?;
            fresh.drain(..used);
            match step {
                LoginStep::NeedMore => {
                    fresh.clear();
                    socket.receive_into(&reactor, &mut fresh).await?;
                }
                LoginStep::Send(bytes) => socket.send(&reactor, &bytes).await?,
                // Clear bytes behind the greeting must not be taken for the server's words under TLS.
                LoginStep::StartTls(_) if !fresh.is_empty() => {
                    return Err(LoginError::Unexpected.into());
                }
                LoginStep::StartTls(bytes) => {
                    socket.send(&reactor, &bytes).await?;
                    socket.start_tls(&reactor, tls.client(address)?).await?;
                    let bytes = login.tls_started()?;
                    socket.send(&reactor, &bytes).await?;
                }
                LoginStep::Done(logged_in) => {
                    return Ok(Conn {
                        watched: None,
                        socket,
                        id: logged_in.greeting.connection_id,
                        reactor,
                        capabilities: logged_in.capabilities,
                        parser: ReplyParser::new(logged_in.capabilities),
                        out: Vec::with_capacity(1024),
                        text: Vec::new(),
                        statements: 0,
                        effects: Effects::default(),
                    });
                }
            }
        }
    }

    /// Lets a watch end statements that the server at `address` will never answer.
    pub(crate) fn watch(&mut self, watch: &StatementWatch, address: &Address) {
        self.watched = Some(watch.enter(self.socket.as_fd(), address, self.id));
    }

    /// True when the connection changed to TLS in its login.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.socket.is_encrypted()
    }

    /// Statements sent so far.
    #[inline]
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// What the statements so far did.
    #[inline]
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Makes a statement ready for [`Conn::execute`]. A server that does not prepare this kind of
    /// statement gets its text each time, as libmysqlclient's users do.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub async fn prepare(
        &mut self,
        sql: &str,
        protocol: Protocol,
    ) -> Result<Statement, StatementError> {
        if matches!(protocol, Protocol::Text | Protocol::Grouped) {
            return Ok(Statement::text(sql));
        }
        self.out.clear();
        command::prepare(&mut self.out, sql.as_bytes());
        self.begin_wait();
        let prepared = self.receive_prepared().await;
        self.end_wait();
        match prepared.map_err(|lost| self.explain(lost))? {
            Ok(prepared) => Ok(Statement::prepared(prepared)),
            Err(error) if error.code == CANNOT_PREPARE => Ok(Statement::text(sql)),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends what is in `out` and reads what the server says of a statement to prepare.
    async fn receive_prepared(
        &mut self,
    ) -> Result<Result<dbduel_wire::Statement, ServerError>, LostError> {
        self.socket.send(&self.reactor, &self.out).await?;
        let mut parser = PrepareParser::new(self.capabilities);
        parser.begin();
        let mut fresh = Vec::new();
        loop {
            fresh.clear();
            self.socket.receive_into(&self.reactor, &mut fresh).await?;
            match parser.feed(&fresh)? {
                (_, Prepared::NeedMore) => {}
                (used, Prepared::Done(_)) if used < fresh.len() => return Err(surplus().into()),
                (_, Prepared::Done(prepared)) => return Ok(prepared),
            }
        }
    }

    #[inline]
    fn begin_wait(&self) {
        if let Some(watched) = &self.watched {
            watched.begin();
        }
    }

    #[inline]
    fn end_wait(&self) {
        if let Some(watched) = &self.watched {
            watched.end();
        }
    }

    /// With the reason when the watch ended the wait.
    #[cold]
    fn explain(&self, lost: LostError) -> LostError {
        match (lost, &self.watched) {
            (LostError::Io(error), Some(watched)) => watched.explain(error).into(),
            (lost, _) => lost,
        }
    }

    /// Runs a text query and skips its rows.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub async fn query(&mut self, sql: &[u8]) -> Result<Summary, StatementError> {
        self.query_into(sql, &mut Skip).await
    }

    /// As [`Conn::query`], with the rows handed to `sink`.
    ///
    /// # Errors
    /// The server's error, or a lost connection; the sink may then have seen some rows.
    pub async fn query_into<S: Sink>(
        &mut self,
        sql: &[u8],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        self.out.clear();
        command::query(&mut self.out, sql);
        self.round_trip(RowFormat::Text, sink).await
    }

    /// Lets the server forget a statement, which it does not answer.
    ///
    /// # Errors
    /// A lost connection.
    pub async fn close(&mut self, statement: Statement) -> Result<(), LostError> {
        self.out.clear();
        if statement.put_close(&mut self.out) {
            self.begin_wait();
            let sent = self.socket.send(&self.reactor, &self.out).await;
            self.end_wait();
            sent.map_err(|error| self.explain(error.into()))?;
        }
        Ok(())
    }

    /// Runs a statement with these values and skips its rows.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    #[inline]
    pub async fn execute(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
    ) -> Result<Summary, StatementError> {
        self.execute_into(statement, values, &mut Skip).await
    }

    /// As [`Conn::execute`], with the rows handed to `sink`.
    ///
    /// # Errors
    /// The server's error, or a lost connection; the sink may then have seen some rows.
    #[inline]
    pub async fn execute_into<S: Sink>(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let format = self.request(statement, values)?;
        self.reply(statement, format, sink).await
    }

    /// Writes out a statement with these values; [`Conn::reply`] sends it.
    #[inline]
    pub(crate) fn request(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
    ) -> Result<RowFormat, StatementError> {
        self.out.clear();
        let written = statement.put(&mut self.out, &mut self.text, values);
        written.map_err(|error| {
            statement.failed();
            LostError::from(error).into()
        })
    }

    /// Sends the statement that was written out and reads its reply.
    #[inline]
    pub(crate) async fn reply<S: Sink>(
        &mut self,
        statement: &mut Statement,
        format: RowFormat,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let outcome = self.round_trip(format, sink).await;
        if outcome.is_err() {
            statement.failed();
        }
        outcome
    }

    /// Runs the statements of a group in one round trip, with the rows of all results handed to `sink`.
    ///
    /// # Errors
    /// The error of the first statement that failed, after which none of the group was run, or a lost
    /// connection; the sink may then have seen some rows.
    pub async fn execute_group<S: Sink>(
        &mut self,
        group: &Group,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let (text, statements) = group.request();
        self.out.clear();
        command::query(&mut self.out, text);
        self.statements += statements.saturating_sub(1);
        self.round_trip(RowFormat::Text, sink).await
    }

    /// Sends what is in `out` and reads the reply.
    #[inline]
    async fn round_trip<S: Sink>(
        &mut self,
        format: RowFormat,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        self.begin_wait();
        let outcome = self.exchange(format, sink).await;
        self.end_wait();
        outcome.map_err(|error| match error {
            StatementError::Lost(lost) => self.explain(lost).into(),
            refused @ StatementError::Server(_) => refused,
        })
    }

    #[inline]
    async fn exchange<S: Sink>(
        &mut self,
        format: RowFormat,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        self.statements += 1;
        self.socket.send(&self.reactor, &self.out).await?;
        self.parser.begin(format);
        loop {
            crate::executor::turn().await;
            let mut buffer = self.reactor.buffer();
            while let Some(bytes) = self.socket.receive(&mut buffer)? {
                let fed = self.parser.feed(bytes, sink)?;
                match fed.step {
                    Step::NeedMore => {}
                    Step::LocalInfile => return Err(no_file().into()),
                    Step::Done if fed.consumed < bytes.len() => return Err(surplus().into()),
                    Step::Done => {
                        let outcome = self.parser.outcome().map_err(|error| error.clone().into());
                        return outcome.inspect(|summary| self.effects.count(summary));
                    }
                }
            }
        }
    }
}

impl Drop for Conn {
    /// Sends a quit command, or else the server would count an aborted client. One attempt that does not wait, because the
    /// server may be frozen.
    fn drop(&mut self) {
        self.out.clear();
        command::quit(&mut self.out);
        let _ = self.socket.write(&self.out);
    }
}

fn surplus() -> WireError {
    WireError::Malformed {
        packet: "reply",
        problem: "bytes follow its end",
    }
}

fn no_file() -> WireError {
    WireError::Malformed {
        packet: "reply",
        problem: "the server asks for a file that nobody offered",
    }
}
