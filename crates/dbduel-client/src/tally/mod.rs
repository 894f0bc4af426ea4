//! Results of a slice: counters that obey an identity, latencies, ticks and errors.
//!
//! Instants are given, in nanoseconds since the start of the slice, and never go back. Recording neither fails nor
//! allocates, except at the end of a tick and for the first error of a code; a tally is reused for the next slice.
//!
//! A transaction belongs to the measured part when it ends there. The measured part lasts until every transaction due in
//! its planned length has ended, so that none is hidden by taking longer than a turn; transactions that are due
//! afterwards and end before that count as well, and those still in flight then continue in the next turn, and count
//! there. The expected number is counted separately, when transactions begin:
//!
//! > due = running at the end of the guard + begun, of those due in the planned length + never sent, of those due there
//! >       + ended, of those due afterwards or in an earlier slice
//! >     = ok + failed + skipped + unfinished

mod counters;
mod latencies;
mod statements;
mod ticks;

pub use counters::{ClassTally, ErrorTally, Errors};
pub use latencies::TickLatencies;
pub use statements::{StatementAnswer, StatementDone, StatementTally};
pub use ticks::TickTally;

use dbduel_record::latency::new_histogram;
use hdrhistogram::Histogram;

use dbduel_driver::{ErrorClass, ServerError};
use ticks::Ticks;

/// The stretches of a slice, nanoseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// End of the guard: transactions count from here on.
    pub open_ns: u64,
    /// Latest end of the measured part.
    pub close_ns: u64,
    /// Length of a tick.
    pub tick_ns: u64,
}

/// A transaction class, as an index into the workload's list of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class(pub usize);

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Ok,
    /// Failed for good.
    Failed,
}

/// A transaction that ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its class.
    pub class: Class,
    /// How it ended.
    pub outcome: Outcome,
    /// Time from due to done, without the time for which its server was frozen, nanoseconds.
    pub latency_ns: u64,
    /// When it was done.
    pub done_ns: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Statements sent.
    pub statements: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Phase {
    Guard,
    Measured,
    Over,
}

/// Tally of one thread's clients in one slice; merged over the threads at the end.
#[derive(Debug)]
pub struct Tally {
    window: Window,
    phase: Phase,
    /// Transactions that are waited for and have not ended, by class.
    running: Vec<u64>,
    classes: Vec<ClassTally>,
    /// Empty unless the workload measures single statements.
    statements: Vec<StatementTally>,
    ticks: Ticks,
    errors: Errors,
    lags: Histogram<u64>,
    services: Histogram<u64>,
    undrawn: u64,
    rolled_back: u64,
    drained_ns: u64,
}

impl Tally {
    /// An empty tally for a workload with this many classes.
    #[must_use]
    pub fn new(classes: usize, window: Window) -> Self {
        let mut tally = Tally {
            window,
            phase: Phase::Guard,
            running: Vec::new(),
            classes: Vec::new(),
            statements: Vec::new(),
            ticks: Ticks::new(),
            errors: Errors::default(),
            lags: new_histogram(),
            services: new_histogram(),
            undrawn: 0,
            rolled_back: 0,
            drained_ns: 0,
        };
        tally.restart(classes, window);
        tally
    }

    /// Empties the tally for another slice, keeping its memory.
    pub fn restart(&mut self, classes: usize, window: Window) {
        let window = Window {
            close_ns: window.close_ns.max(window.open_ns),
            ..window
        };
        self.window = window;
        self.phase = if window.open_ns == 0 {
            Phase::Measured
        } else {
            Phase::Guard
        };
        self.running.clear();
        self.running.resize(classes, 0);
        self.classes.truncate(classes);
        self.classes.iter_mut().for_each(ClassTally::clear);
        self.classes.resize_with(classes, ClassTally::new);
        self.statements.iter_mut().for_each(StatementTally::clear);
        self.ticks.restart(window);
        self.errors.clear();
        self.lags.reset();
        self.services.reset();
        self.undrawn = 0;
        self.rolled_back = 0;
        self.drained_ns = 0;
    }

