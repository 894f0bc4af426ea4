//! Runs the clients of a workload on event loops until the gate gives out no more tickets.
//!
//! What may be retried, what ends the run and when a connection is made again is in the [`SqlRun`]. After an error that
//! is ignored the transaction is rolled back before the event is begun again with new values: a lock wait timeout
//! leaves the transaction open, and its changes would be committed by the next one.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use dbduel_record::plan::{Parameters, Workload as PlannedWorkload};
use dbduel_record::seed::named_seed;
use dbduel_wire::ServerError;

use super::gate::Gate;
use super::ledger::{Counts, Ledger};
use crate::address::Address;
use crate::blocking::{Credentials, Tls};
use crate::conn::{Conn, Effects, LostError, StatementError};
use crate::executor::policy::{make_timers_exact, raise_open_files_limit, suit_clients};
use crate::executor::{Bell, Executor, Token, turn};
use crate::lua::IgnoredErrors;
use crate::order::OpenOrder;
use crate::worker::{Begin, Client, Group, Opening, Seat};
use crate::workloads::Workload;

/// Client errors that mean a lost connection: gone away, lost at the handshake, lost in between, lost at a system call.
const LOST: [u16; 4] = [2006, 2011, 2013, 2055];
/// From one attempt to connect again to the next.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);
/// Time in which a lost connection must be made again.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// Whether a lost connection is made again.
fn is_lost_ignored(ignored: &IgnoredErrors) -> bool {
    LOST.iter().any(|code| ignored.contains(*code))
}

/// What the clients are to do. No debug output, because it holds a password.
pub struct SqlRun {
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
    /// Root of the random streams.
    pub seed: u64,
}

/// The threads of a run, as others see them.
pub struct Threads {
    bells: Vec<Bell>,
}

impl Threads {
    /// Makes every client look whether the gate has changed.
    pub fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}

/// Starts so many threads with the clients on them; ring after opening or closing the gate. The threads end with the
/// run; nobody joins them, because a statement may last as long as the server likes.
///
/// # Errors
/// When the system gives no thread or no event loop.
pub fn start(
    run: SqlRun,
    threads: u32,
    gate: &Arc<Gate>,
    ledger: &Arc<Ledger>,
) -> io::Result<Threads> {
    // With the old limit fewer clients can connect, and the run fails when one cannot.
    let _ = raise_open_files_limit();
    let run = Arc::new(run);
    let sequence = Arc::new(AtomicU32::new(0));
    let threads = threads.clamp(1, run.clients.max(1));
    let mut bells = Vec::new();
    for number in 0..threads {
        let (run, sequence) = (Arc::clone(&run), Arc::clone(&sequence));
        let (gate, ledger) = (Arc::clone(gate), Arc::clone(ledger));
        let (sender, receiver) = mpsc::channel();
        std::thread::Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || {
                let clients = (number..run.clients).step_by(threads as usize);
                let crew = Rc::new(Crew {
                    states: RefCell::new(clients.map(ClientState::new).collect()),
                    run,
                    gate,
                    ledger,
                    sequence,
                    threads,
                    finished: Cell::new(0),
                });
                crew.work(&sender);
            })?;
        bells.push(receiver.recv().map_err(|_| {
            io::Error::other("a load thread could not make its event loop; are descriptors left?")
        })?);
    }
    Ok(Threads { bells })
}

/// The clients of one thread, as each of them sees them.
pub(crate) struct Crew {
    run: Arc<SqlRun>,
    gate: Arc<Gate>,
    ledger: Arc<Ledger>,
    sequence: Arc<AtomicU32>,
    /// Of the whole run: client n is the one at place n / `threads` of its thread.
    threads: u32,
    states: RefCell<Vec<ClientState>>,
    finished: Cell<usize>,
}

/// What of a client outlives its connection.
struct ClientState {
    client: u32,
    token: Option<Token>,
    /// It has said once that it is ready.
    is_ready: bool,
    /// When the event was due that a lost connection has interrupted.
    interrupted: Option<Instant>,
    /// The task has ended in order to connect again.
    is_leaving: bool,
    /// Since when there is no connection, after it was lost.
    lost_at: Option<Instant>,
    /// What it drew before, so that it does not draw the same again.
    connections: u64,
}

impl ClientState {
    fn new(client: u32) -> Self {
        ClientState {
            client,
            token: None,
            is_ready: false,
            interrupted: None,
            is_leaving: false,
            lost_at: None,
            connections: 0,
        }
    }
}

/// Says that the thread's clients have ended, also when it panics.
struct Presence<'a>(&'a Gate, usize);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .fail("a load thread panicked; this is a fault of dbduel".to_owned());
        }
        (0..self.1).for_each(|_| self.0.finish());
    }
}

