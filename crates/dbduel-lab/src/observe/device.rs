//! The sampler of the block device that holds the data.

use super::{Missing, Pace, Sampler, Subject, Value, Whose, read};

/// Bytes per sector in the kernel's counters, independent of the device's own sector size.
const SECTOR: f64 = 512.0;

/// Requests, bytes, waits, flushes and discards from `/sys/block/NAME/stat`.
pub const DEVICE: Sampler = Sampler {
    name: "device",
    about: "Requests, bytes, waiting time, flushes and discards of the disk that holds the data, by all its users.",
    whose: Whose::Machine,
    pace: Pace::Second,
    look: device,
};

fn device(subject: &Subject) -> Result<Vec<Value>, Missing> {
    let Some(disk) = &subject.disk else {
        return Err(Missing(
            "the file system of the data is not on a disk that `/sys/block` lists".to_owned(),
        ));
    };
    let text = read(&disk.join("stat").to_string_lossy())?;
    Ok(values(&text))
}

/// A counter of the subject's disk, over all users; `None` without a disk, or when the kernel does not count it.
pub(super) fn total(subject: &Subject, metric: &str) -> Option<f64> {
    let values = device(subject).ok()?;
    let mut values = values.into_iter();
    let found = values.find(|value| value.metric == metric);
    found.map(|value| value.value)
}

/// Bytes written to a disk.
pub(super) const WRITTEN: &str = "disk_written_bytes";
/// Flushes of a disk's cache.
pub(super) const FLUSHES: &str = "disk_flushes_count";

/// Fields of the kernel's `Documentation/block/stat.rst`; discards came with 4.18, flushes with 5.5.
fn values(text: &str) -> Vec<Value> {
    let fields: Vec<f64> = text
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let known: [(&'static str, usize, f64); 13] = [
        ("disk_reads_count", 0, 1.0),
        ("disk_read_bytes", 2, SECTOR),
        ("disk_read_wait_s", 3, 1e-3),
        ("disk_writes_count", 4, 1.0),
        (WRITTEN, 6, SECTOR),
        ("disk_write_wait_s", 7, 1e-3),
        ("disk_busy_s", 9, 1e-3),
        ("disk_queue_s", 10, 1e-3),
        ("disk_discards_count", 11, 1.0),
        ("disk_discarded_bytes", 13, SECTOR),
        ("disk_discard_wait_s", 14, 1e-3),
        (FLUSHES, 15, 1.0),
        ("disk_flush_wait_s", 16, 1e-3),
    ];
    let found = known.iter().filter_map(|(metric, field, factor)| {
        Some(Value::counter(metric, fields.get(*field)? * factor))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(values: &[Value], metric: &str) -> Option<f64> {
        values
            .iter()
            .find(|value| value.metric == metric)
            .map(|value| value.value)
    }

    #[test]
    fn fields_get_their_units() {
        let new = values("10 1 80 7 20 2 160 9 0 5000 16 3 0 8 4 6 11\n");
        assert_eq!(value(&new, "disk_read_bytes"), Some(40_960.0));
        assert_eq!(value(&new, "disk_written_bytes"), Some(81_920.0));
        assert_eq!(value(&new, "disk_busy_s"), Some(5.0));
        assert_eq!(value(&new, "disk_discarded_bytes"), Some(4096.0));
        assert_eq!(value(&new, "disk_flushes_count"), Some(6.0));
    }

    #[test]
    fn an_old_kernel_counts_neither_discards_nor_flushes() {
        let old = values("10 1 80 7 20 2 160 9 0 5000 16");
        assert_eq!(value(&old, "disk_queue_s"), Some(0.016));
        assert_eq!(value(&old, "disk_discards_count"), None);
        assert_eq!(value(&old, "disk_flushes_count"), None);
    }
}
