//! What is counted while a script runs: by each client for itself, added up when somebody looks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dbduel_record::latency::new_histogram;
use hdrhistogram::Histogram;

/// What a statement, an event or a script's own counting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Neither rows nor changes.
    Other,
    /// A statement that returned rows.
    Read,
    /// A statement that changed rows.
    Write,
    /// An event.
    Event,
    /// An error after which the event was tried again.
    Error,
    /// A connection that was made again.
    Reconnect,
    /// Bytes that a script says it read.
    BytesRead,
    /// Bytes that a script says it wrote.
    BytesWritten,
}

const COUNTERS: usize = Counter::BytesWritten as usize + 1;

impl Counter {
    /// The counter with that number in sysbench's C interface.
    pub(super) fn from_code(code: u32) -> Option<Self> {
        use Counter::{BytesRead, BytesWritten, Error, Event, Other, Read, Reconnect, Write};
        let all = [
            Other,
            Read,
            Write,
            Event,
            Error,
            Reconnect,
            BytesRead,
            BytesWritten,
        ];
        all.get(code as usize).copied()
    }
}

/// The counters of one client, written by its thread alone and read by any.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counters: [AtomicU64; COUNTERS],
    busy_ns: AtomicU64,
    pub(super) working: AtomicBool,
    pub(super) in_event: AtomicBool,
}

impl Meter {
    #[inline]
    pub(super) fn add(&self, counter: Counter, count: u64) {
        add(&self.counters[counter as usize], count);
    }

    /// An event is done.
    #[inline]
    pub(super) fn event(&self, busy_ns: u64) {
        self.add(Counter::Event, 1);
        add(&self.busy_ns, busy_ns);
    }

    fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Relaxed)
    }
}

/// There is one writer, so a sum needs no locked instruction.
#[inline]
fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Relaxed) + count, Relaxed);
}

/// What one client did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCounts {
    /// Events.
    pub events: u64,
    /// Time inside events, nanoseconds.
    pub busy_ns: u64,
}

/// What all clients did, from the beginning of the load until somebody looked.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Clients that are still at work.
    pub running: u32,
    /// Events.
    pub events: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Statements that did neither.
    pub other: u64,
    /// Errors after which the event was tried again.
    pub errors: u64,
    /// Connections that were made again.
    pub reconnects: u64,
    /// Bytes that scripts say they read.
    pub bytes_read: u64,
    /// Bytes that scripts say they wrote.
    pub bytes_written: u64,
    /// Events that are due and that no client has begun; always 0 without a rate.
    pub queue_length: u64,
    /// Events that clients are in.
    pub concurrency: u32,
    /// From due until done, nanoseconds.
    pub latencies: Histogram<u64>,
    /// Sum of the latencies, nanoseconds.
    pub latency_ns_sum: u64,
    /// By client.
    pub clients: Vec<ClientCounts>,
}

impl Counts {
    /// Adds the meters up.
    pub(super) fn of<'a>(elapsed: Duration, meters: impl Iterator<Item = &'a Meter>) -> Self {
        let mut counts = Counts {
            elapsed,
            running: 0,
            events: 0,
            reads: 0,
            writes: 0,
            other: 0,
            errors: 0,
            reconnects: 0,
            bytes_read: 0,
            bytes_written: 0,
            queue_length: 0,
            concurrency: 0,
            latencies: new_histogram(),
            latency_ns_sum: 0,
            clients: Vec::new(),
        };
        for meter in meters {
            let events = meter.get(Counter::Event);
            counts.running += u32::from(meter.working.load(Relaxed));
            counts.concurrency += u32::from(meter.in_event.load(Relaxed));
            counts.events += events;
            counts.reads += meter.get(Counter::Read);
            counts.writes += meter.get(Counter::Write);
            counts.other += meter.get(Counter::Other);
            counts.errors += meter.get(Counter::Error);
            counts.reconnects += meter.get(Counter::Reconnect);
            counts.bytes_read += meter.get(Counter::BytesRead);
            counts.bytes_written += meter.get(Counter::BytesWritten);
            counts.clients.push(ClientCounts {
                events,
                busy_ns: meter.busy_ns.load(Relaxed),
            });
        }
        counts
    }

    /// What happened after an earlier look at the same load: an interval, or all since a checkpoint.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut latencies = self.latencies.clone();
        // Fails only for counts that the later look does not have, and there are none.
        let _ = latencies.subtract(&earlier.latencies);
        let clients = self.clients.iter().enumerate().map(|(number, now)| {
            let before = earlier.clients.get(number).copied().unwrap_or_default();
            ClientCounts {
                events: now.events.saturating_sub(before.events),
                busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
            }
        });
        Counts {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            events: self.events.saturating_sub(earlier.events),
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            other: self.other.saturating_sub(earlier.other),
            errors: self.errors.saturating_sub(earlier.errors),
            reconnects: self.reconnects.saturating_sub(earlier.reconnects),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            bytes_written: self.bytes_written.saturating_sub(earlier.bytes_written),
            latency_ns_sum: self.latency_ns_sum.saturating_sub(earlier.latency_ns_sum),
            clients: clients.collect(),
            latencies,
            ..*self
        }
    }
}
