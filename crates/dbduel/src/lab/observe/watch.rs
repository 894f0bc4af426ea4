//! The watch over one slice: threads that look when its measured part begins and ends and in between.
//!
//! It counts its own cost (processor time of its thread, time that the server took to answer it) and
//! slows down rather than take more than its share. It watches the contender that is awake and nobody
//! else.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use dbduel_load::driver::Connection;

use super::sampling_loop::SamplingLoop;
use super::sessions::SessionList;
use super::waits::Waits;
use super::{Kind, Subject};

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

/// One value of a source over all that was watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub source: &'static str,
    pub metric: String,
    /// How the values of several watches are put together.
    pub kind: Kind,
    pub value: f64,
}

/// What was seen in one turn, or in several of the same slice.
#[derive(Debug, Default)]
pub struct Observed {
    pub readings: Vec<Reading>,
    /// Offset and length in seconds, source, metric, value.
    pub seconds: Vec<(f64, f64, &'static str, String, f64)>,
    /// Source, and what of it gave nothing and why; each is named in the first slice only.
    pub missing: Vec<(&'static str, String)>,
}

impl Observed {
    /// Adds what was seen in a later turn of the same slice, whose offsets count from `after_s` seconds into the slice.
    pub fn append(&mut self, later: Observed, after_s: f64) {
        for reading in later.readings {
            let same = |known: &&mut Reading| {
                known.source == reading.source && known.metric == reading.metric
            };
            match (self.readings.iter_mut().find(same), reading.kind) {
                (None, _) => self.readings.push(reading),
                (Some(known), Kind::Counter) => known.value += reading.value,
                (Some(known), Kind::Gauge) => known.value = reading.value,
            }
        }
        let seconds = later.seconds.into_iter();
        self.seconds
            .extend(seconds.map(|(offset_s, length_s, source, metric, value)| {
                (offset_s + after_s, length_s, source, metric, value)
            }));
        self.missing.extend(later.missing);
    }

    /// Notes the measured time of the turn that was watched, where others of its slice are not.
    pub fn watched(&mut self, seconds: f64) {
        self.readings.push(Reading {
            source: "observer",
            metric: "watched_s".to_owned(),
            kind: Kind::Counter,
            value: seconds,
        });
    }

    /// Processor time that it took to see this, seconds: that of the watch, and as much again for the server that answers.
    #[must_use]
    pub fn cost_s(&self) -> f64 {
        let mut own = self.readings.iter();
        let cpu = own.find(|reading| reading.source == "observer" && reading.metric == "cpu_s");
        cpu.map_or(0.0, |cpu| 2.0 * cpu.value)
    }
}

/// A running watch.
pub struct Watch {
    measured: Sender<Range<Instant>>,
    thread: JoinHandle<(Observer, Observed)>,
}

impl Watch {
    /// Starts a watch that waits for the times of the measured part.
    ///
    /// # Errors
    /// When the system gives no thread; the observer is lost with it.
    pub fn start(observer: Observer, server: Subject, load: Subject) -> std::io::Result<Self> {
        let (measured, measured_part) = channel();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                let mut shift = SamplingLoop::new(observer, server, load);
                shift.work(&measured_part);
                shift.end()
            })?;
        Ok(Self { measured, thread })
    }

    /// The slice is measured from the one instant to the other; to be called once.
    pub fn measure(&self, measured: Range<Instant>) {
        // A watch that has ended is noticed when it is finished.
        let _ = self.measured.send(measured);
    }

    /// What was seen; of a slice that broke off, until now.
    #[must_use]
    pub fn finish(self) -> (Observer, Observed) {
        drop(self.measured);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dbduel_load::driver::{ConnectOptions, Credentials};
    use dbduel_load::mock_server::{MockServer, Role};
    use dbduel_wire::server::{Act, Answer};

    use super::*;

    fn own() -> Subject {
        Subject {
            pid: Some(std::process::id()),
            ..Subject::default()
        }
    }

    /// What is seen of a slice of that length.
    fn watch_for(observer: Observer, length: Duration) -> (Observer, Observed) {
        let watch = Watch::start(observer, own(), own()).unwrap();
        let opens = Instant::now();
        watch.measure(opens..opens + length);
        std::thread::sleep(length + Duration::from_millis(20));
        watch.finish()
    }

    fn reading(observed: &Observed, source: &str, metric: &str) -> Option<f64> {
        let mut readings = observed.readings.iter();
        let found = readings.find(|one| one.source == source && one.metric == metric);
        found.map(|one| one.value)
    }

    #[test]
    fn a_server_that_answers_late_does_not_move_the_window_of_the_kernels_counters() {
        const ANSWERS_AFTER: Duration = Duration::from_secs(3);
        const SLICE: Duration = Duration::from_secs(1);
        let directory = tempfile::tempdir().unwrap();
        let late = Act {
            after: ANSWERS_AFTER,
            answer: Answer::Proper,
        };
        let path = directory.path().join("s.sock");
        let server = MockServer::start(&path, Role::Scripted(vec![late])).unwrap();
        let options = ConnectOptions {
            deadline: Duration::from_secs(60),
            ..ConnectOptions::default()
        };
        let credentials = Credentials::new("dbduel", "");
        let connection = Connection::connect(&server.address(), &credentials, &options);
        let observer = Observer {
            connection: Some(connection.unwrap()),
            ..Observer::default()
        };
        let (_, observed) = watch_for(observer, SLICE);
        let window_s = reading(&observed, "observer", "window_s").unwrap();
        // It was asked when the slice began, and answered when that was long over.
        let limit_s = ANSWERS_AFTER.as_secs_f64();
        assert!((0.9..limit_s).contains(&window_s), "{window_s}");
        assert!(reading(&observed, "server", "on_cpu_s").is_some());
    }

    #[test]
    fn a_watch_sees_the_slice_counts_its_cost_and_says_what_is_missing_once() {
        let (observer, observed) = watch_for(Observer::default(), Duration::from_millis(1300));
        let value = |source: &str, metric: &str| reading(&observed, source, metric);
        let window_s = value("observer", "window_s").unwrap();
        assert!((1.2..30.0).contains(&window_s), "{window_s}");
        assert!(value("observer", "cpu_s").unwrap() > 0.0);
        assert!(value("server", "on_cpu_s").is_some());
        assert!(value("server", "state_looks_count").unwrap() >= 1.0);
        assert!(!observed.seconds.is_empty());
        let device =
            |missing: &[(&str, String)]| missing.iter().any(|one| one.1.starts_with("device of"));
        assert!(device(&observed.missing), "{:?}", observed.missing);

        let (_, again) = watch_for(observer, Duration::ZERO);
        assert!(!device(&again.missing), "{:?}", again.missing);
    }

    #[test]
    fn a_watch_that_never_opened_has_nothing_to_say() {
        let watch = Watch::start(Observer::default(), own(), own()).unwrap();
        let (_, observed) = watch.finish();
        assert!(observed.readings.is_empty() && observed.seconds.is_empty());
    }
}
