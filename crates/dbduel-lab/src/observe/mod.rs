//! Samplers: resources that a server, the load process and the machine used while a slice was measured.
//!
//! A sampler reads counters and gauges; the difference of two readings is the use between them. An unreadable source
//! gives no value and a reason, never a wrong value.
//!
//! ```text
//! SAMPLERS ─► Snapshot ───────────────┐
//! states (threads)                ├─► Watch over one slice ─► readings.csv, seconds.csv
//! engine, waits, sessions (SQL) ──┘
//! ```

mod activity;
mod counters;
mod device;
mod engine;
mod machine;
mod postgresql;
mod process;
mod processes;
mod sampling_loop;
mod sessions;
mod snapshot;
pub mod stacks;
mod states;
mod threads;
mod used;
mod waits;
mod watch;
pub mod write_accounting;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use used::Used;
pub use watch::{Observed, Observer, Reading, Watch};

/// The process and the disk that samplers read.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The process ID, for samplers of a process.
    pub pid: Option<u32>,
    /// The directory in `/sys` of the disk that holds the data, for the device sampler.
    pub disk: Option<PathBuf>,
    /// True for a load process in which a database runs: its processor time is counted once, for the load.
    pub is_load: bool,
    /// True for a process on another machine, of which this machine shows nothing. The agent there samples a server; a
    /// load process is not sampled.
    pub is_elsewhere: bool,
    /// True where the kernel [counts more](write_accounting) than the process writes to the device.
    pub overcounts_writes: bool,
}

/// Owner of a sampler's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// One process: a server or the load process.
    Process,
    /// The whole machine.
    Machine,
}

/// How often a sampler may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// At both ends of a slice only: it reads something of every thread.
    Slice,
    /// Every second as well: it reads one small file.
    Second,
}

/// How two readings of a value are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// It only grows; the increase counts.
    Counter,
    /// It goes up and down; the later value counts.
    Gauge,
}

/// A thread that a value belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Thread ID.
    pub tid: u32,
    /// The name set by the program, or the program's own name.
    pub name: String,
}

/// One value of one reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Name, with the unit last.
    pub metric: &'static str,
    /// How two readings of it are combined.
    pub kind: Kind,
    /// The value.
    pub value: f64,
    /// Its thread; absent for values of the whole subject.
    pub thread: Option<Thread>,
}

impl Value {
    fn counter(metric: &'static str, value: f64) -> Self {
        Self {
            metric,
            kind: Kind::Counter,
            value,
            thread: None,
        }
    }

    fn gauge(metric: &'static str, value: f64) -> Self {
        Self {
            kind: Kind::Gauge,
            ..Self::counter(metric, value)
        }
    }
}

/// Why a source gives no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

/// Reads the counters of one source.
pub struct Sampler {
    /// Name, for notices.
    pub name: &'static str,
    /// Description of its values, as a sentence.
    pub about: &'static str,
    /// Owner of its counters.
    pub whose: Whose,
    /// How often it may run.
    pub pace: Pace,
    /// The present values, or why the source is missing or unreadable.
    pub look: fn(&Subject) -> Result<Vec<Value>, Missing>,
}

/// All samplers.
pub const SAMPLERS: &[Sampler] = &[
    process::CPU,
    process::IO,
    process::MEMORY,
    threads::THREADS,
    device::DEVICE,
    machine::PROCESSORS,
    machine::PAGE_CACHE,
    machine::PRESSURE,
];

/// Content of a kernel file, or why it cannot be read.
fn read(path: &str) -> Result<String, Missing> {
    std::fs::read_to_string(path).map_err(|error| Missing(format!("`{path}`: {error}")))
}

/// The process ID of a subject.
fn pid_of(subject: &Subject) -> Result<u32, Missing> {
    subject.pid.ok_or_else(|| {
        Missing("the process is not on this machine or was not started by dbduel".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn samplers_have_a_name_a_sentence_and_metrics_with_units_that_stand_once() {
        let subject = Subject {
            pid: Some(std::process::id()),
            disk: dbduel_machine::host::disk_of(std::path::Path::new("/tmp")),
            ..Subject::default()
        };
        let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for sampler in SAMPLERS {
            assert!(names.insert(sampler.name), "`{}`", sampler.name);
            assert!(sampler.about.ends_with('.'), "`{}`", sampler.name);
            let Ok(values) = (sampler.look)(&subject) else {
                continue; // a source that this machine does not have
            };
            let metrics: BTreeSet<&str> = values.iter().map(|value| value.metric).collect();
            assert!(!metrics.is_empty(), "`{}` reads nothing", sampler.name);
            for metric in metrics {
                assert!(seen.insert(metric), "`{metric}` stands twice");
                let unit = metric.rsplit('_').next().unwrap_or_default();
                assert!(
                    ["s", "bytes", "count"].contains(&unit),
                    "`{metric}` has no unit"
                );
            }
        }
        assert!(seen.contains("cpu_user_s") && seen.contains("run_queue_s"));
    }

    #[test]
    fn a_process_that_is_gone_gives_a_reason_and_no_value() {
        let subject = Subject {
            pid: Some(u32::MAX),
            ..Subject::default()
        };
        for sampler in SAMPLERS {
            if sampler.whose == Whose::Process {
                let Err(Missing(why)) = (sampler.look)(&subject) else {
                    panic!("`{}` reads a process that does not exist", sampler.name);
                };
                assert!(!why.is_empty());
            }
        }
    }
}
