//! The first two stages of a summary: what the numbers of a record say, and what remains of it beside the findings.

use dbduel_audit::Finding;
use dbduel_record::event::{Event, LoadTime, Severity};
use dbduel_record::{Plan, Record, Verdict};

use crate::classes::ClassCell;
use crate::contention::Contention;
use crate::duel::decide::{self, LevelDecision, Question};
use crate::duel::{attribution, measures, overturn, pairs, quantities};
use crate::evidence::Evidence;
use crate::explain::Explanation;
use crate::levels::{scaling, statements};
use crate::rules::run::verdict::withheld_because;
use crate::summary::{
    AnswersSummary, Change, ContenderCrossings, ContenderFacts, Continuity, Duel, Run, Scope,
    SettingDifference,
};
use crate::workloads::captured::StatementLevel;
use crate::workloads::order_entry::OrderEntry;
use crate::{answers, champions, classes, continuity, explain, identical, settings, workloads};

/// Conclusions from the numbers of a record.
pub struct Judged {
    /// Name of the baseline.
    pub baseline: String,
    /// Servers that the verdicts are about.
    pub scope: Scope,
    /// Differences up to this share count as equivalent.
    pub horizon: f64,
    /// Figures of the order-entry workload; absent for others.
    pub order_entry: Option<OrderEntry>,
    /// Figures of each class of transactions.
    pub classes: Vec<ClassCell>,
    /// Figures of each class of single statements, by load level.
    pub statement_classes: Vec<StatementLevel>,
    /// Answers to captured statements, compared; absent where none were.
    pub answers: Option<AnswersSummary>,
    /// Facts about each contender.
    pub contenders: Vec<ContenderFacts>,
    /// Start, end and counts of the run.
    pub run: Run,
    /// Verdicts and measures of each level.
    pub duels: Vec<Duel>,
    /// Client counts at which a ratio crosses 1.
    pub crossings: Vec<ContenderCrossings>,
    /// Contenders with equal settings.
    pub identical: Vec<[String; 2]>,
    /// Settings that differ.
    pub settings: Vec<SettingDifference>,
    /// Resource differences of each level.
    pub explanations: Vec<Explanation>,
}

impl Judged {
    /// Judges the slices of a record.
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let plan = evidence.plan();
        let settings = settings::differences(evidence.record);
        let levels = 0..plan.levels.len();
        let duels: Vec<Duel> = levels.map(|level| duel(evidence, level)).collect();
        Self {
            baseline: plan.contenders[plan.baseline].name.clone(),
            scope: match plan.schedule.epochs {
                Some(_) => Scope::TheseServers,
                None => Scope::TheseInstances,
            },
            horizon: plan.decision.horizon,
            order_entry: workloads::order_entry::of(evidence),
            classes: classes::of(evidence),
            statement_classes: workloads::captured::of(evidence),
            answers: answers::summary(evidence.record),
            contenders: contenders(evidence),
            run: run(evidence),
            crossings: scaling::crossings(evidence, &duels),
            duels,
            identical: identical::pairs(evidence.record, &settings),
            settings,
            explanations: explain::explain(evidence),
        }
    }

    /// Without the verdicts that findings of severity void take away, and with what would overturn each verdict. `plan` has the
    /// contenders by the names that findings use.
    pub fn with_findings(mut self, findings: &[Finding], plan: &Plan) -> Self {
        apply_voids(&mut self.duels, &self.baseline, findings, plan);
        workloads::captured::apply_voids(&mut self.statement_classes, &self.duels);
        overturn::explain(&mut self.duels, self.horizon, self.scope);
        self
    }
}

/// Why a contest goes on at a level although its blocks decide: what in the record does not support the verdicts, or puts
/// them in doubt. Empty where nothing does.
#[must_use]
pub fn doubts(record: &Record, level: usize) -> Vec<String> {
    let reduced = champions::judged_record(record);
    let evidence = Evidence::of(reduced.as_ref().unwrap_or(record));
    let (decision, ..) = verdicts(&evidence, level);
    let comparisons = decision.comparisons.iter();
    comparisons.filter_map(withheld_because).collect()
}

/// The verdicts of a level, without those that its turns or other programs put in doubt.
fn verdicts(
    evidence: &Evidence<'_>,
    level: usize,
) -> (LevelDecision, Option<Continuity>, Option<Contention>) {
    let plan = evidence.plan();
    let blocks = &evidence.levels[level];
    let mut decision = decide::decide_blocks(plan, blocks, level);
    let continuity = continuity::judge(evidence.record, level, blocks, &mut decision.comparisons);
    let contention = Contention::of(evidence, level);
    if let Some(contention) = &contention {
        contention.withhold(plan, &mut decision.comparisons);
    }
    (decision, continuity, contention)
}

