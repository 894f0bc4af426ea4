//! Findings as text, selection of those beside the verdicts, and the disclosure checklist.
//!
//! A finding that holds for several workloads of a suite or several contenders is listed once, with its text for each.

use dbduel_audit::Finding;
use dbduel_audit::finding::quoted;
use dbduel_judge::Summary;
use dbduel_record::event::Severity;
use serde::Serialize;

use super::{Entry, entry};

/// Maximum number of doubts of the audit beside the verdicts; the audit has a section for all of them.
const AUDIT_DOUBTS_SHOWN: usize = 5;

#[derive(Debug, Clone, Serialize)]
pub struct FindingView {
    /// `void`, `doubt` or `note`.
    pub severity: &'static str,
    pub sign: &'static str,
    pub rule: String,
    /// Why the rule matters; empty when the claim says so.
    pub why: String,
    pub claim: String,
    pub remedy: String,
    /// Its text for the other workloads or contenders for which it holds.
    pub others: Vec<Entry>,
    #[serde(skip)]
    is_of_audit: bool,
}

/// All findings in order; those that say the same of several workloads or several contenders are merged.
pub(super) fn views(summary: &Summary, findings: &[Finding]) -> Vec<FindingView> {
    let mut kept: Vec<(&Finding, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        let mut kept_ones = kept.iter_mut();
        match kept_ones.find(|(first, _)| says_the_same(summary, first, finding)) {
            Some((_, others)) => others.push(finding),
            None => kept.push((finding, Vec::new())),
        }
    }
    let views = kept.into_iter();
    views
        .map(|(first, others)| view(summary, first, &others))
        .collect()
}

/// True for two findings of one rule that differ only in the workload of a suite and its figures, or only in the
/// contender that differs from the baseline.
fn says_the_same(summary: &Summary, one: &Finding, other: &Finding) -> bool {
    let is_of_workload = |finding: &Finding| summary.suite.is_some() && finding.level.is_some();
    let is_of_contender = |finding: &Finding| finding.is_of_audit() && finding.about.len() == 1;
    one.rule == other.rule
        && one.severity == other.severity
        && if is_of_workload(one) {
            is_of_workload(other) && one.about == other.about
        } else {
            is_of_contender(one) && is_of_contender(other) && one.remedy == other.remedy
        }
}

/// Workload or contender that a merged finding is about.
fn label(summary: &Summary, finding: &Finding) -> String {
    let mut duels = summary.duels.iter();
    match finding.level {
        Some(level) => duels
            .find(|duel| duel.level == level)
            .map_or_else(String::new, |duel| duel.label.clone()),
        None => quoted(&finding.about),
    }
}

fn view(summary: &Summary, first: &Finding, others: &[&Finding]) -> FindingView {
    let label = |finding: &Finding| label(summary, finding);
    let mut claim = first.claim.clone();
    let mut labels: Vec<String> = Vec::new();
    for other in others.iter().map(|other| label(other)) {
        if other != label(first) && !labels.contains(&other) {
            labels.push(other);
        }
    }
    if !labels.is_empty() {
        let preposition = match first.level {
            Some(_) => "at",
            None => "of",
        };
        let labels = labels.join(", ");
        claim.push_str(&format!(" Also {preposition} {labels}; details differ."));
    }
    let others = others.iter().map(|other| {
        let mut text = other.claim.clone();
        if other.remedy != first.remedy {
            text.push_str(&format!(" {}", other.remedy));
        }
        entry(&label(other), text)
    });
    let (severity, sign) = severity(first.severity);
    FindingView {
        severity,
        sign,
        rule: first.rule.clone(),
        why: first.why.clone(),
        claim,
        remedy: first.remedy.clone(),
        others: others.collect(),
        is_of_audit: first.is_of_audit(),
    }
}

/// A severity as a word and a sign.
#[must_use]
pub fn severity(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Void => ("void", "✕"),
        Severity::Doubt => ("doubt", "!"),
        Severity::Note => ("note", "·"),
    }
}

fn is_doubt_of_audit(finding: &FindingView) -> bool {
    finding.severity == "doubt" && finding.is_of_audit
}

/// Findings beside the verdicts: voids and doubts, of the audit's doubts only the first.
pub(super) fn caveats(findings: &[FindingView]) -> Vec<FindingView> {
    let mut of_audit = 0;
    let heavy = findings.iter().filter(|finding| !finding.is_note());
    let shown = heavy.filter(|finding| {
        of_audit += usize::from(is_doubt_of_audit(finding));
        !is_doubt_of_audit(finding) || of_audit <= AUDIT_DOUBTS_SHOWN
    });
    shown.cloned().collect()
}

/// Number of the audit's doubts that are not among the [`caveats`].
pub(super) fn audit_doubts_left(findings: &[FindingView]) -> usize {
    let of_audit = findings.iter().filter(|finding| is_doubt_of_audit(finding));
    of_audit.count().saturating_sub(AUDIT_DOUBTS_SHOWN)
}

