//! Effect of each factor of a designed contest, as text and as a chart.

pub(super) mod chart;

use dbduel_judge::Summary;
use dbduel_judge::summary::{
    Attribution, Change, Duel, FactorEffect, Figure, Interaction, QuantityComparison,
};
use dbduel_record::Verdict;
use dbduel_record::design::{ChangeKind, DesignChange, DesignFactor};
use serde::Serialize;

use super::terminal::page::{Ink, Page, padded};
use super::view::table::{Cell, Column, NAME, NUMBER, Row, TEXT, Table};
use super::words::{self, RatioUnit};

/// Columns of the table of effects.
const COLUMNS: [(&str, &str); 7] = [
    (NAME, "factor"),
    (TEXT, "change"),
    (NUMBER, "throughput"),
    (NUMBER, "share"),
    (NUMBER, "p95 latency"),
    (NUMBER, "server CPU"),
    (NUMBER, "bytes written"),
];

#[derive(Debug, Clone, Serialize)]
pub struct AttributionView {
    pub levels: Vec<AttributionLevel>,
    /// Definitions of the figures and their joint confidence.
    pub note: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct AttributionLevel {
    pub label: String,
    /// Sum of the effects and number of interactions, one sentence each.
    pub sentences: Vec<String>,
    /// A row per factor, the largest effect first.
    pub effects: Table,
    /// Interactions whose interval excludes no interaction; absent where there are none.
    pub interactions: Option<Table>,
}

/// The attribution section; `None` unless the contest is designed.
#[must_use]
pub fn view(summary: &Summary) -> Option<AttributionView> {
    let divided = || {
        let duels = summary.duels.iter();
        duels.filter_map(|duel| Some((duel, duel.attribution.as_ref()?)))
    };
    let (_, first) = divided().next()?;
    Some(AttributionView {
        levels: divided()
            .map(|(duel, one)| level(summary, duel, one))
            .collect(),
        note: note(summary, first),
    })
}

/// One sentence per level on the factors with an effect, without the full stop.
#[must_use]
pub fn headlines(summary: &Summary) -> Vec<String> {
    let divided = summary.duels.iter().filter_map(|duel| {
        let one = duel.attribution.as_ref()?;
        let place = match summary.duels.len() {
            1 => String::new(),
            _ => format!("At {}: ", duel.label),
        };
        Some(format!("{place}{}", headline(one)?))
    });
    divided.collect()
}

fn headline(attribution: &Attribution) -> Option<String> {
    let of = |verdicts: &[Verdict]| {
        let found = by_size(attribution)
            .into_iter()
            .filter(|(_, effect)| verdicts.contains(&effect.verdict));
        found
            .map(|(_, effect)| effect)
            .collect::<Vec<&FactorEffect>>()
    };
    let found = of(&[Verdict::Faster, Verdict::Slower]);
    let unit = RatioUnit::of(found.iter().map(|effect| &effect.ratio));
    let mut parts: Vec<String> = Vec::new();
    if !found.is_empty() {
        let effects = found
            .iter()
            .map(|effect| format!("{} {}", effect.factor, unit.value(&effect.ratio)));
        parts.push(effects.collect::<Vec<String>>().join(", "));
    }
    for (verdicts, said) in [
        (Verdict::Equivalent, "equivalent"),
        (Verdict::Undecided, "undecided"),
    ] {
        let names: Vec<&str> = of(&[verdicts])
            .iter()
            .map(|effect| effect.factor.as_str())
            .collect();
        if !names.is_empty() {
            parts.push(format!("{said}: {}", words::joined(&names)));
        }
    }
    (!parts.is_empty()).then(|| format!("By factor: {}", parts.join("; ")))
}

/// Effects with their numbers, the largest first.
fn by_size(attribution: &Attribution) -> Vec<(usize, &FactorEffect)> {
    let mut effects: Vec<(usize, &FactorEffect)> = attribution.effects.iter().enumerate().collect();
    let size = |effect: &FactorEffect| effect.ratio.value().map_or(0.0, |ratio| ratio.ln().abs());
    effects.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
    effects
}

fn level(summary: &Summary, duel: &Duel, attribution: &Attribution) -> AttributionLevel {
    let found: Vec<&Interaction> = attribution
        .interactions
        .iter()
        .filter(|one| matches!(one.change, Change::Higher | Change::Lower))
        .collect();
    let effects = attribution.effects.iter().map(|effect| &effect.ratio);
    let unit = RatioUnit::of(effects.chain(found.iter().map(|one| &one.ratio)));
    let others = attribution
        .effects
        .iter()
        .flat_map(|effect| &effect.quantities);
    let other_unit = RatioUnit::of(others.map(|one| &one.ratio));
    let row = |(number, effect): (usize, &FactorEffect)| {
        let factor = attribution.factors.get(number);
        let sign = words::sign(effect.verdict);
        let cells = [
            Cell {
                letter: letter(number).to_string(),
                ..Cell::from(&effect.factor)
            },
            Cell {
                note: factor.map(remark).unwrap_or_default(),
                ..Cell::code(factor.map(levels_of).unwrap_or_default())
            },
            Cell::answer(
                effect.verdict.word(),
                format!("{sign} {}", unit.value(&effect.ratio)),
                unit.doubt(&effect.ratio),
            ),
            Cell::from(
                effect
                    .share
                    .map_or_else(|| "–".to_owned(), percent_of_whole),
            ),
        ];
        let quantities = effect.quantities.iter();
        let quantities = quantities.map(|one| quantity(one, other_unit));
        cells.into_iter().chain(quantities).collect::<Row>()
    };
    let interactions = found.iter().map(|one| interaction(one, unit));
    let columns = [
        (TEXT, "interaction"),
        (NUMBER, "both together ÷ each by itself"),
    ];
    AttributionLevel {
        label: duel.label.clone(),
        sentences: sentences(summary, duel, attribution, found.len()),
        effects: Table::new(
            COLUMNS.map(Column::from).into(),
            by_size(attribution).into_iter().map(row),
        ),
        interactions: (!found.is_empty())
            .then(|| Table::new(columns.map(Column::from).into(), interactions)),
    }
}

/// The letter of a factor in the names of contenders.
fn letter(factor: usize) -> char {
    char::from(b'a' + (factor.min(25)) as u8)
}

/// The levels of a factor: those of its change, or of every change by its name.
fn levels_of(factor: &DesignFactor) -> String {
    let levels = |change: &DesignChange| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "default".to_owned());
        format!("{} → {}", value(&change.from), value(&change.to))
    };
    match factor.changes.as_slice() {
        [only] if only.kind != ChangeKind::Table => levels(only),
        changes => {
            let changes = changes
                .iter()
                .map(|change| format!("{} {}", change.name, levels(change)));
            changes.collect::<Vec<String>>().join(", ")
        }
    }
}

