//! The report for a terminal: the verdict first, then its evidence.
//!
//! Plain text of a given width; colour is optional.

mod answers;
mod brief;
mod classes;
mod figures;
pub(super) mod page;
mod ratios;
mod statement_classes;
mod table;
mod verdicts;

use super::view::{FindingView, View};
use super::{
    Format, Options, Rendered, attribution, champions, explanation, functions, order_entry,
    scaling, suite, words,
};
pub(super) use brief::brief;
use figures::figures;
pub use page::wrap;
pub(super) use page::{Ink, Page, clean, columns_of, cut, padded};
pub(super) use table::Layout;
use verdicts::verdict_box;

use dbduel_audit::Finding;
use dbduel_judge::Summary;

/// As wide as the label of a finding.
const UNLABELLED: &str = "         ";
const REMEDY: &str = "         → ";
/// Maximum number of notes that are listed; the others are counted.
const NOTES_MAX: usize = 6;

pub const TERMINAL: Format = Format {
    name: "terminal",
    file_name: None,
    render: full,
};

/// The whole report.
pub(super) fn full(summary: &Summary, findings: &[Finding], options: &Options) -> Rendered {
    let mut page = Page::new(options);
    let view = View::new(summary, findings);
    verdict_box(&mut page, summary, &view.findings);
    if let Some(part) = &view.attribution {
        attribution::print(&mut page, part);
    }
    if let Some(part) = &view.champions {
        champions::print(&mut page, part);
    }
    match &view.suite {
        Some(part) => suite::print(&mut page, part),
        None => {
            figures(&mut page, summary);
            ratios::quantities(&mut page, summary);
            ratios::pairs(&mut page, summary);
        }
    }
    for (number, sentence) in scaling::sentences(summary).iter().enumerate() {
        if number == 0 {
            page.blank();
        }
        page.wrapped(sentence);
    }
    if view.suite.is_none() {
        explanations(&mut page, summary);
    }
    functions::print(&mut page, summary);
    if let Some(part) = &view.orders {
        order_entry::print(&mut page, part);
    }
    if let Some(part) = &view.classes {
        classes::classes(&mut page, part);
    }
    if let Some(part) = &view.statements {
        statement_classes::statement_classes(&mut page, part);
    }
    if let Some(part) = &view.answers {
        answers::print(&mut page, part);
    }
    list_findings(&mut page, &view);
    page.blank();
    for proof in proofs(summary) {
        page.wrapped(&proof);
    }
    page.wrapped(&format!(
        "Scope: {}. {}",
        words::scope(summary),
        scope_note(summary)
    ));
    for checked in &view.continuity {
        page.wrapped(&format!("{checked}."));
    }
    if let Some(own) = words::own_resolution(summary) {
        page.wrapped(&format!("Resolution of the lab on this machine: {own}."));
    }
    page.wrapped(&format!("Run: {}; {}", view.when, view.workload));
    page.wrapped(&format!(
        "To reproduce: seed {}, planned by dbduel {}",
        summary.seed, summary.planned_by
    ));
    if let Some(digest) = &summary.record_digest {
        page.wrapped(&format!("Record: digest {digest}"));
    }
    Rendered::of_terminal(&page.text)
}

/// Costs per explanation that a terminal shows; the page has all of them.
const COSTS_SHOWN: usize = 5;

fn explanations(page: &mut Page, summary: &Summary) {
    let shown = summary
        .explanations
        .iter()
        .filter(|one| explanation::has_content(one));
    for one in shown {
        let sentences = explanation::sentences(summary, one);
        let level = summary.duels.iter().find(|duel| duel.level == one.level);
        let label = level.map_or("", |duel| duel.label.as_str());
        page.blank();
        let title = format!(
            "Resource differences: {} against {}, {label}",
            one.contender, summary.baseline
        );
        page.inked_lines(Ink::Bold, &title);
        let costs = sentences.costs.iter().take(COSTS_SHOWN);
        for sentence in sentences.lead.iter().chain(costs) {
            page.item(sentence);
        }
        let more = sentences.costs.len().saturating_sub(COSTS_SHOWN) + sentences.rest.len();
        if more > 0 {
            page.item(&format!("{more} more on the HTML page"));
        }
    }
    let caution = explanation::caution(summary);
    if !caution.is_empty() {
        page.inked_lines(Ink::Dim, &caution);
    }
}

