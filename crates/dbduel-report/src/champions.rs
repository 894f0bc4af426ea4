//! Chosen variant of each contender at each load level, as text.

use dbduel_judge::Summary;
use dbduel_judge::summary::ChampionChoice;
use dbduel_record::Verdict;
use serde::Serialize;

use super::terminal::page::{Ink, Page};
use super::view::table::{Cell, Column, NAME, Row, TEXT, Table};
use super::words::{self, RatioUnit};

const COLUMNS: [(&str, &str); 4] = [
    ("", "load"),
    (NAME, "contender"),
    (TEXT, "chosen variant"),
    (TEXT, "other variants ÷ chosen"),
];

#[derive(Debug, Clone, Serialize)]
pub struct ChampionsView {
    /// By level, then contender.
    pub table: Table,
    /// How variants were chosen and which blocks the verdicts use.
    pub note: String,
}

/// The section on variants; `None` when no contender has any.
#[must_use]
pub fn view(summary: &Summary) -> Option<ChampionsView> {
    let first = summary.champions.first()?;
    Some(ChampionsView {
        table: Table::new(
            COLUMNS.map(Column::from).into(),
            summary.champions.iter().map(|one| row(summary, one)),
        ),
        note: format!(
            "Variants competed in the first {} of each load level; the one with the highest mean log throughput was chosen \
             there. Verdicts, ratios and figures are about the chosen ones in later blocks only, so that the selection \
             does not bias them. A choice is undecided while another variant is not shown to be slower; all pairs of variants \
             of a load level share an error probability of {}.",
            words::things(first.blocks.into(), "block"),
            words::share(1.0 - summary.rule.confidence)
        ),
    })
}

fn row(summary: &Summary, choice: &ChampionChoice) -> Row {
    let level = summary.duels.iter().find(|duel| duel.level == choice.level);
    let unit = RatioUnit::of(choice.variants.iter().filter_map(|one| one.ratio.as_ref()));
    let others = choice.variants.iter().filter_map(|variant| {
        let (ratio, verdict) = (variant.ratio.as_ref()?, variant.verdict?);
        Some(format!(
            "{}: {} {} ({})",
            variant.settings,
            words::sign(verdict),
            unit.value(ratio),
            unit.doubt(ratio)
        ))
    });
    let open: Vec<&str> = choice
        .open()
        .map(|variant| variant.settings.as_str())
        .collect();
    let are_equivalent = choice
        .open()
        .all(|one| one.verdict == Some(Verdict::Equivalent));
    let note = match (choice.chosen(), open.is_empty(), are_equivalent) {
        (None, ..) => "nothing chosen: no complete block".to_owned(),
        (_, true, _) => "decided".to_owned(),
        (_, _, true) => format!("equivalent within the horizon: {}", open.join("; ")),
        _ => format!(
            "undecided: {} of {} others may be as fast",
            open.len(),
            choice.variants.len() - 1
        ),
    };
    let chosen = choice.chosen();
    let chosen = chosen.map_or("–", |variant| variant.settings.as_str());
    Row::from_iter([
        Cell::from(level.map_or("", |duel| duel.label.as_str())),
        Cell::from(&choice.contender),
        Cell {
            note,
            ..Cell::code(chosen)
        },
        Cell {
            lines: others.collect(),
            ..Cell::default()
        },
    ])
}

/// Prints the section.
pub fn print(page: &mut Page, view: &ChampionsView) {
    page.blank();
    page.inked_lines(Ink::Bold, "Chosen variants");
    for row in view.table.rows() {
        let [level, contender, chosen, others] = row.cells.as_slice() else {
            continue;
        };
        let label = format!("  {}, {}  ", level.value, contender.value);
        let text = format!("{} ({})", chosen.value, chosen.note);
        page.labelled((Ink::Plain, &label), (Ink::Plain, &text));
        for other in &others.lines {
            page.labelled((Ink::Dim, "    "), (Ink::Dim, other));
        }
    }
    page.inked_lines(Ink::Dim, &view.note);
}
