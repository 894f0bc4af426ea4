//! Waits of all threads of a server, as counted by the performance schema.

use super::Group::Waits;
use super::Role::Detail;
use super::Unit::Microseconds;
use super::{Resource, resource};

/// Waits by what is waited for.
pub(super) const WAITS: &[Resource] = &[
    resource(
        Detail,
        "wait-redo-files",
        "time in waits for redo log files",
        Microseconds,
        Waits,
        ("waits", &["redo_files_s"]),
    ),
    resource(
        Detail,
        "wait-data-files",
        "time in waits for data files",
        Microseconds,
        Waits,
        ("waits", &["data_files_s"]),
    ),
    resource(
        Detail,
        "wait-doublewrite-files",
        "time in waits for doublewrite files",
        Microseconds,
        Waits,
        ("waits", &["doublewrite_files_s"]),
    ),
    resource(
        Detail,
        "wait-binary-log-files",
        "time in waits for binary log files",
        Microseconds,
        Waits,
        ("waits", &["binary_log_files_s"]),
    ),
    resource(
        Detail,
        "wait-engine-latches",
        "time in waits for latches of the engine",
        Microseconds,
        Waits,
        ("waits", &["engine_latches_s"]),
    ),
    resource(
        Detail,
        "wait-server-latches",
        "time in waits for latches of the server",
        Microseconds,
        Waits,
        ("waits", &["server_latches_s"]),
    ),
    resource(
        Detail,
        "wait-table-locks",
        "time in waits for table and metadata locks",
        Microseconds,
        Waits,
        ("waits", &["table_locks_s"]),
    ),
];
