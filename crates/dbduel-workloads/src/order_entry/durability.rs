//! Checks that all acknowledged New-Orders are in the table of orders.
//!
//! The specification's test of durability (TPC-C 3.5): the log of the clients compared with the data after a crash.
//! Orders are never deleted, so each acknowledged one must exist, until new orders take the numbers of lost ones;
//! hence before any further load.

use dbduel_client::commit_log::parse_series;
use dbduel_driver::{Connection, QueryError};
use dbduel_record::commits::{CommitRange, coalesce};

use super::recognise::recognise;
use super::settings::Settings;
use crate::{CommitCheck, VerifyError};

/// Compares the log with the orders.
pub(super) fn verify_commits(
    connection: &mut Connection,
    settings: &Settings,
    log: &[CommitRange],
) -> Result<CommitCheck, VerifyError> {
    recognise(connection, settings)?;
    let mut commit_check = CommitCheck::default();
    for range in coalesce(log.to_vec()).ranges {
        let district = parse_series(&range.series).ok_or_else(|| VerifyError::Series {
            series: range.series.clone(),
            expected: "no `WAREHOUSE/DISTRICT`",
        })?;
        let there = orders(connection, district, &range)?;
        let lost = range.count().saturating_sub(there);
        commit_check.acknowledged += range.count();
        commit_check.lost += lost;
        if lost > 0 && commit_check.example.is_none() {
            commit_check.example = Some(first_lost(connection, district, &range)?);
        }
    }
    let entered = entered(connection, settings)?;
    commit_check.beyond = entered.saturating_sub(commit_check.acknowledged - commit_check.lost);
    Ok(commit_check)
}

/// Number of the range's orders that exist.
fn orders(
    connection: &mut Connection,
    [warehouse, district]: [u32; 2],
    range: &CommitRange,
) -> Result<u64, QueryError> {
    let sql = format!(
        "SELECT COUNT(*) FROM orders WHERE o_w_id = {warehouse} AND o_d_id = {district} AND o_id BETWEEN {} AND {}",
        range.first, range.last
    );
    number(connection, &sql)
}

/// Orders added since the tables were filled.
fn entered(connection: &mut Connection, settings: &Settings) -> Result<u64, QueryError> {
    let filled = settings.population.customers;
    number(
        connection,
        &format!("SELECT COUNT(*) FROM orders WHERE o_id > {filled}"),
    )
}

/// The first missing order of the range, in words.
fn first_lost(
    connection: &mut Connection,
    [warehouse, district]: [u32; 2],
    range: &CommitRange,
) -> Result<String, QueryError> {
    // By halves, so that no answer is long: the lower half is complete or holds the first.
    let (mut low, mut high) = (range.first, range.last);
    while low < high {
        let half = CommitRange {
            series: String::new(),
            first: low,
            last: low + (high - low) / 2,
        };
        if orders(connection, [warehouse, district], &half)? < half.count() {
            high = half.last;
        } else {
            low = half.last + 1;
        }
    }
    Ok(format!(
        "order {low} of district {district} of warehouse {warehouse}"
    ))
}

fn number(connection: &mut Connection, sql: &str) -> Result<u64, QueryError> {
    let answer = connection.query(sql)?;
    Ok(answer
        .text(0, 0)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default())
}
