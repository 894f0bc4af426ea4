//! Checks of a workload's data, and their results.

use std::error::Error;
use std::time::Instant;

use dbduel_driver::{Connection, Dialect, QueryError, ResultSet};

use super::sql::set_isolation;

/// Maximum number of violations that a query returns.
const VIOLATIONS_MAX: u64 = 1_000;

/// State of the data at the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing has changed since the tables were filled.
    Fresh,
    /// Transactions have run.
    AfterLoad,
}

/// One condition on the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Its name, unique in its workload.
    pub name: &'static str,
    /// The condition, in a sentence.
    pub about: &'static str,
    /// Number of violations, as far as they were counted.
    pub violations: u64,
    /// The first violation: columns and values.
    pub example: Option<String>,
    /// Duration of the queries, seconds.
    pub seconds: f64,
}

impl Condition {
    /// True when no violation was found.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}

/// Acknowledged commits compared with the data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitCheck {
    /// Numbers in the log, each counted once.
    pub acknowledged: u64,
    /// Number of them missing in the data.
    pub lost: u64,
    /// The first missing one, in words.
    pub example: Option<String>,
    /// Numbers in the data that are not in the log. They include commits whose acknowledgement did not arrive, so
    /// after a crash there may be as many as there were clients.
    pub beyond: u64,
}

/// Result of a check of the data.
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

/// Why the data could not be checked, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A statement failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The data are not what they must be; the workload's own error says what to do.
    #[error(transparent)]
    Unusable(Box<dyn Error + Send + Sync>),
    /// The durability log belongs to another workload.
    #[error(
        "the durability log has a series `{series}`, which is {expected}; is it from another workload?"
    )]
    Series {
        /// The series in the log.
        series: String,
        /// Form of the workload's series, as `no …`.
        expected: &'static str,
    },
}

impl VerifyError {
    /// An error for data that are not what they must be.
    pub(super) fn unusable(why: impl Error + Send + Sync + 'static) -> Self {
        VerifyError::Unusable(Box::new(why))
    }
}

/// Runs `check` on one snapshot of the data, even if others change them meanwhile.
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

/// Runs the statements of one condition, each for a part of the data; their rows are its violations.
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