    /// Makes room for this many classes of single statements; 0 measures none.
    pub fn measure_statements(&mut self, classes: usize) {
        self.statements.truncate(classes);
        self.statements.resize_with(classes, StatementTally::new);
    }

    /// Called when a transaction is sent; `is_awaited` if it was due in the planned length of the slice.
    #[inline]
    pub fn began(&mut self, class: Class, now_ns: u64, is_awaited: bool) {
        self.advance(now_ns);
        if is_awaited {
            self.running[class.0] += 1;
            if self.phase == Phase::Measured {
                self.classes[class.0].counts.due += 1;
            }
        }
    }

    /// Called when a transaction is done.
    #[inline]
    pub fn ended(&mut self, ended: Ended, is_awaited: bool) {
        let Ended {
            class,
            outcome,
            latency_ns,
            done_ns,
            retries,
            statements,
        } = ended;
        self.advance(done_ns);
        if is_awaited {
            self.running[class.0] -= 1;
        }
        if self.phase == Phase::Over {
            return;
        }
        self.ticks.count(outcome, latency_ns);
        if self.phase == Phase::Guard {
            return;
        }
        let tally = &mut self.classes[class.0];
        tally.counts.due += u64::from(!is_awaited);
        tally.counts.retries += retries;
        tally.counts.statements += statements;
        match outcome {
            Outcome::Ok => {
                tally.counts.ok += 1;
                tally.latency_ns_sum += latency_ns;
                tally.latencies.saturating_record(latency_ns);
            }
            Outcome::Failed => tally.counts.failed += 1,
        }
    }

    /// Counts the statements of the transaction that just ended where it counts.
    pub fn statements_done(&mut self, done: &[StatementDone]) {
        if self.phase != Phase::Measured {
            return;
        }
        for one in done {
            if let Some(tally) = self.statements.get_mut(one.class as usize) {
                tally.count(one);
            }
        }
    }

    /// Marks the transaction that just ended as rolled back on purpose.
    pub fn rolled_back(&mut self) {
        if self.phase == Phase::Measured {
            self.rolled_back += 1;
        }
    }

    /// Adds time of clients inside awaited transactions after the planned length of the slice, summed over the
    /// clients.
    pub fn drained(&mut self, client_ns: u64) {
        self.drained_ns += client_ns;
    }

    /// Records the service time of the transaction that just succeeded, from sent to done, nanoseconds. In closed
    /// loops, where due is sent, it equals the latency and need not be recorded.
    #[inline]
    pub fn served(&mut self, service_ns: u64) {
        if self.phase == Phase::Measured {
            self.services.saturating_record(service_ns);
        }
    }

    /// Records the load process's own lag with one transaction, nanoseconds.
    #[inline]
    pub fn lagged(&mut self, lag_ns: u64) {
        if self.phase == Phase::Measured {
            self.lags.saturating_record(lag_ns);
        }
    }

    /// Records an error of the server to a statement; retried ones count too.
    pub fn erred(&mut self, error: &ServerError) {
        if self.phase == Phase::Measured {
            let is_conflict = error.class == ErrorClass::Conflict;
            self.errors
                .count(error.code, is_conflict, 1, &error.message);
        }
    }

    /// Records transactions that fell due in time and were never sent. A class is drawn when a transaction is sent, so
    /// with several classes these have none, and are counted in [`Tally::undrawn`].
    pub fn skip(&mut self, count: u64) {
        match self.classes.as_mut_slice() {
            [only] => {
                only.counts.due += count;
                only.counts.skipped += count;
            }
            _ => self.undrawn += count,
        }
    }

