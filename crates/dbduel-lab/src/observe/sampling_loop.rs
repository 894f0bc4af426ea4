//! The sampling loop of a watch while a slice is measured.
//!
//! It counts its own cost (processor time of its thread, time of the server's answers) and slows down rather than
//! exceed its share.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dbduel_driver::executor::policy::processor_time;
use dbduel_driver::{Connection, Dialect, QueryError};
use dbduel_machine::clock;

use super::activity::Activity;
use super::engine::EngineLook;
use super::snapshot::Snapshots;
use super::states::{Scanner, State};
use super::waits::{WaitLook, Waits};
use super::watch::{Observed, Observer, Reading};
use super::{Kind, Missing, Pace, Subject};

/// Least interval between samples of the threads.
const STATES_EVERY: Duration = Duration::from_millis(50);
/// Pause after a sample of the threads, as a multiple of its processor time, so that all samples together take less
/// than 0.5 % of one processor.
const STATES_REST: u32 = 200;
/// Interval between queries of the connection list.
const LIST_EVERY: Duration = Duration::from_millis(250);
/// Pause after a query, as a multiple of its answer time.
const LIST_REST: u32 = 200;
/// Interval between readings of the samplers.
const SECOND: Duration = Duration::from_secs(1);

/// Queries of the server's connection list.
#[derive(Debug, Default)]
struct Asked {
    times: u64,
    committing: u64,
    /// Threads listed as serving connections; absent when the list names none.
    threads: Option<BTreeSet<u32>>,
    /// Samples of its sessions, where the server rather than the kernel reports them.
    activity: Option<Activity>,
    took: Duration,
}

/// The work of a watch, on its thread.
pub(super) struct SamplingLoop {
    observer: Observer,
    server: Subject,
    load: Subject,
    scanner: Option<Scanner>,
    observed: Observed,
    asked: Asked,
}

/// The server's own counters at one end of the slice.
struct ServerCounters {
    engine: EngineLook,
    waits: Option<WaitLook>,
}

/// The server's counters at both ends.
struct Answers {
    before: ServerCounters,
    /// Time of the first answer.
    at: Instant,
    after: ServerCounters,
    /// Time of the second answer.
    until: Instant,
}

/// The kernel's counters at both ends of the measured part.
struct Edges {
    opened: Snapshots,
    closed: Snapshots,
    /// Processor time for reading them.
    cpu: Duration,
}

impl Edges {
    /// Reads at both ends; `None` when the slice broke off before it was measured.
    fn look(
        server: &Subject,
        load: &Subject,
        opens: Instant,
        ended: &Receiver<()>,
    ) -> Option<Self> {
        if !is_reached(opens, ended) {
            return None;
        }
        let opened = Snapshots::now(server, load, Pace::Slice);
        while ended.recv().is_ok() {}
        Some(Self {
            opened,
            closed: Snapshots::now(server, load, Pace::Slice),
            cpu: processor_time(),
        })
    }
}

