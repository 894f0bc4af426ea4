//! The counters that a server keeps of itself, under one name for all products.
//!
//! Read with `SHOW GLOBAL STATUS`, and with `information_schema.INNODB_METRICS` and `SHOW ENGINE INNODB
//! STATUS` for what the first does not say, at the ends of a slice only. A counter that a server does not
//! keep, or has switched off, has no value; zero is a value.

use std::collections::{BTreeMap, HashMap};

use dbduel_load::blocking::{Connection, QueryError};

use super::Kind;

/// Where a counter is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The sum of these rows of `SHOW GLOBAL STATUS`; all of them must be there.
    Status(&'static [&'static str]),
    /// A row of `INNODB_METRICS` that is switched on.
    Metric(&'static str),
    /// The difference of two rows of `SHOW GLOBAL STATUS`.
    Difference(&'static str, &'static str),
    /// The number after these words in the engine's status text.
    Text(&'static str),
}

/// One counter of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Our name for it, with the unit last.
    pub metric: &'static str,
    /// How two looks at it are combined.
    pub kind: Kind,
    /// Our units per unit of the source.
    pub factor: f64,
    /// Where it is found; the first that is there counts.
    pub sources: &'static [Source],
}

const fn counter(metric: &'static str, sources: &'static [Source]) -> Counter {
    Counter {
        metric,
        kind: Kind::Counter,
        factor: 1.0,
        sources,
    }
}

const fn gauge(metric: &'static str, sources: &'static [Source]) -> Counter {
    Counter {
        kind: Kind::Gauge,
        ..counter(metric, sources)
    }
}

const fn timer(metric: &'static str, factor: f64, sources: &'static [Source]) -> Counter {
    Counter {
        factor,
        ..counter(metric, sources)
    }
}

use Source::{Difference, Metric, Status, Text};

