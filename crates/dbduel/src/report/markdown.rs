//! The report as Markdown for a forge, with its charts as SVG files beside it.
//!
//! Text from outside (names, questions, versions) is escaped so that it stays text.

use std::fmt::Write as _;

use dbduel_record::event::Finding;

use super::view::{COLUMNS, Entry, RatioView, SettingView, View};
use super::{ExtraFile, Format, Options, Rendered, chart};
use crate::judge::Summary;

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
        ratios(
            &mut text,
            "Latency and cost",
            "quantity",
            &view.quantities,
            &view.quantities_note,
        );
        ratios(
            &mut text,
            "Every two contenders",
            "against",
            &view.pairs,
            &view.pairs_note,
        );
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
        contenders(&mut text, &view);
        entries(&mut text, "Host", &view.host);
        list(&mut text, "Not measured", &view.not_measured);
        entries(&mut text, "Method", &view.method);
        entries(&mut text, "To run it again", &view.reproduce);
        Rendered { text, files }
    }
}

/// Text that Markdown and HTML leave alone, fit for a cell of a table.
fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention of a user, or a link out of bare text.
            '@' => escaped.push_str("&#64;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn head(text: &mut String, cells: &[&str], numbers_from: usize) {
    row(
        text,
        &cells
            .iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    );
    let rules: Vec<String> = (0..cells.len())
        .map(|index| if index < numbers_from { "---" } else { "---:" }.to_owned())
        .collect();
    row(text, &rules);
}

fn verdicts(text: &mut String, view: &View) {
    let _ = writeln!(text, "# {}\n", plain(&view.question));
    for headline in &view.headlines {
        let _ = writeln!(text, "**{}.**\n", plain(headline));
    }
    let _ = writeln!(
        text,
        "Throughput against {}, horizon {}, confidence {} per load level. Scope: {}.\n",
        plain(&view.baseline),
        view.horizon,
        view.confidence,
        view.scope
    );
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
    for finding in &view.findings {
        let _ = write!(text, "- **{}** {}", finding.severity, plain(&finding.claim));
        if finding.severity != "note" {
            let _ = write!(text, " *{}*", plain(&finding.remedy));
        }
        let _ = writeln!(text, " ({})", plain(&finding.rule));
    }
    text.push('\n');
}

fn figures(text: &mut String, view: &View) {
    text.push_str("## Throughput and latency\n\n");
    for level in &view.levels {
        let _ = writeln!(
            text,
            "### {}\n\n{}\n",
            plain(&level.label),
            plain(&level.blocks)
        );
        let mut heads = vec!["contender"];
        heads.extend(COLUMNS.iter().map(|column| column.head));
        head(text, &heads, 1);
        for measures in &level.rows {
            let mut cells = vec![plain(&measures.contender)];
            cells.extend(
                measures
                    .figures
                    .iter()
                    .map(|figure| match figure.doubt.as_str() {
                        "" => plain(&figure.value),
                        doubt => format!("{}<br><sub>{}</sub>", plain(&figure.value), plain(doubt)),
                    }),
            );
            row(text, &cells);
        }
        text.push('\n');
        for measures in &level.rows {
            let (name, outcomes) = (plain(&measures.contender), plain(&measures.outcomes));
            let _ = writeln!(
                text,
                "- {name}: {outcomes}; stalls: {}",
                plain(&measures.stalls)
            );
        }
        if !level.without_interval.is_empty() {
            let count = level.without_interval.len();
            let _ = writeln!(
                text,
                "\n<details><summary>Why {count} of these figures have no interval</summary>\n"
            );
            for reason in &level.without_interval {
                let _ = writeln!(text, "- {}", plain(reason));
            }
            text.push_str("\n</details>\n");
        }
        text.push('\n');
    }
    text.push_str(
        "Below each value: its interval, or that none could be given. CPU is processor time per committed transaction.\n\n",
    );
}

/// A table of ratios beside the verdicts', and the note below it.
fn ratios(text: &mut String, title: &str, what: &str, rows: &[RatioView], note: &str) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "## {title}\n");
    head(
        text,
        &[
            "load",
            "contender",
            what,
            "answer",
            "ratio",
            "interval",
            "SD of a block",
        ],
        4,
    );
    for one in rows {
        let cells = [
            &one.level,
            &one.contender,
            &one.what,
            &one.phrase,
            &one.ratio,
            &one.interval,
            &one.block_sd,
        ];
        row(text, &cells.map(|cell| plain(cell)));
    }
    let _ = writeln!(text, "\n{}\n", plain(note));
}

fn contenders(text: &mut String, view: &View) {
    text.push_str("## Contenders\n\n");
    for contender in &view.contenders {
        let baseline = if contender.is_baseline {
            " (baseline)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "### {}{baseline}\n\n{}\n",
            plain(&contender.name),
            plain(&contender.version)
        );
        for Entry { label, text: value } in contender.facts.iter().chain(&contender.settings) {
            let _ = writeln!(text, "- {}: {}", plain(label), plain(value));
        }
        text.push('\n');
    }
    if view.settings.is_empty() {
        text.push_str("No differing effective setting is known.\n\n");
        return;
    }
    text.push_str("### Effective settings that differ\n\n");
    let names: Vec<String> = view
        .contenders
        .iter()
        .map(|contender| plain(&contender.name))
        .collect();
    let mut heads = vec!["setting"];
    heads.extend(names.iter().map(String::as_str));
    head(text, &heads, heads.len());
    settings(text, &view.settings);
    text.push('\n');
    if !view.settings_more.is_empty() {
        let _ = writeln!(
            text,
            "<details><summary>{} more</summary>\n",
            view.settings_more.len()
        );
        head(text, &heads, heads.len());
        settings(text, &view.settings_more);
        text.push_str("\n</details>\n\n");
    }
}

fn settings(text: &mut String, settings: &[SettingView]) {
    for setting in settings {
        let asked = if setting.is_asked_for {
            " (asked for)"
        } else {
            ""
        };
        let mut cells = vec![format!("{}{asked}", plain(&setting.name))];
        cells.extend(setting.values.iter().map(|value| plain(value)));
        row(text, &cells);
    }
}

fn entries(text: &mut String, title: &str, entries: &[Entry]) {
    let _ = writeln!(text, "## {title}\n");
    for entry in entries {
        let _ = writeln!(
            text,
            "- **{}**: {}",
            plain(&entry.label),
            plain(&entry.text)
        );
    }
    text.push('\n');
}

fn list(text: &mut String, title: &str, items: &[String]) {
    let _ = writeln!(text, "## {title}\n");
    for item in items {
        let _ = writeln!(text, "- {}", plain(item));
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
        files.extend(latency.map(|svg| file(format!("latency-{number}"), &svg)));
    }
    let schedule = chart::schedule_strip(summary, WIDTH);
    files.extend(schedule.map(|svg| file("schedule".to_owned(), &svg)));
    files
}
