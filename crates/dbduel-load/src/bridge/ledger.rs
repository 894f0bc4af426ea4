//! What the workers of a run count, readable while they run.
//!
//! A page per thread, so that two threads never wait for each other; whoever reports takes what is new and adds it up
//! itself. Knows no clock and no text.

use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbduel_record::latency::new_histogram;
use hdrhistogram::Histogram;

/// Counters. What a test does not have stays 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were done.
    pub events: u64,
    /// Statements that returned rows; reads of a file.
    pub reads: u64,
    /// Statements that changed rows; writes of a file.
    pub writes: u64,
    /// Statements that did neither; a file's syncs.
    pub others: u64,
    /// Errors after which an event was tried again.
    pub errors: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        // Taken apart by name, so that a new counter cannot be forgotten.
        let Counts {
            events,
            reads,
            writes,
            others,
            errors,
            reconnects,
            bytes_read,
            bytes_written,
        } = other;
        self.events += events;
        self.reads += reads;
        self.writes += writes;
        self.others += others;
        self.errors += errors;
        self.reconnects += reconnects;
        self.bytes_read += bytes_read;
        self.bytes_written += bytes_written;
    }
}

/// A stretch of a run, all workers together.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Counters.
    pub counts: Counts,
    /// Sum of the events' latencies, nanoseconds.
    pub latency_ns_sum: u64,
    /// Smallest latency, nanoseconds; `u64::MAX` when there are none.
    pub latency_ns_min: u64,
    /// Largest latency, nanoseconds.
    pub latency_ns_max: u64,
    /// The latencies, to three significant digits.
    pub latencies: Histogram<u64>,
}

impl Default for Stretch {
    fn default() -> Self {
        Stretch {
            counts: Counts::default(),
            latency_ns_sum: 0,
            latency_ns_min: u64::MAX,
            latency_ns_max: 0,
            latencies: new_histogram(),
        }
    }
}

impl Stretch {
    #[inline]
    fn count(&mut self, counts: Counts, latency_ns: u64) {
        self.counts += counts;
        self.latency_ns_sum += latency_ns;
        self.latency_ns_min = self.latency_ns_min.min(latency_ns);
        self.latency_ns_max = self.latency_ns_max.max(latency_ns);
        self.latencies.saturating_record(latency_ns);
    }

    /// Adds another stretch.
    pub fn merge(&mut self, other: &Stretch) {
        let Stretch {
            counts,
            latency_ns_sum,
            latency_ns_min,
            latency_ns_max,
            latencies,
        } = other;
        self.counts += *counts;
        self.latency_ns_sum += latency_ns_sum;
        self.latency_ns_min = self.latency_ns_min.min(*latency_ns_min);
        self.latency_ns_max = self.latency_ns_max.max(*latency_ns_max);
        self.latencies
            .add(latencies)
            .expect("all histograms of the project have the same bounds");
    }

    /// Empties the stretch, keeping its memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.latency_ns_sum = 0;
        self.latency_ns_min = u64::MAX;
        self.latency_ns_max = 0;
        self.latencies.reset();
    }

    /// The latency that `percent` of the events do not exceed, nanoseconds; 0 when there are none.
    #[must_use]
    pub fn quantile_ns(&self, percent: u32) -> u64 {
        if self.latencies.is_empty() {
            return 0;
        }
        let value = self.latencies.value_at_quantile(f64::from(percent) / 100.0);
        // The ends are known exactly, and no quantile lies beyond them.
        value.clamp(self.latency_ns_min, self.latency_ns_max)
    }
}

/// What one worker did since the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Events.
    pub events: u64,
    /// Sum of their latencies, nanoseconds.
    pub ns: u64,
    /// Smallest latency, nanoseconds.
    pub ns_min: u64,
    /// Largest latency, nanoseconds.
    pub ns_max: u64,
}

impl Share {
    fn count(&mut self, latency_ns: u64) {
        self.ns_min = match self.events {
            0 => latency_ns,
            _ => self.ns_min.min(latency_ns),
        };
        self.events += 1;
        self.ns += latency_ns;
        self.ns_max = self.ns_max.max(latency_ns);
    }
}

