//! The recorded run of load: writes, syncs and acknowledgements with their times.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use dbduel_client::commit_log::{Acknowledged, CommitLog};
use dbduel_load::monotonic;
use dbduel_load::order::SliceOrder;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_powercut::{Change, Event, Trace, Volume};
use dbduel_record::commits::CommitRange;
use dbduel_record::seed::named_seed;

use super::CrashConfig;
use super::outcome::{ContenderOutcome, LoadOutcome};
use super::stand::Stand;
use crate::contest::durability::weaker_promise;
use crate::drive::{LoadProcess, SliceEnd};

/// Limit of recorded writes in memory, bytes; a longer load is cut short.
pub const TRACE_BYTES_MAX: u64 = 2 << 30;
/// Longest wait for transactions in flight at the end of the load, seconds.
const DRAIN_S: f64 = 30.0;

/// A recorded load.
pub struct TracedLoad {
    pub trace: Trace,
    /// Ordered by time.
    acknowledged: Vec<Acknowledged>,
    began_ns: u64,
    seconds: f64,
    clients: u32,
    /// The setting that weakens commit durability; absent when it promises that each commit is on disk, or cannot be read.
    weaker_promise: Option<String>,
}

/// Commits that a server had acknowledged before a cut.
#[derive(Debug, Clone)]
pub struct Promised<'l> {
    pub acknowledged: &'l [Acknowledged],
    /// When the power failed.
    pub cut_ns: u64,
}

impl Promised<'_> {
    pub fn count(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// The first `count` acknowledgements as a durability log.
    pub fn log(&self, count: usize) -> Vec<CommitRange> {
        let mut log = CommitLog::default();
        log.note(self.acknowledged[..count].iter().map(|one| one.commitment));
        log.take()
    }
}

/// Starts the server on a recording volume and loads it until the time is over or the trace is full.
///
/// # Errors
/// When the server does not start, is lost, or acknowledges nothing.
pub fn drive(config: &CrashConfig<'_>, stand: &mut Stand<'_>) -> Result<TracedLoad> {
    let plan = &config.contest.plan;
    let level = plan.levels.first().context("the plan has no load level")?;
    let volume = Arc::new(Volume::new(stand.loaded()));
    volume.record(TRACE_BYTES_MAX);
    let started = stand
        .start(Arc::clone(&volume))?
        .with_context(|| format!("contender `{}` did not start", stand.name()))?;
    let weaker_promise = weaker_promise(&mut stand.connect(&started)?);
    let mut load = LoadProcess::start(&plan.load)?;
    load.report_commit_times()?;
    load.open(stand.open_order(&started, level.clients))?;
    let order = SliceOrder {
        contender: stand.name().to_owned(),
        clients: level.clients,
        arrival: level.arrival,
        guard_s: 0.0,
        measured_s: config.load_s,
        tick_s: 0.5,
        drain_s: DRAIN_S,
        until_halted: false,
        quantum: None,
        seed: named_seed(plan.seed, "crash-test-load"),
    };
    let began_ns = monotonic::ns_of(clock::now());
    let began = clock::now();
    let end = load.slice(
        order,
        |_| {},
        |_| match volume.recorded().1 || interrupt::check().is_err() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        },
    );
    // Before anything is stopped in order: what a shutdown writes is no part of the load.
    let trace = volume.take_trace().context("nothing was recorded")?;
    let seconds = clock::since(began).as_secs_f64();
    interrupt::check()?;
    if let SliceEnd::Lost { why, .. } = end {
        bail!(
            "the load on `{}` ended early: {why}; the end of the server's log: {}",
            stand.name(),
            started.server.log_since_start()
        );
    }
    let mut acknowledged = load.take_acknowledged();
    acknowledged.sort_by_key(|one| one.at_ns);
    drop(load);
    started.cut()?;
    if acknowledged.is_empty() {
        bail!(
            "`{}` acknowledged no commit of the durability log in {seconds:.1} s; use a longer `--load`",
            stand.name()
        );
    }
    Ok(TracedLoad {
        trace,
        acknowledged,
        began_ns,
        seconds,
        clients: level.clients,
        weaker_promise,
    })
}

impl TracedLoad {
    /// Entries before which a cut may happen: those of the load.
    pub fn cut_range(&self) -> Range<usize> {
        let entries = &self.trace.entries;
        let begin = entries.partition_point(|entry| entry.at_ns < self.began_ns);
        begin..entries.len()
    }

    /// Commits acknowledged before a cut at this position.
    pub fn promised(&self, position: usize) -> Promised<'_> {
        let cut_ns = self.trace.cut_ns(position);
        let count = self.acknowledged.partition_point(|one| one.at_ns < cut_ns);
        Promised {
            acknowledged: &self.acknowledged[..count],
            cut_ns,
        }
    }

    /// Time from the beginning of the load to the cut, seconds.
    pub fn seconds_at(&self, position: usize) -> f64 {
        self.trace.cut_ns(position).saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// The contender's outcome before the first cut.
    pub fn outcome(&self, stand: &Stand<'_>) -> ContenderOutcome {
        let mut load = LoadOutcome {
            seconds: self.seconds,
            clients: self.clients,
            acknowledged: self.acknowledged.len() as u64,
            writes: 0,
            written_bytes: 0,
            syncs: 0,
            is_cut_short: self.trace.is_full,
        };
        for entry in &self.trace.entries[self.cut_range()] {
            match &entry.event {
                Event::Sync { .. } => load.syncs += 1,
                Event::DurableWrite(Change::Write { data, .. }) => {
                    load.writes += 1;
                    load.syncs += 1;
                    load.written_bytes += data.len() as u64;
                }
                Event::Change(Change::Write { data, .. }) => {
                    load.writes += 1;
                    load.written_bytes += data.len() as u64;
                }
                Event::Change(_) | Event::DurableWrite(_) => {}
            }
        }
        ContenderOutcome {
            contender: stand.name().to_owned(),
            server: stand.sandbox.build().id.clone(),
            weaker_promise: self.weaker_promise.clone(),
            checks_pages: stand.program(super::pages::PROGRAM).is_some(),
            load,
            cuts: Vec::new(),
            images: Vec::new(),
        }
    }
}
