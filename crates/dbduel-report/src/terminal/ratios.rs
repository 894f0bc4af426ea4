//! Latency and cost, and every two contenders, as lines of a terminal.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Change, Duel, Figure, PairComparison, QuantityComparison};
use dbduel_record::Verdict;

use super::page::{Ink, Page, clean};
use crate::words::{self, RatioUnit};

/// Prints the decided quantities of latency and cost with their intervals; the others are named with the reason.
pub(super) fn quantities(page: &mut Page, summary: &Summary) {
    let comparisons = || {
        let duels = summary.duels.iter();
        duels.flat_map(|duel| duel.comparisons.iter().map(move |one| (duel, one)))
    };
    let quantities = || comparisons().flat_map(|(_, comparison)| &comparison.quantities);
    if quantities().all(|quantity| quantity.ratio.value().is_none()) {
        return;
    }
    page.blank();
    page.inked_lines(
        Ink::Bold,
        &format!("Latency and cost against {}", summary.baseline),
    );
    let shown = quantities().filter(|one| is_decided(one));
    let unit = RatioUnit::of(shown.map(|one| &one.ratio));
    for (duel, comparison) in comparisons() {
        if comparison.verdict == Verdict::Void {
            continue;
        }
        let label = format!("{}, {}: ", clean(&comparison.contender), duel.label);
        page.wrapped(&format!("{label}{}", answers(&comparison.quantities, unit)));
    }
    page.inked_lines(Ink::Dim, &words::quantities_note(summary));
}

/// The quantities in the order decided, undecided, without an interval.
fn answers(quantities: &[QuantityComparison], unit: RatioUnit) -> String {
    let mut answers = decided(quantities, unit);
    // Those that share a reason are named together.
    let mut others: Vec<(String, Vec<&str>)> = Vec::new();
    let is_open = |one: &&QuantityComparison| !is_decided(one);
    for one in quantities.iter().filter(is_open) {
        let said = match &one.ratio {
            Figure::Bare { why, .. } => format!("{}, {why}", one.change.word()),
            // The page says why something was not compared.
            Figure::Estimated { .. } | Figure::NotMeasured { .. } => one.change.word().to_owned(),
        };
        match others.iter_mut().find(|(other, _)| *other == said) {
            Some((_, names)) => names.push(one.quantity.label()),
            None => others.push((said, vec![one.quantity.label()])),
        }
    }
    let others = others.into_iter();
    answers.extend(others.map(|(said, names)| format!("{}: {said}", names.join(", "))));
    answers.join("; ")
}

fn is_decided(one: &QuantityComparison) -> bool {
    !matches!(one.change, Change::Undecided | Change::NotCompared)
}

/// The decided quantities, each with its interval.
fn decided(quantities: &[QuantityComparison], unit: RatioUnit) -> Vec<String> {
    let decided = quantities.iter().filter(|one| is_decided(one));
    let decided = decided.map(|one| {
        format!(
            "{} {} {} {} ({})",
            one.quantity.label(),
            words::change_sign(one.change),
            one.change.word(),
            unit.value(&one.ratio),
            unit.doubt(&one.ratio)
        )
    });
    decided.collect()
}

/// Prints the ratios of all pairs without the baseline, in duels of three or more.
pub(super) fn pairs(page: &mut Page, summary: &Summary) {
    let baseline = summary.baseline.as_str();
    let all = || {
        let duels = summary.duels.iter();
        duels.flat_map(|duel| without(baseline, duel))
    };
    if all().next().is_none() {
        return;
    }
    page.blank();
    page.inked_lines(Ink::Bold, &format!("Pairs without {baseline}"));
    let unit = RatioUnit::of(all().flat_map(|pair| {
        let decided = pair.quantities.iter().filter(|one| is_decided(one));
        std::iter::once(&pair.ratio).chain(decided.map(|one| &one.ratio))
    }));
    for duel in &summary.duels {
        for pair in without(baseline, duel) {
            let mut said = vec![format!(
                "{}: {} against {} {} {} {} ({})",
                duel.label,
                clean(&pair.contender),
                clean(&pair.against),
                words::sign(pair.verdict),
                pair.verdict.word(),
                unit.value(&pair.ratio),
                unit.doubt(&pair.ratio),
            )];
            said.extend(decided(&pair.quantities, unit));
            page.wrapped(&said.join("; "));
        }
        for line in words::ranking(duel) {
            page.wrapped(&format!("  {}: {}", duel.label, clean(&line)));
        }
    }
    page.inked_lines(Ink::Dim, &words::pairs_note(summary));
}

/// The pairs of a duel of which neither is the baseline.
fn without<'s>(baseline: &str, duel: &'s Duel) -> impl Iterator<Item = &'s PairComparison> {
    let pairs = duel.pairs.iter();
    pairs.filter(move |pair| pair.contender != baseline && pair.against != baseline)
}
