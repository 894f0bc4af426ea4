//! Counters of compressed pages and LSM trees.

use super::Group::Formats;
use super::Role::Detail;
use super::Unit::{Bytes, Count, Microseconds};
use super::{Resource, resource};

/// Compression and trees.
pub(super) const FORMATS: &[Resource] = &[
    resource(
        Detail,
        "pages-compressed",
        "pages compressed",
        Count,
        Formats,
        ("engine", &["pages_compressed_count"]),
    ),
    resource(
        Detail,
        "pages-decompressed",
        "pages decompressed",
        Count,
        Formats,
        ("engine", &["pages_decompressed_count"]),
    ),
    resource(
        Detail,
        "compression-saved",
        "bytes saved by compression",
        Bytes,
        Formats,
        ("engine", &["compression_saved_bytes"]),
    ),
    resource(
        Detail,
        "holes-punched",
        "holes punched",
        Count,
        Formats,
        ("engine", &["holes_punched_count"]),
    ),
    resource(
        Detail,
        "tree-flushed",
        "bytes flushed by the LSM tree",
        Bytes,
        Formats,
        ("engine", &["rocksdb_flushed_bytes"]),
    ),
    resource(
        Detail,
        "tree-compaction-written",
        "bytes written by compaction",
        Bytes,
        Formats,
        ("engine", &["rocksdb_compaction_written_bytes"]),
    ),
    resource(
        Detail,
        "tree-compaction-read",
        "bytes read by compaction",
        Bytes,
        Formats,
        ("engine", &["rocksdb_compaction_read_bytes"]),
    ),
    resource(
        Detail,
        "tree-log",
        "log bytes of the LSM tree",
        Bytes,
        Formats,
        ("engine", &["rocksdb_log_bytes"]),
    ),
    resource(
        Detail,
        "tree-cache-misses",
        "block cache misses of the LSM tree",
        Count,
        Formats,
        ("engine", &["rocksdb_block_cache_misses_count"]),
    ),
    resource(
        Detail,
        "tree-stalls",
        "write stalls of the LSM tree",
        Microseconds,
        Formats,
        ("engine", &["rocksdb_stall_s"]),
    ),
];
