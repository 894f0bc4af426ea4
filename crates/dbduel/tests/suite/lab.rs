//! What the tests with real servers share: the program, a cached home, a place for records.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dbduel_record::event::Event;
use dbduel_record::{Plan, Record};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::Pid;
use serde_json::Value;

/// How long a run may take to come to what a test waits for: servers start and load their data before.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A home that outlives the test, so that servers are fetched once.
pub fn home() -> PathBuf {
    let shared = std::env::var_os("DBDUEL_TEST_HOME").map(PathBuf::from);
    shared.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("home"))
}

/// Signals that the test runner ignores, as a background job of a script does, act on the programs of tests.
fn reset_signals() -> std::io::Result<()> {
    for ignored in [Signal::SIGINT, Signal::SIGHUP] {
        let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: no handler is installed.
        unsafe { sigaction(ignored, &action) }?;
    }
    Ok(())
}

pub fn program() -> Command {
    program_in(&home())
}

/// The program with a home of its own.
pub fn program_in(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbduel"));
    // SAFETY: between fork and exec it calls sigaction alone, which is async-signal-safe.
    unsafe { command.pre_exec(reset_signals) };
    command
        .arg("--home")
        .arg(home)
        .env_remove("DBDUEL_HOME")
        .stdin(Stdio::null());
    command
}

/// The folder of the suites that come with the program.
pub fn shipped_suites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites")
}

/// The folder of the experiments that come with the program.
pub fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// What the program answers when it is asked for the plan of an experiment file.
pub fn plan_of(file: &Path) -> Output {
    program()
        .args(["run", "--plan", "--json"])
        .arg(file)
        .output()
        .unwrap()
}

/// The report of a record as programs read it.
pub fn published(record: &Path) -> Value {
    let output = program()
        .arg("report")
        .arg(record)
        .args(["--format", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// The experiment with `old` replaced is refused with exit code 2, saying `part` at `place`, and nothing starts.
#[track_caller]
pub fn check_refused(experiment: &str, old: &str, new: &str, place: &str, part: &str) {
    assert!(experiment.contains(old), "{old}");
    let lab = Lab::new(&experiment.replacen(old, new, 1));
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("duel.toml:{place}: ")), "{said}");
    assert!(said.contains(part), "{said}");
    assert!(!lab.has_results(), "a wrong experiment starts nothing");
}

/// A contest of seconds, which needs no server.
pub const SQLITE_DUEL: &str = r#"
question = "What does a write-ahead log save?"
budget = "6 s"
horizon = "25 %"
about = ["journal_mode"]
[contenders.rollback-journal]
server = "sqlite"
settings = { journal_mode = "delete", synchronous = "off" }
[contenders.write-ahead-log]
like = "rollback-journal"
settings = { journal_mode = "wal" }
[workload]
name = "oltp-update-non-index"
table_size = 500
[load]
clients = 1
[schedule]
slice = "50 ms"
guard = "5 ms"
warm_up = "200 ms"
"#;

/// Budget of [`short_experiment`]: of some blocks more than a verdict needs, for those that a busy machine loses.
pub const SHORT_BUDGET: &str = "8 s";
/// Schedule of [`short_experiment`]. Most of a contest is waiting that its schedule prescribes.
pub const SHORT_SCHEDULE: &str = "slice = \"100 ms\"\nguard = \"10 ms\"\nwarm_up = \"300 ms\"\n";

/// An experiment of two contenders that is over in about ten seconds when they are equal.
pub fn short_experiment(servers: [&str; 2], extra: &str) -> String {
    let mut text = format!("budget = \"{SHORT_BUDGET}\"\nhorizon = \"25 %\"\nseed = 7\n");
    for (name, server) in ["first", "second"].into_iter().zip(servers) {
        // The redo log is most of a small data directory, and every snapshot copies it.
        let redo = match server.starts_with("mysql-9") {
            true => "innodb_redo_log_capacity",
            false => "innodb_log_file_size",
        };
        write!(
            text,
            "[contenders.{name}]\nserver = \"{server}\"\nsettings = {{ innodb_buffer_pool_size = \"32M\", \
             innodb_flush_log_at_trx_commit = 2, {redo} = \"8M\" }}\n"
        )
        .unwrap();
    }
    text.push_str("[workload]\nname = \"oltp-point-select\"\ntables = 2\ntable_size = 2_000\n");
    text.push_str("[load]\nclients = 4\n[schedule]\n");
    text.push_str(SHORT_SCHEDULE);
    text.push_str(extra);
    text
}

/// [`short_experiment`] with another budget.
pub fn with_budget(experiment: &str, budget: &str) -> String {
    replaced(
        experiment,
        &format!("\"{SHORT_BUDGET}\""),
        &format!("\"{budget}\""),
    )
}

/// [`short_experiment`] with other lines for its schedule.
pub fn with_schedule(experiment: &str, schedule: &str) -> String {
    replaced(experiment, SHORT_SCHEDULE, schedule)
}

/// The text with a part of it replaced.
///
/// # Panics
/// When there is no such part: the test would run something else than it says.
#[track_caller]
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "no `{old}` in:\n{text}");
    text.replacen(old, new, 1)
}

