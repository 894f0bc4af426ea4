//! Faults in pairs, drawn from a seed, at drawn moments of a real contest: after each, what was measured before is unchanged,
//! and the contest comes to its end when it is resumed.
//!
//! `DBDUEL_CHAOS_SECONDS` says how long to begin new rounds (20 by default), `DBDUEL_CHAOS_SEED` with which to begin.

pub mod clock;
mod fault;

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use dbduel_record::Record;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::harness::seed;
use super::lab::{
    Lab, load_process, servers_left, short_experiment, verify, with_budget, with_schedule,
};
use super::mutated::number_of;
use super::small_disk::SmallDisk;
use clock::Clock;
use fault::{Fault, Part, Timed, pair};

/// How long new rounds begin where nothing is said.
const SECONDS: u64 = 20;
/// Runs of one contest with faults, and those without that may follow: the first of these ends it.
const RUNS_WITH_FAULTS: u64 = 2;
/// A run that takes longer is stuck.
const RUN_MAX: Duration = Duration::from_secs(240);
/// A process whose time has come is gone within this.
const END_MAX: Duration = Duration::from_secs(20);
/// Room for a record, KiB.
const DISK_KIB: u32 = 8192;

/// What is done to a run at one moment.
#[derive(Debug, Clone, Copy)]
enum Action {
    Begin(Fault),
    Continue(i32),
    EmptyDisk,
}

/// One contest and what happens to it.
struct Round {
    seed: u64,
    lab: Lab,
    disk: Option<SmallDisk>,
    clock: Option<Clock>,
    /// What was done, for the one who reads of a failure.
    log: Vec<String>,
    /// The record as it was last seen.
    seen: Option<Record>,
    is_disk_full: bool,
}

