//! Block after block until every duel is decided, the budget is spent, or the user has enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use dbduel_machine::clock;
use dbduel_machine::host;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_record::event::{EndReason, Event, SliceId};
use dbduel_record::late::{LateShares, late_share};
use dbduel_record::plan::{Block, SuitePhase};
use dbduel_record::record_set::ResumeCommand;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use dbduel_record::store::SliceResult;
use dbduel_record::{Plan, Record, Verdict};

use super::backend::Health;
use super::board::Phase;
use super::continuity::{self, LongRounds};
use super::drains::{self, Lengthened};
use super::events::ContestEvent;
use super::passes::DrawCount;
use super::phases::{self, Part};
use super::questions::OpenQuestions;
use super::script_failure::ScriptFailure;
use super::slice::{SliceLabel, SliceSoFar};
use super::turn::{Outcome, TurnPlace};
use super::warm_up::workload_at;
use super::{Contest, ContestConfig, LevelStanding, Referee};

/// Progress of a contest.
#[derive(Debug)]
pub struct Progress {
    /// Number of this start of the servers, counted from 0.
    pub epoch: u32,
    /// Blocks begun in this epoch, by level.
    pub in_epoch: BTreeMap<usize, u32>,
    /// Load used of the budget, seconds.
    pub used_s: f64,
    /// Blocks begun, now or before a resume.
    begun: BTreeSet<u32>,
    /// Rows of all finished slices.
    pub(super) rows: Vec<SliceRow>,
    /// Shares of late transactions, where the plan has an objective.
    pub(super) late: LateShares,
    /// How often a contender had to be recovered in this run, or failed again after a start.
    pub(super) restarts: u32,
    /// The last failure of the workload's script that no finished load followed.
    pub(super) script_failure: Option<ScriptFailure>,
    /// Starts of servers and load processes that had ended.
    pub(super) starts: u32,
    /// Levels at which to warm up a contender whose server has lost its caches.
    pub(super) warmed: Vec<usize>,
    /// Lengthened turns by level.
    pub(super) lengthened: BTreeMap<usize, Lengthened>,
    /// Load outside of blocks and warm-ups that is not in the journal yet, seconds.
    pub(super) apart_s: f64,
    /// Long turns between the blocks of each level.
    pub(super) long_rounds: BTreeMap<usize, LongRounds>,
    /// Planned and real length of the turns of each level in this run, seconds.
    pub(super) turns_s: BTreeMap<usize, (f64, f64)>,
    /// The phase of a suite that an earlier run had reached.
    reached: Option<SuitePhase>,
    /// Expected time to warm up all contenders: the longest warm-up so far of each, seconds.
    warm_ups_s: f64,
    /// Quanta that each contender has run since its tables were restored.
    pub(super) quanta_run: Vec<u32>,
    /// Draws from a mix since the tables were restored.
    pub(super) draws: DrawCount,
    /// Time of the warm-ups since the servers were last started, seconds.
    pub(super) warmed_s: f64,
    /// What the last check of the record found open, by level.
    pub(super) questions: BTreeMap<usize, OpenQuestions>,
}

impl Progress {
    /// Progress of the run that the journal of `past` describes.
    pub fn resume(referee: &dyn Referee, past: &Record, epoch: u32) -> Self {
        Self {
            epoch,
            in_epoch: BTreeMap::new(),
            used_s: past.used_s(),
            begun: past.begun_blocks(),
            rows: past.slices.clone(),
            late: referee.late_shares(past),
            restarts: 0,
            script_failure: None,
            starts: 0,
            warmed: past.plan.heaviest_level().into_iter().collect(),
            lengthened: drains::lengthened(past),
            apart_s: 0.0,
            long_rounds: continuity::long_rounds(past),
            turns_s: BTreeMap::new(),
            reached: phases::reached(past),
            warm_ups_s: warm_ups_s(past),
            quanta_run: vec![0; past.plan.contenders.len()],
            draws: DrawCount::default(),
            warmed_s: 0.0,
            questions: BTreeMap::new(),
        }
    }

    /// True when a block was begun, now or before a resume.
    pub(super) fn is_begun(&self, block: u32) -> bool {
        self.begun.contains(&block)
    }

