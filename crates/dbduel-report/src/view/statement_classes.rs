//! Classes of single captured statements as text: a table per load level, with a group of rows per class.

use std::collections::BTreeMap;

use dbduel_judge::Summary;
use dbduel_judge::summary::{Figure, StatementPlan};
use dbduel_judge::workloads::captured::{
    SHARE_MIN_PERCENT, StatementCell, StatementFigures, StatementLevel,
};
use dbduel_text::{percent, shortened};
use serde::Serialize;

use super::classes::{latency, ratio_cell};
use super::table::{Cell, Column, Group, NAME, NUMBER, PAIRS, Row, Table};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// Characters of a class's text.
const TEXT_CHARACTERS: usize = 240;

/// The tables of a workload whose single statements are measured.
#[derive(Debug, Clone, Serialize)]
pub struct StatementsView {
    pub levels: Vec<StatementsLevel>,
    pub note: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct StatementsLevel {
    pub label: String,
    /// A group of rows per class, the largest first.
    pub table: Table,
    /// What the classes that are not in the table are.
    pub rest: String,
}

/// The section on classes of statements; `None` where single ones were not measured.
#[must_use]
pub fn statement_classes(summary: &Summary) -> Option<StatementsView> {
    let compared = || {
        summary
            .statement_classes
            .iter()
            .flat_map(StatementLevel::compared)
    };
    compared().next()?;
    let ratios = || {
        let cells = compared().flat_map(|class| &class.contenders);
        let comparisons = cells.filter_map(|cell| cell.against_baseline.as_ref());
        comparisons.map(|one| &one.ratio)
    };
    let style = Style {
        has_writes: compared().any(|class| class.writes),
        unit: RatioUnit::of(ratios()),
        shared_reason: frequent_reason(ratios()),
    };
    let levels = summary.statement_classes.iter().map(|level| {
        let duel = summary.duels.iter().find(|duel| duel.level == level.level);
        StatementsLevel {
            label: duel.map_or_else(String::new, |duel| duel.label.clone()),
            table: Table {
                class: PAIRS,
                columns: style.shown(COLUMNS.map(Column::from)).collect(),
                groups: level
                    .compared()
                    .map(|class| style.group(summary, class))
                    .collect(),
            },
            rest: rest(level),
        }
    });
    let writes = match style.has_writes {
        true => " No row changed, key exists: share of the writes.",
        false => "",
    };
    let reason = style.shared_reason.map_or_else(String::new, |why| {
        format!(" No interval where nothing else is said: {why}.")
    });
    Some(StatementsView {
        levels: levels.collect(),
        note: format!(
            "Classes with at least {SHARE_MIN_PERCENT:.0} % of the capture or of the time of a contender's statements. Latency: from the previous \
             answer of a transaction to the statement's own. Ratio: mean latency ÷ that of {}, within blocks; lower is better. All \
             classes of the capture share the error probability of a contender's comparison.{writes} Captured: the statements that \
             the replay draws from. Plan: of one statement, explained before the load, where it differs.{reason}",
            summary.baseline
        ),
    })
}

/// The reason why ratios have no interval that most of them share, of several.
fn frequent_reason<'s>(ratios: impl Iterator<Item = &'s Figure>) -> Option<&'s str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for ratio in ratios {
        match ratio {
            Figure::Bare { why, .. } => *counts.entry(why).or_default() += 1,
            Figure::Estimated { .. } | Figure::NotMeasured { .. } => {}
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.filter(|(_, count)| *count > 1).map(|(why, _)| why)
}

/// The classes that are not in the table, in one sentence; empty where there are none.
fn rest(level: &StatementLevel) -> String {
    let rest: Vec<&StatementFigures> = level
        .classes
        .iter()
        .filter(|one| !one.is_compared)
        .collect();
    if rest.is_empty() {
        return String::new();
    }
    let contenders = 0..rest.first().map_or(0, |class| class.contenders.len());
    let time = |who: usize| {
        let cells = rest.iter().filter_map(|class| class.contenders.get(who));
        cells.map(|cell| cell.time_share_percent).sum::<f64>()
    };
    let most = contenders.map(time).fold(0.0, f64::max);
    format!(
        "{} with less than {SHARE_MIN_PERCENT:.0} % each, {} of the time at most: in the JSON report.",
        words::things(rest.len() as u64, "further class"),
        share(most),
    )
}

