//! The connections and statements of one client, and the meaning of their errors to a script.

use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::client_errors::{connect_error, lost_error};
use dbduel_driver::executor::{Reactor, Token, sleep_until};
use dbduel_driver::{
    ClientConnection, Dialect, LostError, Request, ServerError, Skip, Statement, StatementError,
    Summary, Value, unless_over, within,
};

use super::execution::Execution;
use super::retry_deadline::RetryDeadline;
use super::rows::Rows;
use super::state::Context;

/// Pause between two attempts to reconnect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);

/// Number of values of most statements.
const FEW_VALUES: usize = 4;

/// A connection of the client's driver, which the first connection of the script uses.
pub(super) type Lent<'a> = Option<&'a mut ClientConnection>;

enum Slot {
    Own(Box<ClientConnection>),
    Lent,
    /// A connection of a dry run.
    Imagined,
    /// The connection broke; the script may reconnect.
    Lost,
    Closed,
}

struct Prepared {
    connection: usize,
    statement: Statement,
}

/// The connections of one client.
pub(super) struct Connections {
    context: Rc<Context>,
    retry_deadline: RetryDeadline,
    reactor: Rc<Reactor>,
    token: Token,
    /// By id; the first, 0, stays empty.
    slots: Vec<Slot>,
    /// By id; the first, 0, stays empty.
    statements: Vec<Option<Prepared>>,
    /// Ids of connections and of statements that no object of the script refers to any more.
    free_slots: Vec<usize>,
    free_statements: Vec<usize>,
    lent_is_taken: bool,
    /// Why the connection was lost or could not be made, unless one was made since.
    pub(super) lost: Option<LostError>,
}

/// Why a statement failed.
pub(super) enum Failure {
    /// The API was misused.
    Misuse(&'static str),
    /// An error of the server or the connection.
    Error {
        error: ServerError,
        /// True when the connection was made again.
        reconnected: bool,
    },
}

impl Connections {
    pub(super) fn new(
        context: Rc<Context>,
        retry_deadline: RetryDeadline,
        reactor: Rc<Reactor>,
        token: Token,
    ) -> Self {
        Connections {
            context,
            retry_deadline,
            reactor,
            token,
            slots: vec![Slot::Closed],
            statements: vec![None],
            free_slots: Vec::new(),
            free_statements: Vec::new(),
            lent_is_taken: false,
            lost: None,
        }
    }

    /// Connects; the error names the address.
    pub(super) async fn connect(
        &mut self,
        lent: &Lent<'_>,
    ) -> Result<usize, (Address, ServerError)> {
        let slot = if self.context.settings.dry_run {
            Slot::Imagined
        } else if lent.is_some() && !self.lent_is_taken {
            self.lent_is_taken = true;
            Slot::Lent
        } else {
            Slot::Own(Box::new(self.open().await?))
        };
        Ok(put(&mut self.slots, &mut self.free_slots, slot))
    }

    /// True when the client's driver no longer waits for its connections.
    pub(super) fn is_over(&self) -> bool {
        self.context.cancel().is_set() || self.retry_deadline.is_over()
    }

    /// Connects to the next address; the error names it.
    async fn open(&mut self) -> Result<ClientConnection, (Address, ServerError)> {
        let settings = &self.context.settings;
        let servers = &settings.servers;
        let number = self.context.connections.fetch_add(1, Ordering::Relaxed);
        let Some(address) = servers
            .addresses
            .get(number % servers.addresses.len().max(1))
        else {
            let nowhere = Address::Unix {
                path: std::path::PathBuf::new(),
            };
            let error = std::io::Error::new(ErrorKind::NotFound, "no server address is given");
            let error = connect_error(servers.dialect, &nowhere, &error.into());
            return Err((nowhere, error));
        };
        let opening = ClientConnection::open(
            Rc::clone(&self.reactor),
            self.token,
            servers.dialect,
            address,
            servers.credentials.clone(),
            &servers.database,
            &servers.tls,
        );
        let (began, longest) = (Instant::now(), settings.limits.connecting);
        let opening = within(&self.reactor, self.token, began, longest, opening);
        let end = || self.retry_deadline.end_of(began);
        let opened = unless_over(&self.reactor, self.token, end, opening).await;
        let opened = opened.unwrap_or_else(|| {
            let error =
                std::io::Error::new(ErrorKind::TimedOut, "no answer before the end of the run");
            Err(error.into())
        });
        match opened {
            Ok(mut conn) => {
                self.lost = None;
                if let Some(watch) = &settings.statement_watch {
                    conn.watch(watch, address);
                }
                Ok(conn)
            }
            Err(lost) => {
                let error = connect_error(servers.dialect, address, &lost);
                let address = address.clone();
                self.lost = Some(lost);
                Err((address, error))
            }
        }
    }

