//! A running slice as the clients of one thread see it.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::driver::ServerError;
use dbduel_record::plan::Arrival;

use crate::schedule::{Schedule, Share};
use crate::tally::{Class, Ended, Tally};

/// What was ordered, as far as one thread is concerned.
#[derive(Debug, Clone, Copy)]
pub struct SliceSpec {
    /// The instant that all nanoseconds count from; the same on all threads.
    pub start: Instant,
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
    /// Gone when the slice has been answered; a client that is still inside a transaction counts for
    /// nothing then.
    tally: RefCell<Option<Tally>>,
    returned: Cell<u64>,
    /// Ticks that were over at the last look.
    ticks_seen: Cell<usize>,
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
        }
    }

    /// What was ordered.
    #[must_use]
    pub fn spec(&self) -> &SliceSpec {
        &self.spec
    }

    /// End of the measured part, nanoseconds; moved forward by [`Slice::stop`].
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns.get()
    }

    /// Reads the clock.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    /// An instant on the slice's clock; 0 before the start.
    #[inline]
    #[must_use]
    pub fn ns_of(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.spec.start);
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
    }

    /// A moment of the slice's clock as an instant.
    #[must_use]
    pub fn instant(&self, ns: u64) -> Instant {
        self.spec.start + Duration::from_nanos(ns)
    }

    /// True when nothing new is begun.
    #[inline]
    #[must_use]
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns.get()
    }

    /// When the next transaction of a client that is free now is due.
    #[inline]
    pub(super) fn take(&self, now_ns: u64) -> Option<u64> {
        if self.is_over(now_ns) {
            return None;
        }
        self.schedule.borrow_mut().take(now_ns)
    }

    /// What was taken was not sent.
    pub(super) fn give_back(&self, due_ns: u64) {
        if due_ns < self.end_ns.get() {
            self.returned.set(self.returned.get() + 1);
        }
    }

    #[inline]
    pub(super) fn began(&self, class: Class, now_ns: u64) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.began(class, now_ns);
        }
    }

    #[inline]
    pub(super) fn ended(&self, ended: Ended) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.ended(ended);
        }
    }

    pub(super) fn rolled_back(&self) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.rolled_back();
        }
    }

    /// How long the server took for the transaction that just ended well. In a closed loop that is the latency, which is
    /// counted already.
    #[inline]
    pub(super) fn served(&self, service_ns: u64) {
        if matches!(self.spec.arrival, Arrival::Closed { .. }) {
            return;
        }
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.served(service_ns);
        }
    }

    #[inline]
    pub(super) fn lagged(&self, lag_ns: u64) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.lagged(lag_ns);
        }
    }

    pub(super) fn erred(&self, error: &ServerError) {
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.erred(error.code, &error.message);
        }
    }

    /// Ends the measured part now, unless it is over.
    pub fn stop(&self) {
        let now_ns = self.now_ns().min(self.end_ns.get());
        self.end_ns.set(now_ns);
        self.schedule.borrow_mut().end_at(now_ns);
        if let Some(tally) = &mut *self.tally.borrow_mut() {
            tally.close(now_ns);
        }
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

    /// The final tally, once: what nobody sent is counted as skipped.
    pub fn finish(&self) -> Option<Tally> {
        let mut tally = self.tally.borrow_mut().take()?;
        tally.close(self.end_ns.get());
        tally.skip(self.schedule.borrow_mut().drop_rest() + self.returned.get());
        Some(tally)
    }
}
