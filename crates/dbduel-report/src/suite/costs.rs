//! Cost of a transaction in each workload, as matrices of the same shape as those of throughput.

use dbduel_judge::Summary;
use dbduel_judge::explain::{Cost, Explanation, Moved, is_negligible};
use dbduel_judge::summary::{Duel, Figure};

use super::{Column, Matrix, named_groups};
use crate::explanation::amount;
use crate::number_of;
use crate::view::table::Cell;
use crate::words::{self, RatioUnit};

/// Resources with a matrix, by their stable names.
const SHOWN: [(&str, &str); 6] = [
    ("server-cpu", "Server CPU per transaction"),
    (
        "voluntary-switches",
        "Voluntary context switches per transaction",
    ),
    (
        "involuntary-switches",
        "Involuntary context switches per transaction",
    ),
    (
        "disk-reads",
        "Read requests to the disk per transaction, those of other programs included",
    ),
    ("server-read", "Bytes read from the device per transaction"),
    (
        "server-written",
        "Bytes written to the device per transaction",
    ),
];

/// In place of a ratio of amounts that are too small to matter: another program on the machine can be all of it.
const NEGLIGIBLE: &str = "negligible";

/// A matrix for each resource that was observed and is not negligible everywhere.
pub(super) fn matrices(summary: &Summary) -> Vec<Matrix> {
    let all = SHOWN.iter();
    all.filter_map(|(resource, title)| matrix(summary, resource, title))
        .collect()
}

fn explanation<'s>(summary: &'s Summary, duel: &Duel, contender: &str) -> Option<&'s Explanation> {
    let mut all = summary.explanations.iter();
    all.find(|one| one.level == duel.level && one.contender == contender)
}

fn cost<'s>(
    summary: &'s Summary,
    duel: &Duel,
    contender: &str,
    resource: &str,
) -> Option<&'s Cost> {
    let costs = &explanation(summary, duel, contender)?.costs;
    costs.iter().find(|cost| cost.resource == resource)
}

/// The first-ranked cost of a workload's difference that is not negligible; `None` where none is shown.
pub(super) fn moved(summary: &Summary, duel: &Duel, contender: &str) -> Option<String> {
    let explanation = explanation(summary, duel, contender)?;
    let mut ranked = explanation.moved.iter().map(|&at| &explanation.costs[at]);
    let cost = ranked.find(|cost| !is_negligible(cost))?;
    let change = words::ratio_value(&cost.ratio)?;
    Some(format!("{} {change}", cost.name))
}

fn matrix(summary: &Summary, resource: &str, title: &str) -> Option<Matrix> {
    let columns: Vec<Column> = summary
        .contenders
        .iter()
        .map(|facts| Column {
            contender: facts.name.clone(),
            number: number_of(summary, &facts.name),
            against: match facts.name == summary.baseline {
                true => String::new(),
                false => summary.baseline.clone(),
            },
        })
        .collect();
    let suite = summary.suite.as_ref()?;
    let groups = named_groups(summary, suite, &columns, |duel, column| {
        cell(summary, duel, column, resource)
    });
    // Every contender is compared with the baseline, so its own column repeats what the others have.
    let compared = columns.iter().map(|column| !column.against.is_empty());
    let compared: Vec<bool> = compared.collect();
    let rows = groups.iter().flat_map(|group| &group.rows);
    let mut cells = rows.flat_map(|row| row.cells.iter().skip(1).zip(&compared));
    let is_shown = |(cell, is_compared): (&Cell, &bool)| {
        *is_compared && !["", NEGLIGIBLE].contains(&cell.value.as_str())
    };
    cells.any(is_shown).then(|| {
        let note = format!(
            "Column {}: per transaction. Other columns: relative to it; ▲ more, ▼ less: the interval excludes no difference; intervals are joint over the figures of a workload. \
             Negligible: too little on either side to matter to a transaction.",
            summary.baseline
        );
        Matrix::new(title.to_owned(), note, columns, groups)
    })
}

fn cell(summary: &Summary, duel: &Duel, column: &Column, resource: &str) -> Cell {
    if column.against.is_empty() {
        // Every contender is compared with the baseline, so any of them has its figure.
        let others = summary.contenders.iter();
        let found = others
            .filter(|facts| facts.name != column.contender)
            .find_map(|facts| cost(summary, duel, &facts.name, resource));
        return found.map_or_else(Cell::default, |cost| Cell {
            hover: format!(
                "{}, {}: {}",
                duel.label,
                column.contender,
                with_interval(cost, &cost.baseline)
            ),
            ..Cell::from(value(cost, &cost.baseline))
        });
    }
    let Some(cost) = cost(summary, duel, &column.contender, resource) else {
        return Cell::default();
    };
    let (sign, answer) = match cost.moved {
        _ if is_negligible(cost) => ("", "undecided"),
        Moved::Less => ("▼", "lower"),
        Moved::More => ("▲", "higher"),
        Moved::Same | Moved::Still => ("=", "equivalent"),
        Moved::Unclear | Moved::Unknown => ("?", "undecided"),
    };
    Cell {
        value: match is_negligible(cost) {
            true => NEGLIGIBLE.to_owned(),
            false => super::relative(&cost.ratio),
        },
        sign,
        answer,
        hover: format!(
            "{}, {}: {} against {}; {}",
            duel.label,
            column.contender,
            with_interval(cost, &cost.contender),
            with_interval(cost, &cost.baseline),
            RatioUnit::of([&cost.ratio]).doubt(&cost.ratio)
        ),
        ..Cell::default()
    }
}

fn value(cost: &Cost, figure: &Figure) -> String {
    let value = figure.value();
    value.map_or_else(|| "–".to_owned(), |value| amount(cost, value))
}

fn with_interval(cost: &Cost, figure: &Figure) -> String {
    match figure.interval() {
        Some((low, high)) if high.is_finite() => format!(
            "{} ({} to {})",
            value(cost, figure),
            amount(cost, low),
            amount(cost, high)
        ),
        _ => value(cost, figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_record::rows::{ALL_CLASSES, ReadingRow};
    use dbduel_testkit::synthetic::suite::suite_record;

    /// The matrix of reads of the disk, where the others read 154 times as often as the baseline: `base` times per transaction in
    /// the last workload and 0.000005 times in the two before it.
    fn reads(base: f64) -> Option<Matrix> {
        let mut record = suite_record();
        let baseline = record.plan.contenders[0].name.clone();
        let totals = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
        let readings = totals.map(|row| {
            let each = match record.plan.blocks[row.block as usize].level {
                2 => base,
                _ => 0.000_005,
            };
            let factor = if row.contender == baseline {
                1.0
            } else {
                154.0
            };
            ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: "host".to_owned(),
                metric: "disk_reads_count".to_owned(),
                value: factor * each * row.ok as f64,
            }
        });
        record.readings = readings.collect();
        let (summary, _) = summarise(&record);
        let mut all = matrices(&summary).into_iter();
        all.find(|matrix| matrix.title.starts_with("Read requests"))
    }

    #[test]
    fn reads_that_another_program_can_be_all_of_are_no_difference() {
        assert!(reads(0.000_005).is_none());
        let matrix = reads(0.5).unwrap();
        let shown: Vec<[&str; 3]> = matrix
            .table
            .rows()
            .map(|row| [&*row.cells[1].value, &row.cells[2].value, row.cells[2].sign])
            .collect();
        assert_eq!(
            shown,
            [
                ["<0.001", NEGLIGIBLE, ""],
                ["<0.001", NEGLIGIBLE, ""],
                ["0.500", "154", "▲"]
            ]
        );
    }
}
