//! What compressed pages and LSM trees count.

use super::Group::Formats;
use super::Unit::{Bytes, Count, Microseconds};
use super::{Resource, detail};

/// Compression and trees.
pub(super) const FORMATS: &[Resource] = &[
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
];
