//! One client in a run: events until the gate gives out no more tickets.
//!
//! After an error that is ignored the transaction is rolled back before the event is begun again with new values: a lock
//! wait timeout leaves the transaction open, and its changes would be committed by the next one. Knows no threads and
//! makes no connection again: whoever seated the client does, when its task has ended.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_record::seed::named_seed;
use dbduel_wire::ServerError;

use super::{Begin, Client, Seat};
use crate::conn::{Conn, Effects, LostError, StatementError, unless_over, within};
use crate::executor::Token;
use crate::run::{Counts, Entry, Gate, IgnoredErrors, Ledger, pause};
use crate::statement_watch::StatementWatch;

/// From one attempt to connect again to the next.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);

/// What the clients of a run go by.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// Clients of all threads.
    pub(crate) clients: u32,
    /// Errors after which an event is begun again; any other ends the run.
    pub(crate) ignored: IgnoredErrors,
    /// Events of a client after which it connects anew; 0 for never.
    pub(crate) reconnect_every: u64,
    /// Time in which a connection must be made again.
    pub(crate) reconnecting: Duration,
    /// Ends statements that a server will never answer.
    pub(crate) statement_watch: Option<StatementWatch>,
    /// Root of the random streams.
    pub(crate) seed: u64,
}

/// The clients of one thread, as each of them sees them.
pub(crate) struct Crew {
    pub(crate) rules: Rules,
    pub(crate) gate: Arc<Gate>,
    pub(crate) ledger: Arc<Ledger>,
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
    /// Why its task has ended, apart from a lost connection.
    pub(crate) left: Option<Left>,
    /// Since when there is no connection, after it was lost.
    pub(crate) lost_at: Option<Instant>,
    /// When the event was due that a lost connection has interrupted.
    interrupted: Option<Instant>,
    /// What it drew before, so that it does not draw the same again.
    connections: u64,
}

/// Why a client has ended its task on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It wants another connection.
    ToConnectAnew,
    /// It has no more events.
    ForGood,
}

impl Crew {
    /// The clients of thread `thread`.
    pub(crate) fn new(
        rules: Rules,
        gate: Arc<Gate>,
        ledger: Arc<Ledger>,
        thread: u32,
        threads: u32,
    ) -> Rc<Self> {
        let state = |client| ClientState {
            client,
            token: None,
            is_ready: false,
            left: None,
            lost_at: None,
            interrupted: None,
            connections: 0,
        };
        let clients = (thread..rules.clients).step_by(threads as usize);
        Rc::new(Crew {
            states: RefCell::new(clients.map(state).collect()),
            rules,
            gate,
            ledger,
            threads,
        })
    }

    fn with_state<R>(&self, client: u32, change: impl FnOnce(&mut ClientState) -> R) -> Option<R> {
        let mut states = self.states.borrow_mut();
        let state = states.get_mut((client / self.threads) as usize)?;
        Some(change(state))
    }
}

/// One client from its connection to the end of the run or of the connection. What its task ends with is the reason only
/// when the client has not [left](ClientState::left).
pub(super) async fn live<C: Client>(crew: Rc<Crew>, seat: Seat, options: C::Options) -> LostError {
    let left = match attempt::<C>(&crew, &seat, options).await {
        Ok(left) => left,
        Err(lost) => return lost,
    };
    crew.with_state(seat.client, |state| state.left = Some(left));
    io::Error::from(io::ErrorKind::ConnectionAborted).into()
}

