//! Whole contests in a simulated world, with faults drawn from a seed: the contest is the real one, from its experiment to its record,
//! and so are its data, which are files of SQLite. Servers and load are imagined, and time passes when they say so.
//!
//! A seed is one contest and all that happens to it, so a failure is replayed by its seed:
//! `DBDUEL_SIMULATE_FROM=<seed> DBDUEL_SIMULATE=1 cargo test -p dbduel --lib simulation`.

mod bisection;
mod experiments;
mod faults;
mod invariants;
mod load;
#[cfg(test)]
mod round_trip;
mod server;
mod world;

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use dbduel_driver::Dialect;
use dbduel_experiment::expand::{Surroundings, expand, expand_sweep};
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_lab::contest::backend::{ContenderServer, in_process};
use dbduel_lab::contest::{ContestConfig, Load, Provider};
use dbduel_lab::server_host::ServerHosts;
use dbduel_machine::clock::Clocks;
use dbduel_machine::clock::simulated::{self, SimulatedTime};
use dbduel_machine::interrupt;
use dbduel_record::event::{EndReason, Notice};
use dbduel_record::plan::Contender;
use dbduel_record::store::PLAN;
use dbduel_record::sweep::{CELLS, SWEEP};
use dbduel_record::{Plan, Record};
use dbduel_server::Home;
use dbduel_stats::random::RandomStream;
use dbduel_testkit::faulty_files::FaultyFiles;
use dbduel_workloads::parameters::ScriptAccess;

use crate::commands::fail_if::FailIf;
use crate::commands::run::{RunOptions, create, run_on_console};
use crate::commands::sweep;
use crate::exit::Exit;
use faults::{Fault, Strikes};
use load::SimulatedLoad;
use server::SimulatedServer;
use world::{Killed, Shared, World};

/// One contest of this many is verified and reported in full.
const REPORTED_EVERY: u64 = 10;
/// Largest budget tried, seconds: an experiment refused with it has another mistake.
const BUDGET_S_MAX: f64 = 10_000.0;
/// Processes with faults that one contest may have; the one after them ends it.
const PROCESSES_WITH_FAULTS: u32 = 2;

fn pass_s(seconds: f64) {
    simulated::pass(Duration::from_secs_f64(seconds));
}

/// Gives a contest simulated servers and simulated load.
#[derive(Debug)]
struct Simulated(Shared);

impl Provider for Simulated {
    fn load(&self, _config: &ContestConfig<'_>) -> Result<Box<dyn Load>> {
        Ok(Box::new(SimulatedLoad::start(&self.0)))
    }

    fn server(
        &self,
        config: &ContestConfig<'_>,
        _hosts: &ServerHosts,
        number: usize,
    ) -> Result<(ContenderServer, Vec<Notice>)> {
        let contender = &config.plan.contenders[number];
        self.0.call(|| format!("server {number}: make"));
        let file = in_process::create(config, number, contender)?;
        let server = Box::new(SimulatedServer::new(self.0.clone(), number, file));
        let resident = ContenderServer::of_ours(contender, Dialect::Sqlite, server);
        Ok((resident, Vec::new()))
    }

    fn has_processes(&self) -> bool {
        false
    }
}

/// How a process of a contest ended.
#[derive(Debug)]
enum End {
    Ended(Exit),
    /// Why.
    Failed(String),
    Killed,
    Panicked(String),
}

/// Result of a simulation.
#[derive(Debug, Default)]
struct Outcome {
    processes: u32,
    calls: usize,
    struck: Vec<&'static str>,
}

