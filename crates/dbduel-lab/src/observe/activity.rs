//! Samples of the wait events of PostgreSQL's sessions, from `pg_stat_activity`.
//!
//! Each session is a process that waits for its client, for locks and for other sessions in the same system call, so
//! the kernel cannot distinguish these waits. The server names a session's wait (`wait_event`), from version 10 on also
//! for input, output and clients. An active session without a wait runs. The metric names are those of thread states
//! and of performance schema waits.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_driver::{Connection, QueryError};

use super::postgresql::major;
use super::states::State;

/// The first major version that names waits for input, output and clients.
const SINCE: u32 = 10;

/// The query: sessions of accounts, except the one that asks.
const QUESTION: &str = "SELECT pid, state, wait_event_type, wait_event, query ILIKE 'commit%' FROM pg_stat_activity \
     WHERE usesysid IS NOT NULL AND pid <> pg_backend_pid() AND state IS NOT NULL";

/// Groups of waits, by the metric names used for the performance schema.
const REDO_FILES: &str = "redo_files_s";
const DATA_FILES: &str = "data_files_s";
const LATCHES: &str = "engine_latches_s";
const TABLE_LOCKS: &str = "table_locks_s";
const GROUPS: [&str; 4] = [REDO_FILES, DATA_FILES, LATCHES, TABLE_LOCKS];

/// All samples of a slice.
#[derive(Debug, Default)]
pub struct Activity {
    times: u64,
    /// Processes that served sessions in the last sample.
    sessions: BTreeSet<u32>,
    committing: u64,
    row_locks: u64,
    states: BTreeMap<State, u64>,
    waits: BTreeMap<&'static str, u64>,
}

/// One session in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sampled {
    state: State,
    group: Option<&'static str>,
    is_row_lock: bool,
    /// True while it waits for a log write, its own or another session's.
    is_log: bool,
}

impl Activity {
    /// True when this server names the waits of all sessions.
    pub fn is_named_by(connection: &Connection) -> bool {
        major(connection.server_version()) >= SINCE
    }

    /// Takes one more sample.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn sample(&mut self, connection: &mut Connection) -> Result<(), QueryError> {
        let set = connection.query(QUESTION)?;
        self.sessions.clear();
        for row in 0..set.rows.len() {
            let text = |column| set.text(row, column).unwrap_or_default();
            let Ok(pid) = text(0).parse() else { continue };
            self.sessions.insert(pid);
            let sampled = sampled(&text(1), &text(2), &text(3));
            *self.states.entry(sampled.state).or_default() += 1;
            if let Some(group) = sampled.group {
                *self.waits.entry(group).or_default() += 1;
            }
            self.row_locks += u64::from(sampled.is_row_lock);
            let is_active = sampled.state != State::Client;
            self.committing += u64::from(sampled.is_log || is_active && text(4) == "t");
        }
        self.times += 1;
        Ok(())
    }

    /// Number of samples taken.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// The processes that serve sessions.
    pub fn sessions(&self) -> &BTreeSet<u32> {
        &self.sessions
    }

    /// Total seconds of all sessions in each state within `window_s`, by metric.
    pub fn states(&self, window_s: f64) -> BTreeMap<String, f64> {
        let seconds = |count: u64| window_s * count as f64 / self.times.max(1) as f64;
        let metrics = State::METRICS.iter().map(|(state, metric)| {
            let count = self.states.get(state).copied().unwrap_or(0);
            ((*metric).to_owned(), seconds(count))
        });
        let mut states: BTreeMap<String, f64> = metrics.collect();
        states.insert("connections_count".to_owned(), self.sessions.len() as f64);
        states.insert("state_looks_count".to_owned(), self.times as f64);
        let committing = seconds(self.committing);
        states.insert("connections_in_commit_s".to_owned(), committing);
        states
    }

    /// Total seconds of row lock waits of all sessions within `window_s`, by the engine's metric.
    pub fn row_locks(&self, window_s: f64) -> BTreeMap<String, f64> {
        let seconds = window_s * self.row_locks as f64 / self.times.max(1) as f64;
        BTreeMap::from([("row_lock_wait_s".to_owned(), seconds)])
    }

    /// Total seconds of waits of all sessions within `window_s`, by group.
    pub fn waits(&self, window_s: f64) -> BTreeMap<String, f64> {
        let of = |group: &&str| {
            let count = self.waits.get(*group).copied().unwrap_or(0);
            let seconds = window_s * count as f64 / self.times.max(1) as f64;
            ((*group).to_owned(), seconds)
        };
        GROUPS.iter().map(of).collect()
    }
}

