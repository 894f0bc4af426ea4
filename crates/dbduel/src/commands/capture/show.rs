//! `dbduel capture show`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dbduel_capture::show::{
    ClassDetail, ClassShare, Overview, class_detail, left_out_classes, overview,
};
use dbduel_capture::store::{Capture, Manifest};
use dbduel_text::table::{columns, row};
use dbduel_text::{bytes, counts, duration, latency, latency_tick, number, percent};

use crate::console;
use crate::exit::Exit;

/// Digits of a class's identity in tables.
const ID_DIGITS: usize = 8;
/// Columns of a line of a class before its text.
const BEFORE_TEXT: usize = 46;
/// Classes that `--left-out` lists.
const LEFT_OUT_MAX: usize = 100;

/// Options of `dbduel capture show`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a capture.
    pub capture: PathBuf,
    /// Classes of statements to list, those with the largest share first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub classes: usize,
    /// Show one class: the first digits of its identity.
    #[arg(long, value_name = "ID", conflicts_with = "left_out")]
    pub class: Option<String>,
    /// Show the classes and the parts of the log that a replay leaves out.
    #[arg(long)]
    pub left_out: bool,
    /// Compare all files with the hashes from the import first.
    #[arg(long)]
    pub verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Prints a capture in figures.
///
/// # Errors
/// When it cannot be read, or the class is unknown.
pub fn show(arguments: &Arguments) -> Result<Exit> {
    let capture = Capture::open(&arguments.capture)?;
    if arguments.verify {
        capture.verify(&mut || Ok(()))?;
    }
    if let Some(id) = &arguments.class {
        let detail = class_detail(&capture, id)?;
        match arguments.json {
            true => console::print_json(&detail)?,
            false => console::print(&class_text(&detail))?,
        }
    } else if arguments.left_out {
        let classes = left_out_classes(&capture);
        let manifest = capture.manifest();
        match arguments.json {
            true => console::print_json(&serde_json::json!({
                "refusals": manifest.refusals,
                "classes": classes,
                "unreadable": manifest.unreadable,
            }))?,
            false => console::print(&left_out_text(manifest, &classes))?,
        }
    } else {
        let overview = overview(&capture, arguments.classes);
        match arguments.json {
            true => console::print_json(&overview)?,
            false => console::print(&text(&arguments.capture, &overview))?,
        }
    }
    Ok(Exit::Done)
}

/// What a capture holds, without its classes.
pub fn head(path: &Path, overview: &Overview) -> String {
    let mut lines = vec![log_line(path, overview)];
    lines.extend(time_line(overview));
    lines.push(counts_line(overview));
    lines.push(String::new());
    lines.push(columns(&group_rows(overview), &[]));
    lines.join("\n") + &caveats(path, overview)
}

fn text(path: &Path, overview: &Overview) -> String {
    let mut text = head(path, overview);
    if !overview.concurrency.is_empty() {
        text += "\nConcurrency, by tenths of the span\n";
        text += &columns(&concurrency_rows(overview), &[]);
    }
    if !overview.classes.is_empty() {
        let all = overview.counts.classes;
        let by = match overview.is_by_time {
            true => "share of time",
            false => "count, as durations are unknown",
        };
        let shown = overview.classes.len() as u64;
        text += &match shown < all {
            true => format!(
                "\nThe {} largest of {} classes by {by}\n",
                counts::of(shown),
                counts::of(all)
            ),
            false => format!("\nClasses by {by}\n"),
        };
        text += &columns(&class_rows(&overview.classes), &[5]);
    }
    text
}

fn log_line(path: &Path, overview: &Overview) -> String {
    let log = &overview.log;
    let version = log.version.as_deref().unwrap_or("of unknown version");
    let assumed = match log.is_product_assumed {
        true => " (assumed; --product says it)",
        false => "",
    };
    format!(
        "{}: {} of {} {version}{assumed}, {}, {}, {}",
        path.display(),
        log.format.name(),
        log.product.name(),
        counts::things(log.files.len() as u64, "file"),
        bytes(log.bytes),
        counts::things(log.lines, "line"),
    )
}

