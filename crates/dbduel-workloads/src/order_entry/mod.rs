//! Order entry, derived from TPC-C: five transactions of a wholesale supplier.
//!
//! The metric is NOPM, New-Orders per minute, which counts every completed New-Order, including the
//! one in a hundred that is rolled back on purpose. Results are unaudited and not comparable with published
//! TPC-C results.
//!
//! Follows the specification (revision 5.11) to the column, the constant and the step. Intended
//! differences: keying and think times are off unless asked for; Delivery runs in the client, so its latency is
//! that of the deferred part; dates of loading are a constant, so that all contenders hold the same rows.
//!
//! There is one file per transaction. Nothing here times, retries or counts; a New-Order that is rolled
//! back on purpose counts as committed.

mod client;
mod consistency;
mod delivery;
mod durability;
mod home;
mod mix;
mod new_order;
mod order_status;
mod payment;
mod population;
mod recognise;
mod row_writer;
mod schema;
mod settings;
mod specs;
mod stock_level;
mod values;

use dbduel_client::{ClientContext, ClientTask, Clients};
use dbduel_driver::{Connection, Dialect};
use dbduel_record::commits::CommitRange;
use dbduel_record::order_entry as constraints;
use dbduel_record::plan::Parameters;

use super::parameters::{ParameterError, ParameterSpec};
use super::verification::{CommitCheck, Moment, Verification, VerifyError};
use super::{Table, Workload};
use client::Terminal;
pub use recognise::UnusableData;
use settings::Settings;

/// The workload.
#[derive(Debug)]
pub(super) struct OrderEntry;

/// Parameters of the storage of tables in MySQL and MariaDB.
const TABLE_PARAMETERS: &[&str] = &["engine", "row_format", "character_set", "collation"];

impl Workload for OrderEntry {
    fn name(&self) -> &'static str {
        constraints::NAME
    }

    fn about(&self) -> &'static str {
        "Order entry, derived from TPC-C: unaudited, and not comparable with published TPC-C results."
    }

    fn disclaimer(&self) -> Option<&'static str> {
        Some(constraints::DISCLAIMER)
    }

    fn classes(&self, _parameters: &Parameters) -> Vec<String> {
        constraints::CLASSES
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        specs::SPECS.to_vec()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        settings::check(parameters)
    }

    fn clients_max(&self, parameters: &Parameters) -> Option<u64> {
        Settings::new(parameters).clients_max()
    }

    fn speaks(&self, _dialect: Dialect) -> bool {
        true
    }

    fn check_dialect(
        &self,
        dialect: Dialect,
        parameters: &Parameters,
    ) -> Result<(), ParameterError> {
        match dialect {
            Dialect::Sqlite => settings::check_sqlite(parameters),
            Dialect::MySql | Dialect::PostgreSql => Ok(()),
        }
    }

    fn mysql_parameters(&self) -> &'static [&'static str] {
        TABLE_PARAMETERS
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        TABLE_PARAMETERS
    }

    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
        schema::tables(dialect, parameters)
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["warehouses"]
    }

    fn post_load_sql(&self, dialect: Dialect, parameters: &Parameters) -> Vec<String> {
        schema::post_load_sql(dialect, parameters)
    }

    fn recognise(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
    ) -> Result<(), VerifyError> {
        recognise::recognise(connection, &Settings::new(parameters)).map(drop)
    }

    fn verify(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        moment: Moment,
    ) -> Result<Verification, VerifyError> {
        consistency::verify(connection, &Settings::new(parameters), moment)
    }

    fn keeps_commit_log(&self) -> bool {
        true
    }

    fn verify_commits(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        log: &[CommitRange],
    ) -> Result<Option<CommitCheck>, VerifyError> {
        durability::verify_commits(connection, &Settings::new(parameters), log).map(Some)
    }
}

impl Clients for OrderEntry {
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<Terminal>(Settings::new(parameters))
    }
}
