//! A crash test as terminal text and as Markdown. Pure functions.

use std::fmt::Write as _;
use std::path::Path;

use dbduel_lab::crash::{ContenderOutcome, CutFate, CutOutcome, KeptImage};
use dbduel_powercut::CutModel;
use dbduel_report::words::{bytes, count, duration};
use dbduel_report::wrap;
use dbduel_stats::median;
use dbduel_text::table;

use super::document::Document;

/// Columns of a terminal by default.
const WIDTH: usize = 100;
/// Examples of each kind that are shown.
const EXAMPLES: usize = 2;

/// For a terminal.
pub fn text(document: &Document, results: &Path) -> String {
    let mut text = String::new();
    for contender in &document.contenders {
        let lines = [verdict(contender), corruption(contender), load(contender)];
        paragraph(
            &mut text,
            &format!("{}: {}", contender.contender, lines[0]),
            0,
        );
        for line in &lines[1..] {
            paragraph(&mut text, line, 2);
        }
        text.push_str(&models(contender, false));
        for example in examples(contender) {
            paragraph(&mut text, &example, 2);
        }
        for image in &contender.images {
            paragraph(&mut text, &kept(image), 2);
        }
        text.push('\n');
    }
    paragraph(&mut text, &format!("Results: {}", results.display()), 0);
    text
}

fn paragraph(text: &mut String, words: &str, indent: usize) {
    for line in wrap(words, WIDTH, indent, indent) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// As Markdown.
pub fn markdown(document: &Document) -> String {
    let mut text = format!("# Power cuts: {}\n\n", document.question);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "Workload `{}`, seed {}, dbduel {}.\n",
        document.workload.name, document.seed, document.dbduel
    );
    for contender in &document.contenders {
        let _ = writeln!(text, "## {} ({})\n", contender.contender, contender.server);
        for line in [verdict(contender), corruption(contender), load(contender)] {
            let _ = writeln!(text, "{line}\n");
        }
        let _ = writeln!(text, "{}", models(contender, true));
        for line in examples(contender)
            .into_iter()
            .chain(contender.images.iter().map(kept))
        {
            let _ = writeln!(text, "- {line}");
        }
        text.push('\n');
    }
    text
}

/// Sentence on acknowledged commits.
fn verdict(contender: &ContenderOutcome) -> String {
    let cuts = &contender.cuts;
    let counted: Vec<&CutOutcome> = cuts
        .iter()
        .filter(|cut| cut.verdict.lost.is_some())
        .collect();
    let promised: u64 = counted.iter().map(|cut| cut.acknowledged).sum();
    let lost: u64 = counted.iter().filter_map(|cut| cut.verdict.lost).sum();
    let with_loss = counted
        .iter()
        .filter(|cut| cut.verdict.lost.unwrap_or(0) > 0)
        .count();
    let mut words = match &contender.weaker_promise {
        Some(setting) => format!("{setting}: "),
        None => String::new(),
    };
    let over = format!(
        "{} acknowledged commits over {}",
        count(promised),
        cuts_of(counted.len())
    );
    if lost == 0 {
        let _ = write!(words, "{over}: 0 lost ({})", bound(counted.len(), "a loss"));
    } else {
        let oldest = counted
            .iter()
            .filter_map(|cut| cut.verdict.oldest_lost_s)
            .fold(0.0, f64::max);
        let _ = write!(
            words,
            "{} of {over} lost, in {with_loss} cuts, up to {oldest:.2} s before the cut",
            count(lost)
        );
    }
    let unknown = cuts.len() - counted.len();
    if unknown > 0 {
        let _ = write!(
            words,
            "; in {} more they could not be counted",
            cuts_of(unknown)
        );
    }
    words.push('.');
    words
}

fn cuts_of(cuts: usize) -> String {
    match cuts {
        1 => "1 cut".to_owned(),
        cuts => format!("{} cuts", count(cuts as u64)),
    }
}

/// The 95 % upper limit of a probability after `cuts` independent trials without a case: 1 − 0.05^(1/n), of which 3/n
/// is the approximation (rule of three; Hanley and Lippman-Hand, 1983).
fn bound(cuts: usize, what: &str) -> String {
    let limit = 1.0 - 0.05_f64.powf(1.0 / cuts.max(1) as f64);
    format!(
        "95 % upper limit of the share of cuts with {what}: {:.1} %",
        limit * 100.0
    )
}

