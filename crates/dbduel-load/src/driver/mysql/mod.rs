//! MySQL and MariaDB: a connection's login, and statements as `async` methods.
//!
//! A client's connection waits on the event loop of its thread, the one of [`super::Connection`] in system calls. A statement
//! costs one write and one read; rows are skipped without being looked at; nothing is allocated unless the server answers
//! with an error or a statement grows beyond every earlier one.

pub(crate) mod client_errors;
mod errors;
mod literal;
mod statement;

use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::rc::Rc;

use dbduel_wire::{
    Capabilities, ColumnKind, LoggedIn, Login, LoginError, LoginOptions, LoginStep, PrepareParser,
    Prepared, ReplyParser, RowFormat, Step, TlsWish, Transport, WireError, bulk_execute, command,
    local_infile,
};

use super::socket::{OnLoop, Socket, Waiter};
use super::{
    Credentials, Effects, ErrorClass, LostError, ServerError, Sink, Skip, StatementError, Summary,
    Tls, TlsMode, Value,
};
use crate::address::Address;
use crate::executor::{Reactor, Token};
use crate::statement_watch::{StatementWatch, WatchedConnection};
pub(super) use dbduel_wire::Statement as PreparedByServer;
pub use literal::{BytesLiteral, TextLiteral};
pub use statement::{Group, Protocol, Statement};

/// Bytes of a file that go into one packet.
const CONTENT_BYTES: usize = 64 << 10;

/// The connection of one client.
pub type ClientConnection = Conn<OnLoop>;

/// A statement whose values are written out and that was not sent yet.
pub(crate) struct Request(RowFormat);

/// What the values of a column are in a request for many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkKind {
    /// Signed integers of 64 bits.
    Integer,
    /// Strings of bytes.
    Bytes,
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Conn<W: Waiter> {
    /// Goes before the socket, which it may shut down.
    watched: Option<WatchedConnection>,
    socket: Socket,
    waiter: W,
    logged_in: LoggedIn,
    parser: ReplyParser,
    out: Vec<u8>,
    text: Vec<u8>,
    statements: u64,
    effects: Effects,
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

/// What a connection is used for that must be agreed on in the login.
pub(in crate::driver) enum Extra {
    None,
    /// Loading files of the client.
    Files,
    /// Several statements in one request.
    Groups,
}

/// What a server gets that asks for a file. Its type is known where statements are sent, so those that load nothing carry
/// nothing along.
trait FileContent {
    /// The next bytes; 0 at the end.
    fn read(&mut self, piece: &mut [u8]) -> usize;
}

/// None.
impl FileContent for () {
    fn read(&mut self, _piece: &mut [u8]) -> usize {
        0
    }
}

impl FileContent for &mut Content<'_> {
    fn read(&mut self, piece: &mut [u8]) -> usize {
        loop {
            match self.reader.read(piece) {
                Ok(length) => return length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(error);
                    return 0;
                }
            }
        }
    }
}

/// The content of a file that a statement loads.
pub(in crate::driver) struct Content<'a> {
    pub(in crate::driver) reader: &'a mut dyn Read,
    /// What cut it short.
    pub(in crate::driver) failed: Option<io::Error>,
}

impl ClientConnection {
    /// Connects and logs in. Has no deadline of its own: the caller drops it when time is up.
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
        let waiter = OnLoop { reactor, token };
        let database = Some(database.to_owned());
        Conn::connect(waiter, address, credentials, database, Extra::Groups, tls).await
    }
}

impl<W: Waiter> Conn<W> {
    /// Connects and logs in.
    pub(in crate::driver) async fn connect(
        waiter: W,
        address: &Address,
        credentials: Credentials,
        database: Option<String>,
        extra: Extra,
        tls: &Tls,
    ) -> Result<Self, LostError> {
        let wanted = match extra {
            Extra::None => Capabilities::default(),
            Extra::Files => Capabilities::LOCAL_FILES,
            Extra::Groups => Capabilities::MULTI_STATEMENTS,
        };
        let mut socket = Socket::connect(&waiter, address).await?;
        let transport = match address {
            Address::Tcp { .. } => Transport::Tcp,
            Address::Unix { .. } => Transport::UnixSocket,
        };
        let mut login = Login::new(LoginOptions {
            database,
            tls: wish(tls.mode()),
            wanted,
            ..LoginOptions::new(credentials, transport)
        });
        let mut fresh = Vec::new();
        loop {
            let (used, step) = login.feed(&fresh)?;
            fresh.drain(..used);
            match step {
                LoginStep::NeedMore => {
                    fresh.clear();
                    socket.receive_into(&waiter, &mut fresh).await?;
                }
                LoginStep::Send(bytes) => socket.send(&waiter, &bytes).await?,
                // Clear bytes behind the greeting must not be taken for the server's words under TLS, nor bytes behind the
                // login for the answer to a statement.
                LoginStep::StartTls(_) | LoginStep::Done(_) if !fresh.is_empty() => {
                    return Err(LoginError::Unexpected.into());
                }
                LoginStep::StartTls(bytes) => {
                    socket.send(&waiter, &bytes).await?;
                    socket.start_tls(&waiter, tls.client(address)?).await?;
                    let bytes = login.tls_started()?;
                    socket.send(&waiter, &bytes).await?;
                }
                LoginStep::Done(logged_in) => {
                    return Ok(Conn {
                        watched: None,
                        socket,
                        waiter,
                        parser: ReplyParser::new(logged_in.capabilities),
                        logged_in,
                        out: Vec::with_capacity(1024),
                        text: Vec::new(),
                        statements: 0,
                        effects: Effects::default(),
                    });
                }
            }
        }
    }

