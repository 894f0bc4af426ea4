//! Rules about work that a server puts off until after the run.

use super::{Contender, Hit};
use crate::judge::audit::table::show_bytes;
use crate::{counts, percent};

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
