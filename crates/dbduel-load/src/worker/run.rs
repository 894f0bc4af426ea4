//! One client in a run: events until the gate gives out no more tickets.
//!
//! After an error that is ignored the transaction is rolled back before the event is begun again with new values: a lock
//! wait timeout leaves the transaction open, and its changes would be committed by the next one. Knows no threads and
//! makes no connection again: [`crate::bridge::workload`] does, when its task has ended.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_record::plan::Parameters;
use dbduel_record::seed::named_seed;

use super::{Begin, Client, ClientContext, ClientExit};
use crate::address::Address;
use crate::driver::{
    ClientConnection, Credentials, Effects, LostError, ServerError, StatementError, Tls,
    unless_over, within,
};
use crate::executor::Token;
use crate::run::{Counts, Entry, Gate, IgnoredErrors, RunMetrics, pause};
use crate::statement_watch::StatementWatch;
use crate::workloads::Workload;

/// From one attempt to connect again to the next.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);

/// What the clients of a run are to do. No debug output, because it holds a password.
pub struct WorkloadRun {
    /// What they do.
    pub workload: &'static dyn Workload,
    /// Its resolved parameters.
    pub parameters: Parameters,
    /// Where servers listen; client n goes to address n modulo their number.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    /// How much TLS.
    pub tls: Arc<Tls>,
    /// Database with the tables.
    pub database: String,
    /// Connections.
    pub clients: u32,
    /// Errors after which an event is begun again; any other ends the run.
    pub ignored: IgnoredErrors,
    /// Events of a client after which it connects anew; 0 for never.
    pub reconnect_every: u64,
    /// Time in which a connection must be made again.
    pub reconnecting: Duration,
    /// Ends statements that a server will never answer.
    pub statement_watch: Option<StatementWatch>,
    /// Root of the random streams.
    pub seed: u64,
}

/// The clients of one thread, as each of them sees them.
pub(crate) struct RunContext {
    pub(crate) run: Arc<WorkloadRun>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Arc<RunMetrics>,
    /// Of the whole run: client n is the one at place n / `threads` of its thread.
    threads: u32,
    pub(crate) states: RefCell<Vec<ClientState>>,
}

/// What of a client outlives its connection.
pub(crate) struct ClientState {
    pub(crate) client: u32,
    pub(crate) token: Option<Token>,
    /// It has said once that it is ready.
    pub(crate) is_ready: bool,
    /// Since when there is no connection, after it was lost.
    pub(crate) lost_at: Option<Instant>,
    /// When the event was due that a lost connection has interrupted.
    interrupted: Option<Instant>,
    /// What it drew before, so that it does not draw the same again.
    connections: u64,
}

impl RunContext {
    /// The clients of thread `thread`.
    pub(crate) fn new(
        run: Arc<WorkloadRun>,
        gate: Arc<Gate>,
        metrics: Arc<RunMetrics>,
        thread: u32,
        threads: u32,
    ) -> Rc<Self> {
        let state = |client| ClientState {
            client,
            token: None,
            is_ready: false,
            lost_at: None,
            interrupted: None,
            connections: 0,
        };
        let clients = (thread..run.clients).step_by(threads as usize);
        Rc::new(RunContext {
            states: RefCell::new(clients.map(state).collect()),
            run,
            gate,
            metrics,
            threads,
        })
    }

    fn with_state<R>(&self, client: u32, change: impl FnOnce(&mut ClientState) -> R) -> Option<R> {
        let mut states = self.states.borrow_mut();
        let state = states.get_mut((client / self.threads) as usize)?;
        Some(change(state))
    }
}

