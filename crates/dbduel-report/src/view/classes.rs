//! Transaction classes as text: a table per contender and load level.

use dbduel_judge::Summary;
use dbduel_judge::classes::{ClassCell, ClassFigures, ErrorCode};
use dbduel_judge::summary::{Change, Figure, QuantityComparison};
use serde::Serialize;

use super::ratios::looks;
use crate::number_of;
use crate::words::{self, RatioUnit};

/// The tables of a workload with several classes.
#[derive(Debug, Clone, Serialize)]
pub struct ClassesView {
    pub columns: Vec<&'static str>,
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
    /// A row per class, its texts in the order of [`ClassesView::columns`].
    pub rows: Vec<Vec<ClassText>>,
    pub errors: String,
}

/// One text of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassText {
    /// The value, or the answer in a word where no value is decided.
    pub value: String,
    /// The interval, or why there is none.
    pub doubt: String,
    /// CSS class of the answer; empty where there is no comparison with the baseline.
    pub answer: &'static str,
}

impl ClassText {
    fn plain(value: String) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    fn latency(figure: &Figure) -> Self {
        Self {
            value: words::value(figure, words::latency),
            doubt: match figure.interval() {
                Some(_) => words::latency_doubt(figure),
                None => String::new(),
            },
            answer: "",
        }
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
        shared_reason: shared_reason(ratios()),
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
        columns: style.row(&HEADS),
        levels: levels.collect(),
        note: format!(
            "Share: of committed transactions.{limits} Ratio: quantile of a typical slice ÷ that of {}, within blocks; lower \
             is better. The classes of a contender share the error probability of its comparison.{reason}",
            summary.baseline
        ),
    })
}

/// Why undecided ratios have no interval, if all have the same reason.
fn shared_reason<'s>(ratios: impl Iterator<Item = &'s QuantityComparison>) -> Option<&'s str> {
    let mut reasons = ratios.filter_map(|one| match (&one.ratio, one.change) {
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

/// One row of a table, or its headings.
struct Columns<T> {
    class: T,
    ok: T,
    share: T,
    at_least: T,
    p50: T,
    p90: T,
    limit: T,
    p99: T,
    p50_ratio: T,
    p99_ratio: T,
    retried: T,
    failed: T,
}

const HEADS: Columns<&str> = Columns {
    class: "class",
    ok: "ok",
    share: "share",
    at_least: "at least",
    p50: "p50",
    p90: "p90",
    limit: "limit",
    p99: "p99",
    p50_ratio: "p50 ratio",
    p99_ratio: "p99 ratio",
    retried: "retried",
    failed: "failed",
};

impl Style<'_> {
    /// The columns in their order; those of the specification are left out where there is none.
    fn row<T: Clone>(&self, columns: &Columns<T>) -> Vec<T> {
        let is_limited = self.has_limits;
        let all = [
            (&columns.class, true),
            (&columns.ok, true),
            (&columns.share, true),
            (&columns.at_least, is_limited),
            (&columns.p50, true),
            (&columns.p90, true),
            (&columns.limit, is_limited),
            (&columns.p99, true),
            (&columns.p50_ratio, true),
            (&columns.p99_ratio, true),
            (&columns.retried, true),
            (&columns.failed, true),
        ];
        let shown = all.into_iter().filter(|(_, is_shown)| *is_shown);
        shown.map(|(column, _)| column.clone()).collect()
    }

    fn texts(&self, class: &ClassFigures) -> Columns<ClassText> {
        let least = class.share_min_percent.filter(|least| *least > 0.0);
        let mut ratios = class.against_baseline.iter().map(|one| self.ratio(one));
        let mut next_ratio = || {
            let baseline = || ClassText::plain("baseline".to_owned());
            ratios.next().unwrap_or_else(baseline)
        };
        Columns {
            class: ClassText::plain(class.class.clone()),
            ok: ClassText::plain(words::count(class.ok)),
            share: ClassText::plain(format!("{:.2} %", class.share_percent)),
            at_least: ClassText::plain(
                least.map_or_else(|| "–".to_owned(), |least| format!("{least:.0} %")),
            ),
            p50: ClassText::latency(&class.latency_us_p50),
            p90: ClassText::latency(&class.latency_us_p90),
            limit: ClassText::plain(
                class
                    .latency_us_p90_max
                    .map(words::latency)
                    .unwrap_or_default(),
            ),
            p99: ClassText::latency(&class.latency_us_p99),
            p50_ratio: next_ratio(),
            p99_ratio: next_ratio(),
            retried: ClassText::plain(words::count(class.retries)),
            failed: ClassText::plain(words::count(class.failed)),
        }
    }

    /// A decided ratio with its interval. An undecided or not compared one is given in words, with the interval or the
    /// reason beneath.
    fn ratio(&self, one: &QuantityComparison) -> ClassText {
        let value = match one.change {
            Change::NotCompared | Change::Undecided => one.change.word().to_owned(),
            Change::Higher | Change::Lower | Change::Equivalent => {
                let sign = words::change_sign(one.change);
                format!("{sign} {}", self.unit.value(&one.ratio))
            }
        };
        let doubt = self.unit.doubt(&one.ratio);
        ClassText {
            value,
            doubt: match self.shared_reason {
                Some(why) if why == doubt => String::new(),
                _ => doubt,
            },
            answer: looks(one.change),
        }
    }
}

fn cell(summary: &Summary, style: &Style<'_>, cell: &ClassCell) -> ClassesCell {
    let classes = cell.classes.iter();
    ClassesCell {
        contender: cell.contender.clone(),
        number: number_of(summary, &cell.contender),
        rows: classes
            .map(|class| style.row(&style.texts(class)))
            .collect(),
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
