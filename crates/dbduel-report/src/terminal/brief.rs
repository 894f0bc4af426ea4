//! The short report for a terminal: the verdicts, the largest differences in time, and the first caveats.

use dbduel_audit::Finding;
use dbduel_judge::Summary;

use super::page::{Ink, Page};
use super::print_finding;
use super::verdicts::verdict_box;
use crate::view::{View, first_caveats};
use crate::{Options, Rendered, explanation, words};

/// Caveats that the short report has.
const CAVEATS_MAX: usize = 3;
/// Decided comparisons whose difference in time the short report has.
const DIFFERENCES_MAX: usize = 3;

/// The report without figures, tables and notes.
pub(crate) fn brief(summary: &Summary, findings: &[Finding], options: &Options) -> Rendered {
    let mut page = Page::new(options);
    let view = View::new(summary, findings);
    verdict_box(&mut page, summary, &view.findings);
    let mut more = Vec::new();
    // The workloads of a suite have tables of costs instead.
    if view.suite.is_none() {
        let differences = differences(summary);
        for (number, difference) in differences.iter().take(DIFFERENCES_MAX).enumerate() {
            if number == 0 {
                page.blank();
                page.inked_lines(Ink::Bold, "Resource differences, exploratory");
            }
            page.item(difference);
        }
        more.push((differences.len(), DIFFERENCES_MAX, "resource difference"));
    }
    for (number, caveat) in first_caveats(&view.findings, CAVEATS_MAX).enumerate() {
        if number == 0 {
            page.blank();
        }
        print_finding(&mut page, caveat);
    }
    more.push((view.reservations, CAVEATS_MAX, "caveat"));
    let mut rest = vec!["Figures".to_owned(), "notes".to_owned()];
    for (all, shown, what) in more {
        if all > shown {
            rest.push(words::things((all - shown) as u64, &format!("more {what}")));
        }
    }
    page.blank();
    page.inked_lines(
        Ink::Dim,
        &format!(
            "{}: `dbduel report DIR --full`, or the HTML page.",
            words::joined_texts(&rest)
        ),
    );
    Rendered::of_terminal(&page.text)
}

/// The difference in time of each comparison that is decided as faster or slower, with its leading cost.
fn differences(summary: &Summary) -> Vec<String> {
    let decided = summary
        .explanations
        .iter()
        .filter(|one| explanation::is_decided(summary, one) && explanation::has_content(one));
    let leads = decided.filter_map(|one| {
        let lead = explanation::sentences(summary, one)
            .lead
            .into_iter()
            .next()?;
        let duel = summary.duels.iter().find(|duel| duel.level == one.level)?;
        Some(match summary.duels.len() {
            1 => lead,
            _ => format!("{}: {lead}", duel.label),
        })
    });
    leads.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_record::event::Severity;
    use dbduel_testkit::synthetic::suite::suite_record;
    use dbduel_testkit::synthetic::{Observation, Scenario};

    const OPTIONS: Options = Options {
        width: 100,
        colour: false,
    };

    /// The short report in one line, without the frame of the verdict.
    fn text(summary: &Summary, findings: &[Finding]) -> String {
        let text = brief(summary, findings, &OPTIONS).text.replace('│', "");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn it_has_the_verdict_the_difference_in_time_and_three_caveats() {
        let scenario = Scenario::duel().observed(Observation::doublewrite());
        let (summary, findings) = summarise(&scenario.record());
        let lead = &explanation::sentences(&summary, &summary.explanations[0]).lead[0];
        let text = text(&summary, &findings);
        for part in [
            summary.question.as_str(),
            "▲ faster",
            "Was it fair?",
            &format!("- 1 client: {lead}"),
            "`dbduel report DIR --full`",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        for part in ["CPU/trx", "· note", "Run: "] {
            assert!(!text.contains(part), "`{part}` in {text}");
        }
        assert_eq!(text.matches(" → ").count(), CAVEATS_MAX, "{text}");
    }

    #[test]
    fn doubts_about_the_run_come_before_those_of_the_audit_and_the_others_are_counted() {
        let (summary, _) = summarise(&Scenario::duel().record());
        let finding = |rule: &str, severity: Severity| Finding {
            rule: rule.to_owned(),
            ..Finding::new(severity, &[], format!("Claim of {rule}."), "Change it.")
        };
        let findings = [
            finding("audit.P1.a", Severity::Doubt),
            finding("audit.P2.b", Severity::Doubt),
            finding("load.lag", Severity::Doubt),
            finding("load.stalled", Severity::Doubt),
            finding("data.digest", Severity::Void),
            finding("run.extended", Severity::Note),
        ];
        let text = text(&summary, &findings);
        let at = |rule: &str| text.find(&format!("Claim of {rule}."));
        let order = ["data.digest", "load.lag", "load.stalled"].map(|rule| at(rule).unwrap());
        assert!(order.is_sorted(), "{text}");
        for left_out in ["audit.P1.a", "audit.P2.b", "run.extended"] {
            assert_eq!(at(left_out), None, "{text}");
        }
        assert!(
            text.contains("Figures, notes and 2 more caveats: "),
            "{text}"
        );
    }

    #[test]
    fn a_suite_is_its_headlines() {
        let (summary, findings) = summarise(&suite_record());
        let text = text(&summary, &findings);
        for headline in words::headlines(&summary) {
            assert!(text.contains(&headline), "no `{headline}` in {text}");
        }
        for part in ["Error probability of a workload", "Resource differences"] {
            assert!(!text.contains(part), "`{part}` in {text}");
        }
    }
}