impl Crew {
    fn work(self: &Rc<Self>, bell: &mpsc::Sender<Bell>) {
        let clients = self.states.borrow().len();
        let presence = Presence(&self.gate, clients);
        let executor = match Executor::new() {
            Ok(executor) => executor,
            Err(error) => {
                return self
                    .gate
                    .fail(format!("cannot make an event loop: {error}"));
            }
        };
        // Without exact timers and the policy the load still runs, only less exact and dearer.
        let _ = make_timers_exact();
        let clients = self.states.borrow().len();
        let _ = suit_clients(u32::try_from(clients).unwrap_or(u32::MAX));
        let _ = bell.send(executor.reactor().bell());
        if let Err(error) = self.turn_over(executor) {
            self.gate.fail(format!("the event loop broke: {error}"));
        }
        drop(presence);
    }

    fn turn_over(self: &Rc<Self>, mut executor: Executor<LostError>) -> io::Result<()> {
        let mut ended = Vec::new();
        let clients = self.states.borrow().len();
        for place in 0..clients {
            self.seat(place, &mut executor, &mut ended);
        }
        while self.finished.get() < clients && self.gate.failure().is_none() {
            while let Some((token, why)) = ended.pop() {
                self.look_after(token, &why, &mut executor, &mut ended);
            }
            if self.finished.get() == clients || self.gate.failure().is_some() {
                break;
            }
            if executor.turn(&mut ended)?.rung {
                let tokens: Vec<Token> = {
                    let states = self.states.borrow();
                    states.iter().filter_map(|state| state.token).collect()
                };
                for token in tokens {
                    if let Some(why) = executor.poll(token) {
                        ended.push((token, why));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a task of the client at `place` and lets it begin.
    fn seat(
        self: &Rc<Self>,
        place: usize,
        executor: &mut Executor<LostError>,
        ended: &mut Vec<(Token, LostError)>,
    ) {
        let client = self.states.borrow()[place].client;
        let group = Group::for_run(Arc::new(self.opening(client)), Rc::clone(self));
        let reactor = Rc::clone(executor.reactor());
        let SqlRun {
            workload,
            parameters,
            ..
        } = &*self.run;
        let token = executor.insert(|token| {
            workload.client(
                parameters,
                Seat {
                    client,
                    token,
                    reactor,
                    group,
                },
            )
        });
        self.states.borrow_mut()[place].token = Some(token);
        if let Some(why) = executor.poll(token) {
            ended.push((token, why));
        }
    }

    fn opening(&self, client: u32) -> Opening {
        let SqlRun {
            workload,
            parameters,
            addresses,
            credentials,
            tls,
            database,
            clients,
            ..
        } = &*self.run;
        Opening {
            order: OpenOrder {
                contender: String::new(),
                address: addresses[client as usize % addresses.len()].clone(),
                user: credentials.user.clone(),
                password: credentials.password.clone(),
                tls: tls.mode().clone(),
                database: database.clone(),
                workload: PlannedWorkload {
                    name: workload.name().to_owned(),
                    parameters: parameters.clone(),
                },
                clients: *clients,
                retries: 0,
                connect_s: 0.0,
            },
            sequence: Arc::clone(&self.sequence),
            tls: Arc::clone(tls),
        }
    }

    /// A task has ended: its client gets another one, or the run is over.
    fn look_after(
        self: &Rc<Self>,
        token: Token,
        why: &LostError,
        executor: &mut Executor<LostError>,
        ended: &mut Vec<(Token, LostError)>,
    ) {
        let place = {
            let mut states = self.states.borrow_mut();
            let place = states.iter().position(|state| state.token == Some(token));
            let Some(place) = place else { return };
            let state = &mut states[place];
            state.token = None;
            if !std::mem::take(&mut state.is_leaving) {
                let may_return = state.is_ready
                    && is_lost_ignored(&self.run.ignored)
                    && matches!(
                        why,
                        LostError::Io(_) | LostError::Wire(_) | LostError::Login(_)
                    );
                let lost_at = *state.lost_at.get_or_insert_with(Instant::now);
                if !may_return || lost_at.elapsed() > RECONNECT_PATIENCE {
                    let client = state.client;
                    let address = &self.run.addresses[client as usize % self.run.addresses.len()];
                    return self.gate.fail(explain(why, address));
                }
            }
            place
        };
        self.seat(place, executor, ended);
    }

    fn with_state<R>(&self, client: u32, change: impl FnOnce(&mut ClientState) -> R) -> Option<R> {
        let mut states = self.states.borrow_mut();
        let state = states.get_mut((client / self.threads) as usize)?;
        Some(change(state))
    }
}

/// What went wrong with a connection, in words that begin as sysbench's do.
fn explain(why: &LostError, address: &Address) -> String {
    let place = match address {
        Address::Unix { path } => format!("on socket '{}'", path.display()),
        Address::Tcp { host, port } => format!("on host '{host}', port {port}"),
    };
    match why {
        LostError::Prepare(_) | LostError::Data { .. } | LostError::Command(_) => why.to_string(),
        _ => format!("unable to connect to MySQL server {place}, aborting: {why}"),
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

/// One client from its connection to the end of the run, which it never ends by itself.
pub(crate) async fn live<C: Client>(crew: Rc<Crew>, seat: Seat, options: C::Options) -> LostError {
    match attempt::<C>(&crew, &seat, options).await {
        Ok(never) => match never {},
        Err(lost) => lost,
    }
}

async fn attempt<C: Client>(
    crew: &Crew,
    seat: &Seat,
    options: C::Options,
) -> Result<std::convert::Infallible, LostError> {
    let was_lost = crew.with_state(seat.client, |state| state.lost_at.is_some());
    if was_lost == Some(true) {
        pause(seat, Instant::now() + RECONNECT_PAUSE).await;
    }
    let (mut conn, mut client) = seat.open::<C>(options).await?;
    let connections = crew
        .with_state(seat.client, |state| {
            if state.lost_at.take().is_some() {
                crew.ledger.add(seat.client, reconnected());
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
        seed: named_seed(crew.run.seed, &stream),
        client: seat.client,
        clients: crew.run.clients,
    });
    while crew.gate.started().is_none() {
        turn().await;
    }
    let mut now = Instant::now();
    let mut events = 0;
    while let Some(due) = next_due(crew, seat, &mut now).await {
        crew.gate.begin();
        let outcome = event(crew, &mut conn, &mut client).await;
        crew.gate.done();
        now = Instant::now();
        match outcome {
            Ok(Some(counts)) => {
                let latency = now.saturating_duration_since(due).as_nanos();
                let latency = u64::try_from(latency).unwrap_or(u64::MAX);
                crew.ledger.event(seat.client, counts, latency);
            }
            // Tried again and again until the time was over.
            Ok(None) => break,
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
        if crew.run.reconnect_every > 0 && events >= crew.run.reconnect_every {
            crew.ledger.add(seat.client, reconnected());
            crew.with_state(seat.client, |state| state.is_leaving = true);
            // Nobody reads the reason of one who leaves on purpose.
            return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into());
        }
    }
    let before = conn.effects();
    match client.finish(&mut conn).await {
        Ok(()) => {}
        Err(StatementError::Lost(lost)) => return Err(lost),
        Err(StatementError::Server(error)) => crew.gate.fail(refusal(&error)),
    }
    crew.ledger.add(seat.client, since(&conn, before));
    crew.finished.set(crew.finished.get() + 1);
    loop {
        turn().await;
    }
}

fn reconnected() -> Counts {
    Counts {
        reconnects: 1,
        ..Counts::default()
    }
}

/// When the next event is due; returns when that is. None when the run is over.
async fn next_due(crew: &Crew, seat: &Seat, now: &mut Instant) -> Option<Instant> {
    let interrupted = crew.with_state(seat.client, |state| state.interrupted.take());
    if let Some(due) = interrupted.flatten() {
        return Some(due);
    }
    let Some(due) = crew.gate.take(*now)?.due else {
        return Some(*now);
    };
    seat.reactor.wake_at(seat.token, due);
    while *now < due {
        if crew.gate.is_closed() {
            return None;
        }
        turn().await;
        *now = Instant::now();
    }
    Some(due)
}

/// Waits for an instant.
async fn pause(seat: &Seat, until: Instant) {
    seat.reactor.wake_at(seat.token, until);
    while Instant::now() < until {
        turn().await;
    }
}

/// One event with all its attempts; none when it was given up because the run is over.
async fn event<C: Client>(
    crew: &Crew,
    conn: &mut Conn,
    client: &mut C,
) -> Result<Option<Counts>, StatementError> {
    let mut counts = Counts::default();
    loop {
        let before = conn.effects();
        let class = client.draw();
        let outcome = client.transaction(class, conn).await;
        counts += since(conn, before);
        match outcome {
            Ok(()) => return Ok(Some(counts)),
            Err(StatementError::Server(error)) if crew.run.ignored.contains(error.code) => {
                counts.errors += 1;
                // Not counted as a statement of the event.
                if let Err(StatementError::Lost(lost)) = conn.query(b"ROLLBACK").await {
                    return Err(lost.into());
                }
            }
            Err(error) => return Err(error),
        }
        let is_over = crew.gate.end().is_some_and(|end| Instant::now() >= end);
        if is_over || crew.gate.is_closed() {
            return Ok(None);
        }
    }
}

fn since(conn: &Conn, before: Effects) -> Counts {
    let now = conn.effects();
    Counts {
        reads: now.reads - before.reads,
        writes: now.writes - before.writes,
        others: now.others - before.others,
        ..Counts::default()
    }
}

#[cfg(test)]
mod tests;
