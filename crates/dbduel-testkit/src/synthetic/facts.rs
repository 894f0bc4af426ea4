//! Servers and a machine that never were.

use dbduel_record::facts::{Build, Connection, FileSize, FileSizes, Host, Size};
use dbduel_record::plan::Setting;
use dbduel_record::store::ContenderFiles;

use dbduel_audit::{Defaults, Texts};

pub(super) fn settings(name: &str) -> Vec<Setting> {
    let doublewrite = if name.starts_with("no-") { "OFF" } else { "ON" };
    [
        ("innodb_buffer_pool_size", "1G"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", doublewrite),
    ]
    .map(|(name, value)| Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    })
    .to_vec()
}

pub(super) fn version(index: usize) -> String {
    format!("10.11.{}-MariaDB", 5 + index)
}

pub(super) fn files(name: &str, index: usize) -> ContenderFiles {
    let doublewrite = if name.starts_with("no-") { "OFF" } else { "ON" };
    let variables = [
        ("innodb_buffer_pool_size", "1073741824".to_owned()),
        ("innodb_doublewrite", doublewrite.to_owned()),
        ("innodb_flush_log_at_trx_commit", "1".to_owned()),
        ("innodb_io_capacity", "200".to_owned()),
        (
            "innodb_read_io_threads",
            if index == 0 { "8" } else { "4" }.to_owned(),
        ),
        ("port", format!("330{index}")),
        ("version", version(index)),
    ];
    let mut shown =
        Defaults::of("mariadb-10.11.5").map_or_else(Texts::new, |defaults| defaults.variables);
    shown.extend(variables.map(|(name, value)| (name.to_owned(), value)));
    ContenderFiles {
        build: Some(Build {
            product: if name.starts_with("mysql") {
                "MySQL"
            } else {
                "MariaDB"
            }
            .to_owned(),
            version: version(index),
            version_comment: "synthetic".to_owned(),
            origin: "mariadb-server-core 10.11.5".to_owned(),
            managed: true,
            ..Build::default()
        }),
        size: Some(Size {
            before_bytes: data_files(2_100_000_000).total().bytes,
            before_allocated_bytes: data_files(2_100_000_000).total().allocated_bytes,
            after_bytes: data_files(2_350_000_000).total().bytes,
            after_allocated_bytes: data_files(2_350_000_000).total().allocated_bytes,
            before_files: Some(data_files(2_100_000_000)),
            after_files: Some(data_files(2_350_000_000)),
        }),
        variables_before: shown,
        status_before: counters(0),
        status_after: counters(1),
        connection: Some(Connection {
            transport: Some("unix socket".to_owned()),
            tls_cipher: Some(String::new()),
            compression: Some(false),
            prepared: Some(true),
            client: "dbduel".to_owned(),
        }),
        ..ContenderFiles::default()
    }
}

/// A data directory with so many bytes of data, allocated in full.
pub(super) fn data_files(bytes: u64) -> FileSizes {
    let size = |bytes| FileSize {
        bytes,
        allocated_bytes: bytes,
    };
    FileSizes {
        data: size(bytes),
        redo: size(100_663_296),
        temporary: size(12_582_912),
        logs: size(1_000),
        system: size(80_000_000),
        ..FileSizes::default()
    }
}

/// A few counters at the beginning and the end of a run that did the same work on all sides.
fn counters(moment: u64) -> Texts {
    let counters = [
        ("Uptime", 100 + 900 * moment),
        ("Com_select", 1000 + 900_000 * moment),
        ("Com_commit", 10 + 90_000 * moment),
        ("Com_stmt_execute", 1000 + 900_000 * moment),
        ("Innodb_data_fsyncs", 10 + 90_000 * moment),
        ("Innodb_data_written", 1 << (20 + 12 * moment)),
    ];
    counters
        .map(|(name, count)| (name.to_owned(), count.to_string()))
        .into()
}

pub(super) fn host() -> Host {
    Host {
        cpu_model: Some("Synthetic CPU at 2.9 GHz".to_owned()),
        cpus: Some(16),
        threads_per_core: Some(2),
        sockets: Some(1),
        memory_bytes: Some(32 << 30),
        kernel: Some("6.1.0".to_owned()),
        distribution: Some("Debian GNU/Linux 12".to_owned()),
        transparent_huge_pages: Some("madvise".to_owned()),
        file_system: Some("ext4".to_owned()),
        mount_options: Some("rw,relatime".to_owned()),
        block_device: Some("nvme0n1".to_owned()),
        rotational: Some(false),
        io_scheduler: Some("none".to_owned()),
        open_files_limit: Some(1_048_576),
        ..Host::default()
    }
}
