//! Runs a test of the machine: one thread per worker, which takes events until there are no more.
//!
//! Independent of the test; sleeps until an event is due and reads the clock around it.

use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use dbduel_client::run::{Counts, Gate, RunMetrics, Ticket};

use crate::machine::{Machine, Next};

/// Interval at which a sleeping worker checks whether the run has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// Starts the workers, which wait until the gate opens. They end by themselves and are not joined, because an event has
/// no time limit and a run may be forced to end before.
///
/// # Errors
/// When a thread cannot be created. Threads already started end without doing anything.
pub fn start(
    test: &Arc<dyn Machine>,
    workers: u32,
    stack_bytes: usize,
    run_gate: &Arc<Gate>,
    metrics: &Arc<RunMetrics>,
) -> io::Result<()> {
    for number in 0..workers {
        let (test, gate, metrics) = (Arc::clone(test), Arc::clone(run_gate), Arc::clone(metrics));
        let started = Builder::new()
            .name(format!("worker-{number}"))
            .stack_size(stack_bytes)
            .spawn(move || {
                // Ends the worker for the gate, also when it panics.
                let _presence = Presence(&gate);
                work(&*test, number, &gate, &metrics);
            });
        if let Err(error) = started {
            run_gate.fail(format!("cannot start worker {number}: {error}"));
            return Err(error);
        }
    }
    Ok(())
}

struct Presence<'a>(&'a Gate);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .fail("a worker panicked; this is a fault of dbduel".to_owned());
        }
        self.0.finish();
    }
}

fn work(test: &dyn Machine, number: u32, gate: &Gate, metrics: &RunMetrics) {
    let mut worker = match test.worker(number) {
        Ok(worker) => worker,
        Err(why) => return gate.fail(why),
    };
    gate.ready();
    if !gate.wait_until_open() {
        return;
    }
    let mut now = Instant::now();
    while let Some(Ticket {
        number: ticket,
        due,
    }) = gate.take(now)
    {
        if let Some(due) = due {
            if !sleep_until(due, gate) {
                break;
            }
            now = Instant::now();
        }
        let due = due.unwrap_or(now);
        gate.begin();
        let mut counts = Counts::default();
        let next = worker.event(ticket, &mut counts);
        gate.done();
        match next {
            Ok(Next::Done) => {
                now = Instant::now();
                let latency = now.saturating_duration_since(due).as_nanos();
                metrics.event(number, counts, u64::try_from(latency).unwrap_or(u64::MAX));
            }
            Ok(Next::NoMore) => break,
            Err(why) => return gate.fail(why),
        }
    }
    let mut counts = Counts::default();
    if let Err(why) = worker.finish(&mut counts) {
        gate.fail(why);
    }
    metrics.add(number, counts);
}

/// False when the run ended before.
fn sleep_until(due: Instant, gate: &Gate) -> bool {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if gate.is_closed() {
            return false;
        }
        std::thread::sleep(left.min(PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::machine::Worker;
    use dbduel_client::run::{IntervalStats, Limits};

    /// Sleeps in each event; worker 1 has only three of them.
    struct Sleepers {
        length: Duration,
        /// The first event of worker 0 ends after the last one of worker 1.
        first_waits: bool,
        is_used_up: AtomicBool,
    }

    struct Sleeper<'a> {
        of: &'a Sleepers,
        number: u32,
        left: u64,
    }

    impl Machine for Sleepers {
        fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String> {
            let left = if number == 1 { 3 } else { u64::MAX };
            Ok(Box::new(Sleeper {
                of: self,
                number,
                left,
            }))
        }
    }

    impl Worker for Sleeper<'_> {
        fn event(&mut self, _number: u64, counts: &mut Counts) -> Result<Next, String> {
            if self.left == 0 {
                self.of.is_used_up.store(true, Ordering::Relaxed);
                return Ok(Next::NoMore);
            }
            self.left -= 1;
            counts.writes += 1;
            let waits = || self.of.first_waits && !self.of.is_used_up.load(Ordering::Relaxed);
            loop {
                std::thread::sleep(self.of.length);
                if self.number != 0 || !waits() {
                    return Ok(Next::Done);
                }
            }
        }

        fn finish(&mut self, counts: &mut Counts) -> Result<(), String> {
            counts.others += 1;
            Ok(())
        }
    }

    fn run(sleepers: Sleepers, limits: Limits) -> (IntervalStats, Vec<u64>, Duration) {
        let test: Arc<dyn Machine> = Arc::new(sleepers);
        let (gate, metrics) = (
            Arc::new(Gate::new(limits, 2)),
            Arc::new(RunMetrics::new(2, 2)),
        );
        start(&test, 2, 1 << 20, &gate, &metrics).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        assert!(gate.wait_until_ready(2, deadline));
        let began = gate.open();
        let ended = gate.wait_until_finished(deadline).unwrap();
        let mut interval_stats = IntervalStats::default();
        metrics.take(&mut interval_stats);
        let events = metrics.shares().iter().map(|share| share.events).collect();
        (interval_stats, events, ended - began)
    }

    #[test]
    fn workers_end_at_the_limit_or_when_they_have_no_more() {
        let limits = Limits {
            events: Some(20),
            time: None,
            per_second: None,
            warm_up: Duration::ZERO,
            seed: 1,
        };
        // Otherwise worker 0 might have taken all tickets before worker 1 begins.
        let sleepers = Sleepers {
            length: Duration::from_millis(2),
            first_waits: true,
            is_used_up: AtomicBool::new(false),
        };
        let (interval_stats, events, _) = run(sleepers, limits);
        assert_eq!(events[1], 3);
        // The ticket that worker 1 could not use is gone.
        assert_eq!(interval_stats.counts.events, 19);
        assert_eq!(
            (interval_stats.counts.writes, interval_stats.counts.others),
            (19, 2)
        );
    }

    #[test]
    fn an_event_that_runs_at_the_end_is_finished_and_the_wait_for_a_due_one_counts() {
        let limits = Limits {
            events: None,
            time: Some(Duration::from_millis(300)),
            per_second: Some(1_000.0),
            warm_up: Duration::ZERO,
            seed: 1,
        };
        // One worker that takes 10 ms for what falls due every millisecond. Its last event ends after the run, and 30 are the
        // most that it can have had before; on a busy machine the run may be over before the first.
        let sleepers = || Sleepers {
            length: Duration::from_millis(10),
            first_waits: false,
            is_used_up: AtomicBool::new(false),
        };
        let (interval_stats, _, took) = (0..100)
            .map(|_| run(sleepers(), limits))
            .find(|(_, events, _)| events[0] > 0)
            .unwrap();
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert!(
            interval_stats.latency_ns_max > 150_000_000,
            "{}",
            interval_stats.latency_ns_max
        );
    }
}
