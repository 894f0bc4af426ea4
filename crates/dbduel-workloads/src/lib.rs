//! The clients' workloads: one trait, and one line in a table per workload.
//!
//! A workload defines its tables, its statements and how its values are drawn. Timing, retries, output and histograms
//! are elsewhere.

pub mod captured;
pub mod completion;
pub mod fill;
mod insert_benchmark;
mod linkbench;
mod oltp;
pub mod order_entry;
pub mod parameters;
mod random_points;
mod rows;
mod sbtest;
pub mod script;
mod specs;
mod sql;
mod table;
mod verification;

use completion::{Import, ImportError};
use dbduel_client::Clients;
use dbduel_driver::{Connection, Dialect};
use dbduel_record::commits::CommitRange;
use dbduel_record::plan::Parameters;
use dbduel_text::nearest;
pub use order_entry::UnusableData;
use parameters::{ParameterError, ParameterSpec};
pub use table::{OwnData, RowContent, RowWriter, Table};
pub use verification::{CommitCheck, Condition, Moment, Verification, VerifyError};

/// A workload: its tables, its parameters, its checks, and its [clients](Clients).
pub trait Workload: Clients {
    /// Its name in experiments and records.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// Text that must accompany every result, if any.
    fn disclaimer(&self) -> Option<&'static str> {
        None
    }

    /// Its transaction classes, for resolved parameters; [`dbduel_client::tally::Class`] is an index into them.
    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        let _ = parameters;
        vec!["transaction".to_owned()]
    }

    /// Classes of the single statements that its clients measure, by their names in records, for resolved parameters;
    /// [`dbduel_client::tally::StatementDone::class`] is an index into them. Empty where transactions are measured only.
    fn statement_classes(&self, parameters: &Parameters) -> Vec<String> {
        let _ = parameters;
        Vec::new()
    }

    /// Its parameters.
    fn parameters(&self) -> Vec<ParameterSpec>;

    /// Every parameter, with the given values checked and the others at their defaults.
    ///
    /// # Errors
    /// Names the parameter to change.
    fn resolve(&self, given: &Parameters) -> Result<Parameters, ParameterError> {
        let resolved = parameters::check_all(self, given)?;
        self.check(&resolved)?;
        Ok(resolved)
    }

    /// As [`Workload::resolve`], without executing anything that could act outside of this process.
    ///
    /// # Errors
    /// As [`Workload::resolve`].
    fn resolve_confined(&self, given: &Parameters) -> Result<Parameters, ParameterError> {
        self.resolve(given)
    }

    /// Refuses resolved parameters that are each allowed but not together.
    ///
    /// # Errors
    /// Names the parameter to change.
    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        let _ = parameters;
        Ok(())
    }

    /// Names of the parameters that set how tables are stored, not their content: contenders may have their own values
    /// for them.
    fn own_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Number of connections to fill its tables with, when the parameters set it.
    fn loaders(&self, parameters: &Parameters) -> Option<u32> {
        let _ = parameters;
        None
    }

    /// Parses a configuration file of the program that the workload comes from; `None` for a workload without one.
    fn import(&self, text: &str) -> Option<Result<Import, ImportError>> {
        let _ = text;
        None
    }

    /// Maximum number of clients that its data have work for, if there is a limit.
    fn clients_max(&self, parameters: &Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// Effect of its transactions on its tables, for resolved parameters.
    fn effect(&self, parameters: &Parameters) -> Effect {
        let _ = parameters;
        Effect::Unknown
    }

    /// Number of clients of an experiment that sets none, if the workload suggests one.
    fn clients_suggested(&self, parameters: &Parameters) -> Option<u64> {
        self.clients_exactly(parameters)
    }

    /// Number of clients that it needs, if there is only one.
    fn clients_exactly(&self, parameters: &Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// True for fixed work: its clients do the same work in every slice, and the slice ends when they have done it,
    /// otherwise at the time that was ordered.
    fn has_fixed_work(&self, parameters: &Parameters) -> bool {
        let _ = parameters;
        false
    }

    /// True when the cost of a transaction depends on all those before it, so that servers are comparable only after
    /// the same work since their tables were filled.
    fn depends_on_past_work(&self, parameters: &Parameters) -> bool {
        let _ = parameters;
        false
    }

    /// Number of its quanta, where its work has an end: slice by slice its clients run one quantum after the other, and when a
    /// server has run them all its tables are restored.
    fn quanta(&self, parameters: &Parameters) -> Option<u32> {
        let _ = parameters;
        None
    }

    /// Number of draws before its clients draw anything again, where they draw without replacement: a contest restores the tables when
    /// all was drawn.
    fn draws_per_pass(&self, parameters: &Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// Required rate of a class: committed transactions per second that a load must reach to count.
    fn required_rate(&self, parameters: &Parameters, class: &str) -> Option<f64> {
        let _ = (parameters, class);
        None
    }

    /// Rows that each transaction of a class inserts, deletes or indexes, if constant.
    fn rows_per_transaction(&self, parameters: &Parameters, class: &str) -> Option<u64> {
        let _ = (parameters, class);
        None
    }

    /// True when it supports servers of this dialect.
    fn speaks(&self, dialect: Dialect) -> bool {
        dialect == Dialect::MySql
    }

    /// Refuses resolved parameters that servers of this dialect do not support.
    ///
    /// # Errors
    /// Names the parameter to change.
    fn check_dialect(
        &self,
        dialect: Dialect,
        parameters: &Parameters,
    ) -> Result<(), ParameterError> {
        let _ = (dialect, parameters);
        Ok(())
    }

    /// Names of parameters that only MySQL and MariaDB support. Values other than the default are
    /// [refused](parameters::check_dialect) for servers of another dialect.
    fn mysql_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its tables, for resolved parameters, with statements in this dialect; a dialect that it does not
    /// [speak](Workload::speaks) is treated as MySQL's.
    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table>;

    /// Size of its tables on disk, with all indexes, as a multiple of the bytes of their values, as InnoDB stores them
    /// uncompressed.
    fn disk_per_value(&self) -> f64 {
        1.5
    }

    /// Names of the parameters that set the number of rows.
    fn size_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Names of the parameters that decide the content of its tables, where not all do: contests that differ in others can use the
    /// same tables.
    fn data_parameters(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// How it makes and drops its tables, if only the workload itself can; it has no [`Workload::tables`] then.
    fn own_data(&self) -> Option<&dyn OwnData> {
        None
    }

    /// Statements in this dialect that run one after another when all tables are filled and finished.
    fn post_load_sql(&self, dialect: Dialect, parameters: &Parameters) -> Vec<String> {
        let _ = (dialect, parameters);
        Vec::new()
    }

    /// Checks that the tables in the connection's default database are this workload's, are complete and fit the
    /// parameters, as far as a quick check can show.
    ///
    /// # Errors
    /// [`VerifyError`] says whose tables they are, or what does not fit.
    fn recognise(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
    ) -> Result<(), VerifyError> {
        let _ = (parameters, connection);
        Ok(())
    }

    /// Checks the conditions of its data, in the connection's default database. A workload whose data follow no rules
    /// has none.
    ///
    /// # Errors
    /// [`VerifyError`] when the data cannot be read or are not this workload's; a violated condition is not an error.
    fn verify(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        moment: Moment,
    ) -> Result<Verification, VerifyError> {
        let _ = (parameters, connection, moment);
        Ok(Verification::default())
    }

    /// Whether its clients keep a durability log.
    fn keeps_commit_log(&self) -> bool {
        false
    }

    /// Checks that the commits of a durability log are in the connection's default database. A workload without such a
    /// log has none to compare.
    ///
    /// # Errors
    /// [`VerifyError`] when the data cannot be read, or data or log are not this workload's; a lost commit is not an
    /// error.
    fn verify_commits(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        log: &[CommitRange],
    ) -> Result<Option<CommitCheck>, VerifyError> {
        let _ = (parameters, connection, log);
        Ok(None)
    }
}

/// Effect of transactions on tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They read.
    Reads,
    /// They change rows but not their number.
    Changes,
    /// They insert or delete rows.
    ChangesRowCount,
    /// The workload cannot tell.
    Unknown,
}

/// Every workload that is complete without further files.
pub const WORKLOADS: &[&dyn Workload] = &[
    &oltp::Oltp::POINT_SELECT,
    &oltp::Oltp::READ_ONLY,
    &oltp::Oltp::READ_WRITE,
    &oltp::Oltp::WRITE_ONLY,
    &oltp::Oltp::UPDATE_INDEX,
    &oltp::Oltp::UPDATE_NON_INDEX,
    &oltp::Oltp::INSERT,
    &oltp::Oltp::DELETE,
    &oltp::SingleStatement::SELECT,
    &oltp::SingleStatement::UPDATE_INLIST,
    &random_points::SelectRandom::POINTS,
    &random_points::SelectRandom::RANGES,
    &order_entry::OrderEntry,
    &linkbench::LinkBench,
    &insert_benchmark::InsertBenchmark,
];

/// No workload has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no workload `{name}`{}; `dbduel workloads` lists all workloads", parameters::suggestion(*nearest)
)]
pub struct UnknownWorkload {
    /// The requested name.
    pub name: String,
    /// The most similar name, when there is one.
    pub nearest: Option<&'static str>,
}

