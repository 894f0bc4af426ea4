//! The loop of a run: start, reports and end.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dbduel_client::run::{Gate, IntervalStats};
use dbduel_driver::cancel::Cancel;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_text::terminal;

use super::Stop;
use super::general::General;
use super::load::Load;
use super::page::{self, Style, View};

/// Exit code of a run that was forced to end, or was not ready in time.
const TIMED_OUT: u8 = 2;
/// The exit code of a run that the user ended.
pub const INTERRUPTED: u8 = 130;
/// Longest time between two checks of the run and of signals.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time for a running hook after the user interrupts.
const HOOK: Duration = Duration::from_secs(3);
/// Longest time for the events that are running at an interrupt.
const RUNNING_EVENTS: Duration = Duration::from_secs(4);
/// Longest time from an interrupt until the process ends, whatever holds it up.
const END: Duration = Duration::from_secs(5);
/// The same after a second request.
const END_AT_ONCE: Duration = Duration::from_millis(500);

/// Events that may wait for a worker at a rate, as in sysbench.
const QUEUE_MAX: u64 = 131_072;
/// sysbench's message for a rate that the workers cannot keep.
const OVERLOADED: &str = "The event queue is full. This means the worker threads are unable to keep up with the specified event generation rate";

/// Printer of the reports of a run.
pub trait Reports {
    /// Kind of lines in the reports.
    fn style(&self) -> Style;

    /// Called when the run begins.
    fn belong_to(&mut self, _gate: &Arc<Gate>) {}

    /// A cancel that ends a report's wait.
    fn cancel(&self) -> Cancel {
        Cancel::never()
    }

    /// Called after the last intermediate report, before anything else is printed: closes what these reports have
    /// opened.
    fn end_intermediate(&mut self) {}

    /// Prints a report in its own way; false when the standard one is to be printed.
    ///
    /// # Errors
    /// An error raised by a script.
    fn report(&mut self, kind: Report, stat: &[(&str, f64)]) -> Result<bool, Stop>;
}

impl Reports for Style {
    fn style(&self) -> Style {
        *self
    }

    fn report(&mut self, _kind: Report, _stat: &[(&str, f64)]) -> Result<bool, Stop> {
        Ok(false)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// An intermediate line.
    Intermediate,
    Checkpoint,
    /// At the end.
    Final,
}

/// Drives a ready load to its end and prints its reports; returns the exit code.
///
/// # Errors
/// Why it failed. There are no final figures then, since they would not be those of the requested run.
pub fn run(general: &General, load: &mut Load, reports: &mut dyn Reports) -> Result<u8, Stop> {
    interrupt::install()
        .map_err(|error| Stop::Fatal(format!("cannot install the handler of signals: {error}")))?;
    let ending = Arc::new(Ending {
        gate: Arc::clone(&load.gate),
        reports: reports.cancel(),
        asked_at: OnceLock::new(),
    });
    ending.watch().map_err(|error| {
        Stop::Fatal(format!(
            "cannot start the thread that watches for signals: {error}"
        ))
    })?;
    general.voice.notice("Threads started!\n");
    let warm_up = general.limits.warm_up;
    if !warm_up.is_zero() {
        let seconds = warm_up.as_secs();
        general
            .voice
            .notice(&format!("Warming up for {seconds} seconds...\n"));
    }
    load.begin();
    let began = Instant::now();
    let mut run = RunLoop {
        general,
        load,
        reports,
        ending: &ending,
        began,
        interval: IntervalStats::default(),
        interval_began: began,
        whole: IntervalStats::default(),
        whole_began: began,
        fresh: IntervalStats::default(),
    };
    run.follow()
}

/// Ends a run after the user interrupts.
struct Ending {
    gate: Arc<Gate>,
    reports: Cancel,
    /// Time of the interrupt.
    asked_at: OnceLock<Instant>,
}

impl Ending {
    fn asked_at(&self) -> Instant {
        *self.asked_at.get_or_init(Instant::now)
    }

