//! Stacks on request: after the last block every contender runs once more under the load of every level while `perf`
//! samples it.
//!
//! This load does not count, so the sampling cost is in no figure.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use dbduel_load::order::SliceOrder;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::event::{Event, Notice, Severity};
use dbduel_record::plan::SuitePhase;
use dbduel_record::seed::named_seed;
use dbduel_record::store::stacks_file;

use super::Contest;
use crate::drive::SliceEnd;
use crate::observe::{Missing, stacks};

/// Load before the first sample, seconds.
const GUARD_S: f64 = 1.0;
/// Sampling time.
const SAMPLED: Duration = Duration::from_secs(5);
/// Total load, seconds: `perf` takes a moment to begin.
const LOAD_S: f64 = 8.0;

/// Output file of `perf`; removed on drop.
struct Samples(PathBuf);

impl Samples {
    fn below(folder: &Path) -> Self {
        Self(folder.join(format!("stacks-{}.data", std::process::id())))
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // There is none when `perf` could not begin; and it keeps the one before the last.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("data.old"));
    }
}

/// Note on missing stacks.
fn no_stacks(about: &[&str], why: &str) -> Notice {
    Notice::new(
        "observe.no-stacks",
        Severity::Note,
        about,
        format!("no stacks: {why}"),
        "permit perf to sample the servers (lower kernel.perf_event_paranoid, or run as root), or omit stacks",
    )
}

impl Contest<'_, '_> {
    /// Samples stacks after the last block. A failure is a notice: what was measured stands without them.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(super) fn sample_stacks(&mut self) -> Result<()> {
        if let Err(error) = self.sample_all_stacks() {
            self.journal.notice(no_stacks(&[], &format!("{error:#}")))?;
        }
        Ok(())
    }

    /// Samples the stacks of every contender at every level, in a search only at the heaviest. A contender's first
    /// failure is a notice and ends its samples.
    ///
    /// # Errors
    /// When the load process fails, the record cannot be written, or the user interrupts.
    fn sample_all_stacks(&mut self) -> Result<()> {
        let plan = self.plan();
        let samples = Samples::below(self.config.home.root());
        let mut failed = BTreeSet::new();
        for level in sampled_levels(&plan) {
            for contender in 0..plan.contenders.len() {
                if failed.contains(&contender) {
                    continue;
                }
                interrupt::check()?;
                let name = plan.contenders[contender].name.as_str();
                self.config.step(&format!(
                    "{name}: sampling stacks, {}",
                    plan.levels[level].label()
                ));
                let sampled = self.sample_one(contender, level, &samples.0)?;
                // Functions are looked up while no contender is under load.
                self.arena.freeze_active()?;
                let folded = sampled.and_then(|rate| Ok((rate, stacks::fold_file(&samples.0)?)));
                match folded {
                    Ok((transactions_per_s, folded)) => {
                        let file = stacks_file(level);
                        let writer = self.journal.writer();
                        writer.contender_file(name, &file, folded.as_bytes())?;
                        self.journal.event(Event::StacksSampled {
                            contender: name.to_owned(),
                            level,
                            transactions_per_s,
                            cpu_share_per_sample: 1.0 / (stacks::HERTZ * SAMPLED.as_secs_f64()),
                        })?;
                    }
                    Err(Missing(why)) => {
                        failed.insert(contender);
                        self.journal
                            .notice(no_stacks(&[name], &format!("of `{name}`: {why}")))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Samples one contender's stacks into `file` under the load of a level; returns its transactions per second.
    fn sample_one(
        &mut self,
        contender: usize,
        level: usize,
        file: &Path,
    ) -> Result<std::result::Result<f64, Missing>> {
        let plan = self.plan();
        let name = &plan.contenders[contender].name;
        let Some(pid) = self.arena.pid(contender) else {
            return Ok(Err(Missing("its process is not ours".to_owned())));
        };
        let load = &plan.levels[level];
        let order = SliceOrder {
            contender: name.clone(),
            clients: load.clients,
            arrival: load.arrival,
            guard_s: GUARD_S,
            measured_s: LOAD_S,
            tick_s: plan.schedule.tick_s,
            drain_s: plan.schedule.drain_s,
            until_halted: false,
            quantum: None,
            seed: named_seed(plan.seed, &format!("stacks/level/{level}")),
        };
        self.arena.activate(contender)?;
        self.arena
            .connect_at(&plan, &mut *self.load, contender, level)?;
        let file = file.to_owned();
        let looking = std::thread::spawn(move || {
            clock::sleep(Duration::from_secs_f64(GUARD_S));
            stacks::record(pid, SAMPLED, &file)
        });
        // The load ends early when the looking does.
        let end = self
            .load
            .slice(order, &mut |_| {}, &mut |_| match looking.is_finished() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        let looked = looking
            .join()
            .unwrap_or_else(|_| Err(Missing("the thread that ran `perf` failed".to_owned())));
        self.journal.commits(name, self.load.take_commits())?;
        match end {
            SliceEnd::Finished(answer) => Ok(looked.map(|()| {
                let ok: u64 = answer.classes.iter().map(|class| class.counts.ok).sum();
                ok as f64 / answer.measured_s.max(f64::EPSILON)
            })),
            SliceEnd::Lost { why, .. } => Ok(Err(Missing(why))),
        }
    }
}

/// The levels at which stacks are sampled; in a suite, reads before changes, since the samples of changes alter the
/// data.
fn sampled_levels(plan: &Plan) -> Vec<usize> {
    if plan.search.is_some() {
        return plan.heaviest_level().into_iter().collect();
    }
    let mut levels: Vec<usize> = (0..plan.levels.len()).collect();
    levels.sort_by_key(|&level| {
        let phase = plan.levels[level].cell.as_ref().map(|cell| cell.phase);
        (
            phase == Some(SuitePhase::Last),
            phase == Some(SuitePhase::Write),
        )
    });
    levels
}
