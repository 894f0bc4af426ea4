//! A snapshot: all samplers read once for one subject, and the difference of two snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use dbduel_machine::clock;

use super::{Kind, Missing, Pace, SAMPLERS, Subject, Value, Whose};

/// The values of every sampler at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    values: Vec<Value>,
    /// Samplers without values, and why.
    pub missing: BTreeMap<&'static str, String>,
}

impl Snapshot {
    /// Reads the samplers of `whose` that may run at this pace.
    #[must_use]
    pub fn at(whose: Whose, subject: &Subject, pace: Pace) -> Self {
        let mut look = Self::default();
        for sampler in SAMPLERS {
            if sampler.whose != whose || sampler.pace < pace {
                continue;
            }
            match (sampler.look)(subject) {
                Ok(values) => look.values.extend(values),
                Err(Missing(why)) => {
                    let lacks = format!("{why}; without it: {}", sampler.about);
                    look.missing.insert(sampler.name, lacks);
                }
            }
        }
        look
    }

    /// Use since `earlier`, by metric; gauges at their present value.
    ///
    /// Values of threads are summed: over all threads, over the threads of `connections` as `connections_…`, and over
    /// other threads with a name of their own as `thread_NAME_…`.
    #[must_use]
    pub fn since(&self, earlier: &Snapshot, connections: &BTreeSet<u32>) -> BTreeMap<String, f64> {
        let before: BTreeMap<(&str, Option<u32>), f64> = earlier
            .values
            .iter()
            .map(|value| ((value.metric, tid(value)), value.value))
            .collect();
        let mut used: BTreeMap<String, f64> = BTreeMap::new();
        for now in &self.values {
            let known = before.get(&(now.metric, tid(now))).copied();
            let increase = match (now.kind, known, &now.thread) {
                (Kind::Gauge, _, _) => now.value,
                (Kind::Counter, Some(before), None) if now.value >= before => now.value - before,
                // A thread's number is given out again: what is smaller belongs to a new thread.
                (Kind::Counter, Some(before), Some(_)) if now.value >= before => now.value - before,
                (Kind::Counter, _, Some(_)) => now.value,
                (Kind::Counter, _, None) => continue,
            };
            *used.entry(now.metric.to_owned()).or_default() += increase;
            let Some(thread) = &now.thread else { continue };
            let group = if connections.contains(&thread.tid) {
                format!("connections_{}", now.metric)
            } else {
                match slug(&thread.name) {
                    name if name.is_empty() => continue,
                    name => format!("thread_{name}_{}", now.metric),
                }
            };
            *used.entry(group).or_default() += increase;
        }
        // By name only processor time is of interest, and only where there was some.
        used.retain(|metric, value| {
            !metric.starts_with("thread_") || (metric.ends_with("_on_cpu_s") && *value > 0.0)
        });
        used
    }
}

impl Snapshot {
    /// True when a metric is a gauge.
    fn is_gauge(&self, metric: &str) -> bool {
        let mut values = self.values.iter();
        values.any(|value| value.metric == metric && value.kind == Kind::Gauge)
    }
}

/// Snapshots of the server, the load process and the machine.
pub(super) struct Snapshots {
    /// When they were taken.
    pub at: Instant,
    pub server: Snapshot,
    /// The load process.
    pub load: Snapshot,
    /// The machine.
    pub host: Snapshot,
    /// True when the server is the load process.
    is_one: bool,
}

/// True for metrics of a process that are not counted again where the server is the load process.
fn is_processor_time(metric: &str) -> bool {
    let is_of_connections = metric.starts_with("connections_");
    let is_time = ["on_cpu_s", "cpu_user_s", "cpu_system_s", "run_queue_s"]
        .iter()
        .any(|end| metric.ends_with(end));
    is_time && !is_of_connections
}

impl Snapshots {
    /// Takes snapshots of a server, a load process, and the machine that they run on.
    pub fn now(server: &Subject, load: &Subject, pace: Pace) -> Self {
        let is_one = server.is_load;
        let look = |whose, subject: &Subject| match subject.is_elsewhere {
            true => Snapshot::default(),
            false => Snapshot::at(whose, subject, pace),
        };
        let host = look(Whose::Machine, server);
        let load = look(Whose::Process, load);
        let server = look(Whose::Process, server);
        Self {
            at: clock::now(),
            is_one,
            server,
            load,
            host,
        }
    }

