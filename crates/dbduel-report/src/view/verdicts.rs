//! Verdicts as text.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Duel, Figure, How, PaidBy};
use dbduel_record::Verdict;
use serde::Serialize;

use super::table::{Cell, Column, LEVEL, MARKDOWN, NAME, PAGE, Row, STACK, TEXT, Table};
use crate::number_of;
use crate::words::{self, RatioUnit};

#[derive(Debug, Clone, Serialize)]
pub struct VerdictView {
    pub level: String,
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// `faster`, `slower`, `equivalent`, `undecided` or `void`.
    pub verdict: &'static str,
    /// True for a decided verdict; the ratio of an undecided or void one is not shown in large type.
    pub is_decided: bool,
    /// The verdict with its restriction.
    pub phrase: String,
    pub sign: &'static str,
    pub ratio: String,
    /// Its interval, or why there is none.
    pub interval: String,
    pub blocks: String,
    /// How it was decided, or why not.
    pub how: String,
    pub checks: String,
    pub overturned_by: Vec<String>,
}

/// All verdicts, level by level, with ratios in one unit.
pub(super) fn verdicts(summary: &Summary) -> Vec<VerdictView> {
    let unit = words::verdict_unit(summary);
    let compared = summary.duels.iter().flat_map(|duel| {
        let comparisons = duel.comparisons.iter();
        comparisons.map(move |comparison| verdict(summary, duel, comparison, unit))
    });
    compared.collect()
}

const COLUMNS: [(&str, &str, &str); 9] = [
    (LEVEL, "load", ""),
    (NAME, "contender", ""),
    ("", "verdict", ""),
    // The page has these in large type.
    (TEXT, "ratio", MARKDOWN),
    (TEXT, "interval", MARKDOWN),
    (TEXT, "blocks", MARKDOWN),
    (TEXT, "reason", MARKDOWN),
    // Markdown has these in a list.
    (TEXT, "cross-checks", PAGE),
    (TEXT, "would be overturned by", PAGE),
];

/// The verdicts with their evidence, a row for each.
pub(super) fn table(verdicts: &[VerdictView]) -> Table {
    let columns = COLUMNS.map(|(class, head, only)| Column {
        only,
        ..Column::from((class, head))
    });
    let rows = verdicts.iter().map(|one| {
        let or_none = |text: &str| Cell::from(if text.is_empty() { "–" } else { text });
        Row::from_iter([
            Cell::from(&one.level),
            Cell::of_contender(one.number, &one.contender),
            Cell::answer(
                one.verdict,
                format!("{} {}", one.sign, one.phrase),
                String::new(),
            ),
            Cell::from(&one.ratio),
            Cell::from(&one.interval),
            Cell::from(&one.blocks),
            Cell::from(&one.how),
            or_none(&one.checks),
            or_none(&one.overturned_by.join("; ")),
        ])
    });
    Table {
        class: STACK,
        ..Table::new(columns.into(), rows)
    }
}

fn verdict(
    summary: &Summary,
    duel: &Duel,
    comparison: &Comparison,
    unit: RatioUnit,
) -> VerdictView {
    VerdictView {
        level: duel.label.clone(),
        contender: comparison.contender.clone(),
        number: number_of(summary, &comparison.contender),
        verdict: comparison.verdict.word(),
        is_decided: !matches!(comparison.verdict, Verdict::Undecided | Verdict::Void),
        phrase: words::verdict(comparison),
        sign: words::sign(comparison.verdict),
        ratio: unit.value(&comparison.ratio),
        interval: unit.doubt(&comparison.ratio),
        blocks: words::things(duel.blocks_complete.into(), "block"),
        how: match words::identical(summary, &comparison.contender) {
            Some(identical) => format!("{}; {identical}", how_decided(summary, duel, comparison)),
            None => how_decided(summary, duel, comparison),
        },
        checks: checks(comparison, unit),
        overturned_by: comparison.overturned_by.clone(),
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
                duel.blocks_max(&summary.rule)
            )
        }
        (_, Some(at), Some(PaidBy::Reserve)) => format!("decided after block {at}, by the reserve"),
        (Verdict::Undecided, ..) if duel.blocks_complete < summary.rule.blocks_min => {
            format!("no verdict before block {}", summary.rule.blocks_min)
        }
        _ => undecided_after(duel.blocks_complete, duel.blocks_max(&summary.rule)),
    }
}

/// After how many blocks it is undecided; an extended run has more than planned.
fn undecided_after(blocks: u32, planned: u32) -> String {
    match blocks.checked_sub(planned) {
        None | Some(0) => format!("undecided after {blocks} of at most {planned} blocks"),
        Some(more) => {
            format!("undecided after {blocks} blocks, {more} more than the {planned} planned")
        }
    }
}

fn checks(comparison: &Comparison, unit: RatioUnit) -> String {
    let mut checks = Vec::new();
    let is_of_totals = !matches!(
        &comparison.ratio,
        Figure::Estimated {
            how: How::Epochs | How::BalanceOfEpochs,
            ..
        }
    );
    if !comparison.blocks.is_empty() && is_of_totals {
        let [own, baseline] = comparison.totals_per_s();
        checks.push(format!(
            "all blocks {} ÷ {} transactions/s",
            words::number(own),
            words::number(baseline)
        ));
    }
    if let Some(sd) = comparison.block_sd {
        checks.push(format!("SD of a block {}", unit.deviation(sd)));
    }
    if let Some(sd) = comparison.restart_sd {
        checks.push(format!("SD of a start {}", unit.deviation(sd)));
    }
    if let Some(detectable) = comparison.detectable_difference {
        let detectable = match unit {
            RatioUnit::Percent => words::share(detectable),
            RatioUnit::Factor => unit.write(1.0 + detectable),
        };
        checks.push(format!("detectable {detectable}"));
    }
    checks.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_run_has_more_blocks_than_were_planned() {
        assert_eq!(
            undecided_after(11, 11),
            "undecided after 11 of at most 11 blocks"
        );
        assert_eq!(
            undecided_after(14, 11),
            "undecided after 14 blocks, 3 more than the 11 planned"
        );
    }
}
