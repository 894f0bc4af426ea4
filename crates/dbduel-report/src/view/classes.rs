//! Transaction classes as text: a table per contender and load level.

use dbduel_judge::Summary;
use dbduel_judge::classes::{ClassCell, ClassFigures, ErrorCode};
use dbduel_judge::summary::{Change, Figure, QuantityComparison};
use serde::Serialize;

use super::ratios::looks;
use super::table::{Cell, Column, NAME, NUMBER, Row, Table};
use crate::number_of;
use crate::words::{self, RatioUnit};

/// The tables of a workload with several classes.
#[derive(Debug, Clone, Serialize)]
pub struct ClassesView {
    pub levels: Vec<ClassesLevel>,
    pub note: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct ClassesLevel {
    pub label: String,
    pub cells: Vec<ClassesCell>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ClassesCell {
    pub contender: String,
    pub number: usize,
    /// A row per class.
    pub table: Table,
    pub errors: String,
}

/// A latency with its interval as small print, or why it has none.
pub(super) fn latency(figure: &Figure) -> Cell {
    Cell {
        note: match figure.interval() {
            Some(_) => words::latency_doubt(figure),
            None => String::new(),
        },
        ..Cell::from(words::value(figure, words::latency))
    }
}

/// The section on classes; `None` for a workload with a single class.
#[must_use]
pub fn classes(summary: &Summary) -> Option<ClassesView> {
    let all = || summary.classes.iter().flat_map(|cell| &cell.classes);
    all().next()?;
    let ratios = || all().flat_map(|class| &class.against_baseline);
    let style = Style {
        has_limits: all().any(|class| class.latency_us_p90_max.is_some()),
        unit: RatioUnit::of(ratios().map(|one| &one.ratio)),
        shared_reason: shared_reason(ratios().map(|one| (one.change, &one.ratio))),
    };
    let levels = summary.duels.iter().map(|duel| ClassesLevel {
        label: duel.label.clone(),
        cells: summary
            .classes
            .iter()
            .filter(|cell| cell.level == duel.level)
            .map(|one| cell(summary, &style, one))
            .collect(),
    });
    let limits = match style.has_limits {
        true => " At least, limit (of p90): from the specification.",
        false => "",
    };
    let reason = style
        .shared_reason
        .map_or_else(String::new, |why| format!(" No interval: {why}."));
    Some(ClassesView {
        levels: levels.collect(),
        note: format!(
            "Share: of committed transactions.{limits} Ratio: quantile of a typical slice ÷ that of {}, within blocks; lower \
             is better. The classes of a contender share the error probability of its comparison.{reason}",
            summary.baseline
        ),
    })
}

/// Why undecided ratios have no interval, if all have the same reason.
fn shared_reason<'s>(ratios: impl Iterator<Item = (Change, &'s Figure)>) -> Option<&'s str> {
    let mut reasons = ratios.filter_map(|(change, ratio)| match (ratio, change) {
        (_, Change::NotCompared) => None,
        (Figure::Bare { why, .. }, _) => Some(why.as_str()),
        _ => None,
    });
    let first = reasons.next()?;
    reasons.all(|other| other == first).then_some(first)
}

/// Settings common to all tables.
struct Style<'s> {
    /// Whether the specification of the workload has limits.
    has_limits: bool,
    unit: RatioUnit,
    shared_reason: Option<&'s str>,
}

/// Headings of columns for limits of a specification.
const LIMITS: [&str; 2] = ["at least", "limit"];
const COLUMNS: [(&str, &str); 12] = [
    (NAME, "class"),
    (NUMBER, "ok"),
    (NUMBER, "share"),
    (NUMBER, LIMITS[0]),
    (NUMBER, "p50"),
    (NUMBER, "p90"),
    (NUMBER, LIMITS[1]),
    (NUMBER, "p99"),
    (NUMBER, "p50 ratio"),
    (NUMBER, "p99 ratio"),
    (NUMBER, "retried"),
    (NUMBER, "failed"),
];

impl Style<'_> {
    /// What belongs to the columns, without those for limits where there are none.
    fn shown<T>(&self, all: [T; COLUMNS.len()]) -> impl Iterator<Item = T> {
        let has_limits = self.has_limits;
        let all = all.into_iter().zip(COLUMNS);
        all.filter_map(move |(one, (_, head))| {
            (has_limits || !LIMITS.contains(&head)).then_some(one)
        })
    }

    fn row(&self, class: &ClassFigures) -> Row {
        let least = class.share_min_percent.filter(|least| *least > 0.0);
        let limit = class.latency_us_p90_max.map(words::latency);
        let mut ratios = class.against_baseline.iter().map(|one| self.ratio(one));
        let mut next_ratio = || ratios.next().unwrap_or_else(|| Cell::from("baseline"));
        self.shown([
            Cell::from(&class.class),
            Cell::from(words::count(class.ok)),
            Cell::from(format!("{:.2} %", class.share_percent)),
            Cell::from(least.map_or_else(|| "–".to_owned(), |least| format!("{least:.0} %"))),
            latency(&class.latency_us_p50),
            latency(&class.latency_us_p90),
            Cell::from(limit.unwrap_or_default()),
            latency(&class.latency_us_p99),
            next_ratio(),
            next_ratio(),
            Cell::from(words::count(class.retries)),
            Cell::from(words::count(class.failed)),
        ])
        .collect()
    }

    fn ratio(&self, one: &QuantityComparison) -> Cell {
        ratio_cell(self.unit, self.shared_reason, one.change, &one.ratio)
    }
}

/// A decided ratio with its interval. An undecided or not compared one is given in words, with the interval or the reason
/// beneath, unless the table states it once.
pub(super) fn ratio_cell(
    unit: RatioUnit,
    shared_reason: Option<&str>,
    change: Change,
    ratio: &Figure,
) -> Cell {
    let value = match change {
        Change::NotCompared | Change::Undecided => change.word().to_owned(),
        Change::Higher | Change::Lower | Change::Equivalent => {
            let sign = words::change_sign(change);
            format!("{sign} {}", unit.value(ratio))
        }
    };
    let note = match unit.doubt(ratio) {
        doubt if shared_reason == Some(doubt.as_str()) => String::new(),
        doubt => doubt,
    };
    Cell::answer(looks(change), value, note)
}

fn cell(summary: &Summary, style: &Style<'_>, cell: &ClassCell) -> ClassesCell {
    ClassesCell {
        contender: cell.contender.clone(),
        number: number_of(summary, &cell.contender),
        table: Table::new(
            style.shown(COLUMNS.map(Column::from)).collect(),
            cell.classes.iter().map(|class| style.row(class)),
        ),
        errors: errors(&cell.errors),
    }
}

fn errors(codes: &[ErrorCode]) -> String {
    let texts = codes.iter().map(|error| {
        format!(
            "{} × {} ({})",
            words::count(error.count),
            error.code,
            error.example
        )
    });
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => "none".to_owned(),
        false => texts.join("; "),
    }
}