    /// Closes a connection; false when there was none.
    pub(super) fn disconnect(&mut self, connection: usize) -> bool {
        let Some(slot) = self.slots.get_mut(connection) else {
            return false;
        };
        // One that is lent stays with its owner, and can be taken again.
        if matches!(slot, Slot::Lent) {
            self.lent_is_taken = false;
        }
        let was = std::mem::replace(slot, Slot::Closed);
        for statement in &mut self.statements {
            if statement
                .as_ref()
                .is_some_and(|statement| statement.connection == connection)
            {
                *statement = None;
            }
        }
        !matches!(was, Slot::Closed)
    }

    /// Closes a connection that no object refers to any more; its id may be reused.
    pub(super) fn forget(&mut self, connection: usize) {
        self.disconnect(connection);
        self.free_slots.push(connection);
    }

    /// Releases a closed statement that no object of the script refers to any more.
    pub(super) fn forget_statement(&mut self, statement: usize) {
        self.free_statements.push(statement);
    }

    /// True when the script closed it, or never had it.
    pub(super) fn is_closed(&self, connection: usize) -> bool {
        matches!(self.slots.get(connection), None | Some(Slot::Closed))
    }

    pub(super) fn is_lost(&self, connection: usize) -> bool {
        matches!(self.slots.get(connection), Some(Slot::Lost))
    }

    pub(super) fn is_lent(&self, connection: usize) -> bool {
        matches!(self.slots.get(connection), Some(Slot::Lent))
    }

    /// Reconnects, once. The old connection is closed first, and its statements are gone.
    pub(super) async fn reconnect(
        &mut self,
        lent: &mut Lent<'_>,
        connection: usize,
    ) -> Result<(), (Address, ServerError)> {
        for statement in &mut self.statements {
            if statement
                .as_ref()
                .is_some_and(|statement| statement.connection == connection)
            {
                *statement = None;
            }
        }
        if matches!(self.slots[connection], Slot::Imagined) {
            return Ok(());
        }
        self.lose(connection);
        let conn = self.open().await?;
        match (&mut self.slots[connection], lent) {
            (Slot::Lent, Some(place)) => **place = conn,
            (slot, _) => *slot = Slot::Own(Box::new(conn)),
        }
        Ok(())
    }

    /// Drops a broken connection. Its statements stay, so that their executions report a lost connection. One that is lent
    /// stays with its owner.
    fn lose(&mut self, connection: usize) {
        if let Some(slot) = self.slots.get_mut(connection)
            && matches!(slot, Slot::Own(_))
        {
            *slot = Slot::Lost;
        }
    }

    /// Runs a text query; its rows are kept in `rows`.
    pub(super) async fn query(
        &mut self,
        lent: &mut Lent<'_>,
        connection: usize,
        sql: &[u8],
        rows: &mut Rows,
    ) -> Result<Summary, Failure> {
        let outcome = match (self.slots.get_mut(connection), lent.as_deref_mut()) {
            (Some(Slot::Own(conn)), _) => conn.query_into(sql, rows).await,
            (Some(Slot::Lent), Some(conn)) => conn.query_into(sql, rows).await,
            (Some(Slot::Imagined), _) => return Ok(Summary::default()),
            (Some(Slot::Lost), _) => Err(gone()),
            _ => return Err(CLOSED),
        };
        match outcome {
            Ok(summary) => Ok(summary),
            Err(error) => Err(self.failed(lent, connection, error).await),
        }
    }

    /// Prepares a statement; returns its id and its number of placeholders.
    pub(super) async fn prepare(
        &mut self,
        lent: &mut Lent<'_>,
        connection: usize,
        sql: &str,
    ) -> Result<(usize, usize), Failure> {
        let protocol = self.context.settings.protocol;
        let dialect = self.context.settings.servers.dialect;
        let prepared = match (self.slots.get_mut(connection), lent.as_deref_mut()) {
            (Some(Slot::Own(conn)), _) => conn.prepare(sql, protocol).await,
            (Some(Slot::Lent), Some(conn)) => conn.prepare(sql, protocol).await,
            (Some(Slot::Imagined), _) => Ok(Statement::text(sql, dialect)),
            (Some(Slot::Lost), _) => Err(gone()),
            _ => return Err(CLOSED),
        };
        match prepared {
            Ok(statement) => {
                let parameters = statement.parameters();
                let prepared = Some(Prepared {
                    connection,
                    statement,
                });
                let number = put(&mut self.statements, &mut self.free_statements, prepared);
                Ok((number, parameters))
            }
            Err(error) => Err(self.failed(lent, connection, error).await),
        }
    }

    /// Executes a prepared statement and skips its rows. Also returns the connection that executed it.
    #[inline]
    pub(super) async fn execute(
        &mut self,
        lent: &mut Lent<'_>,
        execution: Execution,
    ) -> Result<(Summary, usize), Failure> {
        let Some(Some(prepared)) = self.statements.get_mut(execution.statement()) else {
            return Err(CLOSED);
        };
        let connection = prepared.connection;
        let statement = &mut prepared.statement;
        if statement.parameters() != execution.values().len() {
            return Err(Failure::Misuse("the statement's parameters are not bound"));
        }
        let conn = match (self.slots.get_mut(connection), lent.as_deref_mut()) {
            (Some(Slot::Own(conn)), _) => conn,
            (Some(Slot::Lent), Some(conn)) => conn,
            (Some(Slot::Imagined), _) => return Ok((Summary::default(), connection)),
            (Some(Slot::Lost), _) => return Err(self.failed(lent, connection, gone()).await),
            _ => return Err(CLOSED),
        };
        // In two steps, so that the values are not kept while the client waits.
        let outcome = match request(conn, statement, execution) {
            Ok(request) => conn.reply(statement, request, &mut Skip).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(summary) => Ok((summary, connection)),
            Err(error) => Err(self.failed(lent, connection, error).await),
        }
    }

