//! Latency and cost against the baseline.

use super::{RatioView, interval};
use crate::judge::Summary;
use crate::judge::summary::{Change, Comparison, Duel, QuantityComparison};
use crate::report::words;

pub(super) fn quantities(summary: &Summary) -> Vec<RatioView> {
    let of_duel = |duel: &Duel| -> Vec<RatioView> {
        let comparisons = duel.comparisons.iter();
        let rows = comparisons.flat_map(|comparison| {
            let quantities = comparison.quantities.iter();
            quantities.map(|quantity| quantity_row(summary, duel, comparison, quantity))
        });
        rows.collect()
    };
    summary.duels.iter().flat_map(of_duel).collect()
}

fn quantity_row(
    summary: &Summary,
    duel: &Duel,
    comparison: &Comparison,
    quantity: &QuantityComparison,
) -> RatioView {
    RatioView {
        level: duel.label.clone(),
        contender: comparison.contender.clone(),
        number: number_of(summary, &comparison.contender),
        what: quantity.quantity.label().to_owned(),
        answer: match quantity.change {
            Change::NotCompared => "undecided",
            other => other.word(),
        },
        phrase: format!(
            "{} {}",
            words::change_sign(quantity.change),
            quantity.change.word()
        ),
        ratio: words::ratio_value(&quantity.ratio).unwrap_or_else(|| "–".to_owned()),
        interval: interval(&quantity.ratio),
        block_sd: quantity.block_sd.map(words::share).unwrap_or_default(),
    }
}

/// The number of a contender, for colour and shape.
pub(super) fn number_of(summary: &Summary, contender: &str) -> usize {
    let position = summary
        .contenders
        .iter()
        .position(|facts| facts.name == contender);
    position.unwrap_or(0)
}
