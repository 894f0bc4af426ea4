//! Transaction classes, for workloads that have several: counts, shares, latencies, errors, and the latencies against the
//! baseline.
//!
//! Only slices of complete blocks count, as everywhere.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_record::event::SliceId;
use dbduel_record::latency::new_histogram;
use dbduel_record::rows::{ALL_CLASSES, SliceRow};
use serde::Serialize;

use super::duel::decide::Question;
use super::duel::quantities;
use super::evidence::Evidence;
use super::evidence::blocks::CompleteBlock;
use super::evidence::figures::latency_quantile;
use super::summary::{Figure, Quantity, QuantityComparison};
use super::workloads;

/// Share of given-up transactions from which there is no verdict.
pub const FAILED_VOID: f64 = 0.01;

/// Quantities that are compared for every class.
const COMPARED: [Quantity; 2] = [Quantity::LatencyP50, Quantity::LatencyP99];

/// The classes of one contender at one load level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassCell {
    /// Index into the plan's levels.
    pub level: usize,
    /// Name of the contender.
    pub contender: String,
    /// The classes in the order of the workload.
    pub classes: Vec<ClassFigures>,
    /// Errors by code, including those of retried statements; they are not counted by class.
    pub errors: Vec<ErrorCode>,
}

/// One transaction class.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassFigures {
    /// Its name.
    pub class: String,
    /// Committed, or ended as the workload means it to.
    pub ok: u64,
    /// Given up.
    pub failed: u64,
    /// Additional attempts, after deadlocks for example.
    pub retries: u64,
    /// Share of all transactions that are ok, percent.
    pub share_percent: f64,
    /// Smallest share that the workload's specification requires; absent without a requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_min_percent: Option<f64>,
    /// Median latency, microseconds.
    pub latency_us_p50: Figure,
    /// 90 % quantile.
    pub latency_us_p90: Figure,
    /// 99 % quantile.
    pub latency_us_p99: Figure,
    /// Largest 90 % quantile that the workload's specification allows, microseconds, if it has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_p90_max: Option<f64>,
    /// Its latencies, contender ÷ baseline, within blocks; empty for the baseline. The classes of a contender share the
    /// error probability of its comparison (Bonferroni).
    pub against_baseline: Vec<QuantityComparison>,
}

/// One error code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorCode {
    /// Error code of the server: its number, or the SQLSTATE of PostgreSQL; 0 for a lost connection.
    pub code: String,
    /// Number of occurrences.
    pub count: u64,
    /// Text of the first occurrence.
    pub example: String,
}

/// One entry per load level and contender; empty for a workload of one class, and for a suite.
#[must_use]
pub fn of(evidence: &Evidence<'_>) -> Vec<ClassCell> {
    let names = names(evidence);
    let plan = evidence.plan();
    // The workloads of a suite have classes of their own.
    if names.len() < 2 || plan.suite.is_some() {
        return Vec::new();
    }
    let levels = 0..plan.levels.len();
    let cells = levels
        .flat_map(|level| (0..plan.contenders.len()).map(move |contender| (level, contender)));
    let by_class = ClassRows::of(evidence);
    cells
        .map(|(level, contender)| cell(evidence, &by_class, &names, level, contender))
        .collect()
}

/// The entry of a contender at a level.
#[must_use]
pub fn cell_of<'c>(cells: &'c [ClassCell], level: usize, contender: &str) -> Option<&'c ClassCell> {
    let mut cells = cells.iter();
    cells.find(|cell| cell.level == level && cell.contender == contender)
}

/// Classes in the order in which the load process names them. A class of which nothing was ever sent is left out:
/// transactions that were due and never sent have no class yet.
fn names(evidence: &Evidence<'_>) -> Vec<String> {
    let known = workloads::classes(&evidence.plan().workload.name).iter();
    let mut names: Vec<String> = known.map(|known| known.class.to_owned()).collect();
    if !names.is_empty() {
        return names;
    }
    for row in &evidence.record.slices {
        let is_new =
            row.class != ALL_CLASSES && row.due > row.skipped && !names.contains(&row.class);
        if is_new {
            names.push(row.class.clone());
        }
    }
    names
}

/// The rows of single classes, by slice.
pub(super) struct ClassRows<'e>(BTreeMap<(SliceId, &'e str), &'e SliceRow>);

impl<'e> ClassRows<'e> {
    /// Those of a record. A crash may have left a row twice; the later one counts.
    pub(super) fn of(evidence: &'e Evidence<'_>) -> Self {
        let rows = evidence.record.slices.iter();
        Self(
            rows.map(|row| ((row.slice(), row.class.as_str()), row))
                .collect(),
        )
    }

