//! Whether scripts are compiled, checked before anything starts: interpreted ones cost their clients more.

use dbduel_lua;
use dbduel_record::Plan;
use dbduel_record::event::{Finding, Severity};
use dbduel_workloads::script;

/// A finding where scripts are the load and LuaJIT cannot compile them.
#[must_use]
pub fn doubt(plan: &Plan) -> Option<Finding> {
    let is_script = plan
        .workloads()
        .any(|workload| workload.name == script::NAME);
    let claim = is_script.then(claim).flatten()?;
    Some(Finding {
        rule: "load.interpreted".to_owned(),
        severity: Severity::Doubt,
        about: Vec::new(),
        claim: claim.to_owned(),
        remedy: "Use a build of dbduel with its own LuaJIT, on a kernel that lets a process execute memory that it wrote."
            .to_owned(),
    })
}

/// Says that scripts are interpreted in this process, if they are.
#[must_use]
pub fn claim() -> Option<&'static str> {
    claim_if(dbduel_lua::compiles())
}

fn claim_if(compiles: bool) -> Option<&'static str> {
    (!compiles).then_some(
        "LuaJIT cannot compile scripts here, because its compiled loops could not be interrupted, so it interprets them: clients \
         take about half as much processor time again, and throughput that they limit is lower.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreted_scripts_are_told() {
        assert_eq!(claim_if(true), None);
        assert!(claim_if(false).unwrap().contains("interprets them"));
    }
}
