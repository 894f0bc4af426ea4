//! A run's load as the one sees it who reports about it: the gate that its workers go through and what they count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_client::run::{Gate, IntervalStats, Queue, RunMetrics, Share};

use crate::bridge::LoadThreads;

use super::general::General;

/// A load that is ready to begin, or running.
pub struct Load {
    /// Who may begin an event.
    pub gate: Arc<Gate>,
    /// What is counted.
    pub metrics: Arc<RunMetrics>,
    /// The event loops that must hear of changes; none for machine tests.
    pub threads: Option<LoadThreads>,
    queue: Option<Queue>,
    /// Nothing reached a server, so nothing was read or written.
    pub is_dry: bool,
}

impl Load {
    /// A load of as many workers as there are to be clients, on so many threads.
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

    /// Begins no event any more.
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

    /// What each client did since the last reset.
    pub fn shares(&self) -> Vec<Share> {
        self.metrics.shares()
    }

    /// Restarts the shares.
    pub fn reset_shares(&self) {
        self.metrics.reset_shares();
    }

    /// Events that are due and not begun after so long, and those that are running.
    pub fn queue(&mut self, elapsed: Duration) -> (u64, u32) {
        let waiting = match &mut self.queue {
            Some(queue) => queue.length(elapsed, &self.gate),
            None => 0,
        };
        (waiting, self.gate.busy())
    }
}