    /// Measured time of a level's blocks, seconds.
    pub(super) fn measured_s(&self, plan: &Plan, level: usize) -> f64 {
        let rows = self.rows.iter().filter(|row| {
            let block = plan.blocks.get(row.block as usize);
            row.class == ALL_CLASSES && block.is_some_and(|block| block.level == level)
        });
        rows.map(|row| row.measured_s).sum()
    }
}

impl Contest<'_, '_> {
    /// Measures until the contest ends; returns why it ended.
    ///
    /// # Errors
    /// When the contest cannot continue.
    pub fn measure(&mut self) -> Result<EndReason> {
        let plan = self.plan();
        let mut decisions = self.decisions()?;
        for decision in &decisions {
            self.config.emit(&ContestEvent::LevelJudged(decision));
        }
        self.draw_long_turns()?;
        self.config
            .emit(&ContestEvent::PhaseBegun(Phase::Measuring));
        for part in phases::parts(&plan, self.progress.reached) {
            if !self.has_work(&part, &decisions) && plan.suite.is_some() {
                continue;
            }
            self.begin_part(&part, &decisions)?;
            if !self.measure_part(&part, &mut decisions)? {
                return Ok(EndReason::Interrupted);
            }
        }
        for decision in &decisions {
            self.check_questions(decision, true)?;
        }
        Ok(self.ending(&decisions))
    }

    /// Current standing of every level.
    fn decisions(&mut self) -> Result<Vec<LevelStanding>> {
        let plan = self.plan();
        let levels = 0..plan.levels.len();
        levels.map(|level| self.decide(&plan, level)).collect()
    }

    /// Current standing of a level.
    fn decide(&mut self, plan: &Plan, level: usize) -> Result<LevelStanding> {
        let rows = &self.progress.rows;
        let decision = self.referee.decide_level(plan, rows, level);
        self.check_questions(&decision, false)?;
        Ok(decision)
    }

    /// Why measuring ends.
    fn ending(&self, decisions: &[LevelStanding]) -> EndReason {
        let mut all = decisions.iter().enumerate();
        match all.all(|(level, decision)| self.is_settled(level, decision)) {
            true => EndReason::Decided,
            false => EndReason::BudgetSpent,
        }
    }

    /// Why a resumed contest ends before its servers are warmed up: it is decided, or the budget has no time for
    /// warm-ups and a block after them. `None` when it continues.
    pub(super) fn is_over_before_warm_up(&mut self) -> Result<Option<EndReason>> {
        let plan = self.plan();
        // The phases of a suite warm up what they measure; levels without turns are a pilot's first.
        let is_first = self.progress.used_s == 0.0;
        let has_turns = plan.schedule.pilot.is_none() || plan.turns.len() == plan.levels.len();
        if is_first || plan.suite.is_some() || !has_turns {
            return Ok(None);
        }
        let left_s = plan.schedule.budget_s - self.progress.used_s - self.progress.warm_ups_s;
        let decisions = self.decisions()?;
        let mut open = (0..plan.levels.len()).filter(|&level| {
            let block = next_block(&plan, &self.progress.begun, level);
            let fits = block.is_some_and(|block| self.expected_load_s(block) <= left_s);
            fits && !self.is_settled(level, &decisions[level])
        });
        // A search may add a level.
        let goes_on = open.next().is_some() || (plan.search.is_some() && left_s > 0.0);
        let ending = (!goes_on).then(|| self.ending(&decisions));
        if ending == Some(EndReason::BudgetSpent) {
            self.config.remark(&format!(
                "the budget has {} left, too little for warm-ups and a block",
                dbduel_text::duration((plan.schedule.budget_s - self.progress.used_s).max(0.0))
            ));
        }
        Ok(ending)
    }

