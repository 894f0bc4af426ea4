//! Whole bisections in the simulated world: the revisions have known speeds, and the process may be killed on the way.

use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_lab::contest::backend::ContenderServer;
use dbduel_lab::contest::{ContestConfig, Load, Provider};
use dbduel_lab::server_host::ServerHosts;
use dbduel_machine::clock::simulated::SimulatedTime;
use dbduel_machine::interrupt;
use dbduel_record::Record;
use dbduel_record::bisect::{BISECT, BisectPlan, Revision, RevisionSource, step_dir};
use dbduel_record::event::Notice;
use dbduel_record::plan::Contender;
use dbduel_record::record_set::bisection_of;
use dbduel_server::Home;
use dbduel_test_attribute::needs_program;
use dbduel_testkit::faulty_files::FaultyFiles;
use dbduel_workloads::parameters::ScriptAccess;
use serde_json::Value;

use super::faults::Fault;
use super::world::{Shared, World};
use super::{Simulated, conducted_in, in_memory};
use crate::commands::bisect::test_repository::{test_git, test_repository};
use crate::commands::bisect::{self, git_step};
use crate::commands::run::{self, RunOptions};
use crate::exit::Exit;

const EXPERIMENT: &str = "budget = \"150 s\"\nhorizon = \"3 %\"\nseed = 5\n[contenders.server]\nserver = \"sqlite\"\n\
                          [workload]\nname = \"oltp-read-only\"\ntables = 1\ntable_size = 20\n[load]\nclients = 2\n\
                          [schedule]\nslice = \"300 ms\"\nguard = \"50 ms\"\nwarm_up = \"1 s\"\n[limits]\nfree_disk = \"1 KiB\"\n";

/// The same with a suite of two workloads.
const SUITE: &str = "budget = \"150 s\"\nhorizon = \"3 %\"\nseed = 5\n[contenders.server]\nserver = \"sqlite\"\n\
                     [workload]\ntables = 1\ntable_size = 20\n[[suite.workload]]\nname = \"points\"\n\
                     workload = \"oltp-point-select\"\n[[suite.workload]]\nname = \"reads\"\nworkload = \"oltp-read-only\"\n\
                     [load]\nclients = 2\n[schedule]\nslice = \"300 ms\"\nguard = \"50 ms\"\nwarm_up = \"1 s\"\n\
                     [limits]\nfree_disk = \"1 KiB\"\n";

/// Gives a contest of a bisection simulated servers with the speeds of its revisions.
#[derive(Debug)]
struct SimulatedRevisions {
    world: Shared,
    /// ln of the speed of each revision.
    levels: Vec<f64>,
}

impl Provider for SimulatedRevisions {
    fn load(&self, config: &ContestConfig<'_>) -> Result<Box<dyn Load>> {
        Simulated(self.world.clone()).load(config)
    }

    fn server(
        &self,
        config: &ContestConfig<'_>,
        hosts: &ServerHosts,
        number: usize,
    ) -> Result<(ContenderServer, Vec<Notice>)> {
        let dir = bisection_of(config.record).context("a record of a bisection")?;
        let plan = BisectPlan::read(&dir)?;
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step_dir(&dir, step) == config.record);
        let revision = step.context("a step of the bisection")?.revisions[number];
        {
            let server = &mut self.world.0.borrow_mut().servers[number];
            server.level = self.levels[revision];
            server.name.clone_from(&config.plan.contenders[number].name);
        }
        Simulated(self.world.clone()).server(config, hosts, number)
    }

    fn has_processes(&self) -> bool {
        false
    }
}

/// A bisection of simulated revisions.
struct SimulatedBisection {
    folder: tempfile::TempDir,
    world: Shared,
    levels: Vec<f64>,
    /// Its experiment.
    text: &'static str,
    /// The chosen workloads of its suite.
    cells: Vec<String>,
    /// Passes from process to process.
    _time: SimulatedTime,
}

impl SimulatedBisection {
    fn new(seed: u64, speeds: &[f64]) -> Self {
        let folder = tempfile::tempdir_in(in_memory()).expect("a folder for the simulation");
        let world = World::new(seed, &contenders());
        Self {
            folder,
            world: Shared(Rc::new(RefCell::new(world))),
            levels: speeds.iter().map(|speed| speed.ln()).collect(),
            text: EXPERIMENT,
            cells: Vec::new(),
            _time: SimulatedTime::begin(),
        }
    }

