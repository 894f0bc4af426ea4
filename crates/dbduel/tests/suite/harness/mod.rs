//! Runs the tests of this program, in two tiers.
//!
//! The gate tier is what `cargo test` runs. Its tests assert exit codes, invariants and bytes, which a busy machine does not
//! change. The lab tier (`just lab`) has those that need real time or statistics; they run alone and may be repeated. Those
//! whose purpose is their duration are a part of it that is asked for by itself (`just soak`).
//!
//! The compiler's own harness decides before a test runs whether it is ignored; whether a server can be fetched is known
//! only then.

mod lab_tier;
mod programs;
mod servers;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser as _;
use libtest_mimic::{Arguments, Completion, Conclusion, Trial};

use super::finished;
use super::on_postgresql::cluster;
use super::on_server::server::{self, Server};

pub use lab_tier::seed;

thread_local! {
    /// Why the test that runs on this thread could not run.
    static SKIPPED: RefCell<Option<String>> = const { RefCell::new(None) };
    /// When the test that runs on this thread began, or had its turn.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// One contest at a time: they would disturb each other, and the machine may be small.
static TURN: Mutex<()> = Mutex::new(());

/// How long tests took, and their names.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Why tests were ignored, and how many.
static IGNORED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Tests that take longer are listed at the end.
const LONG: Duration = Duration::from_secs(5);

/// Tests at a time in the gate. More than processors: most wait for a server or for their turn.
const THREADS: usize = 6;

/// When a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// With every `cargo test`.
    Gate,
    /// On request, alone, with `--lab`.
    Lab,
    /// As `Lab`, with `--lab --soak`: tests that last minutes because that is what they test.
    Soak,
    /// Never by itself: another test starts it as a process, by its exact name.
    Helper,
}

/// A function with `#[test]`.
pub struct Case {
    module: &'static str,
    name: &'static str,
    tier: Tier,
    /// Servers that must be in the home.
    needs: &'static [&'static str],
    /// Runs a contest, for which it takes the turn.
    is_contest: bool,
    /// The share of runs in which a statistical test may fail although nothing is wrong; 0 of an invariant.
    may_fail: f64,
    body: Body,
}

enum Body {
    /// Brings what it needs.
    Alone(fn()),
    /// Is a test of its own on each of these servers, which it shares with others.
    OnServers(&'static [&'static str], fn(&Server)),
}

inventory::collect!(Case);

impl Case {
    pub const fn alone(module: &'static str, name: &'static str, body: fn()) -> Self {
        Self::new(module, name, Body::Alone(body))
    }

    pub const fn on_servers(
        module: &'static str,
        name: &'static str,
        servers: &'static [&'static str],
        body: fn(&Server),
    ) -> Self {
        Self::new(module, name, Body::OnServers(servers, body))
    }

    const fn new(module: &'static str, name: &'static str, body: Body) -> Self {
        Case {
            module,
            name,
            tier: Tier::Gate,
            needs: &[],
            is_contest: false,
            may_fail: 0.0,
            body,
        }
    }

    pub const fn lab(self) -> Self {
        Case {
            tier: Tier::Lab,
            ..self
        }
    }

    pub const fn soak(self) -> Self {
        Case {
            tier: Tier::Soak,
            ..self
        }
    }

    pub const fn helper(self) -> Self {
        Case {
            tier: Tier::Helper,
            ..self
        }
    }

    pub const fn needs(self, servers: &'static [&'static str]) -> Self {
        Case {
            needs: servers,
            is_contest: true,
            ..self
        }
    }

    pub const fn contest(self) -> Self {
        Case {
            is_contest: true,
            ..self
        }
    }

    pub const fn may_fail(self, share: f64) -> Self {
        Case {
            may_fail: share,
            ..self
        }
    }

    /// Its tests: one, or one on each of its servers.
    fn runs(&'static self) -> Vec<Run> {
        let module = self.module.split_once("::").map_or("", |(_, rest)| rest);
        let name = format!("{module}::{}", self.name);
        match self.body {
            Body::Alone(_) => vec![Run {
                case: self,
                name,
                server: None,
            }],
            Body::OnServers(servers, _) => servers
                .iter()
                .map(|server| Run {
                    case: self,
                    name: format!("{name}::{server}"),
                    server: Some(server),
                })
                .collect(),
        }
    }
}

/// Registers a function: `#[test]`, or `#[test(…)]` with options between commas:
///
/// * `on = SERVERS`, first: a test on each of these shared servers, which is the function's parameter;
/// * `needs = SERVERS`: these must be in the home, and contests run with them;
/// * `contest`: contests run without a fetched server;
/// * `lab`: of the lab tier;
/// * `soak`: of its part that lasts minutes on purpose;
/// * `may_fail = 0.05`: of the lab tier, fails by chance in at most this share of its runs;
/// * `helper`: a process of another test.
macro_rules! case {
    (on = $servers:expr $(, $option:ident $(= $value:expr)?)*; $name:ident) => {
        inventory::submit!(
            crate::suite::harness::Case::on_servers(module_path!(), stringify!($name), $servers, $name)
                $(.$option($($value)?))*
        );
    };
    ($($option:ident $(= $value:expr)?),*; $name:ident) => {
        inventory::submit!(
            crate::suite::harness::Case::alone(module_path!(), stringify!($name), $name)
                $(.$option($($value)?))*
        );
    };
}
pub(crate) use case;

/// One test: a function, or a function on one of its servers.
struct Run {
    case: &'static Case,
    name: String,
    server: Option<&'static str>,
}

impl Run {
    /// The servers that it cannot do without.
    fn servers(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.case.needs.iter().copied().chain(self.server)
    }

