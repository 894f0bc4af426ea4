//! Controls when workers may begin events, and detects the end of a run.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Limits;
use crate::schedule::Schedule;

/// Permission to begin an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Running number over all workers, from 0.
    pub number: u64,
    /// When the event is due; its latency counts from here. `None` in a closed loop: when the worker is free, which is
    /// now.
    pub due: Option<Instant>,
}

/// State shared by the workers and the reporter.
#[derive(Debug)]
pub struct Gate {
    limits: Limits,
    started: OnceLock<Instant>,
    /// Tickets issued.
    taken: AtomicU64,
    /// Tickets that count towards the limit.
    counted: AtomicU64,
    /// Events that were begun.
    begun: AtomicU64,
    /// Events in progress.
    busy: AtomicU32,
    /// When issuing tickets was stopped by order, if it was.
    closed: OnceLock<Instant>,
    /// True when the state has a failure; cheap to poll.
    failed: AtomicBool,
    schedule: Option<Mutex<Schedule>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Workers that have not ended.
    running: u32,
    /// Workers that are ready to begin.
    ready: u32,
    /// When the last worker ended.
    finished: Option<Instant>,
    failure: Option<String>,
}

impl Gate {
    /// A closed gate for this many workers.
    #[must_use]
    pub fn new(limits: Limits, workers: u32) -> Self {
        Gate {
            schedule: limits.schedule().map(Mutex::new),
            limits,
            started: OnceLock::new(),
            taken: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            busy: AtomicU32::new(0),
            closed: OnceLock::new(),
            failed: AtomicBool::new(false),
            state: Mutex::new(State {
                running: workers,
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the gate: from now on events are begun.
    pub fn open(&self) -> Instant {
        let started = *self.started.get_or_init(Instant::now);
        self.changed.notify_all();
        started
    }

    /// When the gate was opened; `None` before.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// When no new event begins any more because of the time, independent of the number of events.
    #[must_use]
    pub fn end(&self) -> Option<Instant> {
        Some(*self.started.get()? + self.limits.warm_up + self.limits.time?)
    }

    /// When no new event begins any more, by the time or by order; `None` while unknown.
    #[must_use]
    pub fn over_at(&self) -> Option<Instant> {
        let ends = [self.end(), self.closed.get().copied()];
        ends.into_iter().flatten().min()
    }

    /// A ticket for a worker that is free now; `None` when the run is over.
    #[inline]
    pub fn take(&self, now: Instant) -> Option<Ticket> {
        if self.is_over(now) {
            return None;
        }
        let started = *self.started.get()?;
        let due = match &self.schedule {
            None => None,
            Some(schedule) => {
                let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
                Some(started.checked_add(Duration::from_nanos(schedule.take(0)?))?)
            }
        };
        let begins = due.map_or(now, |due| due.max(now));
        if let Some(events) = self.limits.events
            && begins.duration_since(started) >= self.limits.warm_up
            && self.counted.fetch_add(1, Ordering::Relaxed) >= events
        {
            return None;
        }
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        Some(Ticket { number, due })
    }

    /// Stops issuing tickets.
    pub fn close(&self) {
        self.closed.get_or_init(Instant::now);
    }

    /// True when issuing tickets was stopped, independent of the time.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// True when no event begins any more at `now`, so that an event which cannot end is not retried.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.is_closed() || self.end().is_some_and(|end| now >= end)
    }

    /// Called when a worker begins an event.
    #[inline]
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.go_on();
    }

    /// Called when a worker resumes an event that it had begun and could not end.
    #[inline]
    pub fn go_on(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// Called when a worker has ended an event.
    #[inline]
    pub fn done(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Called when a worker is ready to begin.
    pub fn ready(&self) {
        self.state().ready += 1;
        self.changed.notify_all();
    }

    /// Called when a worker has ended.
    pub fn finish(&self) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        if state.running == 0 {
            state.finished.get_or_insert_with(Instant::now);
        }
        self.changed.notify_all();
    }

    /// Called when a worker cannot continue, which ends the run. The first reason is kept.
    pub fn fail(&self, why: String) {
        self.close();
        self.state().failure.get_or_insert(why);
        self.failed.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// True when [`Gate::failure`] has a reason.
    #[inline]
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Why the run has failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Waits until `workers` are ready; false when they are not by the deadline, or one has failed.
    #[must_use]
    pub fn wait_until_ready(&self, workers: u32, deadline: Instant) -> bool {
        let state = self.wait(deadline, |state| {
            state.failure.is_some() || state.ready >= workers
        });
        state.failure.is_none() && state.ready >= workers
    }

    /// Blocks a worker until the gate is open; false when the run failed before.
    #[must_use]
    pub fn wait_until_open(&self) -> bool {
        let mut state = self.state();
        loop {
            if self.started.get().is_some() {
                return true;
            }
            if state.failure.is_some() {
                return false;
            }
            // The opener and the failing worker both notify; the time is a net under a missed word.
            let pause = Duration::from_millis(100);
            state = self
                .changed
                .wait_timeout(state, pause)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until all workers have ended or the run has failed, at most until `deadline`. Returns when the last one
    /// ended.
    #[must_use]
    pub fn wait_until_finished(&self, deadline: Instant) -> Option<Instant> {
        self.wait(deadline, |state| {
            state.failure.is_some() || state.finished.is_some()
        })
        .finished
    }

    fn wait(&self, deadline: Instant, is_enough: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while !is_enough(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state
    }

    /// Workers that have not ended.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.state().running
    }

    /// Workers inside an event.
    #[must_use]
    pub fn busy(&self) -> u32 {
        self.busy.load(Ordering::Relaxed)
    }

    /// Events that were begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Time after the start from which on arrivals are no longer events; `None` while unknown.
    pub(super) fn last_arrival(&self) -> Option<Duration> {
        Some(
            self.over_at()?
                .saturating_duration_since(*self.started.get()?),
        )
    }

    /// Largest possible number of events, including those begun, as known `elapsed` after the start; `None` for no
    /// limit.
    pub(super) fn events_max(&self, elapsed: Duration) -> Option<u64> {
        let limit = self
            .limits
            .events
            .filter(|_| elapsed >= self.limits.warm_up)?;
        let left = limit.saturating_sub(self.counted.load(Ordering::Relaxed));
        Some(self.taken.load(Ordering::Relaxed) + left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_as_many_events_are_begun_as_were_asked_for() {
        let gate = Gate::new(
            Limits {
                events: Some(1_000),
                ..Limits::ENDLESS
            },
            4,
        );
        assert_eq!(gate.take(Instant::now()), None, "the gate is closed");
        gate.open();
        let counts: Vec<usize> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| std::iter::from_fn(|| gate.take(Instant::now())).count()))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .collect()
        });
        assert_eq!(counts.iter().sum::<usize>(), 1_000);
    }

    #[test]
    fn nothing_is_begun_after_the_time() {
        let gate = Gate::new(
            Limits {
                time: Some(Duration::from_secs(3)),
                warm_up: Duration::from_secs(2),
                events: Some(1),
                ..Limits::ENDLESS
            },
            1,
        );
        let start = gate.open();
        let after = |seconds| gate.take(start + Duration::from_secs_f64(seconds));
        assert!(
            after(1.0).is_some() && after(1.9).is_some(),
            "the warm-up has no limit"
        );
        assert!(after(4.9).is_some());
        assert!(after(4.9).is_none(), "one event was asked for");
        assert!(after(5.0).is_none());
    }

    #[test]
    fn an_event_that_is_due_after_the_warm_up_counts_whenever_its_worker_was_free() {
        let limits = Limits {
            events: Some(1),
            warm_up: Duration::from_secs(5),
            per_second: Some(1.0),
            ..Limits::ENDLESS
        };
        let gate = Gate::new(limits, 1);
        let start = gate.open();
        let dues: Vec<Duration> = std::iter::from_fn(|| gate.take(start)?.due)
            .map(|due| due - start)
            .collect();
        let counted = dues.iter().filter(|due| **due >= limits.warm_up).count();
        assert_eq!(counted, 1, "{dues:?}");
    }

    #[test]
    fn a_failure_ends_every_wait_and_gives_no_more_tickets() {
        let gate = Gate::new(Limits::ENDLESS, 2);
        gate.ready();
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(!gate.wait_until_ready(2, soon));
        gate.fail("first".to_owned());
        gate.fail("second".to_owned());
        let late = Instant::now() + Duration::from_secs(60);
        assert!(!gate.wait_until_ready(2, late));
        assert!(!gate.wait_until_open());
        assert_eq!(gate.wait_until_finished(late), None);
        assert_eq!(gate.failure().as_deref(), Some("first"));
        gate.open();
        assert_eq!(gate.take(Instant::now()), None);
    }
}
