//! The built-in tests of databases beside sysbench's own scripts, on real servers: the same counts, the same text.

use super::super::bare_server::BareServer;
use super::*;

/// Name of a test, and how many reads, writes and other statements its 100 events are.
pub const NATIVES: [(&str, u64, u64, u64); 9] = [
    ("oltp_point_select", 100, 0, 0),
    ("oltp_read_only", 1400, 0, 200),
    ("oltp_read_write", 1400, 400, 200),
    ("oltp_write_only", 0, 400, 200),
    ("oltp_update_index", 0, 100, 0),
    ("oltp_update_non_index", 0, 100, 0),
    ("oltp_insert", 0, 100, 0),
    ("select_random_points", 100, 0, 0),
    ("select_random_ranges", 100, 0, 0),
];

/// Prepares, runs and cleans up every built-in test, and compares counts and text with sysbench's on the same tables.
fn every_native_test(server_name: &str) {
    let server = BareServer::start(server_name);
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("--mysql-socket={}", server.socket().display());
    let words = |test: &str, more: &str| -> Vec<String> {
        let mut words = vec![
            test.to_owned(),
            socket.clone(),
            "--mysql-user=root".to_owned(),
        ];
        words.extend(["--table-size=500", "--time=0", "--events=100"].map(str::to_owned));
        words.extend(more.split(' ').map(str::to_owned));
        words
    };
    let same = |test: &str, more: &str| {
        let words = words(test, more);
        same_shape(
            folder.path(),
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    let mine = |test: &str, more: &str| {
        let words = words(test, more);
        let output = ours(
            folder.path(),
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output
    };
    for (test, reads, writes, others) in NATIVES {
        mine(test, "prepare");
        assert_eq!(
            server.query("SELECT COUNT(*) FROM sbtest.sbtest1"),
            "500",
            "{test}"
        );
        assert_eq!(
            server.query("SELECT LENGTH(c) + LENGTH(pad) FROM sbtest.sbtest1 LIMIT 1"),
            "178"
        );
        mine(test, "prewarm");
        for mode in ["auto", "disable"] {
            let output = same(test, &format!("--threads=1 --db-ps-mode={mode} run"));
            let label = format!("{server_name} {test} {mode}");
            assert_eq!(figure(&output, "transactions:"), 100.0, "{label}");
            assert_eq!(figure(&output, "read:"), reads as f64, "{label}");
            assert_eq!(figure(&output, "write:"), writes as f64, "{label}");
            assert_eq!(figure(&output, "other:"), others as f64, "{label}");
        }
        same(test, "cleanup");
        let left = server
            .query("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest'");
        assert_eq!(left, "0", "{test}");
    }
    mine("oltp_delete", "prepare");
    let output = same("oltp_delete", "--threads=2 run");
    assert_eq!(figure(&output, "write:") + figure(&output, "other:"), 100.0);
    let rows: f64 = server
        .query("SELECT COUNT(*) FROM sbtest.sbtest1")
        .parse()
        .unwrap();
    assert!(rows < 500.0, "{rows}");
    same("oltp_delete", "cleanup");
    same("bulk_insert", "--threads=2 prepare");
    same("bulk_insert", "--threads=2 cleanup");
    mine("bulk_insert", "--threads=2 prepare");
    let output = mine("bulk_insert", "--threads=2 --events=50000 run");
    assert_eq!(figure(&output, "transactions:"), 50_000.0);
    let rows: u32 = ["sbtest1", "sbtest2"]
        .map(|table| {
            server
                .query(&format!("SELECT COUNT(*) FROM sbtest.{table}"))
                .parse::<u32>()
                .unwrap()
        })
        .iter()
        .sum();
    assert_eq!(rows, 50_000);
    mine("bulk_insert", "--threads=2 cleanup");
    with_intervals(&mine, &same);
}

/// Several clients, with everything that is printed on the way, and the ways of 0.5.
fn with_intervals(mine: &dyn Fn(&str, &str) -> Output, same: &dyn Fn(&str, &str) -> Output) {
    mine(
        "oltp_read_write",
        "--tables=3 --threads=2 --skip-trx --secondary prepare",
    );
    mine("oltp_read_write", "--tables=3 cleanup");
    mine(
        "oltp_read_write",
        "--tables=3 --create-secondary=off prepare",
    );
    mine("oltp_read_only", "--tables=3 --threads=8 --reconnect=5 run");
    let output = mine("oltp_read_only", "--tables=3 --reconnect=10 run");
    assert_eq!(figure(&output, "reconnects:"), 10.0);
    let output = mine(
        "/nonexistent/oltp.lua",
        "--oltp-tables-count=3 --oltp-read-only=on --num-threads=2 run",
    );
    assert_eq!(figure(&output, "read:"), 1400.0);
    let output = mine("oltp_read_write", "--tables=3 --mysql-dry-run run");
    assert_eq!(
        (figure(&output, "read:"), figure(&output, "other:")),
        (0.0, 2000.0)
    );
    let output = same(
        "oltp_read_write",
        "--tables=3 --events=0 --time=2 --threads=4 --rate=50 --rand-type=uniform run",
    );
    assert!(
        (60.0..140.0).contains(&figure(&output, "transactions:")),
        "{}",
        text(&output)
    );
    let output = mine(
        "oltp_read_write",
        "--tables=3 --events=0 --time=3 --report-interval=1 --report-checkpoints=2 run",
    );
    let text = text(&output);
    assert!(
        text.lines()
            .filter(|line| line.contains("] thds: 1 tps: "))
            .count()
            >= 2,
        "{text}"
    );
    assert!(text.contains("[ 2s ] Checkpoint report:"), "{text}");
    mine("oltp_read_write", "--tables=3 cleanup");
}

#[test(lab, needs = &["mariadb-10.11"])]
fn built_in_tests_on_mariadb_do_what_sysbench_does() {
    every_native_test("mariadb-10.11");
}

#[test(lab, needs = &["mysql-5.6.24"])]
fn built_in_tests_on_mysql_5_6_do_what_sysbench_does() {
    every_native_test("mysql-5.6.24");
}

#[test(lab, needs = &["mysql-9.7"])]
fn built_in_tests_on_mysql_9_do_what_sysbench_does() {
    every_native_test("mysql-9.7");
}