    /// Checks for signals on its own thread until the process ends, because a hook of a script may hold up everything
    /// else.
    fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let ending = Arc::clone(self);
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let spawned = thread.spawn(move || {
            let mut at_once_since = None;
            loop {
                std::thread::sleep(PAUSE);
                match interrupt::urgency() {
                    Urgency::None => continue,
                    Urgency::Finish => {}
                    Urgency::Stop => {
                        at_once_since.get_or_insert_with(Instant::now);
                    }
                }
                let waited = ending.asked_at().elapsed();
                // A run that is over needs no lost connection back.
                ending.gate.close();
                if at_once_since.is_some() || waited >= HOOK {
                    ending.reports.cancel();
                }
                let is_held_up = at_once_since.is_some_and(|since| since.elapsed() >= END_AT_ONCE);
                if is_held_up || waited >= END {
                    // The reader of the output may be gone.
                    std::thread::spawn(|| {
                        terminal::status_line(
                            "dbduel: interrupted, but the script or a server did not end in time; \
                             the final report is left out",
                        );
                    });
                    std::thread::sleep(PAUSE);
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        });
        spawned.map(drop)
    }
}

struct RunLoop<'a> {
    general: &'a General,
    load: &'a mut Load,
    reports: &'a mut dyn Reports,
    ending: &'a Ending,
    began: Instant,
    interval: IntervalStats,
    interval_began: Instant,
    /// Counts since the last checkpoint, or the end of the warm-up.
    whole: IntervalStats,
    whole_began: Instant,
    fresh: IntervalStats,
}

impl RunLoop<'_> {
    fn follow(&mut self) -> Result<u8, Stop> {
        let general = self.general;
        let began = self.began;
        let warm_up = general.limits.warm_up;
        let mut warm_up_end = Some(began + warm_up).filter(|_| !warm_up.is_zero());
        let mut next_interval = general.report_interval.map(|interval| began + interval);
        let mut checkpoints = general.checkpoints.iter().map(|at| began + *at);
        let mut next_checkpoint = checkpoints.next();
        let shutdown = general.forced_shutdown.map(|after| began + after);
        loop {
            let dues = [warm_up_end, next_interval, next_checkpoint, shutdown];
            let look = Instant::now() + PAUSE;
            let until = dues.into_iter().flatten().fold(look, Instant::min);
            let has_ended = self.load.wait(until);
            // Also when the run is over because of that.
            if self.ending.asked_at.get().is_some() || interrupt::urgency() > Urgency::None {
                return self.interrupt();
            }
            if has_ended {
                break;
            }
            let now = Instant::now();
            if self.is_overloaded(now) {
                self.load.stop();
                return Err(Stop::Fatal(OVERLOADED.to_owned()));
            }
            let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
            if is_due(shutdown) {
                return self.force_end(now);
            }
            if is_due(warm_up_end) {
                warm_up_end = None;
                self.forget(now);
            }
            if is_due(next_checkpoint) {
                next_checkpoint = checkpoints.next();
                self.checkpoint(now)?;
            }
            if is_due(next_interval) {
                // A late line does not move the ones after it.
                next_interval = next_interval
                    .zip(general.report_interval)
                    .map(|(at, interval)| at + interval);
                self.intermediate(now)?;
            }
        }
        if let Some(why) = self.load.gate.failure() {
            return Err(Stop::Fatal(why));
        }
        self.end(Instant::now(), None)?;
        Ok(0)
    }

    /// True when more events wait for a worker than sysbench has room for.
    fn is_overloaded(&mut self, now: Instant) -> bool {
        self.general.limits.per_second.is_some() && self.load.queue(now - self.began).0 >= QUEUE_MAX
    }

    /// Collects the counts since the last call.
    fn collect(&mut self) {
        self.load.take(&mut self.fresh);
        self.interval.merge(&self.fresh);
        self.whole.merge(&self.fresh);
    }

    /// Ends the warm-up: discards its counts.
    fn forget(&mut self, now: Instant) {
        self.load.take(&mut self.fresh);
        self.load.reset_shares();
        self.interval.clear();
        self.whole.clear();
        self.interval_began = now;
        self.whole_began = now;
    }

    /// Time since the beginning, without the warm-up; during the warm-up, since its beginning.
    fn elapsed(&self, now: Instant) -> Duration {
        let since = now - self.began;
        since
            .checked_sub(self.general.limits.warm_up)
            .unwrap_or(since)
    }

    fn intermediate(&mut self, now: Instant) -> Result<(), Stop> {
        self.collect();
        let running = self.load.gate.running();
        let queue = self.load.queue(now - self.began);
        let queue = self.general.limits.per_second.map(|_| queue);
        let view = View {
            interval_stats: &self.interval,
            length_s: (now - self.interval_began).as_secs_f64(),
            elapsed_s: (now - self.began).as_secs_f64(),
            running,
            percentile: self.general.percentile,
        };
        let mut stat = stat(&view);
        let (length, busy) = queue.unwrap_or_default();
        stat.extend([
            ("queue_length", length as f64),
            ("concurrency", f64::from(busy)),
        ]);
        if !self.reports.report(Report::Intermediate, &stat)? {
            let text = page::interval(self.reports.style(), &view, queue);
            self.general.voice.notice(text.trim_end_matches('\n'));
        }
        self.interval.clear();
        self.interval_began = now;
        Ok(())
    }