fn remark(factor: &DesignFactor) -> String {
    match (&factor.grouped_because, factor.is_listed) {
        (Some(why), _) => format!("changed together: {why}"),
        (None, false) => "all differences that the experiment does not list".to_owned(),
        (None, true) => String::new(),
    }
}

fn percent_of_whole(share: f64) -> String {
    let percent = format!("{:.0} %", 100.0 * share).replace('-', "−");
    match percent.as_str() {
        "−0 %" => "0 %".to_owned(),
        _ => percent,
    }
}

fn quantity(one: &QuantityComparison, unit: RatioUnit) -> Cell {
    match &one.ratio {
        Figure::NotMeasured { why } => Cell {
            hover: why.clone(),
            ..Cell::from("–")
        },
        figure => Cell::answer(
            one.change.word(),
            format!("{} {}", words::change_sign(one.change), unit.value(figure)),
            unit.doubt(figure),
        ),
    }
}

fn interaction(one: &Interaction, unit: RatioUnit) -> Row {
    let terms = one.terms.iter().map(|term| {
        let [first, second] = &term.factors;
        let inverse = if term.is_inverse { "inverse of " } else { "" };
        format!("{inverse}{first} × {second}")
    });
    let terms: Vec<String> = terms.collect();
    let partly = if one.is_clear {
        ""
    } else {
        " (confounded with other pairs)"
    };
    let answer = match one.change {
        Change::Higher => Verdict::Faster.word(),
        Change::Lower => Verdict::Slower.word(),
        other => other.word(),
    };
    let sign = words::change_sign(one.change);
    Row::from_iter([
        Cell::from(format!("{}{partly}", terms.join(" and "))),
        Cell::answer(
            answer,
            format!("{sign} {}", unit.value(&one.ratio)),
            unit.doubt(&one.ratio),
        ),
    ])
}

