//! The slice that a load thread drives: its borders, its ticks, its processor time, its end.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{BeginSlice, Report};
use crate::executor::Polled;
use crate::executor::policy::CpuTime;
use crate::heartbeat::Heartbeat;
use crate::tally::Tally;
use crate::worker::{Pacing as _, Slice};

/// What a slice brought on one thread, or on several after merging.
#[derive(Debug)]
pub struct SliceReport {
    /// Counters and histograms.
    pub tally: Tally,
    /// What the thread used during the measured part.
    pub used: Used,
    /// From the end of the measured part until the last transaction in flight was done, or the drain
    /// was over.
    pub drained: Duration,
    /// How long the thread's loop stalled during the measured part, in gaps far beyond what it slept for; of several
    /// threads the longest, since what stops a process stops them all.
    pub stalled: Duration,
}

impl SliceReport {
    /// Adds what another thread brought.
    pub fn merge(&mut self, other: &SliceReport) {
        let SliceReport {
            tally,
            used,
            drained,
            stalled,
        } = other;
        self.tally.merge(tally);
        self.used = self.used.plus(*used);
        self.drained = self.drained.max(*drained);
        self.stalled = self.stalled.max(*stalled);
    }
}

/// What a load thread used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Processor time, polling included; its waits for a processor without those of polling, in which there was nothing to do.
    pub cpu: CpuTime,
    /// Processor time that it spent polling in vain.
    pub polled: Duration,
}

impl Used {
    /// By the calling thread so far, which has polled that long.
    fn so_far(polled: Polled) -> Self {
        let mut cpu = CpuTime::of_this_thread();
        cpu.waited_s -= polled.waited.as_secs_f64();
        Used {
            cpu,
            polled: polled.used,
        }
    }

    fn plus(self, other: Used) -> Self {
        Used {
            cpu: self.cpu.plus(other.cpu),
            polled: self.polled + other.polled,
        }
    }

    fn since(self, earlier: Used) -> Self {
        Used {
            cpu: CpuTime {
                // A processor that the machine below takes away is in the one and not in the other.
                waited_s: (self.cpu.waited_s - earlier.cpu.waited_s).max(0.0),
                ..self.cpu.since(earlier.cpu)
            },
            polled: self.polled - earlier.polled,
        }
    }
}

/// A slice between its order and its report.
pub(super) struct RunningSlice {
    contender: String,
    slice: Rc<Slice>,
    open_ns: u64,
    drain: Duration,
    /// None before the first look.
    heartbeat: Option<Heartbeat>,
    /// Before this there is nothing to look after.
    next_look: Option<Instant>,
    ticks_reported: usize,
    used_at_open: Option<Used>,
    used_at_close: Option<Used>,
    is_finish_reported: bool,
}

impl RunningSlice {
    pub(super) fn new(begin: BeginSlice) -> Self {
        let BeginSlice {
            contender,
            spec,
            tally,
            drain,
        } = begin;
        RunningSlice {
            contender,
            open_ns: tally.window().open_ns,
            slice: Rc::new(Slice::new(spec, tally)),
            drain,
            heartbeat: None,
            next_look: None,
            ticks_reported: 0,
            used_at_open: None,
            used_at_close: None,
            is_finish_reported: false,
        }
    }

    pub(super) fn contender(&self) -> &str {
        &self.contender
    }

    pub(super) fn slice(&self) -> &Rc<Slice> {
        &self.slice
    }

    /// Longest wait for transactions in flight at the end.
    pub(super) fn drain(&self) -> Duration {
        self.drain
    }

    /// Ends the measured part now.
    pub(super) fn stop(&mut self) {
        self.slice.stop();
        self.next_look = None;
    }

    /// True when [`RunningSlice::look`] has something to do. While the slice drains it always has,
    /// because any turn may have been the last client's last.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_look.is_none_or(|at| now >= at)
            || (self.slice.is_finished() && !self.is_finish_reported)
    }

    /// Passes the borders of ticks, guard and measured part, and reports when all is done, which is when
    /// all clients are parked or the drain is over. Returns when to look again; not at all, when the
    /// slice has been reported. `polled`: what the thread has polled in vain so far.
    pub(super) fn look(
        &mut self,
        now: Instant,
        parked: bool,
        polled: Polled,
        report: &impl Fn(Report),
    ) -> Option<Instant> {
        if self.slice.is_finished() && !self.is_finish_reported {
            self.is_finish_reported = true;
            report(Report::Finished);
        }
        let now_ns = self.slice.ns_of(now);
        let border_ns = self.pass_borders(now_ns, polled, report);
        let end_ns = self.slice.end_ns();
        let next_beat = self.beat(now, end_ns);
        if now_ns < end_ns {
            let border = self.slice.instant(border_ns.min(end_ns));
            self.next_look = Some(border.min(next_beat));
            return self.next_look;
        }
        self.next_look = None;
        let used_at_close = *self
            .used_at_close
            .get_or_insert_with(|| Used::so_far(polled));
        let end = self.slice.instant(end_ns);
        let drained = now.saturating_duration_since(end);
        if !parked && drained < self.drain {
            return Some(end + self.drain);
        }
        let used = self
            .used_at_open
            .map(|open| used_at_close.since(open))
            .unwrap_or_default();
        if let Some(tally) = self.slice.finish() {
            let drained = drained.min(self.drain);
            report(Report::Done(Box::new(SliceReport {
                tally,
                used,
                drained,
                stalled: self
                    .heartbeat
                    .as_ref()
                    .map(Heartbeat::stalled)
                    .unwrap_or_default(),
            })));
        }
        None
    }

    /// Looks for a gap since the last look; returns when the next one is due.
    fn beat(&mut self, now: Instant, end_ns: u64) -> Instant {
        let measured = self.slice.instant(self.open_ns)..self.slice.instant(end_ns);
        let heartbeat = self.heartbeat.get_or_insert_with(|| Heartbeat::new(now));
        heartbeat.beat(now, measured);
        heartbeat.next()
    }

    /// Reports the ticks that are over; returns when the next one will be.
    fn pass_borders(&mut self, now_ns: u64, polled: Polled, report: &impl Fn(Report)) -> u64 {
        let look = self.slice.look(now_ns, |tally| {
            for (index, tick) in tally.ticks().iter().enumerate().skip(self.ticks_reported) {
                let tick = tick.clone();
                report(Report::Tick { index, tick });
            }
            (
                tally.ticks().len(),
                tally.window().open_ns,
                tally.border_ns(),
            )
        });
        let Some((ticks, open_ns, border_ns)) = look else {
            return u64::MAX;
        };
        self.ticks_reported = ticks;
        if now_ns >= open_ns {
            self.used_at_open
                .get_or_insert_with(|| Used::so_far(polled));
        }
        border_ns
    }
}
