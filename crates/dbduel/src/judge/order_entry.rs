//! What only the order-entry workload has: NOPM, the mix, latencies by class, rollbacks, errors.
//!
//! Only slices of complete blocks count, as everywhere. Compares nothing with the specification; that is
//! what the rules are for.

#[cfg(test)]
pub mod tests;

use std::collections::BTreeMap;

use dbduel_record::event::SliceId;
use dbduel_record::latency::new_histogram;
use dbduel_record::order_entry::{CONSTRAINTS, Constraint, DISCLAIMER, NAME, NEW_ORDER};
use dbduel_record::plan::Parameters;
use dbduel_record::rows::SliceRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::{Evidence, slice_of};
use super::summary::{Figure, How};
use crate::judge::evidence::figures::{latency_quantile, ratio_over_slices};

const SECONDS_PER_MINUTE: f64 = 60.0;

/// The order-entry part of a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderEntry {
    /// What must be said beside every figure.
    pub disclaimer: String,
    /// Warehouses that the clients worked on.
    pub warehouses: u64,
    /// Whether terminals waited as people would.
    pub keying_and_think_times: bool,
    /// `bound` to their warehouse and district, or `roaming`.
    pub terminals: String,
    /// How transactions were chosen: `deck` or `weighted`.
    pub mix: String,
    /// How statements travelled.
    pub protocol: String,
    /// One entry per load level and contender.
    pub cells: Vec<OrderCell>,
    /// Deliveries, one entry per contender that says.
    pub deliveries: Vec<Deliveries>,
}

/// One contender at one load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderCell {
    /// Index into the plan's levels.
    pub level: usize,
    /// Name of the contender.
    pub contender: String,
    /// New-Orders per minute.
    pub nopm: Figure,
    /// The same of every counted slice, in the order in which they ran.
    pub nopm_by_slice: Vec<SliceNopm>,
    /// New-Orders that ended lawfully.
    pub new_orders: u64,
    /// How many of them were rolled back on purpose; absent when the record does not say.
    pub rolled_back: Option<u64>,
    /// The transaction classes in the order of the specification.
    pub classes: Vec<OrderClass>,
    /// Errors by code, those of retried statements included.
    pub errors: Vec<OrderError>,
}

/// One slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceNopm {
    /// `Block::id` of the plan.
    pub block: u32,
    /// Position in the block.
    pub position: u32,
    /// Start of the measured part, milliseconds since 1970-01-01 UTC.
    pub start_ms: u64,
    /// New-Orders per minute.
    pub nopm: f64,
}

/// One transaction class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderClass {
    /// Its name.
    pub class: String,
    /// Ended lawfully.
    pub ok: u64,
    /// Given up.
    pub failed: u64,
    /// Additional attempts, after deadlocks for example.
    pub retries: u64,
    /// Share of all transactions that ended lawfully, percent.
    pub share_percent: f64,
    /// Least share by the specification.
    pub share_min_percent: f64,
    /// Median latency, microseconds.
    pub latency_us_p50: Figure,
    /// 90 % quantile, which the specification limits.
    pub latency_us_p90: Figure,
    /// 99 % quantile.
    pub latency_us_p99: Figure,
    /// Largest 90 % quantile by the specification, microseconds.
    pub latency_us_p90_max: f64,
}

/// One error code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderError {
    /// The server's error number; 0 for a lost connection.
    pub code: u32,
    /// How often.
    pub count: u64,
    /// Text of the first.
    pub example: String,
}

/// What deliveries found, over the whole run with guards and warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deliveries {
    /// Name of the contender.
    pub contender: String,
    /// Delivery transactions.
    pub all: u64,
    /// Those that found a district without an undelivered order.
    pub with_skips: u64,
}

/// The order-entry part; none for another workload.
#[must_use]
pub fn of(evidence: &Evidence<'_>) -> Option<OrderEntry> {
    let plan = evidence.plan();
    if plan.workload.name != NAME {
        return None;
    }
    let parameters = &plan.workload.parameters;
    let cells = (0..plan.levels.len()).flat_map(|level| {
        (0..plan.contenders.len()).map(move |contender| cell(evidence, level, contender))
    });
    Some(OrderEntry {
        disclaimer: DISCLAIMER.to_owned(),
        warehouses: parameters
            .get("warehouses")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default(),
        keying_and_think_times: parameters
            .get("keying_and_think_times")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or_default(),
        terminals: text(parameters, "terminals"),
        mix: text(parameters, "mix"),
        protocol: text(parameters, "protocol"),
        cells: cells.collect(),
        deliveries: deliveries(evidence),
    })
}

fn text(parameters: &Parameters, name: &str) -> String {
    let value = parameters.get(name).and_then(serde_json::Value::as_str);
    value.unwrap_or("not recorded").to_owned()
}

fn cell(evidence: &Evidence<'_>, level: usize, contender: usize) -> OrderCell {
    let plan = evidence.plan();
    let alpha = 1.0 - plan.decision.confidence;
    let totals: Vec<&SliceRow> = evidence.levels[level].slices_of(contender).collect();
    let by_class = rows_by_class(evidence, &totals);
    let rows = |class: &str| by_class.get(class).map_or(&[][..], Vec::as_slice);
    let new_orders = rows(NEW_ORDER);
    let ended: u64 = CONSTRAINTS
        .iter()
        .flat_map(|constraint| rows(constraint.class))
        .map(|row| row.ok)
        .sum();
    let slices = totals.iter().map(|row| slice_of(row));
    let rolled_back: Option<Vec<f64>> = slices
        .map(|slice| evidence.reading(slice, "load", "rolled_back"))
        .collect();
    OrderCell {
        level,
        contender: plan.contenders[contender].name.clone(),
        nopm: nopm(new_orders, alpha),
        nopm_by_slice: by_slice(new_orders),
        new_orders: new_orders.iter().map(|row| row.ok).sum(),
        rolled_back: rolled_back.map(|counts| counts.iter().sum::<f64>() as u64),
        classes: CONSTRAINTS
            .iter()
            .map(|constraint| class(evidence, constraint, rows(constraint.class), ended, alpha))
            .collect(),
        errors: errors(evidence, &totals),
    }
}

