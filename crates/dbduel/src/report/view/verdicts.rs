//! Verdicts as text.

use serde::Serialize;

use crate::judge::Summary;
use crate::judge::summary::{Comparison, Duel, Figure, PaidBy, Verdict};
use crate::report::words;

/// One verdict.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictView {
    /// Name of the level.
    pub level: String,
    /// Name of the contender.
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// `faster`, `slower`, `equivalent`, `undecided` or `void`.
    pub verdict: &'static str,
    /// The verdict with its restriction.
    pub phrase: String,
    /// A sign for the verdict.
    pub sign: &'static str,
    /// The ratio.
    pub ratio: String,
    /// Its interval, or why there is none.
    pub interval: String,
    /// Number of blocks.
    pub blocks: String,
    /// How it was decided, or why not.
    pub how: String,
    /// Cross-checks of the ratio.
    pub checks: String,
    /// What would overturn it.
    pub overturned_by: Vec<String>,
}

pub(super) fn verdict(summary: &Summary, duel: &Duel, comparison: &Comparison) -> VerdictView {
    let number = summary
        .contenders
        .iter()
        .position(|facts| facts.name == comparison.contender)
        .unwrap_or(0);
    VerdictView {
        level: duel.label.clone(),
        contender: comparison.contender.clone(),
        number,
        verdict: comparison.verdict.word(),
        phrase: words::verdict(comparison),
        sign: words::sign(comparison.verdict),
        ratio: words::ratio_value(&comparison.ratio).unwrap_or_else(|| "–".to_owned()),
        interval: interval(&comparison.ratio),
        blocks: words::things(duel.blocks_complete.into(), "block"),
        how: how_decided(summary, duel, comparison),
        checks: checks(comparison),
        overturned_by: comparison.overturned_by.clone(),
    }
}

/// The interval of a ratio, or why there is none.
#[must_use]
pub fn interval(ratio: &Figure) -> String {
    match ratio {
        Figure::Estimated { .. } => words::ratio_interval(ratio),
        Figure::Bare { why, .. } | Figure::NotMeasured { why } => why.clone(),
    }
}

fn how_decided(summary: &Summary, duel: &Duel, comparison: &Comparison) -> String {
    if let Some(because) = &comparison.because {
        return because.clone();
    }
    match (
        comparison.verdict,
        comparison.decided_at_block,
        comparison.paid_by,
    ) {
        (_, Some(at), Some(PaidBy::Budget)) => {
            format!(
                "decided after block {at} of at most {}",
                summary.rule.blocks_max
            )
        }
        (_, Some(at), Some(PaidBy::Reserve)) => format!("decided after block {at}, by the reserve"),
        (Verdict::Undecided, ..) if duel.blocks_complete < summary.rule.blocks_min => {
            format!("no verdict before block {}", summary.rule.blocks_min)
        }
        _ => format!(
            "undecided after {} of at most {} blocks",
            duel.blocks_complete, summary.rule.blocks_max
        ),
    }
}

fn checks(comparison: &Comparison) -> String {
    let mut checks = Vec::new();
    if let Some(ratio) = comparison.ratio_hodges_lehmann {
        checks.push(format!("Hodges–Lehmann {}", words::ratio(ratio)));
    }
    if let Some(ratio) = comparison.ratio_total_work {
        checks.push(format!("total work {}", words::ratio(ratio)));
    }
    if let Some(sd) = comparison.block_sd {
        checks.push(format!("SD of a block {}", words::share(sd)));
    }
    if let Some(sd) = comparison.restart_sd {
        checks.push(format!("two starts differ by ±{} (SD)", words::share(sd)));
    }
    if let Some(detectable) = comparison.detectable_difference {
        checks.push(format!("detectable {}", words::share(detectable)));
    }
    checks.join(" · ")
}
