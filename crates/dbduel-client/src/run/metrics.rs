//! Metrics of a run's workers, readable while they run.
//!
//! A meter per worker and a page of latencies per thread, so that two threads never wait for each other; the reporter
//! takes the new entries and adds them up itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::counts::{Counts, Meter};
use super::interval_stats::{IntervalStats, Share};

/// Metrics of a run.
#[derive(Debug)]
pub struct RunMetrics {
    /// By worker number.
    meters: Vec<Arc<Meter>>,
    pages: Vec<Mutex<Page>>,
    /// Counters at the last call of [`RunMetrics::take`].
    taken: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Page {
    /// Events and latencies only.
    fresh: IntervalStats,
    /// Of the workers `page`, `page + pages`, …
    shares: Vec<Share>,
}

impl RunMetrics {
    /// Empty metrics for this many workers on this many threads; worker n is on thread n mod `threads`.
    #[must_use]
    pub fn new(workers: u32, threads: u32) -> Self {
        let (workers, threads) = (workers as usize, threads.max(1) as usize);
        let pages = (0..threads)
            .map(|page| {
                let shares = (page..workers).step_by(threads).count();
                Mutex::new(Page {
                    fresh: IntervalStats::default(),
                    shares: vec![Share::default(); shares],
                })
            })
            .collect();
        RunMetrics {
            meters: (0..workers).map(|_| Arc::default()).collect(),
            pages,
            taken: Mutex::default(),
        }
    }

    /// The counters of a worker for use between the ends of its events.
    #[must_use]
    pub fn meter(&self, worker: u32) -> Arc<Meter> {
        let meter = self.meters.get(worker as usize);
        meter.map_or_else(Arc::default, Arc::clone)
    }

    fn page(&self, worker: u32) -> MutexGuard<'_, Page> {
        let page = &self.pages[worker as usize % self.pages.len()];
        page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when a worker has done an event; `counts` are the counters not yet added, without the event itself.
    #[inline]
    pub fn event(&self, worker: u32, counts: Counts, latency_ns: u64) {
        self.add(worker, counts);
        let share = worker as usize / self.pages.len();
        let mut page = self.page(worker);
        page.fresh.count(latency_ns);
        if let Some(share) = page.shares.get_mut(share) {
            share.count(latency_ns);
        }
    }

    /// Called when a worker has counted something outside an event.
    #[inline]
    pub fn add(&self, worker: u32, counts: Counts) {
        if let Some(meter) = self.meters.get(worker as usize) {
            meter.add(counts);
        }
    }

    /// Moves the counts since the last call into `fresh`, which is emptied first.
    pub fn take(&self, fresh: &mut IntervalStats) {
        fresh.clear();
        for page in &self.pages {
            let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.merge(&page.fresh);
            page.fresh.clear();
        }
        // Held while the meters are read: of two who take at the same time the second must not see less than the first.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = Counts::NONE;
        for meter in &self.meters {
            shown += meter.counts();
        }
        fresh.counts += shown - std::mem::replace(&mut *taken, shown);
    }

    /// The workers' shares, by their number.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut shares = vec![Share::default(); self.meters.len()];
        for (number, page) in self.pages.iter().enumerate() {
            let page = page.lock().unwrap_or_else(PoisonError::into_inner);
            for (slot, share) in shares[number.min(self.meters.len())..]
                .iter_mut()
                .step_by(self.pages.len())
                .zip(&page.shares)
            {
                *slot = *share;
            }
        }
        shares
    }

    /// Resets the shares.
    pub fn reset_shares(&self) {
        for page in &self.pages {
            let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
            page.shares.fill(Share::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_counted_since() {
        let metrics = RunMetrics::new(3, 2);
        let read = Counts {
            reads: 2,
            ..Counts::default()
        };
        metrics.event(0, read, 5_000_000);
        metrics.event(2, read, 1_000_000);
        let mut fresh = IntervalStats::default();
        metrics.take(&mut fresh);
        assert_eq!((fresh.counts.events, fresh.counts.reads), (2, 4));
        assert_eq!(
            (fresh.latency_ns_min, fresh.latency_ns_max),
            (1_000_000, 5_000_000)
        );
        metrics.event(1, Counts::default(), 7);
        metrics.add(1, read);
        metrics.take(&mut fresh);
        assert_eq!((fresh.counts.events, fresh.counts.reads), (1, 2));
        assert_eq!(fresh.latency_ns_sum, 7);
        let events: Vec<u64> = metrics.shares().iter().map(|share| share.events).collect();
        assert_eq!(events, [1, 1, 1]);
        metrics.reset_shares();
        assert_eq!(metrics.shares(), vec![Share::default(); 3]);
    }

    #[test]
    fn more_threads_than_workers_do_no_harm() {
        let metrics = RunMetrics::new(1, 4);
        metrics.event(0, Counts::default(), 1);
        assert_eq!(metrics.shares().len(), 1);
        assert_eq!(metrics.shares()[0].events, 1);
    }
}
