//! Checks before a contest that scripts are compiled: interpreted ones cost their clients more.

use dbduel_lua::interpretation;
use dbduel_record::Plan;
use dbduel_record::event::{Notice, Severity};
use dbduel_workloads::script;

/// Notice where the load runs scripts and LuaJIT cannot compile them.
#[must_use]
pub fn doubt(plan: &Plan) -> Option<Notice> {
    let is_script = plan
        .workloads()
        .any(|workload| workload.name == script::NAME);
    let claim = is_script.then(interpretation).flatten()?;
    Some(Notice::new(
        "load.interpreted",
        Severity::Doubt,
        &[],
        claim.to_owned(),
        "Use a build of dbduel with its own LuaJIT, on a kernel that permits a process to execute memory that it has written.",
    ))
}
