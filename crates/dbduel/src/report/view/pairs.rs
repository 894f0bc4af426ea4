//! Every two contenders: a row for each pair, a column for each thing that is compared.

use serde::Serialize;

use super::interval;
use super::ratios::number_of;
use crate::judge::Summary;
use crate::judge::summary::{Change, Duel, Figure, PairComparison, Quantity, QuantityComparison};
use crate::report::words;

/// The pairs of all levels.
#[derive(Debug, Clone, Serialize)]
pub struct PairsView {
    /// Headings of the compared things.
    pub heads: Vec<&'static str>,
    /// The levels that have pairs.
    pub levels: Vec<PairLevelView>,
    /// How sure the answers are.
    pub note: String,
}

/// The pairs of one level.
#[derive(Debug, Clone, Serialize)]
pub struct PairLevelView {
    /// Name of the level.
    pub label: String,
    /// One row per pair.
    pub rows: Vec<PairView>,
    /// Who is ahead of whom in throughput, as far as it is decided.
    pub ranking: Vec<String>,
}

/// One pair.
#[derive(Debug, Clone, Serialize)]
pub struct PairView {
    /// Name of the contender whose ratios these are.
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// Name of the one that it is compared with.
    pub against: String,
    /// The other's number.
    pub against_number: usize,
    /// One answer per heading.
    pub cells: Vec<PairCellView>,
}

/// One answer.
#[derive(Debug, Clone, Serialize)]
pub struct PairCellView {
    /// The answer as a class of looks: `higher`, `faster`, `undecided` ...
    pub answer: &'static str,
    /// Sign and ratio.
    pub ratio: String,
    /// The interval, or that there is none.
    pub interval: String,
    /// The answer in a word, and why it has no interval.
    pub how: String,
}

/// The pairs; `None` for a duel of two.
pub(super) fn pairs(summary: &Summary) -> Option<PairsView> {
    let duels = summary.duels.iter().filter(|duel| !duel.pairs.is_empty());
    let levels: Vec<PairLevelView> = duels.map(|duel| level(summary, duel)).collect();
    (!levels.is_empty()).then(|| PairsView {
        heads: std::iter::once("throughput")
            .chain(Quantity::ALL.map(head))
            .collect(),
        levels,
        note: words::pairs_note(summary),
    })
}

/// Headings shorter than the quantities' names; the note below the table has the units.
fn head(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::LatencyP50 => "p50",
        Quantity::LatencyP95 => "p95",
        Quantity::LatencyP99 => "p99",
        Quantity::ServerCpuPerTransaction => "server CPU",
        Quantity::BytesWrittenPerTransaction => "bytes written",
    }
}

fn level(summary: &Summary, duel: &Duel) -> PairLevelView {
    PairLevelView {
        label: duel.label.clone(),
        rows: duel.pairs.iter().map(|pair| row(summary, pair)).collect(),
        ranking: words::ranking(duel),
    }
}

fn row(summary: &Summary, pair: &PairComparison) -> PairView {
    // A record judged by a version that knew throughput only has no quantities.
    let quantities = Quantity::ALL.into_iter().map(|quantity| {
        let mut own = pair.quantities.iter();
        own.find(|one| one.quantity == quantity)
            .map_or_else(PairCellView::absent, quantity_cell)
    });
    PairView {
        contender: pair.contender.clone(),
        number: number_of(summary, &pair.contender),
        against: pair.against.clone(),
        against_number: number_of(summary, &pair.against),
        cells: std::iter::once(throughput_cell(pair))
            .chain(quantities)
            .collect(),
    }
}

fn throughput_cell(pair: &PairComparison) -> PairCellView {
    let ratio = words::ratio_value(&pair.ratio);
    PairCellView {
        answer: pair.verdict.word(),
        ratio: format!(
            "{} {}",
            words::sign(pair.verdict),
            ratio.as_deref().unwrap_or("–")
        ),
        interval: match pair.because {
            Some(_) => pair.verdict.word().to_owned(),
            None => doubt(&pair.ratio),
        },
        how: match (&pair.because, &pair.ratio) {
            (Some(why), _) | (None, Figure::Bare { why, .. } | Figure::NotMeasured { why }) => {
                format!("{}: {why}", pair.verdict.word())
            }
            (None, Figure::Estimated { .. }) => pair.verdict.word().to_owned(),
        },
    }
}

fn quantity_cell(one: &QuantityComparison) -> PairCellView {
    if one.change == Change::NotCompared {
        return PairCellView {
            how: format!("not compared: {}", interval(&one.ratio)),
            ..PairCellView::absent()
        };
    }
    let ratio = words::ratio_value(&one.ratio).unwrap_or_else(|| "–".to_owned());
    PairCellView {
        answer: one.change.word(),
        ratio: format!("{} {ratio}", words::change_sign(one.change)),
        interval: doubt(&one.ratio),
        how: match &one.ratio {
            Figure::Bare { why, .. } => format!("{}: {why}", one.change.word()),
            _ => one.change.word().to_owned(),
        },
    }
}

/// The interval in the width of a cell.
fn doubt(ratio: &Figure) -> String {
    match ratio {
        Figure::Estimated { .. } => words::ratio_interval(ratio),
        Figure::Bare { .. } => "no interval".to_owned(),
        Figure::NotMeasured { .. } => String::new(),
    }
}

impl PairCellView {
    fn absent() -> Self {
        Self {
            answer: "undecided",
            ratio: words::change_sign(Change::NotCompared).to_owned(),
            interval: String::new(),
            how: Change::NotCompared.word().to_owned(),
        }
    }
}
