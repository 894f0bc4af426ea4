//! The rows of the record's tables.
//!
//! Column names end with the unit. Times within a slice count from the end of its guard.

use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize};

use crate::event::SliceId;

/// One row of `slices.csv`: one transaction class in one slice. The class [`ALL_CLASSES`] holds
/// the sum of all classes and is always present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Start of the servers, from 0.
    pub epoch: u32,
    /// Name of the contender.
    pub contender: String,
    /// Clients of the load level.
    pub clients: u32,
    /// Transaction class.
    pub class: String,
    /// Start of the measured part, milliseconds since 1970-01-01 UTC.
    pub start_ms: u64,
    /// Guard before it, seconds.
    pub guard_s: f64,
    /// Length of the measured part, seconds. It ends when every transaction due in the planned length has ended.
    pub measured_s: f64,
    /// Mean time of a client inside such transactions after the planned length, seconds. Absent in records of format
    /// 3.3 and before, whose measured parts were as long as planned and left out transactions that outlasted them.
    #[serde(default)]
    pub drained_s: Option<f64>,
    /// Transactions that fell due; always `ok + failed + skipped + unfinished`.
    pub due: u64,
    /// Committed.
    pub ok: u64,
    /// Failed for good, after retries where the error allows them.
    pub failed: u64,
    /// Never sent.
    pub skipped: u64,
    /// Not ended after the longest wait that the plan allows; in records of format 3.3 and before, still running when
    /// the measured part ended.
    pub unfinished: u64,
    /// Additional attempts after a deadlock, a lock timeout or a changed record.
    pub retries: u64,
    /// Statements sent.
    pub statements: u64,
    /// Sum of the latencies of `ok`, microseconds.
    pub latency_us_sum: f64,
    /// Quantiles of the latency (done − due) of `ok`, microseconds; 0 when there was none.
    pub latency_us_p50: f64,
    /// 95 % quantile.
    pub latency_us_p95: f64,
    /// 99 % quantile.
    pub latency_us_p99: f64,
    /// 99.9 % quantile.
    pub latency_us_p999: f64,
    /// Largest latency.
    pub latency_us_max: f64,
}

impl SliceRow {
    /// The slice of the row.
    #[must_use]
    pub fn slice(&self) -> SliceId {
        SliceId {
            block: self.block,
            position: self.position,
        }
    }
}

/// Transactions by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionCounts {
    /// Fell due; always `ok + failed + skipped + unfinished`.
    pub due: u64,
    /// Committed.
    pub ok: u64,
    /// Failed for good.
    pub failed: u64,
    /// Never sent.
    pub skipped: u64,
    /// Not ended after the longest wait.
    pub unfinished: u64,
    /// Additional attempts.
    pub retries: u64,
    /// Statements sent by transactions that ended in the measured part.
    pub statements: u64,
}

impl TransactionCounts {
    /// True when every transaction that fell due ended in exactly one way.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.due == self.ok + self.failed + self.skipped + self.unfinished
    }
}

impl AddAssign for TransactionCounts {
    /// Destructured by name, so that a new counter cannot be forgotten.
    fn add_assign(&mut self, other: TransactionCounts) {
        let TransactionCounts {
            due,
            ok,
            failed,
            skipped,
            unfinished,
            retries,
            statements,
        } = other;
        self.due += due;
        self.ok += ok;
        self.failed += failed;
        self.skipped += skipped;
        self.unfinished += unfinished;
        self.retries += retries;
        self.statements += statements;
    }
}

/// Name of the class that sums up all others.
pub const ALL_CLASSES: &str = "all";

/// One row of `ticks.csv`: one short piece of a slice, all classes together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TickRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Start of the tick after the end of the guard, seconds. Negative inside the guard.
    pub offset_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// Committed in this tick.
    pub ok: u64,
    /// Failed for good in this tick.
    pub failed: u64,
    /// Sum of the latencies of `ok`, microseconds.
    pub latency_us_sum: f64,
    /// Largest latency, microseconds.
    pub latency_us_max: f64,
}

/// One row of `readings.csv`: one value that a sampler read for one slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Name of the contender that the slice belongs to.
    pub contender: String,
    /// Source of the value: `server`, `engine` (the server's own counters), `load`, `host`, or `observer` (cost of the
    /// samplers themselves).
    pub source: String,
    /// Metric, with its unit last, for example `cpu_user_s`.
    pub metric: String,
    /// The value; for a counter the increase during the slice.
    pub value: f64,
}

/// One row of `seconds.csv`: one value that a sampler read for about one second of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Time of the reading after the end of the guard, seconds.
    pub offset_s: f64,
    /// Time since the previous reading, seconds.
    pub length_s: f64,
    /// As in [`ReadingRow`].
    pub source: String,
    /// As in [`ReadingRow`].
    pub metric: String,
    /// The value; for a counter the increase since the previous reading.
    pub value: f64,
}