/// The workload of that name; `_` and `-` are equivalent.
///
/// # Errors
/// Names the most similar workload.
pub fn find(name: &str) -> Result<&'static dyn Workload, UnknownWorkload> {
    let wanted = name.replace('_', "-");
    if let Some(workload) = WORKLOADS.iter().find(|workload| workload.name() == wanted) {
        return Ok(*workload);
    }
    let with_files: [&'static dyn Workload; 2] = [&script::Script, &captured::Captured];
    if let Some(workload) = with_files.iter().find(|workload| workload.name() == wanted) {
        return Ok(*workload);
    }
    let names = WORKLOADS.iter().map(|workload| workload.name());
    let is_tpcc = wanted.replace('-', "").to_lowercase().starts_with("tpcc");
    Err(UnknownWorkload {
        name: name.to_owned(),
        nearest: if is_tpcc {
            // What it is derived from, and people look for.
            Some(order_entry::OrderEntry.name())
        } else {
            nearest(&wanted, names)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_client::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn every_workload_has_a_unique_name_and_a_sentence() {
        let mut seen = BTreeSet::new();
        for workload in WORKLOADS {
            let name = workload.name();
            assert!(seen.insert(name), "`{name}` stands twice");
            assert!(
                name.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '-'),
                "{name}"
            );
            assert!(
                workload.about().ends_with('.'),
                "`{name}`: about() is a sentence"
            );
            let classes = workload.classes(&Parameters::new());
            assert!(!classes.is_empty(), "`{name}` has no class");
        }
    }

    #[test]
    fn every_parameter_is_described_and_has_a_default_in_its_range() {
        for workload in WORKLOADS {
            let mut seen = BTreeSet::new();
            for spec in workload.parameters() {
                let label = format!("{}: {}", workload.name(), spec.name);
                assert!(seen.insert(spec.name), "{label} stands twice");
                assert!(spec.about.ends_with('.'), "{label}: about is a sentence");
                assert!(
                    !spec.name.contains('-'),
                    "{label}: the canonical spelling has underscores"
                );
                assert!(
                    spec.check(&spec.default.value()).is_ok(),
                    "{label}: default out of range"
                );
            }
        }
    }

    #[test]
    fn defaults_resolve_and_resolve_again_to_themselves() {
        for workload in WORKLOADS {
            let resolved = parameters::resolve(*workload, &Parameters::new()).unwrap();
            assert_eq!(resolved.len(), workload.parameters().len());
            assert_eq!(parameters::resolve(*workload, &resolved).unwrap(), resolved);
        }
    }

    #[test]
    fn every_workload_has_tables_whose_rows_are_reproducible() {
        for workload in WORKLOADS {
            let resolved = parameters::resolve(*workload, &Parameters::new()).unwrap();
            let tables = workload.tables(Dialect::MySql, &resolved);
            assert!(!tables.is_empty(), "{}", workload.name());
            for table in tables {
                let write = || {
                    let mut sql = String::new();
                    table.content.write(5, &mut Random::new(1), &mut sql);
                    sql
                };
                assert_eq!(write(), write());
                assert!(write().starts_with('(') && write().ends_with(')'));
            }
        }
    }

    #[test]
    fn a_misspelt_workload_is_pointed_to_the_right_one() {
        assert_eq!(
            find("oltp_read_write").map(Workload::name),
            Ok("oltp-read-write")
        );
        let Err(error) = find("oltp-raed-write") else {
            panic!("found")
        };
        assert_eq!(error.nearest, Some("oltp-read-write"));
    }
}
