//! Ends statements that a server will never answer.
//!
//! A statement may take hours, so its age alone proves nothing. One without an answer for an interval is looked up in
//! the server's process list (`pg_stat_activity` with PostgreSQL), over a separate connection. When the server does
//! not answer that connection either, or no longer executes the statement, the statement's connection is shut down,
//! which ends its wait with an error.
//!
//! A statement costs two stores in memory and no clock read; the watch's thread compares snapshots.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};

use crate::address::Address;
use crate::{ConnectOptions, Connection, Credentials, Dialect, QueryError};

/// Longest time for the watch's own login, and again for its statement.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for a statement, even one that the server still executes.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Checks per interval: a statement is overdue by at most a quarter of an interval when it is checked.
const LOOKS_PER_INTERVAL: u32 = 4;
/// Consecutive checks in which a server must report that it does not execute a statement. At the first, the answer may
/// be on its way.
const IDLE_CHECKS: u32 = 2;

/// PostgreSQL's processes and whether they are idle: unknown for those of other accounts, or when the server tracks no
/// states (`track_activities`).
const POSTGRESQL_PROCESSES: &str = "SELECT pid, state LIKE 'idle%' FROM pg_stat_activity";

/// Watches statements of connections. Clones share one thread, which ends with the last of them.
#[derive(Clone)]
pub struct StatementWatch(Arc<Shared>);

struct Shared {
    /// Credentials of the watch's own login.
    credentials: Credentials,
    options: ConnectOptions,
    interval: Duration,
    connections: Mutex<HashMap<u64, Entry>>,
    next: AtomicU64,
}

/// One connection, as the thread sees it.
struct Entry {
    slot: Arc<Slot>,
    socket: RawFd,
    address: Address,
    /// The server's number of the connection.
    id: u32,
    /// The statement at the last snapshot, and since when it has been there.
    seen: (u64, Instant),
    checked: Instant,
    idle_checks: u32,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counter that changes with every statement; odd while one waits for its answer.
    statement: AtomicU64,
    /// Why the connection was shut down.
    reason: OnceLock<String>,
}

/// A watched connection, until this is dropped. The socket must be open until then.
pub(crate) struct WatchedConnection {
    slot: Arc<Slot>,
    key: u64,
    watch: StatementWatch,
}

impl StatementWatch {
    /// Starts a watch that checks statements without an answer every `interval`. It logs in with these credentials and
    /// options, whose deadlines are its own.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        credentials: Credentials,
        options: ConnectOptions,
        interval: Duration,
    ) -> io::Result<Self> {
        let options = ConnectOptions {
            deadline: ANSWER_TIMEOUT,
            statement_deadline: ANSWER_TIMEOUT,
            ..options
        };
        let shared = Arc::new(Shared {
            credentials,
            options,
            interval,
            connections: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let weak = Arc::downgrade(&shared);
        Builder::new()
            .name("statement-watch".to_owned())
            .spawn(move || keep_looking(&weak, interval / LOOKS_PER_INTERVAL))?;
        Ok(StatementWatch(shared))
    }

    /// Watches a connection from now on. `id` is the server's number of it.
    pub(crate) fn enter(
        &self,
        socket: BorrowedFd<'_>,
        address: &Address,
        id: u32,
    ) -> WatchedConnection {
        let slot = Arc::new(Slot::default());
        let key = self.0.next.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let entry = Entry {
            slot: Arc::clone(&slot),
            socket: socket.as_raw_fd(),
            address: address.clone(),
            id,
            seen: (0, now),
            checked: now,
            idle_checks: 0,
        };
        self.0.connections().insert(key, entry);
        WatchedConnection {
            slot,
            key,
            watch: self.clone(),
        }
    }
}

impl fmt::Debug for StatementWatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("StatementWatch")
    }
}

impl WatchedConnection {
    /// Called when a statement is sent. There is one writer, so no locked instruction is needed.
    #[inline]
    pub(crate) fn begin(&self) {
        let statement = &self.slot.statement;
        let next = (statement.load(Ordering::Relaxed) | 1) + 2;
        statement.store(next, Ordering::Relaxed);
    }

    /// Called when its answer is complete or will not come.
    #[inline]
    pub(crate) fn end(&self) {
        let statement = &self.slot.statement;
        statement.store(statement.load(Ordering::Relaxed) & !1, Ordering::Relaxed);
    }

    /// The error of a wait, with the reason when this watch ended it.
    #[cold]
    pub(crate) fn explain(&self, error: io::Error) -> io::Error {
        match self.slot.reason.get() {
            Some(reason) => io::Error::new(io::ErrorKind::TimedOut, reason.as_str()),
            None => error,
        }
    }
}

impl fmt::Debug for WatchedConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WatchedConnection")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

impl Drop for WatchedConnection {
    fn drop(&mut self) {
        self.watch.0.connections().remove(&self.key);
    }
}

/// Checks repeatedly, until the watch is dropped.
fn keep_looking(shared: &Weak<Shared>, pause: Duration) {
    loop {
        std::thread::sleep(pause);
        match shared.upgrade() {
            Some(shared) => shared.look(),
            None => return,
        }
    }
}

