//! The threads that carry the clients of a run, each with an event loop.
//!
//! Knows neither workloads nor scripts: [`Clients`] makes the tasks and says what the end of one means.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::executor::policy::{raise_open_files_limit, suit_clients};
use crate::executor::{Bell, Executor, Token, thread};
use crate::run::Gate;

/// The clients of one thread.
pub(super) trait Clients {
    /// What the task of a client ends with.
    type End;

    /// How many there are.
    fn count(&self) -> usize;

    /// Makes their tasks.
    fn start(&mut self, executor: &mut Executor<Self::End>) -> Vec<Token>;

    /// A task has ended: another one in its place, or none because the client has no more to do or the gate was told
    /// that the run has failed.
    fn ended(
        &mut self,
        token: Token,
        end: Self::End,
        executor: &mut Executor<Self::End>,
    ) -> Option<Token>;
}

/// The threads of a run, as others see them.
pub struct LoadThreads {
    bells: Vec<Bell>,
}

impl LoadThreads {
    /// Makes every client look whether the gate has changed.
    pub fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}

/// Starts so many threads, each with the clients that `make` makes of its number; ring after opening or closing the
/// gate. The threads end with the run; nobody joins them, because a statement may last as long as the server likes.
///
/// # Errors
/// When the system gives no thread or no event loop.
pub(super) fn start<C: Clients>(
    threads: u32,
    gate: &Arc<Gate>,
    make: impl Fn(u32) -> C + Clone + Send + 'static,
) -> io::Result<LoadThreads> {
    // With the old limit fewer clients can connect, and the run fails when one cannot.
    let _ = raise_open_files_limit();
    let mut bells = Vec::new();
    for number in 0..threads {
        let (make, gate) = (make.clone(), Arc::clone(gate));
        let (bell, _) = thread::start(number as usize, Duration::ZERO, move |event_loop| {
            let mut clients = make(number);
            let mut left = clients.count();
            let ended = event_loop.run(|executor| carry(executor, &mut clients, &gate, &mut left));
            if let Err(error) = ended {
                gate.fail(format!("the event loop broke: {error}"));
            }
            for _ in 0..left {
                gate.finish();
            }
        })?;
        bells.push(bell);
    }
    Ok(LoadThreads { bells })
}

/// Carries clients until none of those `left` has more to do, or the run has failed.
fn carry<C: Clients>(
    mut executor: Executor<C::End>,
    clients: &mut C,
    gate: &Gate,
    left: &mut usize,
) -> io::Result<()> {
    // Without the policy the load still runs, only dearer.
    let _ = suit_clients(u32::try_from(clients.count()).unwrap_or(u32::MAX));
    let mut ended = Vec::new();
    let mut tokens = clients.start(&mut executor);
    executor.poll_all(&tokens, &mut ended);
    loop {
        while let Some((token, end)) = ended.pop() {
            tokens.retain(|known| *known != token);
            match clients.ended(token, end, &mut executor) {
                Some(next) => {
                    tokens.push(next);
                    executor.poll_all(&[next], &mut ended);
                }
                None => {
                    *left -= 1;
                    gate.finish();
                }
            }
        }
        if *left == 0 || gate.has_failed() {
            return Ok(());
        }
        if executor.turn(&mut ended)?.rung {
            executor.poll_all(&tokens, &mut ended);
        }
    }
}
