//! The tables of figures, ratios, costs and sizes.

use std::fmt::Write as _;

use super::text::{head, plain, prose, row};
use crate::report::explanation::RowView;
use crate::report::view::{
    BY_CLIENTS_HEADS, COLUMNS, ClassesView, Entry, OrdersView, PairsView, STORAGE_HEADS, View,
};

/// The figures of every level.
pub(super) fn figures(text: &mut String, view: &View) {
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
                    .map(|figure| valued(&figure.value, &figure.doubt)),
            );
            row(text, &cells);
        }
        text.push('\n');
        for measures in &level.rows {
            let (name, outcomes) = (plain(&measures.contender), plain(&measures.outcomes));
            let course = measures.course.as_ref();
            let course = course.map(|course| format!("; {}", plain(course)));
            let _ = writeln!(
                text,
                "- {name}: {outcomes}; stalls: {}{}",
                plain(&measures.stalls),
                course.unwrap_or_default()
            );
        }
        if !level.without_interval.is_empty() {
            let _ = writeln!(
                text,
                "\n<details><summary>{}</summary>\n",
                level.why_without
            );
            for reason in &level.without_interval {
                let _ = writeln!(text, "- {}", plain(reason));
            }
            text.push_str("\n</details>\n");
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "Below each value: its interval, for runs as long as this one, or that none could be given. CPU is processor time \
         per committed transaction. {}\n",
        plain(&view.courses)
    );
}

/// Latency and cost against the baseline.
pub(super) fn quantities(text: &mut String, view: &View) {
    if view.quantities.is_empty() {
        return;
    }
    text.push_str("## Latency and cost\n\n");
    head(
        text,
        &[
            "load",
            "contender",
            "quantity",
            "answer",
            "ratio",
            "interval",
            "SD of a block",
        ],
        4,
    );
    for one in &view.quantities {
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
    let _ = writeln!(text, "\n{}\n", plain(&view.quantities_note));
}

/// Every two contenders, a table per level.
pub(super) fn pairs(text: &mut String, part: &PairsView) {
    text.push_str("## Every two contenders\n\n");
    for level in &part.levels {
        let _ = writeln!(text, "### {}\n", plain(&level.label));
        let mut heads = vec!["contender", "against"];
        heads.extend(&part.heads);
        head(text, &heads, 2);
        for one in &level.rows {
            let mut cells = vec![plain(&one.contender), plain(&one.against)];
            cells.extend(
                one.cells
                    .iter()
                    .map(|cell| valued(&cell.ratio, &cell.interval)),
            );
            row(text, &cells);
        }
        text.push('\n');
        for line in &level.ranking {
            let _ = writeln!(text, "- {}", plain(line));
        }
        if !level.ranking.is_empty() {
            text.push('\n');
        }
    }
    if !part.without_interval.is_empty() {
        text.push_str("<details><summary>Where there is no interval, and why</summary>\n\n");
        for reason in &part.without_interval {
            let _ = writeln!(text, "- {}", prose(reason));
        }
        text.push_str("\n</details>\n\n");
    }
    let _ = writeln!(text, "{}\n", plain(&part.note));
}

/// A value with its doubt below it.
fn valued(value: &str, doubt: &str) -> String {
    match doubt {
        "" => plain(value),
        doubt => format!("{}<br><sub>{}</sub>", plain(value), plain(doubt)),
    }
}

/// What moved with each difference.
pub(super) fn explanations(text: &mut String, view: &View) {
    if view.explanations.is_empty() {
        return;
    }
    text.push_str("## What moved with the difference\n\n");
    if !view.caution.is_empty() {
        let _ = writeln!(text, "{}\n", view.caution);
    }
    for one in &view.explanations {
        let _ = writeln!(
            text,
            "### {}, {} against {}\n",
            plain(&one.level),
            plain(&one.contender),
            plain(&one.baseline)
        );
        for sentence in &one.sentences {
            let _ = writeln!(text, "- {}", prose(sentence));
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

/// Throughput over the load levels.
pub(super) fn by_clients(text: &mut String, view: &View) {
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

/// What storage made of the changes.
pub(super) fn storage(text: &mut String, view: &View) {
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

/// What only the order-entry workload has.
pub(super) fn orders(text: &mut String, part: &OrdersView) {
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
            let _ = writeln!(
                text,
                "- {}\n- {}\n- deliveries that found a district without an order: {}\n",
                plain(&cell.slices),
                plain(&cell.rolled_back),
                plain(&cell.deliveries)
            );
        }
    }
}

/// Transaction classes.
pub(super) fn classes(text: &mut String, part: &ClassesView) {
    text.push_str("## Transaction classes\n\n");
    for level in &part.levels {
        let _ = writeln!(text, "### {}\n", plain(&level.label));
        for cell in &level.cells {
            let _ = writeln!(text, "**{}**\n", plain(&cell.contender));
            head(text, &part.columns, 1);
            for class in &cell.rows {
                let cells: Vec<String> = class
                    .iter()
                    .map(|text| valued(&text.value, &text.doubt))
                    .collect();
                row(text, &cells);
            }
            let _ = writeln!(text, "\nErrors: {}\n", plain(&cell.errors));
        }
    }
    let _ = writeln!(text, "{}\n", plain(&part.note));
}
