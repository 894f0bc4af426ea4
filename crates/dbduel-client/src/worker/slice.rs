//! A running slice from the view of one thread's clients.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use dbduel_driver::{ClientConnection, ErrorClass, LostError, ServerError};
use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;

use super::engine::Recording;
use super::pacing::{Pacing, RunClock};
use super::session_statistics::{GuardReport, SessionStatistics};
use super::{Begin, Group, Trace};
use crate::commit_log::Acknowledged;
use crate::schedule::Schedule;
use crate::share::Share;
use crate::tally::{Class, Ended, Outcome, StatementDone, Tally};

/// One thread's part of a slice order.
#[derive(Debug, Clone, Copy)]
pub struct SliceSpec {
    /// Origin of all nanoseconds; the same on all threads.
    pub start: Instant,
    /// The same instant as nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When transactions fall due.
    pub arrival: Arrival,
    /// This thread's share of the load.
    pub share: Share,
    /// Attempts after the first.
    pub retries: u32,
    /// Number of the quantum that the clients run, where the workload is a trace.
    pub quantum: Option<u32>,
    /// Root of the random streams.
    pub seed: u64,
}

/// A running slice. Its clock counts nanoseconds since the start.
///
/// It continues until every transaction due before its planned end has ended; clients begin others meanwhile, so that
/// the server is as loaded as before, and all that end until then count. From then until the halt, clients still begin
/// transactions: the server must be frozen under load. Transactions in flight then resume when the server is thawed,
/// and count in the slice in which they end.
#[derive(Debug)]
pub struct Slice {
    spec: SliceSpec,
    /// End of the guard.
    open_ns: u64,
    /// The planned end.
    close_ns: Cell<u64>,
    schedule: RefCell<Schedule>,
    /// `None` once the slice has been answered.
    tally: RefCell<Option<Tally>>,
    /// Awaited transactions: taken by clients, begun or not, and not ended.
    awaited: Cell<u64>,
    /// Awaited transactions that have begun.
    begun: Cell<u64>,
    /// Transactions due before the planned end that clients had taken when they were called off.
    returned: Cell<u64>,
    /// When every transaction due before the planned end had ended.
    drained_ns: Cell<Option<u64>>,
    /// True after the halt: nothing begins any more.
    is_halted: Cell<bool>,
    /// Number of ticks finished at the last look.
    ticks_seen: Cell<usize>,
    /// All clients of the thread have done their work in the slice.
    is_finished: Cell<bool>,
}

impl Slice {
    /// A slice with its planned end at `close_ns`, and a tally whose window lasts longer.
    #[must_use]
    pub fn new(spec: SliceSpec, close_ns: u64, tally: Tally) -> Self {
        let schedule = Schedule::new(spec.arrival, spec.share, u64::MAX, spec.seed);
        Slice {
            spec,
            open_ns: tally.window().open_ns,
            close_ns: Cell::new(close_ns),
            schedule: RefCell::new(schedule),
            tally: RefCell::new(Some(tally)),
            awaited: Cell::new(0),
            begun: Cell::new(0),
            returned: Cell::new(0),
            drained_ns: Cell::new(None),
            is_halted: Cell::new(false),
            ticks_seen: Cell::new(0),
            is_finished: Cell::new(false),
        }
    }

    /// The thread's part of the order.
    #[must_use]
    pub fn spec(&self) -> &SliceSpec {
        &self.spec
    }

    /// The planned end, nanoseconds; moved forward by [`Slice::stop`].
    #[must_use]
    pub fn close_ns(&self) -> u64 {
        self.close_ns.get()
    }

