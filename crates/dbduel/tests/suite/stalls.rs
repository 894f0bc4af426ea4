//! A load process that stalls: its slice says nothing about the server, and that is what is reported.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_load::order::{Answer, Order, SliceAnswer, SliceOrder};
use dbduel_record::event::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{Lab, count, published, short_experiment, signal, with_budget, with_schedule};
use crate::support::{open_order, slice_order};

/// How long the load process is stopped.
const STOPPED: Duration = Duration::from_secs(1);

fn order(child: &mut Child, order: &Order) {
    let line = serde_json::to_string(order).unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
}

fn answer(answers: &mut Lines<BufReader<ChildStdout>>) -> Answer {
    serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
}

/// A slice of a real load process, in the middle of which `disturb` is called with the process.
fn slice_of(disturb: impl FnOnce(&Child)) -> SliceAnswer {
    let directory = tempfile::tempdir().unwrap();
    let server = MockServer::start(&directory.path().join("s.sock"), Role::Null).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dbduel"))
        .args(["drive", "--threads", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let open = open_order(&server.address(), "oltp-point-select", 2);
    order(&mut child, &Order::Open(open));
    let opened = answer(&mut answers);
    assert!(matches!(opened, Answer::Opened { .. }), "{opened:?}");
    // It ends when it is told to, however busy the machine is.
    let slice = SliceOrder {
        guard_s: 0.0,
        ..slice_order(2, 3600.0)
    };
    order(&mut child, &Order::Slice(slice));
    while !matches!(answer(&mut answers), Answer::Tick(_)) {}
    disturb(&child);
    order(&mut child, &Order::Stop);
    let slice = loop {
        match answer(&mut answers) {
            Answer::Begun { .. } | Answer::Tick(_) => {}
            Answer::Slice(slice) => break *slice,
            other => panic!("{other:?}"),
        }
    };
    drop(child.stdin.take());
    child.wait().unwrap();
    slice
}

#[test(lab)]
fn a_load_process_that_was_stopped_says_for_how_long() {
    let slice = slice_of(|child| {
        signal(child, Signal::SIGSTOP);
        std::thread::sleep(STOPPED);
        signal(child, Signal::SIGCONT);
    });
    // It may have slept for 50 ms of it.
    let least_s = STOPPED.as_secs_f64() - 0.05;
    assert!(slice.stalled_s >= least_s, "{}", slice.stalled_s);
    assert!(slice.stalled_s < slice.measured_s, "{}", slice.stalled_s);
    let gaps_s: f64 = slice.gaps_s.iter().map(|[from, until]| until - from).sum();
    assert!(
        gaps_s >= least_s && gaps_s <= slice.stalled_s + 1e-6,
        "{gaps_s}"
    );
    assert!(slice.classes[0].counts.ok > 0);
}

/// The load processes that this contest has started.
fn load_processes(run: &Child) -> Vec<Pid> {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let pids = children.split_ascii_whitespace();
    let is_load = |pid: &&str| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"drive")
    };
    pids.filter(is_load)
        .map(|pid| Pid::from_raw(pid.parse().unwrap()))
        .collect()
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_stopped_load_process_costs_its_slice_and_not_the_contest_and_is_named() {
    // Undecided for longer than it takes to stop the process within a slice, which is most of the time.
    let text = short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replace("25 %", "0.1 %");
    let schedule = "slice = \"500 ms\"\nguard = \"10 ms\"\nwarm_up = \"300 ms\"\n";
    let experiment = with_budget(&with_schedule(&text, schedule), "10 min");
    let lab = Lab::new(&experiment);
    let mut run = lab.spawn();
    let is_lost = |lab: &Lab| {
        count(
            &lab.record(),
            |event| matches!(event, Event::SliceLost { why, .. } if why.contains("stalled for")),
        ) > 0
    };
    lab.wait_for_slices(&mut run, 1);
    let load = load_processes(&run);
    let [load] = load.as_slice() else {
        panic!("{load:?}")
    };
    // Until it was in the middle of a slice and not between two of them.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_lost(&lab) && Instant::now() < deadline {
        if kill(*load, Signal::SIGSTOP).is_err() {
            break;
        }
        std::thread::sleep(STOPPED);
        kill(*load, Signal::SIGCONT).unwrap();
        std::thread::sleep(STOPPED);
    }
    let finished = lab.record().finished_slices().count();
    lab.wait_for_slices(&mut run, finished + 1);
    lab.interrupt(&mut run);
    let record = lab.record();
    let lost = record.events.iter().find_map(|event| match &event.what {
        Event::SliceLost { slice, why, .. } if why.starts_with("the load process stalled for ") => {
            Some((*slice, why.clone()))
        }
        _ => None,
    });
    let (slice, why) = lost.unwrap_or_else(|| panic!("no slice is lost; it said:\n{}", lab.said()));
    assert_eq!(
        count(&record, |event| matches!(event, Event::ServerDied { .. })),
        0
    );
    let report = published(&lab.record_dir());
    let findings = report["findings"].as_array().unwrap();
    let claims: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["rule"] == "run.lost-slices")
        .map(|finding| finding["claim"].as_str().unwrap())
        .collect();
    assert!(
        claims.len() == 1 && claims[0].contains(&format!("{slice}: {why}")),
        "{claims:?}"
    );
    assert!(
        !findings
            .iter()
            .any(|finding| finding["rule"] == "load.silent-slices"),
        "{findings:?}"
    );
}
