//! The table of figures, as many columns as fit.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Figure, Measures};

use super::page::{Ink, Page, clean, columns_of};
use super::table::Layout;
use crate::view::figures::{MAX, MEAN, NamedFigure, P50, P95, P99};
use crate::view::table::{Cell, Column, Group, NAME, NUMBER, Row, Table};
use crate::words;

/// Indentation of a row, columns.
const INDENT: usize = 2;
/// Width of a figure, columns.
const CELL: usize = 10;

/// A figure and how it is written.
type WrittenFigure = (NamedFigure, fn(f64) -> String);

/// The columns, most important first; narrow terminals get the first ones.
const COLUMNS: [WrittenFigure; 7] = [
    (
        ("trx/s", |measures| &measures.throughput_per_s),
        words::number,
    ),
    (MEAN, words::latency),
    (P50, words::latency),
    (P95, words::latency),
    (P99, words::latency),
    (MAX, words::latency),
    (
        ("CPU/trx", |measures| {
            &measures.server_cpu_us_per_transaction
        }),
        words::latency,
    ),
];

/// The figures of every contender at every level.
pub(super) fn figures(page: &mut Page, summary: &Summary) {
    page.blank();
    let contenders = summary.contenders.iter();
    let names = contenders.map(|contender| columns_of(&clean(&contender.name)) + INDENT);
    let name_width = names.max().unwrap_or(0).clamp(10, page.width / 3);
    let shown = ((page.width - name_width) / (CELL + 1)).clamp(1, COLUMNS.len());
    let is_wide = wide_columns(summary);
    let layout = Layout {
        indent: INDENT,
        widths: [&[name_width - INDENT][..], &[CELL; COLUMNS.len()][..shown]].concat(),
        has_notes: true,
    };
    page.table(&table(summary, is_wide), &layout);
    let note = format!(
        "±: half width of the {} interval of one contender, for runs of this length{}; ±?: no upper end, or the figure is \
         zero; no ±: not computable. Compare contenders by the ratios above.",
        words::share(summary.rule.confidence),
        match is_wide[..shown].contains(&true) {
            true => "; to n×: its upper end, in columns with half widths beyond 100 %",
            false => "",
        }
    );
    let courses = words::courses(summary)
        .filter(|_| words::is_unsettled(summary))
        .unwrap_or_default();
    page.inked_lines(Ink::Dim, &format!("{note} {courses}"));
}

fn table(summary: &Summary, is_wide: [bool; COLUMNS.len()]) -> Table {
    let heads = COLUMNS.map(|((head, _), _)| (NUMBER, head));
    let row = |measures: &Measures| {
        let name = Cell::from(&measures.contender);
        let columns = COLUMNS.iter().zip(is_wide);
        let cells = columns.map(|(((_, figure), text), is_wide)| {
            let figure = figure(measures);
            Cell {
                note: doubt(figure, is_wide),
                ..Cell::from(figure.value().map_or("–".to_owned(), text))
            }
        });
        [name].into_iter().chain(cells).collect::<Row>()
    };
    let groups = summary.duels.iter().map(|duel| Group {
        head: duel.label.clone(),
        rows: duel.contenders.iter().map(row).collect(),
    });
    Table {
        columns: [(NAME, "")]
            .into_iter()
            .chain(heads)
            .map(Column::from)
            .collect(),
        groups: groups.collect(),
        ..Table::default()
    }
}

/// Which columns hold an interval whose half width exceeds its value.
fn wide_columns(summary: &Summary) -> [bool; COLUMNS.len()] {
    COLUMNS.map(|((_, figure), _)| {
        let mut measures = summary.duels.iter().flat_map(|duel| &duel.contenders);
        measures.any(|measures| half_width(figure(measures)).is_some_and(|half| half > 1.0))
    })
}

/// The larger half of the interval as a share of the value; in a column with half widths beyond 100 %, the upper end
/// as a multiple of the value instead.
fn doubt(figure: &Figure, is_wide: bool) -> String {
    let Some((value, (_, high))) = figure.value().zip(figure.interval()) else {
        return String::new();
    };
    match half_width(figure) {
        None => "±?".to_owned(),
        Some(_) if is_wide => format!("to {}×", words::number(high / value)),
        Some(half) => format!("±{:.1} %", 100.0 * half),
    }
}

/// The larger half of the interval as a share of the value; `None` where there is none.
fn half_width(figure: &Figure) -> Option<f64> {
    let (value, (low, high)) = figure.value().zip(figure.interval())?;
    (value > 0.0 && high.is_finite()).then(|| (high - value).max(value - low) / value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use dbduel_judge::summarise;
    use dbduel_judge::summary::How;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn a_half_width_beyond_the_figure_turns_its_column_into_factors() {
        let (mut summary, _) = summarise(&Scenario::duel().record());
        let p99 = &mut summary.duels[0].contenders[1].latency_us_p99;
        *p99 = Figure::Estimated {
            value: 5_000.0,
            low: 4_000.0,
            high: Some(510_000.0),
            confidence: 0.95,
            n: 14,
            how: How::MergedHistograms,
        };
        let mut page = Page::new(&Options {
            width: 100,
            colour: false,
        });
        figures(&mut page, &summary);
        assert!(page.text.contains("to 102×"), "{}", page.text);
        assert!(!page.text.contains("±10"), "{}", page.text);
        let p99_of_others = page
            .text
            .lines()
            .filter(|line| line.contains("to 1."))
            .count();
        assert_eq!(p99_of_others, 5, "{}", page.text);
    }
}