    /// True when all clients of the thread have ended before the planned end.
    #[inline]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_finished.get()
    }

    /// Called when the last client of the thread has ended, or there is none; before the planned end that finishes the
    /// slice.
    pub fn left_by_all(&self) {
        self.is_finished.set(self.now_ns() < self.close_ns.get());
    }

    /// True when at `now_ns` the planned end has passed, every transaction due before it has ended and, in an open
    /// loop, clients have caught up with the arrivals since: otherwise work delayed by a stall would be left out while
    /// its time counts. A server that cannot catch up is given as long as the planned length.
    #[must_use]
    pub fn is_drained(&self, now_ns: u64) -> bool {
        let (close_ns, next_ns) = (self.close_ns.get(), self.schedule.borrow().next_ns());
        if now_ns < close_ns || self.awaited.get() > 0 || next_ns < close_ns {
            return false;
        }
        let drained_ns = self.drained_ns.get().unwrap_or(now_ns);
        self.drained_ns.set(Some(drained_ns));
        next_ns > now_ns || now_ns - drained_ns >= close_ns.saturating_sub(self.open_ns)
    }

    /// True when a client is inside an awaited transaction; for an answered slice, inside one that has not ended in
    /// time.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.begun.get() > 0
    }

    /// Halts the slice: nothing begins any more; clients notice at their next poll.
    pub fn halt(&self) {
        self.is_halted.set(true);
    }

    /// Parameters of the slice for a client that begins with it.
    pub(super) fn begin(&self, client: u32) -> Begin {
        let SliceSpec {
            seed,
            share,
            quantum,
            ..
        } = self.spec;
        Begin {
            quantum,
            seed: named_seed(seed, &format!("client/{client}")),
            slice_seed: seed,
            client,
            clients: share.clients,
        }
    }

    /// False for an answered slice, which counts nothing: a client may still be inside a transaction.
    #[inline]
    fn counted(&self, count: impl FnOnce(&mut Tally)) -> bool {
        let mut tally = self.tally.borrow_mut();
        match &mut *tally {
            Some(tally) => {
                count(tally);
                true
            }
            None => false,
        }
    }

    /// Counts a transaction that has ended, with its service time.
    #[inline]
    fn record(
        &self,
        tally: &mut Tally,
        ended: Ended,
        is_awaited: bool,
        service_ns: u64,
        trace: Trace,
    ) {
        tally.ended(ended, is_awaited);
        // In a closed loop the service time is the latency, which is counted already.
        let is_closed = matches!(self.spec.arrival, Arrival::Closed { .. });
        if ended.outcome == Outcome::Ok && !is_closed {
            tally.served(service_ns);
        }
        if trace == Trace::RolledBack {
            tally.rolled_back();
        }
    }

    /// Moves the planned end to now, unless it has passed.
    pub fn stop(&self) {
        self.close_ns.set(self.now_ns().min(self.close_ns.get()));
    }

    /// Advances the tally's time, and passes the tally to `look`.
    pub fn look<R>(&self, now_ns: u64, look: impl FnOnce(&Tally) -> R) -> Option<R> {
        let mut tally = self.tally.borrow_mut();
        let tally = tally.as_mut()?;
        tally.advance(now_ns);
        if tally.ticks().len() > self.ticks_seen.replace(tally.ticks().len()) {
            tally.wait_at_tick_end(self.schedule.borrow().waiting(now_ns));
        }
        Some(look(tally))
    }

    /// The final tally of a slice that ends now; returned once. Awaited transactions that have not ended are
    /// unfinished, those not sent are skipped.
    pub fn finish(&self, now_ns: u64) -> Option<Tally> {
        let mut tally = self.tally.borrow_mut().take()?;
        tally.close(now_ns);
        let last_due_ns = self.close_ns.get().saturating_sub(1);
        let untaken = self.schedule.borrow_mut().pass(last_due_ns, u64::MAX);
        let begun = self.begun.get();
        tally.skip(untaken + self.returned.get() + self.awaited.get() - begun);
        tally.drained(begun * now_ns.saturating_sub(self.close_ns.get()));
        Some(tally)
    }
}

impl RunClock for Slice {
    #[inline]
    fn start(&self) -> Instant {
        self.spec.start
    }
}

/// A running slice from the view of one client.
pub(super) struct SliceOfClient<'a> {
    slice: &'a Slice,
    group: &'a Group,
    /// True when the client's current transaction is awaited.
    is_awaited: Cell<bool>,
    /// Total freeze time of the server when the client began with the slice.
    frozen: Duration,
    /// Report state of the client's session.
    statistics: &'a SessionStatistics,
    /// Report state in the guard.
    guard: GuardReport,
}

