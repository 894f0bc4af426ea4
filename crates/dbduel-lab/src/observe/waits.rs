//! Wait times of a server's threads, from its performance schema.
//!
//! Read at both ends of a slice, where the server keeps it; most installations of MariaDB do not, and enabled
//! instruments differ between versions. A group of waits has a value only when one of its instruments is enabled and
//! timed. Waits of all threads count, including background threads, so they are no parts of a transaction's time.
//! Excluded are waits that contain others (`wait/io/table`), idle ones, and conditions, on which idle threads wait.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_driver::{Connection, QueryError};

/// Instruments that wait for the same resource. An instrument belongs to the first group with a matching prefix, so the
/// order matters.
#[derive(Debug)]
struct Group {
    /// Metrics of the time and the number of its waits.
    seconds: &'static str,
    count: &'static str,
    /// Prefixes of its instruments' names, in any version.
    prefixes: &'static [&'static str],
}

const GROUPS: [Group; 7] = [
    Group {
        seconds: "redo_files_s",
        count: "redo_files_count",
        prefixes: &["wait/io/file/innodb/innodb_log_file"],
    },
    Group {
        seconds: "doublewrite_files_s",
        count: "doublewrite_files_count",
        // MySQL from 8.0.20 on; before, and in MariaDB, these waits are among those for data files.
        prefixes: &["wait/io/file/innodb/innodb_dblwr_file"],
    },
    Group {
        seconds: "data_files_s",
        count: "data_files_count",
        prefixes: &["wait/io/file/innodb/", "wait/io/file/rocksdb/"],
    },
    Group {
        seconds: "binary_log_files_s",
        count: "binary_log_files_count",
        prefixes: &["wait/io/file/sql/binlog"],
    },
    Group {
        seconds: "table_locks_s",
        count: "table_locks_count",
        prefixes: &["wait/lock/"],
    },
    Group {
        seconds: "engine_latches_s",
        count: "engine_latches_count",
        prefixes: &[
            "wait/synch/mutex/innodb/",
            "wait/synch/rwlock/innodb/",
            "wait/synch/sxlock/innodb/",
            "wait/synch/mutex/rocksdb/",
            "wait/synch/rwlock/rocksdb/",
        ],
    },
    Group {
        seconds: "server_latches_s",
        count: "server_latches_count",
        prefixes: &[
            "wait/synch/mutex/sql/",
            "wait/synch/mutex/mysys/",
            "wait/synch/rwlock/sql/",
            "wait/synch/prlock/sql/",
        ],
    },
];

/// Picoseconds, the unit of the performance schema's timers.
const PER_SECOND: f64 = 1e12;

/// The groups of waits that a server records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    /// Indices into [`GROUPS`].
    kept: BTreeSet<usize>,
}

/// Time and number of all waits of each group since the server's start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitLook(BTreeMap<usize, (f64, f64)>);

impl Waits {
    /// Queries the groups that the server records; empty when it has no performance schema or it is off.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn kept(connection: &mut Connection) -> Result<Self, QueryError> {
        let ask = "SELECT NAME FROM performance_schema.setup_instruments \
                   WHERE ENABLED = 'YES' AND TIMED = 'YES' AND @@performance_schema = 1";
        let set = match connection.query(ask) {
            Ok(set) => set,
            // No such tables, or no right to read them.
            Err(QueryError::Refused { .. }) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let names = (0..set.rows.len()).filter_map(|row| set.text(row, 0));
        Ok(Self {
            kept: names.filter_map(|name| group_of(&name)).collect(),
        })
    }

    /// The present totals; `None` when no group is recorded.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn look(&self, connection: &mut Connection) -> Result<Option<WaitLook>, QueryError> {
        if self.kept.is_empty() {
            return Ok(None);
        }
        let set = connection.query(
            "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT \
             FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0",
        )?;
        let rows = (0..set.rows.len()).filter_map(|row| {
            let number = |column| set.text(row, column)?.parse::<f64>().ok();
            Some((set.text(row, 0)?, number(1)?, number(2)?))
        });
        Ok(Some(self.sum(rows)))
    }

    fn sum(&self, rows: impl Iterator<Item = (String, f64, f64)>) -> WaitLook {
        let mut look: BTreeMap<usize, (f64, f64)> =
            self.kept.iter().map(|group| (*group, (0.0, 0.0))).collect();
        for (name, count, picoseconds) in rows {
            if let Some(sum) = group_of(&name).and_then(|group| look.get_mut(&group)) {
                sum.0 += picoseconds / PER_SECOND;
                sum.1 += count;
            }
        }
        WaitLook(look)
    }
}

impl WaitLook {
    /// Waits since `earlier`, by metric.
    pub fn since(&self, earlier: &Self) -> BTreeMap<String, f64> {
        let mut changes = BTreeMap::new();
        for (&group, now) in &self.0 {
            let Some(before) = earlier.0.get(&group) else {
                continue;
            };
            let (seconds, count) = (now.0 - before.0, now.1 - before.1);
            // A server that was started again counts from zero; such a difference says nothing.
            if seconds >= 0.0 && count >= 0.0 {
                changes.insert(GROUPS[group].seconds.to_owned(), seconds);
                changes.insert(GROUPS[group].count.to_owned(), count);
            }
        }
        changes
    }
}

fn group_of(instrument: &str) -> Option<usize> {
    let fits = |group: &Group| {
        group
            .prefixes
            .iter()
            .any(|prefix| instrument.starts_with(prefix))
    };
    GROUPS.iter().position(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(instrument: &str, seconds: Option<&str>) {
        assert_eq!(
            group_of(instrument).map(|group| GROUPS[group].seconds),
            seconds,
            "{instrument}"
        );
    }

    #[test]
    fn instruments_of_every_version_find_their_group() {
        check("wait/io/file/innodb/innodb_log_file", Some("redo_files_s"));
        check("wait/io/file/innodb/innodb_data_file", Some("data_files_s"));
        check(
            "wait/io/file/innodb/innodb_dblwr_file",
            Some("doublewrite_files_s"),
        );
        check("wait/io/file/sql/binlog", Some("binary_log_files_s"));
        check(
            "wait/synch/sxlock/innodb/index_tree_rw_lock",
            Some("engine_latches_s"),
        );
        check(
            "wait/synch/mutex/sql/LOCK_table_cache",
            Some("server_latches_s"),
        );
        // These contain the waits of others, or are rest.
        check("wait/io/table/sql/handler", None);
        check("wait/synch/cond/sql/COND_queue_state", None);
        check("wait/io/socket/sql/client_connection", None);
        check("idle", None);
    }

    #[test]
    fn only_groups_with_an_instrument_have_a_value_and_none_waited_is_zero() {
        let waits = Waits {
            kept: [0, 2].into(),
        };
        let row = |name: &str, count: f64, seconds: f64| (name.to_owned(), count, seconds * 1e12);
        let before = waits.sum([row("wait/io/file/innodb/innodb_log_file", 10.0, 1.0)].into_iter());
        let after = waits.sum(
            [
                row("wait/io/file/innodb/innodb_log_file", 14.0, 1.5),
                row("wait/synch/mutex/innodb/trx_mutex", 9.0, 9.0),
            ]
            .into_iter(),
        );
        let changes = after.since(&before);
        assert_eq!(changes["redo_files_s"], 0.5);
        assert_eq!(changes["redo_files_count"], 4.0);
        assert_eq!(changes["data_files_s"], 0.0);
        assert_eq!(changes.get("engine_latches_s"), None);
        assert!(!before.since(&after).contains_key("redo_files_s"));
    }
}
