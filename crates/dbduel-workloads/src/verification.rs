//! What a look at a workload's data brings, and how conditions are looked at. Knows no workload.

use std::error::Error;
use std::time::Instant;

use dbduel_driver::{Connection, Dialect, QueryError, ResultSet};

use super::sql::set_isolation;

/// Violations that a query returns at most.
const VIOLATIONS_MAX: u64 = 1_000;

/// When the data are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing has changed since the tables were filled.
    Fresh,
    /// Transactions have run.
    AfterLoad,
}

/// One statement about the data that must be true.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Its name, unique in its workload.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub about: &'static str,
    /// How often it does not hold, as far as they were counted.
    pub violations: u64,
    /// The first violation: columns and values.
    pub example: Option<String>,
    /// Time that the queries took, seconds.
    pub seconds: f64,
}

impl Condition {
    /// True when no violation was found.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}

/// What became of acknowledged commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitCheck {
    /// Numbers in the log, each counted once.
    pub acknowledged: u64,
    /// How many of them are not in the data.
    pub lost: u64,
    /// The first that is lost, in words.
    pub example: Option<String>,
    /// Numbers in the data that are not in the log. A commit whose acknowledgement did not arrive is
    /// among them, so after a crash there may be as many as there were clients.
    pub beyond: u64,
}

/// What a look at the data brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verification {
    /// Every condition that must hold at this moment.
    pub conditions: Vec<Condition>,
    /// Counts that are neither right nor wrong by themselves, by name.
    pub counts: Vec<(&'static str, u64)>,
}

impl Verification {
    /// True when all conditions hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.conditions.iter().all(Condition::holds)
    }
}

/// Why the data could not be looked at, or not be used.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A statement failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The data are not what they must be; the error is the workload's own and says what to do.
    #[error(transparent)]
    Unusable(Box<dyn Error + Send + Sync>),
    /// The durability log is of something else.
    #[error(
        "the durability log has a series `{series}`, which is {expected}; is it of another workload?"
    )]
    Series {
        /// What it has.
        series: String,
        /// What the workload names its series by, as `no …`.
        expected: &'static str,
    },
}

impl VerifyError {
    /// The data are not what they must be.
    pub(super) fn unusable(why: impl Error + Send + Sync + 'static) -> Self {
        VerifyError::Unusable(Box::new(why))
    }
}

/// Lets `check` see one state of the data, even if others change them meanwhile.
pub(super) fn on_one_state<T>(
    connection: &mut Connection,
    check: impl FnOnce(&mut Connection) -> Result<T, QueryError>,
) -> Result<T, VerifyError> {
    let dialect = connection.dialect();
    connection.execute(&set_isolation(dialect, "REPEATABLE READ"))?;
    connection.execute(match dialect {
        Dialect::MySql => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        // The first query takes the snapshot.
        Dialect::PostgreSql | Dialect::Sqlite => dialect.begin(false),
    })?;
    let outcome = check(connection);
    let ended = connection.execute("COMMIT");
    let result = outcome?;
    ended?;
    Ok(result)
}

/// Runs the statements of one condition, each for a part of the data; the rows that they return are its
/// violations.
pub(super) fn check_condition(
    connection: &mut Connection,
    name: &'static str,
    about: &'static str,
    statements: impl Iterator<Item = String>,
) -> Result<Condition, QueryError> {
    let began = Instant::now();
    let (mut violations, mut example) = (0, None);
    for sql in statements {
        let answer = connection.query(&format!("{sql} LIMIT {VIOLATIONS_MAX}"))?;
        violations += answer.rows.len() as u64;
        example = example.or_else(|| first_row(&answer));
    }
    Ok(Condition {
        name,
        about,
        violations,
        example,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// `column = value, …` of the first row.
fn first_row(answer: &ResultSet) -> Option<String> {
    answer.rows.first()?;
    let value = |column| answer.text(0, column).unwrap_or_else(|| "NULL".to_owned());
    let pairs = answer
        .columns
        .iter()
        .enumerate()
        .map(|(column, name)| format!("{name} = {}", value(column)));
    Some(pairs.collect::<Vec<_>>().join(", "))
}
