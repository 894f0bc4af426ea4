//! What a replay runs of its capture, for plans and records.

use anyhow::{Result, anyhow};
use dbduel_record::Plan;
use dbduel_record::captured;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::statement_classes::StatementClasses;

/// True for a plan that runs captured statements: their values are not for a record.
#[must_use]
pub fn is_captured(plan: &Plan) -> bool {
    plan.workloads().any(|one| one.name == captured::NAME)
}

/// The classes of single statements that the plan's replay measures; `None` for a plan without one.
///
/// # Errors
/// When the capture cannot be used.
pub fn statement_classes(plan: &Plan) -> Result<Option<StatementClasses>> {
    let Some(workload) = plan.workloads().find(|one| one.name == captured::NAME) else {
        return Ok(None);
    };
    let classes = dbduel_replay::statement_classes(&workload.parameters)
        .map_err(|why| anyhow!("the capture cannot be replayed: {why}"))?;
    Ok(Some(StatementClasses { classes }))
}

/// Notice with the coverage of the capture that the plan replays; `None` for a plan without one.
///
/// # Errors
/// When the capture cannot be used.
pub fn note(plan: &Plan) -> Result<Option<Notice>> {
    let Some(workload) = plan.workloads().find(|one| one.name == captured::NAME) else {
        return Ok(None);
    };
    let coverage = dbduel_replay::coverage(&workload.parameters)
        .map_err(|why| anyhow!("the capture cannot be replayed: {why}"))?;
    let mut claim = coverage.claim();
    if let Some(order) = dbduel_replay::order_claim(&workload.parameters) {
        claim = format!("{claim} {order}");
    }
    Ok(Some(Notice::new(
        "load.captured",
        Severity::Note,
        &[],
        claim,
        "`dbduel capture show --left-out` lists the statements that no replay runs.",
    )))
}