/// State of a session with these values of `state`, `wait_event_type` and `wait_event`. Event names differ between
/// versions in capitals and in a trailing `Lock`.
fn sampled(state: &str, kind: &str, event: &str) -> Sampled {
    let lower = event.to_ascii_lowercase();
    let is_log = lower.starts_with("wal");
    let of = |state, group, is_log| Sampled {
        state,
        group,
        is_row_lock: false,
        is_log,
    };
    if state != "active" && !state.starts_with("fastpath") {
        return of(State::Client, None, false);
    }
    match kind {
        "" => of(State::Running, None, false),
        "Client" => of(State::Client, None, false),
        "IO" if is_log => of(State::Log, Some(REDO_FILES), true),
        // Asynchronous reads of 18 wait for their completion, whatever file it is.
        "IO" if lower.contains("read") || lower.contains("aio") || lower.contains("prefetch") => {
            of(State::DiskRead, Some(DATA_FILES), false)
        }
        "IO" => of(State::DiskWrite, Some(DATA_FILES), false),
        "Lock" => {
            let is_row_lock = matches!(lower.as_str(), "transactionid" | "tuple");
            Sampled {
                is_row_lock,
                ..of(
                    State::OtherThread,
                    (!is_row_lock).then_some(TABLE_LOCKS),
                    false,
                )
            }
        }
        "LWLock" | "BufferPin" | "Buffer" => of(State::OtherThread, Some(LATCHES), is_log),
        "IPC" => of(State::OtherThread, None, false),
        "Timeout" if lower == "spindelay" => of(State::OtherThread, Some(LATCHES), false),
        _ => of(State::Other, None, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: [&str; 3], state: State, group: Option<&str>) {
        let found = sampled(words[0], words[1], words[2]);
        assert_eq!((found.state, found.group), (state, group), "{words:?}");
    }

    #[test]
    fn events_of_every_version_find_their_state_and_group() {
        check(["idle", "Client", "ClientRead"], State::Client, None);
        check(
            ["idle in transaction", "Client", "ClientRead"],
            State::Client,
            None,
        );
        check(["active", "", ""], State::Running, None);
        check(["active", "IO", "WALSync"], State::Log, Some(REDO_FILES));
        check(["active", "IO", "WalSync"], State::Log, Some(REDO_FILES));
        check(
            ["active", "IO", "DataFileRead"],
            State::DiskRead,
            Some(DATA_FILES),
        );
        check(
            ["active", "IO", "AioIoCompletion"],
            State::DiskRead,
            Some(DATA_FILES),
        );
        check(
            ["active", "IO", "DataFileExtend"],
            State::DiskWrite,
            Some(DATA_FILES),
        );
        check(
            ["active", "LWLock", "WALWriteLock"],
            State::OtherThread,
            Some(LATCHES),
        );
        check(
            ["active", "LWLock", "buffer_content"],
            State::OtherThread,
            Some(LATCHES),
        );
        check(
            ["active", "Lock", "relation"],
            State::OtherThread,
            Some(TABLE_LOCKS),
        );
        check(
            ["active", "Lock", "transactionid"],
            State::OtherThread,
            None,
        );
        assert!(sampled("active", "Lock", "tuple").is_row_lock);
        assert!(sampled("active", "LWLock", "WALWrite").is_log);
        assert!(!sampled("active", "IO", "DataFileSync").is_log);
    }

    #[test]
    fn shares_of_samples_become_seconds_of_the_window() {
        let activity = Activity {
            times: 4,
            sessions: [7, 8].into(),
            committing: 2,
            row_locks: 1,
            states: [(State::Client, 5), (State::Log, 3)].into(),
            waits: [(REDO_FILES, 3)].into(),
        };
        let states = activity.states(8.0);
        assert_eq!(states["connections_client_s"], 10.0);
        assert_eq!(states["connections_log_s"], 6.0);
        assert_eq!(states["connections_in_commit_s"], 4.0);
        assert_eq!(states["connections_count"], 2.0);
        assert_eq!(activity.row_locks(8.0)["row_lock_wait_s"], 2.0);
        assert_eq!(activity.waits(8.0)[REDO_FILES], 6.0);
        assert_eq!(activity.waits(8.0)[LATCHES], 0.0);
    }
}
