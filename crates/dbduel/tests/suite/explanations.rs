//! What reports say first of differences whose causes are known.

use dbduel_record::Record;
use dbduel_record::rows::ALL_CLASSES;
use serde_json::Value;

use super::lab::{Lab, published};

/// A difference with a known cause.
struct KnownCause {
    /// Server of both contenders.
    server: &'static str,
    /// Settings of both.
    common: &'static str,
    /// Settings of the baseline alone, and of the contender.
    settings: [&'static str; 2],
    workload: &'static str,
    /// What the first sentence says of the time: less or longer.
    direction: &'static str,
    /// Parts of a transaction's time, one of which it names; empty where the device decides which it is.
    parts: &'static [&'static str],
    /// Resources, one of which it names.
    resources: &'static [&'static str],
}

const UPDATES: &str = "name = \"oltp-update-non-index\"\ntables = 2\ntable_size = 2_000\n";
/// More than buffer pools of 16 MiB hold.
const LARGE_UPDATES: &str = "name = \"oltp-update-non-index\"\ntables = 1\ntable_size = 300_000\n";
const LARGE_SELECTS: &str =
    "name = \"oltp-point-select\"\ntables = 1\ntable_size = 300_000\nrand_type = \"uniform\"\n";
const SELECTS: &str = "name = \"oltp-point-select\"\ntables = 1\ntable_size = 5_000\n";

const LOG: &[&str] = &["waiting for the log"];
const SYNCS: &[&str] = &[
    "syncs of the redo log",
    "syncs of the engine's files",
    "disk cache flushes",
];

const RELAXED_POSTGRESQL: KnownCause = KnownCause {
    server: "postgresql-17",
    common: "shared_buffers = \"32MB\"",
    settings: [
        "synchronous_commit = \"on\"",
        "synchronous_commit = \"off\"",
    ],
    workload: UPDATES,
    direction: "less",
    parts: LOG,
    resources: SYNCS,
};

impl KnownCause {
    fn experiment(&self) -> String {
        let Self {
            server,
            common,
            settings: [one, other],
            workload,
            ..
        } = self;
        format!(
            "budget = \"60 s\"\nseed = 7\n[contenders.one]\nserver = \"{server}\"\nsettings = {{ {common}, {one} }}\n\
             [contenders.other]\nlike = \"one\"\nsettings = {{ {other} }}\n[workload]\n{workload}[load]\nclients = 4\n"
        )
    }

    /// The first sentence about the contender names the cause, and no doubt says that there is none.
    #[track_caller]
    fn check(&self) {
        let lab = Lab::new(&self.experiment());
        let output = lab.run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let report = published(&lab.record_dir());
        let first = report["sentences"][0][0].as_str().unwrap();
        println!("{first}");
        assert!(first.starts_with("`other` takes "), "{first}");
        let (time, rest) = first.split_once(" per transaction than `one`").unwrap();
        assert!(time.ends_with(self.direction), "{first}");
        let is_named = |names: &[&str]| names.iter().any(|name| rest.contains(name));
        let part = |name: &&str| {
            let largest = rest.contains(&format!("; largest part: {name}, "));
            largest || rest.contains(&format!(", and {name}, "))
        };
        assert!(
            self.parts.is_empty() || self.parts.iter().any(part),
            "{first}"
        );
        assert!(is_named(self.resources), "{first}");
        let doubted = report["findings"].as_array().unwrap().iter();
        let mut doubted = doubted.filter_map(|finding| finding["claim"].as_str());
        assert!(!doubted.any(|claim| claim.starts_with("Cause not established")));
    }
}

#[test(lab, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn relaxed_commits_of_mariadb_are_said_to_save_waits_for_the_log() {
    let cause = KnownCause {
        server: "mariadb-10.11",
        common: "innodb_buffer_pool_size = \"32M\"",
        settings: [
            "innodb_flush_log_at_trx_commit = 1",
            "innodb_flush_log_at_trx_commit = 2",
        ],
        workload: UPDATES,
        direction: "less",
        parts: LOG,
        resources: SYNCS,
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["mysql-9.7"])]
fn relaxed_commits_of_mysql_are_said_to_save_waits_for_the_log() {
    let cause = KnownCause {
        server: "mysql-9.7",
        common: "innodb_buffer_pool_size = \"32M\"",
        settings: [
            "innodb_flush_log_at_trx_commit = 1, sync_binlog = 1",
            "innodb_flush_log_at_trx_commit = 2, sync_binlog = 0",
        ],
        workload: UPDATES,
        direction: "less",
        parts: LOG,
        resources: SYNCS,
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["postgresql-17"])]
fn relaxed_commits_of_postgresql_are_said_to_save_waits_for_the_log() {
    RELAXED_POSTGRESQL.check();
}

