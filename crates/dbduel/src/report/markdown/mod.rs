//! The report as Markdown for a forge, with its charts as SVG files beside it.
//!
//! Text from outside (names, questions, versions) is escaped so that it stays text.

mod about;
mod tables;
mod text;

use std::fmt::Write as _;

use dbduel_record::event::Finding;

use super::view::View;
use super::{ExtraFile, Format, Options, Rendered, chart};
use crate::judge::Summary;
use about::{contenders, disclosure, entries, fairness, list};
use tables::{by_clients, classes, explanations, figures, orders, pairs, quantities, storage};
pub(super) use text::plain;
use text::{head, prose, row};

/// Width of the charts, pixels.
const WIDTH: f64 = 900.0;

/// The format.
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn file_name(&self) -> Option<&'static str> {
        Some("report.md")
    }

    fn render(&self, summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
        let view = View::new(summary, findings);
        let files = charts(summary);
        let mut text = String::new();
        verdicts(&mut text, &view);
        findings_list(&mut text, &view);
        figures(&mut text, &view);
        if let Some(part) = &view.orders {
            orders(&mut text, part);
        }
        if let Some(part) = &view.classes {
            classes(&mut text, part);
        }
        quantities(&mut text, &view);
        if let Some(part) = &view.pairs {
            pairs(&mut text, part);
        }
        if !view.scaling.is_empty() {
            list(&mut text, "Over the load levels", &view.scaling);
        }
        text.push_str("## Charts\n\n");
        for file in &files {
            let label = file
                .name
                .trim_start_matches("report-")
                .trim_end_matches(".svg")
                .replace('-', " ");
            let _ = writeln!(text, "![{label}]({})\n", file.name);
        }
        fairness(&mut text, &view);
        explanations(&mut text, &view);
        by_clients(&mut text, &view);
        storage(&mut text, &view);
        contenders(&mut text, &view);
        entries(&mut text, "Host", &view.host);
        disclosure(&mut text, &view);
        list(&mut text, "Not measured", &view.not_measured);
        entries(&mut text, "Method", &view.method);
        entries(&mut text, "To run it again", &view.reproduce);
        Rendered::of_files(&text, files)
    }
}

fn verdicts(text: &mut String, view: &View) {
    let _ = writeln!(text, "# {}\n", plain(&view.question));
    for headline in &view.headlines {
        let _ = writeln!(text, "**{}.**\n", plain(headline));
    }
    if let Some(part) = &view.orders {
        let _ = writeln!(text, "*{}*\n", plain(&part.disclaimer));
    }
    let _ = writeln!(
        text,
        "Throughput against {}, horizon {}, confidence {} per load level. Scope: {}.\n",
        plain(&view.baseline),
        view.horizon,
        view.confidence,
        view.scope
    );
    if let Some(fairness) = &view.fairness {
        let _ = writeln!(
            text,
            "Was it fair? **{}**: {}.\n",
            fairness.grade,
            prose(&fairness.because)
        );
    }
    head(
        text,
        &[
            "load",
            "contender",
            "verdict",
            "ratio",
            "interval",
            "blocks",
            "how",
        ],
        7,
    );
    for verdict in &view.verdicts {
        let cells = [
            &verdict.level,
            &verdict.contender,
            &format!("{} {}", verdict.sign, verdict.phrase),
            &verdict.ratio,
            &verdict.interval,
            &verdict.blocks,
            &verdict.how,
        ];
        row(text, &cells.map(|cell| plain(cell)));
    }
    text.push('\n');
    for verdict in view
        .verdicts
        .iter()
        .filter(|verdict| !verdict.overturned_by.is_empty())
    {
        let _ = writeln!(
            text,
            "- {}, {}: {}. {}",
            plain(&verdict.contender),
            plain(&verdict.level),
            match verdict.verdict {
                "undecided" => plain(&verdict.overturned_by.join("; ")),
                _ => format!(
                    "would be overturned by {}",
                    plain(&verdict.overturned_by.join("; or by "))
                ),
            },
            plain(&verdict.checks)
        );
    }
    let _ = writeln!(
        text,
        "\n{}. Workload: {}.\n",
        plain(&view.when),
        plain(&view.workload)
    );
}

fn findings_list(text: &mut String, view: &View) {
    if view.findings.is_empty() {
        return;
    }
    text.push_str("## Findings\n\n");
    let notes = view.findings.iter().filter(|one| one.severity == "note");
    for finding in view.caveats.iter().chain(notes) {
        let _ = write!(text, "- **{}** {}", finding.severity, prose(&finding.claim));
        if finding.severity != "note" {
            let _ = write!(text, " *{}*", prose(&finding.remedy));
        }
        let _ = writeln!(text, " ({})", plain(&finding.rule));
    }
    if view.caveats_more > 0 {
        let more = view.caveats_more;
        let _ = writeln!(text, "- and {more} more doubts of the audit, below");
    }
    text.push('\n');
}

fn charts(summary: &Summary) -> Vec<ExtraFile> {
    let file = |name: String, svg: &str| ExtraFile {
        name: format!("report-{name}.svg"),
        text: chart::standalone(svg),
    };
    let mut files = vec![file("ratios".to_owned(), &chart::forest(summary, WIDTH))];
    for duel in &summary.duels {
        let number = duel.level + 1;
        let over_time = chart::throughput_over_time(summary, duel, WIDTH);
        let latency = chart::latency_profile(summary, duel, WIDTH / 2.0);
        files.extend(over_time.map(|svg| file(format!("throughput-over-time-{number}"), &svg)));
        let meanwhile = chart::meanwhile(summary, duel, WIDTH);
        files.extend(meanwhile.map(|svg| file(format!("meanwhile-{number}"), &svg)));
        let orders = chart::new_orders(summary, duel, WIDTH);
        files.extend(orders.map(|svg| file(format!("new-orders-{number}"), &svg)));
        files.extend(latency.map(|svg| file(format!("latency-{number}"), &svg)));
        let curve = chart::latency_curve(summary, duel, WIDTH / 2.0);
        let steadiness = chart::steadiness(summary, duel, WIDTH / 2.0);
        files.extend(curve.map(|svg| file(format!("latency-curve-{number}"), &svg)));
        files.extend(steadiness.map(|svg| file(format!("steadiness-{number}"), &svg)));
        for (index, explanation) in summary.explanations.iter().enumerate() {
            if explanation.level == duel.level {
                let waterfall = chart::waterfall(summary, explanation, WIDTH);
                files.extend(waterfall.map(|svg| file(format!("waterfall-{}", index + 1), &svg)));
            }
        }
    }
    files.extend(summary.flames.iter().enumerate().map(|(index, flame)| {
        let svg = chart::flame(summary, flame, WIDTH);
        file(format!("stacks-{}", index + 1), &svg)
    }));
    let tradeoff = chart::throughput_against_latency(summary, WIDTH);
    files.extend(tradeoff.map(|svg| file("throughput-against-latency".to_owned(), &svg)));
    let schedule = chart::schedule_strip(summary, WIDTH);
    files.extend(schedule.map(|svg| file("schedule".to_owned(), &svg)));
    files
}
