//! Latency and cost, and every two contenders, as lines of a terminal.

use super::page::{Ink, Page, clean};
use crate::judge::Summary;
use crate::judge::summary::{
    Change, Comparison, Figure, PairComparison, QuantityComparison, Verdict,
};
use crate::report::words;

/// What is decided about latency and cost, with its interval; the rest is named.
pub(super) fn quantities(page: &mut Page, summary: &Summary) {
    let comparisons = || {
        let duels = summary.duels.iter();
        duels.flat_map(|duel| duel.comparisons.iter().map(move |one| (duel, one)))
    };
    let is_measured = |quantity: &QuantityComparison| quantity.ratio.value().is_some();
    if !comparisons().any(|(_, comparison)| comparison.quantities.iter().any(is_measured)) {
        return;
    }
    page.blank();
    let title = page.inked(
        Ink::Bold,
        &format!("latency and cost against {}", clean(&summary.baseline)),
    );
    page.line(&title);
    for (duel, comparison) in comparisons() {
        if comparison.verdict == Verdict::Void {
            continue;
        }
        let label = format!("{}, {}: ", clean(&comparison.contender), duel.label);
        page.wrapped(&format!("{label}{}", answers(comparison)));
    }
    note(page, &words::quantities_note(summary));
}

fn answers(comparison: &Comparison) -> String {
    let mut answers: Vec<String> = Vec::new();
    let named = |change: Change| -> Vec<&str> {
        let of_it = comparison.quantities.iter();
        let of_it = of_it.filter(|quantity| quantity.change == change);
        of_it.map(|quantity| quantity.quantity.label()).collect()
    };
    for quantity in &comparison.quantities {
        if matches!(quantity.change, Change::Undecided | Change::NotCompared) {
            continue;
        }
        answers.push(format!(
            "{} {} {} {} ({})",
            quantity.quantity.label(),
            words::change_sign(quantity.change),
            quantity.change.word(),
            words::ratio_value(&quantity.ratio).unwrap_or_default(),
            words::ratio_interval(&quantity.ratio)
        ));
    }
    for change in [Change::Undecided, Change::NotCompared] {
        let names = named(change);
        if !names.is_empty() {
            answers.push(format!("{} {}", change.word(), names.join(", ")));
        }
    }
    answers.join("; ")
}

/// Every two contenders of a duel of three or more.
pub(super) fn pairs(page: &mut Page, summary: &Summary) {
    if summary.duels.iter().all(|duel| duel.pairs.is_empty()) {
        return;
    }
    page.blank();
    let title = page.inked(Ink::Bold, "every two contenders");
    page.line(&title);
    for duel in &summary.duels {
        for pair in &duel.pairs {
            let doubt = match &pair.ratio {
                ratio @ Figure::Estimated { .. } => words::ratio_interval(ratio),
                Figure::Bare { why, .. } | Figure::NotMeasured { why } => why.clone(),
            };
            page.wrapped(&format!(
                "{}: {} against {} {} {} {} ({doubt}){}",
                duel.label,
                clean(&pair.contender),
                clean(&pair.against),
                words::sign(pair.verdict),
                pair.verdict.word(),
                words::ratio_value(&pair.ratio).unwrap_or_else(|| "–".to_owned()),
                decided_beside(pair),
            ));
        }
        for line in words::ranking(duel) {
            page.wrapped(&format!("  {}: {}", duel.label, clean(&line)));
        }
    }
    note(page, &words::pairs_note(summary));
}

/// What is decided of a pair beside throughput.
fn decided_beside(pair: &PairComparison) -> String {
    let decided = pair.quantities.iter().filter_map(|one| {
        let ratio = words::ratio_value(&one.ratio)?;
        let is_decided = !matches!(one.change, Change::Undecided | Change::NotCompared);
        is_decided.then(|| {
            let (sign, interval) = (
                words::change_sign(one.change),
                words::ratio_interval(&one.ratio),
            );
            format!("{} {sign} {ratio} ({interval})", one.quantity.label())
        })
    });
    let decided: Vec<String> = decided.collect();
    match decided.is_empty() {
        true => String::new(),
        false => format!("; {}", decided.join(", ")),
    }
}

fn note(page: &mut Page, text: &str) {
    for line in super::wrap(text, page.width, 0, 0) {
        let line = page.inked(Ink::Dim, &line);
        page.line(&line);
    }
}