fn time_line(overview: &Overview) -> Option<String> {
    let start = overview.start.as_deref()?;
    let zone = match overview.names_zone {
        true => "",
        false => {
            "; the log does not say its time zone for certain (--timezone at import, default UTC)"
        }
    };
    Some(format!(
        "From {start}, {}, starts to {}{zone}",
        duration(overview.length_s),
        latency_tick(f64::from(overview.step_ns) / 1e3),
    ))
}

fn counts_line(overview: &Overview) -> String {
    let all = &overview.counts;
    let mut parts = vec![
        counts::things(all.statements, "statement"),
        counts::things(all.classes, "class"),
        format!(
            "{} ({} whole, {} ended)",
            counts::things(all.sessions, "session"),
            counts::of(all.whole_sessions),
            counts::of(all.ended_sessions)
        ),
        format!(
            "{} ({} explicit, {} torn)",
            counts::things(all.transactions, "transaction"),
            counts::of(all.explicit_transactions),
            counts::of(all.torn_transactions)
        ),
    ];
    if all.with_outcome > 0 || all.failed > 0 {
        parts.push(format!("{} failed", counts::of(all.failed)));
    }
    parts.join(", ")
}

fn group_rows(overview: &Overview) -> Vec<Vec<String>> {
    let mut rows = vec![row(&["", "statements", "share", "of time"])];
    rows.extend(overview.groups.iter().map(|group| {
        vec![
            group.group.name().to_owned(),
            counts::of(group.statements),
            percent::of(group.share),
            optional(group.share_of_time, percent::of),
        ]
    }));
    rows
}

fn optional(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// What is not replayed, what was not understood, what the log lacks.
fn caveats(path: &Path, overview: &Overview) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let all = &overview.counts;
    if all.refused > 0 {
        line(String::new());
        let refused = counts::things(all.refused, "statement");
        let share = percent::of(all.refused as f64 / all.statements as f64);
        line(format!(
            "Not replayed: {refused} ({share}), each with the transaction that it is in; `dbduel capture show {} --left-out` lists \
             them. Nor are transactions that are torn (open when the log began or ended) or that failed",
            path.display()
        ));
        let rows = overview.left_out.iter().map(|refusal| {
            vec![
                format!("  {}", refusal.what),
                counts::of(refusal.statements),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        line(columns(&rows, &[]).trim_end().to_owned());
    }
    if overview.unreadable.parts > 0 {
        line(String::new());
        line(format!(
            "Unreadable: {} in {} of the log",
            counts::things(overview.unreadable.lines, "line"),
            counts::things(overview.unreadable.parts, "part")
        ));
    }
    if let Some(anonymised) = &overview.anonymised {
        line(String::new());
        line("Anonymised: values, users, files and comments are not those of the log".to_owned());
        for dropped in &anonymised.dropped {
            line(format!(
                "  dropped: {}: {}",
                dropped.what,
                counts::of(dropped.count)
            ));
        }
    }
    if !overview.lacks.is_empty() {
        line(String::new());
        line("The log lacks".to_owned());
        for lack in &overview.lacks {
            line(format!("  {}", lack.text));
        }
    }
    text
}

fn concurrency_rows(overview: &Overview) -> Vec<Vec<String>> {
    let mut rows = vec![row(&["from", "open sessions", "statements/s", "running"])];
    rows.extend(overview.concurrency.iter().map(|part| {
        vec![
            duration(part.from_s),
            number(part.open_sessions),
            number(part.statements_per_s),
            optional(part.running, number),
        ]
    }));
    rows
}

fn class_rows(classes: &[ClassShare]) -> Vec<Vec<String>> {
    let mut rows = vec![row(&[
        "class",
        "of time",
        "statements",
        "share",
        "mean",
        "text",
    ])];
    let width = console::width().saturating_sub(BEFORE_TEXT).max(20);
    rows.extend(classes.iter().map(|share| {
        vec![
            short_id(&share.class.id),
            optional(share.share_of_time, percent::of),
            counts::of(share.class.statements),
            percent::of(share.share),
            optional(share.mean_us, latency),
            one_line(&share.class.text, width),
        ]
    }));
    rows
}

fn short_id(id: &str) -> String {
    id.chars().take(ID_DIGITS).collect()
}

/// The text in one line of at most that many characters.
fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    for (place, character) in text.chars().enumerate() {
        if place + 1 == width && text.chars().nth(width).is_some() {
            line.push('…');
            break;
        }
        line.push(match character.is_control() {
            true => ' ',
            false => character,
        });
    }
    line
}

fn class_text(detail: &ClassDetail) -> String {
    let share = &detail.share;
    let class = &share.class;
    let mut text = format!("{} ({})\n{}\n\n", class.id, class.kind, class.text);
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<20} {value}");
    };
    let of_all = percent::of(share.share);
    line(
        "statements",
        format!("{} ({of_all})", counts::of(class.statements)),
    );
    line("sessions", counts::of(detail.sessions));
    if let Some(of_time) = share.share_of_time {
        line("share of time", percent::of(of_time));
    }
    if let Some(quantiles) = detail.quantiles_us {
        let [half, most, nearly_all, all] = quantiles.map(latency);
        line(
            "duration",
            format!(
                "mean {}, 50 % {half}, 95 % {most}, 99 % {nearly_all}, longest {all}",
                optional(share.mean_us, latency)
            ),
        );
    }
    if let Some(rows) = detail.mean_rows_sent {
        line("rows returned", format!("{} per statement", number(rows)));
    }
    if let Some(rows) = detail.mean_rows_affected {
        line("rows changed", format!("{} per statement", number(rows)));
    }
    if class.failed > 0 {
        line("failed", counts::of(class.failed));
    }
    if let Some(why) = &class.refused_why {
        line(
            "not replayed",
            format!("{}: {why}", counts::of(class.refused)),
        );
    }
    for example in &detail.examples {
        let outcome = example.outcome.as_deref();
        let outcome = outcome.map_or_else(String::new, |outcome| format!(" ({outcome})"));
        let _ = writeln!(text, "\n{}{outcome}\n{}", example.position, example.text);
        for (place, value) in example.parameters.iter().enumerate() {
            let value = value
                .as_ref()
                .map_or_else(|| "NULL".to_owned(), |value| format!("'{value}'"));
            let _ = writeln!(text, "  {}: {value}", place + 1);
        }
    }
    text
}

