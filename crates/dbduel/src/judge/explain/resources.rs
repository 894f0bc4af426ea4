//! The resources that a transaction costs: rows of a table over the readings of the record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a resource belongs to; a report lists resources by it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Processor time and scheduling of the server.
    Processor,
    /// What the server reads and writes.
    Storage,
    /// What the whole disk did, whoever asked for it.
    Disk,
    /// Buffer pool and flushing.
    Pages,
    /// Redo, binary log, syncs.
    Log,
    /// Row locks and indexes.
    Access,
    /// Compressed pages and trees.
    Formats,
    /// The load process.
    Client,
}

impl Group {
    /// The group as people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Processor => "processor",
            Group::Storage => "server's input and output",
            Group::Disk => "disk, all users of it",
            Group::Pages => "pages",
            Group::Log => "logs",
            Group::Access => "locks and lookups",
            Group::Formats => "compression and trees",
            Group::Client => "load process",
        }
    }
}

/// Unit of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
    /// Events.
    Count,
}

/// One resource.
#[derive(Debug)]
pub struct Resource {
    /// Stable name.
    pub id: &'static str,
    /// Name for people, fit for the middle of a sentence.
    pub name: &'static str,
    /// Unit of the cost; readings in seconds become microseconds.
    pub unit: Unit,
    /// What it belongs to.
    pub group: Group,
    /// True for the few that sum up the others.
    pub is_main: bool,
    /// True when it is a level and not divided by transactions.
    pub is_level: bool,
    /// Source and metrics whose sum it is.
    pub of: (&'static str, &'static [&'static str]),
}

const fn detail(
    id: &'static str,
    name: &'static str,
    unit: Unit,
    group: Group,
    of: (&'static str, &'static [&'static str]),
) -> Resource {
    Resource {
        id,
        name,
        unit,
        group,
        is_main: false,
        is_level: false,
        of,
    }
}

const fn main(
    id: &'static str,
    name: &'static str,
    unit: Unit,
    group: Group,
    of: (&'static str, &'static [&'static str]),
) -> Resource {
    Resource {
        is_main: true,
        ..detail(id, name, unit, group, of)
    }
}

const fn level(
    id: &'static str,
    name: &'static str,
    unit: Unit,
    group: Group,
    of: (&'static str, &'static [&'static str]),
) -> Resource {
    Resource {
        is_level: true,
        ..detail(id, name, unit, group, of)
    }
}

use Group::{Access, Client, Disk, Formats, Log, Pages, Processor, Storage};
use Unit::{Bytes, Count, Microseconds};

/// Every resource, in the order of a report.
pub const RESOURCES: &[Resource] = &[
    main(
        "server-cpu",
        "processor time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_user_s", "cpu_system_s"]),
    ),
    detail(
        "server-cpu-user",
        "user time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_user_s"]),
    ),
    detail(
        "server-cpu-system",
        "system time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_system_s"]),
    ),
    detail(
        "connection-cpu",
        "processor time of connection threads",
        Microseconds,
        Processor,
        ("server", &["connections_on_cpu_s"]),
    ),
    main(
        "server-run-queue",
        "time in the run queue",
        Microseconds,
        Processor,
        ("server", &["run_queue_s"]),
    ),
    detail(
        "voluntary-switches",
        "voluntary context switches",
        Count,
        Processor,
        ("server", &["voluntary_switches_count"]),
    ),
    detail(
        "involuntary-switches",
        "involuntary context switches",
        Count,
        Processor,
        ("server", &["involuntary_switches_count"]),
    ),
    detail(
        "major-faults",
        "page faults that read",
        Count,
        Processor,
        ("server", &["major_faults_count"]),
    ),
    level(
        "server-memory",
        "resident memory of the server",
        Bytes,
        Processor,
        ("server", &["resident_bytes"]),
    ),
    main(
        "server-read",
        "bytes the server reads from the device",
        Bytes,
        Storage,
        ("server", &["device_read_bytes"]),
    ),
    main(
        "server-written",
        "bytes the server writes to the device",
        Bytes,
        Storage,
        ("server", &["device_write_bytes"]),
    ),
    detail(
        "server-read-calls",
        "read calls",
        Count,
        Storage,
        ("server", &["read_calls_count"]),
    ),
    detail(
        "server-write-calls",
        "write calls",
        Count,
        Storage,
        ("server", &["write_calls_count"]),
    ),
    detail(
        "disk-read",
        "bytes read from the disk",
        Bytes,
        Disk,
        ("host", &["disk_read_bytes"]),
    ),
    detail(
        "disk-written",
        "bytes written to the disk",
        Bytes,
        Disk,
        ("host", &["disk_written_bytes"]),
    ),
    detail(
        "disk-reads",
        "read requests to the disk",
        Count,
        Disk,
        ("host", &["disk_reads_count"]),
    ),
    detail(
        "disk-writes",
        "write requests to the disk",
        Count,
        Disk,
        ("host", &["disk_writes_count"]),
    ),
    detail(
        "disk-flushes",
        "flushes of the disk's cache",
        Count,
        Disk,
        ("host", &["disk_flushes_count"]),
    ),
    detail(
        "disk-discards",
        "discards",
        Count,
        Disk,
        ("host", &["disk_discards_count"]),
    ),
    detail(
        "disk-queue",
        "time of requests at the disk",
        Microseconds,
        Disk,
        ("host", &["disk_queue_s"]),
    ),
    level(
        "dirty-cache",
        "dirty page cache",
        Bytes,
        Disk,
        ("host", &["dirty_bytes"]),
    ),
    detail(
        "page-requests",
        "requests to the buffer pool",
        Count,
        Pages,
        ("engine", &["buffer_pool_requests_count"]),
    ),
    main(
        "page-misses",
        "pages missed in the buffer pool",
        Count,
        Pages,
        ("engine", &["buffer_pool_reads_count"]),
    ),
    detail(
        "read-ahead",
        "pages read ahead",
        Count,
        Pages,
        ("engine", &["read_ahead_pages_count"]),
    ),
    detail(
        "free-page-waits",
        "waits for a free page",
        Count,
        Pages,
        ("engine", &["free_page_waits_count"]),
    ),
    main(
        "pages-flushed",
        "pages flushed",
        Count,
        Pages,
        ("engine", &["pages_flushed_count"]),
    ),
    detail(
        "pages-flushed-lru",
        "pages flushed from the LRU list",
        Count,
        Pages,
        ("engine", &["pages_flushed_lru_count"]),
    ),
    detail(
        "pages-flushed-adaptive",
        "pages flushed adaptively",
        Count,
        Pages,
        ("engine", &["pages_flushed_adaptive_count"]),
    ),
    detail(
        "pages-flushed-background",
        "pages flushed in the background",
        Count,
        Pages,
        ("engine", &["pages_flushed_background_count"]),
    ),
    detail(
        "pages-flushed-sync",
        "pages flushed because the log was full",
        Count,
        Pages,
        ("engine", &["pages_flushed_sync_count"]),
    ),
    detail(
        "pages-flushed-neighbour",
        "neighbouring pages flushed along",
        Count,
        Pages,
        ("engine", &["pages_flushed_neighbour_count"]),
    ),
    detail(
        "doublewrite-pages",
        "pages written to the doublewrite buffer",
        Count,
        Pages,
        ("engine", &["doublewrite_pages_count"]),
    ),
    detail(
        "doublewrite-batches",
        "batches of the doublewrite buffer",
        Count,
        Pages,
        ("engine", &["doublewrite_batches_count"]),
    ),
    level(
        "dirty-pages",
        "dirty pages in the buffer pool",
        Count,
        Pages,
        ("engine", &["dirty_pages_count"]),
    ),
    main(
        "redo",
        "redo written",
        Bytes,
        Log,
        ("engine", &["redo_written_bytes"]),
    ),
    detail(
        "redo-syncs",
        "syncs of the redo log",
        Count,
        Log,
        ("engine", &["redo_syncs_count"]),
    ),
    detail(
        "data-syncs",
        "syncs of the engine's files",
        Count,
        Log,
        ("engine", &["data_syncs_count"]),
    ),
    detail(
        "redo-waits",
        "waits for room in the log buffer",
        Count,
        Log,
        ("engine", &["redo_waits_count"]),
    ),
    detail(
        "binary-log",
        "binary log written",
        Bytes,
        Log,
        ("engine", &["binary_log_bytes"]),
    ),
    level(
        "checkpoint-age",
        "checkpoint age",
        Bytes,
        Log,
        ("engine", &["checkpoint_age_bytes"]),
    ),
    level(
        "history-list",
        "history list length",
        Count,
        Log,
        ("engine", &["history_list_count"]),
    ),
    detail(
        "rows-changed",
        "rows changed",
        Count,
        Access,
        ("engine", &["rows_changed_count"]),
    ),
    detail(
        "row-lock-waits",
        "waits for row locks",
        Count,
        Access,
        ("engine", &["row_lock_waits_count"]),
    ),
    detail(
        "row-lock-time",
        "time in row lock waits",
        Microseconds,
        Access,
        ("engine", &["row_lock_wait_s"]),
    ),
    detail(
        "adaptive-hash-hits",
        "lookups answered by the adaptive hash index",
        Count,
        Access,
        ("engine", &["adaptive_hash_hits_count"]),
    ),
    detail(
        "adaptive-hash-misses",
        "lookups that went down the tree",
        Count,
        Access,
        ("engine", &["adaptive_hash_misses_count"]),
    ),
    detail(
        "temporary-disk-tables",
        "temporary tables on disk",
        Count,
        Access,
        ("engine", &["temporary_disk_tables_count"]),
    ),
    detail(
        "table-cache-overflows",
        "overflows of the table cache",
        Count,
        Access,
        ("engine", &["table_cache_overflows_count"]),
    ),
    detail(
        "pages-compressed",
        "pages compressed",
        Count,
        Formats,
        ("engine", &["pages_compressed_count"]),
    ),
    detail(
        "pages-decompressed",
        "pages decompressed",
        Count,
        Formats,
        ("engine", &["pages_decompressed_count"]),
    ),
    detail(
        "compression-saved",
        "bytes saved by compression",
        Bytes,
        Formats,
        ("engine", &["compression_saved_bytes"]),
    ),
    detail(
        "holes-punched",
        "holes punched",
        Count,
        Formats,
        ("engine", &["holes_punched_count"]),
    ),
    detail(
        "tree-flushed",
        "bytes flushed by the LSM tree",
        Bytes,
        Formats,
        ("engine", &["rocksdb_flushed_bytes"]),
    ),
    detail(
        "tree-compaction-written",
        "bytes written by compaction",
        Bytes,
        Formats,
        ("engine", &["rocksdb_compaction_written_bytes"]),
    ),
    detail(
        "tree-compaction-read",
        "bytes read by compaction",
        Bytes,
        Formats,
        ("engine", &["rocksdb_compaction_read_bytes"]),
    ),
    detail(
        "tree-log",
        "log bytes of the LSM tree",
        Bytes,
        Formats,
        ("engine", &["rocksdb_log_bytes"]),
    ),
    detail(
        "tree-cache-misses",
        "block cache misses of the LSM tree",
        Count,
        Formats,
        ("engine", &["rocksdb_block_cache_misses_count"]),
    ),
    detail(
        "tree-stalls",
        "write stalls of the LSM tree",
        Microseconds,
        Formats,
        ("engine", &["rocksdb_stall_s"]),
    ),
    main(
        "client-cpu",
        "processor time of the load process",
        Microseconds,
        Client,
        ("load", &["cpu_user_s", "cpu_system_s"]),
    ),
    detail(
        "client-run-queue",
        "time of the load process in the run queue",
        Microseconds,
        Client,
        ("load", &["cpu_wait_s"]),
    ),
];
