//! Captured statements by class: counts, shares of time, latencies, what writes changed, and each class against the baseline.
//!
//! Only slices of complete blocks count, as everywhere. Compared are the classes that hold at least [`SHARE_MIN_PERCENT`] of the capture, and
//! others that hold as much of the time of a contender. The error probability of each class follows from the capture alone (`Family`), so
//! it holds whichever classes the measured times bring into the table. The mean latency of a class in a block is the sum of its latencies over their number, so the ratio of
//! two contenders is paired within blocks, and under "no difference" its sign is a fair coin toss as that of throughput. A block
//! in which one of the two has no statement of the class is left out: a loss of precision that is symmetric in the two.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dbduel_record::captured::{NAME, is_trace};
use dbduel_record::event::SliceId;
use dbduel_record::latency::new_histogram;
use dbduel_record::rows::SliceRow;
use dbduel_record::statement_classes::{StatementClass, StatementRow, split_counts};
use dbduel_record::{Plan, Record};
use dbduel_stats::StatsError;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Workload;
use crate::champions;
use crate::duel::decide::{Question, no_block};
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::evidence::figures::{latency_quantile, ratio_over_slices};
use crate::summary::{Change, Duel, Figure, How};

/// The captured workload, as the judge sees it.
pub const WORKLOAD: Workload = Workload {
    name: NAME,
    classes: &[],
    rules: rules::RULES,
    has_fixed_work: is_trace,
};

/// Share of the capture, or of the time of a contender's statements, from which a class is compared, percent.
pub const SHARE_MIN_PERCENT: f64 = 1.0;
/// Part of the error probability that the classes with such a share of the capture have together; the others have the rest.
const LARGE_PART: f64 = 0.8;

/// The classes of single statements at one load level, those with the largest share of time first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementLevel {
    /// Index into the plan's levels.
    pub level: usize,
    /// The classes of which a statement was answered in a counted slice.
    pub classes: Vec<StatementFigures>,
}

impl StatementLevel {
    /// The classes that are compared: those with a large enough share of the capture or of the time.
    pub fn compared(&self) -> impl Iterator<Item = &StatementFigures> {
        self.classes.iter().filter(|class| class.is_compared)
    }
}

/// One class of statements.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementFigures {
    /// The digits by which `dbduel capture show --class` finds it.
    pub id: String,
    /// Its text, without values.
    pub text: String,
    /// True when its statements change rows.
    pub writes: bool,
    /// True when it is compared: it holds at least 1 % of the capture (of its time where the log has durations, else of its
    /// statements), or of the time of the statements of a contender.
    pub is_compared: bool,
    /// What the capture says about it.
    pub captured: CapturedFigures,
    /// One entry per contender.
    pub contenders: Vec<StatementCell>,
}

impl StatementFigures {
    /// The largest share of a contender's time, percent.
    #[must_use]
    pub fn share_percent_max(&self) -> f64 {
        let shares = self.contenders.iter().map(|cell| cell.time_share_percent);
        shares.fold(0.0, f64::max)
    }
}

/// A class of statements in the capture: of the transactions that clients draw, and settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedFigures {
    /// Its statements.
    pub statements: u64,
    /// Its share of the statements, percent.
    pub share_percent: f64,
    /// Its share of their time, percent; absent where the log has no durations.
    pub time_share_percent: Option<f64>,
    /// Share of its statements that changed no row, percent; absent for reads, and where the log does not say so.
    pub unchanged_percent: Option<f64>,
}

impl CapturedFigures {
    /// True for a class that holds [`SHARE_MIN_PERCENT`] of the capture: of its time where the log has durations, else of its statements.
    fn is_large(&self) -> bool {
        self.time_share_percent.unwrap_or(self.share_percent) >= SHARE_MIN_PERCENT
    }
}

/// The statements of one class on one contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementCell {
    /// Name of the contender.
    pub contender: String,
    /// Answered without an error.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Errors by code, most frequent first.
    pub errors: Vec<StatementErrors>,
    /// Share of the time of the contender's statements, percent.
    pub time_share_percent: f64,
    /// Rows returned per statement.
    pub rows_returned_mean: f64,
    /// Share of the statements that changed no row, percent; absent for reads.
    pub unchanged_percent: Option<f64>,
    /// Share of the statements that failed because their key exists, percent; absent for reads.
    pub key_exists_percent: Option<f64>,
    /// Mean latency, microseconds.
    pub latency_us_mean: Figure,
    /// Median latency.
    pub latency_us_p50: Figure,
    /// 95 % quantile.
    pub latency_us_p95: Figure,
    /// 99 % quantile.
    pub latency_us_p99: Figure,
    /// Its mean latency against the baseline's; absent for the baseline, and for classes that are not compared.
    pub against_baseline: Option<StatementComparison>,
}