    /// The bisection's directory, once there is one.
    fn begun(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.folder.path().join("results")).ok()?;
        let path = entries.next()?.ok()?.path();
        path.join(BISECT).is_file().then_some(path)
    }

    fn provider(&self) -> SimulatedRevisions {
        SimulatedRevisions {
            world: self.world.clone(),
            levels: self.levels.clone(),
        }
    }

    /// All are SQLite; the world distinguishes them by their steps.
    fn revisions(&self) -> Vec<Revision> {
        let revision = Revision {
            name: "sqlite".to_owned(),
            commit: None,
        };
        vec![revision; self.levels.len()]
    }

    /// One process that begins the bisection or resumes it, killed at a call or not; `None` when it was killed.
    fn process(&self, killed_at: Option<usize>) -> Option<Exit> {
        let silence = dbduel_text::terminal::silence::keep();
        let user = interrupt::simulated::begin();
        let files = Arc::new(FaultyFiles::none());
        let faults = killed_at.map(|at| (at, Fault::Killed));
        self.world
            .0
            .borrow_mut()
            .begin(&files, faults.into_iter().collect());
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(&files)));
        drop((user, silence));
        match self.world.0.borrow().is_killed() {
            true => None,
            false => Some(conducted_in(attempt)),
        }
    }

    /// One step of `git bisect run`, of three revisions: good, tested, bad.
    fn git_step(&self, searched: u32) -> Exit {
        let _silence = dbduel_text::terminal::silence::keep();
        let _user = interrupt::simulated::begin();
        let files = Arc::new(FaultyFiles::none());
        self.world.0.borrow_mut().begin(&files, Vec::new());
        let home = Home::on(files as _, self.folder.path().join("home"));
        let path = self.folder.path().join("bisect.toml");
        let file = ExperimentFile {
            path: &path,
            text: EXPERIMENT,
            experiment: &Experiment::parse_single(&path, EXPERIMENT).unwrap(),
        };
        let surroundings = run::surroundings(ScriptAccess::Confined);
        let source = RevisionSource::Versions;
        let plan = git_step::step_plan(&file, &surroundings, self.revisions(), source, searched);
        let results = self.folder.path().join("results");
        let provider = self.provider();
        let options = RunOptions {
            provider: &provider,
            ..RunOptions::default()
        };
        git_step::conduct(&home, &results, &file, plan, &options).unwrap()
    }

    fn attempt(&self, files: &Arc<FaultyFiles>) -> Result<Exit> {
        let home = Home::on(Arc::clone(files) as _, self.folder.path().join("home"));
        let provider = self.provider();
        let options = RunOptions {
            provider: &provider,
            ..RunOptions::default()
        };
        if let Some(dir) = self.begun() {
            return bisect::resume(&home, &dir, &options, false);
        }
        let path = self.folder.path().join("bisect.toml");
        let file = ExperimentFile {
            path: &path,
            text: self.text,
            experiment: &Experiment::parse_single(&path, self.text)?,
        };
        let surroundings = run::surroundings(ScriptAccess::Confined);
        let source = RevisionSource::Versions;
        let plan = bisect::planned(&file, &surroundings, self.revisions(), source, 3);
        let results = self.folder.path().join("results");
        let plans = bisect::plans_of_cells(&file, &plan, &self.cells)?;
        bisect::start_all(&home, &results, &file, plans, &options)
    }

    /// Its report for programs.
    fn report(&self) -> Value {
        let dir = self.begun().expect("it was begun");
        read_json(&dir.join("report.json"))
    }
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the report was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Contenders of the world: as many as a step has at most.
fn contenders() -> Vec<Contender> {
    let text = EXPERIMENT.replace("[contenders.server]", "[contenders.good]");
    let text = format!(
        "{text}[contenders.bad]\nlike = \"good\"\n[contenders.candidate]\nlike = \"good\"\n"
    );
    let (_, contenders) = super::plan(Path::new("bisect.toml"), &text).expect("it is valid");
    contenders
}

/// The places of the found changes, as revisions before and after.
fn found(report: &Value) -> Vec<(u64, u64)> {
    let parts = report["parts"].as_array().into_iter().flatten();
    let places = parts.map(|part| &part["place"]);
    let mut places: Vec<(u64, u64)> = places
        .filter(|place| place["is_found"] == true)
        .filter_map(|place| Some((place["after"].as_u64()?, place["up_to"].as_u64()?)))
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn the_change_is_found_whatever_its_place() {
    for (seed, first_bad) in [(1, 1), (2, 4), (3, 7), (4, 11)] {
        let speeds: Vec<f64> = (0..12)
            .map(|one| if one < first_bad { 1.0 } else { 0.8 })
            .collect();
        let bisection = SimulatedBisection::new(seed, &speeds);
        assert_eq!(bisection.process(None), Some(Exit::Done), "seed {seed}");
        let report = bisection.report();
        let place = (first_bad as u64 - 1, first_bad as u64);
        assert_eq!(found(&report), [place], "seed {seed}: {report:#}");
        assert_eq!(report["is_over"], true);
    }
}

#[test]
fn both_of_two_changes_are_found() {
    let mut speeds = vec![1.0; 4];
    speeds.extend([0.85; 3]);
    speeds.extend([0.6; 3]);
    let bisection = SimulatedBisection::new(6, &speeds);
    assert_eq!(bisection.process(None), Some(Exit::Done));
    assert_eq!(found(&bisection.report()), [(3, 4), (6, 7)]);
}

#[test]
fn equal_ends_are_not_searched() {
    let bisection = SimulatedBisection::new(8, &[1.0; 9]);
    assert_eq!(bisection.process(None), Some(Exit::Undecided));
    let report = bisection.report();
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(1));
    assert!(found(&report).is_empty());
}

