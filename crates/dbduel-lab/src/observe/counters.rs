//! The table of a server's own counters: our name for each, and its source in every product.
//!
//! [`super::engine`] reads them.

use super::Kind;

/// Source of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The sum of these rows of `SHOW GLOBAL STATUS`, or, for names with a dot, of those that [`super::postgresql`]
    /// reads; all must exist.
    Status(&'static [&'static str]),
    /// The sum of the second rows, on servers that also have the first row. Some rows have another meaning on servers
    /// without that first row.
    StatusBeside(&'static str, &'static [&'static str]),
    /// An enabled row of `INNODB_METRICS`.
    Metric(&'static str),
    /// The difference of two rows of `SHOW GLOBAL STATUS`.
    Difference(&'static str, &'static str),
    /// The number after these words, which begin a line of the engine's status text.
    Text(&'static str),
    /// The difference of two such numbers.
    TextDifference(&'static str, &'static str),
}

impl Source {
    /// True when only the engine's status text contains it.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::TextDifference(..))
    }
}

/// One counter of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Our name for it, with the unit last.
    pub metric: &'static str,
    /// How two readings of it are combined.
    pub kind: Kind,
    /// Our units per unit of the source.
    pub factor: f64,
    /// Its sources; the first that exists is used.
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

use Source::{Difference, Metric, Status, StatusBeside, Text, TextDifference};

/// Every counter. Names of rows are in lower case; servers differ in case between versions.
pub const COUNTERS: &[Counter] = &[
    counter("questions_count", &[Status(&["questions"])]),
    counter(
        "rows_changed_count",
        &[
            // MariaDB counts rows of internal temporary tables on their own. MySQL counts them as written: a
            // SELECT DISTINCT would pass for a change there.
            StatusBeside(
                "handler_tmp_write",
                &["handler_write", "handler_update", "handler_delete"],
            ),
            Status(&[
                "innodb_rows_inserted",
                "innodb_rows_updated",
                "innodb_rows_deleted",
            ]),
            Status(&[
                "database.tup_inserted",
                "database.tup_updated",
                "database.tup_deleted",
            ]),
        ],
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
        &[
            Status(&["innodb_buffer_pool_read_requests"]),
            Status(&["database.blks_hit", "database.blks_read"]),
        ],
    ),
    counter(
        "buffer_pool_reads_count",
        &[
            Status(&["innodb_buffer_pool_reads"]),
            Status(&["database.blks_read"]),
        ],
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
    counter(
        "pages_written_count",
        &[
            Status(&["innodb_pages_written"]),
            Status(&[
                "bgwriter.buffers_checkpoint",
                "bgwriter.buffers_clean",
                "bgwriter.buffers_backend",
            ]),
            Status(&[
                "checkpointer.buffers_written",
                "bgwriter.buffers_clean",
                "io.session_writes",
            ]),
        ],
    ),
    counter(
        "pages_flushed_count",
        &[
            Status(&["innodb_buffer_pool_pages_flushed"]),
            Status(&[
                "bgwriter.buffers_checkpoint",
                "bgwriter.buffers_clean",
                "bgwriter.buffers_backend",
            ]),
            Status(&[
                "checkpointer.buffers_written",
                "bgwriter.buffers_clean",
                "io.session_writes",
            ]),
        ],
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
    counter(
        "data_read_bytes",
        &[Status(&["innodb_data_read"]), Status(&["io.read_bytes"])],
    ),
    counter(
        "data_written_bytes",
        &[
            Status(&["innodb_data_written"]),
            Status(&["io.write_bytes"]),
        ],
    ),
    counter(
        "data_syncs_count",
        &[
            // Those of the log are among them.
            Status(&["innodb_data_fsyncs"]),
            Status(&["io.fsyncs", "wal.wal_sync"]),
            Status(&["io.fsyncs", "io.wal_fsyncs"]),
        ],
    ),
    counter(
        "redo_written_bytes",
        &[
            Status(&["innodb_lsn_current"]),
            Status(&["innodb_redo_log_current_lsn"]),
            Text("Log sequence number"),
            Status(&["log.inserted"]),
        ],
    ),
    counter(
        "redo_syncs_count",
        &[
            Status(&["innodb_os_log_fsyncs"]),
            Status(&["wal.wal_sync"]),
            Status(&["io.wal_fsyncs"]),
        ],
    ),
    counter(
        "redo_waits_count",
        &[
            Status(&["innodb_log_waits"]),
            Status(&["wal.wal_buffers_full"]),
        ],
    ),
    gauge(
        "checkpoint_age_bytes",
        &[
            Status(&["innodb_checkpoint_age"]),
            Difference(
                "innodb_redo_log_current_lsn",
                "innodb_redo_log_checkpoint_lsn",
            ),
            TextDifference("Log sequence number", "Last checkpoint at"),
            Difference("log.inserted", "log.checkpoint"),
        ],
    ),
    counter(
        "checkpoint_advance_bytes",
        &[
            Status(&["innodb_lsn_last_checkpoint"]),
            Status(&["innodb_redo_log_checkpoint_lsn"]),
            Text("Last checkpoint at"),
            Status(&["log.checkpoint"]),
        ],
    ),
    // PostgreSQL writes whole pages into its log where InnoDB has a doublewrite buffer.
    counter("full_page_images_count", &[Status(&["wal.wal_fpi"])]),
    counter("temporary_files_count", &[Status(&["database.temp_files"])]),
    counter(
        "deadlocks_count",
        &[
            Status(&["innodb_deadlocks"]),
            Status(&["database.deadlocks"]),
        ],
    ),
    counter(
        "checkpoints_count",
        &[
            Status(&["bgwriter.checkpoints_timed", "bgwriter.checkpoints_req"]),
            Status(&["checkpointer.num_timed", "checkpointer.num_requested"]),
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
            Status(&["tables.dead_rows"]),
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

/// Counters that are also read every second, with one or two small queries: rows of `SHOW GLOBAL STATUS`, and the
/// engine's status text where no row has them.
pub const EACH_SECOND: &[&str] = &[
    "pages_flushed_count",
    "dirty_pages_count",
    "redo_written_bytes",
    "checkpoint_age_bytes",
    "checkpoint_advance_bytes",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn counters_are_named_once_carry_a_unit_and_have_a_source() {
        let mut seen = BTreeSet::new();
        for counter in COUNTERS {
            let unit = counter.metric.rsplit('_').next().unwrap_or_default();
            assert!(
                ["s", "bytes", "count"].contains(&unit),
                "`{}`",
                counter.metric
            );
            assert!(!counter.sources.is_empty(), "`{}`", counter.metric);
            assert!(
                seen.insert(counter.metric),
                "`{}` stands twice",
                counter.metric
            );
        }
        for metric in EACH_SECOND {
            assert!(seen.contains(metric), "`{metric}` is no counter");
        }
    }
}
