//! Latency and cost against the baseline.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Change, Comparison, Duel, Figure, QuantityComparison};

use super::table::{Cell, Column, LEVEL, NAME, NUMBER, Row, STACK, TEXT, Table};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// CSS class of a quantity that was not compared.
pub(super) const NOT_COMPARED: &str = "not-compared";

/// Headings of figures, which the page repeats where rows are lines.
const FIGURES: [&str; 3] = ["ratio", "interval", "SD of a block"];
const COLUMNS: [(&str, &str); 7] = [
    (LEVEL, "load"),
    (NAME, "contender"),
    (TEXT, "quantity"),
    ("", "answer"),
    (TEXT, FIGURES[0]),
    // Some have a reason in place of an interval.
    (TEXT, FIGURES[1]),
    (NUMBER, FIGURES[2]),
];

/// The table, absent without a row, and the note below it, which states a reason for missing intervals that all such rows
/// share.
pub(super) fn quantities(summary: &Summary) -> (Option<Table>, String) {
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
    if compared().next().is_none() {
        return (None, String::new());
    }
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
        let interval = match unit.doubt(&quantity.ratio) {
            reason if shared.is_some_and(|shared| reason == **shared) => "none".to_owned(),
            interval => interval,
        };
        quantity_row(summary, (duel, comparison, quantity), interval, unit)
    });
    let columns = COLUMNS.map(|(class, head)| Column {
        is_number: FIGURES.contains(&head),
        ..Column::from((class, head))
    });
    let table = Table {
        class: STACK,
        ..Table::new(columns.into(), rows)
    };
    let note = words::quantities_note(summary);
    let note = match shared {
        Some(reason) => format!("{note} No interval: {reason}."),
        None => note,
    };
    (Some(table), note)
}

fn quantity_row(
    summary: &Summary,
    (duel, comparison, quantity): (&Duel, &Comparison, &QuantityComparison),
    interval: String,
    unit: RatioUnit,
) -> Row {
    let labelled = |label: &'static str, value: String| Cell {
        label,
        ..Cell::from(value)
    };
    let is_known = quantity.ratio.value().is_some();
    let change = quantity.change;
    let phrase = format!("{} {}", words::change_sign(change), change.word());
    let block_sd = quantity.block_sd.map(|sd| unit.deviation(sd));
    let name = comparison.contender.as_str();
    Row::from_iter([
        Cell::from(&duel.label),
        Cell::of_contender(number_of(summary, name), name),
        Cell::from(quantity.quantity.label()),
        Cell::answer(looks(change), phrase, String::new()),
        labelled(FIGURES[0], unit.value(&quantity.ratio)),
        labelled(if is_known { FIGURES[1] } else { "" }, interval),
        labelled(FIGURES[2], block_sd.unwrap_or_default()),
    ])
}

/// CSS class of the answer about a quantity.
pub(super) fn looks(change: Change) -> &'static str {
    match change {
        Change::NotCompared => NOT_COMPARED,
        other => other.word(),
    }
}
