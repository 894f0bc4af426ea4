//! A load thread as the rest of the process sees it: started, told, ended.

use std::io;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Command, Report, State};
use crate::executor::Bell;

/// A load thread as others see it.
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
        let (bell_sender, bell_receiver) = std::sync::mpsc::channel();
        let handle = std::thread::Builder::new()
            .name(format!("load-{number}"))
            .spawn(move || {
                let last_words = LastWords {
                    report: &report,
                    outcome: None,
                };
                last_words.speak(State::run(busy_poll, &receiver, &bell_sender, &report));
            })?;
        let bell = bell_receiver.recv().map_err(|_| {
            io::Error::other("a load thread could not make its event loop; are descriptors left?")
        })?;
        Ok(LoadThread {
            commands,
            bell,
            handle: Some(handle),
        })
    }

    /// Gives the thread a command. One that has ended has said so in a report.
    pub fn command(&self, command: Command) {
        let _ = self.commands.send(command);
        self.bell.ring();
    }

    /// Ends the thread and waits for it.
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

/// Says that the thread has ended, also when it panicked.
struct LastWords<'a, R: Fn(Report)> {
    report: &'a R,
    outcome: Option<io::Result<()>>,
}

impl<R: Fn(Report)> LastWords<'_, R> {
    fn speak(mut self, outcome: io::Result<()>) {
        self.outcome = Some(outcome);
    }
}

impl<R: Fn(Report)> Drop for LastWords<'_, R> {
    fn drop(&mut self) {
        let panicked = || {
            Err(io::Error::other(
                "a load thread panicked; this is a fault of dbduel",
            ))
        };
        let outcome = self.outcome.take().unwrap_or_else(panicked);
        (self.report)(Report::Ended(outcome));
    }
}
