//! The half of dbduel that judges: a record in, a [`Summary`] and findings out.
//!
//! Reads the record and nothing else: no clock, no network, no environment, no random number that is not named by the
//! plan. The same record gives the same bytes.

#[cfg(test)]
mod bad_input;
mod case;
pub mod champions;
pub mod classes;
pub mod continuity;
mod duel;
mod evidence;
pub mod explain;
mod identical;
pub mod injected;
pub mod levels;
pub mod records;
pub mod rules;
mod seconds;
mod settings;
pub mod summary;
#[cfg(test)]
mod tests;
mod unmeasured;
pub mod workloads;

use dbduel_audit::{Case, Finding};
use dbduel_record::event::{Event, LoadTime, Severity};
use dbduel_record::{Plan, Record, Verdict};

pub use duel::decide::decide_level;
pub use duel::limit::{Limit, Standing, open_limits};
pub use summary::Summary;

use duel::decide::Question;
use duel::{attribution, decide, measures, overturn, pairs, profile, quantities};
use evidence::Evidence;
use levels::{objective, scaling, statements, suite};
use rules::run::RunEvidence;
use seconds::{stack_differences, stacks, timeline, watched};
use summary::{Change, ContenderFacts, Duel, Run, SCHEMA_VERSION, Scope};

/// Which judge this is: the version of dbduel, and a digest of the sources that judge and report and of the versions of the
/// libraries. Records give the same reports where it is the same, up to what the machine's mathematical functions round
/// otherwise.
pub const IDENTITY: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("DBDUEL_JUDGE_DIGEST"));

/// Judges a record. Never fails: missing parts are left out and reported.
///
/// Findings come in the order of their weight, heaviest first.
#[must_use]
pub fn summarise(record: &Record) -> (Summary, Vec<Finding>) {
    let judged = champions::judged_record(record);
    let whole = record;
    let record = judged.as_ref().unwrap_or(whole);
    let evidence = Evidence::of(record);
    let plan = &record.plan;
    let differences = settings::differences(record);
    let mut summary = Summary {
        schema_version: SCHEMA_VERSION,
        judged_by: IDENTITY.to_owned(),
        planned_by: plan.dbduel.clone(),
        created: plan.created.clone(),
        question: plan.question.clone(),
        seed: plan.seed,
        baseline: plan.contenders[plan.baseline].name.clone(),
        scope: match plan.schedule.epochs {
            Some(_) => Scope::TheseServers,
            None => Scope::TheseInstances,
        },
        rule: plan.decision.clone(),
        schedule: plan.schedule.clone(),
        load: plan.load.clone(),
        hosts: plan.hosts.clone(),
        workload: plan.workload.clone(),
        order_entry: workloads::order_entry::of(&evidence),
        classes: classes::of(&evidence),
        contenders: contenders(&evidence),
        host: record.host.clone(),
        self_test: record.self_test.clone(),
        run: run(&evidence),
        duels: (0..plan.levels.len())
            .map(|level| duel(&evidence, level))
            .collect(),
        champions: champions::choices(&whole.plan, &whole.slices),
        suite: None,
        scaling: scaling::scaling(&evidence),
        crossings: Vec::new(),
        objective: plan.objective,
        search: plan.search.clone(),
        objectives: objective::objectives(&evidence),
        identical: identical::pairs(record, &differences),
        settings: differences,
        timeline: timeline::timeline(&evidence),
        explanations: explain::explain(&evidence),
        storage: explain::amplification(&evidence),
        flames: stacks::flames(record),
        flame_differences: stack_differences::differences(record),
        profiles: profile::profiles(&evidence),
        watched: watched::watched(&evidence),
        not_measured: Vec::new(),
        audit: None,
        disclosure: dbduel_audit::disclosure::checklist(whole),
        record_digest: record.manifest_digest.clone(),
    };
    summary.crossings = scaling::crossings(&evidence, &summary.duels);
    let audit = dbduel_audit::audit(&case::case_of(whole, &summary.duels, &summary.explanations));
    let run = RunEvidence {
        evidence: &evidence,
        summary: &summary,
    };
    let findings = rules::beside_verdicts(&run, &audit);
    summary.audit = Some(audit);
    apply_voids(&mut summary, &findings, &whole.plan);
    summary.suite = suite::suite(&evidence, &summary.duels);
    overturn::explain(&mut summary);
    summary.not_measured = unmeasured::list(&summary, record);
    (summary, findings)
}

/// The audit case of a record, with its verdicts and the resources that differ with them.
#[must_use]
pub fn case(record: &Record) -> Case {
    let (summary, _) = summarise(record);
    case::case_of(record, &summary.duels, &summary.explanations)
}

fn duel(evidence: &Evidence<'_>, level: usize) -> Duel {
    let plan = evidence.plan();
    let blocks = &evidence.levels[level];
    let mut decision = decide::decide_blocks(plan, blocks, level);
    for (comparison, contender) in decision.comparisons.iter_mut().zip(plan.challengers()) {
        let question = Question::against_baseline(plan, contender, level);
        comparison.quantities = quantities::compare(evidence, level, &question);
    }
    let continuity = continuity::judge(evidence.record, level, blocks, &mut decision.comparisons);
    let pairs = pairs::compare(evidence, level, &decision.comparisons);
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
        } if contender == name => *load,
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
fn apply_voids(summary: &mut Summary, findings: &[Finding], plan: &Plan) {
    let baseline = summary.baseline.clone();
    let voids = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Void);
    for finding in voids {
        let concerns = |name: &str| {
            let mut about = finding.about.iter();
            finding.about.is_empty()
                || about.any(|about| champions::contender_of(plan, about) == name)
        };
        let duels = summary
            .duels
            .iter_mut()
            .filter(|duel| finding.level.is_none_or(|level| level == duel.level));
        for duel in duels {
            for comparison in &mut duel.comparisons {
                if comparison.verdict != Verdict::Void
                    && (concerns(&comparison.contender) || concerns(&baseline))
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
