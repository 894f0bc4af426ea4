//! The watch over one slice: a thread that looks when the slice opens and closes and in between.
//!
//! It counts its own cost (processor time of its thread, time that the server took to answer it) and
//! slows down rather than take more than its share. It watches the contender that is awake and nobody
//! else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_load::blocking::Connection;
use nix::time::{ClockId, clock_gettime};

use super::engine::{EngineLook, committing};
use super::states::{Scanner, State};
use super::{Look, Missing, Pace, Subject, Whose};

/// Between two looks at the threads, at the least.
const STATES_EVERY: Duration = Duration::from_millis(50);
/// A look at the threads is followed by a pause of so many times its own processor time, so that all
/// looks together take less than 0.5 % of one processor.
const STATES_REST: u32 = 200;
/// Between two questions for the list of connections.
const LIST_EVERY: Duration = Duration::from_millis(250);
/// A question is followed by a pause of so many times the time that its answer took.
const LIST_REST: u32 = 200;
/// Between two looks of the samplers.
const SECOND: Duration = Duration::from_secs(1);

/// What stays between the slices of one contender.
#[derive(Default)]
pub struct Observer {
    /// For questions to the server; absent before the first slice and after a failure.
    pub connection: Option<Connection>,
    /// Threads that are known to serve connections.
    connections: BTreeSet<u32>,
    /// Sources that were reported missing, so that each is reported once.
    reported: BTreeSet<String>,
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

enum Command {
    Open,
    Close,
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
                let mut shift = Shift {
                    scanner: server.pid.map(Scanner::new),
                    observer,
                    server,
                    load,
                    observed: Observed::default(),
                    asked: Asked::default(),
                };
                shift.work(&orders);
                (shift.observer, shift.observed)
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

/// Questions to the server for its list of connections.
#[derive(Debug, Default)]
struct Asked {
    times: u64,
    committing: u64,
    took: Duration,
}

struct Shift {
    observer: Observer,
    server: Subject,
    load: Subject,
    scanner: Option<Scanner>,
    observed: Observed,
    asked: Asked,
}

/// A look at everything that processes and the machine count.
struct Looks {
    at: Instant,
    server: Look,
    load: Look,
    host: Look,
}

impl Looks {
    fn now(shift: &Shift, pace: Pace) -> Self {
        let host = Look::at(Whose::Machine, &shift.server, pace);
        let load = Look::at(Whose::Process, &shift.load, pace);
        let server = Look::at(Whose::Process, &shift.server, pace);
        Self {
            at: Instant::now(),
            server,
            load,
            host,
        }
    }

    fn since(
        &self,
        earlier: &Looks,
        connections: &BTreeSet<u32>,
    ) -> Vec<(&'static str, BTreeMap<String, f64>)> {
        let none = BTreeSet::new();
        vec![
            ("server", self.server.since(&earlier.server, connections)),
            ("load", self.load.since(&earlier.load, &none)),
            ("host", self.host.since(&earlier.host, &none)),
        ]
    }
}

impl Shift {
    fn work(&mut self, orders: &Receiver<Command>) {
        let cpu_before = thread_cpu();
        match orders.recv() {
            Ok(Command::Open) => {}
            Ok(Command::Close) | Err(_) => return,
        }
        // The kernel first: a busy server may take long to answer, and the slice does not wait.
        let opened = Looks::now(self, Pace::Slice);
        let engine_before = self.ask_engine();
        let engine_at = Instant::now();
        self.until_closed(orders, opened.at);
        let closed = Looks::now(self, Pace::Slice);
        let engine_after = self.ask_engine();
        self.write_down(&opened, &closed);
        if let (Some(before), Some(after)) = (engine_before, engine_after) {
            let changes = after.since(&before);
            self.keep("engine", changes);
        }
        let cost = BTreeMap::from([
            (
                "cpu_s".to_owned(),
                thread_cpu().saturating_sub(cpu_before).as_secs_f64(),
            ),
            ("asked_s".to_owned(), self.asked.took.as_secs_f64()),
            ("asked_count".to_owned(), self.asked.times as f64),
            (
                "window_s".to_owned(),
                closed.at.duration_since(opened.at).as_secs_f64(),
            ),
            // Clients have nothing left to send after the slice, so its counters end when the slice does.
            (
                "engine_window_s".to_owned(),
                closed.at.saturating_duration_since(engine_at).as_secs_f64(),
            ),
        ]);
        self.keep("observer", cost);
    }

    /// Looks at threads, connections and seconds in turn until the slice closes.
    fn until_closed(&mut self, orders: &Receiver<Command>, opened: Instant) {
        let mut second = opened + SECOND;
        let mut states = opened;
        let mut list = opened + LIST_EVERY / 2;
        let mut last = Looks::now(self, Pace::Second);
        loop {
            let next = second.min(states).min(list);
            match orders.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Command::Open) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Command::Close) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= states {
                let rest = self.look_at_threads();
                states = Instant::now() + rest.max(STATES_EVERY);
            }
            if now >= list {
                let rest = self.ask_who_commits();
                list = Instant::now() + rest.max(LIST_EVERY);
            }
            if now >= second {
                let looks = Looks::now(self, Pace::Second);
                self.write_second(&last, &looks, opened);
                last = looks;
                // A second that was missed is not caught up.
                while second <= Instant::now() {
                    second += SECOND;
                }
            }
        }
    }

