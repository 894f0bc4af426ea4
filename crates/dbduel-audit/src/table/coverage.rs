//! Tests of what the tables know: every variable that matters, and every one that a recorded server has.

use super::table;
use crate::Defaults;

/// Variables that can move a result or what it means; a fact follows from every one of them.
const RELEVANT: &str = "
aria_pagecache_buffer_size autocommit back_log binlog_cache_size binlog_checksum binlog_commit_wait_count
binlog_commit_wait_usec binlog_format binlog_group_commit_sync_delay binlog_order_commits binlog_row_image
binlog_transaction_compression character_set_server collation_server default_storage_engine
default_table_encryption eq_range_index_dive_limit explicit_defaults_for_timestamp foreign_key_checks
general_log host_cache_size innodb_adaptive_flushing innodb_adaptive_flushing_lwm innodb_adaptive_hash_index
innodb_adaptive_max_sleep_delay innodb_autoinc_lock_mode innodb_buffer_pool_instances
innodb_buffer_pool_size innodb_change_buffer_max_size innodb_change_buffering innodb_checksum_algorithm
innodb_checksums innodb_cleaner_lsn_age_factor innodb_commit_concurrency innodb_concurrency_tickets
innodb_deadlock_detect innodb_doublewrite innodb_empty_free_list_algorithm innodb_encryption_threads
innodb_fake_changes innodb_file_per_table innodb_flush_log_at_timeout innodb_flush_log_at_trx_commit
innodb_flush_method innodb_flush_neighbors innodb_flush_sync innodb_flushing_avg_loops innodb_force_recovery
innodb_foreground_preflush innodb_idle_flush_pct innodb_instrument_semaphores innodb_io_capacity
innodb_io_capacity_max innodb_linux_aio innodb_lock_wait_timeout innodb_locks_unsafe_for_binlog
innodb_log_block_size innodb_log_buffer_size innodb_log_checksum_algorithm innodb_log_checksums
innodb_log_compressed_pages innodb_log_file_buffering innodb_log_file_mmap innodb_log_spin_wait_delay
innodb_log_write_ahead_size innodb_log_writer_threads innodb_lru_flush_size innodb_lru_scan_depth
innodb_max_dirty_pages_pct innodb_monitor_enable innodb_mtflush_threads innodb_numa_interleave
innodb_open_files innodb_page_cleaners innodb_page_size innodb_print_all_deadlocks innodb_purge_batch_size
innodb_purge_threads innodb_random_read_ahead innodb_read_ahead_threshold innodb_read_io_threads
innodb_read_only innodb_replication_delay innodb_rollback_on_timeout innodb_snapshot_isolation
innodb_spin_wait_delay innodb_spin_wait_pause_multiplier innodb_stats_persistent_sample_pages
innodb_strict_mode innodb_support_xa innodb_sync_array_size innodb_sync_spin_loops innodb_thread_concurrency
innodb_thread_sleep_delay innodb_use_atomic_writes innodb_use_fdatasync innodb_use_mtflush
innodb_use_native_aio innodb_write_io_threads join_buffer_size join_cache_level key_buffer_size large_pages
log_bin log_bin_compress log_queries_not_using_indexes long_query_time max_allowed_packet max_connections
max_heap_table_size metadata_locks_hash_instances open_files_limit optimizer_prune_level optimizer_switch
performance_schema profiling query_cache_size query_cache_type read_only skip_name_resolve slow_query_log
sort_buffer_size sql_mode sync_binlog table_definition_cache table_open_cache table_open_cache_instances
thread_cache_size thread_handling thread_pool_size thread_stack tmp_table_size transaction_isolation
tx_isolation unique_checks use_stat_tables userstat version_malloc_library
";

#[test]
fn a_fact_follows_from_every_variable_that_can_move_a_result() {
    let table = table();
    let unmapped: Vec<&str> = RELEVANT
        .split_ascii_whitespace()
        .filter(|name| !table.is_mapped(name))
        .collect();
    assert_eq!(unmapped, Vec::<&str>::new());
}

#[test]
fn every_variable_of_every_recorded_server_is_mapped_or_ignored_for_a_reason() {
    let table = table();
    for (recorded, _, _) in Defaults::servers() {
        for name in Defaults::of(recorded).unwrap().variables.keys() {
            assert!(
                table.is_mapped(name) || table.why_ignored(name).is_some(),
                "{recorded}: {name}"
            );
        }
    }
}
