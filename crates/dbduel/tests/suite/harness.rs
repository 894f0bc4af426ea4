//! Runs the tests of this program. The compiler's own harness decides before a test runs whether it is ignored; whether a
//! server can be fetched is known only then.

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Conclusion, Trial};

use super::finished;
use super::lab::are_there;
use super::on_postgresql::cluster;
use super::on_server::server::{self, Server};

thread_local! {
    /// Why the test that runs on this thread could not run.
    static SKIPPED: RefCell<Option<String>> = const { RefCell::new(None) };
}

thread_local! {
    /// When the test that runs on this thread began, or had its turn.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How long tests took, and their names.
static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Tests that take longer are listed at the end.
const LONG: Duration = Duration::from_secs(10);

/// A function with `#[test]`.
pub struct Case {
    pub module: &'static str,
    pub name: &'static str,
    /// Why it runs only when it is asked for.
    pub ignored: Option<&'static str>,
    pub body: Body,
}

pub enum Body {
    /// Brings what it needs.
    Alone(fn()),
    /// Is a test of its own on each of these servers, which it shares with others.
    OnServers(&'static [&'static str], fn(&Server)),
}

inventory::collect!(Case);

/// Registers a function: `#[test]`, `#[test(ignore = "why")]`, or `#[test(on = SERVERS)]` with the server as its parameter.
macro_rules! case {
    ($name:ident) => {
        crate::suite::harness::case!(@ $name, None, Alone($name));
    };
    (ignore = $why:literal; $name:ident) => {
        crate::suite::harness::case!(@ $name, Some($why), Alone($name));
    };
    (on = $servers:expr; $name:ident) => {
        crate::suite::harness::case!(@ $name, None, OnServers($servers, $name));
    };
    (@ $name:ident, $ignored:expr, $($body:tt)*) => {
        inventory::submit!(crate::suite::harness::Case {
            module: module_path!(),
            name: stringify!($name),
            ignored: $ignored,
            body: crate::suite::harness::Body::$($body)*,
        });
    };
}
pub(crate) use case;

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

/// Tests at a time. More than processors: most wait for their turn, or for a contest.
const THREADS: usize = 6;

/// Runs what the command line asks for, lists what took long, and stops the servers that the tests shared.
pub fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let conclusion: Conclusion = libtest_mimic::run(&arguments, trials_in_order());
    server::stop_all();
    cluster::stop();
    finished::remove_all();
    print_long();
    conclusion.exit_code()
}

fn note_time(name: String) {
    let took = BEGAN.take().map_or(Duration::ZERO, |began| began.elapsed());
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.push((took, name));
}

fn print_long() {
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.sort_unstable();
    for (took, name) in times.iter().rev().take_while(|(took, _)| *took > LONG) {
        println!("{:>6.1} s  {name}", took.as_secs_f64());
    }
}

/// Contests, of which there is one at a time, between tests on shared servers, so that none waits for all of the others.
fn trials_in_order() -> Vec<Trial> {
    let cases = inventory::iter::<Case>.into_iter();
    let (on_servers, alone): (Vec<&Case>, Vec<&Case>) =
        cases.partition(|case| matches!(case.body, Body::OnServers(..)));
    let mut alone = alone.into_iter().flat_map(trials);
    let mut on_servers = on_servers.into_iter().flat_map(trials);
    let mut ordered = Vec::new();
    loop {
        let pair = [alone.next(), on_servers.next()];
        if pair.iter().all(Option::is_none) {
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

fn trials(case: &'static Case) -> Vec<Trial> {
    let module = case.module.split_once("::").map_or("", |(_, rest)| rest);
    let name = format!("{module}::{}", case.name);
    let trial = |name: String, body: Box<dyn Fn() + Send>| {
        let timed = name.clone();
        let run = move || {
            restart_clock();
            body();
            note_time(timed);
            Ok(match SKIPPED.take() {
                Some(why) => Completion::ignored_with(why),
                None => Completion::Completed,
            })
        };
        Trial::ignorable_test(name, run).with_ignored_flag(case.ignored.is_some())
    };
    match case.body {
        Body::Alone(body) => vec![trial(name, Box::new(body))],
        Body::OnServers(servers, body) => servers
            .iter()
            .map(|server| {
                let name = format!("{name}::{server}");
                let on_server = move || {
                    if are_there(case.name, &[server]) {
                        let server = server::running(server);
                        let _turn = server.turn();
                        restart_clock();
                        body(&server);
                    }
                };
                trial(name, Box::new(on_server))
            })
            .collect(),
    }
}
