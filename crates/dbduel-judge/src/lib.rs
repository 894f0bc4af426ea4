//! The half of dbduel that judges: a record in, a [`Summary`] and findings out.
//!
//! Reads the record and nothing else: no clock, no network, no environment, no random number that is not named by the
//! plan. The same record gives the same bytes.

mod answers;
#[cfg(test)]
mod bad_input;
mod case;
pub mod champions;
pub mod classes;
mod contention;
pub mod continuity;
mod duel;
mod evidence;
pub mod explain;
mod identical;
pub mod injected;
mod judged;
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

use dbduel_audit::{Audit, Case, Finding};
use dbduel_record::Record;

pub use duel::decide::decide_level;
pub use duel::limit::{Limit, Limited, LimitedRatio, Standing, open_limits};
pub use judged::doubts;
pub use summary::Summary;

use duel::profile;
use evidence::Evidence;
use judged::Judged;
use levels::{objective, scaling, suite};
use rules::run::RunEvidence;
use seconds::{stack_differences, stacks, timeline, watched};
use summary::SCHEMA_VERSION;

/// Which judge this is: the version of dbduel, and a digest of the sources that judge and report and of the versions of the
/// libraries. Records give the same reports where it is the same, up to what the machine's mathematical functions round
/// otherwise.
pub const IDENTITY: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("DBDUEL_JUDGE_DIGEST"));

/// Judges a record. Never fails: missing parts are left out and reported.
///
/// Findings come in the order of their weight, heaviest first.
#[must_use]
pub fn summarise(record: &Record) -> (Summary, Vec<Finding>) {
    let reduced = champions::judged_record(record);
    let whole = record;
    let evidence = Evidence::of(reduced.as_ref().unwrap_or(whole));
    let judged = Judged::of(&evidence);
    let case = case::case_of(whole, &judged.duels, &judged.explanations);
    let audit = dbduel_audit::audit(&case);
    let run = RunEvidence {
        evidence: &evidence,
        judged: &judged,
    };
    let findings = rules::beside_verdicts(&run, &audit);
    let judged = judged.with_findings(&findings, &whole.plan);
    (summary_of(whole, &evidence, judged, audit), findings)
}

/// The summary of the record `whole`, whose judged slices are those of `evidence`.
fn summary_of(whole: &Record, evidence: &Evidence<'_>, judged: Judged, audit: Audit) -> Summary {
    let (record, plan) = (evidence.record, evidence.plan());
    Summary {
        schema_version: SCHEMA_VERSION,
        judged_by: IDENTITY.to_owned(),
        planned_by: plan.dbduel.clone(),
        created: plan.created.clone(),
        question: plan.question.clone(),
        seed: plan.seed,
        rule: plan.decision.clone(),
        schedule: plan.schedule.clone(),
        load: plan.load.clone(),
        hosts: plan.hosts.clone(),
        workload: plan.workload.clone(),
        host: record.host.clone(),
        self_test: record.self_test.clone(),
        champions: champions::choices(&whole.plan, &whole.slices),
        suite: suite::suite(evidence, &judged.duels),
        scaling: scaling::scaling(evidence),
        objective: plan.objective,
        search: plan.search.clone(),
        objectives: objective::objectives(evidence),
        timeline: timeline::timeline(evidence),
        storage: explain::amplification(evidence),
        flames: stacks::flames(record),
        flame_differences: stack_differences::differences(record),
        profiles: profile::profiles(evidence),
        watched: watched::watched(evidence),
        not_measured: unmeasured::list(judged.scope, &judged.duels, record),
        audit: Some(audit),
        disclosure: dbduel_audit::disclosure::checklist(whole),
        record_digest: record.manifest_digest.clone(),
        baseline: judged.baseline,
        scope: judged.scope,
        order_entry: judged.order_entry,
        classes: judged.classes,
        statement_classes: judged.statement_classes,
        answers: judged.answers,
        contenders: judged.contenders,
        run: judged.run,
        duels: judged.duels,
        crossings: judged.crossings,
        identical: judged.identical,
        settings: judged.settings,
        explanations: judged.explanations,
    }
}

/// The audit case of a record, with its verdicts and the resources that differ with them.
#[must_use]
pub fn case(record: &Record) -> Case {
    let (summary, _) = summarise(record);
    case::case_of(record, &summary.duels, &summary.explanations)
}
