//! Starts the workers of a run and follows it: machine tests, native workloads and scripts.

use std::sync::Arc;
use std::time::Instant;

use dbduel_driver::address::Address;
use dbduel_driver::executor::policy::threads_among_others;
use dbduel_lua::ScriptClients;
use dbduel_machine::host;

use crate::bridge::workload::{self, WorkloadRun};
use crate::bridge::{script, threads};
use crate::machine::Machine;

use super::Stop;
use super::general::General;
use super::load::Load;
use super::page::{self, Style};
use super::run_loop::{self, Reports};

/// Exit code when the clients were not ready in time.
const TIMED_OUT: u8 = 2;

/// Runs a machine test; returns the exit code.
///
/// # Errors
/// Why it failed.
pub fn machine(
    general: &General,
    mut style: Style,
    about: &str,
    make: impl FnOnce() -> Result<Arc<dyn Machine>, Stop>,
) -> Result<u8, Stop> {
    announce(general);
    if !about.is_empty() {
        general.voice.notice(about);
    }
    let test = make()?;
    general.voice.notice("Initializing worker threads...\n");
    let mut load = Load::new(general, general.threads);
    let (workers, stack) = (general.threads, general.stack_bytes);
    threads::start(&test, workers, stack, &load.gate, &load.metrics)
        .map_err(|error| Stop::Fatal(format!("cannot start {workers} worker threads: {error}")))?;
    follow(general, &mut load, &mut style)
}

/// Runs a native workload; returns the exit code.
///
/// # Errors
/// Why it failed.
pub fn workload(general: &General, clients: WorkloadRun, is_dry: bool) -> Result<u8, Stop> {
    announce(general);
    general.voice.notice("Initializing worker threads...\n");
    let are_here = clients.addresses.iter().all(Address::is_on_this_machine);
    // At a rate they wait for their turn.
    let busy_clients = match general.limits.per_second {
        None if are_here => general.threads,
        _ => 0,
    };
    let thread_count = load_threads(general, busy_clients);
    let mut load = Load::new(general, thread_count);
    load.is_dry = is_dry;
    let threads = workload::start(clients, thread_count, &load.gate, &load.metrics)
        .map_err(|error| no_threads(thread_count, &error))?;
    load.threads = Some(threads);
    follow(general, &mut load, &mut Style::Sql)
}

/// Runs the clients of a script, after [`announce`]; returns the exit code.
///
/// # Errors
/// Why it failed.
pub fn script(
    general: &General,
    clients: ScriptClients,
    reports: &mut dyn Reports,
) -> Result<u8, Stop> {
    // What a script computes may be all that it does, and then all processors are its own.
    let thread_count = load_threads(general, 0);
    let mut load = Load::new(general, thread_count);
    let (gate, metrics) = (&load.gate, &load.metrics);
    reports.belong_to(gate);
    let threads = script::start(clients, general.threads, thread_count, gate, metrics)
        .map_err(|error| no_threads(thread_count, &error))?;
    load.threads = Some(threads);
    follow(general, &mut load, reports)
}

/// Prints the options of the run.
pub fn announce(general: &General) {
    let text = page::options(general);
    general
        .voice
        .notice(text.strip_suffix('\n').unwrap_or(&text));
}

/// Number of load threads for the clients.
fn load_threads(general: &General, busy_clients: u32) -> u32 {
    threads_among_others(host::cpus(), general.threads, busy_clients).clamp(1, general.threads)
}

fn no_threads(count: u32, error: &std::io::Error) -> Stop {
    Stop::Fatal(format!("cannot start {count} load threads: {error}"))
}

/// Waits until all clients are ready, then follows the run.
fn follow(general: &General, load: &mut Load, reports: &mut dyn Reports) -> Result<u8, Stop> {
    let deadline = Instant::now() + general.init_timeout;
    if !load.gate.wait_until_ready(general.threads, deadline) {
        if let Some(why) = load.gate.failure() {
            general.voice.fatal(&why);
            return Err(Stop::Fatal("Thread initialization failed!".to_owned()));
        }
        let seconds = general.init_timeout.as_secs();
        general.voice.fatal(&format!(
            "Worker threads failed to initialize within {seconds} seconds!"
        ));
        return Ok(TIMED_OUT);
    }
    run_loop::run(general, load, reports)
}
