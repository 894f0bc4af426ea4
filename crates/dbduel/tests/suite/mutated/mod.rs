//! Damaged files of every kind that other people may have made: no command that reads them panics, hangs or takes memory
//! without bound, whatever is in them.
//!
//! Every input follows from a number, its seed. A test tries a fixed number of inputs from a fixed seed on;
//! `DBDUEL_FUZZ_SECONDS=60` makes it try new ones for so long, and `DBDUEL_FUZZ_SEED=N` begin with the one that a failure named.
//! Inputs that failed once are kept below `tests/data/mutated/kept/` and tried first.

mod experiments;
mod options;
mod records;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Resource, setrlimit};

use super::hostile::output_of;
use super::lab::program;

/// Processor time of one command, which is not longer on a busy machine.
const CPU_S_MAX: u64 = 10;
/// Address space of one command, bytes.
const MEMORY_MAX: u64 = 1 << 30;
/// The first seed where none is given and the number of inputs is fixed.
const FIRST_SEED: u64 = 1;
/// Different failures after which a test gives up.
const FAILURES_MAX: usize = 8;
/// What the program may end with when it is not interrupted; see its exit codes.
const CODES: std::ops::RangeInclusive<i32> = 0..=5;

/// One kind of input.
struct Target {
    /// The test, and the folder of its kept inputs.
    name: &'static str,
    /// Inputs that are tried where no time is given.
    count: u64,
    /// Makes the input of a seed in an empty folder.
    make: fn(u64, &Path),
    /// The commands that read what is in the folder. The seed chooses among several.
    commands: fn(u64, &Path) -> Vec<Command>,
}

/// The folder of the inputs that come with the project.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mutated")
}

/// The number in a variable of the environment, none when it is not set.
pub fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// A command of the program that can take neither time nor memory without bound.
pub fn bounded(words: &[&str], folder: &Path) -> Command {
    let limit = || {
        setrlimit(Resource::RLIMIT_CPU, CPU_S_MAX, CPU_S_MAX)?;
        setrlimit(Resource::RLIMIT_AS, MEMORY_MAX, MEMORY_MAX)?;
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        Ok(())
    };
    let mut command = program();
    // SAFETY: between fork and exec it calls setrlimit alone, which is async-signal-safe.
    unsafe { command.pre_exec(limit) };
    command.args(words).current_dir(folder);
    command
}

impl Target {
    /// Tries the kept inputs, then those of as many seeds as are asked for.
    fn try_all(&self) {
        let mut failures = BTreeMap::new();
        for kept in kept(self.name) {
            let folder = tempfile::tempdir().unwrap();
            copy(&corpus().join(self.base()), folder.path());
            copy(&kept, folder.path());
            // All commands that any seed would choose.
            for seed in 0..4 {
                self.check(
                    seed,
                    folder.path(),
                    &kept.display().to_string(),
                    &mut failures,
                );
            }
        }
        let seconds = number_of("DBDUEL_FUZZ_SECONDS");
        let new = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap()
                .as_secs()
                << 20
        };
        let first = number_of("DBDUEL_FUZZ_SEED");
        let first = first.unwrap_or_else(|| seconds.map_or(FIRST_SEED, |_| new()));
        let began = Instant::now();
        let is_over = |tried| match seconds {
            Some(seconds) => began.elapsed() >= Duration::from_secs(seconds),
            None => tried >= self.count,
        };
        let mut tried = 0;
        while !is_over(tried) && failures.len() < FAILURES_MAX {
            let seed = first + tried;
            let folder = tempfile::tempdir().unwrap();
            (self.make)(seed, folder.path());
            let about = format!(
                "seed {seed} (again: DBDUEL_FUZZ_SEED={seed} cargo test -p dbduel --test main -- mutated::{})",
                self.name
            );
            if self.check(seed, folder.path(), &about, &mut failures) {
                let folder = folder.keep();
                println!("the input of seed {seed} is in {}", folder.display());
            }
            tried += 1;
        }
        println!("{}: {tried} inputs from seed {first}", self.name);
        let texts: Vec<String> = failures.into_values().collect();
        assert!(texts.is_empty(), "{}", texts.join("\n\n"));
    }

    /// Where the files are that kept inputs replace some of.
    fn base(&self) -> &'static str {
        match self.name {
            "records" | "manifests" => "record",
            _ => "none",
        }
    }

    /// Runs the commands on what is in the folder. True when one failed in a way that none did before.
    fn check(
        &self,
        seed: u64,
        folder: &Path,
        about: &str,
        failures: &mut BTreeMap<String, String>,
    ) -> bool {
        let before = failures.len();
        for mut command in (self.commands)(seed, folder) {
            let output = output_of(&mut command);
            let Some(why) = failure(output.as_ref()) else {
                continue;
            };
            let said = output.map_or_else(String::new, |output| said(&output));
            let text = format!("{about}:\n{command:?}\n{why}\n{said}");
            failures.entry(why).or_insert(text);
        }
        failures.len() > before
    }
}

fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    said.chars().take(2000).collect()
}

/// What is wrong with how a command ended; the same for one cause.
fn failure(output: Option<&Output>) -> Option<String> {
    let Some(output) = output else {
        return Some("it did not end".to_owned());
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(at) = said.find("panicked at ") {
        let place = said[at..].lines().next().unwrap_or_default();
        return Some(place.to_owned());
    }
    if let Some(signal) = output.status.signal() {
        let last = said.lines().last().unwrap_or_default();
        return Some(format!("signal {signal}: {last}"));
    }
    let code = output.status.code().unwrap_or_default();
    (!CODES.contains(&code)).then(|| format!("exit code {code}"))
}

/// The kept inputs of a target: a folder for each.
fn kept(name: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(corpus().join("kept").join(name)) else {
        return Vec::new();
    };
    let mut kept: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    kept
}

/// Every file below a folder, by its path there, sorted.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).unwrap();
                found.push(below.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Copies the files below one folder into another, replacing those of the same names.
fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        fs::create_dir_all(to.join(&file).parent().unwrap()).unwrap();
        fs::copy(from.join(&file), to.join(&file)).unwrap();
    }
}

#[test]
fn a_command_that_fails_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let of = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        failure(output_of(&mut command).as_ref())
    };
    assert_eq!(of("exit 3"), None);
    assert_eq!(of("exit 101").as_deref(), Some("exit code 101"));
    let panicked = of("echo \"thread 'main' panicked at src/x.rs:1:2:\" >&2; exit 1");
    assert_eq!(panicked.as_deref(), Some("panicked at src/x.rs:1:2:"));
    assert_eq!(of("kill -6 $$").as_deref(), Some("signal 6: "));
    // The bounds hold in what is started.
    let mut command = bounded(&["--version"], folder.path());
    assert_eq!(failure(output_of(&mut command).as_ref()), None);
}
