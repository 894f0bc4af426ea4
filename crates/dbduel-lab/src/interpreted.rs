//! Whether scripts are compiled, checked before anything starts: interpreted ones cost their clients more.

use dbduel_lua::interpretation;
use dbduel_record::Plan;
use dbduel_record::event::{Finding, Severity};
use dbduel_workloads::script;

/// A finding where scripts are the load and LuaJIT cannot compile them.
#[must_use]
pub fn doubt(plan: &Plan) -> Option<Finding> {
    let is_script = plan
        .workloads()
        .any(|workload| workload.name == script::NAME);
    let claim = is_script.then(interpretation).flatten()?;
    Some(Finding {
        rule: "load.interpreted".to_owned(),
        severity: Severity::Doubt,
        about: Vec::new(),
        claim: claim.to_owned(),
        remedy: "Use a build of dbduel with its own LuaJIT, on a kernel that lets a process execute memory that it wrote."
            .to_owned(),
    })
}