    /// Measures the levels of a part until they are settled or its time is spent. Returns false when the user stopped
    /// it.
    fn measure_part(&mut self, part: &Part, decisions: &mut [LevelStanding]) -> Result<bool> {
        let plan = self.plan();
        loop {
            let mut has_run = false;
            for &level in &part.levels {
                let decision = &mut decisions[level];
                if self.is_settled(level, decision) {
                    continue;
                }
                if interrupt::urgency() != Urgency::None {
                    return Ok(false);
                }
                if self.is_epoch_full(level) || !self.has_time(part, level) {
                    continue;
                }
                let Some(block) = next_block(&plan, &self.progress.begun, level) else {
                    continue;
                };
                if !self.begin_pass_for(part, block)? {
                    continue;
                }
                has_run = true;
                let block = self.as_long_as_it_is(block);
                if !self.run_block(&block, decision)? {
                    return Ok(false);
                }
                self.lengthen_turns(level)?;
                *decision = self.decide(&plan, level)?;
                self.config.emit(&ContestEvent::LevelJudged(decision));
                if self.is_settled(level, decision) {
                    self.announce(level, decision)?;
                } else {
                    self.run_long_turns(part, level)?;
                }
            }
            let mut all = part.levels.iter();
            if all.all(|&level| self.is_settled(level, &decisions[level])) {
                return Ok(true);
            }
            if !has_run {
                if self.has_time_for_an_epoch() {
                    self.begin_epoch(false)?;
                    continue;
                }
                return Ok(true);
            }
        }
    }

    /// True when the budget has time for the next block of a level, beside the reserve for later phases.
    pub(super) fn has_time(&self, part: &Part, level: usize) -> bool {
        let plan = self.plan();
        let block = next_block(&plan, &self.progress.begun, level);
        let left_s = plan.schedule.budget_s - part.reserved_s - self.progress.used_s;
        block.is_some_and(|block| self.expected_load_s(block) <= left_s)
    }

    /// True when a level needs no more blocks: its duel is settled or, in a search, its rate is.
    pub(super) fn is_settled(&self, level: usize, decision: &LevelStanding) -> bool {
        let plan = self.plan();
        match plan.search {
            None => decision.is_settled() && self.questions_are_answered(level),
            Some(_) => {
                let Progress { rows, late, .. } = &self.progress;
                let referee = self.referee;
                // A rate whose blocks are used up, some of them lost, stays as unclear as it is.
                referee.is_rate_settled(&plan, rows, late, level)
                    || next_block(&plan, &self.progress.begun, level).is_none()
            }
        }
    }

    /// Reports that a level needs no more blocks, and why.
    fn announce(&mut self, level: usize, decision: &LevelStanding) -> Result<()> {
        let (label, blocks) = (
            self.config.plan.levels[level].label(),
            decision.blocks_complete,
        );
        let void = decision
            .comparisons
            .iter()
            .find(|comparison| comparison.verdict == Verdict::Void);
        match void.and_then(|comparison| comparison.because.as_ref()) {
            Some(because) => self
                .config
                .remark(&format!("{label}: void after {blocks} blocks: {because}")),
            None if self.config.plan.search.is_some() => self
                .config
                .remark(&format!("{label}: enough after {blocks} blocks")),
            None => {
                self.journal.event(Event::LevelDecided { level, blocks })?;
            }
        }
        Ok(())
    }

