//! When a client begins its next transaction: what decides it, and how the client waits.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbduel_driver::executor::{Reactor, Token, sleep_until, turn};

/// Transactions without a wait after which the other clients of the thread have their turn.
const TRANSACTIONS_PER_TURN: u32 = 16;

/// The same in time, where transactions hold up their thread: the borders of slices and ticks are seen between turns.
const TURN: Duration = Duration::from_millis(1);

/// Nanoseconds since the start of a slice or a run.
pub trait RunClock {
    /// What the nanoseconds count from.
    fn start(&self) -> Instant;

    /// Reads the clock.
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

/// What decides when the transactions of a client begin: a slice of a contest, or a run. Instants are nanoseconds since its
/// start.
pub trait Pacing: RunClock {
    /// When the next transaction of a client that is free at `free_ns` is due; none when nothing more is begun.
    fn take(&self, free_ns: u64) -> Option<u64>;

    /// True when nothing more is begun from `now_ns` on.
    fn is_over(&self, now_ns: u64) -> bool;

    /// Whether a client that waited until `now_ns` for what is due at `due_ns` is not to begin it any more.
    fn calls_off(&self, due_ns: u64, now_ns: u64) -> bool;

    /// Whether the session of a client that is between two transactions at `now_ns` is to report to its server's statistics.
    #[inline]
    fn wants_report(&self, now_ns: u64) -> bool {
        let _ = now_ns;
        false
    }

    /// How late the load process itself was with a transaction, nanoseconds.
    #[inline]
    fn lagged(&self, lag_ns: impl FnOnce() -> u64) {
        let _ = lag_ns;
    }
}

/// The waits of one client, which hold up no other of its thread.
pub struct ClientWaits<'a> {
    reactor: &'a Rc<Reactor>,
    token: Token,
    /// The event loop's turn at the last transaction, and transactions since it began.
    seen: Cell<(Instant, u32)>,
    /// True when its transactions hold up its thread.
    blocks: bool,
}

impl<'a> ClientWaits<'a> {
    /// Of a client that has had no transaction. `blocks`: its transactions hold up its thread.
    pub fn new(reactor: &'a Rc<Reactor>, token: Token, blocks: bool) -> Self {
        ClientWaits {
            reactor,
            token,
            seen: Cell::new((reactor.turn_began(), 0)),
            blocks,
        }
    }

    /// Counts a transaction that ended at `now_ns`; true when the client has not waited for anything for too many of them.
    #[inline]
    pub fn has_had_its_turn(&self, pacing: &impl Pacing, now_ns: u64) -> bool {
        let (turn, transactions) = self.seen.get();
        let now = self.reactor.turn_began();
        let transactions = if now == turn { transactions + 1 } else { 1 };
        self.seen.set((now, transactions));
        transactions > TRANSACTIONS_PER_TURN
            || self.blocks && now_ns.saturating_sub(pacing.ns_of(now)) > TURN.as_nanos() as u64
    }

    /// Lets the other clients of the thread have their turn; returns when that was over.
    pub async fn end_turn(&self, pacing: &impl Pacing) -> u64 {
        sleep_until(self.reactor, self.token, Instant::now()).await;
        pacing.now_ns()
    }

    /// Waits for so long, and not on account of the server; returns when that was over.
    #[cold]
    pub async fn pause(&self, pacing: &impl Pacing, time: Duration) -> u64 {
        sleep_until(self.reactor, self.token, Instant::now() + time).await;
        pacing.now_ns()
    }

    /// Waits for what is due later; returns when the client goes on, or none when it is called off. That is earlier where its session is
    /// to report.
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

    /// Records how late a transaction was seen to be done at `now_ns`: what passed since this turn of the event loop began.
    #[inline]
    pub fn seen_done(&self, pacing: &impl Pacing, now_ns: u64) {
        // All of it was the transaction's own.
        if self.blocks {
            return;
        }
        pacing.lagged(|| now_ns.saturating_sub(pacing.ns_of(self.reactor.turn_began())));
    }
}
