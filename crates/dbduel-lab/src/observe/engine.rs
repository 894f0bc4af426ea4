//! A server's own counters, under one name for all products.
//!
//! Read at both ends of a slice with `SHOW GLOBAL STATUS`, and with `information_schema.INNODB_METRICS` and `SHOW
//! ENGINE INNODB STATUS` for counters that the first lacks; a few of them also every second. Log positions are rows of
//! the first in MySQL from 8.0.30, in MariaDB from 10.5 and in MariaDB 10.1; other versions show them only in the
//! engine's text, which costs one more statement. A counter that a server does not keep, or has disabled, has no value;
//! zero is a value.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dbduel_driver::{Connection, Dialect, QueryError};

use super::counters::{COUNTERS, Counter, EACH_SECOND, Source};
use super::{Kind, postgresql};

/// The counters of a server at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineLook {
    values: BTreeMap<&'static str, f64>,
}

impl EngineLook {
    /// Reads the counters.
    ///
    /// # Errors
    /// When the server does not answer; a query that its version does not support is no error.
    pub fn at(connection: &mut Connection) -> Result<Self, QueryError> {
        if connection.dialect() == Dialect::PostgreSql {
            return Ok(Self::of(
                &postgresql::counters(connection)?,
                &HashMap::new(),
                "",
            ));
        }
        let status = pairs(&connection.query("SHOW GLOBAL STATUS")?);
        let metrics = match metrics(connection) {
            Ok(metrics) => metrics,
            Err(QueryError::Refused { .. }) => HashMap::new(),
            Err(error) => return Err(error),
        };
        let text = text_for(connection, COUNTERS.iter(), &status, &metrics)?;
        Ok(Self::of(&status, &metrics, &text))
    }

    /// Reads the few counters of [`EACH_SECOND`].
    ///
    /// # Errors
    /// When it does not answer.
    pub fn of_a_second(connection: &mut Connection) -> Result<Self, QueryError> {
        if connection.dialect() == Dialect::PostgreSql {
            let mut look = Self::at(connection)?;
            look.values.retain(|metric, _| EACH_SECOND.contains(metric));
            return Ok(look);
        }
        let counters = || {
            let all = COUNTERS.iter();
            all.filter(|counter| EACH_SECOND.contains(&counter.metric))
        };
        let rows: BTreeSet<&str> = counters()
            .flat_map(|counter| counter.sources)
            .flat_map(status_rows)
            .collect();
        let rows: Vec<String> = rows.iter().map(|row| format!("'{row}'")).collect();
        let sql = format!(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ({})",
            rows.join(", ")
        );
        let (status, metrics) = (pairs(&connection.query(&sql)?), HashMap::new());
        let text = text_for(connection, counters(), &status, &metrics)?;
        let mut look = Self::of(&status, &metrics, &text);
        look.values.retain(|metric, _| EACH_SECOND.contains(metric));
        Ok(look)
    }

    fn of(status: &HashMap<String, f64>, metrics: &HashMap<String, f64>, text: &str) -> Self {
        let values = COUNTERS
            .iter()
            .filter_map(|counter| Some((counter.metric, value(counter, status, metrics, text)?)));
        Self {
            values: values.collect(),
        }
    }

    /// True when a metric of the engine is a gauge.
    pub fn is_gauge(metric: &str) -> bool {
        let mut counters = COUNTERS.iter();
        counters.any(|counter| counter.metric == metric && counter.kind == Kind::Gauge)
    }

    /// Changes since `earlier`, by metric; gauges at their present value.
    pub fn since(&self, earlier: &Self) -> BTreeMap<String, f64> {
        let changes = COUNTERS.iter().filter_map(|counter| {
            let now = *self.values.get(counter.metric)?;
            let change = match counter.kind {
                Kind::Gauge => now,
                Kind::Counter => now - earlier.values.get(counter.metric)?,
            };
            // A server that was started again counts from zero; such a difference says nothing.
            (change >= 0.0).then(|| (counter.metric.to_owned(), change))
        });
        changes.collect()
    }
}

/// The rows of `SHOW GLOBAL STATUS` that a source needs.
fn status_rows(source: &Source) -> Vec<&'static str> {
    match source {
        Source::Status(rows) => rows.to_vec(),
        Source::StatusBeside(beside, rows) => [&[*beside], *rows].concat(),
        Source::Difference(whole, part) => vec![*whole, *part],
        Source::Metric(_) | Source::Text(_) | Source::TextDifference(..) => Vec::new(),
    }
}

fn value(
    counter: &Counter,
    status: &HashMap<String, f64>,
    metrics: &HashMap<String, f64>,
    text: &str,
) -> Option<f64> {
    let total = |rows: &[&str]| {
        rows.iter()
            .map(|row| status.get(*row).copied())
            .sum::<Option<f64>>()
    };
    counter.sources.iter().find_map(|source| {
        let raw = match source {
            Source::Status(rows) => total(rows)?,
            Source::StatusBeside(beside, rows) => {
                status.get(*beside)?;
                total(rows)?
            }
            Source::Metric(row) => *metrics.get(*row)?,
            Source::Difference(whole, part) => status.get(*whole)? - status.get(*part)?,
            Source::Text(words) => number_after(text, words)?,
            Source::TextDifference(whole, part) => {
                number_after(text, whole)? - number_after(text, part)?
            }
        };
        Some(raw * counter.factor)
    })
}

/// The number on the line that begins with `words`; the text also quotes arbitrary statements.
fn number_after(text: &str, words: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words))?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