    /// True when a metric of a source is a gauge.
    pub fn is_gauge(&self, source: &str, metric: &str) -> bool {
        match source {
            "server" => self.server.is_gauge(metric),
            "load" => self.load.is_gauge(metric),
            _ => self.host.is_gauge(metric),
        }
    }

    /// Use since `earlier`, by source and metric.
    pub fn since(
        &self,
        earlier: &Snapshots,
        connections: &BTreeSet<u32>,
    ) -> Vec<(&'static str, BTreeMap<String, f64>)> {
        let none = BTreeSet::new();
        let mut server = self.server.since(&earlier.server, connections);
        if self.is_one {
            server.retain(|metric, _| !is_processor_time(metric));
        }
        vec![
            ("server", server),
            ("load", self.load.since(&earlier.load, &none)),
            ("host", self.host.since(&earlier.host, &none)),
        ]
    }
}

fn tid(value: &Value) -> Option<u32> {
    value.thread.as_ref().map(|thread| thread.tid)
}

/// A thread's name as part of a metric; trailing numbers, which distinguish threads with the same task, are removed.
fn slug(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    plain
        .trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '_')
        .trim_start_matches('_')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Thread;

    fn own() -> Subject {
        Subject {
            pid: Some(std::process::id()),
            ..Subject::default()
        }
    }

    fn thread(metric: &'static str, tid: u32, name: &str, value: f64) -> Value {
        Value {
            thread: Some(Thread {
                tid,
                name: name.to_owned(),
            }),
            ..Value::counter(metric, value)
        }
    }

    #[test]
    fn work_between_two_looks_is_seen() {
        let before = Snapshot::at(Whose::Process, &own(), Pace::Slice);
        let deadline = clock::now() + std::time::Duration::from_secs(60);
        // The kernel may bring its counters up to date later than the work is done.
        let used = loop {
            let now = Snapshot::at(Whose::Process, &own(), Pace::Slice);
            let used = now.since(&before, &BTreeSet::new());
            if used["on_cpu_s"] > 0.0 || clock::now() > deadline {
                break used;
            }
        };
        assert!(used["on_cpu_s"] > 0.0, "{used:?}");
        assert!(used["resident_bytes"] > 0.0, "{used:?}");
    }

    #[test]
    fn threads_that_end_or_begin_do_not_spoil_a_sum() {
        let earlier = Snapshot {
            values: vec![
                thread("on_cpu_s", 1, "connection", 5.0),
                thread("on_cpu_s", 2, "ib_log_writer", 7.0),
                thread("on_cpu_s", 3, "ended", 9.0),
            ],
            ..Snapshot::default()
        };
        let now = Snapshot {
            values: vec![
                thread("on_cpu_s", 1, "connection", 6.5),
                thread("on_cpu_s", 2, "ib_log_writer", 7.25),
                thread("on_cpu_s", 4, "ib_pg_flush-1", 0.5),
            ],
            ..Snapshot::default()
        };
        let used = now.since(&earlier, &BTreeSet::from([1]));
        assert_eq!(used["on_cpu_s"], 2.25);
        assert_eq!(used["connections_on_cpu_s"], 1.5);
        assert_eq!(used["thread_ib_log_writer_on_cpu_s"], 0.25);
        assert_eq!(used["thread_ib_pg_flush_on_cpu_s"], 0.5);
        assert_eq!(used.len(), 4);
    }

    #[test]
    fn a_counter_that_shrinks_says_nothing_and_a_gauge_says_what_it_is() {
        let earlier = Snapshot {
            values: vec![
                Value::counter("disk_reads_count", 9.0),
                Value::gauge("dirty_bytes", 100.0),
            ],
            ..Snapshot::default()
        };
        let now = Snapshot {
            values: vec![
                Value::counter("disk_reads_count", 2.0),
                Value::gauge("dirty_bytes", 40.0),
            ],
            ..Snapshot::default()
        };
        let used = now.since(&earlier, &BTreeSet::new());
        assert_eq!(used.get("disk_reads_count"), None);
        assert_eq!(used["dirty_bytes"], 40.0);
    }
}
