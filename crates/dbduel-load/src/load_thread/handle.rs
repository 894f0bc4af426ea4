//! Handle of a load thread: start, commands, end.

use std::io;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use dbduel_driver::executor::{Bell, thread};

use super::{Command, Report, State};

/// Handle of a load thread.
pub struct LoadThread {
    commands: Sender<Command>,
    bell: Bell,
    handle: Option<JoinHandle<()>>,
}

impl LoadThread {
    /// Starts thread `number`, each wait of which polls for `busy_poll` before it sleeps; `report` is called on it.
    ///
    /// # Errors
    /// When the system gives no thread or no event loop.
    pub fn start(
        number: usize,
        busy_poll: Duration,
        report: impl Fn(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, receiver) = std::sync::mpsc::channel();
        let (bell, handle) = thread::start(number, busy_poll, move |event_loop| {
            let ended = event_loop.run(|executor| State::run(executor, &receiver, &report));
            report(Report::Ended(ended));
        })?;
        Ok(LoadThread {
            commands,
            bell,
            handle: Some(handle),
        })
    }

    /// Sends the thread a command. A thread that has ended has already reported so.
    pub fn command(&self, command: Command) {
        let _ = self.commands.send(command);
        self.bell.ring();
    }

    /// Stops the thread and waits for it.
    pub fn end(self) {
        let LoadThread {
            commands,
            bell,
            handle,
        } = self;
        drop(commands);
        bell.ring();
        if let Some(handle) = handle {
            // A panic of the thread has been reported.
            let _ = handle.join();
        }
    }
}