    /// One look at the threads; returns how long to rest.
    fn look_at_threads(&mut self) -> Duration {
        let Some(scanner) = &mut self.scanner else {
            return SECOND;
        };
        let before = thread_cpu();
        if let Err(Missing(why)) = scanner.look() {
            self.scanner = None;
            self.miss("thread states", &why);
            return SECOND;
        }
        thread_cpu().saturating_sub(before) * STATES_REST
    }

    /// One question for the list of connections; returns how long to rest.
    fn ask_who_commits(&mut self) -> Duration {
        let Some(connection) = &mut self.observer.connection else {
            return SECOND;
        };
        let begun = Instant::now();
        match committing(connection) {
            Ok(count) => {
                self.asked.times += 1;
                self.asked.committing += count;
            }
            Err(error) => {
                self.observer.connection = None;
                self.miss("list of connections", &error.to_string());
            }
        }
        let took = begun.elapsed();
        self.asked.took += took;
        took * LIST_REST
    }

    fn ask_engine(&mut self) -> Option<EngineLook> {
        let connection = self.observer.connection.as_mut()?;
        let begun = Instant::now();
        let look = EngineLook::at(connection);
        self.asked.took += begun.elapsed();
        match look {
            Ok(look) => Some(look),
            Err(error) => {
                self.observer.connection = None;
                self.miss("engine counters", &error.to_string());
                None
            }
        }
    }

    fn write_down(&mut self, opened: &Looks, closed: &Looks) {
        let window_s = closed.at.duration_since(opened.at).as_secs_f64();
        if let Some(scanner) = self.scanner.take() {
            let known = &mut self.observer.connections;
            known.extend(scanner.connections());
            // Threads that have ended give their numbers back.
            let alive = scanner.alive();
            known.retain(|tid| alive.contains(tid));
            let seconds = scanner.seconds(known, window_s);
            let mut states: BTreeMap<String, f64> = State::METRICS
                .iter()
                .map(|(state, metric)| {
                    let value = seconds.get(state).copied().unwrap_or(0.0);
                    ((*metric).to_owned(), value)
                })
                .collect();
            states.insert("connections_count".to_owned(), known.len() as f64);
            states.insert("state_looks_count".to_owned(), scanner.looks() as f64);
            if self.asked.times > 0 {
                let share = self.asked.committing as f64 / self.asked.times as f64;
                states.insert("connections_in_commit_s".to_owned(), share * window_s);
            }
            self.keep("server", states);
        }
        let connections = self.observer.connections.clone();
        for (source, used) in closed.since(opened, &connections) {
            self.keep(source, used);
        }
        for (source, look) in [
            ("server", &closed.server),
            ("load process", &closed.load),
            ("machine", &closed.host),
        ] {
            let missing: Vec<(String, String)> = look
                .missing
                .iter()
                .map(|(name, why)| (format!("{name} of the {source}"), why.clone()))
                .collect();
            for (what, why) in missing {
                self.miss(&what, &why);
            }
        }
    }

    fn write_second(&mut self, earlier: &Looks, now: &Looks, opened: Instant) {
        let offset_s = now.at.duration_since(opened).as_secs_f64();
        let length_s = now.at.duration_since(earlier.at).as_secs_f64();
        for (source, used) in now.since(earlier, &BTreeSet::new()) {
            let rows = used
                .into_iter()
                .filter(|(metric, _)| EACH_SECOND.contains(&(source, metric.as_str())))
                .map(|(metric, value)| (offset_s, length_s, source, metric, value));
            self.observed.seconds.extend(rows);
        }
    }

    fn keep(&mut self, source: &'static str, values: BTreeMap<String, f64>) {
        let rows = values
            .into_iter()
            .map(|(metric, value)| (source, metric, value));
        self.observed.readings.extend(rows);
    }

    fn miss(&mut self, what: &str, why: &str) {
        if self.observer.reported.insert(what.to_owned()) {
            self.observed.missing.push(format!("{what} ({why})"));
        }
    }
}

/// What is kept second by second: enough to see a stall and its reason, little enough for a day.
const EACH_SECOND: &[(&str, &str)] = &[
    ("server", "cpu_user_s"),
    ("server", "cpu_system_s"),
    ("server", "device_read_bytes"),
    ("server", "device_write_bytes"),
    ("server", "resident_bytes"),
    ("load", "cpu_user_s"),
    ("load", "cpu_system_s"),
    ("host", "disk_read_bytes"),
    ("host", "disk_written_bytes"),
    ("host", "disk_queue_s"),
    ("host", "disk_flushes_count"),
    ("host", "machine_busy_s"),
    ("host", "machine_stolen_s"),
    ("host", "dirty_bytes"),
    ("host", "page_cache_bytes"),
    ("host", "pressure_cpu_some_s"),
    ("host", "pressure_io_some_s"),
    ("host", "pressure_memory_some_s"),
];

/// Processor time of the calling thread.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_is_kept_each_second_is_read_by_a_sampler_for_seconds() {
        let subject = Subject {
            disk: crate::lab::host::disk_of(std::path::Path::new("/tmp")),
            ..own()
        };
        for (source, metric) in EACH_SECOND {
            let whose = if *source == "host" {
                Whose::Machine
            } else {
                Whose::Process
            };
            let look = Look::at(whose, &subject, Pace::Second);
            let used = look.since(&look, &BTreeSet::new());
            assert!(
                used.contains_key(*metric) || !look.missing.is_empty(),
                "`{metric}` is read by nobody"
            );
        }
    }
}