#[test]
fn a_bisection_that_was_killed_continues_where_it_was() {
    let speeds = [1.0, 1.0, 1.0, 1.0, 1.0, 0.75, 0.75, 0.75];
    let bisection = SimulatedBisection::new(9, &speeds);
    let mut kills = 0;
    let exit = loop {
        // Later in each process, so that it gets further every time.
        match bisection.process(Some(300 + 400 * kills)) {
            Some(exit) => break exit,
            None => kills += 1,
        }
        assert!(kills < 40, "it does not end");
    };
    assert!(kills > 1, "it was not killed on the way");
    assert_eq!(exit, Exit::Done);
    assert_eq!(found(&bisection.report()), [(4, 5)]);
    let dir = bisection.begun().unwrap();
    let plan = BisectPlan::read(&dir).unwrap();
    for step in &plan.steps {
        crate::commands::verify::expect_whole(&step_dir(&dir, step)).unwrap();
    }
}

#[test]
#[needs_program("git")]
fn git_bisect_finds_the_change_by_the_exit_codes_of_steps() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    let numbers: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let commits = test_repository(repository, &numbers);
    let first_bad = 7;
    let speed = |number: usize| if number < first_bad { 1.0 } else { 0.8 };
    let ends = [&commits[11], &commits[0]].map(|commit| commit.hash.as_str());
    let mut said = test_git(repository, &["bisect", "start", ends[0], ends[1]]);
    let mut steps = 0;
    while !said.contains("is the first bad commit") {
        let text = fs::read_to_string(repository.join("speed")).unwrap();
        let tested: usize = text.parse().unwrap();
        steps += 1;
        let step = SimulatedBisection::new(steps, &[speed(0), speed(tested), speed(11)]);
        // As `git bisect run` reads them.
        let answer = match step.git_step(11).code() {
            0 => "good",
            1 => "bad",
            code => panic!("{code} of commit {tested}"),
        };
        said = test_git(repository, &["bisect", answer]);
        assert!(steps <= 4, "{said}");
    }
    assert!(said.contains(&commits[first_bad].hash), "{said}");
}

#[test]
fn a_step_of_equal_ends_is_no_answer_to_git_bisect() {
    let step = SimulatedBisection::new(3, &[1.0, 1.0, 1.0]);
    assert_eq!(step.git_step(1000).code(), 129);
    // Its ends are not asked, and its report says so.
    let report = step.report();
    assert_eq!(report["steps"][0]["answer"], "unsure");
    // Ten answers share the error of 5 %, and each is wrong with a fifth of what the plan allows.
    let confidence = report["confidence"].as_f64().unwrap();
    assert!((confidence - 0.975).abs() < 1e-9, "{confidence}");
}

#[test]
fn one_workload_of_a_suite_is_bisected() {
    let mut bisection = SimulatedBisection::new(11, &[1.0, 1.0, 0.8, 0.8, 0.8]);
    bisection.text = SUITE;
    bisection.cells = vec!["reads".to_owned()];
    assert_eq!(bisection.process(None), Some(Exit::Done));
    let report = bisection.report();
    assert_eq!(found(&report), [(1, 2)]);
    assert_eq!(report["cell"], "reads");
    let dir = bisection.begun().unwrap();
    let plan = BisectPlan::read(&dir).unwrap();
    let record = Record::open(&step_dir(&dir, &plan.steps[0])).unwrap();
    let cells = record.plan.levels.iter().flat_map(|level| &level.cell);
    let cells: Vec<&str> = cells.map(|cell| cell.name.as_str()).collect();
    assert_eq!(cells, ["reads"]);
}

#[test]
fn every_workload_of_a_suite_has_a_bisection_of_its_own() {
    let mut bisection = SimulatedBisection::new(12, &[1.0, 0.8]);
    bisection.text = SUITE;
    bisection.cells = vec!["all".to_owned()];
    assert_eq!(bisection.process(None), Some(Exit::Done));
    let results = fs::read_dir(bisection.folder.path().join("results")).unwrap();
    let plans = results.map(|entry| BisectPlan::read(&entry.unwrap().path()).unwrap());
    let mut cells: Vec<Option<String>> = plans.map(|plan| plan.cell).collect();
    cells.sort();
    assert_eq!(cells, ["points", "reads"].map(|name| Some(name.to_owned())));
    // Its simulated time ends with it.
    drop(bisection);
    for (cells, part) in [
        (
            vec![],
            "name workloads of it with --cell, or `all`: points, reads",
        ),
        (vec!["writes"], "the suite has only points, reads"),
    ] {
        let mut refused = SimulatedBisection::new(13, &[1.0, 0.8]);
        refused.text = SUITE;
        refused.cells = cells.into_iter().map(str::to_owned).collect();
        let said = refused.attempt(&Arc::new(FaultyFiles::none())).unwrap_err();
        assert!(said.to_string().contains(part), "{said}");
    }
}