/// Sentences on the sum of the effects and the number of interactions.
fn sentences(
    summary: &Summary,
    duel: &Duel,
    attribution: &Attribution,
    found: usize,
) -> Vec<String> {
    if let Some(why) = &attribution.because {
        return vec![format!("The difference cannot be divided: {why}.")];
    }
    let whole = duel
        .comparisons
        .first()
        .and_then(|whole| words::ratio_value(&whole.ratio));
    let whole = whole.map_or(String::new(), |whole| format!(" ({whole})"));
    let is_all = attribution.factors.iter().all(|factor| factor.is_listed);
    let listed = match is_all {
        true => format!("The effects of all {} factors", attribution.factors.len()),
        false => "The listed settings".to_owned(),
    };
    let verb = if is_all { "add up to" } else { "explain" };
    let mut sentences = vec![match (&attribution.listed_share, &attribution.gap) {
        (_, None) if is_all => {
            format!("With two factors, effects always sum to the whole difference{whole}.")
        }
        (
            Figure::Estimated {
                value, low, high, ..
            },
            _,
        ) => format!(
            "{listed} {verb} {} [{}, {}] of the whole difference{whole} between {} and {}.",
            percent_of_whole(*value),
            percent_of_whole(*low),
            high.map_or("∞".to_owned(), percent_of_whole),
            summary.baseline,
            attribution.target
        ),
        (Figure::Bare { why, .. } | Figure::NotMeasured { why }, _) => {
            format!("{listed}: share of the whole difference{whole} unknown, because {why}.")
        }
    }];
    if let Some(gap @ Figure::Estimated { .. }) = &attribution.gap {
        let unit = RatioUnit::of([gap]);
        sentences.push(format!(
            "Interactions of three or more factors: {} ({}).",
            unit.value(gap),
            unit.interval(gap)
        ));
    }
    let tested = attribution.interactions.len();
    let contrasts = match tested {
        1 => "1 contrast".to_owned(),
        _ => format!("{tested} contrasts"),
    };
    sentences.push(match found {
        0 => format!("Interactions of two factors: none found in {contrasts}."),
        _ => format!("Interactions of two factors: found in {found} of {contrasts}."),
    });
    sentences.extend(second_stage(summary, attribution));
    sentences
}

/// Factors within the horizon, since which block, and the size of a second stage without them where it has fewer
/// contenders. `None` while all or no factors are within the horizon.
fn second_stage(summary: &Summary, attribution: &Attribution) -> Option<String> {
    let (within, remaining): (Vec<&FactorEffect>, Vec<&FactorEffect>) = attribution
        .effects
        .iter()
        .partition(|effect| effect.is_within_horizon);
    if within.is_empty() || remaining.is_empty() {
        return None;
    }
    let since = |effect: &&FactorEffect| {
        let block = match effect.verdict {
            Verdict::Equivalent => effect.decided_at_block,
            // Its verdict is another one, which may have stood before.
            Verdict::Faster | Verdict::Slower | Verdict::Undecided | Verdict::Void => None,
        };
        let since = block.map_or(String::new(), |block| format!(" (after {block} blocks)"));
        format!("{}{since}", effect.factor)
    };
    let within: Vec<String> = within.iter().map(since).collect();
    let remaining: Vec<&str> = remaining.iter().map(|one| one.factor.as_str()).collect();
    // Those within the horizon change as one factor.
    let contenders = contenders_of(remaining.len() + 1);
    let next = match contenders < contenders_of(attribution.effects.len()) {
        true => format!(
            " A second stage of {} measures the others ({}) with new data: `dbduel attribute DIR --second-stage`.",
            words::things(contenders, "contender"),
            words::joined(&remaining),
        ),
        false => String::new(),
    };
    Some(format!(
        "Within the horizon of {}: {}.{next}",
        words::share(summary.rule.horizon),
        words::joined_texts(&within)
    ))
}

/// Contenders of a design of so many factors.
fn contenders_of(factors: usize) -> u64 {
    let design = dbduel_stats::attribution::FactorialDesign::new(factors);
    design.map_or(0, |design| design.runs().len() as u64)
}

fn note(summary: &Summary, attribution: &Attribution) -> String {
    let alpha = 1.0 - summary.rule.confidence;
    let factors = attribution.effects.len().max(1);
    let design = match attribution.has_all_combinations {
        true => "all combinations of the factors",
        false => {
            "a Plackett-Burman design with foldover: main effects are clear of two-factor interactions, some of which share \
             a contrast"
        }
    };
    format!(
        "{} contenders, {design}. Effect: mean ratio of the factor's second level to its first over all combinations of the \
         others, within blocks. Share: of the logarithm of the whole difference. Joint confidence {} of the effects on \
         throughput ({} error probability each), of their {} effects on latency and cost, of the interactions, and of the sum, \
         however often the run was checked. Names of contenders: the letters of the changed factors.",
        attribution.contenders,
        words::share(summary.rule.confidence),
        words::share(alpha / factors as f64),
        factors * FactorEffect::QUANTITIES.len(),
    )
}