    /// The server's version as its greeting has it.
    pub(in crate::driver) fn server_version(&self) -> &str {
        self.logged_in.greeting.version()
    }

    /// The server's number of the connection.
    pub(in crate::driver) fn id(&self) -> u32 {
        self.logged_in.greeting.connection_id
    }

    /// The name of the method that the account was authenticated by.
    pub(in crate::driver) fn authentication(&self) -> &'static str {
        self.logged_in.method.name()
    }

    pub(in crate::driver) fn may_load_files(&self) -> bool {
        let capabilities = self.logged_in.capabilities;
        capabilities.contains(Capabilities::LOCAL_FILES)
    }

    pub(in crate::driver) fn has_bulk_execution(&self) -> bool {
        let capabilities = self.logged_in.capabilities;
        capabilities.contains(Capabilities::BULK_EXECUTE)
    }

    pub(in crate::driver) fn waiter(&self) -> &W {
        &self.waiter
    }

    /// Lets a watch end statements that the server at `address` will never answer.
    pub(crate) fn watch(&mut self, watch: &StatementWatch, address: &Address) {
        self.watched = Some(watch.enter(self.socket.as_fd(), address, self.id()));
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
        match self.prepare_on_server(sql).await {
            Ok(prepared) => Ok(Statement::prepared(prepared)),
            Err(StatementError::Server(error)) if error.class == ErrorClass::NotPreparable => {
                Ok(Statement::text(sql))
            }
            Err(error) => Err(error),
        }
    }

    /// Has the server prepare a statement.
    pub(in crate::driver) async fn prepare_on_server(
        &mut self,
        sql: &str,
    ) -> Result<PreparedByServer, StatementError> {
        self.out.clear();
        command::prepare(&mut self.out, sql.as_bytes());
        self.begin_wait();
        let prepared = self.receive_prepared().await;
        self.end_wait();
        let prepared = prepared.map_err(|lost| self.explain(lost))?;
        prepared.map_err(|error| ServerError::from(error).into())
    }

    /// Sends what is in `out` and reads what the server says of a statement to prepare.
    async fn receive_prepared(
        &mut self,
    ) -> Result<Result<PreparedByServer, dbduel_wire::ServerError>, LostError> {
        self.socket.send(&self.waiter, &self.out).await?;
        let mut parser = PrepareParser::new(self.logged_in.capabilities);
        parser.begin();
        let mut fresh = Vec::new();
        loop {
            fresh.clear();
            self.socket.receive_into(&self.waiter, &mut fresh).await?;
            match parser.feed(&fresh)? {
                (_, Prepared::NeedMore) => {}
                (used, Prepared::Done(_)) if used < fresh.len() => return Err(surplus().into()),
                (_, Prepared::Done(prepared)) => return Ok(prepared),
            }
        }
    }

    #[inline]
    fn begin_wait(&self) {
        self.waiter.restart();
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
        self.round_trip(RowFormat::Text, sink, ()).await
    }

    /// Lets the server forget a statement, which it does not answer.
    ///
    /// # Errors
    /// A lost connection.
    pub async fn close(&mut self, statement: Statement) -> Result<(), LostError> {
        match statement.on_server() {
            Some(statement) => self.close_on_server(statement).await,
            None => Ok(()),
        }
    }

    /// Lets the server forget what it has prepared.
    pub(in crate::driver) async fn close_on_server(
        &mut self,
        statement: &PreparedByServer,
    ) -> Result<(), LostError> {
        self.out.clear();
        command::close(&mut self.out, statement);
        self.begin_wait();
        let sent = self.socket.send(&self.waiter, &self.out).await;
        self.end_wait();
        sent.map_err(|error| self.explain(error.into()))
    }

    /// Executes a statement for each of the rows, whose values have these kinds or are NULL; see
    /// [`bulk_execute`].
    pub(in crate::driver) async fn execute_bulk<'a, R: AsRef<[Value<'a>]>>(
        &mut self,
        statement: &PreparedByServer,
        kinds: &[BulkKind],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Summary, StatementError> {
        let kinds: Vec<ColumnKind> = kinds.iter().map(|kind| kind.of_column()).collect();
        self.out.clear();
        bulk_execute(&mut self.out, statement, &kinds, rows).map_err(LostError::from)?;
        self.round_trip(RowFormat::Text, &mut Skip, ()).await
    }

    /// Runs a text query that loads a file, and gets this content whatever file it names.
    pub(in crate::driver) async fn load(
        &mut self,
        sql: &[u8],
        content: &mut Content<'_>,
    ) -> Result<Summary, StatementError> {
        self.out.clear();
        command::query(&mut self.out, sql);
        self.round_trip(RowFormat::Text, &mut Skip, content).await
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
        let request = self.request(statement, values)?;
        let outcome = self.round_trip(request.0, sink, ()).await;
        if outcome.is_err() {
            statement.failed();
        }
        outcome
    }

    /// Writes out a statement with these values; [`Conn::reply`] sends it.
    #[inline]
    pub(crate) fn request(
        &mut self,
        statement: &mut Statement,
        values: &[Value<'_>],
    ) -> Result<Request, StatementError> {
        self.out.clear();
        let written = statement.put(&mut self.out, &mut self.text, values);
        written.map(Request).map_err(|error| {
            statement.failed();
            LostError::from(error).into()
        })
    }

    /// Sends the statement that was written out and reads its reply.
    #[inline]
    pub(crate) async fn reply<S: Sink>(
        &mut self,
        statement: &mut Statement,
        request: Request,
        sink: &mut S,
    ) -> Result<Summary, StatementError> {
        let outcome = self.round_trip(request.0, sink, ()).await;
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
        self.round_trip(RowFormat::Text, sink, ()).await
    }

    /// Sends what is in `out` and reads the reply.
    #[inline]
    async fn round_trip<S: Sink, C: FileContent>(
        &mut self,
        format: RowFormat,
        sink: &mut S,
        content: C,
    ) -> Result<Summary, StatementError> {
        self.begin_wait();
        let outcome = self.exchange(format, sink, content).await;
        self.end_wait();
        outcome.map_err(|error| match error {
            StatementError::Lost(lost) => self.explain(lost).into(),
            refused @ StatementError::Server(_) => refused,
        })
    }

    #[inline]
    async fn exchange<S: Sink, C: FileContent>(
        &mut self,
        format: RowFormat,
        sink: &mut S,
        mut content: C,
    ) -> Result<Summary, StatementError> {
        self.statements += 1;
        self.socket.send(&self.waiter, &self.out).await?;
        self.parser.begin(format);
        loop {
            self.socket.wait(&self.waiter).await?;
            let asks_for_file = 'replies: {
                let mut buffer = self.waiter.buffer();
                while let Some(bytes) = self.socket.receive(&mut buffer)? {
                    let fed = self.parser.feed(bytes, sink)?;
                    match fed.step {
                        Step::NeedMore => {}
                        Step::Done | Step::LocalInfile if fed.consumed < bytes.len() => {
                            return Err(surplus().into());
                        }
                        Step::LocalInfile => break 'replies true,
                        Step::Done => {
                            let outcome = self.parser.outcome().map_err(refused);
                            return outcome.inspect(|summary| self.effects.count(summary));
                        }
                    }
                }
                false
            };
            if asks_for_file {
                // In memory of its own, so that what a client keeps for a statement is small.
                Box::pin(self.send_content(&mut content)).await?;
            }
        }
    }

    /// Sends the content in packets and the empty packet that ends it.
    #[cold]
    async fn send_content(&mut self, content: &mut impl FileContent) -> Result<(), LostError> {
        if !self.may_load_files() {
            return Err(no_file().into());
        }
        let mut sequence = self.parser.local_infile().sequence;
        let mut piece = vec![0; CONTENT_BYTES];
        loop {
            let length = content.read(&mut piece);
            if length == 0 {
                break;
            }
            self.out.clear();
            sequence = local_infile::content(&mut self.out, sequence, &piece[..length]);
            // A load may take hours; the server shows that it lives by taking the next piece. A server that asks
            // again, without content to get, gains no time.
            self.waiter.restart();
            self.socket.send(&self.waiter, &self.out).await?;
        }
        self.out.clear();
        local_infile::end(&mut self.out, sequence);
        self.socket.send(&self.waiter, &self.out).await?;
        Ok(())
    }
}

impl<W: Waiter> Drop for Conn<W> {
    /// Sends a quit command, or else the server would count an aborted client. One attempt that does not wait, because the
    /// server may be frozen.
    fn drop(&mut self) {
        self.out.clear();
        command::quit(&mut self.out);
        let _ = self.socket.write(&self.out);
    }
}

impl BulkKind {
    fn of_column(self) -> ColumnKind {
        match self {
            BulkKind::Integer => Value::Signed(0).kind(),
            BulkKind::Bytes => Value::Bytes(b"").kind(),
        }
    }
}

/// How much TLS the login asks for.
fn wish(mode: &TlsMode) -> TlsWish {
    match mode {
        TlsMode::Off => TlsWish::Off,
        TlsMode::Preferred => TlsWish::Preferred,
        TlsMode::Required | TlsMode::VerifyCa { .. } | TlsMode::VerifyIdentity { .. } => {
            TlsWish::Required
        }
    }
}

#[cold]
fn refused(error: &dbduel_wire::ServerError) -> StatementError {
    ServerError::from(error.clone()).into()
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
        problem: "the server asks for a file that was not offered",
    }
}
