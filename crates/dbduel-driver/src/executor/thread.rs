//! A thread with an event loop.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::policy::make_timers_exact;
use super::{Bell, Executor};

/// Longest time for a new thread to create its event loop.
const START: Duration = Duration::from_secs(30);

/// Parts from which a thread creates its event loop.
pub struct EventLoop {
    busy_poll: Duration,
    bell: Sender<Bell>,
}

impl EventLoop {
    /// Creates the event loop and runs `body` on it.
    ///
    /// # Errors
    /// When the kernel refuses an event loop, those of `body`, and its panic.
    pub fn run<T>(self, body: impl FnOnce(Executor<T>) -> io::Result<()>) -> io::Result<()> {
        let run = || {
            let executor = Executor::polling(self.busy_poll)?;
            // Without it the load still runs, only later; the lag is measured and reported.
            let _ = make_timers_exact();
            let _ = self.bell.send(executor.reactor().bell());
            body(executor)
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            let text = "a load thread panicked; this is a bug in dbduel";
            Err(io::Error::other(text))
        })
    }
}

/// Starts load thread `number`, each wait of whose event loop polls for `busy_poll` before it sleeps.
///
/// # Errors
/// When the system gives no thread or no event loop.
pub fn start(
    number: usize,
    busy_poll: Duration,
    main: impl FnOnce(EventLoop) + Send + 'static,
) -> io::Result<(Bell, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel();
    let event_loop = EventLoop {
        busy_poll,
        bell: sender,
    };
    let handle = Builder::new()
        .name(format!("load-{number}"))
        .spawn(move || main(event_loop))?;
    let bell = receiver.recv_timeout(START).map_err(|error| {
        io::Error::other(match error {
            RecvTimeoutError::Timeout => "a load thread did not start in time",
            RecvTimeoutError::Disconnected => {
                "a load thread could not create its event loop; is the open files limit reached?"
            }
        })
    })?;
    Ok((bell, handle))
}
