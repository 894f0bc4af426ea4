//! Compares a server's limit of prepared statements with what the clients need, before data are loaded.

use anyhow::{Result, bail};
use dbduel_client::preparations;
use dbduel_driver::{Connection, Dialect};
use dbduel_experiment::normalised_name;
use dbduel_inspect::facts::scalar;
use dbduel_machine::random::fresh_seed;
use dbduel_record::plan::{Contender, Plan, Workload};
use dbduel_text::counts;

use crate::contest::ContestConfig;
use crate::contest::backend::ContenderServer;

/// The limit, for all sessions of a server of MySQL or MariaDB together.
const LIMIT: &str = "max_prepared_stmt_count";

/// Statements of each client that some servers cannot prepare and get as text: BEGIN and COMMIT.
const UNPREPARABLE: u64 = 2;

/// Checks the servers that the lab starts, by their settings, and running ones, by `connections` to them. A number of statements that
/// cannot be found without the data is not checked; the clients report the server's error then.
///
/// # Errors
/// When a limit is too low: names the number needed.
pub fn check(
    config: &ContestConfig<'_>,
    residents: &[ContenderServer],
    connections: &mut [(&Contender, Connection)],
) -> Result<()> {
    let plan = &config.plan;
    for (contender, resident) in plan.contenders.iter().zip(residents) {
        let mut connections = connections.iter_mut();
        let connection = connections.find(|(visited, _)| visited.name == contender.name);
        let limit = match connection {
            Some((_, connection)) if connection.dialect() == Dialect::MySql => {
                let shown = scalar(connection, &format!("SELECT @@GLOBAL.{LIMIT}"));
                shown.and_then(|shown| shown.parse().ok())
            }
            Some(_) => None,
            None => limit_of(contender, resident),
        };
        if let Some(limit) = limit {
            check_contender(plan, contender, limit)?;
        }
    }
    Ok(())
}

/// The limit of a server that the lab starts; `None` for one that has none.
fn limit_of(contender: &Contender, resident: &ContenderServer) -> Option<u64> {
    let mut settings = contender.settings.iter().rev();
    if let Some(own) = settings.find(|setting| normalised_name(&setting.name) == LIMIT) {
        return own.value.parse().ok();
    }
    let product = resident.backend.build()?.product().ok()?;
    let mut needed = product.needed_settings(0).into_iter();
    let (_, limit) = needed.find(|(name, _)| *name == LIMIT)?;
    Some(limit.into())
}

fn check_contender(plan: &Plan, contender: &Contender, limit: u64) -> Result<()> {
    // Levels share the connections of their clients, except those of a suite.
    let levels = if plan.suite.is_some() {
        plan.levels.len()
    } else {
        1
    };
    for level in 0..levels {
        let workload = plan.workload_at(level, contender);
        let clients = plan.connections_at(level);
        let Some(each) = prepared_by_one(&workload) else {
            continue;
        };
        let clients = u64::from(clients);
        if each.saturating_sub(UNPREPARABLE).saturating_mul(clients) > limit {
            let needed = each.saturating_mul(clients);
            let name = &contender.name;
            let [needed, limit, each] = [needed, limit, each].map(counts::of);
            let as_text = as_text(&workload);
            bail!(
                "contender `{name}`: {} prepare up to {needed} statements, {each} each, and the limit of its server is {limit}; set {LIMIT} to {needed} or \
                 more, or use fewer clients{as_text}",
                counts::things(clients, "client")
            );
        }
    }
    Ok(())
}

/// Statements that one client prepares before its first transaction, where this can be found without data.
fn prepared_by_one(workload: &Workload) -> Option<u64> {
    let clients = dbduel_workloads::find(&workload.name).ok()?;
    let name = format!("dbduel-{}-{:x}.sock", std::process::id(), fresh_seed());
    let socket = std::env::temp_dir().join(name);
    preparations(clients, &workload.parameters, &socket).ok()?
}

/// The remedy of a workload that can send its statements as text.
fn as_text(workload: &Workload) -> String {
    let mut parameters = workload.parameters.iter();
    let prepares = parameters.find(|(_, value)| value.as_str() == Some("prepared"));
    prepares.map_or_else(String::new, |(name, _)| {
        format!(", or set `{name} = \"text\"` in [workload]")
    })
}