/// One error code of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementErrors {
    /// The server's error number, or the SQLSTATE of PostgreSQL.
    pub code: String,
    /// Number of occurrences.
    pub count: u64,
}

/// The mean latency of a class against that of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementComparison {
    /// Verdict on the mean latency.
    pub change: Change,
    /// Contender ÷ baseline, within blocks.
    pub ratio: Figure,
    /// Probability that anything said here is wrong: all classes of the capture share that of the contender's comparison in parts that
    /// the capture fixes (Bonferroni).
    pub alpha: f64,
    /// Blocks after which the answer first stood, of those that have the class.
    pub decided_at_block: Option<usize>,
}

/// One entry per load level; empty where single statements were not measured.
#[must_use]
pub fn of(evidence: &Evidence<'_>) -> Vec<StatementLevel> {
    if evidence.record.statements.is_empty() {
        return Vec::new();
    }
    let rows = Rows::of(&evidence.record.statements);
    let levels = 0..evidence.plan().levels.len();
    let levels = levels.map(|level| level_of(evidence, &rows, level));
    levels.filter(|level| !level.classes.is_empty()).collect()
}

/// The classes of single statements at one level; empty where they were not measured.
#[must_use]
pub fn at(evidence: &Evidence<'_>, level: usize) -> StatementLevel {
    let rows = Rows::of(&evidence.record.statements);
    level_of(evidence, &rows, level)
}

/// Classes of a level that hold enough of the capture to be waited for, and are not decided on every contender. Small classes,
/// whose part of the error probability is smaller still, are not waited for.
#[must_use]
pub fn undecided_classes(record: &Record, level: usize) -> usize {
    if record.statements.is_empty() {
        return 0;
    }
    let judged = champions::judged_record(record);
    let evidence = Evidence::of(judged.as_ref().unwrap_or(record));
    let figures = at(&evidence, level);
    let large = figures.compared().filter(|class| class.captured.is_large());
    let undecided = large.filter(|class| {
        let mut comparisons = class
            .contenders
            .iter()
            .filter_map(|cell| cell.against_baseline.as_ref());
        comparisons.any(|one| one.change == Change::Undecided)
    });
    undecided.count()
}

/// Takes away the verdicts on classes of contenders whose verdict as a whole is void.
pub fn apply_voids(levels: &mut [StatementLevel], duels: &[Duel]) {
    for level in levels {
        let duel = duels.iter().find(|duel| duel.level == level.level);
        let void: Vec<&str> = duel
            .into_iter()
            .flat_map(|duel| &duel.comparisons)
            .filter(|one| one.verdict == dbduel_record::Verdict::Void)
            .map(|one| one.contender.as_str())
            .collect();
        let cells = level.classes.iter_mut().flat_map(|one| &mut one.contenders);
        for cell in cells.filter(|cell| void.contains(&cell.contender.as_str())) {
            if let Some(comparison) = &mut cell.against_baseline {
                comparison.change = Change::NotCompared;
            }
        }
    }
}

/// The rows of single classes, by slice. A crash may have left a row twice; the later one counts.
struct Rows<'e>(BTreeMap<(&'e str, SliceId), &'e StatementRow>);

impl<'e> Rows<'e> {
    fn of(rows: &'e [StatementRow]) -> Self {
        let rows = rows.iter();
        Self(
            rows.map(|row| ((row.statement.as_str(), row.slice()), row))
                .collect(),
        )
    }

    fn of_class(
        &self,
        class: &'e str,
        slices: impl Iterator<Item = SliceId>,
    ) -> Vec<&'e StatementRow> {
        let rows = slices.map(|slice| self.0.get(&(class, slice)));
        rows.flatten().copied().collect()
    }
}

/// The rows of one class at one level, by contender.
struct OfClass<'e> {
    class: &'e StatementClass,
    contenders: Vec<Vec<&'e StatementRow>>,
    /// Share of the time of each contender, percent.
    shares_percent: Vec<f64>,
}