fn pairs(set: &dbduel_driver::ResultSet) -> HashMap<String, f64> {
    (0..set.rows.len())
        .filter_map(|row| {
            let name = set.text(row, 0)?.to_ascii_lowercase();
            Some((name, set.text(row, 1)?.parse().ok()?))
        })
        .collect()
}

/// The enabled metrics; the column that says so has two names.
fn metrics(connection: &mut Connection) -> Result<HashMap<String, f64>, QueryError> {
    let ask = |column: &str| {
        format!("SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE {column}")
    };
    match connection.query(&ask("STATUS = 'enabled'")) {
        Ok(set) => Ok(pairs(&set)),
        Err(QueryError::Refused { .. }) => Ok(pairs(&connection.query(&ask("ENABLED = 1"))?)),
        Err(error) => Err(error),
    }
}

/// The engine's status text when only it has one of `counters`, otherwise empty: reading it takes the engine's latches
/// for a moment. Empty also for an engine that returns none, or none to this account.
fn text_for<'c>(
    connection: &mut Connection,
    mut counters: impl Iterator<Item = &'c Counter>,
    status: &HashMap<String, f64>,
    metrics: &HashMap<String, f64>,
) -> Result<String, QueryError> {
    let is_in_text_alone = |counter: &Counter| {
        counter.sources.iter().any(Source::is_text) && value(counter, status, metrics, "").is_none()
    };
    if !counters.any(is_in_text_alone) {
        return Ok(String::new());
    }
    match connection.query("SHOW ENGINE INNODB STATUS") {
        Ok(set) => Ok(set.text(0, 2).unwrap_or_default()),
        Err(QueryError::Refused { .. }) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: &[(&str, f64)]) -> HashMap<String, f64> {
        rows.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn rows_of_internal_temporary_tables_are_not_changes() {
        let handler = [
            ("handler_write", 1_000.0),
            ("handler_update", 20.0),
            ("handler_delete", 3.0),
        ];
        let of_mariadb = [("handler_tmp_write", 7.0)];
        let of_mysql = [
            ("innodb_rows_inserted", 100.0),
            ("innodb_rows_updated", 20.0),
            ("innodb_rows_deleted", 3.0),
        ];
        for (own, changed) in [(&of_mariadb[..], 1_023.0), (&of_mysql[..], 123.0)] {
            let status = map(&[&handler[..], own].concat());
            let look = EngineLook::of(&status, &HashMap::new(), "");
            assert_eq!(look.values.get("rows_changed_count"), Some(&changed));
        }
    }

    #[test]
    fn syncs_of_the_log_are_among_those_of_the_engine_in_every_product() {
        for status in [
            map(&[("innodb_data_fsyncs", 7.0)]),
            map(&[("io.fsyncs", 2.0), ("wal.wal_sync", 5.0)]),
            map(&[("io.fsyncs", 2.0), ("io.wal_fsyncs", 5.0)]),
        ] {
            let look = EngineLook::of(&status, &HashMap::new(), "");
            assert_eq!(look.values["data_syncs_count"], 7.0);
        }
    }

    #[test]
    fn every_product_finds_its_log_position_under_one_name() {
        let none = HashMap::new();
        for (status, text) in [
            (map(&[("innodb_lsn_current", 500.0)]), ""),
            (map(&[("innodb_redo_log_current_lsn", 500.0)]), ""),
            (
                none.clone(),
                "---\nLOG\n---\nLog sequence number 500\nLog flushed up to   498\n",
            ),
        ] {
            let look = EngineLook::of(&status, &none, text);
            assert_eq!(look.values["redo_written_bytes"], 500.0);
        }
    }

    #[test]
    fn old_versions_tell_the_checkpoint_in_their_text() {
        // The part about the log as MySQL 5.5, 5.6 and MariaDB 10.2 write it, after a statement that quotes it.
        let sections = [
            "Log sequence number 9595675\nLog flushed up to   9595675\nLast checkpoint at  9500000\n",
            "Log sequence number 9595675\nLog flushed up to   9595675\nPages flushed up to 9500777\n\
             Last checkpoint at  9500000\n0 pending log writes, 0 pending chkp writes\n",
        ];
        let none = HashMap::new();
        for section in sections {
            let text = format!(
                "INSERT INTO t VALUES ('Last checkpoint at  7', 'Log sequence number 7')\n---\nLOG\n---\n{section}"
            );
            let look = EngineLook::of(&none, &none, &text);
            assert_eq!(look.values["redo_written_bytes"], 9_595_675.0);
            assert_eq!(look.values["checkpoint_age_bytes"], 95_675.0);
            let later = text.replace("9500000", "9590000");
            let changes = EngineLook::of(&none, &none, &later).since(&look);
            assert_eq!(changes["checkpoint_advance_bytes"], 90_000.0);
        }
        let look = EngineLook::of(&none, &none, "");
        assert!(!look.values.contains_key("checkpoint_age_bytes"));
    }

    #[test]
    fn units_are_ours_gauges_stay_and_what_is_missing_is_absent() {
        let none = HashMap::new();
        let before = map(&[
            ("innodb_row_lock_time", 1500.0),
            ("innodb_checkpoint_age", 9.0),
        ]);
        let after = map(&[
            ("innodb_row_lock_time", 4000.0),
            ("innodb_checkpoint_age", 7.0),
        ]);
        let changes = EngineLook::of(&after, &none, "").since(&EngineLook::of(&before, &none, ""));
        assert_eq!(changes["row_lock_wait_s"], 2.5);
        assert_eq!(changes["checkpoint_age_bytes"], 7.0);
        assert_eq!(changes.get("pages_flushed_lru_count"), None);
    }
}