/// Settings common to all tables.
struct Style<'s> {
    /// Whether a class changes rows.
    has_writes: bool,
    unit: RatioUnit,
    shared_reason: Option<&'s str>,
}

/// Headings of columns for writes.
const WRITES: [&str; 2] = ["no row changed", "key exists"];
const COLUMNS: [(&str, &str); 11] = [
    (NAME, "contender"),
    (NUMBER, "of time"),
    (NUMBER, "ratio"),
    (NUMBER, "mean"),
    (NUMBER, "p50"),
    (NUMBER, "p95"),
    (NUMBER, "p99"),
    (NUMBER, "statements"),
    (NUMBER, WRITES[0]),
    (NUMBER, WRITES[1]),
    (NUMBER, "failed"),
];

impl Style<'_> {
    /// What belongs to the columns, without those for writes where there are none.
    fn shown<T>(&self, all: [T; COLUMNS.len()]) -> impl Iterator<Item = T> {
        let has_writes = self.has_writes;
        let all = all.into_iter().zip(COLUMNS);
        all.filter_map(move |(one, (_, head))| {
            (has_writes || !WRITES.contains(&head)).then_some(one)
        })
    }

    fn group(&self, summary: &Summary, class: &StatementFigures) -> Group {
        let cells = class.contenders.iter();
        Group {
            head: format!("{} {}", class.id, shortened(&class.text, TEXT_CHARACTERS)),
            rows: [self.captured(class)]
                .into_iter()
                .chain(cells.map(|cell| Row {
                    details: plan_difference(summary, &class.id, &cell.contender),
                    ..self.row(summary, cell)
                }))
                .collect(),
        }
    }

    fn captured(&self, class: &StatementFigures) -> Row {
        let captured = &class.captured;
        let nothing = || Cell::from("");
        let time = captured.time_share_percent.map(share);
        self.shown([
            Cell::from("captured"),
            Cell::from(time.unwrap_or_default()),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            Cell::from(words::count(captured.statements)),
            Cell::from(captured.unchanged_percent.map(share).unwrap_or_default()),
            nothing(),
            nothing(),
        ])
        .collect()
    }

    fn row(&self, summary: &Summary, cell: &StatementCell) -> Row {
        let ratio = match &cell.against_baseline {
            Some(one) => ratio_cell(self.unit, self.shared_reason, one.change, &one.ratio),
            None => Cell::from("baseline"),
        };
        let of_writes = |part: Option<f64>| Cell::from(part.map(share).unwrap_or_default());
        let errors = cell.errors.iter();
        let errors = errors.map(|one| format!("{} × {}", words::count(one.count), one.code));
        self.shown([
            Cell::of_contender(number_of(summary, &cell.contender), &cell.contender),
            Cell::from(share(cell.time_share_percent)),
            ratio,
            latency(&cell.latency_us_mean),
            latency(&cell.latency_us_p50),
            latency(&cell.latency_us_p95),
            latency(&cell.latency_us_p99),
            Cell::from(words::count(cell.ok + cell.failed)),
            of_writes(cell.unchanged_percent),
            of_writes(cell.key_exists_percent),
            Cell {
                note: errors.collect::<Vec<String>>().join("; "),
                ..Cell::from(words::count(cell.failed))
            },
        ])
        .collect()
    }
}

/// How a contender's plan of a class differs from the baseline's; empty where it does not, or is not known.
fn plan_difference(summary: &Summary, id: &str, contender: &str) -> Vec<String> {
    let mut plans = summary.duels.iter().flat_map(|duel| &duel.statements);
    let plans = plans.find(|plans| plans.id.as_deref() == Some(id));
    let changed = plans.and_then(|plans| plans.changed(contender, &summary.baseline));
    let Some([own, other]) = changed else {
        return Vec::new();
    };
    let steps = |plan: &StatementPlan| plan.steps.join("`, `");
    vec![
        format!("plan: `{}`", steps(own)),
        format!("of {}: `{}`", summary.baseline, steps(other)),
    ]
}

/// A share that is given in percent.
fn share(value: f64) -> String {
    percent::of(value / 100.0)
}
