//! Latency and cost of two contenders, within blocks and at every moment of the run at once, like
//! throughput.
//!
//! A latency quantile is that of a typical slice: the ratio of the slices' own quantiles, so it needs enough
//! transactions in every slice. The quantities of a comparison share its error probability equally (Bonferroni),
//! apart from throughput, which has its own.

use dbduel_record::rows::SliceRow;
use dbduel_stats::StatsError;
use dbduel_stats::quantile::requests_per_slice;
use dbduel_text::counts;

use super::decide::{Question, no_block};
use super::log_ratios::block_deviation;
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::summary::{Change, Figure, Quantity, QuantityComparison};

/// Every quantity of the two that `question` is about, which share its error probability.
pub(crate) fn compare(
    evidence: &Evidence<'_>,
    level: usize,
    question: &Question<'_>,
) -> Vec<QuantityComparison> {
    let alpha = alpha_of(question);
    let quantities = Quantity::ALL
        .into_iter()
        .map(|quantity| compare_one(evidence, level, question, quantity, alpha));
    quantities.collect()
}

/// The error probability of each quantity: its share of that of the question.
pub(crate) fn alpha_of(question: &Question<'_>) -> f64 {
    question.alpha / Quantity::ALL.len() as f64
}

/// One quantity of the two that `question` is about, with an error probability of its own.
pub(crate) fn compare_one(
    evidence: &Evidence<'_>,
    level: usize,
    question: &Question<'_>,
    quantity: Quantity,
    alpha: f64,
) -> QuantityComparison {
    let question = Question {
        weights: question.weights.clone(),
        ..Question::with_alpha(
            question.plan,
            [question.contender, question.reference],
            alpha,
            format!("{}/{}", question.stream, quantity.stream()),
        )
    };
    let blocks = match quantity {
        Quantity::LatencyP50 | Quantity::LatencyP95 | Quantity::LatencyP99 => {
            &evidence.levels[level].complete
        }
        Quantity::ServerCpuPerTransaction | Quantity::BytesWrittenPerTransaction => {
            evidence.watched(level)
        }
    };
    answer(evidence, blocks, quantity, &question)
}

/// One quantity of the two that `question` is about, in these blocks; rows of a class give that of the class.
pub(crate) fn answer(
    evidence: &Evidence<'_>,
    blocks: &[CompleteBlock<'_>],
    quantity: Quantity,
    question: &Question<'_>,
) -> QuantityComparison {
    let mut answer = QuantityComparison {
        quantity,
        change: Change::NotCompared,
        ratio: no_block(),
        alpha: question.alpha,
        decided_at_block: None,
        block_sd: None,
    };
    if blocks.is_empty() {
        return answer;
    }
    let rows = |who: usize| blocks.iter().flat_map(move |block| block.slices_of(who));
    let members = question.members();
    let all = || members.iter().flat_map(|who| rows(*who));
    let without_value = || {
        let mut values = all().map(|row| value(evidence, quantity, row));
        values.find_map(Result::err)
    };
    if let Some(why) = too_few_transactions(quantity, all()).or_else(without_value) {
        answer.ratio = Figure::NotMeasured { why };
        return answer;
    }
    if let Err(error) = fill(&mut answer, evidence, blocks, question) {
        answer.ratio = Figure::NotMeasured {
            why: error.to_string(),
        };
    }
    answer
}

fn fill(
    answer: &mut QuantityComparison,
    evidence: &Evidence<'_>,
    blocks: &[CompleteBlock<'_>],
    question: &Question<'_>,
) -> Result<(), StatsError> {
    let quantity = answer.quantity;
    let differences = question.differences(blocks, |row| {
        value(evidence, quantity, row).unwrap_or(f64::NAN)
    })?;
    answer.block_sd = block_deviation(&differences, blocks);
    let conclusion = question.conclude(blocks, &differences)?;
    answer.change = conclusion.verdict.into();
    answer.decided_at_block = conclusion.decided_at_block;
    answer.ratio = conclusion.ratio;
    Ok(())
}

/// The quantity in one slice, or why the slice has none that could be compared.
fn value(evidence: &Evidence<'_>, quantity: Quantity, row: &SliceRow) -> Result<f64, String> {
    let name = &row.contender;
    if row.ok == 0 {
        return Err(format!("`{name}` committed nothing in a slice"));
    }
    let slice = row.slice();
    let found = match quantity {
        Quantity::LatencyP50 => row.latency_us_p50,
        Quantity::LatencyP95 => row.latency_us_p95,
        Quantity::LatencyP99 => row.latency_us_p99,
        Quantity::ServerCpuPerTransaction => evidence
            .cpu_s(slice, "server")
            .map(|seconds| seconds / row.ok as f64)
            .ok_or_else(|| {
                format!("a slice of `{name}` has no processor readings of the server")
            })?,
        Quantity::BytesWrittenPerTransaction => evidence
            .used(slice, "server", "device_write_bytes")
            .map(|bytes| bytes / row.ok as f64)
            .ok_or_else(|| format!("a slice of `{name}` has no reading of bytes written"))?,
    };
    match found > 0.0 && found.is_finite() {
        true => Ok(found),
        false => Err(format!(
            "it is zero in a slice of `{name}`, so there is no ratio"
        )),
    }
}

/// Transactions that each slice needs for a quantile of its own; `None` for other quantities.
pub(crate) fn transactions_needed(quantity: Quantity) -> Option<f64> {
    let q = match quantity {
        Quantity::LatencyP50 => 0.5,
        Quantity::LatencyP95 => 0.95,
        Quantity::LatencyP99 => 0.99,
        Quantity::ServerCpuPerTransaction | Quantity::BytesWrittenPerTransaction => return None,
    };
    // Rounding must not turn 10 / (1 − 0.99) into one more than 1000.
    Some((requests_per_slice(q) - 1e-6).ceil())
}

/// Why slices have too few transactions for quantiles of their own; `None` where all have enough.
fn too_few_transactions<'r>(
    quantity: Quantity,
    rows: impl Iterator<Item = &'r SliceRow>,
) -> Option<String> {
    let needed = transactions_needed(quantity)?;
    let smallest = rows.min_by_key(|row| row.ok)?;
    // A slice without a commit has a reason of its own.
    let is_too_small = smallest.ok > 0 && (smallest.ok as f64) < needed;
    is_too_small.then(|| {
        format!(
            "the smallest slice (of `{}`) has {}, but its quantile needs {needed:.0}; use longer slices",
            smallest.contender,
            counts::things(smallest.ok, "transaction")
        )
    })
}