/// Every counter. Names of rows are in lower case; servers differ in case between versions.
pub const COUNTERS: &[Counter] = &[
    counter("questions_count", &[Status(&["questions"])]),
    counter(
        "rows_changed_count",
        &[Status(&[
            "handler_write",
            "handler_update",
            "handler_delete",
        ])],
    ),
    counter(
        "temporary_disk_tables_count",
        &[Status(&["created_tmp_disk_tables"])],
    ),
    counter(
        "table_cache_overflows_count",
        &[Status(&["table_open_cache_overflows"])],
    ),
    counter(
        "buffer_pool_requests_count",
        &[Status(&["innodb_buffer_pool_read_requests"])],
    ),
    counter(
        "buffer_pool_reads_count",
        &[Status(&["innodb_buffer_pool_reads"])],
    ),
    counter(
        "read_ahead_pages_count",
        &[Status(&["innodb_buffer_pool_read_ahead"])],
    ),
    counter(
        "free_page_waits_count",
        &[Status(&["innodb_buffer_pool_wait_free"])],
    ),
    counter("pages_read_count", &[Status(&["innodb_pages_read"])]),
    counter("pages_written_count", &[Status(&["innodb_pages_written"])]),
    counter(
        "pages_flushed_count",
        &[Status(&["innodb_buffer_pool_pages_flushed"])],
    ),
    counter(
        "pages_flushed_lru_count",
        &[
            Status(&["innodb_buffer_pool_pages_lru_flushed"]),
            Metric("buffer_lru_batch_flush_total_pages"),
        ],
    ),
    counter(
        "pages_flushed_adaptive_count",
        &[Metric("buffer_flush_adaptive_total_pages")],
    ),
    counter(
        "pages_flushed_background_count",
        &[Metric("buffer_flush_background_total_pages")],
    ),
    counter(
        "pages_flushed_sync_count",
        &[Metric("buffer_flush_sync_total_pages")],
    ),
    counter(
        "pages_flushed_neighbour_count",
        &[Metric("buffer_flush_neighbor_total_pages")],
    ),
    gauge(
        "dirty_pages_count",
        &[Status(&["innodb_buffer_pool_pages_dirty"])],
    ),
    counter("data_read_bytes", &[Status(&["innodb_data_read"])]),
    counter("data_written_bytes", &[Status(&["innodb_data_written"])]),
    counter("data_syncs_count", &[Status(&["innodb_data_fsyncs"])]),
    counter(
        "redo_written_bytes",
        &[
            Status(&["innodb_lsn_current"]),
            Status(&["innodb_redo_log_current_lsn"]),
            Text("Log sequence number"),
        ],
    ),
    counter("redo_syncs_count", &[Status(&["innodb_os_log_fsyncs"])]),
    counter("redo_waits_count", &[Status(&["innodb_log_waits"])]),
    gauge(
        "checkpoint_age_bytes",
        &[
            Status(&["innodb_checkpoint_age"]),
            Difference(
                "innodb_redo_log_current_lsn",
                "innodb_redo_log_checkpoint_lsn",
            ),
        ],
    ),
    counter(
        "doublewrite_pages_count",
        &[Status(&["innodb_dblwr_pages_written"])],
    ),
    counter(
        "doublewrite_batches_count",
        &[Status(&["innodb_dblwr_writes"])],
    ),
    gauge(
        "history_list_count",
        &[
            Status(&["innodb_history_list_length"]),
            Metric("trx_rseg_history_len"),
            Text("History list length"),
        ],
    ),
    counter(
        "row_lock_waits_count",
        &[Status(&["innodb_row_lock_waits"])],
    ),
    timer(
        "row_lock_wait_s",
        1e-3,
        &[Status(&["innodb_row_lock_time"])],
    ),
    counter(
        "adaptive_hash_hits_count",
        &[
            Status(&["innodb_adaptive_hash_hash_searches"]),
            Metric("adaptive_hash_searches"),
        ],
    ),
    counter(
        "adaptive_hash_misses_count",
        &[
            Status(&["innodb_adaptive_hash_non_hash_searches"]),
            Metric("adaptive_hash_searches_btree"),
        ],
    ),
    counter(
        "pages_compressed_count",
        &[
            Status(&["innodb_num_pages_page_compressed"]),
            Metric("compress_pages_compressed"),
        ],
    ),
    counter(
        "pages_decompressed_count",
        &[
            Status(&["innodb_num_pages_page_decompressed"]),
            Metric("compress_pages_decompressed"),
        ],
    ),
    counter(
        "compression_saved_bytes",
        &[Status(&["innodb_page_compression_saved"])],
    ),
    counter(
        "holes_punched_count",
        &[Status(&["innodb_num_page_compressed_trim_op"])],
    ),
    counter("binary_log_bytes", &[Status(&["binlog_bytes_written"])]),
    counter(
        "rocksdb_user_written_bytes",
        &[Status(&["rocksdb_bytes_written"])],
    ),
    counter(
        "rocksdb_flushed_bytes",
        &[Status(&["rocksdb_flush_write_bytes"])],
    ),
    counter(
        "rocksdb_compaction_written_bytes",
        &[Status(&["rocksdb_compact_write_bytes"])],
    ),
    counter(
        "rocksdb_compaction_read_bytes",
        &[Status(&["rocksdb_compact_read_bytes"])],
    ),
    counter("rocksdb_log_bytes", &[Status(&["rocksdb_wal_bytes"])]),
    counter(
        "rocksdb_log_syncs_count",
        &[Status(&["rocksdb_wal_synced"])],
    ),
    counter(
        "rocksdb_block_cache_misses_count",
        &[Status(&["rocksdb_block_cache_miss"])],
    ),
    timer(
        "rocksdb_stall_s",
        1e-6,
        &[Status(&["rocksdb_stall_micros"])],
    ),
];

/// The counters of a server at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineLook {
    values: BTreeMap<&'static str, f64>,
}

