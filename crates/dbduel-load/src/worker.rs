//! One client: it takes what is due, sends it, tries again what may be tried again, and says when it
//! was done.
//!
//! Here are the clock reads, the retries and the accounting, so that a workload needs none of them. A
//! transaction costs one clock read: the instant at which it was done is also the instant at which the
//! next one of a closed loop is due and sent.

mod run;
mod slice;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use dbduel_record::seed::named_seed;
use dbduel_wire::{Credentials, ServerError};

use crate::blocking::Tls;
use crate::conn::{Conn, LostError, StatementError};
use crate::executor::{Reactor, Task, Token, turn};
use crate::ledger::Commitment;
use crate::order::OpenOrder;
use crate::session::Session;
use crate::tally::{Class, Ended, Outcome};
pub(crate) use run::{Crew, Left, Rules};
pub use slice::{Slice, SliceSpec};

/// `ER_CHECKREAD`: the row changed since the transaction's snapshot (MariaDB with
/// `innodb_snapshot_isolation`).
const RECORD_CHANGED: u16 = 1020;
/// `ER_LOCK_WAIT_TIMEOUT`.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// SQLSTATE class of errors after which the transaction is rolled back and may be tried again. Deadlocks
/// (1213) are in it, so are the snapshot conflicts of MyRocks and the certification failures of Galera
/// and group replication.
const TRANSACTION_ROLLBACK: &[u8] = b"40";

/// The stream of transactions of one client. A workload implements it; it neither times nor retries.
pub trait Client: Sized + 'static {
    /// What all clients of the workload have in common.
    type Options;

    /// Prepares the client's statements.
    fn open(
        conn: &mut Conn,
        options: Self::Options,
        sequence: Arc<AtomicU32>,
    ) -> impl Future<Output = Result<Self, StatementError>>;

    /// A slice begins. From here on everything that the client draws follows from the seed.
    fn begin(&mut self, begin: Begin);

    /// How long the client waits, on top of the ordered think time, before its next transaction is due.
    /// Asked in closed loops before each transaction.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Decides what the next transaction is, without sending anything.
    fn draw(&mut self) -> Class;

    /// Runs a transaction of this class once. It is called again when the server rolled it back, and
    /// may draw new values or keep its values.
    fn transaction(
        &mut self,
        class: Class,
        conn: &mut Conn,
    ) -> impl Future<Output = Result<(), StatementError>>;

    /// What the transaction that just ended well left behind. Asked once after each of them.
    fn trace(&mut self) -> Trace {
        Trace::Plain
    }

    /// Sends what the client has kept back, after its last transaction of a run.
    fn finish(&mut self, conn: &mut Conn) -> impl Future<Output = Result<(), StatementError>> {
        let _ = conn;
        async { Ok(()) }
    }
}

/// What a transaction that ended well left behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing that anybody keeps.
    #[default]
    Plain,
    /// A number that must still be there after a crash.
    Committed(Commitment),
    /// Nothing: it was rolled back on purpose.
    RolledBack,
}

/// What a client is told at the beginning of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Root of the client's random stream.
    pub seed: u64,
    /// Number of the client, from 0.
    pub client: u32,
    /// Clients that take part.
    pub clients: u32,
}

/// What the clients of one contender need to know when they open their connections.
pub struct Opening {
    /// The order.
    pub order: OpenOrder,
    /// Numbers that all clients of the contender draw from, each once.
    pub sequence: Arc<AtomicU32>,
    /// TLS as the order has it.
    pub tls: Arc<Tls>,
}

/// The clients of one contender on one thread.
pub struct Group {
    opening: Arc<Opening>,
    /// The run that the clients take part in instead of slices.
    run: Option<Rc<Crew>>,
    slice: RefCell<Option<Rc<Slice>>>,
    /// How long the end of the slice's transactions is waited for after its measured part.
    drain: Cell<Duration>,
    /// When the last slice was over; none before the first.
    ended: Cell<Option<Instant>>,
    /// Counts slices, so that a client takes part in each only once.
    round: Cell<u64>,
    opened: Cell<u32>,
    /// What the server says of the session of the contender's first client, if that is on this thread.
    session: RefCell<Option<Session>>,
    /// Clients inside a transaction or waiting for one.
    busy: Cell<u32>,
    /// What the server acknowledged since it was last asked for. Emptied at every tick.
    commitments: RefCell<Vec<Commitment>>,
}

impl Group {
    /// No clients yet.
    #[must_use]
    pub fn new(opening: Arc<Opening>) -> Rc<Self> {
        Self::new_in(opening, None)
    }

