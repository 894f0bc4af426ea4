//! The events of a run from the view of one of its clients.

use std::cell::Cell;
use std::time::Instant;

use dbduel_driver::executor::turn;

use super::pacing::{Pacing, RunClock};
use crate::run::{Counts, Gate, RunMetrics};

/// The events of one client: when the next may begin, and the duration of the last one.
pub struct RunEvents<'a> {
    /// The client's number.
    number: u32,
    gate: &'a Gate,
    metrics: &'a RunMetrics,
    /// When the gate was opened, once known.
    start: Cell<Instant>,
    /// Due time of the event that a lost connection has interrupted.
    interrupted: Cell<Option<u64>>,
}

impl<'a> RunEvents<'a> {
    /// Events of a client that has had none.
    pub fn new(number: u32, gate: &'a Gate, metrics: &'a RunMetrics) -> Self {
        RunEvents {
            number,
            gate,
            metrics,
            start: Cell::new(Instant::now()),
            interrupted: Cell::new(None),
        }
    }

    /// The gate of the client.
    pub fn gate(&self) -> &'a Gate {
        self.gate
    }

    /// Waits until the gate opens; false when it will not.
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

    /// Counts something other than an event.
    #[inline]
    pub fn count(&self, counts: Counts) {
        self.metrics.add(self.number, counts);
    }

    /// Called when the event begins, or resumes after its connection was lost.
    #[inline]
    pub fn begin(&self) {
        match self.interrupted.take() {
            None => self.gate.begin(),
            Some(_) => self.gate.go_on(),
        }
    }

    /// Called when the event is done; its statements are already counted.
    #[inline]
    pub fn done(&self, latency_ns: u64) {
        self.gate.done();
        self.metrics.event(self.number, Counts::NONE, latency_ns);
    }

    /// Abandons the event without counting it.
    pub fn give_up(&self) {
        self.gate.done();
    }

    /// Called when the connection was lost in an event, which resumes on the next connection.
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