/// One row of `errors.csv`: number of times that an error code occurred in a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRow {
    /// `SliceId::block`.
    pub block: u32,
    /// `SliceId::position`.
    pub position: u32,
    /// Name of the contender.
    pub contender: String,
    /// The server's name of the error: its number, or with PostgreSQL its SQLSTATE; 0 for a lost connection.
    #[serde(deserialize_with = "name_or_number")]
    pub code: String,
    /// Number of occurrences.
    pub count: u64,
    /// Text of the first of them.
    pub example: String,
}

/// Offset added to SQLite's extended result codes, which are numbers like MySQL's.
pub const SQLITE_ERRORS: u32 = 1 << 31;

/// SQLite's primary result codes, by their numbers.
const SQLITE_CODES: &[&str] = &[
    "OK",
    "ERROR",
    "INTERNAL",
    "PERM",
    "ABORT",
    "BUSY",
    "LOCKED",
    "NOMEM",
    "READONLY",
    "INTERRUPT",
    "IOERR",
    "CORRUPT",
    "NOTFOUND",
    "FULL",
    "CANTOPEN",
    "PROTOCOL",
    "EMPTY",
    "SCHEMA",
    "TOOBIG",
    "CONSTRAINT",
    "MISMATCH",
    "MISUSE",
    "NOLFS",
    "AUTH",
    "FORMAT",
    "RANGE",
    "NOTADB",
];

/// SQLite's extended result codes that occur under load.
const SQLITE_EXTENDED_CODES: &[(u32, &str)] = &[
    (261, "BUSY_RECOVERY"),
    (517, "BUSY_SNAPSHOT"),
    (773, "BUSY_TIMEOUT"),
    (262, "LOCKED_SHAREDCACHE"),
    (275, "CONSTRAINT_CHECK"),
    (787, "CONSTRAINT_FOREIGNKEY"),
    (1299, "CONSTRAINT_NOTNULL"),
    (1555, "CONSTRAINT_PRIMARYKEY"),
    (2067, "CONSTRAINT_UNIQUE"),
    (2579, "CONSTRAINT_ROWID"),
];

/// Parses the name of an error. Records of format 3.0 and before have SQLSTATEs as numbers of base 36, which have more
/// than five digits.
fn name_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    Ok(match name.parse::<u32>() {
        Ok(number) if name.len() > 5 => error_name(number),
        _ => name,
    })
}

/// Name of an error: its number, the name of SQLite's code, or PostgreSQL's SQLSTATE, which the load process counts as
/// a number of base 36. MySQL's numbers have 16 bits; those of SQLSTATEs of errors are larger.
#[must_use]
pub fn error_name(code: u32) -> String {
    if code >= SQLITE_ERRORS {
        return sqlite_error_name(code - SQLITE_ERRORS);
    }
    if code <= u32::from(u16::MAX) {
        return code.to_string();
    }
    let digits = [36_u32.pow(4), 36_u32.pow(3), 36_u32.pow(2), 36, 1];
    let letter = |place: u32| char::from_digit(code / place % 36, 36).unwrap_or('?');
    let name: String = digits.into_iter().map(letter).collect();
    name.to_ascii_uppercase()
}

fn sqlite_error_name(code: u32) -> String {
    let mut extended = SQLITE_EXTENDED_CODES.iter();
    if let Some((_, name)) = extended.find(|(known, _)| *known == code) {
        return format!("SQLITE_{name}");
    }
    match SQLITE_CODES.get((code & 0xff) as usize) {
        Some(name) if code <= 0xff => format!("SQLITE_{name}"),
        Some(name) => format!("SQLITE_{name} ({code})"),
        None => format!("SQLite's {code}"),
    }
}

#[cfg(test)]
mod error_name_tests {
    use super::*;

    #[test]
    fn an_error_of_sqlite_has_the_name_of_its_code() {
        for (code, name) in [
            (5, "SQLITE_BUSY"),
            (517, "SQLITE_BUSY_SNAPSHOT"),
            (13, "SQLITE_FULL"),
            (26, "SQLITE_NOTADB"),
            (778, "SQLITE_IOERR (778)"),
            (99, "SQLite's 99"),
        ] {
            assert_eq!(error_name(SQLITE_ERRORS | code), name);
        }
    }

    #[test]
    fn an_error_has_its_number_or_its_sqlstate() {
        for (code, name) in [(0, "0"), (1213, "1213"), (65_535, "65535")] {
            assert_eq!(error_name(code), name);
        }
        for state in ["02000", "23505", "40P01", "57P01", "XX000"] {
            assert_eq!(error_name(u32::from_str_radix(state, 36).unwrap()), state);
        }
    }

    #[test]
    fn numbers_of_older_records_become_names() {
        let read = |code: &str| {
            let text = format!("block,position,contender,code,count,example\n1,0,a,{code},1,x\n");
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let row: ErrorRow = reader.deserialize().next().unwrap().unwrap();
            row.code
        };
        for (kept, name) in [
            ("6750865", "40P01"),
            ("40P01", "40P01"),
            ("57014", "57014"),
            ("72000", "72000"),
            ("1213", "1213"),
            ("0", "0"),
        ] {
            assert_eq!(read(kept), name, "{kept}");
        }
    }
}
