//! The OLTP workloads of sysbench: statements, values and their order are those of version 1.0.20.
//!
//! For every kind of statement in a transaction one table is chosen, uniformly, and used for all its
//! repetitions; ids come from the distribution `rand_type` over 1..=`table_size`. The end of a range is
//! not clamped to the table.
//!
//! Clients of oltp-insert that number the rows themselves draw the same numbers in every run, as
//! sysbench's do. Where sysbench ends with an error at the first number that an earlier run has used, they
//! pass over it.

mod client;
mod per_table;
mod single_statement;

use dbduel_client::distributions::Distribution;
use dbduel_client::{ClientContext, ClientTask, Clients};
use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;

use super::parameters::{ParameterError, ParameterSpec, Resolved};
use super::sbtest::{self, Sbtest};
use super::{Effect, Table, Workload};
use client::OltpClient;
pub(super) use single_statement::SingleStatement;

/// One of the OLTP workloads.
#[derive(Debug)]
pub(super) struct Oltp {
    script: Script,
    name: &'static str,
    about: &'static str,
}

/// Statements of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    PointSelect,
    ReadOnly,
    ReadWrite,
    WriteOnly,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
}

impl Oltp {
    pub(super) const POINT_SELECT: Self = Oltp {
        script: Script::PointSelect,
        name: "oltp-point-select",
        about: "One query by primary key, outside a transaction.",
    };
    pub(super) const READ_ONLY: Self = Oltp {
        script: Script::ReadOnly,
        name: "oltp-read-only",
        about: "Ten point queries and four range queries in a transaction.",
    };
    pub(super) const READ_WRITE: Self = Oltp {
        script: Script::ReadWrite,
        name: "oltp-read-write",
        about: "The queries of oltp-read-only and the changes of oltp-write-only in a transaction.",
    };
    pub(super) const WRITE_ONLY: Self = Oltp {
        script: Script::WriteOnly,
        name: "oltp-write-only",
        about: "Two updates, and a row deleted and inserted again, in a transaction.",
    };
    pub(super) const UPDATE_INDEX: Self = Oltp {
        script: Script::UpdateIndex,
        name: "oltp-update-index",
        about: "One update of an indexed column, in autocommit.",
    };
    pub(super) const UPDATE_NON_INDEX: Self = Oltp {
        script: Script::UpdateNonIndex,
        name: "oltp-update-non-index",
        about: "One update of a column without index, in autocommit.",
    };
    pub(super) const INSERT: Self = Oltp {
        script: Script::Insert,
        name: "oltp-insert",
        about: "One insert, always sent as text, in autocommit; the tables grow.",
    };
    pub(super) const DELETE: Self = Oltp {
        script: Script::Delete,
        name: "oltp-delete",
        about: "One delete by primary key, in autocommit; the tables run out of rows.",
    };
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        [sbtest::OLTP, sbtest::COMMON].concat()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        sbtest::check(parameters)?;
        let resolved = Resolved(parameters);
        let (most, rows) = (resolved.integer("id_max"), resolved.integer("table_size"));
        if most > rows {
            return Err(ParameterError {
                parameter: "id_max".to_owned(),
                why: format!(
                    "cannot be {most} in tables of {rows} rows; lower it, or raise `table_size`"
                ),
                nearest: None,
            });
        }
        Ok(())
    }

    fn effect(&self, _parameters: &Parameters) -> Effect {
        match self.script {
            Script::PointSelect | Script::ReadOnly => Effect::Reads,
            Script::ReadWrite
            | Script::WriteOnly
            | Script::UpdateIndex
            | Script::UpdateNonIndex => Effect::Changes,
            Script::Insert | Script::Delete => Effect::ChangesRowCount,
        }
    }

    fn speaks(&self, _dialect: Dialect) -> bool {
        true
    }

    fn check_dialect(
        &self,
        dialect: Dialect,
        parameters: &Parameters,
    ) -> Result<(), ParameterError> {
        let resolved = Resolved(parameters);
        let is_numbered = self.script == Script::Insert && resolved.switch("auto_inc");
        if dialect == Dialect::Sqlite && is_numbered && resolved.switch("secondary") {
            let why = "cannot be on with `auto_inc` on SQLite, which numbers rows by their primary key; \
                       set `auto_inc = false`";
            return Err(ParameterError {
                parameter: "secondary".to_owned(),
                why: why.to_owned(),
                nearest: None,
            });
        }
        Ok(())
    }

    fn mysql_parameters(&self) -> &'static [&'static str] {
        &["engine"]
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        sbtest::TABLE_PARAMETERS
    }

    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
        let sbtest = Sbtest::new(parameters);
        // Numbers that the clients of oltp-insert make up could already be in a filled table.
        let empty = self.script == Script::Insert && !sbtest.auto_inc;
        let rows = if empty {
            0
        } else {
            sbtest.table_size.unsigned_abs()
        };
        tables(&sbtest, dialect, parameters, rows)
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["table_size", "tables"]
    }
}

impl Clients for Oltp {
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<OltpClient>(Options::new(self.script, parameters))
    }
}

/// The tables of workloads that have several, each with `rows` rows.
fn tables(sbtest: &Sbtest, dialect: Dialect, parameters: &Parameters, rows: u64) -> Vec<Table> {
    let tables = Resolved(parameters).count("tables");
    (1..=tables)
        .map(|number| sbtest.table(dialect, parameters, number, rows))
        .collect()
}

/// Statements of each kind in a transaction.
#[derive(Debug, Clone, Copy)]
struct Counts {
    point_selects: u64,
    simple_ranges: u64,
    sum_ranges: u64,
    order_ranges: u64,
    distinct_ranges: u64,
    index_updates: u64,
    non_index_updates: u64,
    delete_inserts: u64,
}

/// State common to all clients.
#[derive(Clone)]
pub(super) struct Options {
    script: Script,
    sbtest: Sbtest,
    tables: u64,
    /// Largest id drawn.
    id_max: i64,
    range_size: i64,
    transactional: bool,
    counts: Counts,
}

impl Options {
    fn new(script: Script, parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let reads = matches!(script, Script::ReadOnly | Script::ReadWrite);
        let writes = matches!(script, Script::WriteOnly | Script::ReadWrite);
        let ranges = reads && resolved.switch("range_selects");
        let count_if = |used: bool, name: &str| if used { resolved.count(name) } else { 0 };
        let point_selects = match script {
            Script::PointSelect => 1,
            _ => count_if(reads, "point_selects"),
        };
        let counts = Counts {
            point_selects,
            simple_ranges: count_if(ranges, "simple_ranges"),
            sum_ranges: count_if(ranges, "sum_ranges"),
            order_ranges: count_if(ranges, "order_ranges"),
            distinct_ranges: count_if(ranges, "distinct_ranges"),
            index_updates: count_if(writes || script == Script::UpdateIndex, "index_updates"),
            non_index_updates: count_if(
                writes || script == Script::UpdateNonIndex,
                "non_index_updates",
            ),
            delete_inserts: count_if(writes, "delete_inserts"),
        };
        let sbtest = Sbtest::new(parameters);
        let id_max = match resolved.integer("id_max") {
            0 => sbtest.table_size,
            most => most,
        };
        Options {
            script,
            id_max,
            sbtest,
            tables: resolved.count("tables"),
            range_size: resolved.integer("range_size"),
            transactional: (reads || writes) && !resolved.switch("skip_trx"),
            counts,
        }
    }

    /// The distribution of ids, and of `k`.
    fn ids(&self) -> Distribution {
        Distribution::new(self.sbtest.shape, 1, self.id_max)
    }
}