fn level_of(evidence: &Evidence<'_>, rows: &Rows<'_>, level: usize) -> StatementLevel {
    let plan = evidence.plan();
    let contenders = 0..plan.contenders.len();
    let slices_of = |contender| {
        let slices = evidence.levels[level].slices_of(contender);
        slices.map(SliceRow::slice).collect::<Vec<SliceId>>()
    };
    let slices: Vec<Vec<SliceId>> = contenders.map(slices_of).collect();
    let known = &evidence.record.statement_classes.classes;
    let mut classes: Vec<OfClass<'_>> = known
        .iter()
        .map(|class| OfClass {
            class,
            contenders: slices
                .iter()
                .map(|slices| rows.of_class(&class.id, slices.iter().copied()))
                .collect(),
            shares_percent: Vec::new(),
        })
        .filter(|class| class.contenders.iter().any(|rows| !rows.is_empty()))
        .collect();
    let time_us = |rows: &[&StatementRow]| -> f64 {
        let times = rows
            .iter()
            .map(|row| row.latency_us_sum + row.failed_us_sum);
        times.sum()
    };
    let totals_us: Vec<f64> = (0..plan.contenders.len())
        .map(|who| {
            classes
                .iter()
                .map(|class| time_us(&class.contenders[who]))
                .sum()
        })
        .collect();
    for class in &mut classes {
        let own = class.contenders.iter().zip(&totals_us);
        let shares = own.map(|(rows, total)| 100.0 * time_us(rows) / total.max(f64::MIN_POSITIVE));
        class.shares_percent = shares.collect();
    }
    let largest = |class: &OfClass<'_>| class.shares_percent.iter().copied().fold(0.0, f64::max);
    classes.sort_by(|one, other| largest(other).total_cmp(&largest(one)));
    let family = Family::of(known);
    let is_compared =
        |class: &OfClass<'_>| family.is_large(class.class) || largest(class) >= SHARE_MIN_PERCENT;
    let whole = Captured::of(known);
    let figures = classes.iter().map(|class| StatementFigures {
        id: class.class.id.clone(),
        text: class.class.text.clone(),
        writes: class.class.writes,
        is_compared: is_compared(class),
        captured: whole.figures(class.class),
        contenders: (0..plan.contenders.len())
            .map(|who| {
                let mut cell = cell(plan, class, who);
                if is_compared(class) && who != plan.baseline {
                    let compared = compare(evidence, class, level, who, family.part(class.class));
                    cell.against_baseline = Some(compared);
                }
                cell
            })
            .collect(),
    });
    StatementLevel {
        level,
        classes: figures.collect(),
    }
}

/// How the classes of a capture share the error probability of a comparison. The capture alone decides, before anything is measured: a
/// class that grows under measurement cannot take from the others, and which classes are shown does not matter to the error.
struct Family {
    whole: Captured,
    /// Parts of one class of each kind; they sum to 1 over all classes.
    large: f64,
    small: f64,
}

impl Family {
    fn of(classes: &[StatementClass]) -> Self {
        let mut family = Self {
            whole: Captured::of(classes),
            large: 0.0,
            small: 0.0,
        };
        let large = classes
            .iter()
            .filter(|class| family.is_large(class))
            .count();
        let small = classes.len() - large;
        let part_of_large = match (large, small) {
            (0, _) => 0.0,
            (_, 0) => 1.0,
            _ => LARGE_PART,
        };
        family.large = part_of_large / large.max(1) as f64;
        family.small = (1.0 - part_of_large) / small.max(1) as f64;
        family
    }

    fn is_large(&self, class: &StatementClass) -> bool {
        self.whole.figures(class).is_large()
    }

    fn part(&self, class: &StatementClass) -> f64 {
        match self.is_large(class) {
            true => self.large,
            false => self.small,
        }
    }
}

/// The statements of all classes in the capture.
struct Captured {
    statements: u64,
    seconds: f64,
}

impl Captured {
    fn of(classes: &[StatementClass]) -> Self {
        Captured {
            statements: classes.iter().map(|class| class.captured).sum(),
            seconds: classes.iter().map(|class| class.captured_s).sum(),
        }
    }

    fn figures(&self, class: &StatementClass) -> CapturedFigures {
        CapturedFigures {
            statements: class.captured,
            share_percent: percent_of(class.captured, self.statements).unwrap_or(0.0),
            time_share_percent: (self.seconds > 0.0)
                .then(|| 100.0 * class.captured_s / self.seconds),
            unchanged_percent: percent_of(class.captured_unchanged, class.captured_with_rows),
        }
    }
}

/// A share in percent; `None` of nothing.
fn percent_of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn cell(plan: &Plan, class: &OfClass<'_>, who: usize) -> StatementCell {
    let rows = class.contenders[who].as_slice();
    let sum = |count: fn(&StatementRow) -> u64| rows.iter().map(|row| count(row)).sum::<u64>();
    let (ok, failed) = (sum(|row| row.ok), sum(|row| row.failed));
    let of_writes = |part: u64| percent_of(part, ok + failed).filter(|_| class.class.writes);
    let alpha = 1.0 - plan.decision.confidence;
    let sums_us: Vec<f64> = rows.iter().map(|row| row.latency_us_sum).collect();
    let numbers: Vec<f64> = rows.iter().map(|row| row.ok as f64).collect();
    let [p50, p95, p99] = quantiles(rows, alpha);
    StatementCell {
        contender: plan.contenders[who].name.clone(),
        ok,
        failed,
        errors: errors(rows),
        time_share_percent: class.shares_percent[who],
        rows_returned_mean: sum(|row| row.rows_returned) as f64 / (ok as f64).max(1.0),
        unchanged_percent: of_writes(sum(|row| row.unchanged)),
        key_exists_percent: of_writes(sum(|row| row.key_exists)),
        latency_us_mean: match ok {
            0 => not_answered(),
            _ => ratio_over_slices(&sums_us, &numbers, alpha, How::LatencySum),
        },
        latency_us_p50: p50,
        latency_us_p95: p95,
        latency_us_p99: p99,
        against_baseline: None,
    }
}