/// Sentence on corruption of the data.
fn corruption(contender: &ContenderOutcome) -> String {
    let all = contender.tally(None);
    let by = match contender.checks_pages {
        true => "start, error log, CHECK TABLE, innochecksum",
        false => "start, error log, the server's check of tables where it has one",
    };
    if all.noticed + all.unnoticed == 0 {
        return format!(
            "Corruption: none ({}; checked by {by} and the workload's conditions).",
            bound(all.cuts as usize, "one")
        );
    }
    format!(
        "Corruption: {} of {} cuts, {} noticed by the server ({by}), {} found by the workload's conditions alone.",
        all.noticed + all.unnoticed,
        all.cuts,
        all.noticed,
        all.unnoticed
    )
}

fn load(contender: &ContenderOutcome) -> String {
    let load = &contender.load;
    let cut_short = match load.is_cut_short {
        true => "; the trace of writes was full before the load ended, so no cut is later",
        false => "",
    };
    format!(
        "Load: {} with {} clients, {} commits in the log, {} writes ({}), {} syncs{cut_short}.",
        duration(load.seconds),
        load.clients,
        count(load.acknowledged),
        count(load.writes),
        bytes(load.written_bytes),
        count(load.syncs)
    )
}

/// A row per model, and one for all.
fn models(contender: &ContenderOutcome, is_markdown: bool) -> String {
    let mut rows = vec![table::row(&[
        "model",
        "cuts",
        "intact",
        "commits lost",
        "corrupt, noticed",
        "unnoticed",
        "pending writes",
        "recovery",
        "longest",
        "per cut",
    ])];
    for model in CutModel::ALL.map(Some).into_iter().chain([None]) {
        let cuts = contender.cuts.iter();
        let cuts: Vec<&CutOutcome> = cuts
            .filter(|cut| model.is_none_or(|model| cut.model == model))
            .collect();
        if cuts.is_empty() {
            continue;
        }
        let tally = contender.tally(model);
        let intact = tally.cuts - tally.commits_lost - tally.noticed - tally.unnoticed;
        let recoveries = cuts.iter().filter_map(|cut| cut.verdict.recovery_s);
        let mut recoveries: Vec<f64> = recoveries.collect();
        let mut pending: Vec<f64> = cuts.iter().map(|cut| cut.pending_writes as f64).collect();
        let mut cut_s: Vec<f64> = cuts.iter().map(|cut| cut.seconds).collect();
        let seconds = |value: Option<f64>| value.map_or("–".to_owned(), |s| format!("{s:.2} s"));
        rows.push(vec![
            model.map_or("all", CutModel::name).to_owned(),
            tally.cuts.to_string(),
            intact.to_string(),
            tally.commits_lost.to_string(),
            tally.noticed.to_string(),
            tally.unnoticed.to_string(),
            median(&mut pending).map_or("–".to_owned(), |median| format!("{median:.0}")),
            seconds(median(&mut recoveries)),
            seconds(recoveries.into_iter().reduce(f64::max)),
            seconds(median(&mut cut_s)),
        ]);
    }
    match is_markdown {
        true => table::markdown(&rows, &[]),
        false => {
            let lines = table::columns(&rows, &[]);
            lines.lines().map(|line| format!("  {line}\n")).collect()
        }
    }
}

/// The first cuts of each kind, with what was found.
fn examples(contender: &ContenderOutcome) -> Vec<String> {
    let mut examples = Vec::new();
    for fate in [
        CutFate::CommitsLost,
        CutFate::CorruptNoticed,
        CutFate::CorruptUnnoticed,
    ] {
        let cuts = contender.cuts.iter().filter(|cut| cut.fate() == fate);
        examples.extend(cuts.take(EXAMPLES).map(CutOutcome::in_words));
    }
    examples
}

fn kept(image: &KeptImage) -> String {
    let minimal = match image.is_minimal {
        true => "all of them needed for the loss",
        false => "fewer may suffice",
    };
    format!(
        "Image of cut {}: `{}`, with {} of {} lost parts of writes ({minimal}; {} starts of the server). `writes.csv` beside it \
         has the order of writes.",
        image.cut, image.folder, image.lost_parts, image.lost_before, image.tries
    )
}