/// What the workers count.
#[derive(Debug)]
pub struct Ledger {
    pages: Vec<Mutex<Page>>,
    workers: usize,
}

#[derive(Debug, Default)]
struct Page {
    fresh: Stretch,
    /// Of the workers `page`, `page + pages`, …
    shares: Vec<Share>,
}

impl Ledger {
    /// An empty ledger for so many workers on so many threads; worker n is on thread n mod `threads`.
    #[must_use]
    pub fn new(workers: u32, threads: u32) -> Self {
        let (workers, threads) = (workers as usize, threads.max(1) as usize);
        let pages = (0..threads)
            .map(|page| {
                let shares = (page..workers).step_by(threads).count();
                Mutex::new(Page {
                    fresh: Stretch::default(),
                    shares: vec![Share::default(); shares],
                })
            })
            .collect();
        Ledger { pages, workers }
    }

    fn page(&self, worker: u32) -> MutexGuard<'_, Page> {
        let page = &self.pages[worker as usize % self.pages.len()];
        page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has done an event, which `counts` does not yet include.
    #[inline]
    pub fn event(&self, worker: u32, counts: Counts, latency_ns: u64) {
        let share = worker as usize / self.pages.len();
        let mut page = self.page(worker);
        let events = counts.events + 1;
        page.fresh.count(Counts { events, ..counts }, latency_ns);
        if let Some(share) = page.shares.get_mut(share) {
            share.count(latency_ns);
        }
    }

    /// A worker has counted something outside of an event.
    pub fn add(&self, worker: u32, counts: Counts) {
        self.page(worker).fresh.counts += counts;
    }

    /// What was counted since the last call, moved into `fresh`, which is emptied first.
    pub fn take(&self, fresh: &mut Stretch) {
        fresh.clear();
        for page in &self.pages {
            let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.merge(&page.fresh);
            page.fresh.clear();
        }
    }

    /// The workers' shares, by their number.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut shares = vec![Share::default(); self.workers];
        for (number, page) in self.pages.iter().enumerate() {
            let page = page.lock().unwrap_or_else(PoisonError::into_inner);
            for (slot, share) in shares[number.min(self.workers)..]
                .iter_mut()
                .step_by(self.pages.len())
                .zip(&page.shares)
            {
                *slot = *share;
            }
        }
        shares
    }

    /// Begins the shares anew.
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
        let ledger = Ledger::new(3, 2);
        let read = Counts {
            reads: 2,
            ..Counts::default()
        };
        ledger.event(0, read, 5_000_000);
        ledger.event(2, read, 1_000_000);
        let mut fresh = Stretch::default();
        ledger.take(&mut fresh);
        assert_eq!((fresh.counts.events, fresh.counts.reads), (2, 4));
        assert_eq!(
            (fresh.latency_ns_min, fresh.latency_ns_max),
            (1_000_000, 5_000_000)
        );
        ledger.event(1, Counts::default(), 7);
        ledger.add(1, read);
        ledger.take(&mut fresh);
        assert_eq!((fresh.counts.events, fresh.counts.reads), (1, 2));
        assert_eq!(fresh.latency_ns_sum, 7);
        let events: Vec<u64> = ledger.shares().iter().map(|share| share.events).collect();
        assert_eq!(events, [1, 1, 1]);
        ledger.reset_shares();
        assert_eq!(ledger.shares(), vec![Share::default(); 3]);
    }

    #[test]
    fn quantiles_never_lie_outside_of_what_was_seen() {
        let mut stretch = Stretch::default();
        assert_eq!(stretch.quantile_ns(95), 0);
        for latency in [200, 300, 12_345_678] {
            stretch.count(Counts::default(), latency);
        }
        assert_eq!(stretch.quantile_ns(100), 12_345_678);
        assert!(stretch.quantile_ns(0) >= 200);
    }

    #[test]
    fn more_threads_than_workers_do_no_harm() {
        let ledger = Ledger::new(1, 4);
        ledger.event(0, Counts::default(), 1);
        assert_eq!(ledger.shares().len(), 1);
        assert_eq!(ledger.shares()[0].events, 1);
    }
}
