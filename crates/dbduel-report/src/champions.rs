//! Chosen variant of each contender at each load level, as text.

use dbduel_judge::Summary;
use dbduel_judge::summary::ChampionChoice;
use dbduel_record::Verdict;
use serde::Serialize;

use super::terminal::page::{Ink, Page};
use super::words::{self, RatioUnit};

/// Headings of the table.
const HEADS: [&str; 4] = [
    "load",
    "contender",
    "chosen variant",
    "other variants ÷ chosen",
];

#[derive(Debug, Clone, Serialize)]
pub struct ChampionsView {
    pub heads: [&'static str; 4],
    /// By level, then contender.
    pub rows: Vec<ChampionView>,
    /// How variants were chosen and which blocks the verdicts use.
    pub note: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct ChampionView {
    pub level: String,
    pub contender: String,
    pub chosen: String,
    /// Whether the choice is decided, and how many other variants may be as fast.
    pub doubt: String,
    /// CSS class of the choice: `faster` when it is decided, else `undecided`.
    pub answer: &'static str,
    /// The other variants with their ratios.
    pub others: Vec<String>,
}

/// The section on variants; `None` when no contender has any.
#[must_use]
pub fn view(summary: &Summary) -> Option<ChampionsView> {
    let first = summary.champions.first()?;
    Some(ChampionsView {
        heads: HEADS,
        rows: summary
            .champions
            .iter()
            .map(|one| row(summary, one))
            .collect(),
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

fn row(summary: &Summary, choice: &ChampionChoice) -> ChampionView {
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
    let (answer, doubt) = match (choice.chosen(), open.is_empty(), are_equivalent) {
        (None, ..) => ("undecided", "nothing chosen: no complete block".to_owned()),
        (_, true, _) => ("faster", "decided".to_owned()),
        (_, _, true) => (
            "equivalent",
            format!("equivalent within the horizon: {}", open.join("; ")),
        ),
        _ => (
            "undecided",
            format!(
                "undecided: {} of {} others may be as fast",
                open.len(),
                choice.variants.len() - 1
            ),
        ),
    };
    ChampionView {
        level: level.map_or_else(String::new, |duel| duel.label.clone()),
        contender: choice.contender.clone(),
        chosen: choice
            .chosen()
            .map_or("–", |variant| variant.settings.as_str())
            .to_owned(),
        doubt,
        answer,
        others: others.collect(),
    }
}

/// Prints the section.
pub fn print(page: &mut Page, view: &ChampionsView) {
    page.blank();
    page.inked_lines(Ink::Bold, "Chosen variants");
    for row in &view.rows {
        let label = format!("  {}, {}  ", row.level, row.contender);
        let text = format!("{} ({})", row.chosen, row.doubt);
        page.labelled((Ink::Plain, &label), (Ink::Plain, &text));
        for other in &row.others {
            page.labelled((Ink::Dim, "    "), (Ink::Dim, other));
        }
    }
    page.inked_lines(Ink::Dim, &view.note);
}
