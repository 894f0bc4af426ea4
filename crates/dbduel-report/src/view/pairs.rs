//! All pairs of contenders: a row for each pair, a column for each quantity.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Change, Duel, Figure, PairComparison, Quantity, QuantityComparison};
use serde::Serialize;

use super::ratios::NOT_COMPARED;
use super::table::{Cell, Column, Group, NAME, NUMBER, PAIRS, Row, Table};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// Pairs that are named where several share a reason; the others are counted.
const NAMED: usize = 3;

#[derive(Debug, Clone, Serialize)]
pub struct PairsView {
    /// A row for each pair, a group for each load level.
    pub table: Table,
    /// The load levels in the order of the groups.
    pub levels: Vec<PairLevelView>,
    /// Reasons for missing intervals.
    pub without_interval: Vec<String>,
    /// Confidence of the answers.
    pub note: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct PairLevelView {
    pub label: String,
    /// Ranking by throughput, as far as it is decided.
    pub ranking: Vec<String>,
}

/// The pairs; `None` for a duel of two.
pub(super) fn pairs(summary: &Summary) -> Option<PairsView> {
    let duels = summary.duels.iter().filter(|duel| !duel.pairs.is_empty());
    let levels = duels.clone().map(|duel| PairLevelView {
        label: duel.label.clone(),
        ranking: words::ranking(duel),
    });
    let levels: Vec<PairLevelView> = levels.collect();
    let against = Column {
        is_below: true,
        ..Column::from((NAME, "against"))
    };
    let quantities = ["throughput"].into_iter().chain(Quantity::ALL.map(head));
    let columns = [Column::from((NAME, "contender")), against].into_iter();
    (!levels.is_empty()).then(|| PairsView {
        table: Table {
            class: PAIRS,
            columns: columns
                .chain(quantities.map(|head| Column::from((NUMBER, head))))
                .collect(),
            groups: duels.map(|duel| group(summary, duel)).collect(),
        },
        without_interval: without_interval(summary),
        levels,
        note: note(summary),
    })
}

/// Note on the confidence of the table, with the legend of its stars.
fn note(summary: &Summary) -> String {
    let pairs = summary.duels.iter().flat_map(|duel| &duel.pairs);
    let figures = pairs.flat_map(|pair| {
        let quantities = pair.quantities.iter().map(|one| &one.ratio);
        std::iter::once(&pair.ratio).chain(quantities)
    });
    let note = words::pairs_note(summary);
    match words::starred(figures) {
        "" => note,
        legend => format!("{note} {legend}"),
    }
}

/// The reasons, column by column, each of them once.
fn without_interval(summary: &Summary) -> Vec<String> {
    let pairs: Vec<(&Duel, &PairComparison)> = summary
        .duels
        .iter()
        .flat_map(|duel| duel.pairs.iter().map(move |pair| (duel, pair)))
        .collect();
    let mut lines = Vec::new();
    let mut list = |head: &str, why_of: &dyn Fn(&PairComparison) -> Option<String>| {
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for (duel, pair) in &pairs {
            let Some(why) = why_of(pair) else { continue };
            let name = format!(
                "{} against {}, {}",
                pair.contender, pair.against, duel.label
            );
            match reasons.iter_mut().find(|(other, _)| *other == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let lines_of_it = reasons.iter().map(|(why, names)| match names.len() {
            all if all == pairs.len() => format!("{head}, all pairs: {why}"),
            0..=NAMED => format!("{head}, {}: {why}", names.join("; ")),
            some => format!("{head}, {some} of {} pairs: {why}", pairs.len()),
        });
        lines.extend(lines_of_it);
    };
    list("throughput", &|pair| {
        pair.because.clone().or_else(|| why_bare(&pair.ratio))
    });
    for quantity in Quantity::ALL {
        list(head(quantity), &|pair| {
            let mut own = pair.quantities.iter();
            why_bare(&own.find(|one| one.quantity == quantity)?.ratio)
        });
    }
    lines
}

/// Why a ratio has no interval; `None` when it has one.
fn why_bare(ratio: &Figure) -> Option<String> {
    match ratio {
        Figure::Bare { why, .. } | Figure::NotMeasured { why } => Some(why.clone()),
        Figure::Estimated { .. } => None,
    }
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

fn group(summary: &Summary, duel: &Duel) -> Group {
    let figures = duel.pairs.iter().flat_map(|pair| {
        let quantities = pair.quantities.iter().map(|one| &one.ratio);
        std::iter::once(&pair.ratio).chain(quantities)
    });
    let unit = RatioUnit::of(figures);
    let rows = duel.pairs.iter().map(|pair| row(summary, pair, unit));
    let ranking = words::ranking(duel);
    Group {
        head: match ranking.is_empty() {
            true => duel.label.clone(),
            false => format!("{}: {}", duel.label, ranking.join("; ")),
        },
        rows: rows.collect(),
    }
}

fn row(summary: &Summary, pair: &PairComparison, unit: RatioUnit) -> Row {
    // A record judged by a version that knew throughput only has no quantities.
    let quantities = Quantity::ALL.into_iter().map(|quantity| {
        let mut own = pair.quantities.iter();
        own.find(|one| one.quantity == quantity)
            .map_or_else(|| not_compared(None), |one| quantity_cell(one, unit))
    });
    let names = [&pair.contender, &pair.against];
    let names = names.map(|name| Cell::of_contender(number_of(summary, name), name));
    names
        .into_iter()
        .chain([throughput_cell(pair, unit)])
        .chain(quantities)
        .collect()
}

fn throughput_cell(pair: &PairComparison, unit: RatioUnit) -> Cell {
    let word = pair.verdict.word();
    Cell {
        hover: how(word, pair.because.clone().or_else(|| remark(&pair.ratio))),
        ..Cell::answer(
            word,
            format!("{} {}", words::sign(pair.verdict), unit.value(&pair.ratio)),
            match pair.because {
                Some(_) => word.to_owned(),
                None => doubt(&pair.ratio, unit),
            },
        )
    }
}

fn quantity_cell(one: &QuantityComparison, unit: RatioUnit) -> Cell {
    if one.change == Change::NotCompared {
        return not_compared(why_bare(&one.ratio));
    }
    let (word, sign) = (one.change.word(), words::change_sign(one.change));
    Cell {
        hover: how(word, remark(&one.ratio)),
        ..Cell::answer(
            word,
            format!("{sign} {}", unit.value(&one.ratio)),
            doubt(&one.ratio, unit),
        )
    }
}

fn how(answer: &str, why: Option<String>) -> String {
    match why {
        Some(why) => format!("{answer}: {why}"),
        None => answer.to_owned(),
    }
}

/// Why a ratio has no interval, or is near an end of it.
fn remark(ratio: &Figure) -> Option<String> {
    why_bare(ratio).or_else(|| words::off_centre(ratio).map(str::to_owned))
}

/// The interval, short enough for a cell.
fn doubt(ratio: &Figure, unit: RatioUnit) -> String {
    match ratio {
        Figure::Estimated { .. } => unit.short_interval(ratio),
        Figure::Bare { .. } => "no interval".to_owned(),
        Figure::NotMeasured { .. } => String::new(),
    }
}

fn not_compared(why: Option<String>) -> Cell {
    let change = Change::NotCompared;
    Cell {
        answer: NOT_COMPARED,
        hover: how(change.word(), why),
        ..Cell::from(words::change_sign(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_record::Verdict;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn reasons_for_missing_intervals_are_those_of_the_pairs() {
        let (mut summary, _) = summarise(&Scenario::four().record());
        let view = pairs(&summary).unwrap();
        let view_has = |line: &str| view.without_interval.contains(&line.to_owned());
        // Nothing was observed of what the servers write; whose reading is missed first differs by pair.
        assert!(
            view_has(
                "bytes written, mariadb-11.8 against mariadb-10.11, 1 client; mariadb-11.8 against mariadb-10.11, \
                 16 clients; mariadb-11.8 against mariadb-10.11, 64 clients: a slice of `mariadb-11.8` has no reading \
                 of bytes written"
            ) && view_has(
                "bytes written, 9 of 18 pairs: a slice of `mysql-9.7` has no reading of bytes written"
            ),
            "{:?}",
            view.without_interval
        );
        for row in view.table.rows() {
            let cell = row.cells.last().unwrap();
            assert_eq!(cell.answer, NOT_COMPARED);
            assert!(cell.hover.starts_with("not compared: "), "{cell:?}");
        }
        let pair = &mut summary.duels[1].pairs[0];
        pair.verdict = Verdict::Void;
        pair.because = Some("`mariadb-11.8` committed nothing".to_owned());
        assert_eq!(
            pairs(&summary).unwrap().without_interval[0],
            "throughput, mariadb-11.8 against mariadb-10.11, 16 clients: `mariadb-11.8` committed nothing"
        );
    }
}