/// The class rows of these slices, in their order.
fn rows_by_class<'e>(
    evidence: &'e Evidence<'_>,
    totals: &[&SliceRow],
) -> BTreeMap<&'e str, Vec<&'e SliceRow>> {
    let order: BTreeMap<SliceId, usize> = totals
        .iter()
        .enumerate()
        .map(|(index, row)| (slice_of(row), index))
        .collect();
    // A crash may have left a row twice; the later one counts.
    let mut found: BTreeMap<(&str, usize), &SliceRow> = BTreeMap::new();
    for row in &evidence.record.slices {
        if let Some(index) = order.get(&slice_of(row)) {
            found.insert((&row.class, *index), row);
        }
    }
    let mut by_class: BTreeMap<&str, Vec<&SliceRow>> = BTreeMap::new();
    for ((class, _), row) in found {
        by_class.entry(class).or_default().push(row);
    }
    by_class
}

fn nopm(rows: &[&SliceRow], alpha: f64) -> Figure {
    if rows.is_empty() {
        return Figure::NotMeasured {
            why: "no slice in a complete block".to_owned(),
        };
    }
    let ok: Vec<f64> = rows.iter().map(|row| row.ok as f64).collect();
    let minutes: Vec<f64> = rows
        .iter()
        .map(|row| row.measured_s / SECONDS_PER_MINUTE)
        .collect();
    ratio_over_slices(&ok, &minutes, alpha, How::NewOrders)
}

fn by_slice(rows: &[&SliceRow]) -> Vec<SliceNopm> {
    let mut slices: Vec<SliceNopm> = rows
        .iter()
        .map(|row| SliceNopm {
            block: row.block,
            position: row.position,
            start_ms: row.start_ms,
            nopm: row.ok as f64 * SECONDS_PER_MINUTE / row.measured_s,
        })
        .collect();
    slices.sort_by_key(|slice| slice.start_ms);
    slices
}

fn class(
    evidence: &Evidence<'_>,
    constraint: &Constraint,
    rows: &[&SliceRow],
    ended: u64,
    alpha: f64,
) -> OrderClass {
    let sum = |count: fn(&SliceRow) -> u64| rows.iter().map(|row| count(row)).sum::<u64>();
    let ok = sum(|row| row.ok);
    let [p50, p90, p99] = quantiles(evidence, constraint.class, rows, alpha);
    OrderClass {
        class: constraint.class.to_owned(),
        ok,
        failed: sum(|row| row.failed),
        retries: sum(|row| row.retries),
        share_percent: 100.0 * ok as f64 / (ended as f64).max(1.0),
        share_min_percent: constraint.share_min_percent,
        latency_us_p50: p50,
        latency_us_p90: p90,
        latency_us_p99: p99,
        latency_us_p90_max: constraint.latency_p90_max_s * 1e6,
    }
}

fn quantiles(evidence: &Evidence<'_>, class: &str, rows: &[&SliceRow], alpha: f64) -> [Figure; 3] {
    let histograms: Vec<_> = rows
        .iter()
        .filter_map(|row| evidence.class_latencies(slice_of(row), class))
        .collect();
    let mut merged = new_histogram();
    let is_whole = histograms.len() == rows.len()
        && histograms
            .iter()
            .all(|histogram| merged.add(histogram).is_ok());
    if !is_whole || merged.is_empty() {
        let why = match is_whole {
            true => "nothing was committed",
            false => "the latency log lacks some of the slices",
        };
        return [(); 3].map(|()| Figure::NotMeasured {
            why: why.to_owned(),
        });
    }
    // The series inside slices knows no classes, so slices are the steps of this one.
    let maxima: Vec<f64> = rows.iter().map(|row| row.latency_us_max).collect();
    [0.5, 0.9, 0.99].map(|q| latency_quantile(q, alpha, &histograms, &merged, &maxima))
}

fn errors(evidence: &Evidence<'_>, totals: &[&SliceRow]) -> Vec<OrderError> {
    let slices: Vec<SliceId> = totals.iter().map(|row| slice_of(row)).collect();
    let mut by_code: BTreeMap<u32, OrderError> = BTreeMap::new();
    for row in &evidence.record.errors {
        let (block, position) = (row.block, row.position);
        if slices.contains(&SliceId { block, position }) {
            let error = by_code.entry(row.code).or_insert_with(|| OrderError {
                code: row.code,
                count: 0,
                example: row.example.clone(),
            });
            error.count += row.count;
        }
    }
    by_code.into_values().collect()
}

/// From the counts that the conditions brought before and after.
fn deliveries(evidence: &Evidence<'_>) -> Vec<Deliveries> {
    let record = evidence.record;
    let contenders = record.plan.contenders.iter().zip(&record.contenders);
    let found = contenders.filter_map(|(contender, files)| {
        let (before, after) = (
            &files.conditions_before.as_ref()?.counts,
            &files.conditions_after.as_ref()?.counts,
        );
        let grown = |name: &str| Some(after.get(name)?.saturating_sub(*before.get(name)?));
        let districts = grown("delivered-orders")? + grown("skipped-districts")?;
        Some(Deliveries {
            contender: contender.name.clone(),
            // Every delivery visits the ten districts of a warehouse.
            all: districts / 10,
            with_skips: grown("deliveries-with-skips")?,
        })
    });
    found.collect()
}
