//! One observer per contender, who watches its slices and keeps a connection for questions.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_record::Plan;
use dbduel_record::event::{Finding, Severity};
use dbduel_record::plan::Block;

use super::arena::Arena;
use super::measure::finding;
use super::{Contest, ContestConfig};
use crate::lab::host;
use crate::lab::load_processes::LoadProcesses;
use crate::lab::observe::{Observed, Observer, Subject, Watch, write_accounting};

/// A question that takes longer than this would disturb what it asks about.
const PATIENCE: Duration = Duration::from_secs(5);

/// What watching may cost of all processor time of the machine while it is measured.
const COST_SHARE_MAX: f64 = 0.01;
/// Cost of the first watch, before there was one to learn from, seconds.
const COST_S: f64 = 0.01;

/// The observers of all contenders.
pub struct Observers {
    each: Vec<Option<Observer>>,
    disk: Option<PathBuf>,
    overcounts_writes: bool,
    /// What the dearest watch of the last slices cost, seconds.
    cost_s: f64,
    /// What may be spent on watches of each contender by now, seconds.
    credit_s: f64,
    /// Processors of the machine.
    processors: f64,
}

impl Observers {
    /// Observers that have seen nothing.
    pub fn new(config: &ContestConfig<'_>) -> Self {
        Self {
            each: config
                .plan
                .contenders
                .iter()
                .map(|_| Some(Observer::default()))
                .collect(),
            disk: host::disk_of(config.home.root()),
            // Where it cannot be found out, the process is not readable either, which each slice says.
            overcounts_writes: write_accounting::overcounts(config.home.root()).unwrap_or(false),
            cost_s: COST_S,
            credit_s: 2.0 * COST_S,
            processors: host::processors().len().max(1) as f64,
        }
    }

    /// How many of a block's repeats are watched: all, or where turns are short as many as cost no more than they may.
    pub fn affordable(&mut self, plan: &Plan, block: &Block) -> u32 {
        if !plan.turns.contains_key(&block.level) {
            return block.repeats;
        }
        let slices = (block.order.len() / plan.contenders.len().max(1)) as f64;
        let measured_s = slices * block.slice_s * f64::from(block.repeats);
        self.credit_s += COST_SHARE_MAX * measured_s * self.processors;
        let each_s = slices * self.cost_s;
        // A quotient beyond any count saturates in the conversion.
        let watched = ((self.credit_s / each_s) as u32).min(block.repeats);
        self.credit_s -= f64::from(watched) * each_s;
        // What was saved up for long would be spent at once.
        self.credit_s = self.credit_s.min(each_s);
        watched
    }

    /// Starts the watch over a slice of an awake contender.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn watch(
        &mut self,
        config: &ContestConfig<'_>,
        arena: &mut Arena,
        contender: usize,
        load: &LoadProcesses,
    ) -> Result<Watch> {
        let name = &config.plan.contenders[contender].name;
        let load_pid = load.pid(name);
        let is_in_process = arena.resident(contender).dialect.is_in_process();
        let mut observer = self.each[contender].take().unwrap_or_default();
        // A look of ours would lock the file that the clients wait for.
        if observer.connection.is_none() && !is_in_process {
            let patience = PATIENCE.min(Duration::from_secs_f64(config.plan.limits.statement_s));
            // Without a connection the slice is measured all the same; what then is missing is said.
            observer.connection = arena.connect(contender, patience).ok();
        }
        let server = Subject {
            // What runs in the load process uses what that uses.
            pid: match is_in_process {
                true => load_pid,
                false => arena.pid(contender),
            },
            disk: self.disk.clone(),
            is_load: is_in_process,
            overcounts_writes: self.overcounts_writes,
        };
        let load = Subject {
            pid: load_pid,
            disk: None,
            is_load: true,
            overcounts_writes: self.overcounts_writes,
        };
        Watch::start(observer, server, load).context("could not start the watch over a slice")
    }

    /// What is to be said of the figures that the observers give, before they give any.
    pub fn caveat(&self) -> Option<Finding> {
        self.overcounts_writes.then(|| {
            finding(
                "observe.bytes-written-by-disk",
                Severity::Note,
                &[],
                "Bytes written by a server are those of its disk while it is not frozen, with what others write: on this file system \
                 the kernel counts whole folios as written by a process for each small write"
                    .to_owned(),
                "keep other programs from writing to this disk, or use a file system without large folios",
            )
        })
    }

    pub fn end(&mut self, contender: usize, watch: Watch) -> Observed {
        let (observer, observed) = watch.finish();
        self.each[contender] = Some(observer);
        // Falls slowly, so that one cheap watch does not make the next ones frequent.
        self.cost_s = observed.cost_s().max(0.9 * self.cost_s);
        observed
    }
}

impl Contest<'_> {
    /// Sources that gave nothing are a finding, not a failure.
    pub(super) fn say_what_is_missing(&mut self, name: &str, observed: &Observed) -> Result<()> {
        if observed.missing.is_empty() {
            return Ok(());
        }
        let claim = format!("not observed of `{name}`: {}", observed.missing.join("; "));
        let remedy =
            "run where these can be read (same user, no container that hides them), or do without";
        self.journal.notice(finding(
            "observe.missing-source",
            Severity::Note,
            &[name],
            claim,
            remedy,
        ))?;
        Ok(())
    }
}