/// Waits until `at`; false when the sender hangs up meanwhile.
fn goes_on_until<T>(at: Instant, measured_part: &Receiver<T>) -> bool {
    loop {
        match measured_part.recv_timeout(at.saturating_duration_since(clock::now())) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Waits until `at`; false when the sender hung up before it.
fn is_reached<T>(at: Instant, measured_part: &Receiver<T>) -> bool {
    goes_on_until(at, measured_part) || clock::now() >= at
}

impl SamplingLoop {
    /// A loop before its slice.
    pub(super) fn new(observer: Observer, server: Subject, load: Subject) -> Self {
        let connection = observer.connection.as_ref();
        let is_named = connection.is_some_and(|connection| {
            connection.dialect() == Dialect::PostgreSql && Activity::is_named_by(connection)
        });
        Self {
            scanner: server.pid.filter(|_| !is_named).map(Scanner::new),
            observer,
            server,
            load,
            observed: Observed::default(),
            asked: Asked {
                activity: is_named.then(Activity::default),
                ..Asked::default()
            },
        }
    }

    /// The observer, and the observations.
    pub(super) fn end(self) -> (Observer, Observed) {
        (self.observer, self.observed)
    }

    /// Waits for the measured part of the slice and watches it until the other side hangs up both channels.
    pub(super) fn work(&mut self, measured_part: &Receiver<Range<Instant>>, ended: Receiver<()>) {
        let cpu_before = processor_time();
        let Ok(measured) = measured_part.recv() else {
            return;
        };
        let (server, load) = (self.server.clone(), self.load.clone());
        let (edges, asked) = std::thread::scope(|scope| {
            // On a thread of its own, because this one may wait for an answer when the slice ends.
            let edges = std::thread::Builder::new()
                .name("watch-edges".to_owned())
                .spawn_scoped(scope, {
                    let opens = measured.start;
                    move || Edges::look(&server, &load, opens, &ended)
                });
            let asked = self.between(measured_part, &measured);
            (edges.map(|edges| edges.join().ok().flatten()), asked)
        });
        let edges = match edges {
            Ok(Some(edges)) => edges,
            Ok(None) => return,
            Err(error) => {
                return self.miss("observer", "counters of the slice", &error.to_string());
            }
        };
        let Edges {
            opened,
            closed,
            cpu,
        } = &edges;
        self.write_down(opened, closed);
        let cpu = *cpu + processor_time().saturating_sub(cpu_before);
        let since = |at| closed.at.saturating_duration_since(at).as_secs_f64();
        let mut own = BTreeMap::from([
            ("cpu_s".to_owned(), cpu.as_secs_f64()),
            ("asked_s".to_owned(), self.asked.took.as_secs_f64()),
            ("asked_count".to_owned(), self.asked.times as f64),
            ("window_s".to_owned(), since(opened.at)),
        ]);
        if let Some(asked) = asked {
            let engine_window = asked.until.saturating_duration_since(asked.at);
            own.insert("engine_window_s".to_owned(), engine_window.as_secs_f64());
            let engine = asked.after.engine.since(&asked.before.engine);
            self.keep("engine", engine, EngineLook::is_gauge);
            if let (Some(before), Some(after)) = (asked.before.waits, asked.after.waits) {
                self.keep("waits", after.since(&before), |_| false);
            }
        }
        self.keep("observer", own, |_| false);
    }

    /// Queries the server at both ends of the measured part, and samples threads, connections and seconds in between.
    fn between(
        &mut self,
        measured_part: &Receiver<Range<Instant>>,
        measured: &Range<Instant>,
    ) -> Option<Answers> {
        if !is_reached(measured.start, measured_part) {
            return None;
        }
        let before = self.ask_engine();
        let at = clock::now();
        self.until_closed(measured_part, measured);
        let after = self.ask_engine();
        Some(Answers {
            before: before?,
            at,
            after: after?,
            until: clock::now(),
        })
    }

    /// Samples threads, connections and seconds in turn until the other side hangs up.
    fn until_closed(
        &mut self,
        measured_part: &Receiver<Range<Instant>>,
        measured: &Range<Instant>,
    ) {
        let opened = measured.start;
        let mut second = opened + SECOND;
        let mut states = opened;
        let mut list = opened + (LIST_EVERY / 2).min((measured.end - opened) / 2);
        let mut last = Snapshots::now(&self.server, &self.load, Pace::Second);
        let has_seconds = second < measured.end;
        let mut engine = has_seconds.then(|| self.ask_engine_of_a_second()).flatten();
        let mut engine_due = opened;
        while goes_on_until(second.min(states).min(list), measured_part) {
            let now = clock::now();
            if now >= states {
                let rest = self.look_at_threads();
                states = clock::now() + rest.max(STATES_EVERY);
            }
            if now >= list {
                let rest = self.ask_who_commits();
                list = clock::now() + rest;
            }
            if now >= second {
                let looks = Snapshots::now(&self.server, &self.load, Pace::Second);
                self.write_second(&last, &looks, opened);
                last = looks;
                if now >= engine_due {
                    let took_before = self.asked.took;
                    let answer = self.ask_engine_of_a_second();
                    self.write_engine_second(engine.as_ref(), answer.as_ref(), opened);
                    engine = answer;
                    // Like all questions, it is asked more seldom of a server that answers slowly.
                    engine_due = clock::now() + (self.asked.took - took_before) * LIST_REST;
                }
                // A second that was missed is not caught up.
                while second <= clock::now() {
                    second += SECOND;
                }
            }
        }
    }

    /// Samples the threads once; returns the pause.
    fn look_at_threads(&mut self) -> Duration {
        let Some(scanner) = &mut self.scanner else {
            return SECOND;
        };
        let before = processor_time();
        if let Err(Missing(why)) = scanner.look() {
            self.scanner = None;
            self.miss("server", "thread states", &why);
            return SECOND;
        }
        processor_time().saturating_sub(before) * STATES_REST
    }

    /// Queries the connection list once; returns the pause.
    fn ask_who_commits(&mut self) -> Duration {
        let Some(connection) = &mut self.observer.connection else {
            return SECOND;
        };
        let begun = clock::now();
        let (answer, every) = match &mut self.asked.activity {
            // This takes the place of looks at the threads.
            Some(activity) => (activity.sample(connection), STATES_EVERY),
            None => {
                let sessions = self.observer.list.ask(connection);
                let answer = sessions.map(|sessions| {
                    self.asked.committing += sessions.committing;
                    if let Some(threads) = sessions.threads {
                        self.asked.threads.get_or_insert_default().extend(threads);
                    }
                });
                (answer, LIST_EVERY)
            }
        };
        match answer {
            Ok(()) => self.asked.times += 1,
            Err(error) => {
                self.observer.connection = None;
                self.miss("server", "list of connections", &error.to_string());
            }
        }
        let took = clock::since(begun);
        self.asked.took += took;
        (took * LIST_REST).max(every)
    }

    fn ask_engine(&mut self) -> Option<ServerCounters> {
        let answer = self.ask(|connection, observer_waits| {
            let engine = EngineLook::at(connection)?;
            let waits = match observer_waits {
                Some(waits) => waits,
                none => none.insert(Waits::kept(connection)?),
            };
            Ok(ServerCounters {
                engine,
                waits: waits.look(connection)?,
            })
        });
        answer.map(|(answer, _)| answer)
    }

    /// The engine's counters of a second, with their time.
    fn ask_engine_of_a_second(&mut self) -> Option<(EngineLook, Instant)> {
        self.ask(|connection, _| EngineLook::of_a_second(connection))
    }

    /// Queries the server; an unanswered query is missing from then on.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Connection, &mut Option<Waits>) -> Result<T, QueryError>,
    ) -> Option<(T, Instant)> {
        let connection = self.observer.connection.as_mut()?;
        let begun = clock::now();
        let answer = question(connection, &mut self.observer.waits);
        let answered = clock::now();
        self.asked.took += answered.duration_since(begun);
        match answer {
            Ok(answer) => Some((answer, answered)),
            Err(error) => {
                self.observer.connection = None;
                self.miss("engine", "engine counters", &error.to_string());
                None
            }
        }
    }

    fn write_down(&mut self, opened: &Snapshots, closed: &Snapshots) {
        let window_s = closed.at.duration_since(opened.at).as_secs_f64();
        if let Some(scanner) = self.scanner.take() {
            let known = &mut self.observer.connections;
            let alive = scanner.alive();
            // A server in a name space of its own has other numbers for its threads than we.
            let answer = self.asked.threads.take();
            match answer.filter(|threads| threads.iter().any(|tid| alive.contains(tid))) {
                Some(threads) => *known = threads,
                // A client is a load thread there.
                None if self.server.is_load => known.extend(scanner.named("load-")),
                None => known.extend(scanner.connections()),
            }
            // Threads that have ended give their numbers back.
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
            self.keep("server", states, |metric| metric == "connections_count");
        }
        let activity = self.asked.activity.take();
        if let Some(activity) = activity.filter(|activity| activity.times() > 0) {
            let is_count = |metric: &str| metric == "connections_count";
            self.observer.connections.clone_from(activity.sessions());
            self.keep("server", activity.states(window_s), is_count);
            self.keep("engine", activity.row_locks(window_s), |_| false);
            self.keep("waits", activity.waits(window_s), |_| false);
        }
        let connections = self.observer.connections.clone();
        for (source, used) in closed.since(opened, &connections) {
            self.keep(source, used, |metric| closed.is_gauge(source, metric));
        }
        for (source, title, look) in [
            ("server", "server", &closed.server),
            ("load", "load process", &closed.load),
            ("host", "machine", &closed.host),
        ] {
            for (name, why) in &look.missing {
                self.miss(source, &format!("{name} of the {title}"), why);
            }
        }
    }

    fn write_second(&mut self, earlier: &Snapshots, now: &Snapshots, opened: Instant) {
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

    fn write_engine_second(
        &mut self,
        earlier: Option<&(EngineLook, Instant)>,
        now: Option<&(EngineLook, Instant)>,
        opened: Instant,
    ) {
        let (Some((before, then)), Some((after, at))) = (earlier, now) else {
            return;
        };
        let offset_s = at.duration_since(opened).as_secs_f64();
        let length_s = at.duration_since(*then).as_secs_f64();
        let rows = after
            .since(before)
            .into_iter()
            .map(|(metric, value)| (offset_s, length_s, "engine", metric, value));
        self.observed.seconds.extend(rows);
    }

    fn keep(
        &mut self,
        source: &'static str,
        values: BTreeMap<String, f64>,
        is_gauge: impl Fn(&str) -> bool,
    ) {
        let readings = values.into_iter().map(|(metric, value)| Reading {
            source,
            kind: match is_gauge(&metric) {
                true => Kind::Gauge,
                false => Kind::Counter,
            },
            metric,
            value,
        });
        self.observed.readings.extend(readings);
    }

    fn miss(&mut self, source: &'static str, what: &str, why: &str) {
        if self.observer.reported.insert(what.to_owned()) {
            let missing = (source, format!("{what} ({why})"));
            self.observed.missing.push(missing);
        }
    }
}

/// Values kept every second: enough to see a stall and its cause, and small enough for a day.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Whose;
    use crate::observe::snapshot::Snapshot;

    #[test]
    fn what_is_kept_each_second_is_read_by_a_sampler_for_seconds() {
        // A disk as the kernel shows it since 5.5, which not every machine has.
        let disk = tempfile::tempdir().unwrap();
        std::fs::write(disk.path().join("stat"), "1 ".repeat(17)).unwrap();
        let subject = Subject {
            disk: Some(disk.path().to_owned()),
            pid: Some(std::process::id()),
            ..Subject::default()
        };
        for (source, metric) in EACH_SECOND {
            let whose = if *source == "host" {
                Whose::Machine
            } else {
                Whose::Process
            };
            let look = Snapshot::at(whose, &subject, Pace::Second);
            let used = look.since(&look, &BTreeSet::new());
            // The one source that a kernel may be built without.
            let may_be_missing =
                metric.starts_with("pressure_") && look.missing.contains_key("pressure");
            assert!(
                used.contains_key(*metric) || may_be_missing,
                "no sampler of `{source}` reads `{metric}`: {:?}",
                look.missing
            );
        }
    }
}
