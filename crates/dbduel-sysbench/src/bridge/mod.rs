//! Carries the workers of a run: threads for the tests of the machine, event loops for clients of workloads and of
//! scripts.
//!
//! ```text
//! run (who may begin, what was counted)
//!   ├── threads ────────────────► machine
//!   └── load threads ─┬ workload ► worker ► driver
//!                     └ script ──► lua ───► driver
//! ```
//!
//! The clocks, the statements and the event loop are those of contests. Prints nothing and does not depend on options.

pub mod bulk_insert;
pub mod script;
pub mod threads;
pub mod workload;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dbduel_driver::executor::policy::{raise_open_files_limit, suit_clients};
use dbduel_driver::executor::{Bell, Executor, Token, thread};

use dbduel_client::run::Gate;

/// A handle of the threads of a run.
pub struct LoadThreads {
    bells: Vec<Bell>,
}

impl LoadThreads {
    /// Makes every client check the gate.
    pub fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}

/// Starts `threads` threads, client n on thread n modulo `threads`. `on_thread` is called on each thread and returns
/// the function that makes a task of a client's number. Ring after opening or closing the gate. The threads end with
/// the run and are not joined, because a statement has no time limit.
///
/// # Errors
/// When a thread or an event loop cannot be created.
fn start_threads<T: 'static, S: FnMut(u32, &mut Executor<T>) -> Token>(
    clients: u32,
    threads: u32,
    gate: &Arc<Gate>,
    on_thread: impl Fn() -> S + Clone + Send + 'static,
) -> io::Result<LoadThreads> {
    let threads = threads.clamp(1, clients.max(1));
    // With the old limit fewer clients can connect, and the run fails when one cannot.
    let _ = raise_open_files_limit();
    let mut bells = Vec::new();
    for thread in 0..threads {
        let (on_thread, gate) = (on_thread.clone(), Arc::clone(gate));
        let (bell, _) = thread::start(thread as usize, Duration::ZERO, move |event_loop| {
            let numbers = (thread..clients).step_by(threads as usize);
            let mut running = numbers.len();
            let ended = event_loop.run(|mut executor| {
                let mut start_client = on_thread();
                let start = |number| start_client(number, &mut executor);
                let tokens: Vec<Token> = numbers.map(start).collect();
                carry(executor, &tokens, &gate, &mut running)
            });
            if let Err(error) = ended {
                gate.fail(format!("the event loop failed: {error}"));
            }
            for _ in 0..running {
                gate.finish();
            }
        })?;
        bells.push(bell);
    }
    Ok(LoadThreads { bells })
}

/// Runs clients until none of those `running` has more to do, or the run has failed.
fn carry<T>(
    mut executor: Executor<T>,
    tokens: &[Token],
    gate: &Gate,
    running: &mut usize,
) -> io::Result<()> {
    // Without the policy the load still runs, only dearer.
    let _ = suit_clients(u32::try_from(tokens.len()).unwrap_or(u32::MAX));
    let mut ended = Vec::new();
    executor.poll_all(tokens, &mut ended);
    loop {
        while ended.pop().is_some() {
            *running -= 1;
            gate.finish();
        }
        if *running == 0 || gate.has_failed() {
            return Ok(());
        }
        if executor.turn(&mut ended)?.rung {
            executor.poll_all(tokens, &mut ended);
        }
    }
}