/// One contest and what happens to it.
struct Simulation {
    seed: u64,
    random: RandomStream,
    folder: tempfile::TempDir,
    text: String,
    /// Rules of `--fail-if`.
    rules: Vec<FailIf>,
    plan: Planned,
    world: Shared,
    /// The records as the process before left them.
    seen: BTreeMap<PathBuf, Record>,
    /// Events for the report of a failure.
    log: Vec<String>,
    struck: Vec<&'static str>,
    /// A process was struck in a way after which it may fail.
    may_fail: bool,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut random = RandomStream::new(seed, 1);
        let drawn = experiments::draw(&mut random);
        let rules = experiments::draw_rules(&mut random);
        let folder = tempfile::tempdir_in(in_memory()).expect("a folder for the simulation");
        let path = folder.path().join("duel.toml");
        let mut budget_s = 20.0 + 60.0 * random.uniform();
        let (text, (plan, contenders)) = loop {
            let text = format!("budget = \"{budget_s:.0} s\"\n{drawn}");
            match plan(&path, &text) {
                Ok(planned) => break (text, planned),
                Err(error) => assert!(budget_s < BUDGET_S_MAX, "{error:#}\n{text}"),
            }
            // Some are refused with less.
            budget_s *= 2.0;
        };
        Self::of(seed, random, folder, (text, plan, contenders), rules)
    }

    /// The simulation of one experiment.
    fn of(
        seed: u64,
        random: RandomStream,
        folder: tempfile::TempDir,
        (text, plan, contenders): (String, Planned, Vec<Contender>),
        rules: Vec<FailIf>,
    ) -> Self {
        let world = World::new(seed, &contenders);
        Self {
            seed,
            random,
            folder,
            text,
            rules,
            plan,
            world: Shared(Rc::new(RefCell::new(world))),
            seen: BTreeMap::new(),
            log: Vec::new(),
            struck: Vec::new(),
            may_fail: false,
        }
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    /// The record, or the directory of the sweep, once there is one.
    fn begun(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.results()).into_iter().flatten();
        let path = entries.next()?.ok()?.path();
        (path.join(PLAN).is_file() || path.join(SWEEP).is_file()).then_some(path)
    }

    /// All records that there are: one, or those of the cells of a sweep.
    fn records(&self) -> Vec<PathBuf> {
        let Some(begun) = self.begun() else {
            return Vec::new();
        };
        let cells = fs::read_dir(begun.join(CELLS)).into_iter().flatten();
        let mut cells: Vec<PathBuf> = cells.flatten().map(|cell| cell.path()).collect();
        if !begun.join(SWEEP).is_file() {
            cells.push(begun);
        }
        cells.retain(|cell| cell.join(PLAN).is_file());
        cells.sort();
        cells
    }

    /// Runs the contest with faults, and then without to its end.
    fn conduct(&mut self) -> Result<Outcome, String> {
        let time = SimulatedTime::begin();
        let silence = dbduel_text::terminal::silence::keep();
        let mut outcome = Outcome::default();
        // As many as a contest of this kind makes.
        let (mut calls, mut changes) = (500, 300);
        for number in 0..=PROCESSES_WITH_FAULTS {
            let strikes = match number < PROCESSES_WITH_FAULTS {
                true => Strikes::draw(&mut self.random, calls, changes),
                false => Strikes::default(),
            };
            let (end, changed) = self.process(strikes)?;
            outcome.processes += 1;
            outcome.calls += self.world.0.borrow().calls();
            calls = calls.max(self.world.0.borrow().calls());
            changes = changes.max(changed);
            match end {
                End::Ended(Exit::Done | Exit::Undecided | Exit::RuleHit) => break,
                End::Ended(Exit::Interrupted) | End::Failed(_) | End::Killed if self.may_fail => {}
                other => {
                    return Err(format!(
                        "no fault explains that this process did not end the contest: {other:?}"
                    ));
                }
            }
        }
        drop((time, silence));
        outcome.struck = std::mem::take(&mut self.struck);
        invariants::of_the_end(self, self.seed.is_multiple_of(REPORTED_EVERY))?;
        Ok(outcome)
    }

    /// One process: begins the contest or resumes it.
    fn process(&mut self, strikes: Strikes) -> Result<(End, usize), String> {
        self.log.push(format!("a process begins: {strikes:?}"));
        let files = Arc::new(match strikes.files {
            Some((fault, at)) => FaultyFiles::new(fault, at),
            None => FaultyFiles::none(),
        });
        self.world.0.borrow_mut().begin(&files, strikes.calls);
        let began = Clocks::now();
        let user = interrupt::simulated::begin();
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(&files)));
        drop(user);
        let is_killed = self.world.0.borrow().is_killed();
        let end = match attempt {
            _ if is_killed => End::Killed,
            Ok(Ok(exit)) => End::Ended(exit),
            Ok(Err(error)) => End::Failed(format!("{error:#}")),
            Err(payload) => End::Panicked(said(&*payload)),
        };
        self.log.push(format!("it ended: {end:?}"));
        let struck: Vec<Fault> = std::mem::take(&mut self.world.0.borrow_mut().struck);
        let had_effect = self.world.0.borrow().had_effect;
        self.may_fail = struck.iter().any(|fault| fault.may_end_it(had_effect));
        self.struck.extend(struck.into_iter().map(Fault::kind));
        if let Some((fault, at)) = strikes.files
            && files.changes() > at
        {
            self.struck.push(faults::kind_of(fault));
            self.may_fail = true;
        }
        if let End::Panicked(what) = &end {
            return Err(format!("a panic: {what}"));
        }
        let before = std::mem::take(&mut self.seen);
        let passed = Clocks::now().since_start - began.since_start;
        self.seen = invariants::of_a_process(self, before, &end, passed)?;
        Ok((end, files.changes()))
    }

    fn attempt(&self, files: &Arc<FaultyFiles>) -> Result<Exit> {
        let home = Home::on(Arc::clone(files) as _, self.folder.path().join("home"));
        let path = self.folder.path().join("duel.toml");
        let file = ExperimentFile {
            path: &path,
            text: &self.text,
            experiment: &Experiment::parse(&path, &self.text)?,
        };
        let options = RunOptions {
            provider: &Simulated(self.world.clone()),
            fail_if: &self.rules,
            ..RunOptions::default()
        };
        match (self.begun(), self.plan.clone()) {
            (Some(dir), Planned::Sweep) => sweep::resume(&home, &dir, &options),
            (Some(record), Planned::Duel(_)) => {
                let plan = Record::open(&record)?.plan;
                conducted(run_on_console(&home, &record, &file, &plan, &options)?)
            }
            // What was begun without a plan holds nothing that was measured.
            (None, planned) => {
                let results = self.results();
                let _ = fs::remove_dir_all(&results);
                match planned {
                    Planned::Sweep => sweep::start(&home, &results, &file, &options),
                    Planned::Duel(plan) => {
                        let record = create(&home, &results, &file, &plan)?;
                        conducted(run_on_console(&home, &record, &file, &plan, &options)?)
                    }
                }
            }
        }
    }

    /// Runs it; the error of a failure contains all that is needed to find its cause.
    fn run(mut self) -> Result<Outcome, String> {
        self.conduct().map_err(|why| {
            let mut text = format!("seed {}: {why}\n", self.seed);
            let _ = writeln!(text, "{}\n{}", self.log.join("\n"), self.world.0.borrow().last());
            let _ = writeln!(text, "the experiment, {:?}:\n{}", self.rules, self.text);
            let _ = write!(
                text,
                "again: DBDUEL_SIMULATE_FROM={} DBDUEL_SIMULATE=1 cargo test -p dbduel --lib simulation",
                self.seed
            );
            text
        })
    }
}

