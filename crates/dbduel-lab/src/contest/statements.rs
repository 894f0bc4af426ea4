//! Statement plans of a suite's workloads: before each warm-up, clients send statements for a moment, and the server
//! explains one of each class.
//!
//! No contest depends on this: for an unexplained statement the record holds the reason.

use std::time::Duration;

use anyhow::{Error, Result};
use dbduel_driver::Connection;
use dbduel_driver::introspection;
use dbduel_load::order::SliceOrder;
use dbduel_machine::interrupt;
use dbduel_record::captured;
use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;
use dbduel_record::statements::{ExplainedStatement, LevelStatements, StatementExample};
use dbduel_record::store::STATEMENTS;

use super::Contest;
use super::warm_up::workload_at;

/// Load for sampling statements, seconds.
const SAMPLE_S: f64 = 0.3;
/// Timeout of one EXPLAIN, which executes some subqueries on old servers, unless `[limits] statement` is shorter.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(20);

impl Contest<'_, '_> {
    /// Records an awake contender's statement plans at a level, unless the record has them. The contender's clients are
    /// connected at that level afterwards.
    ///
    /// # Errors
    /// When the clients cannot be connected again, the record cannot be written, or the user interrupts.
    pub(super) fn keep_statements(&mut self, contender: usize, level: usize) -> Result<()> {
        let plan = self.plan();
        let is_kept = self.statements[contender].at(level).is_some();
        let workload = workload_at(&plan, level)?;
        let parameters = plan
            .workload_at(level, &plan.contenders[contender])
            .parameters;
        // Of those that must have done equal work a sample would be another part. Captured statements are explained before the load,
        // without their values.
        if plan.suite.is_none()
            || is_kept
            || workload.depends_on_past_work(&parameters)
            || workload.name() == captured::NAME
        {
            return Ok(());
        }
        let name = plan.contenders[contender].name.clone();
        let clients = workload.clients_exactly(&parameters).unwrap_or(1) as u32;
        let slice = SliceOrder {
            contender: name.clone(),
            clients,
            arrival: Arrival::Closed { think_ms: 0.0 },
            guard_s: 0.0,
            measured_s: SAMPLE_S,
            tick_s: SAMPLE_S,
            drain_s: plan.schedule.drain_s,
            until_halted: false,
            quantum: None,
            // The same for all contenders, so that they explain the same statements.
            seed: named_seed(plan.seed, &format!("statements/level/{level}")),
        };
        let sampled = self
            .arena
            .sample_statements(&plan, &mut *self.load, contender, level, slice);
        self.journal.commits(&name, self.load.take_commits())?;
        interrupt::check()?;
        let explained = sampled.and_then(|examples| {
            let limit = Duration::from_secs_f64(plan.limits.statement_s).min(EXPLAIN_TIMEOUT);
            let mut connection = self.arena.connect(contender, limit)?;
            let examples = examples.into_iter();
            Ok(examples
                .map(|example| explain(&mut connection, example))
                .collect())
        });
        let (statements, because) = match explained {
            Ok(statements) => (statements, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        let own = &mut self.statements[contender];
        own.levels.push(LevelStatements {
            level,
            statements,
            because,
        });
        let writer = self.journal.writer();
        writer.contender_json(&name, STATEMENTS, own)?;
        self.progress.used_s += SAMPLE_S;
        self.arena
            .reconnect_clients(&plan, &mut *self.load, contender)
    }
}

/// The server's EXPLAIN of a statement.
fn explain(connection: &mut Connection, example: StatementExample) -> ExplainedStatement {
    let answer = match &example.text {
        Some(text) => connection
            .query(&introspection::explain(connection.dialect(), text))
            .map_err(|error| format!("{:#}", Error::from(error))),
        None => Err("its text is too long to record".to_owned()),
    };
    let (columns, rows, because) = match answer {
        Ok(set) => {
            let row = |row| {
                (0..set.columns.len())
                    .map(|column| set.text(row, column))
                    .collect()
            };
            let rows = (0..set.rows.len()).map(row).collect();
            (set.columns.clone(), rows, None)
        }
        Err(why) => (Vec::new(), Vec::new(), Some(why)),
    };
    ExplainedStatement {
        example,
        columns,
        rows,
        because,
    }
}
