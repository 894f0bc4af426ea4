//! The watch over one slice: a thread that samples when its measured part begins, ends, and in between.
//!
//! It counts its own cost (processor time of its thread, time of the server's answers) and slows down rather than
//! exceed its share. It watches only the contender that is awake.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use dbduel_driver::Connection;

use super::sampling_loop::SamplingLoop;
use super::sessions::SessionList;
use super::waits::Waits;
use super::{Kind, Subject};

/// State that is kept between the slices of one contender.
#[derive(Default)]
pub struct Observer {
    /// For queries of the server; absent before the first slice and after a failure.
    pub connection: Option<Connection>,
    /// The connection list query of this server.
    pub(super) list: SessionList,
    /// The waits that this server records; absent before the first query.
    pub(super) waits: Option<Waits>,
    /// Threads known to serve connections.
    pub(super) connections: BTreeSet<u32>,
    /// Sources already reported missing, so that each is reported once.
    pub(super) reported: BTreeSet<String>,
}

/// One value of a source over the whole watched time.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Where it comes from: `server`, `host`, `engine`.
    pub source: &'static str,
    /// Name, with the unit last.
    pub metric: String,
    /// How the values of several watches are combined.
    pub kind: Kind,
    /// The value.
    pub value: f64,
}

/// Observations of one turn, or of several turns of the same slice.
#[derive(Debug, Default)]
pub struct Observed {
    /// Values over the whole watched time.
    pub readings: Vec<Reading>,
    /// Offset and length in seconds, source, metric, value.
    pub seconds: Vec<(f64, f64, &'static str, String, f64)>,
    /// Sources with their missing values, and why; each is listed in the first slice only.
    pub missing: Vec<(&'static str, String)>,
}

impl Observed {
    /// Adds the observations of a later turn of the same slice, whose offsets start `after_s` seconds into the slice.
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

    /// Notes the measured time of the watched turn, where others of its slice are not watched.
    pub fn watched(&mut self, seconds: f64) {
        self.readings.push(Reading {
            source: "observer",
            metric: "watched_s".to_owned(),
            kind: Kind::Counter,
            value: seconds,
        });
    }

    /// Notes the number of transactions behind the server's counters, where its sessions report it; `None` where
    /// unknown.
    pub fn reported(&mut self, transactions: Option<u64>) {
        if !self.readings.iter().any(|one| one.source == "engine") {
            return;
        }
        let (metric, value) = match transactions {
            Some(count) => ("reported_count", count as f64),
            None => ("unreported_turns_count", 1.0),
        };
        self.readings.push(Reading {
            source: "load",
            metric: metric.to_owned(),
            kind: Kind::Counter,
            value,
        });
    }

    /// Processor time of the observation, seconds: that of the watch, and an equal amount for the answering server.
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
    /// Hung up, like the other channel, at the end of the measured part.
    running: Sender<()>,
    thread: JoinHandle<(Observer, Observed)>,
}

impl Watch {
    /// Starts a watch that waits for the times of the measured part.
    ///
    /// # Errors
    /// When no thread can be started; the observer is lost with it.
    pub fn start(observer: Observer, server: Subject, load: Subject) -> std::io::Result<Self> {
        let (measured, measured_part) = channel();
        let (running, ended) = channel();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                let mut shift = SamplingLoop::new(observer, server, load);
                shift.work(&measured_part, ended);
                shift.end()
            })?;
        Ok(Self {
            measured,
            running,
            thread,
        })
    }

    /// Sets the measured part; its end is the planned one, and the watch continues until [`Self::finish`]. Call it
    /// once.
    pub fn measure(&self, measured: Range<Instant>) {
        // A watch that has ended is noticed when it is finished.
        let _ = self.measured.send(measured);
    }

