//! The server's own list of its connections: their threads, and which of them end a transaction.
//!
//! `information_schema.PROCESSLIST` of MariaDB and `performance_schema.threads` of MySQL from 5.7 on show the thread ID
//! of every connection; `SHOW PROCESSLIST`, which all versions have, does not. The queries that a server supports are
//! determined once, by trying.

use std::collections::BTreeSet;

use dbduel_driver::{Connection, Dialect, QueryError, ResultSet};

/// The list at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Connections that were ending a transaction.
    pub committing: u64,
    /// IDs of threads that serve connections; absent where the list has none.
    pub threads: Option<BTreeSet<u32>>,
}

/// A query whose columns are command, state and, if `names_threads`, thread.
#[derive(Debug)]
struct Way {
    sql: &'static str,
    columns: [&'static str; 3],
}

/// The queries, the most informative first.
const WAYS: [Way; 3] = [
    Way {
        sql: "SELECT COMMAND, STATE, TID FROM information_schema.PROCESSLIST",
        columns: ["COMMAND", "STATE", "TID"],
    },
    Way {
        sql: "SELECT PROCESSLIST_COMMAND, PROCESSLIST_STATE, THREAD_OS_ID FROM performance_schema.threads \
              WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL",
        columns: ["PROCESSLIST_COMMAND", "PROCESSLIST_STATE", "THREAD_OS_ID"],
    },
    Way {
        sql: "SHOW PROCESSLIST",
        columns: ["Command", "State", ""],
    },
];

/// The query for PostgreSQL, whose sessions are processes. Workers of the server itself have no account.
const POSTGRESQL: Way = Way {
    sql: "SELECT state AS command, pid AS tid, CASE WHEN state = 'active' AND (query ILIKE 'commit%' \
          OR wait_event IN ('WALWriteLock', 'WALSync', 'WalSync', 'WALWrite', 'WalWrite')) THEN 'commit' END AS state \
          FROM pg_stat_activity WHERE usesysid IS NOT NULL",
    columns: ["command", "state", "tid"],
};

/// Queries a server's connections, with the best query that it supports.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionList {
    /// Index into [`WAYS`]; queries before it were refused or returned nothing.
    way: usize,
}

impl SessionList {
    /// The present connections.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn ask(&mut self, connection: &mut Connection) -> Result<Sessions, QueryError> {
        if connection.dialect() == Dialect::PostgreSql {
            return Ok(read(&connection.query(POSTGRESQL.sql)?, POSTGRESQL.columns));
        }
        loop {
            let way = &WAYS[self.way];
            let is_last = self.way + 1 == WAYS.len();
            match connection.query(way.sql) {
                // The observer's own connection is in every complete list; a list without it is discarded.
                Ok(set) if set.rows.is_empty() && !is_last => self.way += 1,
                Ok(set) => return Ok(read(&set, way.columns)),
                Err(QueryError::Refused { .. }) if !is_last => self.way += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn read(set: &ResultSet, columns: [&str; 3]) -> Sessions {
    let [command, state, thread] = columns.map(|name| {
        set.columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
    });
    let text = |row: usize, column: Option<usize>| {
        let text = column.and_then(|column| set.text(row, column));
        text.unwrap_or_default().to_ascii_lowercase()
    };
    // Tasks of the server itself, such as its event scheduler, serve no client.
    let rows: Vec<usize> = (0..set.rows.len())
        .filter(|&row| text(row, command) != "daemon")
        .collect();
    let is_committing = |row: &&usize| {
        text(**row, command) != "sleep" && is_end_of_transaction(&text(**row, state))
    };
    let number = |row: &usize| text(*row, thread).parse().ok().filter(|tid| *tid > 0);
    Sessions {
        committing: rows.iter().filter(is_committing).count() as u64,
        threads: thread
            .is_some()
            .then(|| rows.iter().filter_map(number).collect()),
    }
}

/// `Commit` (MariaDB), `waiting for handler commit` (MySQL 8), `query end` (MySQL to 5.7, where the
/// statement's own transaction is ended).
fn is_end_of_transaction(state: &str) -> bool {
    state.contains("commit") || state == "query end"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_transaction_has_several_names() {
        for state in ["commit", "waiting for handler commit", "query end"] {
            assert!(is_end_of_transaction(state), "{state}");
        }
        assert!(!is_end_of_transaction("sending data"));
    }
}
