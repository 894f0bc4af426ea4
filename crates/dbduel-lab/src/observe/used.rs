//! Resource use of a server in a turn outside of blocks: three figures that are cheap to read without a watch.

use super::process::{cpu, io};
use super::{Subject, Value, device};

/// Totals of a server and its forked children; absent where they cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Processor time, seconds.
    pub cpu_s: Option<f64>,
    /// Bytes written to the device.
    pub written_bytes: Option<f64>,
    /// Flushes of the disk's cache, by all users of the disk.
    pub disk_flushes: Option<f64>,
}

impl Used {
    /// Reads the totals.
    #[must_use]
    pub fn of(server: &Subject) -> Self {
        let sum = |values: Option<Vec<Value>>, metrics: &[&str]| {
            let values = values?;
            let found = values
                .iter()
                .filter(|value| metrics.contains(&value.metric));
            found.map(|value| value.value).reduce(|a, b| a + b)
        };
        Self {
            cpu_s: sum(cpu(server).ok(), &["cpu_user_s", "cpu_system_s"]),
            written_bytes: sum(io(server).ok(), &["device_write_bytes"]),
            disk_flushes: device::total(server, device::FLUSHES),
        }
    }

    /// Use since an earlier reading, of figures that both contain.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.with(earlier, |now, then| now - then)
    }

    /// Total use in two stretches of time, of figures that both contain.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    fn with(self, other: Self, combine: fn(f64, f64) -> f64) -> Self {
        let both = |one: Option<f64>, other: Option<f64>| Some(combine(one?, other?));
        Self {
            cpu_s: both(self.cpu_s, other.cpu_s),
            written_bytes: both(self.written_bytes, other.written_bytes),
            disk_flushes: both(self.disk_flushes, other.disk_flushes),
        }
    }
}