#[test(lab, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_small_buffer_pool_is_said_to_miss_pages() {
    let cause = KnownCause {
        server: "mariadb-10.11",
        common: "innodb_log_file_size = \"32M\"",
        settings: [
            "innodb_buffer_pool_size = \"256M\"",
            "innodb_buffer_pool_size = \"8M\"",
        ],
        workload: LARGE_SELECTS,
        direction: "longer",
        parts: &[],
        resources: &["pages in the buffer pool", "bytes from the device"],
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_server_without_doublewrite_is_said_to_write_no_page_twice() {
    let cause = KnownCause {
        server: "mariadb-10.11",
        common: "innodb_buffer_pool_size = \"16M\", innodb_log_file_size = \"32M\", innodb_flush_log_at_trx_commit = 0",
        settings: [
            "innodb_doublewrite = \"ON\"",
            "innodb_doublewrite = \"OFF\"",
        ],
        workload: LARGE_UPDATES,
        direction: "less",
        parts: &[
            "waiting inside the database",
            "reading data",
            "writing data",
            "waiting for the log",
        ],
        resources: &["doublewrite buffer"],
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["mariadb-10.11"])]
fn a_small_redo_log_is_said_to_flush_pages() {
    let cause = KnownCause {
        server: "mariadb-10.11",
        common: "innodb_buffer_pool_size = \"256M\", innodb_flush_log_at_trx_commit = 0",
        settings: [
            "innodb_log_file_size = \"512M\"",
            "innodb_log_file_size = \"4M\"",
        ],
        workload: LARGE_UPDATES,
        direction: "longer",
        parts: &[
            "waiting inside the database",
            "waiting for the log",
            "writing data",
        ],
        resources: &[
            "flushes",
            "bytes to the device",
            "doublewrite buffer",
            "syncs of the engine's files",
        ],
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["installed:postgres"])]
fn compiling_short_queries_is_said_to_take_processor_time() {
    let cause = KnownCause {
        server: "installed:postgres",
        common: "shared_buffers = \"32MB\", jit_above_cost = 0",
        settings: ["jit = \"off\"", "jit = \"on\""],
        workload: SELECTS,
        direction: "longer",
        parts: &["running in the database", "waiting for a processor"],
        resources: &["processor time in the server"],
    };
    cause.check();
}

#[test(lab, may_fail = 0.05, needs = &["postgresql-17"])]
fn a_missing_index_is_said_to_ask_for_more_pages() {
    let cause = KnownCause {
        server: "postgresql-17",
        common: "shared_buffers = \"64MB\"",
        settings: [
            "enable_indexscan = \"on\", enable_bitmapscan = \"on\", enable_indexonlyscan = \"on\"",
            "enable_indexscan = \"off\", enable_bitmapscan = \"off\", enable_indexonlyscan = \"off\"",
        ],
        workload: SELECTS,
        direction: "longer",
        parts: &["running in the database", "waiting for a processor"],
        resources: &["requests to the buffer pool"],
    };
    cause.check();
}

/// A duel of PostgreSQL servers of this name whose transactions change one row each.
fn storage_of(server: &'static str) -> (Record, Value) {
    let relaxed = RELAXED_POSTGRESQL;
    let cause = KnownCause { server, ..relaxed };
    let lab = Lab::new(&cause.experiment().replace("60 s", "30 s"));
    lab.run_to_the_end();
    let report = published(&lab.record_dir());
    (lab.record(), report)
}

/// Transactions of a contender in the slices of complete blocks.
fn committed(record: &Record, contender: &str) -> f64 {
    let rows = record.slices.iter();
    let rows = rows.filter(|row| row.class == ALL_CLASSES);
    let is_whole = |id: u32| {
        let slices = rows.clone().filter(|row| row.block == id).count();
        record.plan.blocks[id as usize].order.len() == slices
    };
    let counted = rows.clone().filter(|row| is_whole(row.block));
    let own = counted.filter(|row| row.contender == contender);
    own.map(|row| row.ok as f64).sum()
}

#[test(lab, needs = &["postgresql-17"])]
fn rows_changed_of_postgresql_are_the_updates_that_were_committed() {
    let (record, report) = storage_of("postgresql-17");
    for storage in report["summary"]["storage"].as_array().unwrap() {
        let name = storage["contender"].as_str().unwrap();
        let committed = committed(&record, name);
        let changed = storage["rows_changed"].as_f64().unwrap();
        println!("{name}: {changed} rows changed, {committed} updates committed");
        assert!(
            (changed / committed - 1.0).abs() < 0.01,
            "{name}: {changed} of {committed}"
        );
        // Below 1 where pages are written once for many changes and commits wait for no sync.
        assert!(storage["write_amplification"].as_f64().unwrap() > 0.0);
    }
}

#[test(lab, needs = &["postgresql-14"])]
fn before_postgresql_15_bytes_are_those_of_committed_transactions() {
    let (_, report) = storage_of("postgresql-14");
    for storage in report["summary"]["storage"].as_array().unwrap() {
        assert!(storage["rows_changed"].is_null() && storage["write_amplification"].is_null());
        let each = storage["written_per_transaction_bytes"].as_f64().unwrap();
        assert!(each > 100.0, "{storage}");
    }
    let findings = report["findings"].as_array().unwrap();
    let is_late = |finding: &Value| finding["rule"] == "observe.statistics-lag";
    assert!(findings.iter().any(is_late));
}