impl Drop for Round {
    fn drop(&mut self) {
        // A failed assertion leaves no server behind.
        for (pid, _) in servers_left() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A run that ends with its round.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// True for a process that is stopped.
fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn send(pid: i32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill(Pid::from_raw(pid), signal);
}

impl Round {
    fn new(seed: u64) -> Self {
        // Longer than a pair of faults, which begin up to six seconds apart.
        let schedule = "slice = \"500 ms\"\nguard = \"50 ms\"\nwarm_up = \"1 s\"\n";
        let text = short_experiment(
            ["mariadb-10.11", "mariadb-10.11"],
            "[limits]\nfree_disk = \"1 KiB\"\n",
        );
        let experiment = with_budget(&with_schedule(&text, schedule), "26 s");
        let disk = SmallDisk::mount(DISK_KIB);
        let clock = Clock::build();
        let mut log = Vec::new();
        log.extend(
            disk.as_ref()
                .err()
                .map(|why| format!("no full disk: {why}")),
        );
        log.extend(
            clock
                .as_ref()
                .err()
                .map(|why| format!("no step of the clock: {why}")),
        );
        let disk = disk.ok();
        let lab = match &disk {
            Some(disk) => Lab::with_results(&experiment, disk.path().join("results")),
            None => Lab::new(&experiment),
        };
        Self {
            seed,
            lab,
            disk,
            clock: clock.ok(),
            log,
            seen: None,
            is_disk_full: false,
        }
    }

    fn note(&mut self, began: Instant, what: &str) {
        let line = format!("{:7.2} s  {what}", began.elapsed().as_secs_f64());
        println!("{line}");
        self.log.push(line);
    }

    #[track_caller]
    fn check(&self, holds: bool, what: &str) {
        assert!(
            holds,
            "chaos seed {} (again: DBDUEL_CHAOS_SEED={} DBDUEL_CHAOS_SECONDS=1 just lab chaos::):\n{what}\n{}\n\
             the run said:\n{}",
            self.seed,
            self.seed,
            self.log.join("\n"),
            self.lab.said()
        );
    }

    /// Runs the contest with faults until its runs are used up, and then without to its end.
    fn conduct(&mut self) {
        for number in 0..RUNS_WITH_FAULTS {
            let faults = pair(self.seed.wrapping_add(number << 32));
            if self.run(&faults) {
                break;
            }
        }
        let is_over = self.run(&[]);
        self.check(is_over, "a run without a fault did not end the contest");
        let dir = self.lab.record_dir();
        let (code, said) = verify(&dir);
        self.check(code == Some(0), &format!("verify: {code:?}: {said}"));
        let is_there = |name: &str| {
            dir.join(name)
                .metadata()
                .is_ok_and(|file| file.len() > 1000)
        };
        self.check(
            is_there("report.html") && is_there("report.md"),
            "there is no report",
        );
    }

    /// One run of the contest, from its beginning or resumed; true when it ended the contest.
    fn run(&mut self, faults: &[Timed]) -> bool {
        let mut command = match self.lab.begun() {
            Some(_) => self.lab.resume_command(),
            None => {
                // What a run left that ended before its record was one.
                let _ = std::fs::remove_dir_all(self.lab.results());
                self.lab.run_command()
            }
        };
        if let Some(clock) = &self.clock {
            clock.set_in(&mut command);
        }
        let began = Instant::now();
        self.note(began, &format!("a run begins; {faults:?}"));
        let mut run = Run(self.lab.spawn_command(command));
        let mut load = None;
        let mut actions: Vec<(u64, Action)> = faults
            .iter()
            .map(|&(at_ms, fault)| (at_ms, Action::Begin(fault)))
            .collect();
        let mut is_killed = false;
        let status = loop {
            if let Some(status) = run.0.try_wait().unwrap() {
                break status;
            }
            load = load_process(&run.0).or(load);
            let now_ms = began.elapsed().as_millis() as u64;
            // The earliest first.
            let due = (0..actions.len())
                .filter(|&index| actions[index].0 <= now_ms)
                .min_by_key(|&index| actions[index].0);
            if let Some(due) = due {
                let (_, action) = actions.remove(due);
                let more = self.act(began, &run.0, action);
                is_killed |= matches!(action, Action::Begin(Fault::Kill(Part::Orchestrator)));
                actions.extend(more.map(|(after_ms, action)| (now_ms + after_ms, action)));
                continue;
            }
            self.check(began.elapsed() < RUN_MAX, "the run does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        // What still is stopped or full would be so for the next run.
        for (_, action) in actions {
            if !matches!(action, Action::Begin(_)) {
                self.act(began, &run.0, action);
            }
        }
        self.note(began, &format!("the run ended: {status}"));
        self.examine(status, is_killed, load);
        matches!(status.code(), Some(0 | 3 | 4))
    }

    /// Does it, and says what is to be done later because of it.
    fn act(&mut self, began: Instant, run: &Child, action: Action) -> Option<(u64, Action)> {
        match action {
            Action::Continue(pid) => {
                self.note(began, &format!("continue {pid}"));
                send(pid, Signal::SIGCONT);
                None
            }
            Action::EmptyDisk => {
                self.note(began, "the disk has room again");
                if let Some(disk) = &self.disk
                    && std::mem::take(&mut self.is_disk_full)
                {
                    disk.empty();
                }
                None
            }
            Action::Begin(fault) => {
                self.remember();
                self.begin(began, run, fault)
            }
        }
    }

    fn begin(&mut self, began: Instant, run: &Child, fault: Fault) -> Option<(u64, Action)> {
        match fault {
            Fault::Kill(part) => {
                let pid = self.process(run, part);
                self.note(began, &format!("kill {part:?} {pid:?}"));
                send(pid?, Signal::SIGKILL);
                None
            }
            Fault::Stop(part, ms) => {
                let pid = self.process(run, part);
                self.note(began, &format!("stop {part:?} {pid:?} for {ms} ms"));
                send(pid?, Signal::SIGSTOP);
                Some((ms, Action::Continue(pid?)))
            }
            Fault::FullDisk(ms) => {
                self.note(began, &format!("the disk is full for {ms} ms"));
                // Before there is a record there is nothing to lose.
                let disk = self.disk.as_ref()?;
                disk.fill();
                self.is_disk_full = true;
                Some((ms, Action::EmptyDisk))
            }
            Fault::ClockStep(seconds) => {
                self.note(began, &format!("the clock is set by {seconds} s"));
                self.clock.as_mut()?.step(seconds);
                None
            }
            Fault::Interrupt(signal) => {
                self.note(began, &format!("{signal}"));
                send(run.id() as i32, signal);
                None
            }
        }
    }

    fn process(&self, run: &Child, part: Part) -> Option<i32> {
        let server = |stopped: bool| {
            let servers = servers_left().into_iter().map(|(pid, _)| pid);
            servers.into_iter().find(|&pid| is_stopped(pid) == stopped)
        };
        match part {
            Part::Orchestrator => i32::try_from(run.id()).ok(),
            Part::Load => load_process(run),
            Part::ActiveServer => server(false),
            Part::FrozenServer => server(true),
        }
    }

    /// Keeps the record as it is now.
    fn remember(&mut self) {
        self.seen = self.lab.begun().or(self.seen.take());
    }

    /// Asserts what holds after any run.
    fn examine(&mut self, status: ExitStatus, is_killed: bool, load: Option<i32>) {
        let said = self.lab.said();
        self.check(!said.contains("panicked at"), "a panic");
        let is_documented = match status.code() {
            Some(code) => [0, 1, 3, 4, 130].contains(&code),
            None => is_killed && status.signal() == Some(9),
        };
        self.check(is_documented, &format!("it ended with {status}"));
        if !is_killed {
            let left = servers_left();
            self.check(left.is_empty(), &format!("servers are left: {left:?}"));
        }
        let deadline = Instant::now() + END_MAX;
        let is_there = || load.filter(|pid| is_load(*pid));
        while is_there().is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.check(is_there().is_none(), "its load process is left");

        let before = self.seen.take();
        self.remember();
        let Some(after) = &self.seen else {
            self.check(before.is_none(), "the record is gone");
            return;
        };
        self.check(
            after.complaints.is_empty(),
            &format!("{:?}", after.complaints),
        );
        let stamps: Vec<u64> = after.events.iter().map(|event| event.at_ms).collect();
        self.check(stamps.is_sorted(), &format!("stamps go back: {stamps:?}"));
        if let Some(before) = before {
            self.check(
                after.slices.get(..before.slices.len()) == Some(before.slices.as_slice())
                    && after.ticks.get(..before.ticks.len()) == Some(before.ticks.as_slice())
                    && after.latencies.get(..before.latencies.len())
                        == Some(before.latencies.as_slice()),
                "slices that were finished are others now",
            );
            self.check(
                after.events.get(..before.events.len()) == Some(before.events.as_slice()),
                "the journal is another",
            );
        }
    }
}

/// True while the process is a load process: its number may have been given away.
fn is_load(pid: i32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"drive")
}

#[test(lab, needs = &["mariadb-10.11"])]
fn chaos() {
    let seconds = number_of("DBDUEL_CHAOS_SECONDS").unwrap_or(SECONDS);
    let first = number_of("DBDUEL_CHAOS_SEED").unwrap_or_else(seed);
    println!("chaos: the first seed is {first}");
    let began = Instant::now();
    for seed in first.. {
        println!("chaos seed {seed}");
        Round::new(seed).conduct();
        if began.elapsed() >= Duration::from_secs(seconds) {
            println!(
                "chaos: {} contests in {:.0?}",
                seed - first + 1,
                began.elapsed()
            );
            return;
        }
    }
}
