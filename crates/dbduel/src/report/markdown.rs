//! The report as Markdown for a forge, with its charts as SVG files beside it.
//!
//! Text from outside (names, questions, versions) is escaped so that it stays text.

use std::fmt::Write as _;

use dbduel_record::event::Finding;

use super::explanation::{CAUTION, RowView};
use super::view::{
    BY_CLIENTS_HEADS, CLASS_COLUMNS, COLUMNS, Entry, OrdersView, RatioView, STORAGE_HEADS,
    SettingView, View,
};
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
        if let Some(part) = &view.orders {
            orders(&mut text, part);
        }
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
        Rendered { text, files }
    }
}

/// Text that Markdown and HTML leave alone, fit for a cell of a table.
pub(super) fn plain(text: &str) -> String {
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
            plain(&fairness.because)
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
        let _ = write!(text, "- **{}** {}", finding.severity, plain(&finding.claim));
        if finding.severity != "note" {
            let _ = write!(text, " *{}*", plain(&finding.remedy));
        }
        let _ = writeln!(text, " ({})", plain(&finding.rule));
    }
    if view.caveats_more > 0 {
        let more = view.caveats_more;
        let _ = writeln!(text, "- and {more} more doubts of the audit, below");
    }
    text.push('\n');
}

fn fairness(text: &mut String, view: &View) {
    let Some(fairness) = &view.fairness else {
        return;
    };
    let _ = writeln!(
        text,
        "## Was it fair?\n\n**{}**: {}. {}\n",
        fairness.grade,
        plain(&fairness.because),
        fairness.compared
    );
    for promise in &fairness.promises {
        let _ = writeln!(
            text,
            "- {}: {}",
            plain(&promise.label),
            plain(&promise.text)
        );
    }
    text.push('\n');
    for one in fairness.doubts.iter().chain(&fairness.waived) {
        let _ = write!(
            text,
            "- **{}** {} *{}*",
            one.severity,
            plain(&one.claim),
            plain(&one.remedy)
        );
        if !one.waived.is_empty() {
            let _ = write!(text, " Waived: {}", plain(&one.waived));
        }
        let _ = writeln!(text, " ({})", plain(&one.rule));
        for side in &one.evidence {
            let _ = writeln!(text, "  - {}: {}", plain(&side.label), plain(&side.text));
        }
    }
    if !fairness.notes.is_empty() {
        let count = fairness.notes.len();
        let _ = writeln!(text, "\n<details><summary>{count} notes</summary>\n");
        for one in &fairness.notes {
            let _ = writeln!(text, "- {} ({})", plain(&one.claim), plain(&one.rule));
        }
        text.push_str("\n</details>\n");
    }
    text.push('\n');
}

fn disclosure(text: &mut String, view: &View) {
    let _ = writeln!(text, "## Disclosure\n\n{}.\n", view.disclosed);
    for section in &view.disclosure {
        let missing = section
            .missing
            .iter()
            .map(|item| format!("**missing: {}**", plain(&item.label)));
        let present = section.present.iter().map(|item| plain(item));
        let items: Vec<String> = missing.chain(present).collect();
        let _ = writeln!(text, "- {}: {}", section.section, items.join("; "));
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

fn explanations(text: &mut String, view: &View) {
    if view.explanations.is_empty() {
        return;
    }
    let _ = writeln!(text, "## What moved with the difference\n\n{CAUTION}\n");
    for one in &view.explanations {
        let _ = writeln!(
            text,
            "### {}, {} against {}\n",
            plain(&one.level),
            plain(&one.contender),
            plain(&one.baseline)
        );
        for sentence in &one.sentences {
            let _ = writeln!(text, "- {}", plain(sentence));
        }
        text.push('\n');
        explanation_table(
            text,
            "where the time went",
            &one.baseline,
            &one.contender,
            &one.parts,
        );
        let _ = writeln!(
            text,
            "<details><summary>All {} resources</summary>\n",
            one.costs.len()
        );
        explanation_table(
            text,
            "per transaction",
            &one.baseline,
            &one.contender,
            &one.costs,
        );
        text.push_str("</details>\n\n");
    }
}

fn explanation_table(
    text: &mut String,
    what: &str,
    baseline: &str,
    contender: &str,
    rows: &[RowView],
) {
    if rows.is_empty() {
        return;
    }
    let (baseline, contender) = (plain(baseline), plain(contender));
    head(text, &[what, &baseline, &contender, "change"], 1);
    for one in rows {
        let cells = [&one.name, &one.baseline, &one.contender, &one.change];
        row(text, &cells.map(|cell| plain(cell)));
    }
    text.push('\n');
}

fn by_clients(text: &mut String, view: &View) {
    if view.by_clients.is_empty() {
        return;
    }
    text.push_str("## By number of clients\n\n");
    head(text, &BY_CLIENTS_HEADS, 2);
    for one in &view.by_clients {
        let mut cells = vec![plain(&one.level), plain(&one.contender)];
        cells.extend(one.cells.iter().map(|cell| plain(cell)));
        row(text, &cells);
    }
    text.push('\n');
}

fn storage(text: &mut String, view: &View) {
    if view.storage.is_empty() {
        return;
    }
    text.push_str("## Storage\n\n");
    head(text, &STORAGE_HEADS, 1);
    for one in &view.storage {
        let mut cells = vec![plain(&one.contender)];
        cells.extend(one.cells.iter().map(|cell| plain(cell)));
        row(text, &cells);
    }
    text.push('\n');
}

fn orders(text: &mut String, part: &OrdersView) {
    let _ = writeln!(text, "## Order entry\n\n{}\n", plain(&part.disclaimer));
    for Entry { label, text: value } in &part.facts {
        let _ = writeln!(text, "- {}: {}", plain(label), plain(value));
    }
    text.push('\n');
    for level in &part.levels {
        let _ = writeln!(text, "### New-Orders per minute, {}\n", plain(&level.label));
        for cell in &level.cells {
            let _ = writeln!(
                text,
                "**{}: NOPM {}** ({})\n",
                plain(&cell.contender),
                plain(&cell.nopm),
                plain(&cell.doubt)
            );
            head(text, &CLASS_COLUMNS, 1);
            for class in &cell.classes {
                row(
                    text,
                    &class.iter().map(|cell| plain(cell)).collect::<Vec<_>>(),
                );
            }
            let _ = writeln!(
                text,
                "\n- {}\n- {}\n- deliveries that found a district without an order: {}\n- errors: {}\n",
                plain(&cell.slices),
                plain(&cell.rolled_back),
                plain(&cell.deliveries),
                plain(&cell.errors)
            );
        }
    }
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
    let tradeoff = chart::throughput_against_latency(summary, WIDTH);
    files.extend(tradeoff.map(|svg| file("throughput-against-latency".to_owned(), &svg)));
    let schedule = chart::schedule_strip(summary, WIDTH);
    files.extend(schedule.map(|svg| file("schedule".to_owned(), &svg)));
    files
}