    /// Runs it, with what it takes turns for; why it did not, where something is missing.
    ///
    /// # Panics
    /// When it fails.
    fn perform(&self) -> Result<(), String> {
        if let Err(why) = servers::presence(self.servers()) {
            skip(&why);
            return SKIPPED.take().map_or(Ok(()), Err);
        }
        SKIPPED.set(None);
        let _turn = self.case.is_contest.then(turn);
        match self.case.body {
            Body::Alone(body) => {
                restart_clock();
                body();
            }
            Body::OnServers(_, body) => {
                let server = server::running(self.server.expect("the server of this test"));
                let _turn = server.turn();
                restart_clock();
                body(&server);
            }
        }
        note_time(self.name.clone());
        SKIPPED.take().map_or(Ok(()), Err)
    }
}

/// Counts the test that runs on this thread as ignored, for this reason; with `DBDUEL_TEST_REQUIRE_SERVERS` in the
/// environment, as it is in the gate, it fails instead.
#[track_caller]
pub fn skip(why: &str) {
    let is_required = std::env::var_os("DBDUEL_TEST_REQUIRE_SERVERS").is_some();
    assert!(!is_required, "not run: {why}");
    skip_always(why);
}

/// As [`skip`], in the gate as well.
pub fn skip_always(why: &str) {
    SKIPPED.set(Some(why.to_owned()));
}

/// Leaves the time until now, which the test waited for others, out of its time.
pub fn restart_clock() {
    BEGAN.set(Some(Instant::now()));
}

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command line: that of the compiler's harness, and the lab tier.
#[derive(clap::Parser)]
struct Options {
    /// Run the tests of the lab tier, alone and one after the other.
    #[arg(long)]
    lab: bool,
    #[command(flatten)]
    lab_options: lab_tier::LabOptions,
    #[command(flatten)]
    libtest: Arguments,
}

/// Runs what the command line asks for, and stops the servers that the tests shared.
pub fn main() -> ExitCode {
    let mut options = Options::parse();
    let tier = options.lab_options.tier();
    let code = match options.lab {
        true if options.libtest.list => lab_tier::list(&runs_of(&options.libtest, tier)),
        true => lab_tier::run(&options.lab_options, &runs_of(&options.libtest, tier)),
        false => {
            options.libtest.test_threads.get_or_insert(THREADS);
            run_gate(&options.libtest)
        }
    };
    server::stop_all();
    cluster::stop();
    finished::remove_all();
    code
}

fn run_gate(arguments: &Arguments) -> ExitCode {
    let mut runs = in_order(runs_of(arguments, Tier::Gate));
    if arguments.exact {
        runs.extend(runs_of(arguments, Tier::Helper));
    }
    if !arguments.list {
        servers::fetch(runs.iter().flat_map(Run::servers));
    }
    let trials = runs.into_iter().map(|run| {
        Trial::ignorable_test(run.name.clone(), move || {
            Ok(match run.perform() {
                Err(why) => {
                    note_ignored(&why);
                    Completion::ignored_with(why)
                }
                Ok(()) => Completion::Completed,
            })
        })
    });
    let conclusion: Conclusion = libtest_mimic::run(arguments, trials.collect());
    if !arguments.list {
        print_long();
        print_ignored();
        programs::print_missing();
        servers::print_failures();
    }
    conclusion.exit_code()
}

/// The tests of a tier that the filters of the command line leave.
fn runs_of(arguments: &Arguments, tier: Tier) -> Vec<Run> {
    let matches = |name: &str, filter: &str| match arguments.exact {
        true => name == filter,
        false => name.contains(filter),
    };
    let is_asked_for = |name: &str| {
        let mut filters = arguments.filter.iter();
        filters.all(|filter| matches(name, filter))
            && !arguments.skip.iter().any(|filter| matches(name, filter))
    };
    let mut runs: Vec<Run> = inventory::iter::<Case>
        .into_iter()
        .filter(|case| case.tier == tier)
        .flat_map(Case::runs)
        .filter(|run| is_asked_for(&run.name))
        .collect();
    // The linker decides the order of the cases.
    runs.sort_by(|one, other| one.name.cmp(&other.name));
    runs
}

/// Contests, of which there is one at a time, between tests on shared servers, so that none waits for all of the others.
fn in_order(runs: Vec<Run>) -> Vec<Run> {
    let (on_servers, alone): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|run| run.server.is_some());
    let (mut alone, mut on_servers) = (alone.into_iter(), on_servers.into_iter());
    let mut ordered = Vec::new();
    loop {
        let pair = [alone.next(), on_servers.next()];
        if pair.iter().all(Option::is_none) {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

fn note_time(name: String) {
    let took = BEGAN.take().map_or(Duration::ZERO, |began| began.elapsed());
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.push((took, name));
}

fn note_ignored(why: &str) {
    let mut ignored = IGNORED.lock().unwrap_or_else(PoisonError::into_inner);
    *ignored.entry(why.to_owned()).or_default() += 1;
}

fn print_long() {
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.sort_unstable();
    for (took, name) in times.iter().rev().take_while(|(took, _)| *took > LONG) {
        println!("{:>6.1} s  {name}", took.as_secs_f64());
    }
}

fn print_ignored() {
    let ignored = IGNORED.lock().unwrap_or_else(PoisonError::into_inner);
    if !ignored.is_empty() {
        println!("\nIgnored on this machine:");
    }
    for (why, count) in &*ignored {
        let tests = if *count == 1 { "test" } else { "tests" };
        println!("  {count} {tests}: {why}");
    }
}