/// A run in a directory of its own.
pub struct Lab {
    dir: tempfile::TempDir,
    results: PathBuf,
}

impl Lab {
    pub fn new(experiment: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("duel.toml"), experiment).unwrap();
        let results = dir.path().join("results");
        Self { dir, results }
    }

    /// As [`Lab::new`], with its records in another folder.
    pub fn with_results(experiment: &str, results: PathBuf) -> Self {
        Self {
            results,
            ..Self::new(experiment)
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The file with the experiment.
    pub fn experiment(&self) -> PathBuf {
        self.path().join("duel.toml")
    }

    pub fn run_command(&self) -> Command {
        let mut command = program();
        command
            .arg("run")
            .arg(self.experiment())
            .arg("--results")
            .arg(self.results());
        command.current_dir(self.path());
        command
    }

    pub fn run(&self) -> Output {
        self.run_command().output().unwrap()
    }

    /// Runs it to its end: decided or not is the machine's business. No server may stay behind.
    #[track_caller]
    pub fn run_to_the_end(&self) -> Output {
        Self::ended(self.run())
    }

    /// Resumes the record to its end, as [`Self::run_to_the_end`] runs it.
    #[track_caller]
    pub fn resume_to_the_end(&self) -> Output {
        Self::ended(self.resume())
    }

    #[track_caller]
    fn ended(output: Output) -> Output {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
        assert_eq!(servers_left(), []);
        output
    }

    /// Starts the run and leaves it running.
    pub fn spawn(&self) -> Child {
        self.spawn_command(self.run_command())
    }

    /// Resumes the record and leaves that running.
    pub fn spawn_resumed(&self) -> Child {
        self.spawn_command(self.resume_command())
    }

    /// What it says goes to a file.
    pub fn spawn_command(&self, mut command: Command) -> Child {
        let said = std::fs::File::create(self.path().join("said.txt")).unwrap();
        command
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap()
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(self.path().join("said.txt")).unwrap_or_default()
    }

    /// Asks the run to end and waits for that. No server may stay behind.
    #[track_caller]
    pub fn interrupt(&self, run: &mut Child) {
        signal(run, Signal::SIGINT);
        let code = self.exit_code(run, TIMEOUT);
        assert_eq!(code, Some(130), "{}", self.said());
        assert_eq!(servers_left(), []);
    }

    /// The exit code of a run within `limit`; the run is killed and the test fails when it takes longer.
    #[track_caller]
    pub fn exit_code(&self, run: &mut Child, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Some(status) = run.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        panic!(
            "the run did not end within {limit:?}; it said:\n{}",
            self.said()
        );
    }

    /// Starts the run and kills it after so many slices.
    #[track_caller]
    pub fn run_killed_after_slices(&self, count: usize) {
        let mut run = self.spawn();
        self.wait_for_slices(&mut run, count);
        signal(&run, Signal::SIGKILL);
        assert_eq!(run.wait().unwrap().signal(), Some(9));
    }

    pub fn resume_command(&self) -> Command {
        let mut command = program();
        command.arg("run").arg(self.record_dir());
        command
    }

    pub fn resume(&self) -> Output {
        self.resume_command().output().unwrap()
    }

    pub fn results(&self) -> PathBuf {
        self.results.clone()
    }

    /// True when a run has made a place for its record.
    pub fn has_results(&self) -> bool {
        self.results().exists()
    }

    pub fn record_dir(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.results()).unwrap();
        entries.next().expect("there is a record").unwrap().path()
    }

    pub fn record(&self) -> Record {
        Record::open(&self.record_dir()).unwrap()
    }

    /// Waits for what a run does; it is ended and the test fails when that takes longer than [`TIMEOUT`], and the
    /// test fails at once when the run has ended before.
    #[track_caller]
    pub fn wait_until(&self, run: &mut Child, what: &str, mut is_there: impl FnMut() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        let why = loop {
            // Asked first: what an ended run has done, it did before this.
            let ended = run.try_wait().unwrap();
            if is_there() {
                return;
            }
            if let Some(status) = ended {
                break format!("the run ended before, {status}");
            }
            if Instant::now() >= deadline {
                end(run);
                break format!("not within {TIMEOUT:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        panic!("no {what}: {why}; it said:\n{}", self.said());
    }

    /// Waits until the journal of a run has `count` finished slices.
    #[track_caller]
    pub fn wait_for_slices(&self, run: &mut Child, count: usize) {
        self.wait_until(run, &format!("{count} slices"), || {
            let record = self.begun();
            record.is_some_and(|record| record.finished_slices().count() >= count)
        });
    }

    /// The record of a run that may not have made it yet.
    pub fn begun(&self) -> Option<Record> {
        let mut entries = std::fs::read_dir(self.results()).ok()?;
        Record::open(&entries.next()?.ok()?.path()).ok()
    }
}

/// Has a run stop its servers and end, and kills it when it does not.
fn end(run: &mut Child) {
    signal(run, Signal::SIGTERM);
    let deadline = Instant::now() + Duration::from_secs(30);
    while run.try_wait().unwrap().is_none() {
        if Instant::now() >= deadline {
            run.kill().unwrap();
            run.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The exit code of `dbduel verify` on a record, and what it said.
pub fn verify(record: &Path) -> (Option<i32>, String) {
    let output = program().arg("verify").arg(record).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// `dbduel verify` finds the record complete and unedited.
#[track_caller]
pub fn assert_verified(record: &Path) {
    let (code, said) = verify(record);
    assert_eq!(code, Some(0), "{said}");
}

/// Names of the plan's contenders, in its order.
pub fn contender_names(record: &Record) -> Vec<&str> {
    let contenders = record.plan.contenders.iter();
    contenders.map(|one| one.name.as_str()).collect()
}

pub fn count(record: &Record, is_wanted: impl Fn(&Event) -> bool) -> usize {
    record
        .events
        .iter()
        .filter(|event| is_wanted(&event.what))
        .count()
}

/// The load process of a run; none before it is started and when it has ended.
pub fn load_process(run: &Child) -> Option<i32> {
    processes().find_map(|(pid, line)| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(") ")?.1;
        let parent: u32 = after_name.split(' ').nth(1)?.parse().ok()?;
        (parent == run.id() && line.contains(" drive ")).then_some(pid)
    })
}

/// All processes with their command lines; those of zombies are empty.
fn processes() -> impl Iterator<Item = (i32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_string_lossy().parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    })
}

/// As [`servers_of`], of the test home.
pub fn servers_left() -> Vec<(i32, String)> {
    servers_of(&home())
}

/// Servers whose command line names a sandbox below a home; of PostgreSQL also the processes that it forked, which name none but
/// work in one.
pub fn servers_of(home: &Path) -> Vec<(i32, String)> {
    let sandboxes = home
        .canonicalize()
        .unwrap_or_else(|_| home.to_owned())
        .join("sandboxes");
    let needle = sandboxes.to_string_lossy().into_owned();
    let is_server = |(pid, line): &(i32, String)| {
        let is_named = line.contains("--defaults-file") || line.contains("--config-file");
        let folder = || std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        (line.contains(&needle) && is_named)
            || (line.starts_with("postgres: ") && folder().starts_with(&sandboxes))
    };
    processes().filter(is_server).collect()
}

/// The blocks that have a lost slice, as they have on a machine that gives the load process no processor time for a while.
pub fn lost_blocks(record: &Record) -> BTreeSet<u32> {
    let lost = record.events.iter().filter_map(|event| match &event.what {
        Event::SliceLost { slice, .. } => Some(slice.block),
        _ => None,
    });
    lost.collect()
}

/// What was run is what the plan says: blocks were begun in the plan's order of their level, none was left out, and in each the
/// contenders ran in the drawn order.
pub fn follows_the_plan(record: &Record, plan: &Plan) -> bool {
    let lost = lost_blocks(record);
    let rounds_follow = (0..plan.levels.len()).all(|level| {
        // Of a block in which the run was killed no slice may have finished.
        let started = record.events.iter().filter_map(|event| match &event.what {
            Event::SliceStarted { slice, .. } => Some(slice.block),
            _ => None,
        });
        let mut rounds: Vec<u32> = started
            .map(|block| &plan.blocks[block as usize])
            .filter(|block| block.level == level)
            .map(|block| block.round)
            .collect();
        rounds.dedup();
        let begun = rounds.last().map_or(0, |last| last + 1);
        let of_level = plan.blocks.iter().filter(|block| block.level == level);
        let expected = of_level
            .take(begun as usize)
            .filter(|block| rounds.contains(&block.round) || !lost.contains(&block.id));
        expected.map(|block| block.round).eq(rounds.iter().copied())
    });
    let contenders_follow = record.slices.iter().all(|row| {
        let contender = plan.blocks[row.block as usize].order[row.position as usize];
        row.contender == plan.contenders[contender].name
    });
    rounds_follow && contenders_follow
}