/// A folder whose files are in memory, where there is one.
fn in_memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match memory.is_dir() {
        true => memory,
        false => std::env::temp_dir(),
    }
}

/// A planned contest or sweep.
#[derive(Clone)]
enum Planned {
    Duel(Box<Plan>),
    Sweep,
}

/// The plan of an experiment on a machine that is always the same, and its contenders.
fn plan(path: &Path, text: &str) -> Result<(Planned, Vec<Contender>)> {
    let file = ExperimentFile {
        path,
        text,
        experiment: &Experiment::parse(path, text)?,
    };
    let surroundings = Surroundings {
        created: "2027-01-15T08:00:00Z".to_owned(),
        fresh_seed: 1,
        cpus: 2,
        processors: Vec::new(),
        runs_here: true,
        scripts: ScriptAccess::Confined,
    };
    if file.experiment.sweep.is_empty() {
        let plan = expand(&file, &surroundings)?;
        let contenders = plan.contenders.clone();
        return Ok((Planned::Duel(Box::new(plan)), contenders));
    }
    let (_, cells) = expand_sweep(&file, &surroundings)?;
    let contenders = cells.into_iter().next().map(|cell| cell.contenders);
    Ok((Planned::Sweep, contenders.unwrap_or_default()))
}

/// Exit code for the end of a contest.
fn conducted(reason: EndReason) -> Result<Exit> {
    Ok(match reason {
        EndReason::Decided => Exit::Done,
        EndReason::BudgetSpent => Exit::Undecided,
        EndReason::Interrupted => Exit::Interrupted,
        EndReason::Failed => bail!("a contest that failed ended in order"),
    })
}

