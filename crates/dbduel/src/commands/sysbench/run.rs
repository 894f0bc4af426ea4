//! Runs that go through a gate: machine tests and native workloads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_load::bridge::gate::{Gate, Queue};
use dbduel_load::bridge::ledger::{Ledger, Share, Stretch};
use dbduel_load::bridge::{sql, threads};
use dbduel_load::machine::Machine;

use super::Stop;
use super::course::{self, Load};
use super::general::General;
use super::page::{self, Style};

/// The exit code of clients that did not get ready in time.
const TIMED_OUT: u8 = 2;

/// Runs a machine test; returns the exit code.
///
/// # Errors
/// Why it failed.
pub fn machine(
    general: &General,
    style: Style,
    about: &str,
    make: impl FnOnce() -> Result<Arc<dyn Machine>, Stop>,
) -> Result<u8, Stop> {
    announce(general);
    if !about.is_empty() {
        general.voice.notice(about);
    }
    let test = make()?;
    general.voice.notice("Initializing worker threads...\n");
    let mut load = GateLoad::new(general, style, general.threads);
    let (workers, stack) = (general.threads, general.stack_bytes);
    threads::start(&test, workers, stack, &load.gate, &load.ledger)
        .map_err(|error| Stop::Fatal(format!("cannot start {workers} worker threads: {error}")))?;
    load.drive(general)
}

/// Runs a native workload on so many threads; returns the exit code.
///
/// # Errors
/// Why it failed.
pub fn sql(
    general: &General,
    clients: sql::SqlRun,
    thread_count: u32,
    is_dry: bool,
) -> Result<u8, Stop> {
    announce(general);
    general.voice.notice("Initializing worker threads...\n");
    let mut load = GateLoad::new(general, Style::Sql, thread_count);
    load.is_dry = is_dry;
    let threads = sql::start(clients, thread_count, &load.gate, &load.ledger).map_err(|error| {
        Stop::Fatal(format!("cannot start {thread_count} load threads: {error}"))
    })?;
    load.threads = Some(threads);
    load.drive(general)
}

/// What was asked for.
pub fn announce(general: &General) {
    let text = page::options(general);
    general
        .voice
        .notice(text.strip_suffix('\n').unwrap_or(&text));
}

/// A load behind a gate.
struct GateLoad {
    gate: Arc<Gate>,
    ledger: Arc<Ledger>,
    threads: Option<sql::Threads>,
    queue: Option<Queue>,
    style: Style,
    /// Nothing reached a server, so nothing was read or written.
    is_dry: bool,
}

impl GateLoad {
    fn new(general: &General, style: Style, threads: u32) -> Self {
        GateLoad {
            gate: Arc::new(Gate::new(general.limits, general.threads)),
            ledger: Arc::new(Ledger::new(general.threads, threads)),
            threads: None,
            queue: Queue::new(&general.limits),
            style,
            is_dry: false,
        }
    }

    /// Waits until everyone is ready, and follows the run.
    fn drive(&mut self, general: &General) -> Result<u8, Stop> {
        let deadline = Instant::now() + general.init_timeout;
        if !self.gate.wait_until_ready(general.threads, deadline) {
            if let Some(why) = self.gate.failure() {
                general.voice.fatal(&why);
                return Err(Stop::Fatal("Thread initialization failed!".to_owned()));
            }
            let seconds = general.init_timeout.as_secs();
            general.voice.fatal(&format!(
                "Worker threads failed to initialize within {seconds} seconds!"
            ));
            return Ok(TIMED_OUT);
        }
        course::run(general, self)
    }

    fn ring(&self) {
        if let Some(threads) = &self.threads {
            threads.ring();
        }
    }
}

impl Load for GateLoad {
    fn begin(&mut self) {
        self.gate.open();
        self.ring();
    }

    fn wait(&mut self, until: Instant) -> bool {
        self.gate.wait_until_finished(until).is_some() || self.gate.failure().is_some()
    }

    fn stop(&mut self) {
        self.gate.close();
        self.ring();
    }

    fn failure(&mut self) -> Option<String> {
        self.gate.failure()
    }

    fn take(&mut self, fresh: &mut Stretch) {
        self.ledger.take(fresh);
        if self.is_dry {
            let counts = &mut fresh.counts;
            counts.others += std::mem::take(&mut counts.reads) + std::mem::take(&mut counts.writes);
        }
    }

    fn shares(&mut self) -> Vec<Share> {
        self.ledger.shares()
    }

    fn reset_shares(&mut self) {
        self.ledger.reset_shares();
    }

    fn running(&mut self) -> u32 {
        self.gate.running()
    }

    fn queue(&mut self, elapsed: Duration) -> (u64, u32) {
        let waiting = match &mut self.queue {
            Some(queue) => queue.length(elapsed, &self.gate),
            None => 0,
        };
        (waiting, self.gate.busy())
    }

    fn style(&self) -> Style {
        self.style
    }
}
