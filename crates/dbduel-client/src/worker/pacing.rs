//! Pacing: when a client begins its next transaction, and how it waits.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbduel_driver::executor::{Reactor, Token, sleep_until, turn};

/// Consecutive transactions without a wait after which the other clients of the thread get their turn.
const TRANSACTIONS_PER_TURN: u32 = 16;

/// The same as a time, for transactions that block their thread: the ends of slices and ticks are noticed between
/// turns.
const TURN: Duration = Duration::from_millis(1);

/// Nanoseconds since the start of a slice or a run.
pub trait RunClock {
    /// Origin of the nanoseconds.
    fn start(&self) -> Instant;

    /// Current time.
    #[inline]
    fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    /// An instant in nanoseconds since the start; 0 before it.
    #[inline]
    fn ns_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.start());
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
    }

    /// Nanoseconds since the start as an instant.
    #[inline]
    fn instant(&self, ns: u64) -> Instant {
        self.start() + Duration::from_nanos(ns)
    }
}

/// Decides when the transactions of a client begin: a slice of a contest, or a run. Instants are nanoseconds since its
/// start.
pub trait Pacing: RunClock {
    /// When the next transaction of a client that is free at `free_ns` is due; `None` when nothing more begins.
    fn take(&self, free_ns: u64) -> Option<u64>;

    /// True when nothing more begins from `now_ns` on.
    fn is_over(&self, now_ns: u64) -> bool;

    /// Whether a client that waited until `now_ns` for a transaction due at `due_ns` must not begin it any more.
    fn calls_off(&self, due_ns: u64, now_ns: u64) -> bool;

    /// Whether the session of a client between two transactions at `now_ns` must report to its server's statistics.
    #[inline]
    fn wants_report(&self, now_ns: u64) -> bool {
        let _ = now_ns;
        false
    }

    /// Records the load process's own lag with a transaction, nanoseconds.
    #[inline]
    fn lagged(&self, lag_ns: impl FnOnce() -> u64) {
        let _ = lag_ns;
    }
}

/// The waits of one client, which do not block the other clients of its thread.
pub struct ClientWaits<'a> {
    reactor: &'a Rc<Reactor>,
    token: Token,
    /// The event loop's turn at the last transaction, and the number of transactions since it began.
    seen: Cell<(Instant, u32)>,
    /// True when its transactions block its thread.
    blocks: bool,
}

impl<'a> ClientWaits<'a> {
    /// Waits of a client before its first transaction. `blocks`: its transactions block its thread.
    pub fn new(reactor: &'a Rc<Reactor>, token: Token, blocks: bool) -> Self {
        ClientWaits {
            reactor,
            token,
            seen: Cell::new((reactor.turn_began(), 0)),
            blocks,
        }
    }

    /// Counts a transaction that ended at `now_ns`; true when the client has run too many of them without a wait.
    #[inline]
    pub fn has_had_its_turn(&self, pacing: &impl Pacing, now_ns: u64) -> bool {
        let (turn, transactions) = self.seen.get();
        let now = self.reactor.turn_began();
        let transactions = if now == turn { transactions + 1 } else { 1 };
        self.seen.set((now, transactions));
        transactions > TRANSACTIONS_PER_TURN
            || self.blocks && now_ns.saturating_sub(pacing.ns_of(now)) > TURN.as_nanos() as u64
    }

    /// Yields to the other clients of the thread; returns the time afterwards.
    pub async fn end_turn(&self, pacing: &impl Pacing) -> u64 {
        sleep_until(self.reactor, self.token, Instant::now()).await;
        pacing.now_ns()
    }

    /// Waits for `time`, not on account of the server; returns the time afterwards.
    #[cold]
    pub async fn pause(&self, pacing: &impl Pacing, time: Duration) -> u64 {
        sleep_until(self.reactor, self.token, Instant::now() + time).await;
        pacing.now_ns()
    }

    /// Waits until `due_ns`; returns the time at which the client continues, or `None` when the transaction is called
    /// off. Returns earlier when its session must report.
    pub async fn until_due(&self, pacing: &impl Pacing, due_ns: u64) -> Option<u64> {
        self.reactor.wake_at(self.token, pacing.instant(due_ns));
        loop {
            turn().await;
            let now_ns = pacing.now_ns();
            if pacing.calls_off(due_ns, now_ns) {
                return None;
            }
            if pacing.wants_report(now_ns) {
                return Some(now_ns);
            }
            if now_ns >= due_ns {
                // The client was free in time, so the delay is ours.
                pacing.lagged(|| now_ns - due_ns);
                return Some(now_ns);
            }
        }
    }

    /// Records how late a transaction was seen to be done at `now_ns`: the time since this turn of the event loop
    /// began.
    #[inline]
    pub fn seen_done(&self, pacing: &impl Pacing, now_ns: u64) {
        // All of it was the transaction's own.
        if self.blocks {
            return;
        }
        pacing.lagged(|| now_ns.saturating_sub(pacing.ns_of(self.reactor.turn_began())));
    }
}
