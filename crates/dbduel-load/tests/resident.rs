//! Ten thousand connections in one load process, and the memory that they take.
//!
//! The process that is measured holds the load alone, as in production: this program again, with the word
//! `drive` as its argument. The null server is in the program that judges it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use dbduel_driver::executor::policy::raise_open_files_limit;
use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_load::drive::drive;
use dbduel_load::order::{Answer, OpenOrder, Order};
use libtest_mimic::{Arguments, Trial};
use nix::sys::resource::{Resource, getrlimit};
use support::{check_accounts, open_order, slice_order};

const CLIENTS: u32 = 10_000;
/// Descriptors of a process besides those of the clients.
const DESCRIPTORS: u64 = 100;
/// Most memory that the load process may have had in use at any time.
const RESIDENT_MB_MAX: f64 = 200.0;
const DRIVE: &str = "drive";

fn main() {
    if std::env::args().nth(1).as_deref() == Some(DRIVE) {
        drive(BufReader::new(std::io::stdin()), std::io::stdout(), 2, &[]).unwrap();
        return;
    }
    raise_open_files_limit().unwrap();
    let (allowed, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let has_too_few = allowed < u64::from(CLIENTS) + DESCRIPTORS;
    if has_too_few {
        eprintln!("resident: only {allowed} files may be open; see `ulimit -Hn`");
    }
    let trial = Trial::test("ten_thousand_connections", || {
        ten_thousand_connections();
        Ok(())
    });
    let trial = trial.with_ignored_flag(has_too_few);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

fn ten_thousand_connections() {
    let directory = tempfile::tempdir().unwrap();
    let server = MockServer::start(&directory.path().join("s.sock"), Role::Null).unwrap();
    for workload in ["oltp-point-select", "oltp-read-write"] {
        let resident_mb = resident_mb(&server, workload);
        println!("resident: {CLIENTS} connections of {workload}: {resident_mb:.0} MB");
        assert!(
            resident_mb < RESIDENT_MB_MAX,
            "{workload}: {resident_mb} MB are more than {RESIDENT_MB_MAX}"
        );
    }
}

/// Connects, drives a slice, and returns the most memory that was in use.
fn resident_mb(server: &MockServer, workload: &str) -> f64 {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .arg(DRIVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = process.stdin.take().unwrap();
    let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
    let open = OpenOrder {
        connect_s: 120.0,
        ..open_order(&server.address(), workload, CLIENTS)
    };
    for order in [Order::Open(open), Order::Slice(slice_order(CLIENTS, 1.0))] {
        writeln!(orders, "{}", serde_json::to_string(&order).unwrap()).unwrap();
    }
    loop {
        match serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() {
            Answer::Opened { .. } | Answer::Begun { .. } | Answer::Tick(_) => {}
            Answer::Slice(slice) => {
                check_accounts(&slice);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let peak = peak_mb(&process);
    drop(orders);
    assert!(process.wait().unwrap().success());
    peak
}

/// The largest resident set that the process ever had.
fn peak_mb(process: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.unwrap().split_ascii_whitespace().next().unwrap();
    kb.parse::<f64>().unwrap() / 1024.0
}
