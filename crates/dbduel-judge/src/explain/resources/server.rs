//! The kernel's counters of a server, of the disk below it and of the load process.

use super::Group::{Client, Disk, Processor, Storage};
use super::Role::{Detail, Level, Main};
use super::Unit::{Bytes, Count, Microseconds};
use super::{Resource, resource};

/// Processor, input and output of the server, and the disk.
pub(super) const SERVER: &[Resource] = &[
    resource(
        Main,
        "server-cpu",
        "processor time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_user_s", "cpu_system_s"]),
    ),
    resource(
        Detail,
        "server-cpu-user",
        "user time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_user_s"]),
    ),
    resource(
        Detail,
        "server-cpu-system",
        "system time of the server",
        Microseconds,
        Processor,
        ("server", &["cpu_system_s"]),
    ),
    resource(
        Detail,
        "connection-cpu",
        "processor time of connection threads",
        Microseconds,
        Processor,
        ("server", &["connections_on_cpu_s"]),
    ),
    resource(
        Main,
        "server-run-queue",
        "time in the run queue",
        Microseconds,
        Processor,
        ("server", &["run_queue_s"]),
    ),
    resource(
        Detail,
        "voluntary-switches",
        "voluntary context switches",
        Count,
        Processor,
        ("server", &["voluntary_switches_count"]),
    ),
    resource(
        Detail,
        "involuntary-switches",
        "involuntary context switches",
        Count,
        Processor,
        ("server", &["involuntary_switches_count"]),
    ),
    resource(
        Detail,
        "major-faults",
        "page faults that read",
        Count,
        Processor,
        ("server", &["major_faults_count"]),
    ),
    resource(
        Level,
        "server-memory",
        "resident memory of the server",
        Bytes,
        Processor,
        ("server", &["resident_bytes"]),
    ),
    resource(
        Main,
        "server-read",
        "bytes the server reads from the device",
        Bytes,
        Storage,
        ("server", &["device_read_bytes"]),
    ),
    resource(
        Main,
        "server-written",
        "bytes the server writes to the device",
        Bytes,
        Storage,
        ("server", &["device_write_bytes"]),
    ),
    resource(
        Detail,
        "server-read-calls",
        "read calls",
        Count,
        Storage,
        ("server", &["read_calls_count"]),
    ),
    resource(
        Detail,
        "server-write-calls",
        "write calls",
        Count,
        Storage,
        ("server", &["write_calls_count"]),
    ),
    resource(
        Detail,
        "disk-read",
        "bytes read from the disk",
        Bytes,
        Disk,
        ("host", &["disk_read_bytes"]),
    ),
    resource(
        Detail,
        "disk-written",
        "bytes written to the disk",
        Bytes,
        Disk,
        ("host", &["disk_written_bytes"]),
    ),
    resource(
        Detail,
        "disk-reads",
        "read requests to the disk",
        Count,
        Disk,
        ("host", &["disk_reads_count"]),
    ),
    resource(
        Detail,
        "disk-writes",
        "write requests to the disk",
        Count,
        Disk,
        ("host", &["disk_writes_count"]),
    ),
    resource(
        Detail,
        "disk-flushes",
        "disk cache flushes",
        Count,
        Disk,
        ("host", &["disk_flushes_count"]),
    ),
    resource(
        Detail,
        "disk-discards",
        "discards",
        Count,
        Disk,
        ("host", &["disk_discards_count"]),
    ),
    resource(
        Detail,
        "disk-queue",
        "time of requests at the disk, all together",
        Microseconds,
        Disk,
        ("host", &["disk_queue_s"]),
    ),
    resource(
        Level,
        "dirty-cache",
        "dirty page cache",
        Bytes,
        Disk,
        ("host", &["dirty_bytes"]),
    ),
];

/// The load process.
pub(super) const CLIENT: &[Resource] = &[
    Resource {
        // Polling in vain is no work, and grows with the time that the server takes.
        less: Some("polled_s"),
        ..resource(
            Main,
            "client-cpu",
            "processor time of the load process",
            Microseconds,
            Client,
            ("load", &["cpu_user_s", "cpu_system_s"]),
        )
    },
    resource(
        Detail,
        "client-run-queue",
        "time of the load process in the run queue",
        Microseconds,
        Client,
        ("load", &["cpu_wait_s"]),
    ),
];