    /// The rows of a class in these slices, in their order; slices without one are left out.
    pub(super) fn in_slices(&self, slices: &[&SliceRow], class: &'e str) -> Vec<&'e SliceRow> {
        let rows = slices.iter().map(|row| self.0.get(&(row.slice(), class)));
        rows.flatten().copied().collect()
    }
}

fn cell<'e>(
    evidence: &'e Evidence<'_>,
    by_class: &ClassRows<'e>,
    names: &'e [String],
    level: usize,
    contender: usize,
) -> ClassCell {
    let plan = evidence.plan();
    let totals: Vec<&SliceRow> = evidence.levels[level].slices_of(contender).collect();
    let rows: Vec<Vec<&SliceRow>> = names
        .iter()
        .map(|class| by_class.in_slices(&totals, class))
        .collect();
    let ended = rows.iter().flatten().map(|row| row.ok).sum();
    let classes = names.iter().zip(&rows).map(|(class, rows)| ClassFigures {
        against_baseline: match contender == plan.baseline {
            true => Vec::new(),
            false => compare(evidence, by_class, level, contender, class, names.len()),
        },
        ..figures(evidence, class, rows, ended)
    });
    ClassCell {
        level,
        contender: plan.contenders[contender].name.clone(),
        classes: classes.collect(),
        errors: errors(evidence, &totals),
    }
}

fn figures(evidence: &Evidence<'_>, class: &str, rows: &[&SliceRow], ended: u64) -> ClassFigures {
    let plan = evidence.plan();
    let sum = |count: fn(&SliceRow) -> u64| rows.iter().map(|row| count(row)).sum::<u64>();
    let ok = sum(|row| row.ok);
    let alpha = 1.0 - plan.decision.confidence;
    let [p50, p90, p99] = latencies(evidence, class, rows, alpha);
    let mut constraints = workloads::classes(&plan.workload.name).iter();
    let constraint = constraints.find(|constraint| constraint.class == class);
    ClassFigures {
        class: class.to_owned(),
        ok,
        failed: sum(|row| row.failed),
        retries: sum(|row| row.retries),
        share_percent: 100.0 * ok as f64 / (ended as f64).max(1.0),
        share_min_percent: constraint.map(|constraint| constraint.share_min_percent),
        latency_us_p50: p50,
        latency_us_p90: p90,
        latency_us_p99: p99,
        latency_us_p90_max: constraint.map(|constraint| constraint.latency_p90_max_s * 1e6),
        against_baseline: Vec::new(),
    }
}

fn latencies(evidence: &Evidence<'_>, class: &str, rows: &[&SliceRow], alpha: f64) -> [Figure; 3] {
    let histograms: Vec<_> = rows
        .iter()
        .filter_map(|row| evidence.class_latencies(row.slice(), class))
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

/// The latencies of a class against the baseline's, from blocks that have the class in every slice.
fn compare<'e>(
    evidence: &'e Evidence<'_>,
    by_class: &ClassRows<'e>,
    level: usize,
    contender: usize,
    class: &'e str,
    classes: usize,
) -> Vec<QuantityComparison> {
    let plan = evidence.plan();
    let whole = Question::against_baseline(plan, contender, level);
    let blocks = evidence.levels[level].complete.iter();
    let blocks: Vec<CompleteBlock<'_>> = blocks
        .map(|block| CompleteBlock {
            block: block.block,
            rows: by_class.in_slices(&block.rows, class),
        })
        .filter(|block| block.rows.len() == block.block.order.len())
        .collect();
    let alpha = whole.alpha / (classes * COMPARED.len()) as f64;
    let one = |quantity: Quantity| {
        let question = Question::with_alpha(
            plan,
            [contender, plan.baseline],
            alpha,
            format!("{}/class/{class}/{}", whole.stream, quantity.stream()),
        );
        quantities::answer(evidence, &blocks, quantity, &question)
    };
    COMPARED.into_iter().map(one).collect()
}

fn errors(evidence: &Evidence<'_>, totals: &[&SliceRow]) -> Vec<ErrorCode> {
    let slices: Vec<SliceId> = totals.iter().map(|row| row.slice()).collect();
    let mut by_code: BTreeMap<&str, ErrorCode> = BTreeMap::new();
    for row in &evidence.record.errors {
        let (block, position) = (row.block, row.position);
        if slices.contains(&SliceId { block, position }) {
            let error = by_code.entry(&row.code).or_insert_with(|| ErrorCode {
                code: row.code.clone(),
                count: 0,
                example: row.example.clone(),
            });
            error.count += row.count;
        }
    }
    by_code.into_values().collect()
}
