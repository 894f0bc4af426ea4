//! Compares a server's limit of prepared statements with what the clients prepare, before data are loaded.

use anyhow::Result;
use dbduel_audit::{option_value, variable_name};
use dbduel_client::preparations;
use dbduel_driver::{Connection, Dialect};
use dbduel_inspect::facts::scalar;
use dbduel_machine::interrupt;
use dbduel_machine::random::fresh_seed;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::plan::{Contender, Plan, Workload};
use dbduel_text::counts;

use crate::contest::ContestConfig;
use crate::contest::backend::ContenderServer;
use crate::contest::journal::Journal;

/// The limit, for all sessions of a server of MySQL or MariaDB together.
const LIMIT: &str = "max_prepared_stmt_count";

/// Statements of each client that some servers cannot prepare and get as text: BEGIN and COMMIT.
const UNPREPARABLE: u64 = 2;

/// Journals which limits are lower than the number of statements that the clients prepare, with the number needed. Servers that the
/// lab starts are checked by their settings, running ones by `connections` to them. A number of statements that cannot be found
/// without the data is not checked.
///
/// The contest goes on: clients may close statements before they prepare others, and where they do not, the server refuses.
///
/// # Errors
/// When the record cannot be written, or the user interrupts.
pub fn check(
    config: &ContestConfig<'_>,
    residents: &[ContenderServer],
    connections: &mut [(&Contender, Connection)],
    journal: &mut Journal<'_>,
) -> Result<()> {
    let plan = &config.plan;
    let mut counted = Counted::default();
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
        let Some(limit) = limit else {
            continue;
        };
        if let Some(notice) = exceeded(plan, contender, limit, &mut counted)? {
            config.remark(&format!("{}; {}", notice.claim, notice.remedy));
            journal.notice(notice)?;
        }
    }
    Ok(())
}

/// The limit of a server that the lab starts; `None` for one that has none.
fn limit_of(contender: &Contender, resident: &ContenderServer) -> Option<u64> {
    let mut settings = contender.settings.iter().rev();
    if let Some(own) = settings.find(|setting| variable_name(&setting.name) == LIMIT) {
        return option_value(&own.value).parse().ok();
    }
    let product = resident.backend.build()?.product().ok()?;
    let mut needed = product.needed_settings(0).into_iter();
    let (_, limit) = needed.find(|(name, _)| *name == LIMIT)?;
    Some(limit.into())
}

/// Notice on the first level whose clients prepare more statements than the limit.
fn exceeded(
    plan: &Plan,
    contender: &Contender,
    limit: u64,
    counted: &mut Counted,
) -> Result<Option<Notice>> {
    // Levels share the connections of their clients, except those of a suite.
    let levels = if plan.suite.is_some() {
        plan.levels.len()
    } else {
        1
    };
    for level in 0..levels {
        let workload = plan.workload_at(level, contender);
        let clients = u64::from(plan.connections_at(level));
        let Some(each) = counted.prepared_by_one(&workload)? else {
            continue;
        };
        if each.saturating_sub(UNPREPARABLE).saturating_mul(clients) > limit {
            let needed = each.saturating_mul(clients);
            let claim = format!(
                "`{}`: {} prepare up to {} statements, {} each, and the limit of its server is {}, beyond which it refuses them",
                contender.name,
                counts::things(clients, "client"),
                counts::of(needed),
                counts::of(each),
                counts::of(limit)
            );
            // A number to be copied.
            let remedy = format!(
                "set {LIMIT} to {needed} or more, or use fewer clients{}",
                as_text(&workload)
            );
            let names = [contender.name.as_str()];
            return Ok(Some(Notice::new(
                "load.prepared-statements",
                Severity::Note,
                &names,
                claim,
                &remedy,
            )));
        }
    }
    Ok(None)
}

/// Statements that one client of each workload prepares before its first transaction.
#[derive(Default)]
struct Counted {
    workloads: Vec<(Workload, Option<u64>)>,
}

impl Counted {
    /// The number for a workload, counted once; `None` where it cannot be found without data.
    ///
    /// # Errors
    /// When the user interrupts.
    fn prepared_by_one(&mut self, workload: &Workload) -> Result<Option<u64>> {
        let mut known = self.workloads.iter();
        if let Some((_, count)) = known.find(|(known, _)| known == workload) {
            return Ok(*count);
        }
        interrupt::check()?;
        let count = count(workload);
        self.workloads.push((workload.clone(), count));
        Ok(count)
    }
}

/// Opens one client of the workload on a mock server, and counts.
fn count(workload: &Workload) -> Option<u64> {
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