    /// Advances the time to `now_ns`, passing the ends of guard, measured part and ticks up to there.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.ticks.border_ns() {
            self.cross(now_ns);
        }
    }

    /// Every change of phase coincides with the border of two ticks.
    #[cold]
    fn cross(&mut self, now_ns: u64) {
        self.ticks.advance(now_ns);
        if self.phase == Phase::Guard && now_ns >= self.window.open_ns {
            self.phase = Phase::Measured;
            for (class, running) in self.classes.iter_mut().zip(&self.running) {
                class.counts.due += running;
            }
        }
        if self.phase == Phase::Measured && now_ns >= self.window.close_ns {
            self.phase = Phase::Over;
            for (class, running) in self.classes.iter_mut().zip(&self.running) {
                class.counts.unfinished += running;
            }
        }
    }

    /// Ends the measured part at `now_ns` unless it ended earlier.
    pub fn close(&mut self, now_ns: u64) {
        self.advance(now_ns);
        if self.phase == Phase::Over {
            return;
        }
        self.window.close_ns = now_ns;
        self.window.open_ns = self.window.open_ns.min(now_ns);
        self.ticks.close(now_ns);
        self.cross(now_ns);
    }

    /// Adds another thread's tally of the same slice.
    pub fn merge(&mut self, other: &Tally) {
        let Tally {
            window,
            phase: _,
            running,
            classes,
            statements,
            ticks,
            errors,
            lags,
            services,
            undrawn,
            rolled_back,
            drained_ns,
        } = other;
        debug_assert_eq!(
            self.classes.len(),
            classes.len(),
            "both are of the same workload"
        );
        // Each thread ends its measured part when its own transactions have ended.
        self.window.close_ns = self.window.close_ns.max(window.close_ns);
        self.running
            .iter_mut()
            .zip(running)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.classes
            .iter_mut()
            .zip(classes)
            .for_each(|(mine, theirs)| mine.merge(theirs));
        self.statements
            .iter_mut()
            .zip(statements)
            .for_each(|(mine, theirs)| mine.merge(theirs));
        self.ticks.merge(ticks);
        self.errors.merge(errors);
        self.undrawn += undrawn;
        self.rolled_back += rolled_back;
        self.drained_ns += drained_ns;
        for (mine, theirs) in [(&mut self.lags, lags), (&mut self.services, services)] {
            mine.add(theirs)
                .expect("all histograms of the project have the same bounds");
        }
    }

    /// True when the identity holds for every class.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.classes.iter().all(|class| class.counts.balances())
    }

    /// The stretches, shortened by [`Tally::close`].
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Time of clients inside awaited transactions after the planned length of the slice, nanoseconds, summed over the
    /// clients.
    #[must_use]
    pub fn client_drained_ns(&self) -> u64 {
        self.drained_ns
    }

    /// Counters by class.
    #[must_use]
    pub fn classes(&self) -> &[ClassTally] {
        &self.classes
    }

    /// Counters by class of statements; empty unless [`Tally::measure_statements`] made room for them.
    #[must_use]
    pub fn statements(&self) -> &[StatementTally] {
        &self.statements
    }

    /// Transactions of a workload with several classes that fell due and were never sent.
    #[must_use]
    pub fn undrawn(&self) -> u64 {
        self.undrawn
    }

    /// Transactions among the committed ones of [`Tally::classes`] that were rolled back on purpose.
    #[must_use]
    pub fn rolled_back_on_purpose(&self) -> u64 {
        self.rolled_back
    }

    /// The next end of a tick, the guard or the measured part.
    #[must_use]
    pub fn border_ns(&self) -> u64 {
        self.ticks.border_ns()
    }

    /// Sets the number of transactions that were due and not sent at the end of the last finished tick.
    pub fn wait_at_tick_end(&mut self, waiting: u64) {
        self.ticks.wait_at_end(waiting);
    }

    /// The finished ticks, guard included.
    #[must_use]
    pub fn ticks(&self) -> &[TickTally] {
        self.ticks.finished()
    }

    /// Errors by code.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Recorded service times of all classes together, nanoseconds.
    #[must_use]
    pub fn services(&self) -> &Histogram<u64> {
        &self.services
    }

    /// The load process's own lag, nanoseconds.
    #[must_use]
    pub fn lags(&self) -> &Histogram<u64> {
        &self.lags
    }
}

#[cfg(test)]
mod tests;
