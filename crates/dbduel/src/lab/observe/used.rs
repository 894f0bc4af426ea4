//! What a server has used since it started: two small figures that are read without a watch.

use super::process::{Cpu, Io};
use super::{Sampler as _, Subject, Value};

/// Totals of a server and of the processes that it forked; absent where they cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Processor time, seconds.
    pub cpu_s: Option<f64>,
    /// Bytes written to the device.
    pub written_bytes: Option<f64>,
}

impl Used {
    /// Reads them now.
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
            cpu_s: sum(Cpu.look(server).ok(), &["cpu_user_s", "cpu_system_s"]),
            written_bytes: sum(Io.look(server).ok(), &["device_write_bytes"]),
        }
    }

    /// What was used since an earlier look, of what both could read.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let difference = |now: Option<f64>, then: Option<f64>| Some(now? - then?);
        Self {
            cpu_s: difference(self.cpu_s, earlier.cpu_s),
            written_bytes: difference(self.written_bytes, earlier.written_bytes),
        }
    }
}