async fn attempt<C: Client>(
    crew: &Crew,
    seat: &Seat,
    options: C::Options,
) -> Result<Left, LostError> {
    let Some((mut conn, mut client)) = open::<C>(crew, seat, options).await? else {
        return Ok(Left::ForGood);
    };
    if let Some(watch) = &crew.rules.statement_watch {
        conn.watch(watch, &seat.group.opening().order.address);
    }
    let connections = crew
        .with_state(seat.client, |state| {
            if state.lost_at.take().is_some() {
                crew.ledger.add(seat.client, RECONNECTED);
            }
            state.connections += 1;
            if !std::mem::replace(&mut state.is_ready, true) {
                crew.gate.ready();
            }
            state.connections
        })
        .unwrap_or_default();
    let stream = format!("client/{}/{connections}", seat.client);
    client.begin(Begin {
        seed: named_seed(crew.rules.seed, &stream),
        client: seat.client,
        clients: crew.rules.clients,
    });
    let entry = Entry::new(&crew.gate, &seat.reactor, seat.token);
    if !entry.opened().await {
        return Ok(Left::ForGood);
    }
    let mut now = Instant::now();
    let mut events = 0;
    while let Some(due) = begin_next(crew, seat, &entry, &mut now).await {
        let outcome = event(crew, seat.client, &mut conn, &mut client).await;
        crew.gate.done();
        now = Instant::now();
        match outcome {
            Ok(true) => {
                let latency = now.saturating_duration_since(due).as_nanos();
                let latency = u64::try_from(latency).unwrap_or(u64::MAX);
                crew.ledger.event(seat.client, Counts::NONE, latency);
            }
            // Tried again and again until the time was over.
            Ok(false) => break,
            Err(StatementError::Server(error)) => {
                crew.gate.fail(refusal(&error));
                break;
            }
            Err(StatementError::Lost(lost)) => {
                crew.with_state(seat.client, |state| state.interrupted = Some(due));
                return Err(lost);
            }
        }
        events += 1;
        if crew.rules.reconnect_every > 0 && events >= crew.rules.reconnect_every {
            crew.ledger.add(seat.client, RECONNECTED);
            return Ok(Left::ToConnectAnew);
        }
    }
    let before = conn.effects();
    match client.finish(&mut conn).await {
        Ok(()) => {}
        Err(StatementError::Lost(lost)) => return Err(lost),
        Err(StatementError::Server(error)) => crew.gate.fail(refusal(&error)),
    }
    crew.ledger.add(seat.client, since(&conn, before));
    Ok(Left::ForGood)
}

/// Connects and prepares the client's statements. A connection that is made again has a deadline, and is none when the run
/// is over before; for the first ones whoever waits for the clients to be ready has one.
async fn open<C: Client>(
    crew: &Crew,
    seat: &Seat,
    options: C::Options,
) -> Result<Option<(Conn, C)>, LostError> {
    let was = crew.with_state(seat.client, |state| (state.is_ready, state.lost_at));
    let (is_again, lost_at) = was.unwrap_or_default();
    if lost_at.is_some() {
        let again = Instant::now() + RECONNECT_PAUSE;
        pause(&seat.reactor, seat.token, again).await;
    }
    let opening = seat.open::<C>(options);
    if !is_again {
        return opening.await.map(Some);
    }
    let since = lost_at.unwrap_or_else(Instant::now);
    let patience = crew.rules.reconnecting;
    let opening = within(&seat.reactor, seat.token, since, patience, opening);
    // For a run that is over nobody waits.
    let over_at = || crew.gate.over_at();
    let opened = unless_over(&seat.reactor, seat.token, over_at, opening).await;
    opened.transpose()
}

const RECONNECTED: Counts = Counts {
    reconnects: 1,
    ..Counts::NONE
};

/// Begins the next event, or goes on with the one that a lost connection has interrupted. Returns when it is or was due;
/// none when the run is over.
async fn begin_next(
    crew: &Crew,
    seat: &Seat,
    entry: &Entry<'_>,
    now: &mut Instant,
) -> Option<Instant> {
    let interrupted = crew.with_state(seat.client, |state| state.interrupted.take());
    if let Some(due) = interrupted.flatten() {
        crew.gate.go_on();
        return Some(due);
    }
    let due = entry.next_due(now).await?;
    crew.gate.begin();
    Some(due)
}

/// One event with all its attempts; false when it was given up because the run is over. What an attempt sent and
/// met is counted when it ends, whatever becomes of the event.
async fn event<C: Client>(
    crew: &Crew,
    number: u32,
    conn: &mut Conn,
    client: &mut C,
) -> Result<bool, StatementError> {
    loop {
        let before = conn.effects();
        let class = client.draw();
        let outcome = client.transaction(class, conn).await;
        crew.ledger.add(number, since(conn, before));
        match outcome {
            Ok(()) => return Ok(true),
            Err(StatementError::Server(error)) if crew.rules.ignored.contains(error.code) => {
                crew.ledger.add(number, IGNORED);
                // Not counted as a statement of the event.
                if let Err(StatementError::Lost(lost)) = conn.query(b"ROLLBACK").await {
                    return Err(lost.into());
                }
            }
            Err(error) => return Err(error),
        }
        if crew.gate.is_over(Instant::now()) {
            return Ok(false);
        }
    }
}

const IGNORED: Counts = Counts {
    errors: 1,
    ..Counts::NONE
};

fn since(conn: &Conn, before: Effects) -> Counts {
    let now = conn.effects();
    Counts {
        reads: now.reads - before.reads,
        writes: now.writes - before.writes,
        others: now.others - before.others,
        ..Counts::NONE
    }
}

fn refusal(error: &ServerError) -> String {
    let ServerError {
        code,
        sqlstate,
        message,
    } = error;
    let state = String::from_utf8_lossy(sqlstate);
    format!(
        "SQL error, errno = {code}, state = '{state}': {message}; it is not among --mysql-ignore-errors"
    )
}