    /// Runs one block; a lost turn ends it. Returns false when the user stopped it.
    fn run_block(&mut self, block: &Block, decision: &LevelStanding) -> Result<bool> {
        let plan = self.plan();
        self.progress.begun.insert(block.id);
        *self.progress.in_epoch.entry(block.level).or_default() += 1;
        let watched = match self.config.provider.has_processes() {
            true => self.observers.affordable(&plan, block),
            false => 0,
        };
        let mut slices: Vec<SliceSoFar> = Vec::new();
        slices.resize_with(block.order.len(), SliceSoFar::default);
        let running = self.running(block)?;
        for (repeat, position) in block.turns() {
            if !running.contains(&block.order[position]) {
                continue;
            }
            // A first request to end lets the running turn finish; the block then stays incomplete.
            if (repeat, position) != (0, 0) && interrupt::urgency() != Urgency::None {
                return self.abandon(block, &slices);
            }
            check_disk(&self.config)?;
            let slice = SliceId {
                block: block.id,
                position: position as u32,
            };
            let contender = block.order[position];
            let name = &plan.contenders[contender].name;
            if repeat == 0 {
                let quantum = self.next_quantum(contender, block.level)?;
                self.journal.event(Event::SliceStarted {
                    slice,
                    contender: name.clone(),
                    quantum,
                })?;
            }
            let place = TurnPlace {
                repeat,
                position,
                is_watched: is_watched(repeat, watched, block.repeats),
            };
            let begun = clock::now();
            let outcome = match self.arena.activate(contender)? {
                Health::Alive => self.connect_and_run_turn(block, place, decision)?,
                Health::Dead { how } => Outcome::Lost(how),
            };
            // Sessions of a dead server may be left, frozen, and their clients wait: nothing is due then, and nothing fails.
            let outcome = match (self.freeze_under_load(contender)?, outcome) {
                (Health::Dead { how }, Outcome::Finished(_)) => Outcome::Lost(how),
                (_, outcome) => outcome,
            };
            self.journal.commits(name, self.load.take_commits())?;
            match outcome {
                Outcome::Finished(turn) => {
                    self.progress.quanta_run[contender] += 1;
                    self.progress.used_s += turn.guard_s + turn.answer.measured_s;
                    let turns_s = self.progress.turns_s.entry(block.level).or_default();
                    turns_s.0 += block.slice_s;
                    turns_s.1 += turn.answer.measured_s;
                    slices[position].add(*turn)?;
                    if repeat + 1 == block.repeats {
                        let whole = std::mem::take(&mut slices[position]);
                        self.keep_slice(block, slice, whole)?;
                    }
                }
                Outcome::Lost(_) if interrupt::urgency() == Urgency::Stop => {
                    return self.abandon(block, &slices);
                }
                Outcome::Stalled(why) => {
                    self.lose(slice, contender, block.level, begun, &slices, why)?;
                    return Ok(true);
                }
                Outcome::Lost(why) => {
                    self.lose(slice, contender, block.level, begun, &slices, why)?;
                    self.recover(contender, false)?;
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    /// Connects the clients of the block's level and runs a turn.
    fn connect_and_run_turn(
        &mut self,
        block: &Block,
        place: TurnPlace,
        decision: &LevelStanding,
    ) -> Result<Outcome> {
        let connected = self.arena.connect_at(
            &self.plan(),
            &mut *self.load,
            block.order[place.position],
            block.level,
        );
        match connected {
            Ok(()) => self.run_turn(block, place, decision),
            Err(error) => Ok(Outcome::Lost(format!("{error:#}"))),
        }
    }

    /// Freezes the contender whose turn is over while its clients continue, then stops these from beginning anything.
    /// An awake server without clients would catch up for free on deferred work, such as writing dirty pages. Writes
    /// and computation between turns take time that no server may use for its own work.
    pub(super) fn freeze_under_load(&mut self, contender: usize) -> Result<Health> {
        let frozen = self.arena.freeze_active();
        self.load.halt(&self.config.plan.contenders[contender].name);
        frozen
    }

    /// The contenders whose slices of a block run: all, or the chosen variants once these are chosen.
    fn running(&self, block: &Block) -> Result<Vec<usize>> {
        let plan = self.plan();
        match &plan.variants {
            Some(variants) if !variants.is_choosing(block) => {
                let referee = self.referee;
                let champions = referee.champions(&plan, &self.progress.rows, block.level);
                champions.with_context(|| {
                    let level = plan.levels[block.level].label();
                    format!(
                        "no block of choosing is complete at {level}, so no variant can be chosen"
                    )
                })
            }
            _ => Ok(block.order.clone()),
        }
    }

    /// Journals the part of a block that the user ended and that is not in the record. Returns false, for the run ends
    /// here.
    fn abandon(&mut self, block: &Block, unwritten: &[SliceSoFar]) -> Result<bool> {
        let seconds = unwritten.iter().map(SliceSoFar::load_s).sum();
        if seconds > 0.0 {
            let block = block.id;
            self.journal
                .event(Event::BlockAbandoned { block, seconds })?;
        }
        Ok(false)
    }

    /// Writes a slice whose turns have all ended to the record.
    fn keep_slice(&mut self, block: &Block, slice: SliceId, whole: SliceSoFar) -> Result<()> {
        let plan = self.plan();
        let contender = block.order[slice.position as usize];
        let label = SliceLabel {
            slice,
            contender: &plan.contenders[contender].name,
            clients: plan.levels[block.level].clients,
            epoch: self.progress.epoch,
        };
        let Some(result) = whole.into_rows(label, self.journal.clock())? else {
            return Ok(());
        };
        self.journal.slice(slice, &result)?;
        self.note_finished(contender);
        self.config.emit(&ContestEvent::SliceRecorded {
            contender,
            level: block.level,
            result: &result,
            used_s: self.progress.used_s,
        });
        self.note_late(slice, &result);
        self.progress.rows.extend(result.classes);
        Ok(())
    }

    /// Journals a slice without result whose last turn began at `begun`. Its time counts towards the budget, as does
    /// that of the turns of its block that are lost with it.
    fn lose(
        &mut self,
        slice: SliceId,
        contender: usize,
        level: usize,
        begun: Instant,
        unwritten: &[SliceSoFar],
        why: String,
    ) -> Result<()> {
        let last_s = clock::since(begun).as_secs_f64();
        self.progress.used_s += last_s;
        let seconds = last_s + unwritten.iter().map(SliceSoFar::load_s).sum::<f64>();
        let repeated = self.note_failure(contender, &why);
        self.journal.event(Event::SliceLost {
            slice,
            why,
            seconds,
        })?;
        repeated?;
        let used_s = self.progress.used_s;
        self.config.emit(&ContestEvent::LoadUsed { used_s });
        let parameters = self.parameters_at(contender, level);
        if workload_at(&self.plan(), level)?.depends_on_past_work(&parameters) {
            let name = &self.config.plan.contenders[contender].name;
            bail!(
                "`{name}` lost a slice, so the contenders no longer hold the same rows; resume with `{}`, which \
                 restores their snapshots first",
                ResumeCommand::of(self.config.record)
            );
        }
        Ok(())
    }

    /// Records the share of late transactions of a slice, where the plan has an objective.
    fn note_late(&mut self, slice: SliceId, result: &SliceResult) {
        let Some(objective) = &self.config.plan.objective else {
            return;
        };
        let total = result.classes.iter().find(|row| row.class == ALL_CLASSES);
        let mut latencies = result.latencies.iter();
        let latencies = latencies.find(|interval| interval.class == ALL_CLASSES);
        if let (Some(row), Some(latencies)) = (total, latencies) {
            let share = late_share(objective, row, &latencies.histogram.unpack());
            self.progress.late.insert(slice, share);
        }
    }
}

/// Expected time to warm up all contenders, seconds: the longest warm-up of each in the record, or the cap for one
/// without.
fn warm_ups_s(past: &Record) -> f64 {
    let cap_s = past.plan.schedule.warm_up_cap_s;
    let longest_s = |name: &str| {
        let events = past.events.iter();
        let warm_ups = events.filter_map(|event| match &event.what {
            Event::WarmedUp {
                contender, seconds, ..
            } if contender == name => Some(*seconds),
            _ => None,
        });
        warm_ups
            .reduce(f64::max)
            .map_or(cap_s, |longest_s| longest_s.min(cap_s))
    };
    let contenders = past.plan.contenders.iter();
    contenders.map(|contender| longest_s(&contender.name)).sum()
}

/// True when a repeat is among the watched ones, which are spread evenly over all.
fn is_watched(repeat: u32, watched: u32, repeats: u32) -> bool {
    let until = |count: u32| u64::from(count) * u64::from(watched) / u64::from(repeats);
    until(repeat + 1) > until(repeat)
}

/// The first block of `level` that has not begun.
fn next_block<'p>(plan: &'p Plan, begun: &BTreeSet<u32>, level: usize) -> Option<&'p Block> {
    plan.blocks
        .iter()
        .find(|block| block.level == level && !begun.contains(&block.id))
}

/// Stops before a full file system harms a server or the record.
fn check_disk(config: &ContestConfig<'_>) -> Result<()> {
    let needed = config.plan.limits.free_disk_bytes_min;
    for path in [config.record, config.home.root()] {
        let free = host::free_disk_bytes(path)?;
        if free < needed {
            bail!(
                "the file system of `{}` has {} MiB left, less than the plan's minimum of {} MiB; make \
                 room, then resume with `{}`",
                path.display(),
                free >> 20,
                needed >> 20,
                ResumeCommand::of(config.record)
            );
        }
    }
    Ok(())
}
