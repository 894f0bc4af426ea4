//! Rules about work that a server puts off until after the run.

use dbduel_record::event::Severity;
use dbduel_text::{counts, percent};

use super::engine::{redo_usable, redo_written};
use super::{Contender, Hit};
use crate::Product;
use crate::table::show_bytes;

/// Dirty pages beyond this share of what the run wrote are put off (a rule of thumb).
const DEBT_SHARE_MAX: f64 = 0.1;

pub fn dirty_pages(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let dirty = server.after("innodb_buffer_pool_bytes_dirty").or_else(|| {
        Some(server.after("innodb_buffer_pool_pages_dirty")? * server.after("innodb_page_size")?)
    })?;
    let written = server
        .delta("innodb_data_written")
        .filter(|&written| written > 0.0)?;
    if dirty <= DEBT_SHARE_MAX * written {
        return None;
    }
    let what = format!(
        "left {} of changed pages unwritten at the end, {} of what it wrote during the run, more than {} (a rule of thumb)",
        show_bytes(dirty),
        percent::of(dirty / written),
        percent::of(DEBT_SHARE_MAX)
    );
    Some(Hit::new(what, "Measure until flushing reaches a steady rate, or include the time until all is written.").from(contender, &["after.innodb_buffer_pool_pages_dirty", "delta.innodb_data_written"]).gauge(dirty / written / DEBT_SHARE_MAX))
}

/// Share of dead rows from which on they are a debt (a rule of thumb); autovacuum's own scale factor.
const DEAD_SHARE_MAX: f64 = 0.2;

pub fn dead_rows(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let rows = |column: &str| server.after(&format!("pg_stat_user_tables.{column}"));
    let (dead, live) = (rows("n_dead_tup")?, rows("n_live_tup")?);
    let share = dead / (dead + live);
    if share.is_nan() || share <= DEAD_SHARE_MAX {
        return None;
    }
    let what = format!(
        "left {} at the end, {} of all, more than {} (a rule of thumb)",
        counts::things(dead as u64, "dead row"),
        percent::of(share),
        percent::of(DEAD_SHARE_MAX)
    );
    let names = [
        "after.pg_stat_user_tables.n_dead_tup",
        "autovacuum",
        "autovacuum_naptime",
        "autovacuum_vacuum_scale_factor",
    ];
    let remedy =
        "Measure until autovacuum keeps up, or give it more workers and less delay on both.";
    let hit = Hit::new(what, remedy).from(contender, &names);
    Some(hit.gauge(share / DEAD_SHARE_MAX))
}

/// Redo or WAL of a run below which it has no periodic work, bytes (a rule of thumb).
const WRITES_MIN: f64 = 1_048_576.0;

/// Work that comes once in minutes and did not come during the run, with its usual period.
pub fn periodic_work(contender: &Contender<'_>) -> Option<Hit> {
    // InnoDB writes back all the time, so its redo log has to turn over only for a checkpoint that is forced.
    let (unseen, severity) = match contender.server().product {
        Product::PostgreSql => (postgresql_unseen(contender)?, Severity::Doubt),
        Product::MySql | Product::MariaDb | Product::Percona => {
            (innodb_unseen(contender)?, Severity::Note)
        }
        Product::Sqlite => return None,
    };
    if unseen.is_empty() {
        return None;
    }
    let what = format!("changed data and had no {}", unseen.join(" and no "));
    let remedy = "Measure for several of these periods, or leave that work out of the question.";
    let names = [
        "checkpoint_timeout",
        "autovacuum_naptime",
        "innodb_redo_log_capacity",
        "innodb_log_file_size",
    ];
    let mut hit = Hit::new(what, remedy).from(contender, &names);
    hit.severity = Some(severity);
    Some(hit)
}

/// `None` where the run changed next to nothing, or that is not known.
fn postgresql_unseen(contender: &Contender<'_>) -> Option<Vec<String>> {
    let server = contender.server();
    let written = server
        .delta("pg_current_wal_insert_lsn")
        .or_else(|| server.delta("pg_current_xlog_insert_location"))?;
    if written < WRITES_MIN {
        return None;
    }
    // Timers of the lab are stretched by the number of contenders, each of which is awake for its part of the time.
    let awake_s = |timer: &str| {
        let seconds = server.number(timer)?;
        Some(format!(
            "{:.0} s",
            seconds / contender.case.contenders.len() as f64
        ))
    };
    let mut unseen = Vec::new();
    let both = |one: &str, other: &str| Some(server.delta(one)? + server.delta(other)?);
    let checkpoints = both(
        "pg_stat_checkpointer.num_timed",
        "pg_stat_checkpointer.num_requested",
    )
    .or_else(|| {
        both(
            "pg_stat_bgwriter.checkpoints_timed",
            "pg_stat_bgwriter.checkpoints_req",
        )
    });
    if checkpoints == Some(0.0)
        && let Some(period) = awake_s("checkpoint_timeout")
    {
        unseen.push(format!(
            "checkpoint (every {period} of its load, or when the log has grown)"
        ));
    }
    if contender.switch("autovacuum") != Some(false)
        && server.delta("pg_stat_user_tables.autovacuum_count") == Some(0.0)
        && server
            .after("pg_stat_user_tables.n_dead_tup")
            .is_some_and(|dead| dead > 0.0)
        && let Some(period) = awake_s("autovacuum_naptime")
    {
        unseen.push(format!("autovacuum (checked every {period} of its load)"));
    }
    Some(unseen)
}

/// As for PostgreSQL.
fn innodb_unseen(contender: &Contender<'_>) -> Option<Vec<String>> {
    let written = redo_written(contender).filter(|&written| written >= WRITES_MIN)?;
    let usable = redo_usable(contender)?;
    let turnover = (written < usable).then(|| {
        format!(
            "turnover of the redo log (it wrote {}, {} of the usable {})",
            show_bytes(written),
            percent::of(written / usable),
            show_bytes(usable)
        )
    });
    Some(turnover.into_iter().collect())
}