impl<'a> SliceOfClient<'a> {
    /// The view of a client that begins with the slice.
    pub(super) fn new(
        slice: &'a Slice,
        group: &'a Group,
        statistics: &'a SessionStatistics,
    ) -> Self {
        SliceOfClient {
            slice,
            group,
            is_awaited: Cell::new(false),
            frozen: group.frozen(),
            statistics,
            guard: GuardReport::default(),
        }
    }

    /// Counts in the slice, or in the current one where the slice has been answered.
    fn counted_now(&self, count: impl Fn(&mut Tally)) {
        if !self.slice.counted(&count)
            && let Some(running) = self.group.running()
        {
            running.counted(count);
        }
    }

    /// Called when a transaction ended after its slice had been answered: it counts in the current slice, if there is
    /// one.
    #[cold]
    fn ended_later(&self, sent_ns: u64, ended: Ended, trace: Trace) {
        let Some(running) = self.group.running() else {
            return;
        };
        let frozen = self.group.frozen().saturating_sub(self.frozen).as_nanos() as u64;
        let service_ns = (ended.done_ns - sent_ns).saturating_sub(frozen);
        let ended = Ended {
            latency_ns: ended.latency_ns.saturating_sub(frozen),
            done_ns: running.ns_of(self.slice.instant(ended.done_ns)),
            ..ended
        };
        running.counted(|tally| running.record(tally, ended, false, service_ns, trace));
    }
}

impl RunClock for SliceOfClient<'_> {
    #[inline]
    fn start(&self) -> Instant {
        self.slice.spec.start
    }
}

impl Pacing for SliceOfClient<'_> {
    #[inline]
    fn take(&self, free_ns: u64) -> Option<u64> {
        let slice = self.slice;
        if slice.is_halted.get() {
            return None;
        }
        let due_ns = slice.schedule.borrow_mut().take(free_ns)?;
        let is_awaited = due_ns < slice.close_ns.get();
        self.is_awaited.set(is_awaited);
        slice
            .awaited
            .set(slice.awaited.get() + u64::from(is_awaited));
        Some(due_ns)
    }

    #[inline]
    fn is_over(&self, _now_ns: u64) -> bool {
        self.slice.is_halted.get()
    }

    /// A transaction due before the planned end that is not sent any more counts as skipped; those that an early stop
    /// leaves after the end are not awaited.
    #[inline]
    fn calls_off(&self, due_ns: u64, _now_ns: u64) -> bool {
        let slice = self.slice;
        let is_over = slice.is_halted.get();
        let is_due = due_ns < slice.close_ns.get();
        if self.is_awaited.get() && (is_over || !is_due) {
            self.is_awaited.set(false);
            slice.awaited.set(slice.awaited.get() - 1);
            slice.returned.set(slice.returned.get() + u64::from(is_due));
        }
        is_over
    }

    #[inline]
    fn wants_report(&self, now_ns: u64) -> bool {
        let (statistics, open_ns) = (self.statistics, self.slice.open_ns);
        statistics.is_wanted_in_guard(&self.guard, open_ns, now_ns)
            || statistics.is_wanted(self.group.round_of_reports())
    }

    #[inline]
    fn lagged(&self, lag_ns: impl FnOnce() -> u64) {
        self.slice.counted(|tally| tally.lagged(lag_ns()));
    }
}

