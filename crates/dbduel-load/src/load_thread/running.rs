//! The slice that a load thread drives: its ends, its ticks, its processor time.

use std::rc::Rc;
use std::time::{Duration, Instant};

use dbduel_client::tally::Tally;
use dbduel_client::{RunClock as _, Slice};
use dbduel_driver::executor::Polled;
use dbduel_driver::executor::policy::CpuTime;

use super::{BeginSlice, Report};
use crate::heartbeat::{Gaps, Heartbeat, common_gaps};

/// Results of a slice on one thread, or on several after merging.
#[derive(Debug)]
pub struct SliceReport {
    /// Counters and histograms.
    pub tally: Tally,
    /// Resources of the thread during the measured part.
    pub used: Used,
    /// From the end of the measured part until the last transaction in flight was done, or the drain
    /// was over.
    pub drained: Duration,
    /// How long the thread's loop stalled during the measured part, in gaps far longer than its sleeps; of several
    /// threads the longest, since a stop of the process stops them all.
    pub stalled: Duration,
    /// Gaps of the thread's loop; of several threads their intersection.
    pub(crate) gaps: Gaps,
}

impl SliceReport {
    /// Adds the results of another thread.
    pub fn merge(&mut self, other: &SliceReport) {
        let SliceReport {
            tally,
            used,
            drained,
            stalled,
            gaps,
        } = other;
        self.tally.merge(tally);
        self.used = self.used.plus(*used);
        self.drained = self.drained.max(*drained);
        self.stalled = self.stalled.max(*stalled);
        self.gaps = common_gaps(&self.gaps, gaps);
    }
}

/// Resources used by a load thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Processor time, polling included; waits for a processor, except those while polling, when there was nothing to
    /// do.
    pub cpu: CpuTime,
    /// Processor time spent polling without result.
    pub polled: Duration,
}

impl Used {
    /// Use of the calling thread so far, with `polled` spent polling.
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
    /// Shared, because every look takes it, some twenty times a second: load threads do not allocate while they
    /// measure.
    contender: Rc<str>,
    slice: Rc<Slice>,
    open_ns: u64,
    drain: Duration,
    /// `None` before the first look.
    heartbeat: Option<Heartbeat>,
    /// Time before which no look is needed.
    next_look: Option<Instant>,
    ticks_reported: usize,
    used_at_open: Option<Used>,
    is_finish_reported: bool,
    is_drain_reported: bool,
}

impl RunningSlice {
    pub(super) fn new(begin: BeginSlice) -> Self {
        let BeginSlice {
            contender,
            spec,
            close_ns,
            tally,
            drain,
        } = begin;
        RunningSlice {
            contender: contender.into(),
            open_ns: tally.window().open_ns,
            slice: Rc::new(Slice::new(spec, close_ns, tally)),
            drain,
            heartbeat: None,
            next_look: None,
            ticks_reported: 0,
            used_at_open: None,
            is_finish_reported: false,
            is_drain_reported: false,
        }
    }

    pub(super) fn contender(&self) -> &Rc<str> {
        &self.contender
    }

    pub(super) fn slice(&self) -> &Rc<Slice> {
        &self.slice
    }

    /// Longest wait for transactions after the planned end.
    pub(super) fn drain(&self) -> Duration {
        self.drain
    }

    /// Moves the planned end to now.
    pub(super) fn stop(&mut self) {
        self.slice.stop();
        self.next_look = None;
    }

    /// True when [`RunningSlice::look`] has work. Always true until the end of the drain is reported, because any turn
    /// may be the last one of the last awaited transaction.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_look.is_none_or(|at| now >= at)
            || (self.slice.is_finished() && !self.is_finish_reported)
    }

    /// Passes the ends of ticks and guard, and reports when every transaction due before the planned end has ended or
    /// the wait for them is over. Returns when to look again. `polled`: time that the thread has polled without result
    /// so far.
    pub(super) fn look(
        &mut self,
        now: Instant,
        polled: Polled,
        report: &impl Fn(Report),
    ) -> Instant {
        if self.slice.is_finished() && !self.is_finish_reported {
            self.is_finish_reported = true;
            report(Report::Finished);
        }
        let now_ns = self.slice.ns_of(now);
        let border = self.pass_borders(now_ns, polled, report);
        let close = self.slice.instant(self.slice.close_ns());
        let next_look = border.min(self.beat(now));
        if now < close {
            self.next_look = Some(next_look.min(close));
            return next_look.min(close);
        }
        let given_up = close + self.drain;
        if !self.is_drain_reported {
            let in_time = self.slice.is_drained(now_ns);
            if in_time || now >= given_up {
                self.is_drain_reported = true;
                report(Report::Drained { in_time });
            }
        }
        self.next_look = self.is_drain_reported.then_some(next_look);
        match self.is_drain_reported {
            true => next_look,
            false => next_look.min(given_up),
        }
    }

    /// Ends the slice and reports its counts.
    pub(super) fn end(&mut self, now: Instant, polled: Polled, report: &impl Fn(Report)) {
        let used = self
            .used_at_open
            .map(|open| Used::so_far(polled).since(open))
            .unwrap_or_default();
        let close = self.slice.instant(self.slice.close_ns());
        let now_ns = self.slice.ns_of(now);
        if let Some(tally) = self.slice.finish(now_ns) {
            self.report_ticks(&tally, report);
            report(Report::Done(Box::new(SliceReport {
                tally,
                used,
                drained: now.saturating_duration_since(close),
                stalled: self
                    .heartbeat
                    .as_ref()
                    .map(Heartbeat::stalled)
                    .unwrap_or_default(),
                gaps: self
                    .heartbeat
                    .as_ref()
                    .map(|heartbeat| heartbeat.gaps().clone())
                    .unwrap_or_default(),
            })));
        }
    }

    /// Checks for a gap since the last look; returns when the next check is due.
    fn beat(&mut self, now: Instant) -> Instant {
        // What a thread that looks is late by lies before now.
        let measured = self.slice.instant(self.open_ns)..now;
        let heartbeat = self.heartbeat.get_or_insert_with(|| Heartbeat::new(now));
        heartbeat.beat(now, measured);
        heartbeat.next()
    }

    /// Reports the finished ticks; returns the end of the next one.
    fn pass_borders(&mut self, now_ns: u64, polled: Polled, report: &impl Fn(Report)) -> Instant {
        let slice = Rc::clone(&self.slice);
        let border_ns = slice.look(now_ns, |tally| {
            self.report_ticks(tally, report);
            tally.border_ns()
        });
        if now_ns >= self.open_ns {
            self.used_at_open
                .get_or_insert_with(|| Used::so_far(polled));
        }
        // A tick that never ends is no reason to look.
        let border_ns = border_ns.filter(|border_ns| *border_ns < u64::MAX);
        slice.instant(border_ns.unwrap_or(slice.close_ns() + self.drain.as_nanos() as u64))
    }

    fn report_ticks(&mut self, tally: &Tally, report: &impl Fn(Report)) {
        for (index, tick) in tally.ticks().iter().enumerate().skip(self.ticks_reported) {
            let tick = tick.clone();
            report(Report::Tick { index, tick });
        }
        self.ticks_reported = tally.ticks().len();
    }
}
