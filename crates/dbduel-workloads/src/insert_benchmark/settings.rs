//! The parameters of the Insert Benchmark, and checks of their combination.

use dbduel_driver::Dialect;
use dbduel_driver::Protocol;
use dbduel_record::insert_benchmark;
use dbduel_record::plan::Parameters;

use crate::parameters::{ParameterError, ParameterSpec, Resolved};
use crate::specs::{ENGINE, choice, integer, text};

pub(super) const PARAMETERS: &[ParameterSpec] = &[
    choice(
        "step",
        &[
            "l.i1", "l.i0", "l.x", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
        ],
        "Step of the benchmark; its tables start with the rows that the earlier steps leave.",
    ),
    integer(
        "tables",
        1,
        1_000,
        1,
        "Number of tables; each has its own clients, one per kind of statement of the step.",
    ),
    integer(
        "rows",
        0,
        1_000_000_000_000,
        100_000,
        "Rows per table before the step; l.i0 starts with none.",
    ),
    integer(
        "rows_per_slice",
        0,
        1_000_000_000_000,
        0,
        "Rows per table that l.i0, l.i1 and l.i2 insert and delete, after which the slice ends; 0: as many as time allows.",
    ),
    integer(
        "rows_per_statement",
        0,
        10_000,
        0,
        "Rows of an INSERT or DELETE; 0: 100 in l.i0 and l.x, 5 in l.i2, 50 in the others.",
    ),
    integer(
        "rate",
        0,
        10_000_000,
        0,
        "Rows per second and table that are inserted, and as many deleted, beside queries; 0: the number in the step's name.",
    ),
    integer("seed", 0, i64::MAX, 1, "Seed of the rows."),
    ENGINE,
    text(
        "create_table_options",
        "",
        "Appended to CREATE TABLE, after the engine.",
    ),
    choice(
        "protocol",
        &["published", "prepared", "text"],
        "How queries are sent: as in the published benchmark (text, but prepared on PostgreSQL), prepared, or as text. INSERT and DELETE are text.",
    ),
];

/// Work of a step's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// l.i0: inserts without secondary indexes.
    Load,
    /// l.x: secondary indexes are created.
    Index,
    /// l.i1 and l.i2: inserts and deletes at full speed.
    Change,
    /// qr: range queries at full speed, inserts and deletes at a rate.
    RangeQueries,
    /// qp: the same with point queries.
    PointQueries,
}

/// Work of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Insert,
    Delete,
    Query,
    Index,
}

impl Role {
    /// Its class of transactions.
    pub(super) fn class(self) -> &'static str {
        match self {
            Role::Insert => "insert",
            Role::Delete => "delete",
            Role::Query => "query",
            Role::Index => "index",
        }
    }
}

impl Step {
    fn of(name: &str) -> Self {
        match name {
            "l.i0" => Step::Load,
            "l.x" => Step::Index,
            _ if name.starts_with("qr") => Step::RangeQueries,
            _ if name.starts_with("qp") => Step::PointQueries,
            _ => Step::Change,
        }
    }

    /// Work of each table's clients, one each.
    pub(super) fn roles(self) -> &'static [Role] {
        match self {
            Step::Load => &[Role::Insert],
            Step::Index => &[Role::Index],
            Step::Change => &[Role::Insert, Role::Delete],
            Step::RangeQueries | Step::PointQueries => &[Role::Query, Role::Insert, Role::Delete],
        }
    }

    /// Whether tables have their secondary indexes before the step.
    pub(super) fn is_indexed(self) -> bool {
        !matches!(self, Step::Load | Step::Index)
    }
}

/// The parameters in their types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub step: Step,
    pub tables: u64,
    /// Rows of each table before the step.
    pub rows: u64,
    /// Statements of an insert or delete client in a slice; `None` when time is the limit.
    pub statements_per_slice: Option<u64>,
    pub rows_per_statement: u64,
    /// Rows per second and table beside queries; `None` at full speed.
    pub rate: Option<u64>,
    pub seed: u64,
    is_text: Option<bool>,
}

