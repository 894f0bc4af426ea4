//! Latency and cost against the baseline.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Change, Comparison, Duel, Figure, QuantityComparison};
use serde::Serialize;

use crate::number_of;
use crate::words::{self, RatioUnit};

/// CSS class of a quantity that was not compared.
pub(super) const NOT_COMPARED: &str = "not-compared";

/// Ratio of a quantity beside throughput.
#[derive(Debug, Clone, Serialize)]
pub struct RatioView {
    pub level: String,
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    pub what: String,
    /// CSS class of the answer: `higher`, `lower`, `undecided` ...
    pub answer: &'static str,
    pub phrase: String,
    pub ratio: String,
    /// Its interval, or why there is none.
    pub interval: String,
    /// Standard deviation of a block; empty when there is none.
    pub block_sd: String,
}

/// The rows, and the note below them, which states a reason for missing intervals that all such rows share.
pub(super) fn quantities(summary: &Summary) -> (Vec<RatioView>, String) {
    let compared = || {
        let duels = summary.duels.iter();
        duels.flat_map(|duel| {
            let comparisons = duel.comparisons.iter();
            comparisons.flat_map(move |comparison| {
                let quantities = comparison.quantities.iter();
                quantities.map(move |quantity| (duel, comparison, quantity))
            })
        })
    };
    let reasons = compared().filter_map(|(_, _, quantity)| match &quantity.ratio {
        Figure::Bare { why, .. } => Some(why.as_str()),
        Figure::Estimated { .. } | Figure::NotMeasured { .. } => None,
    });
    let reasons: Vec<&str> = reasons.collect();
    let shared = reasons
        .first()
        .filter(|first| reasons.len() > 1 && reasons.iter().all(|reason| reason == *first));
    let unit = RatioUnit::of(compared().map(|(_, _, quantity)| &quantity.ratio));
    let rows = compared().map(|(duel, comparison, quantity)| {
        let mut row = quantity_row(summary, duel, comparison, quantity, unit);
        if shared.is_some_and(|reason| row.interval == **reason) {
            "none".clone_into(&mut row.interval);
        }
        row
    });
    let note = words::quantities_note(summary);
    let note = match shared {
        Some(reason) => format!("{note} No interval: {reason}."),
        None => note,
    };
    (rows.collect(), note)
}

fn quantity_row(
    summary: &Summary,
    duel: &Duel,
    comparison: &Comparison,
    quantity: &QuantityComparison,
    unit: RatioUnit,
) -> RatioView {
    RatioView {
        level: duel.label.clone(),
        contender: comparison.contender.clone(),
        number: number_of(summary, &comparison.contender),
        what: quantity.quantity.label().to_owned(),
        answer: looks(quantity.change),
        phrase: format!(
            "{} {}",
            words::change_sign(quantity.change),
            quantity.change.word()
        ),
        ratio: unit.value(&quantity.ratio),
        interval: unit.doubt(&quantity.ratio),
        block_sd: quantity
            .block_sd
            .map(|sd| unit.deviation(sd))
            .unwrap_or_default(),
    }
}

/// CSS class of the answer about a quantity.
pub(super) fn looks(change: Change) -> &'static str {
    match change {
        Change::NotCompared => NOT_COMPARED,
        other => other.word(),
    }
}