    /// The connection of the executed statement; 0, which is none, when it is gone.
    pub(super) fn connection_of(&self, execution: Execution) -> usize {
        let prepared = self.statements.get(execution.statement());
        let prepared = prepared.and_then(Option::as_ref);
        prepared.map_or(0, |prepared| prepared.connection)
    }

    /// Number of statements that are prepared and not closed.
    pub(super) fn prepared(&self) -> usize {
        self.statements.iter().flatten().count()
    }

    /// Deallocates a statement on the server. A connection that breaks doing so reports it at its next statement.
    pub(super) async fn close(&mut self, lent: &mut Lent<'_>, statement: usize) {
        let Some(prepared) = self.statements.get_mut(statement).and_then(Option::take) else {
            return;
        };
        let _ = match (self.slots.get_mut(prepared.connection), lent.as_deref_mut()) {
            (Some(Slot::Own(conn)), _) => conn.close(prepared.statement).await,
            (Some(Slot::Lent), Some(conn)) => conn.close(prepared.statement).await,
            _ => Ok(()),
        };
    }

    /// Handles an error. In a separate allocation, so that a client's state for its executions stays small.
    #[cold]
    #[inline(never)]
    fn failed<'a>(
        &'a mut self,
        lent: &'a mut Lent<'_>,
        connection: usize,
        error: StatementError,
    ) -> Pin<Box<dyn Future<Output = Failure> + 'a>> {
        Box::pin(self.look_into(lent, connection, error))
    }

    /// Reconnects after a broken connection when its number is to be ignored.
    async fn look_into(
        &mut self,
        lent: &mut Lent<'_>,
        connection: usize,
        error: StatementError,
    ) -> Failure {
        let error = match error {
            StatementError::Server(error) => {
                return Failure::Error {
                    error,
                    reconnected: false,
                };
            }
            StatementError::Lost(lost) => {
                let error = lost_error(self.context.settings.servers.dialect, &lost);
                match self.is_lost(connection) {
                    // The first error says more.
                    true => _ = self.lost.get_or_insert(lost),
                    false => self.lost = Some(lost),
                }
                error
            }
        };
        let mut reconnected = false;
        if self
            .context
            .settings
            .ignored_errors
            .reconnects_after(error.code)
        {
            let deadline = Instant::now() + self.context.settings.limits.reconnecting;
            while !reconnected && Instant::now() < deadline && !self.is_over() {
                reconnected = self.reconnect(lent, connection).await.is_ok();
                if !reconnected {
                    let again = Instant::now() + RECONNECT_PAUSE;
                    sleep_until(&self.reactor, self.token, again).await;
                }
            }
        }
        if !reconnected {
            self.lose(connection);
        }
        Failure::Error { error, reconnected }
    }
}

/// Writes an execution with its values to the output buffer; allocates nothing for a few.
#[inline]
fn request(
    conn: &mut ClientConnection,
    statement: &mut Statement,
    execution: Execution,
) -> Result<Request, StatementError> {
    let values = execution.values();
    let values = values.map(|value| as_sent(conn, statement, value));
    let count = values.len();
    let mut few = [Value::Null; FEW_VALUES];
    if count > FEW_VALUES {
        return conn.request(statement, &values.collect::<Vec<_>>());
    }
    for (place, value) in few.iter_mut().zip(values) {
        *place = value;
    }
    conn.request(statement, &few[..count])
}

/// A value as the statement takes it. Scripts hold texts as bytes, whose literal in PostgreSQL has another type.
#[inline]
fn as_sent<'a>(conn: &ClientConnection, statement: &Statement, value: Value<'a>) -> Value<'a> {
    match value {
        Value::Bytes(bytes)
            if conn.dialect() == Dialect::PostgreSql && statement.is_written_out() =>
        {
            str::from_utf8(bytes).map_or(value, Value::Text)
        }
        _ => value,
    }
}

/// Stores a value in a free slot, or a new one; returns its index.
fn put<T>(places: &mut Vec<T>, free: &mut Vec<usize>, thing: T) -> usize {
    if let Some(number) = free.pop() {
        places[number] = thing;
        return number;
    }
    places.push(thing);
    places.len() - 1
}

/// The error of a statement on a connection that broke before.
#[cold]
fn gone() -> StatementError {
    std::io::Error::from(ErrorKind::NotConnected).into()
}

const CLOSED: Failure = Failure::Misuse("attempt to use an already closed connection");