/// Exit code of a process that was not killed; passes on what it failed or panicked with.
fn conducted_in(attempt: std::thread::Result<Result<Exit>>) -> Exit {
    match attempt {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => panic!("it failed: {error:#}"),
        Err(payload) => panic!("it panicked: {}", said(&*payload)),
    }
}

/// Message of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
    match payload.is::<Killed>() {
        true => "killed".to_owned(),
        false => text.unwrap_or_else(|| "without a message".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Seeds that every commit runs.
    const SEEDS: u64 = 300;

    fn number_of(variable: &str) -> Option<u64> {
        std::env::var(variable).ok()?.parse().ok()
    }

    /// Runs seeds, a share of them by each of several threads, whose simulations know nothing of each other.
    fn simulate(seeds: std::ops::Range<u64>) {
        let begun = Instant::now();
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let all = std::thread::scope(|scope| {
            let workers = (0..threads).map(|first| {
                let own = seeds.clone().skip(first as usize).step_by(threads as usize);
                scope.spawn(move || {
                    own.map(|seed| Simulation::new(seed).run())
                        .collect::<Vec<_>>()
                })
            });
            let workers: Vec<_> = workers.collect();
            let ended = workers
                .into_iter()
                .flat_map(|worker| worker.join().expect("a thread of simulations"));
            ended.collect::<Vec<_>>()
        });
        let failures = all
            .iter()
            .filter_map(|outcome| outcome.as_ref().err().cloned());
        let failures: Vec<String> = failures.collect();
        let outcomes = || all.iter().filter_map(|outcome| outcome.as_ref().ok());
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for kind in outcomes().flat_map(|outcome| &outcome.struck) {
            *kinds.entry(kind).or_default() += 1;
        }
        println!(
            "{} contests, {} processes, {} calls in {:.1?}; faults: {kinds:?}",
            all.len(),
            outcomes().map(|outcome| outcome.processes).sum::<u32>(),
            outcomes().map(|outcome| outcome.calls).sum::<usize>(),
            begun.elapsed()
        );
        // With few seeds some faults are not drawn.
        if seeds.end - seeds.start >= SEEDS {
            assert_eq!(kinds.len(), faults::KINDS, "{kinds:?}");
        }
        assert!(
            failures.is_empty(),
            "{} of {} seeds failed:\n{}",
            failures.len(),
            all.len(),
            failures.join("\n\n")
        );
    }

    #[test]
    fn contests_of_all_kinds_keep_their_promises_whatever_strikes_them() {
        let from = number_of("DBDUEL_SIMULATE_FROM").unwrap_or(0);
        let count = number_of("DBDUEL_SIMULATE").unwrap_or(SEEDS);
        simulate(from..from.saturating_add(count));
    }
}
