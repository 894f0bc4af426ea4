//! The Insert Benchmark (Mark Callaghan): inserts in key order into tables with secondary indexes, deletes from their other end,
//! and queries beside both. docs/insert-benchmark.md describes its steps.
//!
//! Each table has clients of its own. Rows follow from a seed and their number, and slices may end after a number of rows, so
//! that servers of different speed hold the same rows after the same slices.

mod client;
mod row;
mod schema;
mod settings;

use std::sync::Arc;

use dbduel_client::{ClientContext, ClientTask, Clients, Shared};
use dbduel_driver::Dialect;
use dbduel_record::insert_benchmark;
use dbduel_record::plan::Parameters;

use super::parameters::{ParameterError, ParameterSpec};
use super::{Effect, Table, Workload};
use client::{InsertBenchmarkClient, TableProgress};
use settings::Settings;

/// The workload.
#[derive(Debug)]
pub(super) struct InsertBenchmark;

impl Workload for InsertBenchmark {
    fn name(&self) -> &'static str {
        insert_benchmark::NAME
    }

    fn about(&self) -> &'static str {
        "A step of the Insert Benchmark: inserts and deletes, or queries beside both at a fixed rate."
    }

    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        let roles = Settings::new(parameters).step.roles();
        roles.iter().map(|role| role.class().to_owned()).collect()
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        settings::PARAMETERS.to_vec()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        settings::check(parameters)
    }

    fn effect(&self, _parameters: &Parameters) -> Effect {
        Effect::ChangesRowCount
    }

    fn clients_exactly(&self, parameters: &Parameters) -> Option<u64> {
        Some(Settings::new(parameters).clients())
    }

    fn has_fixed_work(&self, parameters: &Parameters) -> bool {
        insert_benchmark::has_fixed_work(parameters)
    }

    fn depends_on_past_work(&self, _parameters: &Parameters) -> bool {
        true
    }

    fn required_rate(&self, parameters: &Parameters, class: &str) -> Option<f64> {
        let is_background = insert_benchmark::BACKGROUND.contains(&class);
        insert_benchmark::required_per_s(parameters).filter(|_| is_background)
    }

    fn rows_per_transaction(&self, parameters: &Parameters, class: &str) -> Option<u64> {
        let settings = Settings::new(parameters);
        match class {
            "insert" | "delete" => Some(settings.rows_per_statement),
            "index" => Some(settings.rows + settings.rows_per_statement),
            _ => None,
        }
    }

    fn speaks(&self, dialect: Dialect) -> bool {
        matches!(dialect, Dialect::MySql | Dialect::PostgreSql)
    }

    fn mysql_parameters(&self) -> &'static [&'static str] {
        &["engine"]
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        &["engine", "create_table_options"]
    }

    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
        schema::tables(dialect, parameters)
    }

    fn disk_per_value(&self) -> f64 {
        4.0
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["rows", "tables"]
    }
}

impl Clients for InsertBenchmark {
    fn shared(&self, parameters: &Parameters) -> Shared {
        let tables = Settings::new(parameters).tables;
        let tables: Vec<TableProgress> = (0..tables).map(|_| TableProgress::default()).collect();
        Arc::new(tables)
    }

    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<InsertBenchmarkClient>(Settings::new(parameters))
    }
}
