//! Figures of the order-entry workload alone: NOPM, rollbacks, deliveries.
//!
//! Only slices of complete blocks count, as everywhere. Its rules compare them with the specification.

mod rules;
#[cfg(test)]
mod tests;

use dbduel_record::order_entry::{CONSTRAINTS, DISCLAIMER, NAME, NEW_ORDER};
use dbduel_record::plan::Parameters;
use dbduel_record::rows::SliceRow;
use serde::Serialize;

use super::Workload;
use crate::classes::ClassRows;
use crate::evidence::Evidence;
use crate::evidence::figures::ratio_over_slices;
use crate::summary::{Figure, How};

/// Order entry, as the judge sees it.
pub const WORKLOAD: Workload = Workload {
    name: NAME,
    classes: &CONSTRAINTS,
    rules: rules::RULES,
    has_fixed_work: |_| false,
};

const SECONDS_PER_MINUTE: f64 = 60.0;

/// The order-entry part of a summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderEntry {
    /// Disclaimer that belongs beside every figure.
    pub disclaimer: String,
    /// Warehouses that the clients worked on.
    pub warehouses: u64,
    /// True when terminals kept keying and think times.
    pub keying_and_think_times: bool,
    /// `bound` to their warehouse and district, or `roaming`.
    pub terminals: String,
    /// How transactions were chosen: `deck` or `weighted`.
    pub mix: String,
    /// Protocol of the statements.
    pub protocol: String,
    /// One entry per load level and contender.
    pub cells: Vec<OrderCell>,
    /// Deliveries, one entry per contender that counts them.
    pub deliveries: Vec<Deliveries>,
}

/// One contender at one load level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderCell {
    /// Index into the plan's levels.
    pub level: usize,
    /// Name of the contender.
    pub contender: String,
    /// New-Orders per minute.
    pub nopm: Figure,
    /// The same of every counted slice, in the order in which they ran.
    pub nopm_by_slice: Vec<SliceNopm>,
    /// Completed New-Orders.
    pub new_orders: u64,
    /// How many of them were rolled back on purpose; absent when the record does not have it.
    pub rolled_back: Option<u64>,
}

/// One slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Outcome of deliveries, over the whole run with guards and warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    let by_class = &ClassRows::of(evidence);
    let cells = (0..plan.levels.len()).flat_map(|level| {
        (0..plan.contenders.len()).map(move |contender| cell(evidence, by_class, level, contender))
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

fn cell<'e>(
    evidence: &'e Evidence<'_>,
    by_class: &ClassRows<'e>,
    level: usize,
    contender: usize,
) -> OrderCell {
    let plan = evidence.plan();
    let alpha = 1.0 - plan.decision.confidence;
    let totals: Vec<&SliceRow> = evidence.levels[level].slices_of(contender).collect();
    let new_orders = by_class.in_slices(&totals, NEW_ORDER);
    let slices = totals.iter().map(|row| row.slice());
    let rolled_back: Option<Vec<f64>> = slices
        .map(|slice| evidence.reading(slice, "load", "rolled_back"))
        .collect();
    OrderCell {
        level,
        contender: plan.contenders[contender].name.clone(),
        nopm: nopm(&new_orders, alpha),
        nopm_by_slice: by_slice(&new_orders),
        new_orders: new_orders.iter().map(|row| row.ok).sum(),
        rolled_back: rolled_back.map(|counts| counts.iter().sum::<f64>() as u64),
    }
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