    /// Ends the watch; returns its observations.
    #[must_use]
    pub fn finish(self) -> (Observer, Observed) {
        drop((self.measured, self.running));
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use dbduel_driver::mock_server::{MockServer, Role};
    use dbduel_driver::{ConnectOptions, Credentials};
    use dbduel_wire::server::{Act, Answer};
    use nix::libc;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn own() -> Subject {
        Subject {
            pid: Some(std::process::id()),
            ..Subject::default()
        }
    }

    /// A device whose counters are read from a pipe, so that every look of the samplers is seen while it is taken.
    struct ObservedDevice {
        folder: tempfile::TempDir,
        looks: Arc<AtomicU32>,
        is_over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl ObservedDevice {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (stat, next) = (folder.path().join("stat"), folder.path().join("next"));
            mkfifo(&stat, Mode::S_IRWXU).unwrap();
            let (looks, is_over): (Arc<AtomicU32>, Arc<AtomicBool>) = Default::default();
            let (seen, ends) = (Arc::clone(&looks), Arc::clone(&is_over));
            let thread = std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    let mut options = std::fs::OpenOptions::new();
                    // Fails without a reader.
                    let pipe = options
                        .write(true)
                        .custom_flags(libc::O_NONBLOCK)
                        .open(&stat);
                    let Ok(mut pipe) = pipe else {
                        std::thread::sleep(Duration::from_millis(1));
                        continue;
                    };
                    // The next look has a pipe of its own.
                    mkfifo(&next, Mode::S_IRWXU).unwrap();
                    std::fs::rename(&next, &stat).unwrap();
                    pipe.write_all("1 ".repeat(17).as_bytes()).unwrap();
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
            Self {
                folder,
                looks,
                is_over,
                thread: Some(thread),
            }
        }

        fn subject(&self) -> Subject {
            Subject {
                disk: Some(self.folder.path().to_owned()),
                ..own()
            }
        }

        /// Waits for so many looks. Two at the same time may count as one.
        fn wait_for_looks(&self, count: u32) {
            wait_until(&format!("{count} looks"), || {
                self.looks.load(Ordering::Relaxed) >= count
            });
        }
    }

    impl Drop for ObservedDevice {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::Relaxed);
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }

    #[track_caller]
    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "no {what} within a minute");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn reading(observed: &Observed, source: &str, metric: &str) -> Option<f64> {
        let mut readings = observed.readings.iter();
        let found = readings.find(|one| one.source == source && one.metric == metric);
        found.map(|one| one.value)
    }

    #[test]
    fn a_server_that_answers_late_does_not_move_the_window_of_the_kernels_counters() {
        let directory = tempfile::tempdir().unwrap();
        let never = Act {
            after: Duration::ZERO,
            answer: Answer::Stall,
        };
        let path = directory.path().join("s.sock");
        let server = MockServer::start(&path, Role::Scripted(vec![never])).unwrap();
        let options = ConnectOptions {
            deadline: Duration::from_secs(60),
            statement_deadline: Duration::from_secs(600),
            ..ConnectOptions::default()
        };
        let credentials = Credentials::new("dbduel", "");
        let connection = Connection::connect(&server.address(), &credentials, &options);
        let observer = Observer {
            connection: Some(connection.unwrap()),
            ..Observer::default()
        };
        let device = ObservedDevice::new();
        let watch = Watch::start(observer, device.subject(), own()).unwrap();
        let opens = Instant::now();
        watch.measure(opens..opens + Duration::from_millis(100));
        wait_until("question", || !server.heard().is_empty());
        device.wait_for_looks(1);
        let finished = std::thread::spawn(|| watch.finish());
        // Both ends of the window are read while the first question is not answered.
        device.wait_for_looks(2);
        drop(server);
        let (_, observed) = finished.join().unwrap();
        assert!(reading(&observed, "observer", "window_s").is_some());
        assert!(reading(&observed, "server", "on_cpu_s").is_some());
    }

    #[test]
    fn a_watch_sees_the_slice_counts_its_cost_and_says_what_is_missing_once() {
        let device = ObservedDevice::new();
        // A process of which nothing is known.
        let load = Subject::default;
        let watch = Watch::start(Observer::default(), device.subject(), load()).unwrap();
        let opens = Instant::now();
        watch.measure(opens..opens + Duration::from_secs(3600));
        // When the slice opens, before its first second, and after it.
        device.wait_for_looks(3);
        let (observer, observed) = watch.finish();
        let at_most_s = opens.elapsed().as_secs_f64();
        let value = |source: &str, metric: &str| reading(&observed, source, metric);
        let window_s = value("observer", "window_s").unwrap();
        assert!(window_s > 0.0 && window_s <= at_most_s, "{window_s}");
        assert!(value("observer", "cpu_s").unwrap() > 0.0);
        assert!(value("server", "on_cpu_s").is_some());
        assert!(value("server", "state_looks_count").unwrap() >= 1.0);
        assert!(!observed.seconds.is_empty());
        let of_load = |missing: &[(&str, String)]| missing.iter().any(|one| one.0 == "load");
        assert!(of_load(&observed.missing), "{:?}", observed.missing);

        let watch = Watch::start(observer, device.subject(), load()).unwrap();
        let opens = Instant::now();
        watch.measure(opens..opens);
        let (_, again) = watch.finish();
        assert!(reading(&again, "observer", "window_s").is_some());
        assert!(!of_load(&again.missing), "{:?}", again.missing);
    }

    #[test]
    fn a_watch_that_never_opened_has_nothing_to_say() {
        let watch = Watch::start(Observer::default(), own(), own()).unwrap();
        let (_, observed) = watch.finish();
        assert!(observed.readings.is_empty() && observed.seconds.is_empty());
    }
}