/// The first caveats of a short report: what voids a verdict, then doubts about the run, then those of the audit, whose
/// grade is beside the verdicts.
pub fn first_caveats(findings: &[FindingView], most: usize) -> impl Iterator<Item = &FindingView> {
    let mut heavy: Vec<&FindingView> = findings.iter().filter(|one| !one.is_note()).collect();
    heavy.sort_by_key(|one| (one.severity != "void", one.is_of_audit));
    heavy.into_iter().take(most)
}

impl FindingView {
    /// True when it weakens no verdict.
    #[must_use]
    pub fn is_note(&self) -> bool {
        self.severity == "note"
    }
}

/// A section of the disclosure checklist.
#[derive(Debug, Clone, Serialize)]
pub struct DisclosureView {
    pub section: String,
    /// Items that the record has.
    pub present: Vec<String>,
    /// Items that it lacks, each with the place where it would be.
    pub missing: Vec<Entry>,
}

pub(super) fn disclosure(summary: &Summary) -> Vec<DisclosureView> {
    let mut sections: Vec<DisclosureView> = Vec::new();
    for item in &summary.disclosure {
        if sections
            .last()
            .is_none_or(|last| last.section != item.section)
        {
            sections.push(DisclosureView {
                section: item.section.clone(),
                present: Vec::new(),
                missing: Vec::new(),
            });
        }
        let Some(section) = sections.last_mut() else {
            continue;
        };
        if item.present {
            section.present.push(item.item.clone());
        } else {
            section.missing.push(entry(&item.item, item.place.clone()));
        }
    }
    sections
}

/// Summary of the checklist: present and missing items.
pub(super) fn disclosed(summary: &Summary) -> String {
    let all = summary.disclosure.len();
    let present = summary
        .disclosure
        .iter()
        .filter(|item| item.present)
        .count();
    format!("{present} of {all} present, {} missing", all - present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, format};
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::suite::suite_record;

    const OPTIONS: Options = Options {
        width: 96,
        colour: false,
    };

    #[test]
    fn a_finding_of_several_workloads_is_listed_once_with_all_of_them() {
        let (summary, _) = summarise(&suite_record());
        let lag = |level: usize, severity: Severity, about: &[&str]| {
            let claim = format!("Lag of {} ms at {}.", level + 1, summary.duels[level].label);
            let finding = Finding::new(severity, about, claim, "Give it cores.").at(level);
            Finding {
                rule: "load.lag".to_owned(),
                ..finding
            }
        };
        let doubt = Severity::Doubt;
        let findings = [
            lag(0, doubt, &[]),
            lag(1, doubt, &["mysql-8.0"]),
            lag(1, doubt, &[]),
            lag(2, doubt, &[]),
            lag(2, Severity::Note, &[]),
        ];
        let folded =
            "Lag of 1 ms at point-query. Also at random-points-100, update-index; details differ.";
        for name in ["terminal", "markdown", "html"] {
            let text = format(name)
                .unwrap()
                .render(&summary, &findings, &OPTIONS)
                .text;
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(folded), "{name}: {text}");
            let others = usize::from(name != "terminal");
            let count = text.matches("Lag of 3 ms at update-index.").count();
            // On the page doubts stand beside the verdicts and in the list of all findings; the note is another finding.
            assert_eq!(
                count,
                others * if name == "html" { 2 } else { 1 } + 1,
                "{name}"
            );
        }
        let terminal = format("terminal").unwrap();
        let text = terminal.render(&summary, &findings, &OPTIONS).text;
        assert!(text.contains("; 2 caveats below"), "{text}");
        let json = format("json")
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        assert_eq!(json.matches("load.lag").count(), 5);
    }

    #[test]
    fn a_difference_of_several_contenders_is_listed_once_with_all_of_them() {
        let (summary, _) = summarise(&suite_record());
        let allocator = |contender: &str, remedy: &str| {
            let claim = format!("Memory allocator: `base` jemalloc, `{contender}` system.");
            Finding {
                rule: "audit.P24.memory.allocator".to_owned(),
                ..Finding::new(Severity::Doubt, &[contender], claim, remedy)
            }
        };
        let one = "Start both with one allocator.";
        let findings = [
            allocator("b", one),
            allocator("c", one),
            allocator("d", "Set `malloc` on `d`."),
            allocator("e", one),
        ];
        for (name, of_c) in [("terminal", 0), ("markdown", 1), ("html", 2)] {
            let text = format(name)
                .unwrap()
                .render(&summary, &findings, &OPTIONS)
                .text;
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let of = |contender: &str| {
                let claim = ["`", contender, "` system."].concat();
                let claim = match name {
                    "html" => claim
                        .replace('`', "")
                        .replace(contender, &format!("<code>{contender}</code>")),
                    _ => claim,
                };
                text.matches(&claim).count()
            };
            assert_eq!(of("c"), of_c, "{name}: {text}");
            assert!(of("b") > 0 && of("d") > 0, "{name}: {text}");
            assert!(text.contains("; details differ."), "{name}: {text}");
        }
    }
}
