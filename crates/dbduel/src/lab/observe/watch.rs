//! The watch over one slice: a thread that looks when the slice opens and closes and in between.
//!
//! It counts its own cost (processor time of its thread, time that the server took to answer it) and
//! slows down rather than take more than its share. It watches the contender that is awake and nobody
//! else.

use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use dbduel_load::blocking::Connection;

use super::Subject;
use super::sessions::SessionList;
use super::shift::{Command, Shift};
use super::waits::Waits;

/// What stays between the slices of one contender.
#[derive(Default)]
pub struct Observer {
    /// For questions to the server; absent before the first slice and after a failure.
    pub connection: Option<Connection>,
    /// How this server lists its connections.
    pub(super) list: SessionList,
    /// The waits that this server keeps; absent before it was asked.
    pub(super) waits: Option<Waits>,
    /// Threads that are known to serve connections.
    pub(super) connections: BTreeSet<u32>,
    /// Sources that were reported missing, so that each is reported once.
    pub(super) reported: BTreeSet<String>,
}

/// What was seen in one slice.
#[derive(Debug, Default)]
pub struct Observed {
    /// Source, metric, value for the whole slice.
    pub readings: Vec<(&'static str, String, f64)>,
    /// Offset and length in seconds, source, metric, value.
    pub seconds: Vec<(f64, f64, &'static str, String, f64)>,
    /// Sources that gave nothing, and why; each is named in the first slice only.
    pub missing: Vec<String>,
}

/// A running watch.
pub struct Watch {
    commands: Sender<Command>,
    thread: JoinHandle<(Observer, Observed)>,
}

impl Watch {
    /// Starts to wait for the slice to open.
    ///
    /// # Errors
    /// When the system gives no thread; the observer is lost with it.
    pub fn start(observer: Observer, server: Subject, load: Subject) -> std::io::Result<Self> {
        let (commands, orders) = channel();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                let mut shift = Shift::new(observer, server, load);
                shift.work(&orders);
                shift.end()
            })?;
        Ok(Self { commands, thread })
    }

    /// The measured part of the slice begins.
    pub fn open(&self) {
        // A watch that has ended is noticed when it is finished.
        let _ = self.commands.send(Command::Open);
    }

    /// The measured part of the slice has ended.
    pub fn close(&self) {
        let _ = self.commands.send(Command::Close);
    }

    /// What was seen. Closes the watch if that was not done.
    #[must_use]
    pub fn finish(self) -> (Observer, Observed) {
        drop(self.commands);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn own() -> Subject {
        Subject {
            pid: Some(std::process::id()),
            disk: None,
        }
    }

    #[test]
    fn a_watch_sees_the_slice_counts_its_cost_and_says_what_is_missing_once() {
        let watch = Watch::start(Observer::default(), own(), own()).unwrap();
        watch.open();
        std::thread::sleep(Duration::from_millis(1300));
        watch.close();
        let (observer, observed) = watch.finish();
        let value = |source: &str, metric: &str| {
            observed
                .readings
                .iter()
                .find(|(from, name, _)| *from == source && name == metric)
                .map(|(_, _, value)| *value)
        };
        let window_s = value("observer", "window_s").unwrap();
        assert!((1.2..30.0).contains(&window_s), "{window_s}");
        assert!(value("observer", "cpu_s").unwrap() > 0.0);
        assert!(value("server", "on_cpu_s").is_some());
        assert!(value("server", "state_looks_count").unwrap() >= 1.0);
        assert!(!observed.seconds.is_empty());
        let device = |missing: &[String]| missing.iter().any(|one| one.starts_with("device of"));
        assert!(device(&observed.missing), "{:?}", observed.missing);

        let watch = Watch::start(observer, own(), own()).unwrap();
        watch.open();
        let (_, again) = watch.finish();
        assert!(!device(&again.missing), "{:?}", again.missing);
    }

    #[test]
    fn a_watch_that_never_opened_has_nothing_to_say() {
        let watch = Watch::start(Observer::default(), own(), own()).unwrap();
        let (_, observed) = watch.finish();
        assert!(observed.readings.is_empty() && observed.seconds.is_empty());
    }
}
