//! State of a running contest, for its pages and metrics.
//!
//! The board follows the events of the contest; readers get a copy. Counts cover this run only; those of
//! an interrupted run are in the record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbduel_record::Plan;
use dbduel_record::event::Event;
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::store::SliceResult;

use super::LevelStanding;
use super::events::{ContestEvent, Follower};

/// What a contest is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Servers are fetched, started, loaded and audited.
    #[default]
    Preparing,
    /// A contender is loaded until it is steady.
    WarmingUp,
    /// Blocks are measured.
    Measuring,
    /// Final counters are read and servers stop.
    Closing,
}

/// Throughput of the last tick, and of which cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// Index into `Plan::contenders`.
    pub contender: usize,
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Committed transactions per second of the last tick.
    pub throughput_per_s: f64,
}

/// Sums over the slices that one contender finished at one level.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Finished slices.
    pub slices: u64,
    /// Their measured seconds.
    pub measured_s: f64,
    /// Committed transactions.
    pub ok: u64,
    /// Transactions that ended with an error.
    pub failed: u64,
    /// The server's processor time in user mode, seconds; absent where it cannot be read.
    pub server_cpu_user_s: Option<f64>,
    /// The server's processor time in the kernel, seconds; absent where it cannot be read.
    pub server_cpu_system_s: Option<f64>,
    /// Bytes that the server had written to devices; absent where they cannot be read.
    pub server_device_write_bytes: Option<f64>,
}

/// A copy of the contest's state at one moment.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// The current phase.
    pub phase: Phase,
    /// Seconds of load used of the budget.
    pub used_s: f64,
    /// The load; absent while there is none.
    pub now: Option<Now>,
    /// By contender and level.
    pub sums: BTreeMap<(usize, usize), Sums>,
    /// Slices that were lost.
    pub lost: u64,
    /// Standing of each level, by its index.
    pub levels: BTreeMap<usize, LevelStanding>,
    /// The plan being run; absent before the contest begins.
    pub plan: Option<Arc<Plan>>,
}

/// Shared state: a follower of the contest writes, others read.
#[derive(Debug, Default)]
pub struct Board(Mutex<Standing>);

impl Board {
    /// A copy of the current state.
    pub fn standing(&self) -> Standing {
        self.lock().clone()
    }

    /// Adds a finished slice to the sums of its contender and level.
    fn add(&self, contender: usize, level: usize, result: &SliceResult, used_s: f64) {
        let mut standing = self.lock();
        standing.used_s = used_s;
        standing.now = None;
        let sums = standing.sums.entry((contender, level)).or_default();
        sums.slices += 1;
        for row in result.classes.iter().filter(|row| row.class == ALL_CLASSES) {
            sums.measured_s += row.measured_s;
            sums.ok += row.ok;
            sums.failed += row.failed;
        }
        let reading = |metric: &str| {
            let mut readings = result.readings.iter();
            let found = readings.find(|row| row.source == "observer" && row.metric == metric);
            found.map(|row| row.value)
        };
        let totals = result.classes.iter().filter(|row| row.class == ALL_CLASSES);
        let measured_s: f64 = totals.map(|row| row.measured_s).sum();
        // Where turns are short samplers look at some of them.
        let watched = reading("watched_s").filter(|watched_s| *watched_s > 0.0);
        let scale = watched.map_or(1.0, |watched_s| measured_s / watched_s);
        for row in result.readings.iter().filter(|row| row.source == "server") {
            let sum = match row.metric.as_str() {
                "cpu_user_s" => &mut sums.server_cpu_user_s,
                "cpu_system_s" => &mut sums.server_cpu_system_s,
                "device_write_bytes" => &mut sums.server_device_write_bytes,
                _ => continue,
            };
            *sum = Some(sum.unwrap_or(0.0) + scale * row.value);
        }
    }

    /// After a panic elsewhere the numbers are still the latest known.
    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Board {
    fn follow(&self, event: &ContestEvent<'_>) {
        match event {
            ContestEvent::Begun { plan } => {
                *self.lock() = Standing {
                    plan: Some(Arc::clone(plan)),
                    ..Standing::default()
                };
            }
            ContestEvent::PlanGrown { plan } => self.lock().plan = Some(Arc::clone(plan)),
            ContestEvent::PhaseBegun(phase) => {
                let mut standing = self.lock();
                standing.phase = *phase;
                standing.now = None;
            }
            ContestEvent::Tick {
                contender,
                level,
                tick,
                used_s,
                ..
            } => {
                let mut standing = self.lock();
                standing.used_s = *used_s;
                standing.now = Some(Now {
                    contender: *contender,
                    level: *level,
                    throughput_per_s: tick.ok as f64 / tick.length_s.max(f64::EPSILON),
                });
            }
            ContestEvent::SliceRecorded {
                contender,
                level,
                result,
                used_s,
            } => self.add(*contender, *level, result, *used_s),
            ContestEvent::Entry(Event::SliceLost { .. }) => {
                let mut standing = self.lock();
                standing.now = None;
                standing.lost += 1;
            }
            ContestEvent::LoadUsed { used_s } => self.lock().used_s = *used_s,
            ContestEvent::LevelJudged(standing) => {
                let levels = &mut self.lock().levels;
                levels.insert(standing.level, (*standing).clone());
            }
            ContestEvent::Entry(_) | ContestEvent::StepBegun(_) | ContestEvent::Remark(_) => {}
        }
    }
}
