//! Rules about the client's side.

use dbduel_record::event::Severity;

use crate::judge::audit::{Case, Stage};
use crate::judge::finding::{Finding, FindingKind};

pub fn protocol_unknown(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let unknown: Vec<String> = case
        .contenders
        .iter()
        .filter(|contender| {
            contender.connection.prepared.is_none() && contender.prepared_share().is_none()
        })
        .map(|contender| contender.name.clone())
        .collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
    let claim = format!(
        "Whether statements were prepared on the server is not known for {}: no counters of Com_stmt_execute before and after the run.",
        names.join(", ")
    );
    let mut finding = Finding::new(
        Severity::Doubt,
        &[],
        claim,
        "Publish SHOW GLOBAL STATUS from before and after the run.",
    )
    .of(FindingKind::Undisclosed);
    finding.about = unknown;
    vec![finding]
}