/// Prints the attribution section on a terminal.
pub fn print(page: &mut Page, view: &AttributionView) {
    for level in &view.levels {
        page.blank();
        page.inked_lines(
            Ink::Bold,
            &format!("Effects of the factors, {}", level.label),
        );
        for sentence in &level.sentences {
            page.wrapped(sentence);
        }
        let factors = level.effects.rows().filter_map(|row| row.cells.first());
        let widths = factors.map(|factor| factor.value.chars().count());
        let width = widths.max().unwrap_or(0).min(page.width / 3);
        for row in level.effects.rows() {
            let [factor, change, throughput, share, quantities @ ..] = row.cells.as_slice() else {
                continue;
            };
            let label = format!("  {} {}  ", factor.letter, padded(&factor.value, width));
            let mut text = format!(
                "{}: {} ({}), {} of the whole",
                change.value, throughput.value, throughput.note, share.value
            );
            let others = COLUMNS.iter().skip(4).zip(quantities);
            for ((_, head), one) in
                others.filter(|(_, one)| matches!(one.answer, "higher" | "lower"))
            {
                text.push_str(&format!("; {head} {} ({})", one.value, one.note));
            }
            if !change.note.is_empty() {
                text.push_str(&format!("; {}", change.note));
            }
            page.labelled((Ink::Plain, &label), (Ink::Plain, &text));
        }
        for row in level.interactions.iter().flat_map(Table::rows) {
            let [name, ratio] = row.cells.as_slice() else {
                continue;
            };
            let text = format!("{}: {} ({})", name.value, ratio.value, ratio.note);
            page.labelled((Ink::Plain, "  × "), (Ink::Plain, &text));
        }
    }
    page.inked_lines(Ink::Dim, &view.note);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, format};
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn every_format_names_the_factors_and_what_they_add_up_to() {
        let (summary, findings) = summarise(&Scenario::designed().record());
        let options = Options {
            width: 100,
            colour: false,
        };
        for name in ["terminal", "html", "markdown"] {
            let text = format(name)
                .unwrap()
                .render(&summary, &findings, &options)
                .text;
            // Markdown has a backslash before an underscore.
            let text = text
                .replace('\\', "")
                .split_whitespace()
                .collect::<Vec<&str>>()
                .join(" ");
            for expected in [
                "innodb_flush_log_at_trx_commit",
                "innodb_lru_scan_depth",
                "add up to",
                "1 → 2",
            ] {
                assert!(text.contains(expected), "{name}: no {expected}");
            }
        }
        let left = &view(&summary).unwrap().levels[0].sentences[3];
        assert!(
            left.starts_with("Within the horizon of 2 %: innodb_lru_scan_depth (after "),
            "{left}"
        );
        // With two of three factors left it would have as many contenders.
        assert!(!left.contains("second stage"), "{left}");
        let mut settled = summary.clone();
        let attribution = settled.duels[0].attribution.as_mut().unwrap();
        for effect in &mut attribution.effects[1..] {
            effect.is_within_horizon = true;
        }
        attribution.effects[0].is_within_horizon = false;
        let left = &view(&settled).unwrap().levels[0].sentences[3];
        assert!(
            left.contains("A second stage of 4 contenders measures the others"),
            "{left}"
        );
        let lead = words::headlines(&summary);
        assert_eq!(lead.len(), 2);
        assert!(
            lead[1].starts_with("By factor: innodb_flush_log_at_trx_commit +"),
            "{lead:?}"
        );
        assert!(
            lead[1].ends_with("; equivalent: innodb_lru_scan_depth"),
            "{lead:?}"
        );
    }

    #[test]
    fn what_is_open_is_not_called_an_effect() {
        let scenario = Scenario {
            blocks: 3,
            ..Scenario::designed()
        };
        let (summary, _) = summarise(&scenario.record());
        let view = view(&summary).unwrap();
        assert!(
            view.levels[0]
                .effects
                .rows()
                .all(|row| row.cells[2].answer == "undecided" && row.cells[3].value == "–")
        );
        assert!(view.levels[0].sentences[0].contains("unknown, because"));
        assert!(chart::effects(&summary, &summary.duels[0], 900.0).is_some());
    }
}