    /// No clients yet; they will take part in a run instead of slices.
    pub(crate) fn for_run(opening: Arc<Opening>, run: Rc<Crew>) -> Rc<Self> {
        Self::new_in(opening, Some(run))
    }

    fn new_in(opening: Arc<Opening>, run: Option<Rc<Crew>>) -> Rc<Self> {
        Rc::new(Group {
            opening,
            run,
            slice: RefCell::default(),
            drain: Cell::default(),
            ended: Cell::default(),
            round: Cell::new(0),
            opened: Cell::new(0),
            session: RefCell::default(),
            busy: Cell::new(0),
            commitments: RefCell::default(),
        })
    }

    /// What its clients need to know when they open their connections.
    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Clients that are connected and have prepared their statements.
    #[must_use]
    pub fn opened(&self) -> u32 {
        self.opened.get()
    }

    /// What the server says of the session of the contender's first client; once, and only on the
    /// thread that has this client.
    #[must_use]
    pub fn take_session(&self) -> Option<Session> {
        self.session.take()
    }

    /// True when no client is inside a slice. After a slice whose transactions did not all end within
    /// its drain, that may take until the server answers them.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.busy.get() == 0
    }

    /// Begins a slice for all parked clients, which go on when they are polled next. `drain`: longest wait for transactions
    /// in flight at its end.
    pub fn begin(&self, slice: Rc<Slice>, drain: Duration) {
        self.round.set(self.round.get() + 1);
        self.drain.set(drain);
        *self.slice.borrow_mut() = Some(slice);
    }

    /// Hands out what the server acknowledged since the last call.
    #[must_use]
    pub fn take_commitments(&self) -> Vec<Commitment> {
        let mut kept = self.commitments.borrow_mut();
        let next = Vec::with_capacity(kept.len());
        std::mem::replace(&mut *kept, next)
    }

    /// The slice is over for clients that have not begun with it.
    pub fn end(&self) {
        *self.slice.borrow_mut() = None;
        self.ended.set(Some(Instant::now()));
    }

    /// From when on nobody waits for a transaction that a slice has begun; none before the first slice, when clients may be
    /// busy with their connections alone.
    #[must_use]
    pub fn over_at(&self) -> Option<Instant> {
        match &*self.slice.borrow() {
            Some(slice) => Some(slice.instant(slice.end_ns()) + self.drain.get()),
            None => self.ended.get(),
        }
    }
}

/// A client's place: its number, its thread's reactor and its contender's group.
pub struct Seat {
    /// Number of the client, from 0, over all threads.
    pub client: u32,
    /// Its task.
    pub token: Token,
    /// The waits of its thread.
    pub reactor: Rc<Reactor>,
    /// The clients of the same contender and thread.
    pub group: Rc<Group>,
}

impl Seat {
    /// The client as a task of its thread's executor. It ends only when its connection is lost.
    pub fn boxed<C: Client>(self, options: C::Options) -> Task<LostError> {
        if let Some(run) = self.group.run.clone() {
            return Box::pin(run::live::<C>(run, self, options));
        }
        Box::pin(async move {
            let Err(lost) = self.live::<C>(options).await;
            lost
        })
    }

    async fn live<C: Client>(
        self,
        options: C::Options,
    ) -> Result<std::convert::Infallible, LostError> {
        let (mut conn, mut client) = self.open::<C>(options).await?;
        if self.client == 0 {
            let session = Session::ask(&mut conn).await?;
            self.group.session.replace(Some(session));
        }
        self.group.opened.set(self.group.opened.get() + 1);
        let mut round = 0;
        loop {
            let slice = self.next_slice(&mut round).await;
            self.group.busy.set(self.group.busy.get() + 1);
            let SliceSpec { seed, share, .. } = *slice.spec();
            let seed = named_seed(seed, &format!("client/{}", self.client));
            client.begin(Begin {
                seed,
                client: self.client,
                clients: share.clients,
            });
            self.work(&slice, &mut conn, &mut client).await?;
            self.group.busy.set(self.group.busy.get() - 1);
        }
    }

    /// Connects and prepares the client's statements.
    pub(crate) async fn open<C: Client>(
        &self,
        options: C::Options,
    ) -> Result<(Conn, C), LostError> {
        let Opening {
            order,
            sequence,
            tls,
        } = &*self.group.opening;
        let credentials = Credentials::new(order.user.clone(), order.password.clone());
        let reactor = Rc::clone(&self.reactor);
        let mut conn = Conn::open(
            reactor,
            self.token,
            &order.address,
            credentials,
            &order.database,
            tls,
        )
        .await?;
        match C::open(&mut conn, options, Arc::clone(sequence)).await {
            Ok(client) => Ok((conn, client)),
            Err(StatementError::Lost(lost)) => Err(lost),
            Err(StatementError::Server(error)) => Err(LostError::Prepare(error)),
        }
    }

