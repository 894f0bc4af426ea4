//! The threads that carry the clients of a run, each with an event loop.
//!
//! Knows neither workloads nor scripts: [`Clients`] makes the tasks and says what the end of one means.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::Builder;
use std::time::Duration;

use crate::executor::policy::{make_timers_exact, raise_open_files_limit, suit_clients};
use crate::executor::{Bell, Executor, Token};
use crate::run::Gate;

/// Longest time for a new thread to make its event loop.
const START: Duration = Duration::from_secs(30);

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
        let (sender, receiver) = mpsc::channel();
        Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || {
                let mut clients = make(number);
                let mut presence = Presence {
                    gate: &gate,
                    left: clients.count(),
                };
                match Executor::new() {
                    Ok(executor) => carry(executor, &mut clients, &mut presence, &sender),
                    Err(error) => gate.fail(format!("cannot make an event loop: {error}")),
                }
            })?;
        bells.push(receiver.recv_timeout(START).map_err(|error| {
            io::Error::other(match error {
                RecvTimeoutError::Timeout => "a load thread did not start in time",
                RecvTimeoutError::Disconnected => {
                    "a load thread could not make its event loop; are descriptors left?"
                }
            })
        })?);
    }
    Ok(LoadThreads { bells })
}

/// Says that the thread's clients have ended, also when it panics.
struct Presence<'a> {
    gate: &'a Gate,
    left: usize,
}

impl Presence<'_> {
    fn finish_one(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.gate.finish();
        }
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.gate
                .fail("a load thread panicked; this is a fault of dbduel".to_owned());
        }
        while self.left > 0 {
            self.finish_one();
        }
    }
}

fn carry<C: Clients>(
    mut executor: Executor<C::End>,
    clients: &mut C,
    presence: &mut Presence<'_>,
    bell: &mpsc::Sender<Bell>,
) {
    // Without exact timers and the policy the load still runs, only less exact and dearer.
    let _ = make_timers_exact();
    let _ = suit_clients(u32::try_from(clients.count()).unwrap_or(u32::MAX));
    let _ = bell.send(executor.reactor().bell());
    if let Err(error) = turn_over(&mut executor, clients, presence) {
        presence.gate.fail(format!("the event loop broke: {error}"));
    }
}

fn turn_over<C: Clients>(
    executor: &mut Executor<C::End>,
    clients: &mut C,
    presence: &mut Presence<'_>,
) -> io::Result<()> {
    let mut ended = Vec::new();
    let mut tokens = clients.start(executor);
    poll_all(executor, &tokens, &mut ended);
    loop {
        while let Some((token, end)) = ended.pop() {
            tokens.retain(|known| *known != token);
            match clients.ended(token, end, executor) {
                Some(next) => {
                    tokens.push(next);
                    poll_all(executor, &[next], &mut ended);
                }
                None => presence.finish_one(),
            }
        }
        if presence.left == 0 || presence.gate.has_failed() {
            return Ok(());
        }
        if executor.turn(&mut ended)?.rung {
            poll_all(executor, &tokens, &mut ended);
        }
    }
}

fn poll_all<T>(executor: &mut Executor<T>, tokens: &[Token], ended: &mut Vec<(Token, T)>) {
    for &token in tokens {
        if let Some(end) = executor.poll(token) {
            ended.push((token, end));
        }
    }
}