impl EngineLook {
    /// Asks the server.
    ///
    /// # Errors
    /// When it does not answer; what a version does not know is no error.
    pub fn at(connection: &mut Connection) -> Result<Self, QueryError> {
        let status = pairs(&connection.query("SHOW GLOBAL STATUS")?);
        let metrics = match metrics(connection) {
            Ok(metrics) => metrics,
            Err(QueryError::Refused { .. }) => HashMap::new(),
            Err(error) => return Err(error),
        };
        // The text takes the engine's latches for a moment, so it is only asked for what nobody else says.
        let lacks = |metric: &str| {
            COUNTERS
                .iter()
                .filter(|counter| counter.metric == metric)
                .all(|counter| value(counter, &status, &metrics, "").is_none())
        };
        let text = if lacks("redo_written_bytes") || lacks("history_list_count") {
            engine_text(connection)
        } else {
            String::new()
        };
        Ok(Self::of(&status, &metrics, &text))
    }

    fn of(status: &HashMap<String, f64>, metrics: &HashMap<String, f64>, text: &str) -> Self {
        let values = COUNTERS
            .iter()
            .filter_map(|counter| Some((counter.metric, value(counter, status, metrics, text)?)));
        Self {
            values: values.collect(),
        }
    }

    /// What changed since `earlier`, by metric; gauges as they are now.
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

fn value(
    counter: &Counter,
    status: &HashMap<String, f64>,
    metrics: &HashMap<String, f64>,
    text: &str,
) -> Option<f64> {
    counter.sources.iter().find_map(|source| {
        let raw = match source {
            Status(rows) => rows
                .iter()
                .map(|row| status.get(*row).copied())
                .sum::<Option<f64>>()?,
            Metric(row) => *metrics.get(*row)?,
            Difference(whole, part) => status.get(*whole)? - status.get(*part)?,
            Text(words) => number_after(text, words)?,
        };
        Some(raw * counter.factor)
    })
}

fn number_after(text: &str, words: &str) -> Option<f64> {
    let (_, rest) = text.split_once(words)?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

fn pairs(set: &dbduel_load::blocking::ResultSet) -> HashMap<String, f64> {
    (0..set.rows.len())
        .filter_map(|row| {
            let name = set.text(row, 0)?.to_ascii_lowercase();
            Some((name, set.text(row, 1)?.parse().ok()?))
        })
        .collect()
}

/// The metrics that are switched on; the column that says so has two names.
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

fn engine_text(connection: &mut Connection) -> String {
    match connection.query("SHOW ENGINE INNODB STATUS") {
        Ok(set) => set.text(0, 2).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Connections that the server says are ending a transaction right now.
///
/// # Errors
/// When it does not answer.
pub fn committing(connection: &mut Connection) -> Result<u64, QueryError> {
    let set = connection.query("SHOW PROCESSLIST")?;
    let place = |name: &str| {
        set.columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
    };
    let (Some(command), Some(state)) = (place("Command"), place("State")) else {
        return Ok(0);
    };
    let is_ending = |row: usize| {
        let text = |column| {
            set.text(row, column)
                .unwrap_or_default()
                .to_ascii_lowercase()
        };
        text(command) != "sleep" && is_end_of_transaction(&text(state))
    };
    Ok((0..set.rows.len()).filter(|row| is_ending(*row)).count() as u64)
}

/// `Commit` (MariaDB), `waiting for handler commit` (MySQL 8), `query end` (MySQL to 5.7, where the
/// statement's own transaction is ended).
fn is_end_of_transaction(state: &str) -> bool {
    state.contains("commit") || state == "query end"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn map(rows: &[(&str, f64)]) -> HashMap<String, f64> {
        rows.iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    }

    #[test]
    fn counters_are_named_once_carry_a_unit_and_have_a_source() {
        let mut seen = BTreeSet::new();
        for counter in COUNTERS {
            assert!(
                seen.insert(counter.metric),
                "`{}` stands twice",
                counter.metric
            );
            let unit = counter.metric.rsplit('_').next().unwrap_or_default();
            assert!(
                ["s", "bytes", "count"].contains(&unit),
                "`{}`",
                counter.metric
            );
            assert!(!counter.sources.is_empty(), "`{}`", counter.metric);
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

    #[test]
    fn the_end_of_a_transaction_has_several_names() {
        for state in ["commit", "waiting for handler commit", "query end"] {
            assert!(is_end_of_transaction(state), "{state}");
        }
        assert!(!is_end_of_transaction("sending data"));
    }
}
