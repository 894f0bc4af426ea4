//! Checks before a contest that scripts are compiled: interpreted ones cost their clients more.

use dbduel_lua::interpretation;
use dbduel_record::Plan;
use dbduel_record::event::{Finding, Severity};
use dbduel_workloads::script;

/// Finding where the load runs scripts and LuaJIT cannot compile them.
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
        remedy: "Use a build of dbduel with its own LuaJIT, on a kernel that permits a process to execute memory that it has written."
            .to_owned(),
    })
}