fn not_answered() -> Figure {
    Figure::NotMeasured {
        why: "no statement was answered without an error".to_owned(),
    }
}

/// Quantiles of the latencies, with slices as the steps of the series.
fn quantiles(rows: &[&StatementRow], alpha: f64) -> [Figure; 3] {
    let histograms: Vec<Histogram<u64>> = rows
        .iter()
        .filter(|row| row.ok > 0)
        .map(|row| histogram(row))
        .collect();
    let mut merged = new_histogram();
    let is_whole = histograms.iter().all(|one| merged.add(one).is_ok());
    if !is_whole || merged.is_empty() {
        return [(); 3].map(|()| not_answered());
    }
    let maxima: Vec<f64> = histograms
        .iter()
        .map(|one| one.max() as f64 / 1e3)
        .collect();
    [0.5, 0.95, 0.99].map(|q| latency_quantile(q, alpha, &histograms, &merged, &maxima))
}

/// The latencies of a row; its entries were checked when it was read.
fn histogram(row: &StatementRow) -> Histogram<u64> {
    let mut histogram = new_histogram();
    for (latency_ns, count) in split_counts(&row.latencies).flatten() {
        histogram.saturating_record_n(latency_ns, count);
    }
    histogram
}

fn errors(rows: &[&StatementRow]) -> Vec<StatementErrors> {
    let mut by_code: BTreeMap<String, u64> = BTreeMap::new();
    for (code, count) in rows
        .iter()
        .flat_map(|row| split_counts(&row.errors))
        .flatten()
    {
        *by_code.entry(code).or_default() += count;
    }
    let errors = by_code.into_iter();
    let mut errors: Vec<StatementErrors> = errors
        .map(|(code, count)| StatementErrors { code, count })
        .collect();
    errors.sort_by_key(|one| std::cmp::Reverse(one.count));
    errors
}

/// The mean latency of a class against the baseline's, from the blocks that have the class on both. `part` is that of the error probability
/// of the whole comparison.
fn compare(
    evidence: &Evidence<'_>,
    class: &OfClass<'_>,
    level: usize,
    contender: usize,
    part: f64,
) -> StatementComparison {
    let plan = evidence.plan();
    let whole = Question::against_baseline(plan, contender, level);
    let question = Question::with_alpha(
        plan,
        [contender, plan.baseline],
        whole.alpha * part,
        format!("{}/statement/{}", whole.stream, class.class.id),
    );
    let mut comparison = StatementComparison {
        change: Change::NotCompared,
        ratio: no_block(),
        alpha: question.alpha,
        decided_at_block: None,
    };
    let (own, reference) = (means(class, contender), means(class, plan.baseline));
    let with_class = |block: &CompleteBlock<'_>| {
        let id = block.block.id;
        Some((own.get(&id)? / reference.get(&id)?).ln()).filter(|ratio| ratio.is_finite())
    };
    let pairs = evidence.levels[level].complete.iter();
    let (blocks, differences): (Vec<CompleteBlock<'_>>, Vec<f64>) = pairs
        .filter_map(|block| Some((block.clone(), with_class(block)?)))
        .unzip();
    if blocks.is_empty() {
        let why = "no block has the class on both contenders".to_owned();
        comparison.ratio = Figure::NotMeasured { why };
        return comparison;
    }
    if let Err(error) = conclude(&mut comparison, &question, &blocks, &differences) {
        comparison.ratio = Figure::NotMeasured {
            why: error.to_string(),
        };
    }
    comparison
}

fn conclude(
    comparison: &mut StatementComparison,
    question: &Question<'_>,
    blocks: &[CompleteBlock<'_>],
    differences: &[f64],
) -> Result<(), StatsError> {
    let conclusion = question.conclude(blocks, differences)?;
    comparison.change = conclusion.verdict.into();
    comparison.decided_at_block = conclusion.decided_at_block;
    comparison.ratio = conclusion.ratio;
    Ok(())
}

/// The mean latency of a class in each block in which a statement of it was answered without an error, microseconds.
fn means(class: &OfClass<'_>, contender: usize) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for row in class.contenders[contender].iter().filter(|row| row.ok > 0) {
        let (sum_us, number) = sums.entry(row.block).or_default();
        *sum_us += row.latency_us_sum;
        *number += row.ok as f64;
    }
    let sums = sums.into_iter();
    sums.map(|(block, (sum_us, number))| (block, sum_us / number))
        .collect()
}
