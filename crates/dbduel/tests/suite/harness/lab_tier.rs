//! The lab tier: each test alone, as often as is asked for, with its rate of passes at the end.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{Run, Tier, programs, servers};

/// A statistical test fails when chance alone would give as many failures less often than this.
const CHANCE_MIN: f64 = 0.01;

/// The seed of the run under way.
static SEED: AtomicU64 = AtomicU64::new(1);

/// From which a test draws: 1 in the gate, another in each run of the lab tier.
pub fn seed() -> u64 {
    SEED.load(Ordering::Relaxed)
}

#[derive(clap::Args)]
pub struct LabOptions {
    /// How often each test of the lab tier runs.
    #[arg(long, default_value_t = 1, requires = "lab")]
    repeats: u32,
    /// The seed of the first repetition; those after it count up. Drawn from the clock when it is not given.
    #[arg(long, requires = "lab")]
    seed: Option<u64>,
    /// Run the tests that last minutes on purpose, and no others.
    #[arg(long, requires = "lab")]
    soak: bool,
}

impl LabOptions {
    /// Whose tests are asked for.
    pub fn tier(&self) -> Tier {
        match self.soak {
            true => Tier::Soak,
            false => Tier::Lab,
        }
    }
}

/// How a run of a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RunOutcome {
    Passed,
    Failed,
    Ignored(String),
}

impl RunOutcome {
    fn word(&self) -> &'static str {
        match self {
            RunOutcome::Passed => "passed",
            RunOutcome::Failed => "failed",
            RunOutcome::Ignored(_) => "ignored",
        }
    }
}

/// Runs of one test.
#[derive(Default)]
struct Rate {
    runs: u32,
    failed: u32,
    ignored: Option<String>,
    seconds: f64,
}

/// Prints the names of the tests, as the compiler's harness does.
pub fn list(runs: &[Run]) -> ExitCode {
    for run in runs {
        println!("{}: test", run.name);
    }
    ExitCode::SUCCESS
}

/// Runs the tests, appends a line for each run to `target/lab/runs.jsonl`, and prints the rates.
pub fn run(options: &LabOptions, runs: &[Run]) -> ExitCode {
    servers::fetch(runs.iter().flat_map(Run::servers));
    let log = log_file();
    let mut log = match OpenOptions::new().create(true).append(true).open(&log) {
        Ok(file) => file,
        Err(why) => panic!("{}: {why}", log.display()),
    };
    let first = options.seed.unwrap_or_else(seconds_since_epoch);
    let commit = commit();
    let mut rates: Vec<Rate> = runs.iter().map(|_| Rate::default()).collect();
    for repeat in 0..u64::from(options.repeats) {
        SEED.store(first + repeat, Ordering::Relaxed);
        for (run, rate) in runs.iter().zip(&mut rates) {
            once(run, rate, &commit, &mut log);
        }
    }
    let code = print_rates(runs, &rates);
    programs::print_missing();
    servers::print_failures();
    code
}

fn once(run: &Run, rate: &mut Rate, commit: &str, log: &mut File) {
    println!("{} (seed {})", run.name, seed());
    let (began, ticks) = (Instant::now(), steal_and_all());
    let outcome = match catch_unwind(AssertUnwindSafe(|| run.perform())) {
        Ok(Ok(())) => RunOutcome::Passed,
        Ok(Err(why)) => RunOutcome::Ignored(why),
        Err(_) => RunOutcome::Failed,
    };
    let seconds = began.elapsed().as_secs_f64();
    let after = steal_and_all();
    let steal = (after.0 - ticks.0) as f64 / (after.1 - ticks.1).max(1) as f64;
    println!("{} {}: {seconds:.1} s\n", run.name, outcome.word());
    let line = json!({
        "at": seconds_since_epoch(), "test": run.name, "seed": seed(), "commit": commit, "seconds": seconds,
        "outcome": outcome.word(), "load": load(), "steal": steal,
    });
    writeln!(log, "{line}").expect("the file of runs can be written");
    rate.seconds += seconds;
    match outcome {
        RunOutcome::Ignored(why) => rate.ignored = Some(why),
        outcome => {
            rate.runs += 1;
            rate.failed += u32::from(outcome == RunOutcome::Failed);
        }
    }
}

/// The table of rates; fails when a test does.
fn print_rates(runs: &[Run], rates: &[Rate]) -> ExitCode {
    println!("  runs  passes  seconds  test");
    let (mut failed, mut passed, mut ignored) = (0, 0, 0);
    for (run, rate) in runs.iter().zip(rates) {
        let chance = chance_of(rate.failed, rate.runs, run.case.may_fail);
        let is_wrong = rate.failed > 0 && chance < CHANCE_MIN;
        let passes = rate.runs - rate.failed;
        let mut note = String::new();
        match &rate.ignored {
            _ if is_wrong => {
                failed += 1;
                note = "  FAILED".to_owned();
            }
            Some(why) if rate.runs == 0 => {
                ignored += 1;
                note = format!("  ignored: {why}");
            }
            _ => passed += 1,
        }
        if rate.failed > 0 && run.case.may_fail > 0.0 {
            let (share, chance) = (run.case.may_fail * 100.0, chance * 100.0);
            note += &format!("  (may fail in {share} % of runs: chance {chance:.1} %)");
        }
        println!(
            "{:>6}  {passes:>6}  {:>7.1}  {}{note}",
            rate.runs, rate.seconds, run.name
        );
    }
    let seconds: f64 = rates.iter().map(|rate| rate.seconds).sum();
    println!("\n{passed} passed, {failed} failed, {ignored} ignored in {seconds:.0} s");
    ExitCode::from(u8::from(failed > 0))
}

/// The chance of at least `failed` failures in `runs` runs that fail with probability `p` each (binomial).
fn chance_of(failed: u32, runs: u32, p: f64) -> f64 {
    let mut term = (1.0 - p).powf(f64::from(runs));
    let mut below = 0.0;
    for k in 0..failed {
        below += term;
        term *= f64::from(runs - k) / f64::from(k + 1) * p / (1.0 - p);
    }
    1.0 - below
}

fn log_file() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("lab");
    fs::create_dir_all(&folder).expect("a folder beside the build's");
    folder.join("runs.jsonl")
}

fn seconds_since_epoch() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// The commit that was built, with a `+` where files differ from it; empty without git.
fn commit() -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=8", "HEAD"]).unwrap_or_default();
    let is_changed = git(&["status", "--porcelain"]).is_some_and(|text| !text.is_empty());
    head + if is_changed { "+" } else { "" }
}

/// Processes that want a processor, as a mean of the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0.0)
}

/// Time that the machine below took from this one, and all time, in ticks.
fn steal_and_all() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let words = first.split_ascii_whitespace().skip(1);
    let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
    (ticks.get(7).copied().unwrap_or(0), ticks.iter().sum())
}

#[test]
fn chances_are_binomial() {
    assert!((chance_of(0, 5, 0.1) - 1.0).abs() < 1e-12);
    assert!((chance_of(1, 1, 0.05) - 0.05).abs() < 1e-12);
    // 1 − 0.95^20 − 20 · 0.05 · 0.95^19
    assert!((chance_of(2, 20, 0.05) - 0.264_160).abs() < 1e-5);
    assert_eq!(chance_of(1, 3, 0.0), 0.0);
}
