//! The parameters of the Insert Benchmark, and what they are together.

use dbduel_record::plan::Parameters;

use crate::driver::Dialect;
use crate::driver::Protocol;
use crate::workloads::parameters::{ParameterError, ParameterSpec, Resolved};
use crate::workloads::specs::{ENGINE, choice, integer, text};

pub(super) const PARAMETERS: &[ParameterSpec] = &[
    choice(
        "step",
        &[
            "l.i1", "l.i0", "l.x", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
        ],
        "Step of the benchmark; its tables are filled with what the steps before it leave behind.",
    ),
    integer(
        "tables",
        1,
        1_000,
        1,
        "Tables; each has clients of its own, one for every kind of statement of the step.",
    ),
    integer(
        "rows",
        0,
        1_000_000_000_000,
        100_000,
        "Rows per table before the step; l.i0 begins with none.",
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

/// What the clients of a step do.
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

/// What one client does.
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

    /// What the clients of each table do, one each.
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

    fn has_queries(self) -> bool {
        matches!(self, Step::RangeQueries | Step::PointQueries)
    }
}

/// The parameters in their types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub step: Step,
    pub tables: u64,
    /// Rows of each table before the step.
    pub rows: u64,
    /// Statements of an insert or delete client in a slice; none when time is the limit.
    pub statements_per_slice: Option<u64>,
    pub rows_per_statement: u64,
    /// Rows per second and table beside queries; none at full speed.
    pub rate: Option<u64>,
    pub seed: u64,
    is_text: Option<bool>,
}

impl Settings {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let name = resolved.text("step");
        let step = Step::of(name);
        let given = |name| Some(resolved.count(name)).filter(|count| *count > 0);
        let rows_per_statement = given("rows_per_statement").unwrap_or(match (step, name) {
            (Step::Load | Step::Index, _) => 100,
            (_, "l.i2") => 5,
            _ => 50,
        });
        let in_name = || {
            name.trim_start_matches(|c: char| !c.is_ascii_digit())
                .parse()
        };
        Settings {
            step,
            tables: resolved.count("tables"),
            rows: match step {
                Step::Load => 0,
                _ => resolved.count("rows"),
            },
            statements_per_slice: match step {
                Step::Index => Some(1),
                _ => given("rows_per_slice").map(|rows| rows.div_ceil(rows_per_statement)),
            },
            rows_per_statement,
            rate: step
                .has_queries()
                .then(|| given("rate").or_else(|| in_name().ok()).unwrap_or(100)),
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

    /// Statements of an insert or delete client at the start of every second; none at full speed.
    pub(super) fn burst(&self) -> Option<u64> {
        let rate = self.rate?;
        Some(rate.div_ceil(self.rows_per_statement))
    }

    /// How many clients the step has.
    pub(super) fn clients(&self) -> u64 {
        self.tables * self.step.roles().len() as u64
    }
}

/// Refuses parameters that make no sense together.
pub(super) fn check(parameters: &Parameters) -> Result<(), ParameterError> {
    let resolved = Resolved(parameters);
    let settings = Settings::new(parameters);
    let (rows, each) = (
        resolved.count("rows_per_slice"),
        settings.rows_per_statement,
    );
    let refuse = |parameter: &str, why: String| {
        Err(ParameterError {
            parameter: parameter.to_owned(),
            why,
            nearest: None,
        })
    };
    if rows > 0 && !matches!(settings.step, Step::Load | Step::Change) {
        let why = format!(
            "cannot be {rows} in step `{}`, whose slices do not end after a number of rows; leave it out",
            resolved.text("step")
        );
        return refuse("rows_per_slice", why);
    }
    if !rows.is_multiple_of(each) {
        let why =
            format!("cannot be {rows}, which is no multiple of the {each} rows of a statement");
        return refuse("rows_per_slice", why);
    }
    if resolved.count("rate") > 0 && !settings.step.has_queries() {
        let why = format!(
            "has no meaning in step `{}`, which inserts at full speed; leave it out",
            resolved.text("step")
        );
        return refuse("rate", why);
    }
    Ok(())
}