/// One client from its connection to the end of the run or of the connection.
pub(super) async fn live<C: Client>(
    context: &RunContext,
    client_context: &ClientContext,
    options: C::Options,
) -> Result<ClientExit, LostError> {
    let Some((mut conn, mut client)) = open::<C>(context, client_context, options).await? else {
        return Ok(ClientExit::ForGood);
    };
    if let Some(watch) = &context.run.statement_watch {
        conn.watch(watch, &client_context.config.address);
    }
    let connections = context
        .with_state(client_context.client, |state| {
            if state.lost_at.take().is_some() {
                context.metrics.add(client_context.client, RECONNECTED);
            }
            state.connections += 1;
            if !std::mem::replace(&mut state.is_ready, true) {
                context.gate.ready();
            }
            state.connections
        })
        .unwrap_or_default();
    let stream = format!("client/{}/{connections}", client_context.client);
    client.begin(Begin {
        seed: named_seed(context.run.seed, &stream),
        client: client_context.client,
        clients: context.run.clients,
    });
    let entry = Entry::new(&context.gate, &client_context.reactor, client_context.token);
    if !entry.opened().await {
        return Ok(ClientExit::ForGood);
    }
    let mut now = Instant::now();
    let mut events = 0;
    while let Some(due) = begin_next(context, client_context, &entry, &mut now).await {
        let outcome = event(context, client_context.client, &mut conn, &mut client).await;
        context.gate.done();
        now = Instant::now();
        match outcome {
            Ok(true) => {
                let latency = now.saturating_duration_since(due).as_nanos();
                let latency = u64::try_from(latency).unwrap_or(u64::MAX);
                context
                    .metrics
                    .event(client_context.client, Counts::NONE, latency);
            }
            // Tried again and again until the time was over.
            Ok(false) => break,
            Err(StatementError::Server(error)) => {
                context.gate.fail(refusal(&error));
                break;
            }
            Err(StatementError::Lost(lost)) => {
                context.with_state(client_context.client, |state| state.interrupted = Some(due));
                return Err(lost);
            }
        }
        events += 1;
        if context.run.reconnect_every > 0 && events >= context.run.reconnect_every {
            context.metrics.add(client_context.client, RECONNECTED);
            return Ok(ClientExit::ToConnectAnew);
        }
    }
    let before = conn.effects();
    match client.finish(&mut conn).await {
        Ok(()) => {}
        Err(StatementError::Lost(lost)) => return Err(lost),
        Err(StatementError::Server(error)) => context.gate.fail(refusal(&error)),
    }
    context
        .metrics
        .add(client_context.client, since(&conn, before));
    Ok(ClientExit::ForGood)
}

/// Connects and prepares the client's statements. A connection that is made again has a deadline, and is none when the run
/// is over before; for the first ones whoever waits for the clients to be ready has one.
async fn open<C: Client>(
    context: &RunContext,
    client_context: &ClientContext,
    options: C::Options,
) -> Result<Option<(ClientConnection, C)>, LostError> {
    let was = context.with_state(client_context.client, |state| {
        (state.is_ready, state.lost_at)
    });
    let (is_again, lost_at) = was.unwrap_or_default();
    if lost_at.is_some() {
        let again = Instant::now() + RECONNECT_PAUSE;
        pause(&client_context.reactor, client_context.token, again).await;
    }
    let opening = client_context.open::<C>(options);
    if !is_again {
        return opening.await.map(Some);
    }
    let since = lost_at.unwrap_or_else(Instant::now);
    let patience = context.run.reconnecting;
    let opening = within(
        &client_context.reactor,
        client_context.token,
        since,
        patience,
        opening,
    );
    // For a run that is over nobody waits.
    let over_at = || context.gate.over_at();
    let opened = unless_over(
        &client_context.reactor,
        client_context.token,
        over_at,
        opening,
    )
    .await;
    opened.transpose()
}

const RECONNECTED: Counts = Counts {
    reconnects: 1,
    ..Counts::NONE
};

/// Begins the next event, or resumes the one that a lost connection has interrupted. Returns when it is or was due;
/// none when the run is over.
async fn begin_next(
    context: &RunContext,
    client_context: &ClientContext,
    entry: &Entry<'_>,
    now: &mut Instant,
) -> Option<Instant> {
    let interrupted = context.with_state(client_context.client, |state| state.interrupted.take());
    if let Some(due) = interrupted.flatten() {
        context.gate.go_on();
        return Some(due);
    }
    let due = entry.next_due(now).await?;
    context.gate.begin();
    Some(due)
}

/// One event with all its attempts; false when it was given up because the run is over. What an attempt sent and
/// met is counted when it ends, whatever becomes of the event.
async fn event<C: Client>(
    context: &RunContext,
    number: u32,
    conn: &mut ClientConnection,
    client: &mut C,
) -> Result<bool, StatementError> {
    loop {
        let before = conn.effects();
        let class = client.draw();
        let outcome = client.transaction(class, conn).await;
        context.metrics.add(number, since(conn, before));
        match outcome {
            Ok(()) => return Ok(true),
            Err(StatementError::Server(error)) if context.run.ignored.contains(error.code) => {
                context.metrics.add(number, IGNORED);
                // Not counted as a statement of the event.
                if let Err(StatementError::Lost(lost)) = conn.query(b"ROLLBACK").await {
                    return Err(lost.into());
                }
            }
            Err(error) => return Err(error),
        }
        if context.gate.is_over(Instant::now()) {
            return Ok(false);
        }
    }
}

const IGNORED: Counts = Counts {
    errors: 1,
    ..Counts::NONE
};

fn since(conn: &ClientConnection, before: Effects) -> Counts {
    let now = conn.effects();
    Counts {
        reads: now.reads - before.reads,
        writes: now.writes - before.writes,
        others: now.others - before.others,
        ..Counts::NONE
    }
}

fn refusal(error: &ServerError) -> String {
    let ServerError { code, message, .. } = error;
    let sqlstate = error.sqlstate();
    format!(
        "SQL error, errno = {code}, state = '{sqlstate}': {message}; it is not among --mysql-ignore-errors"
    )
}
