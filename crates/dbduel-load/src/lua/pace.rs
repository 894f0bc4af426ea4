//! When a client of a load may begin its next event, and how long the last one took.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;

use super::counts::Meter;
use super::load::LoadSettings;
use crate::executor::{Reactor, Token, turn};
use crate::schedule::Schedule;

/// What all threads of a load share.
pub(super) struct Course {
    pub(super) settings: LoadSettings,
    /// When the load began; set once.
    pub(super) start: OnceLock<Instant>,
    /// No new events.
    pub(super) stopped: AtomicBool,
    /// Events claimed, when their number is limited.
    claimed: AtomicU64,
}

impl Course {
    pub(super) fn new(settings: LoadSettings) -> Self {
        Course {
            settings,
            start: OnceLock::new(),
            stopped: AtomicBool::new(false),
            claimed: AtomicU64::new(0),
        }
    }

    fn start(&self) -> Instant {
        self.start.get().copied().unwrap_or_else(Instant::now)
    }

    /// Nanoseconds since the beginning.
    fn now_ns(&self) -> u64 {
        self.start().elapsed().as_nanos() as u64
    }

    /// When nothing new is begun any more, nanoseconds; warm-up included.
    pub(super) fn end_ns(&self) -> u64 {
        let LoadSettings { time, warmup, .. } = self.settings;
        time.map_or(u64::MAX, |time| (time + warmup).as_nanos() as u64)
    }

    /// True when one more event is within the limit. Events of the warm-up are not limited.
    fn claim(&self, now_ns: u64) -> bool {
        let limit = self.settings.events;
        limit == 0
            || now_ns < self.settings.warmup.as_nanos() as u64
            || self.claimed.fetch_add(1, Relaxed) < limit
    }
}

/// What the clients of one thread share.
pub(super) struct ThreadPart {
    pub(super) latencies: Arc<Mutex<Latencies>>,
    /// Present with a rate, from the beginning on.
    pub(super) schedule: RefCell<Option<Schedule>>,
}

/// Latencies of the events of one thread.
pub(super) struct Latencies {
    pub(super) histogram: Histogram<u64>,
    pub(super) ns_sum: u64,
}

/// The clock of one client.
pub(super) struct Pace {
    pub(super) course: Arc<Course>,
    pub(super) part: Rc<ThreadPart>,
    pub(super) meter: Arc<Meter>,
    pub(super) reactor: Rc<Reactor>,
    pub(super) token: Token,
    /// When the event that is allowed next was due; with a rate alone.
    pub(super) due_ns: Option<u64>,
    /// When the running event was due.
    pub(super) running_since_ns: Option<u64>,
}

impl Pace {
    /// The running event is done, and the next one begins if there may be one. Both at the same instant, so a client
    /// that is never idle reads the clock once per event.
    pub(super) async fn next(&mut self) -> bool {
        let now_ns = self.course.now_ns();
        self.stop_at(now_ns);
        let more = self.more_at(now_ns).await;
        if more {
            self.start_at(now_ns);
        }
        more
    }

    /// May there be another event? Waits until it is due.
    pub(super) async fn more(&mut self) -> bool {
        self.more_at(self.course.now_ns()).await
    }

    pub(super) fn start(&mut self) {
        self.start_at(self.course.now_ns());
    }

    pub(super) fn stop(&mut self) {
        self.stop_at(self.course.now_ns());
    }

    /// The running event is not counted.
    pub(super) fn abandon(&mut self) {
        self.running_since_ns = None;
        self.meter.in_event.store(false, Relaxed);
    }

    async fn more_at(&mut self, now_ns: u64) -> bool {
        self.due_ns = None;
        if self.course.stopped.load(Relaxed) || now_ns >= self.course.end_ns() {
            return false;
        }
        let due = match &mut *self.part.schedule.borrow_mut() {
            None => None,
            Some(schedule) => match schedule.take(now_ns) {
                None => return false,
                due => due,
            },
        };
        if let Some(due_ns) = due
            && !self.wait_until(due_ns).await
        {
            return false;
        }
        self.due_ns = due;
        self.course.claim(due.unwrap_or(now_ns))
    }

    /// False when the load was stopped meanwhile.
    async fn wait_until(&self, due_ns: u64) -> bool {
        let at = self.course.start() + std::time::Duration::from_nanos(due_ns);
        if Instant::now() < at {
            self.reactor.wake_at(self.token, at);
        }
        while Instant::now() < at {
            turn().await;
            if self.course.stopped.load(Relaxed) {
                return false;
            }
        }
        true
    }

    fn start_at(&mut self, now_ns: u64) {
        self.running_since_ns = Some(self.due_ns.take().unwrap_or(now_ns));
        self.meter.in_event.store(true, Relaxed);
    }

    fn stop_at(&mut self, now_ns: u64) {
        let Some(since_ns) = self.running_since_ns.take() else {
            return;
        };
        let latency_ns = now_ns.saturating_sub(since_ns);
        self.meter.event(latency_ns);
        self.meter.in_event.store(false, Relaxed);
        let mut latencies = self
            .part
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        latencies.histogram.saturating_record(latency_ns);
        latencies.ns_sum += latency_ns;
    }
}
