//! LinkBench: a social graph of nodes, typed links between them, and a count of links per node and type.
//!
//! A reimplementation of Facebook's benchmark of 2013, whose program is archived. The same
//! tables, operations, mix, distributions and statements; the same parameters by the same names, also from its
//! configuration files ([`import`]).
//!
//! Intended differences: a client has one connection instead of two, so that a transaction begins with a
//! BEGIN in the packet of its first statement. After a conflict the transaction is rolled back before it is
//! retried; otherwise counts drift. Latency is recorded for every operation, from when it was due.
//! Tables are filled in the order of ids, over connections that work on chunks of rows, by plain INSERTs; the
//! time of loading is a constant, so that all contenders hold the same rows. Four faults of the original that
//! change the load are repeated only when `original_bugs` asks for them.
//!
//! ```text
//! parameters ─► settings ─► degrees, shuffle ─► graph ─► population ─► tables
//!                  │            access, targets, payload, mix ─► input ─► client ─► operations
//! ```

mod access;
mod arithmetic;
mod check;
mod client;
mod consistency;
mod degrees;
mod graph;
mod history;
mod import;
mod input;
mod mix;
mod operations;
mod payload;
mod population;
mod recognise;
mod schema;
mod settings;
mod shuffle;
mod specs;
mod targets;

#[cfg(test)]
mod fidelity;
#[cfg(test)]
mod test_rows;

use dbduel_client::{ClientContext, ClientTask, Clients};
use dbduel_driver::{Connection, Dialect};
use dbduel_record::plan::Parameters;

use super::completion::{Import, ImportError};
use super::parameters::{ParameterError, ParameterSpec, Resolved};
use super::verification::{Moment, Verification, VerifyError};
use super::{Table, Workload};
use client::Requester;
use settings::Settings;

/// The LinkBench workload.
#[derive(Debug)]
pub(super) struct LinkBench;

impl Workload for LinkBench {
    fn name(&self) -> &'static str {
        "linkbench"
    }

    fn about(&self) -> &'static str {
        "A social graph after Facebook's LinkBench: nodes, links and their counts; mostly reads of a node's newest links."
    }

    fn classes(&self, _parameters: &Parameters) -> Vec<String> {
        mix::CLASSES.iter().map(ToString::to_string).collect()
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        specs::specs()
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        &[
            "engine",
            "row_format",
            "key_block_size",
            "page_compression",
            "create_table_options",
            "partitions",
            "index",
        ]
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        check::check(parameters)
    }

    fn loaders(&self, parameters: &Parameters) -> Option<u32> {
        u32::try_from(Resolved(parameters).count("loaders")).ok()
    }

    fn import(&self, text: &str) -> Option<Result<Import, ImportError>> {
        Some(import::import(text))
    }

    fn speaks(&self, dialect: Dialect) -> bool {
        matches!(dialect, Dialect::MySql | Dialect::PostgreSql)
    }

    fn mysql_parameters(&self) -> &'static [&'static str] {
        &["engine", "row_format", "key_block_size", "page_compression"]
    }

    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
        schema::tables(dialect, parameters)
    }

    fn disk_per_value(&self) -> f64 {
        // The index of the lists has nearly all columns of the links once more, and the rows are short.
        3.0
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["maxid1"]
    }

    fn verify(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        moment: Moment,
    ) -> Result<Verification, VerifyError> {
        consistency::verify(connection, parameters, moment)
    }
}

impl Clients for LinkBench {
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<Requester>(Settings::of(parameters))
    }
}