impl Recording for SliceOfClient<'_> {
    type Pacing = Self;

    #[inline]
    fn pacing(&self) -> &Self {
        self
    }

    #[inline]
    fn began(&self, class: Class, now_ns: u64) {
        let (slice, is_awaited) = (self.slice, self.is_awaited.get());
        slice.begun.set(slice.begun.get() + u64::from(is_awaited));
        slice.counted(|tally| tally.began(class, now_ns, is_awaited));
    }

    fn erred(&self, error: &ServerError) -> bool {
        self.counted_now(|tally| tally.erred(error));
        true
    }

    fn statements(&self, done: &[StatementDone]) {
        self.counted_now(|tally| tally.statements_done(done));
    }

    fn rollback_erred(&self, error: &ServerError) {
        self.erred(error);
    }

    fn tries_again(&self, error: &ServerError, retries: u64) -> bool {
        error.class == ErrorClass::Conflict && retries < u64::from(self.slice.spec.retries)
    }

    async fn report(&self, conn: &mut ClientConnection) -> Result<(), LostError> {
        self.statistics
            .flush(self.group, Some(&self.guard), conn)
            .await
    }

    #[inline]
    fn ended(&self, sent_ns: u64, ended: Ended, trace: Trace) -> bool {
        let (slice, is_awaited) = (self.slice, self.is_awaited.get());
        let is_committed = ended.outcome == Outcome::Ok;
        self.statistics.ended(
            &self.guard,
            slice.open_ns,
            [sent_ns, ended.done_ns],
            is_committed,
        );
        if let Trace::Committed(commitment) = trace {
            self.group.keep(Acknowledged {
                commitment,
                at_ns: slice.spec.start_ns + ended.done_ns,
            });
        }
        if is_awaited {
            self.is_awaited.set(false);
            slice.awaited.set(slice.awaited.get() - 1);
            slice.begun.set(slice.begun.get() - 1);
        }
        let is_counted = slice.counted(|tally| {
            slice.record(tally, ended, is_awaited, ended.done_ns - sent_ns, trace);
            let drained_ns = ended
                .done_ns
                .saturating_sub(slice.close_ns.get().max(sent_ns));
            if is_awaited && drained_ns > 0 {
                tally.drained(drained_ns);
            }
        });
        if !is_counted {
            self.ended_later(sent_ns, ended, trace);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Window;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_open_loop_ends_when_it_has_caught_up_or_has_had_as_long_as_its_length() {
        let window = Window {
            open_ns: 0,
            close_ns: 10_000 * MS,
            tick_ns: 100 * MS,
        };
        let start = Instant::now();
        let spec = SliceSpec {
            start,
            start_ns: 0,
            arrival: Arrival::Constant {
                per_second: 1_000.0,
            },
            share: Share::WHOLE,
            retries: 0,
            quantum: None,
            seed: 1,
        };
        let slice = Slice::new(spec, 100 * MS, Tally::new(1, window));
        let group = Group::default();
        let statistics = SessionStatistics::default();
        let client = SliceOfClient::new(&slice, &group, &statistics);
        let done = |client: &SliceOfClient<'_>, due_ns: u64, now_ns: u64| {
            client.began(Class(0), due_ns);
            let ended = Ended {
                class: Class(0),
                outcome: Outcome::Ok,
                latency_ns: now_ns - due_ns,
                done_ns: now_ns,
                retries: 0,
                statements: 1,
            };
            client.ended(due_ns, ended, Trace::Plain);
        };
        // A stall up to 150 ms: nothing has been served so far.
        let mut now_ns = 150 * MS;
        for _ in 0..100 {
            let due_ns = client.take(now_ns).unwrap();
            assert!(due_ns < 100 * MS && !slice.is_drained(now_ns));
            now_ns += MS / 10;
            done(&client, due_ns, now_ns);
        }
        // All that was due in the slice has ended, and 60 more wait.
        assert_eq!(now_ns, 160 * MS);
        assert!(!slice.is_drained(now_ns));
        while let Some(due_ns) = client.take(now_ns).filter(|due_ns| *due_ns <= now_ns) {
            now_ns += MS / 10;
            done(&client, due_ns, now_ns);
        }
        assert!(slice.is_drained(now_ns) && now_ns < 170 * MS, "{now_ns}");
        let overloaded = Slice::new(
            SliceSpec {
                arrival: Arrival::Constant { per_second: 1e6 },
                ..spec
            },
            100 * MS,
            Tally::new(1, window),
        );
        while overloaded.schedule.borrow().next_ns() < 100 * MS {
            overloaded.schedule.borrow_mut().take(0);
        }
        assert!(!overloaded.is_drained(300 * MS) && !overloaded.is_drained(399 * MS));
        assert!(overloaded.is_drained(400 * MS));
    }
}
