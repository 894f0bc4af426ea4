//! What the clients do: one trait and one line in a table per workload.
//!
//! A workload knows its tables, its statements and how its values are drawn. It does not time, retry,
//! print or know a histogram.

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

use dbduel_driver::{Connection, Dialect};
use dbduel_record::commits::CommitRange;
use dbduel_record::plan::Parameters;

use completion::{Import, ImportError};
use dbduel_client::Clients;
pub use order_entry::UnusableData;
use parameters::{ParameterError, ParameterSpec};
pub use table::{OwnData, RowContent, RowWriter, Table};
pub use verification::{CommitCheck, Condition, Moment, Verification, VerifyError};

/// A workload: its tables, its parameters, what it checks, and its [clients](Clients).
pub trait Workload: Clients {
    /// Its name in experiments and records.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// What every output must say beside a result, if anything.
    fn disclaimer(&self) -> Option<&'static str> {
        None
    }

    /// Its transaction classes, for resolved parameters; [`dbduel_client::tally::Class`] is an index into them.
    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        let _ = parameters;
        vec!["transaction".to_owned()]
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

    /// Refuses resolved parameters that are each allowed but make no sense together.
    ///
    /// # Errors
    /// Names the parameter to change.
    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        let _ = parameters;
        Ok(())
    }

    /// Names of those parameters that say how tables are stored and not what they hold: contenders may
    /// have values of their own for them.
    fn own_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// How many connections are to fill its tables, when the parameters say so.
    fn loaders(&self, parameters: &Parameters) -> Option<u32> {
        let _ = parameters;
        None
    }

    /// Reads a configuration file of the program that the workload comes from; none when there is no such
    /// thing.
    fn import(&self, text: &str) -> Option<Result<Import, ImportError>> {
        let _ = text;
        None
    }

    /// The most clients that its data have work for, if there is a limit.
    fn clients_max(&self, parameters: &Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// What its transactions do to its tables, for resolved parameters.
    fn effect(&self, parameters: &Parameters) -> Effect {
        let _ = parameters;
        Effect::Unknown
    }

    /// How many clients it must have, if there is one number.
    fn clients_exactly(&self, parameters: &Parameters) -> Option<u64> {
        let _ = parameters;
        None
    }

    /// True when its clients do the same work in every slice and the slice ends when they have done it, or else at the time that
    /// was ordered.
    fn has_fixed_work(&self, parameters: &Parameters) -> bool {
        let _ = parameters;
        false
    }

    /// True when what a transaction costs depends on all those before it, so that servers can be compared only while they have
    /// done the same work since their tables were filled.
    fn depends_on_past_work(&self) -> bool {
        false
    }

    /// Committed transactions of a class per second that the load must reach to count, if there is such a demand.
    fn required_rate(&self, parameters: &Parameters, class: &str) -> Option<f64> {
        let _ = (parameters, class);
        None
    }

    /// How many rows each transaction of a class inserts, deletes or indexes, if that is one number.
    fn rows_per_transaction(&self, parameters: &Parameters, class: &str) -> Option<u64> {
        let _ = (parameters, class);
        None
    }

    /// True when it has statements for servers that speak this.
    fn speaks(&self, dialect: Dialect) -> bool {
        dialect == Dialect::MySql
    }

    /// Refuses resolved parameters that servers of this dialect, which is not MySQL's, cannot do.
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

    /// Names of parameters that only MySQL and MariaDB have something for. Servers of another dialect are
    /// [refused](parameters::check_dialect) values of them that are not the default.
    fn mysql_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its tables, for resolved parameters, with statements for servers that speak this; a dialect that it does not
    /// [speak](Workload::speaks) counts as MySQL's.
    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table>;

    /// How many times as many bytes as their values its tables take on disk, with all indexes, as InnoDB
    /// stores them uncompressed.
    fn disk_per_value(&self) -> f64 {
        1.5
    }

    /// Names of the parameters that say how many rows there are.
    fn size_parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// How it makes its tables and takes them away, when only it knows how; it has no [`Workload::tables`] then.
    fn own_data(&self) -> Option<&dyn OwnData> {
        None
    }

    /// Statements for servers that speak this, which run one after another when all tables are filled and finished.
    fn post_load_sql(&self, dialect: Dialect, parameters: &Parameters) -> Vec<String> {
        let _ = (dialect, parameters);
        Vec::new()
    }

    /// Looks whether the tables in the connection's default database are this workload's, are complete
    /// and fit the parameters, as far as that can be told at once.
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

    /// Looks whether its data, in the connection's default database, are what they must be. A workload
    /// whose data obey no rules has no conditions.
    ///
    /// # Errors
    /// [`VerifyError`] when the data cannot be looked at or are not this workload's; a condition that
    /// does not hold is no error.
    fn verify(
        &self,
        parameters: &Parameters,
        connection: &mut Connection,
        moment: Moment,
    ) -> Result<Verification, VerifyError> {
        let _ = (parameters, connection, moment);
        Ok(Verification::default())
    }

    /// Whether its clients keep a durability log of acknowledged commits.
    fn keeps_commit_log(&self) -> bool {
        false
    }

    /// Looks for what servers acknowledged, which the load process kept, in the connection's default
    /// database. A workload that keeps no such log has none to compare.
    ///
    /// # Errors
    /// [`VerifyError`] when the data cannot be looked at, are not this workload's, or the log is not; a
    /// lost commit is no error.
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

/// What transactions do to tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They read.
    Reads,
    /// They change rows, and as many remain.
    Changes,
    /// They add rows or take rows away.
    ChangesRowCount,
    /// The workload does not know.
    Unknown,
}

/// Every workload that needs nothing but its parameters.
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

/// There is no workload of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no workload `{name}`{}; `dbduel workloads` lists what there is", parameters::suggestion(*nearest)
)]
pub struct UnknownWorkload {
    /// What was asked for.
    pub name: String,
    /// The most similar name, when there is one.
    pub nearest: Option<&'static str>,
}

/// The workload of that name; `_` is as good as `-`.
///
/// # Errors
/// Names the most similar workload.
pub fn find(name: &str) -> Result<&'static dyn Workload, UnknownWorkload> {
    let wanted = name.replace('_', "-");
    if let Some(workload) = WORKLOADS.iter().find(|workload| workload.name() == wanted) {
        return Ok(*workload);
    }
    if wanted == script::NAME {
        return Ok(&script::Script);
    }
    let names = WORKLOADS.iter().map(|workload| workload.name());
    let is_tpcc = wanted.replace('-', "").to_lowercase().starts_with("tpcc");
    Err(UnknownWorkload {
        name: name.to_owned(),
        nearest: if is_tpcc {
            // What it is derived from, and people look for.
            Some(order_entry::OrderEntry.name())
        } else {
            parameters::nearest(&wanted, names)
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