/// A statement that is to be checked.
struct Overdue {
    key: u64,
    statement: u64,
    address: Address,
    id: u32,
}

/// A server's report on its connections.
enum Processes {
    /// No working server, for this reason.
    None(String),
    /// A working server that does not list its connections under the ids from their greetings: its process list is
    /// full, or it is a proxy.
    Unlisted,
    /// Whether a connection executes a statement, by the server's id of it.
    Listed(HashMap<u32, bool>),
}

/// Result of a check.
enum CheckResult {
    Fine,
    Idle(&'static str),
    Dead(String),
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) {
        let overdue = self.overdue(Instant::now());
        let mut servers = BTreeMap::new();
        for one in &overdue {
            let processes = servers
                .entry(one.address.to_string())
                .or_insert_with(|| self.processes(&one.address));
            self.judge(one, processes);
        }
    }

    /// Statements that have been without an answer for an interval since they were seen or checked.
    fn overdue(&self, now: Instant) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for (&key, entry) in self.connections().iter_mut() {
            let statement = entry.slot.statement.load(Ordering::Relaxed);
            if statement != entry.seen.0 || statement & 1 == 0 {
                entry.seen = (statement, now);
                entry.checked = now;
                entry.idle_checks = 0;
            } else if now.duration_since(entry.checked) >= self.interval {
                entry.checked = now;
                overdue.push(Overdue {
                    key,
                    statement,
                    address: entry.address.clone(),
                    id: entry.id,
                });
            }
        }
        overdue
    }

    /// Queries a server for its connections.
    fn processes(&self, address: &Address) -> Processes {
        let mut connection = match Connection::connect(address, &self.credentials, &self.options) {
            Ok(connection) => connection,
            Err(error) if error.refused().is_some() => return Processes::Unlisted,
            Err(error) => return Processes::None(cause(&error)),
        };
        let own = connection.id();
        let sql = match self.options.dialect {
            Dialect::PostgreSql => POSTGRESQL_PROCESSES,
            // Connections to SQLite are not watched.
            Dialect::MySql | Dialect::Sqlite => "SHOW PROCESSLIST",
        };
        let list = match connection.query(sql) {
            Ok(list) if list.rows.is_empty() => {
                return Processes::None("its process list is empty".to_owned());
            }
            Ok(list) => list,
            Err(QueryError::Refused { .. }) => return Processes::Unlisted,
            Err(error) => return Processes::None(cause(&error)),
        };
        let listed: HashMap<u32, bool> = (0..list.rows.len())
            .filter_map(|row| {
                let id = list.text(row, 0)?.parse().ok()?;
                let is_idle = match self.options.dialect {
                    Dialect::MySql | Dialect::Sqlite => list.text(row, 4)? == "Sleep",
                    Dialect::PostgreSql => list.text(row, 1).as_deref() == Some("t"),
                };
                Some((id, !is_idle))
            })
            .collect();
        match listed.contains_key(&own) {
            true => Processes::Listed(listed),
            false => Processes::Unlisted,
        }
    }

    /// Shuts a connection down when its statement will not be answered.
    fn judge(&self, overdue: &Overdue, processes: &Processes) {
        let mut connections = self.connections();
        let Some(entry) = connections.get_mut(&overdue.key) else {
            return;
        };
        let is_same = entry.slot.statement.load(Ordering::Relaxed) == overdue.statement;
        if !is_same {
            return;
        }
        let age = entry.seen.1.elapsed();
        let finding = match processes {
            _ if age >= STATEMENT_TIMEOUT => {
                CheckResult::Dead("the longest time for a statement".to_owned())
            }
            Processes::None(why) => CheckResult::Dead(format!(
                "and the server does not serve a new connection: {why}"
            )),
            Processes::Unlisted => CheckResult::Fine,
            // The reader is busy, which says nothing of the server.
            Processes::Listed(_) if has_arrived(entry.socket) => CheckResult::Fine,
            Processes::Listed(listed) => match listed.get(&overdue.id) {
                Some(true) => CheckResult::Fine,
                Some(false) => CheckResult::Idle("the server no longer executes the statement"),
                None => CheckResult::Idle("the server no longer lists the connection"),
            },
        };
        let why = match finding {
            CheckResult::Fine => {
                entry.idle_checks = 0;
                return;
            }
            CheckResult::Idle(why) => {
                entry.idle_checks += 1;
                if entry.idle_checks < IDLE_CHECKS {
                    return;
                }
                why.to_owned()
            }
            CheckResult::Dead(why) => why,
        };
        let reason = format!("no answer for {} s, {why}", age.as_secs());
        // The reason must be there when the shutdown wakes the reader.
        let _ = entry.slot.reason.set(reason);
        let _ = shutdown(entry.socket, Shutdown::Both);
    }
}

/// True when there are bytes to be read, or the connection has ended, which its reader will see by itself.
fn has_arrived(socket: RawFd) -> bool {
    // SAFETY: an entry goes before its socket is closed, and the entries are locked.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut polled, PollTimeout::ZERO), Ok(1..))
}

/// The innermost cause of an error.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