fn duel(evidence: &Evidence<'_>, level: usize) -> Duel {
    let plan = evidence.plan();
    let blocks = &evidence.levels[level];
    let (mut decision, continuity, contention) = verdicts(evidence, level);
    for (comparison, contender) in decision.comparisons.iter_mut().zip(plan.challengers()) {
        let question = Question::against_baseline(plan, contender, level);
        comparison.quantities = quantities::compare(evidence, level, &question);
    }
    let mut pairs = pairs::compare(evidence, level, &decision.comparisons);
    if let Some(contention) = &contention {
        contention.withhold_pairs(plan, &mut pairs);
    }
    let whole = decision.comparisons.first();
    let attribution = attribution::attribution(evidence, level, decision.effects, whole);
    Duel {
        level,
        label: plan.levels[level].label(),
        load: plan.levels[level].clone(),
        turns: plan.turns.get(&level).cloned(),
        continuity,
        blocks_complete: decision.blocks_complete,
        blocks_incomplete: blocks.incomplete.len() as u32,
        contenders: (0..plan.contenders.len())
            .map(|contender| measures::measure(evidence, level, contender))
            .collect(),
        comparisons: decision.comparisons,
        pairs,
        attribution,
        statements: statements::plans(evidence.record, level),
    }
}

fn contenders(evidence: &Evidence<'_>) -> Vec<ContenderFacts> {
    let plan = evidence.plan();
    let active_s = |contender| -> f64 {
        evidence
            .levels
            .iter()
            .flat_map(|level| level.slices_of(contender))
            .map(|row| row.measured_s)
            .sum()
    };
    let facts = plan
        .contenders
        .iter()
        .enumerate()
        .map(|(index, contender)| {
            let files = evidence.record.contenders.get(index);
            ContenderFacts {
                name: contender.name.clone(),
                server: contender.server.clone(),
                host: contender.host.clone(),
                settings: contender.settings.clone(),
                build: files.and_then(|files| files.build.clone()),
                size: files.and_then(|files| files.size),
                tables: contender.tables.clone(),
                load: load_of(evidence.record, &contender.name),
                active_s: active_s(index),
            }
        });
    facts.collect()
}

/// Load time of a contender's tables, as far as the journal has it.
fn load_of(record: &Record, name: &str) -> Option<LoadTime> {
    record.events.iter().find_map(|event| match &event.what {
        Event::DatasetReady {
            contender, load, ..
        } if contender == name => load.clone(),
        _ => None,
    })
}

fn run(evidence: &Evidence<'_>) -> Run {
    let events = &evidence.record.events;
    let count =
        |is: fn(&Event) -> bool| events.iter().filter(|event| is(&event.what)).count() as u32;
    let last_start = events
        .iter()
        .rposition(|event| matches!(event.what, Event::Started { .. }))
        .unwrap_or(0);
    let ended = events[last_start.min(events.len())..]
        .iter()
        .rev()
        .find_map(|event| match event.what {
            Event::Ended { reason } => Some(reason),
            _ => None,
        });
    Run {
        started_ms: events.first().map(|event| event.at_ms),
        ended_ms: events.last().map(|event| event.at_ms),
        ended,
        epochs: count(|event| matches!(event, Event::Started { .. } | Event::EpochStarted { .. }))
            .max(1),
        slices_finished: evidence.record.finished_slices().count() as u32,
        slices_lost: count(|event| matches!(event, Event::SliceLost { .. })),
        blocks_complete: evidence
            .levels
            .iter()
            .map(|level| level.complete.len() as u32)
            .sum(),
        blocks_incomplete: evidence
            .levels
            .iter()
            .map(|level| level.incomplete.len() as u32)
            .sum(),
    }
}

/// A finding of severity void takes away the verdicts that it is about; without a name it is about all.
/// When the baseline is named, every comparison with it falls.
fn apply_voids(duels: &mut [Duel], baseline: &str, findings: &[Finding], plan: &Plan) {
    let voids = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Void);
    for finding in voids {
        let concerns = |name: &str| {
            let mut about = finding.about.iter();
            finding.about.is_empty()
                || about.any(|about| champions::contender_of(plan, about) == name)
        };
        let duels = duels
            .iter_mut()
            .filter(|duel| finding.level.is_none_or(|level| level == duel.level));
        for duel in duels {
            for comparison in &mut duel.comparisons {
                if comparison.verdict != Verdict::Void
                    && (concerns(&comparison.contender) || concerns(baseline))
                {
                    comparison.verdict = Verdict::Void;
                    comparison.because = Some(finding.claim.clone());
                    for quantity in &mut comparison.quantities {
                        quantity.change = Change::NotCompared;
                    }
                }
            }
            for pair in &mut duel.pairs {
                if pair.verdict != Verdict::Void
                    && (concerns(&pair.contender) || concerns(&pair.against))
                {
                    pair.verdict = Verdict::Void;
                    pair.because = Some(finding.claim.clone());
                    for quantity in &mut pair.quantities {
                        quantity.change = Change::NotCompared;
                    }
                }
            }
        }
    }
}
