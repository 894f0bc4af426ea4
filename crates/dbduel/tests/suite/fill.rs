//! Fills that are killed, resumed and started twice, on a real server.

use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::bare_server::BareServer;
use super::lab::{program, signal};

const TABLES: u32 = 4;
const ROWS: u32 = 60_000;

/// A short load that fills its tables first.
fn prepare(server: &BareServer) -> Command {
    let mut command = program();
    command
        .args(["load", "--workload", "oltp-read-write", "--prepare"])
        .args(["--server", &format!("unix:{}", server.socket().display())])
        .args(["--set", &format!("tables={TABLES}")])
        .args(["--set", &format!("table_size={ROWS}")])
        .args(["--clients", "2", "--duration", "1 s", "--warm-up", "0 s"])
        .args(["--database", "sbtest"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits until the fill has written down this many batches.
#[track_caller]
fn wait_for_batches(server: &BareServer, fill: &mut Child, batches: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    let count = "SELECT COUNT(*) FROM sbtest.dbduel_filling WHERE kind = 'rows'";
    let exists =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'dbduel_filling'";
    while server.query(exists) == "0" || server.query(count).parse::<usize>().unwrap() < batches {
        assert!(Instant::now() < deadline, "no {batches} batches in time");
        assert!(fill.try_wait().unwrap().is_none(), "the fill ended early");
        // Every question is a connection, which a busy server takes a while to forget.
        thread::sleep(Duration::from_millis(20));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn killed_fills_are_resumed(name: &str) {
    let server = BareServer::start(name);
    let mut interrupted = prepare(&server).spawn().unwrap();
    wait_for_batches(&server, &mut interrupted, 1);
    signal(&interrupted, Signal::SIGINT);
    let interrupted = interrupted.wait_with_output().unwrap();
    for batches in [2, 4] {
        let mut fill = prepare(&server).spawn().unwrap();
        wait_for_batches(&server, &mut fill, batches);
        signal(&fill, Signal::SIGKILL);
        fill.wait().unwrap();
    }
    // Without --prepare, tables that are filled in part are neither checked nor driven.
    let unprepared = |command: &str, workload: &str| {
        let mut command_line = program();
        command_line.args([command, "--workload", workload, "--database", "sbtest"]);
        command_line.args(["--server", &format!("unix:{}", server.socket().display())]);
        command_line.output().unwrap()
    };
    for output in [
        interrupted,
        unprepared("check", "order-entry"),
        unprepared("load", "oltp-read-write"),
    ] {
        let said = text(&output);
        assert!(!output.status.success(), "{said}");
        let advice = "run the same command again to resume it";
        assert!(said.contains(advice), "{said}");
    }

    let resumed = prepare(&server).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    for table in 1..=TABLES {
        let count = format!("SELECT COUNT(*) FROM sbtest.sbtest{table}");
        assert_eq!(server.query(&count), ROWS.to_string(), "table {table}");
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_killed_fill_is_resumed_by_the_same_command_on_mariadb() {
    killed_fills_are_resumed("mariadb-10.11");
}

#[test(lab, needs = &["mysql-8.0.33"])]
fn a_killed_fill_is_resumed_by_the_same_command_on_mysql() {
    killed_fills_are_resumed("mysql-8.0.33");
}

#[test(needs = &["mariadb-10.11"])]
fn a_second_fill_of_a_database_is_refused_before_it_starts() {
    let server = BareServer::start("mariadb-10.11");
    let mut first = prepare(&server).spawn().unwrap();
    wait_for_batches(&server, &mut first, 1);
    // Stopped, it keeps its connection and with it the lock, however fast the server fills.
    signal(&first, Signal::SIGSTOP);
    let second = prepare(&server).output().unwrap();
    signal(&first, Signal::SIGCONT);
    let said = text(&second);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("is being filled by connection"), "{said}");
    assert!(!said.contains("filling in"), "it announced a fill: {said}");
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
}
