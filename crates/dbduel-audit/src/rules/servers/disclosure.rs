//! Rules about what published results leave out.

use dbduel_record::event::Severity;
use dbduel_record::facts::Host;

use crate::evidence::ServerEvidence;
use crate::finding::{Finding, FindingKind, quoted};
use crate::{Case, Product, Stage};

/// Remedy for missing evidence.
const PUBLISH: &str = "Publish them with the figures.";

pub fn missing_dumps(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let missing = |contender: &ServerEvidence| {
        match contender.product {
            Product::PostgreSql => return missing_of_postgresql(contender),
            Product::Sqlite => return missing_of_sqlite(contender),
            Product::MySql | Product::MariaDb | Product::Percona => {}
        }
        let mut missing = Vec::new();
        if contender.variables.is_empty() {
            missing.push("SHOW GLOBAL VARIABLES (redo log size, flush threads, checksums and all other settings)");
        } else if contender.is_predicted {
            missing.push("SHOW GLOBAL VARIABLES (an option file has the requested settings, not the effective ones)");
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
        let claim = format!(
            "Missing from the results of {}: {}.",
            quoted(&names),
            missing.join("; ")
        );
        undisclosed(Severity::Doubt, names, claim, PUBLISH)
    };
    alike.into_iter().map(finding).collect()
}

fn missing_of_postgresql(contender: &ServerEvidence) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if contender.variables.is_empty() {
        missing.push("SHOW ALL (WAL size, checkpoints, autovacuum and all other settings)");
    } else if contender.is_predicted {
        missing
            .push("SHOW ALL (an option file has the requested settings, not the effective ones)");
    }
    if contender.status_after.is_empty() {
        missing.push("pg_stat_database and the other statistics views after the run");
    } else if contender.status_before.is_empty() {
        missing.push("pg_stat_database and the other statistics views before the run");
    }
    missing
}

fn missing_of_sqlite(contender: &ServerEvidence) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if contender.variables.is_empty() || contender.is_predicted {
        missing.push("the PRAGMAs of the connections that were measured (journal_mode, synchronous, cache_size, busy_timeout and all others)");
    }
    if !contender.probe.contains_key("compile_options") {
        missing.push("PRAGMA compile_options");
    }
    missing
}

/// Whether a fact of a machine is known.
type HasFact = fn(&Host) -> bool;

pub fn missing_host(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let host = case.host.clone().unwrap_or_default();
    let facts: &[(&str, HasFact)] = &[
        ("processors", |host| host.cpus.is_some()),
        ("threads per core (whether hyper-threading is on)", |host| {
            host.threads_per_core.is_some()
        }),
        ("sockets", |host| host.sockets.is_some()),
        ("memory", |host| host.memory_bytes.is_some()),
        ("storage device", |host| host.block_device.is_some()),
        ("file system and mount options", |host| {
            host.file_system.is_some()
        }),
        ("kernel", |host| host.kernel.is_some()),
        ("transparent huge pages", |host| {
            host.transparent_huge_pages.is_some()
        }),
    ];
    // Where servers ran on several hosts, what these differ in is with each.
    let is_there = |has: HasFact| {
        let each = &host.server_hosts;
        has(&host) || !each.is_empty() && each.iter().all(|one| has(&one.facts))
    };
    let missing: Vec<&str> = facts
        .iter()
        .filter(|(_, has)| !is_there(*has))
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let claim = format!("Missing about the machine: {}.", missing.join(", "));
    // A host that was examined and does not show a fact has nothing more to disclose.
    let severity = if case.host.is_some() {
        Severity::Note
    } else {
        Severity::Doubt
    };
    vec![undisclosed(severity, Vec::new(), claim, PUBLISH)]
}

pub fn protocol_unknown(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let unknown: Vec<&ServerEvidence> = case
        .contenders
        .iter()
        .filter(|contender| {
            contender.connection.prepared.is_none() && contender.prepared_share().is_none()
        })
        .collect();
    let Some(first) = unknown.first() else {
        return Vec::new();
    };
    // PostgreSQL and SQLite do not count how statements came.
    let (reason, remedy) = match first.product {
        Product::PostgreSql => ("", "Say which protocol the client used."),
        Product::Sqlite => ("", "Say whether the client kept its compiled statements."),
        Product::MySql | Product::MariaDb | Product::Percona => (
            ": no counters of Com_stmt_execute before and after the run",
            "Publish SHOW GLOBAL STATUS from before and after the run.",
        ),
    };
    let unknown: Vec<String> = unknown.iter().map(|one| one.name.clone()).collect();
    let claim = format!(
        "Use of prepared statements is unknown for {}{reason}.",
        quoted(&unknown)
    );
    vec![undisclosed(Severity::Doubt, unknown, claim, remedy)]
}

fn undisclosed(severity: Severity, about: Vec<String>, claim: String, remedy: &str) -> Finding {
    let finding = Finding::new(severity, &[], claim, remedy);
    Finding {
        about,
        ..finding.of(FindingKind::Undisclosed)
    }
}