fn left_out_text(manifest: &Manifest, classes: &[ClassShare]) -> String {
    let mut text = String::new();
    if classes.is_empty() {
        text += "All statements may be replayed.\n";
    } else {
        let mut rows = vec![row(&["class", "statements", "why", "first", "text"])];
        let width = console::width().saturating_sub(80).max(30);
        rows.extend(classes.iter().take(LEFT_OUT_MAX).map(|share| {
            let class = &share.class;
            vec![
                short_id(&class.id),
                counts::of(class.refused),
                class.refused_why.clone().unwrap_or_default(),
                manifest.position(class.first_line),
                one_line(&class.text, width),
            ]
        }));
        text += &columns(&rows, &[2, 3, 4]);
        if let Some(further) = classes.len().checked_sub(LEFT_OUT_MAX + 1) {
            let _ = writeln!(text, "and {} more", counts::of(further as u64 + 1));
        }
    }
    let unreadable = &manifest.unreadable;
    if unreadable.parts > 0 {
        let _ = writeln!(
            text,
            "\nUnreadable: {} in {}",
            counts::things(unreadable.lines, "line"),
            counts::things(unreadable.parts, "part")
        );
        let mut rows = vec![row(&["position", "lines", "why"])];
        rows.extend(unreadable.listed.iter().map(|part| {
            vec![
                manifest.position(part.line),
                counts::of(part.lines),
                part.why.clone(),
            ]
        }));
        text += &columns(&rows, &[2]);
        let listed = unreadable.listed.len() as u64;
        if unreadable.parts > listed {
            let _ = writeln!(text, "and {} more", counts::of(unreadable.parts - listed));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_one_line() {
        assert_eq!(one_line("select 1", 20), "select 1");
        assert_eq!(one_line("select\n1", 8), "select 1");
        assert_eq!(one_line("select 1 from t", 8), "select …");
    }
}
