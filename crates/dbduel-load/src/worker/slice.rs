//! A running slice as the clients of one thread see it.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;

use super::engine::Recording;
use super::pacing::Pacing;
use super::{Begin, Group, Trace};
use crate::commit_log::Acknowledged;
use crate::driver::{ErrorClass, ServerError};
use crate::schedule::Schedule;
use crate::share::Share;
use crate::tally::{Class, Ended, Outcome, Tally};

/// What was ordered, as far as one thread is concerned.
#[derive(Debug, Clone, Copy)]
pub struct SliceSpec {
    /// The instant that all nanoseconds count from; the same on all threads.
    pub start: Instant,
    /// The same instant as nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When transactions fall due.
    pub arrival: Arrival,
    /// The part of the load that is this thread's.
    pub share: Share,
    /// Attempts after the first.
    pub retries: u32,
    /// Root of the random streams.
    pub seed: u64,
}

/// A running slice. Its clock counts nanoseconds since the start.
#[derive(Debug)]
pub struct Slice {
    spec: SliceSpec,
    end_ns: Cell<u64>,
    schedule: RefCell<Schedule>,
    /// Gone when the slice has been answered.
    tally: RefCell<Option<Tally>>,
    returned: Cell<u64>,
    /// Ticks that were over at the last look.
    ticks_seen: Cell<usize>,
    /// All clients of the thread have done all that they have to do in a slice.
    is_finished: Cell<bool>,
}

impl Slice {
    /// A slice that ends where the tally's window closes.
    #[must_use]
    pub fn new(spec: SliceSpec, tally: Tally) -> Self {
        let end_ns = tally.window().close_ns;
        let schedule = Schedule::new(spec.arrival, spec.share, end_ns, spec.seed);
        Slice {
            spec,
            end_ns: Cell::new(end_ns),
            schedule: RefCell::new(schedule),
            tally: RefCell::new(Some(tally)),
            returned: Cell::new(0),
            ticks_seen: Cell::new(0),
            is_finished: Cell::new(false),
        }
    }

    /// What was ordered.
    #[must_use]
    pub fn spec(&self) -> &SliceSpec {
        &self.spec
    }

    /// True when some of its load is not counted.
    pub(super) fn is_guarded(&self) -> bool {
        let tally = self.tally.borrow();
        tally
            .as_ref()
            .is_some_and(|tally| tally.window().open_ns > 0)
    }

    /// End of the measured part, nanoseconds; moved forward by [`Slice::stop`].
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns.get()
    }

    /// True when all clients of the thread have ended before the measured part has.
    #[inline]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_finished.get()
    }

    /// The last client of the thread has ended, or there is none; before the end of the measured part that finishes the slice.
    pub(crate) fn left_by_all(&self) {
        self.is_finished.set(!self.is_over(self.now_ns()));
    }

    /// What a client gets when it begins with the slice.
    pub(super) fn begin(&self, client: u32) -> Begin {
        let SliceSpec { seed, share, .. } = self.spec;
        Begin {
            seed: named_seed(seed, &format!("client/{client}")),
            client,
            clients: share.clients,
        }
    }

    /// Counts for nothing when the slice has been answered: a client may still be inside a transaction.
    #[inline]
    fn counted(&self, count: impl FnOnce(&mut Tally)) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            count(tally);
        }
    }

    /// Ends the measured part now, unless it is over.
    pub fn stop(&self) {
        let now_ns = self.now_ns().min(self.end_ns.get());
        self.end_ns.set(now_ns);
        self.schedule.borrow_mut().end_at(now_ns);
        self.counted(|tally| tally.close(now_ns));
    }

    /// Lets the tally know that time goes on, and hands it out for a look.
    pub fn look<R>(&self, now_ns: u64, look: impl FnOnce(&Tally) -> R) -> Option<R> {
        let mut tally = self.tally.borrow_mut();
        let tally = tally.as_mut()?;
        tally.advance(now_ns);
        if tally.ticks().len() > self.ticks_seen.replace(tally.ticks().len()) {
            tally.wait_at_tick_end(self.schedule.borrow().waiting(now_ns));
        }
        Some(look(tally))
    }

    /// The final tally, once: what was not sent is counted as skipped.
    pub fn finish(&self) -> Option<Tally> {
        let mut tally = self.tally.borrow_mut().take()?;
        tally.close(self.end_ns.get());
        tally.skip(self.schedule.borrow_mut().drop_rest() + self.returned.get());
        Some(tally)
    }
}

impl Pacing for Slice {
    #[inline]
    fn start(&self) -> Instant {
        self.spec.start
    }

    #[inline]
    fn take(&self, free_ns: u64) -> Option<u64> {
        if self.is_over(free_ns) {
            return None;
        }
        self.schedule.borrow_mut().take(free_ns)
    }

    #[inline]
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns.get()
    }

    /// What was taken and is not sent was due in the slice all the same, and counts as skipped.
    #[inline]
    fn calls_off(&self, due_ns: u64, now_ns: u64) -> bool {
        let is_over = self.is_over(now_ns);
        if is_over && due_ns < self.end_ns.get() {
            self.returned.set(self.returned.get() + 1);
        }
        is_over
    }

    #[inline]
    fn lagged(&self, lag_ns: impl FnOnce() -> u64) {
        self.counted(|tally| tally.lagged(lag_ns()));
    }
}

/// A running slice, and the group whose clients take part in it.
pub(super) struct SliceOfGroup<'a> {
    pub(super) slice: &'a Slice,
    pub(super) group: &'a Group,
}

impl Recording for SliceOfGroup<'_> {
    type Pacing = Slice;

    #[inline]
    fn pacing(&self) -> &Slice {
        self.slice
    }

    #[inline]
    fn began(&self, class: Class, now_ns: u64) {
        self.slice.counted(|tally| tally.began(class, now_ns));
    }

    fn erred(&self, error: &ServerError) -> bool {
        self.slice
            .counted(|tally| tally.erred(error.code, &error.message));
        true
    }

    fn rollback_erred(&self, error: &ServerError) {
        self.erred(error);
    }

    fn tries_again(&self, error: &ServerError, retries: u64) -> bool {
        error.class == ErrorClass::Conflict && retries < u64::from(self.slice.spec.retries)
    }

    #[inline]
    fn ended(&self, sent_ns: u64, ended: Ended, trace: Trace) -> bool {
        if let Trace::Committed(commitment) = trace {
            self.group.keep(Acknowledged {
                commitment,
                at_ns: self.slice.spec.start_ns + ended.done_ns,
            });
        }
        self.slice.counted(|tally| {
            tally.ended(ended);
            // In a closed loop the service time is the latency, which is counted already.
            let is_closed = matches!(self.slice.spec.arrival, Arrival::Closed { .. });
            if ended.outcome == Outcome::Ok && !is_closed {
                tally.served(ended.done_ns - sent_ns);
            }
            if trace == Trace::RolledBack {
                tally.rolled_back();
            }
        });
        true
    }
}
