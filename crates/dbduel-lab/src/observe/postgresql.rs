//! A PostgreSQL server's own counters, as rows of a name and a number.
//!
//! A name is a statistics view without `pg_stat_`, and its column: `bgwriter.buffers_clean`. Positions of the log are
//! exact. For the others, a session reports its work at most once a second, or on request (from 15 on), which clients
//! do in the guard and after a slice.

use std::collections::HashMap;

use dbduel_driver::{Connection, QueryError};

/// A part of the query, and the major versions that have it.
struct Part {
    from: u32,
    to: u32,
    sql: &'static str,
}

const fn part(from: u32, to: u32, sql: &'static str) -> Part {
    Part { from, to, sql }
}

const NEWEST: u32 = u32::MAX;

/// In views of one row all columns but the time of the last reset are numbers.
const PARTS: &[Part] = &[
    part(
        9,
        9,
        "SELECT 'log.inserted' AS name, (pg_current_xlog_insert_location() - '0/0')::text AS value",
    ),
    part(
        10,
        NEWEST,
        "SELECT 'log.inserted' AS name, (pg_current_wal_insert_lsn() - '0/0')::text AS value",
    ),
    part(
        9,
        9,
        "SELECT 'log.checkpoint', (redo_location - '0/0')::text FROM pg_control_checkpoint()",
    ),
    part(
        10,
        NEWEST,
        "SELECT 'log.checkpoint', (redo_lsn - '0/0')::text FROM pg_control_checkpoint()",
    ),
    part(
        9,
        NEWEST,
        "SELECT 'tables.dead_rows', coalesce(sum(n_dead_tup), 0)::text FROM pg_stat_user_tables",
    ),
    part(
        9,
        NEWEST,
        "SELECT 'database.' || c.key, sum(c.value::numeric)::text \
         FROM pg_stat_database v, LATERAL json_each_text(row_to_json(v)) c \
         WHERE c.key IN ('blks_hit', 'blks_read', 'tup_inserted', 'tup_updated', 'tup_deleted', 'temp_files', 'deadlocks') \
         GROUP BY c.key",
    ),
    part(
        9,
        NEWEST,
        "SELECT 'bgwriter.' || c.key, c.value \
         FROM pg_stat_bgwriter v, LATERAL json_each_text(row_to_json(v)) c WHERE c.key <> 'stats_reset'",
    ),
    part(
        14,
        NEWEST,
        "SELECT 'wal.' || c.key, c.value \
         FROM pg_stat_wal v, LATERAL json_each_text(row_to_json(v)) c WHERE c.key <> 'stats_reset'",
    ),
    part(
        17,
        NEWEST,
        "SELECT 'checkpointer.' || c.key, c.value \
         FROM pg_stat_checkpointer v, LATERAL json_each_text(row_to_json(v)) c WHERE c.key <> 'stats_reset'",
    ),
    part(
        16,
        17,
        "SELECT 'io.read_bytes', sum(reads * op_bytes)::text FROM pg_stat_io \
         UNION ALL SELECT 'io.write_bytes', sum(writes * op_bytes)::text FROM pg_stat_io \
         UNION ALL SELECT 'io.fsyncs', sum(fsyncs)::text FROM pg_stat_io",
    ),
    part(
        18,
        NEWEST,
        "SELECT 'io.read_bytes', sum(read_bytes)::text FROM pg_stat_io WHERE object <> 'wal' \
         UNION ALL SELECT 'io.write_bytes', sum(write_bytes)::text FROM pg_stat_io WHERE object <> 'wal' \
         UNION ALL SELECT 'io.fsyncs', sum(fsyncs)::text FROM pg_stat_io WHERE object <> 'wal' \
         UNION ALL SELECT 'io.wal_fsyncs', sum(fsyncs)::text FROM pg_stat_io WHERE object = 'wal'",
    ),
    part(
        17,
        NEWEST,
        "SELECT 'io.session_writes', sum(writes)::text FROM pg_stat_io \
         WHERE backend_type = 'client backend' AND object = 'relation'",
    ),
];

/// The present counters.
///
/// # Errors
/// When the server does not answer, or refuses the query.
pub fn counters(connection: &mut Connection) -> Result<HashMap<String, f64>, QueryError> {
    let sql = statement(major(connection.server_version()));
    let set = connection.query(&sql)?;
    let rows = (0..set.rows.len())
        .filter_map(|row| Some((set.text(row, 0)?, set.text(row, 1)?.parse().ok()?)));
    Ok(rows.collect())
}

/// The first number of a version; 9 for versions before 10.
pub(super) fn major(version: &str) -> u32 {
    let digits = version.find(|c: char| !c.is_ascii_digit());
    version[..digits.unwrap_or(version.len())]
        .parse()
        .unwrap_or(9)
}

fn statement(major: u32) -> String {
    let parts = PARTS.iter();
    let parts: Vec<&str> = parts
        .filter(|part| (part.from..=part.to).contains(&major))
        .map(|part| part.sql)
        .collect();
    parts.join(" UNION ALL ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_asked_for_what_it_has() {
        assert_eq!(major("9.6.24"), 9);
        assert_eq!(major("15.18 (Debian 15.18-0+deb12u1)"), 15);
        let old = statement(9);
        assert!(old.contains("xlog") && !old.contains("pg_stat_wal") && !old.contains("lsn"));
        let middle = statement(16);
        assert!(middle.contains("op_bytes") && middle.contains("pg_stat_wal v"));
        let new = statement(18);
        assert!(!new.contains("op_bytes") && new.contains("pg_stat_checkpointer"));
        assert!(new.starts_with("SELECT 'log.inserted' AS name"));
    }
}