impl Settings {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let step = Step::of(resolved.text("step"));
        let rows_per_slice = Some(resolved.count("rows_per_slice")).filter(|rows| *rows > 0);
        let rows_per_statement = insert_benchmark::rows_per_statement(parameters);
        Settings {
            step,
            tables: resolved.count("tables"),
            rows: match step {
                Step::Load => 0,
                _ => resolved.count("rows"),
            },
            statements_per_slice: match step {
                Step::Index => Some(1),
                Step::Load | Step::Change => {
                    rows_per_slice.map(|rows| rows.div_ceil(rows_per_statement))
                }
                Step::RangeQueries | Step::PointQueries => None,
            },
            rows_per_statement,
            rate: insert_benchmark::rate(parameters),
            seed: resolved.count("seed"),
            is_text: match resolved.text("protocol") {
                "published" => None,
                protocol => Some(protocol == "text"),
            },
        }
    }

    /// How queries are sent.
    pub(super) fn protocol(&self, dialect: Dialect) -> Protocol {
        match self.is_text.unwrap_or(dialect != Dialect::PostgreSql) {
            true => Protocol::Text,
            false => Protocol::Prepared,
        }
    }

    /// Statements of an insert or delete client at the start of every second; `None` at full speed.
    pub(super) fn burst(&self) -> Option<u64> {
        let rate = self.rate?;
        Some(rate.div_ceil(self.rows_per_statement))
    }

    /// Number of clients of the step.
    pub(super) fn clients(&self) -> u64 {
        self.tables * self.step.roles().len() as u64
    }
}

/// Refuses slices that would end in the middle of a statement.
pub(super) fn check(parameters: &Parameters) -> Result<(), ParameterError> {
    let rows = Resolved(parameters).count("rows_per_slice");
    let each = Settings::new(parameters).rows_per_statement;
    if rows.is_multiple_of(each) {
        return Ok(());
    }
    Err(ParameterError {
        parameter: "rows_per_slice".to_owned(),
        why: format!("cannot be {rows}, which is not a multiple of the {each} rows of a statement"),
        nearest: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload as _;
    use crate::insert_benchmark::InsertBenchmark;

    fn resolved(given: &[(&str, &str)]) -> Result<Parameters, ParameterError> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()));
        InsertBenchmark.resolve(&given.collect())
    }

    fn settings(given: &[(&str, &str)]) -> Result<Settings, ParameterError> {
        Ok(Settings::new(&resolved(given)?))
    }

    #[test]
    fn steps_have_their_clients_statements_and_work() {
        for (step, clients, rows_per_statement, statements, burst) in [
            ("l.i0", 2, 100, Some(10), None),
            ("l.x", 2, 100, Some(1), None),
            ("l.i1", 4, 50, Some(20), None),
            ("l.i2", 4, 5, Some(200), None),
            ("qr100", 6, 50, None, Some(2)),
            ("qp1000", 6, 50, None, Some(20)),
        ] {
            let given = [("step", step), ("tables", "2"), ("rows_per_slice", "1000")];
            let settings = settings(&given).unwrap();
            let parameters = resolved(&given).unwrap();
            let is_fixed = insert_benchmark::has_fixed_work(&parameters);
            assert_eq!(is_fixed, statements.is_some(), "{step}");
            assert_eq!(settings.clients(), clients, "{step}");
            assert_eq!(settings.rows_per_statement, rows_per_statement, "{step}");
            assert_eq!(settings.statements_per_slice, statements, "{step}");
            assert_eq!(settings.burst(), burst, "{step}");
        }
    }

    #[test]
    fn a_slice_has_whole_statements() {
        let error = settings(&[("rows_per_slice", "1010")]).unwrap_err();
        assert_eq!(error.parameter, "rows_per_slice");
    }
}
