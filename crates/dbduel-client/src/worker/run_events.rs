//! The events of a run as one of its clients sees them.

use std::cell::Cell;
use std::time::Instant;

use dbduel_driver::executor::turn;

use super::pacing::{Pacing, RunClock};
use crate::run::{Counts, Gate, RunMetrics};

/// The events of one client: when the next may begin, and how long the last one took.
pub struct RunEvents<'a> {
    /// The client's number.
    number: u32,
    gate: &'a Gate,
    metrics: &'a RunMetrics,
    /// When the gate was opened, once it is.
    start: Cell<Instant>,
    /// When the event was due that a lost connection has interrupted.
    interrupted: Cell<Option<u64>>,
}

impl<'a> RunEvents<'a> {
    /// Of a client that has had none.
    pub fn new(number: u32, gate: &'a Gate, metrics: &'a RunMetrics) -> Self {
        RunEvents {
            number,
            gate,
            metrics,
            start: Cell::new(Instant::now()),
            interrupted: Cell::new(None),
        }
    }

    /// The gate that the client asks.
    pub fn gate(&self) -> &'a Gate {
        self.gate
    }

    /// Waits for the beginning; false when there will be none.
    pub async fn opened(&self) -> bool {
        loop {
            if let Some(started) = self.gate.started() {
                self.start.set(started);
                return true;
            }
            if self.gate.is_closed() {
                return false;
            }
            turn().await;
        }
    }

    /// Counts something that is no event.
    #[inline]
    pub fn count(&self, counts: Counts) {
        self.metrics.add(self.number, counts);
    }

    /// The event begins, or goes on after its connection was lost.
    #[inline]
    pub fn begin(&self) {
        match self.interrupted.take() {
            None => self.gate.begin(),
            Some(_) => self.gate.go_on(),
        }
    }

    /// The event is done; its statements have been counted one by one.
    #[inline]
    pub fn done(&self, latency_ns: u64) {
        self.gate.done();
        self.metrics.event(self.number, Counts::NONE, latency_ns);
    }

    /// The event is not counted.
    pub fn give_up(&self) {
        self.gate.done();
    }

    /// The connection was lost in an event, which goes on when there is another one.
    pub(super) fn interrupt(&self, due_ns: u64) {
        self.gate.done();
        self.interrupted.set(Some(due_ns));
    }
}

impl RunClock for RunEvents<'_> {
    #[inline]
    fn start(&self) -> Instant {
        self.start.get()
    }
}

impl Pacing for RunEvents<'_> {
    #[inline]
    fn take(&self, free_ns: u64) -> Option<u64> {
        if let Some(due_ns) = self.interrupted.get() {
            return Some(due_ns);
        }
        let due = self.gate.take(self.instant(free_ns))?.due;
        Some(due.map_or(free_ns, |due| self.ns_of(due)))
    }

    #[inline]
    fn is_over(&self, _now_ns: u64) -> bool {
        self.gate.is_closed()
    }

    #[inline]
    fn calls_off(&self, _due_ns: u64, _now_ns: u64) -> bool {
        self.gate.is_closed()
    }
}