/// Durability of a commit per contender, where power cuts tested it; the pages always have it.
fn proofs(summary: &Summary) -> Vec<String> {
    let contenders = summary.audit.iter().flat_map(|audit| &audit.contenders);
    let tested = contenders.filter(|contender| contender.proof.is_some());
    tested
        .map(|contender| format!("Durability: {}: {}", contender.name, contender.promise))
        .collect()
}

fn scope_note(summary: &Summary) -> String {
    format!(
        "Intervals {}; {} error probability per {}.",
        words::share(summary.rule.confidence),
        words::share(1.0 - summary.rule.confidence),
        words::level(summary)
    )
}

fn list_findings(page: &mut Page, view: &View) {
    if view.findings.is_empty() {
        return;
    }
    page.blank();
    let mut notes = 0;
    let left = view.caveats_more;
    let all_notes = view.findings.iter().filter(|finding| finding.is_note());
    for finding in view.caveats.iter().chain(all_notes) {
        if finding.is_note() {
            notes += 1;
            if notes > NOTES_MAX {
                continue;
            }
        }
        print_finding(page, finding);
    }
    if left > 0 {
        let more = format!(
            "{} of the audit: see the HTML page, or `dbduel audit` the record",
            words::things(left as u64, "more doubt")
        );
        page.labelled((Ink::Plain, UNLABELLED), (Ink::Plain, &more));
    }
    if notes > NOTES_MAX {
        let left = words::things((notes - NOTES_MAX) as u64, "more note");
        let more = format!("{left} on the HTML page");
        page.labelled((Ink::Plain, UNLABELLED), (Ink::Plain, &more));
    }
}

/// A finding with its severity; one that weakens a verdict also has its remedy.
fn print_finding(page: &mut Page, finding: &FindingView) {
    let ink = match finding.severity {
        "void" => Ink::Bad,
        "doubt" => Ink::Warning,
        _ => Ink::Dim,
    };
    let label = format!("{} {:<5}  ", finding.sign, finding.severity);
    page.labelled((ink, &label), (Ink::Plain, &finding.claim));
    if !finding.is_note() {
        page.labelled((Ink::Dim, REMEDY), (Ink::Dim, &finding.remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::explain::{Cost, Group};
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::{Observation, Scenario};

    #[test]
    fn the_five_largest_costs_are_shown_and_the_others_counted() {
        let scenario = Scenario::duel().observed(Observation::doublewrite());
        let (mut summary, findings) = summarise(&scenario.record());
        let explanation = &mut summary.explanations[0];
        let moved = explanation.costs[explanation.moved[0]].clone();
        let groups = [Group::Log, Group::Access, Group::Formats, Group::Waits];
        for group in groups.into_iter().chain([Group::Client]) {
            explanation.moved.push(explanation.costs.len());
            explanation.costs.push(Cost {
                resource: format!("made-{group:?}"),
                name: format!("made {group:?}"),
                group,
                ..moved.clone()
            });
        }
        let costs = explanation::sentences(&summary, &summary.explanations[0]).costs;
        assert!(costs.len() > COSTS_SHOWN, "{costs:?}");
        let options = Options {
            width: 100,
            colour: false,
        };
        let text = TERMINAL.render(&summary, &findings, &options).text;
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for (place, cost) in costs.iter().enumerate() {
            assert_eq!(text.contains(cost), place < COSTS_SHOWN, "{cost}: {text}");
        }
        assert!(text.contains("more on the HTML page"), "{text}");
    }
}
