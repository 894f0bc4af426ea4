//! Rules about what somebody's results leave out.

use dbduel_record::event::Severity;

use crate::judge::audit::evidence::ServerEvidence;
use crate::judge::audit::{Case, Stage};
use crate::judge::finding::{Finding, FindingKind};

pub fn missing_dumps(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let missing = |contender: &ServerEvidence| {
        let mut missing = Vec::new();
        if contender.variables.is_empty() {
            missing.push("SHOW GLOBAL VARIABLES (redo log size, flush threads, checksums and everything else that it ran with)");
        } else if contender.is_predicted {
            missing.push("SHOW GLOBAL VARIABLES (an option file says what was asked for, not what was in effect)");
        }
        if contender.status_after.is_empty() {
            missing.push("SHOW GLOBAL STATUS after the run");
        } else if contender.status_before.is_empty() {
            missing.push("SHOW GLOBAL STATUS before the run");
        }
        if contender.engine_status_after.is_none() {
            missing.push("SHOW ENGINE INNODB STATUS");
        }
        missing
    };
    // What is missing of several alike is said once.
    let mut alike: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for contender in &case.contenders {
        let missing = missing(contender);
        match alike.iter_mut().find(|(known, _)| *known == missing) {
            Some((_, names)) => names.push(contender.name.clone()),
            None => alike.push((missing, vec![contender.name.clone()])),
        }
    }
    alike.retain(|(missing, _)| !missing.is_empty());
    let finding = |(missing, names): (Vec<&str>, Vec<String>)| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let claim = format!(
            "The results do not show for {}: {}.",
            quoted.join(", "),
            missing.join("; ")
        );
        let mut finding = Finding::new(
            Severity::Doubt,
            &[],
            claim,
            "Publish them beside the figures.",
        )
        .of(FindingKind::Undisclosed);
        finding.about = names;
        finding
    };
    alike.into_iter().map(finding).collect()
}

pub fn missing_host(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let host = case.host.clone().unwrap_or_default();
    let facts: &[(&str, bool)] = &[
        ("processors", host.cpus.is_some()),
        (
            "threads per core (whether hyper-threading is on)",
            host.threads_per_core.is_some(),
        ),
        ("sockets", host.sockets.is_some()),
        ("memory", host.memory_bytes.is_some()),
        ("storage device", host.block_device.is_some()),
        ("file system and mount options", host.file_system.is_some()),
        ("kernel", host.kernel.is_some()),
        (
            "transparent huge pages",
            host.transparent_huge_pages.is_some(),
        ),
    ];
    let missing: Vec<&str> = facts
        .iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let claim = format!(
        "The results do not say of the machine: {}.",
        missing.join(", ")
    );
    // Who looked and did not see has told what can be told.
    let severity = if case.host.is_some() {
        Severity::Note
    } else {
        Severity::Doubt
    };
    vec![
        Finding::new(severity, &[], claim, "Publish them beside the figures.")
            .of(FindingKind::Undisclosed),
    ]
}
