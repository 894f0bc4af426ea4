//! A run's load for its reports: the gate that its workers pass, and their counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_client::run::{Gate, IntervalStats, Queue, RunMetrics, Share};

use crate::bridge::LoadThreads;

use super::general::General;

/// A load that is ready to begin, or running.
pub struct Load {
    /// Gate that allows events to begin.
    pub gate: Arc<Gate>,
    /// The counts.
    pub metrics: Arc<RunMetrics>,
    /// The event loops to notify of changes; none for machine tests.
    pub threads: Option<LoadThreads>,
    queue: Option<Queue>,
    /// True for a dry run: nothing reached a server, so nothing was read or written.
    pub is_dry: bool,
}

impl Load {
    /// A load with one worker per client, on `threads` threads.
    pub fn new(general: &General, threads: u32) -> Self {
        Load {
            gate: Arc::new(Gate::new(general.limits, general.threads)),
            metrics: Arc::new(RunMetrics::new(general.threads, threads)),
            threads: None,
            queue: Queue::new(&general.limits),
            is_dry: false,
        }
    }

    fn ring(&self) {
        if let Some(threads) = &self.threads {
            threads.ring();
        }
    }

    /// Lets it begin.
    pub fn begin(&self) {
        self.gate.open();
        self.ring();
    }

    /// Waits until it has ended or failed, but not longer than `until`; true when it has.
    pub fn wait(&self, until: Instant) -> bool {
        self.gate.wait_until_finished(until).is_some() || self.gate.has_failed()
    }

    /// Begins no further event.
    pub fn stop(&self) {
        self.gate.close();
        self.ring();
    }

    /// Moves what was counted since the last call into `fresh`.
    pub fn take(&self, fresh: &mut IntervalStats) {
        self.metrics.take(fresh);
        if self.is_dry {
            let counts = &mut fresh.counts;
            counts.others += std::mem::take(&mut counts.reads) + std::mem::take(&mut counts.writes);
        }
    }

    /// Each client's share since the last reset.
    pub fn shares(&self) -> Vec<Share> {
        self.metrics.shares()
    }

    /// Restarts the shares.
    pub fn reset_shares(&self) {
        self.metrics.reset_shares();
    }

    /// Number of events due and not begun after `elapsed`, and number of running ones.
    pub fn queue(&mut self, elapsed: Duration) -> (u64, u32) {
        let waiting = match &mut self.queue {
            Some(queue) => queue.length(elapsed, &self.gate),
            None => 0,
        };
        (waiting, self.gate.busy())
    }
}