    fn checkpoint(&mut self, now: Instant) -> Result<(), Stop> {
        let seconds = (now - self.began).as_secs_f64();
        self.general
            .voice
            .notice(&format!("[ {seconds:.0}s ] Checkpoint report:"));
        self.collect();
        self.block(now, Report::Checkpoint, None)?;
        self.load.reset_shares();
        self.whole.clear();
        self.whole_began = now;
        Ok(())
    }

    fn end(&mut self, now: Instant, unfinished: Option<u32>) -> Result<(), Stop> {
        self.general.voice.debug("Done.");
        self.reports.end_intermediate();
        self.collect();
        if self.general.histogram {
            let text = page::histogram(&self.whole);
            self.general.voice.notice(text.trim_end_matches('\n'));
        }
        self.block(now, Report::Final, unfinished)?;
        if self.general.voice.verbosity >= 5 {
            let shares = self.load.shares();
            for line in page::clients(&shares) {
                self.general.voice.debug(&line);
            }
        }
        Ok(())
    }

    fn block(&mut self, now: Instant, kind: Report, unfinished: Option<u32>) -> Result<(), Stop> {
        let running = match kind {
            Report::Final => 0,
            _ => self.load.gate.running(),
        };
        let view = View {
            interval_stats: &self.whole,
            length_s: (now - self.whole_began).as_secs_f64(),
            elapsed_s: self.elapsed(now).as_secs_f64(),
            running,
            percentile: self.general.percentile,
        };
        if !self.reports.report(kind, &stat(&view))? {
            let shares = self.load.shares();
            let text = page::cumulative(self.reports.style(), &view, &shares, unfinished);
            // The voice ends the last line itself.
            let text = text.strip_suffix('\n').unwrap_or(&text);
            self.general.voice.notice(text);
        }
        Ok(())
    }

    /// Ends the run after an interrupt: finishes running events if they are short, and reports what was done.
    fn interrupt(&mut self) -> Result<u8, Stop> {
        self.load.stop();
        terminal::status_line("dbduel: interrupted; a second signal ends at once");
        let deadline = self.ending.asked_at() + RUNNING_EVENTS;
        while !self.load.wait(deadline.min(Instant::now() + PAUSE)) {
            if interrupt::urgency() >= Urgency::Stop {
                return Ok(INTERRUPTED);
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        if let Some(why) = self.load.gate.failure() {
            return Err(Stop::Fatal(why));
        }
        let now = Instant::now();
        let (_, busy) = self.load.queue(now - self.began);
        self.end(now, Some(busy).filter(|busy| *busy > 0))?;
        Ok(INTERRUPTED)
    }

    fn force_end(&mut self, now: Instant) -> Result<u8, Stop> {
        self.load.stop();
        self.general
            .voice
            .fatal("The --max-time limit has expired, forcing shutdown...");
        let (_, busy) = self.load.queue(now - self.began);
        self.end(now, Some(busy))?;
        Ok(TIMED_OUT)
    }
}

/// The figures in the form that hooks of scripts get; latencies in seconds.
fn stat<'a>(view: &View<'_>) -> Vec<(&'a str, f64)> {
    let IntervalStats {
        counts,
        latency_ns_sum,
        latency_ns_min,
        latency_ns_max,
        ..
    } = view.interval_stats;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let percentile_ns = match view.percentile {
        0 => 0,
        percent => view.interval_stats.quantile_ns(percent),
    };
    let min_ns = if counts.events == 0 {
        0
    } else {
        *latency_ns_min
    };
    vec![
        ("threads_running", f64::from(view.running)),
        ("time_interval", view.length_s),
        ("time_total", view.elapsed_s),
        ("latency_pct", seconds(percentile_ns)),
        ("latency_min", seconds(min_ns)),
        ("latency_max", seconds(*latency_ns_max)),
        (
            "latency_avg",
            seconds(*latency_ns_sum) / counts.events.max(1) as f64,
        ),
        ("latency_sum", seconds(*latency_ns_sum)),
        ("events", counts.events as f64),
        ("reads", counts.reads as f64),
        ("writes", counts.writes as f64),
        ("other", counts.others as f64),
        ("errors", counts.errors as f64),
        ("reconnects", counts.reconnects as f64),
        ("bytes_read", counts.bytes_read as f64),
        ("bytes_written", counts.bytes_written as f64),
    ]
}
