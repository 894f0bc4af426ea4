//! Samplers: what a process or the machine used while a slice was measured.
//!
//! A sampler reads counters; the difference of two looks is the reading of a slice. A source that
//! cannot be read gives no reading, never a wrong one.

mod process;

use std::collections::BTreeMap;

use dbduel_record::event::SliceId;
use dbduel_record::rows::ReadingRow;

/// Reads the counters of one process.
pub trait Sampler: Sync {
    /// Current values by metric, each with its unit last in the name.
    fn look(&self, pid: u32) -> Vec<(&'static str, f64)>;
}

/// Every sampler.
pub const SAMPLERS: &[&dyn Sampler] = &[&process::Cpu, &process::Io, &process::Switches];

/// Every sampler's values for one process at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    values: BTreeMap<&'static str, f64>,
}

impl Look {
    /// Looks at the process now.
    #[must_use]
    pub fn at(pid: u32) -> Self {
        Self {
            values: SAMPLERS
                .iter()
                .flat_map(|sampler| sampler.look(pid))
                .collect(),
        }
    }

    /// What was used since `earlier`, as rows of the record.
    #[must_use]
    pub fn since(
        &self,
        earlier: &Look,
        slice: SliceId,
        contender: &str,
        source: &str,
    ) -> Vec<ReadingRow> {
        let used = self.values.iter().filter_map(|(metric, now)| {
            let before = earlier.values.get(metric)?;
            // Sums over threads shrink when a thread ends; such a difference says nothing.
            (now >= before).then(|| ReadingRow {
                block: slice.block,
                position: slice.position,
                contender: contender.to_owned(),
                source: source.to_owned(),
                metric: (*metric).to_owned(),
                value: now - before,
            })
        });
        used.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn metrics_are_named_once_and_carry_a_unit() {
        let mut seen = BTreeSet::new();
        for sampler in SAMPLERS {
            for (metric, _) in sampler.look(std::process::id()) {
                assert!(seen.insert(metric), "`{metric}` stands twice");
                let unit = metric.rsplit('_').next().unwrap();
                assert!(
                    ["s", "bytes", "count"].contains(&unit),
                    "`{metric}` has no unit"
                );
            }
        }
        assert!(seen.contains("cpu_user_s"));
    }

    #[test]
    fn work_between_two_looks_is_seen() {
        let before = Look::at(std::process::id());
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(60);
        let mut spins = 0u64;
        while std::time::Instant::now() < deadline {
            spins = std::hint::black_box(spins + 1);
        }
        let rows = Look::at(std::process::id()).since(
            &before,
            SliceId {
                block: 0,
                position: 0,
            },
            "a",
            "load",
        );
        let user = rows.iter().find(|row| row.metric == "cpu_user_s").unwrap();
        let system = rows
            .iter()
            .find(|row| row.metric == "cpu_system_s")
            .unwrap();
        assert!(user.value + system.value > 0.0, "{rows:?}");
    }

    #[test]
    fn a_process_that_is_gone_gives_no_reading() {
        assert_eq!(Look::at(u32::MAX), Look::default());
    }
}
