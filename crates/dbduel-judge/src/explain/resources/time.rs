//! How much of a transaction's time a resource can be.

use crate::explain::Doing::{self, *};

/// The most time that one sync, one read of the device or one wait takes, microseconds: what a rotating disk needs (a
/// rule of thumb). It keeps events that are too rare from carrying what another resource took.
const EVENT_US: f64 = 10_000.0;

/// The most processor time that one request for a page takes with the rows on it, microseconds (a rule of thumb).
const PAGE_US: f64 = 10.0;

/// Effect of a resource on the time of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carries {
    /// The parts of a transaction's time that it lengthens, the most direct one first.
    pub parts: &'static [Doing],
    /// The most time that one unit of it takes, microseconds.
    pub each_us: f64,
}

/// Resources that are time, or that a transaction waits for. The others, such as bytes and pages, take time only by way of
/// these.
const CARRIES: &[(&str, &[Doing], f64)] = &[
    // Who needs more of a processor waits longer for one that others use.
    ("server-cpu", &[Running, Runnable], 1.0),
    ("server-cpu-user", &[Running], 1.0),
    ("server-cpu-system", &[Running], 1.0),
    ("connection-cpu", &[Running], 1.0),
    ("server-run-queue", &[Runnable], 1.0),
    ("major-faults", &[DiskRead], EVENT_US),
    ("disk-reads", &[DiskRead], EVENT_US),
    ("disk-flushes", &[Commit, DiskWrite, OtherThread], EVENT_US),
    ("disk-queue", &[DiskRead, DiskWrite, Commit], 1.0),
    ("page-requests", &[Running], PAGE_US),
    ("page-misses", &[DiskRead], EVENT_US),
    ("free-page-waits", &[DiskWrite, OtherThread], EVENT_US),
    ("redo-syncs", &[Commit, DiskWrite, OtherThread], EVENT_US),
    ("data-syncs", &[Commit, DiskWrite, OtherThread], EVENT_US),
    ("redo-waits", &[Commit, OtherThread], EVENT_US),
    ("row-lock-waits", &[RowLock], EVENT_US),
    ("row-lock-time", &[RowLock], 1.0),
    ("tree-cache-misses", &[DiskRead], EVENT_US),
    ("tree-stalls", &[OtherThread], 1.0),
    ("wait-redo-files", &[Commit, OtherThread], 1.0),
    ("wait-data-files", &[DiskRead, DiskWrite], 1.0),
    ("wait-doublewrite-files", &[DiskWrite, OtherThread], 1.0),
    ("wait-binary-log-files", &[Commit, OtherThread], 1.0),
    ("wait-engine-latches", &[OtherThread], 1.0),
    ("wait-server-latches", &[OtherThread], 1.0),
    ("wait-table-locks", &[RowLock, OtherThread], 1.0),
    ("client-cpu", &[Client], 1.0),
    ("client-run-queue", &[ClientRunnable], 1.0),
];

/// Effect of the resource `id` on the time of a transaction; `None` where it takes none by itself.
pub fn carries(id: &str) -> Option<Carries> {
    let found = CARRIES.iter().find(|(one, ..)| *one == id);
    found.map(|&(_, parts, each_us)| Carries { parts, each_us })
}

#[cfg(test)]
mod tests {
    use super::super::{Unit, all};
    use super::*;

    #[test]
    fn time_is_carried_by_resources_that_exist_and_never_by_bytes() {
        for (id, parts, each_us) in CARRIES {
            let resource = all().find(|one| one.id == *id);
            let unit = resource.unwrap_or_else(|| panic!("`{id}`")).unit;
            assert!(unit != Unit::Bytes && !parts.is_empty(), "`{id}`");
            assert_eq!(unit == Unit::Microseconds, *each_us == 1.0, "`{id}`");
        }
    }
}