    /// Parks until a slice begins in which this client takes part.
    async fn next_slice(&self, round: &mut u64) -> Rc<Slice> {
        loop {
            if *round != self.group.round.get()
                && let Some(slice) = &*self.group.slice.borrow()
            {
                *round = self.group.round.get();
                if self.client < slice.spec().share.clients {
                    return Rc::clone(slice);
                }
            }
            turn().await;
        }
    }

    /// The client's whole work in one slice.
    async fn work<C: Client>(
        &self,
        slice: &Slice,
        conn: &mut Conn,
        client: &mut C,
    ) -> Result<(), LostError> {
        let mut now_ns = self.wait_for_start(slice).await;
        while let Some(due_ns) = slice.take(now_ns.saturating_add(client.pause().as_nanos() as u64))
        {
            if due_ns > now_ns {
                now_ns = self.wait_until(slice, due_ns).await;
                if slice.is_over(now_ns) {
                    slice.give_back(due_ns);
                    break;
                }
                // It was free in time, so the delay is ours.
                slice.lagged(now_ns - due_ns);
            }
            let class = client.draw();
            let statements_before = conn.statements();
            let sent_ns = now_ns;
            slice.began(class, sent_ns);
            let (outcome, retries) = try_until_done(slice, class, conn, client).await?;
            let trace = match outcome {
                Outcome::Ok => client.trace(),
                Outcome::Failed => Trace::Plain,
            };
            if let Trace::Committed(commitment) = trace {
                self.group.commitments.borrow_mut().push(commitment);
            }
            let statements = conn.statements() - statements_before;
            now_ns = slice.now_ns();
            slice.ended(Ended {
                class,
                outcome,
                due_ns,
                done_ns: now_ns,
                retries,
                statements,
            });
            if outcome == Outcome::Ok {
                slice.served(now_ns - sent_ns);
            }
            if trace == Trace::RolledBack {
                slice.rolled_back();
            }
            slice.lagged(now_ns.saturating_sub(slice.ns_of(self.reactor.turn_began())));
        }
        Ok(())
    }

    /// Waits until the slice starts; returns when it was seen to have started. What is sent before has no place on the
    /// slice's clock, and its latency would come out too small.
    async fn wait_for_start(&self, slice: &Slice) -> u64 {
        let start = slice.spec().start;
        if Instant::now() < start {
            self.reactor.wake_at(self.token, start);
        }
        while Instant::now() < start {
            turn().await;
        }
        slice.now_ns()
    }

    /// Waits for an instant or the end of the slice; returns when that was.
    async fn wait_until(&self, slice: &Slice, due_ns: u64) -> u64 {
        self.reactor.wake_at(self.token, slice.instant(due_ns));
        loop {
            turn().await;
            let now_ns = slice.now_ns();
            if now_ns >= due_ns || slice.is_over(now_ns) {
                return now_ns;
            }
        }
    }
}

/// Runs a transaction until it is committed or given up; returns how it ended and the attempts after
/// the first. After every error a rollback is sent: a lock wait timeout leaves the transaction open, and
/// what it did before would be committed by the next one.
async fn try_until_done<C: Client>(
    slice: &Slice,
    class: Class,
    conn: &mut Conn,
    client: &mut C,
) -> Result<(Outcome, u64), LostError> {
    let mut retries = 0;
    loop {
        let error = match client.transaction(class, conn).await {
            Ok(()) => return Ok((Outcome::Ok, retries)),
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => error,
        };
        slice.erred(&error);
        match conn.query(b"ROLLBACK").await {
            Ok(_) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => slice.erred(&error),
        }
        if !may_try_again(&error) || retries >= u64::from(slice.spec().retries) {
            return Ok((Outcome::Failed, retries));
        }
        retries += 1;
    }
}

/// True for errors that say nothing about the statement, only that somebody else was in the way.
fn may_try_again(error: &ServerError) -> bool {
    error.sqlstate.starts_with(TRANSACTION_ROLLBACK)
        || matches!(error.code, RECORD_CHANGED | LOCK_WAIT_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_with_others_are_tried_again() {
        let error = |code, sqlstate: &[u8; 5]| ServerError {
            code,
            sqlstate: *sqlstate,
            message: String::new(),
        };
        assert!(may_try_again(&error(1213, b"40001")));
        assert!(may_try_again(&error(1205, b"HY000")));
        assert!(may_try_again(&error(1020, b"HY000")));
        assert!(may_try_again(&error(3101, b"40000")));
        assert!(!may_try_again(&error(1062, b"23000")));
        assert!(!may_try_again(&error(1146, b"42S02")));
    }
}
