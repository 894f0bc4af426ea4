//! The series inside a slice: ticks, all classes together.

use super::latencies::{Gatherer, TickLatencies};
use super::{Outcome, Window};

/// A tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickTally {
    /// Start, nanoseconds since the start of the slice.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Committed in this tick.
    pub ok: u64,
    /// Failed for good in this tick.
    pub failed: u64,
    /// Sum of the latencies of `ok`, nanoseconds.
    pub latency_ns_sum: u64,
    /// Largest latency of `ok`, nanoseconds.
    pub latency_ns_max: u64,
    /// Transactions that were due at the end and had not been sent.
    pub waiting: u64,
    /// Distribution of the latencies of `ok`.
    pub latencies: TickLatencies,
}

/// Ticks whose memory is allocated before a slice, so that their ends allocate nothing; few slices have more.
const RESERVED_MAX: u64 = 100_000;

/// The ticks of a slice: their borders are the end of the guard plus and minus whole tick lengths, cut off at the ends
/// of the slice.
#[derive(Debug)]
pub(super) struct Ticks {
    window: Option<Window>,
    finished: Vec<TickTally>,
    current: TickTally,
    /// Latencies of the current tick.
    gatherer: Gatherer,
    over: bool,
}

impl Ticks {
    pub(super) fn new() -> Self {
        Ticks {
            window: None,
            finished: Vec::new(),
            current: TickTally::default(),
            gatherer: Gatherer::new(),
            over: false,
        }
    }

    pub(super) fn restart(&mut self, window: Window) {
        let window = Window {
            tick_ns: window.tick_ns.max(1),
            ..window
        };
        self.finished.clear();
        self.gatherer.clear();
        let guard_ticks = window.open_ns.div_ceil(window.tick_ns);
        let measured_ticks = (window.close_ns - window.open_ns).div_ceil(window.tick_ns);
        let ticks = (guard_ticks + measured_ticks).min(RESERVED_MAX);
        self.finished.reserve(ticks as usize);
        // The first tick is what is left of the guard before its first whole tick.
        let first_end = match window.open_ns % window.tick_ns {
            0 => window.tick_ns,
            rest => rest,
        };
        self.current = TickTally {
            end_ns: first_end.min(window.close_ns),
            ..TickTally::default()
        };
        self.over = window.close_ns == 0;
        self.window = Some(window);
    }

    /// End of the current tick; the far future when all are finished.
    #[inline]
    pub(super) fn border_ns(&self) -> u64 {
        if self.over {
            u64::MAX
        } else {
            self.current.end_ns
        }
    }

    #[inline]
    pub(super) fn count(&mut self, outcome: Outcome, latency_ns: u64) {
        match outcome {
            Outcome::Ok => {
                self.current.ok += 1;
                self.current.latency_ns_sum += latency_ns;
                self.current.latency_ns_max = self.current.latency_ns_max.max(latency_ns);
                self.gatherer.record(latency_ns);
            }
            Outcome::Failed => self.current.failed += 1,
        }
    }

    /// Finishes the ticks that end at or before `now_ns`.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let Some(window) = self.window else { return };
        while !self.over && now_ns >= self.current.end_ns {
            let start_ns = self.current.end_ns;
            let next = TickTally {
                start_ns,
                end_ns: (start_ns + window.tick_ns).min(window.close_ns),
                ..TickTally::default()
            };
            let mut ended = std::mem::replace(&mut self.current, next);
            ended.latencies = self.gatherer.take();
            self.finished.push(ended);
            self.over = start_ns >= window.close_ns;
        }
    }

    /// Ends the last tick at `now_ns`, which lies inside the current one.
    pub(super) fn close(&mut self, now_ns: u64) {
        if let Some(window) = &mut self.window {
            window.close_ns = now_ns;
            self.current.end_ns = now_ns;
        }
    }

    /// Sets the number of waiting transactions at the end of the last finished tick.
    pub(super) fn wait_at_end(&mut self, waiting: u64) {
        if let Some(last) = self.finished.last_mut() {
            last.waiting = waiting;
        }
    }

    pub(super) fn finished(&self) -> &[TickTally] {
        &self.finished
    }

    /// Adds the ticks of another thread, one by one.
    pub(super) fn merge(&mut self, other: &Ticks) {
        for (index, theirs) in other.finished.iter().enumerate() {
            match self.finished.get_mut(index) {
                Some(mine) => mine.merge(theirs),
                None => self.finished.push(theirs.clone()),
            }
        }
    }
}

impl TickTally {
    /// Adds the same tick of another thread.
    pub fn merge(&mut self, other: &TickTally) {
        let TickTally {
            start_ns: _,
            end_ns,
            ok,
            failed,
            latency_ns_sum,
            latency_ns_max,
            waiting,
            latencies,
        } = other;
        self.waiting += waiting;
        self.end_ns = self.end_ns.max(*end_ns);
        self.ok += ok;
        self.failed += failed;
        self.latency_ns_sum += latency_ns_sum;
        self.latency_ns_max = self.latency_ns_max.max(*latency_ns_max);
        self.latencies.merge(latencies);
    }
}
