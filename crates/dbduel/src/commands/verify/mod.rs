//! `dbduel verify`: checks that a record is unchanged since its run ended, and that its reports follow from it.
//!
//! Three independent checks: the files against the manifest, the record's own consistency, and the stored reports
//! against those that the judge derives now.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_audit::Finding;
use dbduel_judge::{self as judge, Summary};
use dbduel_record::event::SliceId;
use dbduel_record::foreign::{DOCUMENT_BYTES_MAX, is_unfit, read_below, read_text_below};
use dbduel_record::manifest::{self, Check};
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::store::{RecordError, torn_ends};
use dbduel_record::whole::half_written;
use dbduel_record::{Record, RecordWriter};
use dbduel_report as report;
use serde::Serialize;
use serde_json::Value;

use super::record_reports;
use super::record_set::SetPlan;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel verify`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a record, a sweep or a bisection.
    pub record: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Most differing places listed per report.
const PLACES_MAX: usize = 10;
/// Most characters shown of a value.
const VALUE_CHARACTERS: usize = 60;
/// Characters shown before the first difference of two long values.
const CHARACTERS_BEFORE: usize = 20;

/// Result of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Wholeness {
    Whole,
    Changed,
    #[serde(rename = "cannot be told")]
    Open,
}

/// Findings on a record.
#[derive(Debug, Serialize)]
struct Verification {
    schema_version: u32,
    verdict: Wholeness,
    /// Digest of the manifest.
    digest: Option<String>,
    /// Runs on the record that ended with a line in the manifest.
    runs_sealed: usize,
    /// Files that the manifest lists.
    files: usize,
    /// Changed files, and what differs in each.
    changed: Vec<Trouble>,
    /// Questions that stay open, with the reason.
    open: Vec<String>,
    /// Stored reports that the judge derives to the same bytes.
    derived: Vec<String>,
    /// Verdicts that long turns contradict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contradictions: Vec<String>,
    /// Half-written files of killed processes; they are not part of the record.
    half_written: Vec<String>,
    /// Files that end with the rest of an interrupted write, which is not part of the record either.
    torn: Vec<String>,
}

/// A changed file.
#[derive(Debug, Serialize)]
struct Trouble {
    file: String,
    what: String,
}

impl Verification {
    fn changed(&mut self, file: &str, what: String) {
        let file = file.to_owned();
        self.changed.push(Trouble { file, what });
    }

    /// Counts as changed a file that cannot be read because something else was put in its place. Other errors are
    /// returned.
    fn refused(&mut self, dir: &Path, error: RecordError) -> Result<(), RecordError> {
        let (path, what) = match &error {
            RecordError::File { path, source, .. } if is_unfit(source) => {
                (path, format!("cannot be read: {source}"))
            }
            RecordError::Malformed { path, why } => (path, format!("cannot be understood: {why}")),
            _ => return Err(error),
        };
        let file = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        if self.changed.iter().all(|trouble| trouble.file != file) {
            self.changed(&file, what);
        }
        Ok(())
    }
}

/// Findings on a cell of a sweep or a step of a bisection.
#[derive(Debug, Serialize)]
struct CellVerification {
    /// Name of its directory.
    cell: String,
    #[serde(flatten)]
    found: Verification,
}

/// Verifies a record, or that of every begun cell of a sweep or step of a bisection.
///
/// # Errors
/// When there is no record, it is being written, or a file cannot be read.
pub fn verify(arguments: &Arguments) -> Result<Exit> {
    let dir = &arguments.record;
    let found = if let Some(set) = SetPlan::at(dir)? {
        let cells = examine_parts(set.begun(dir)?)?;
        if arguments.json {
            console::print_json(&cells)?;
        } else {
            for one in &cells {
                console::print(&format!("{}\n{}", one.cell, as_text(&one.found)))?;
            }
        }
        cells.into_iter().map(|one| one.found).collect()
    } else {
        let found = examine(dir, console::width())?;
        if arguments.json {
            console::print_json(&found)?;
        } else {
            console::print(&as_text(&found))?;
        }
        vec![found]
    };
    let has = |verdict| found.iter().any(|one| one.verdict == verdict);
    Ok(if has(Wholeness::Changed) {
        Exit::Void
    } else if has(Wholeness::Open) {
        Exit::Undecided
    } else {
        Exit::Done
    })
}

/// Verifies records, each with its name.
fn examine_parts(parts: Vec<(String, PathBuf)>) -> Result<Vec<CellVerification>> {
    let examined = parts.into_iter().map(|(cell, record)| {
        let found = examine(&record, console::width())
            .with_context(|| format!("cannot verify the record `{cell}`"))?;
        Ok(CellVerification { cell, found })
    });
    examined.collect()
}

/// Succeeds when a record is whole; the error is the text of its verification.
#[cfg(test)]
pub fn expect_whole(dir: &Path) -> Result<(), String> {
    let found = examine(dir, 120).map_err(|error| format!("{error:#}"))?;
    match found.verdict {
        Wholeness::Whole => Ok(()),
        Wholeness::Changed | Wholeness::Open => Err(as_text(&found)),
    }
}

fn examine(dir: &Path, width: usize) -> Result<Verification> {
    if !dir.is_dir() {
        return Err(RecordError::Nowhere(dir.to_owned()).into());
    }
    let mut found = Verification {
        schema_version: 1,
        verdict: Wholeness::Whole,
        digest: None,
        runs_sealed: 0,
        files: 0,
        changed: Vec::new(),
        open: Vec::new(),
        derived: Vec::new(),
        contradictions: Vec::new(),
        half_written: left_half_written(dir)?,
        torn: Vec::new(),
    };
    // A record that grows while it is looked at would seem changed. Others may look at the same time.
    RecordWriter::is_free(dir).or_else(|error| found.refused(dir, error))?;
    match manifest::check(dir) {
        Ok(check) => {
            found.digest.clone_from(&check.digest);
            found.runs_sealed = check.seals.len();
            found.files = check.seals.last().map_or(0, |last| last.files.len());
            against_manifest(&check, &mut found);
        }
        Err(error) => found.refused(dir, error)?,
    }
    match torn_ends(dir) {
        Ok(ends) => found.torn = ends.into_iter().map(|end| end.file.to_owned()).collect(),
        Err(error) => found.refused(dir, error)?,
    }
    match Record::open(dir) {
        Ok(record) => {
            in_itself(&record, &mut found);
            let (summary, findings) = judge::summarise(&record);
            found.contradictions = report::words::contradictions(&summary);
            against_reports(&record, dir, (&summary, &findings), width, &mut found)?;
        }
        // An edit that leaves no record to read is an edit all the same.
        Err(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let why = format!(
                "the reports were not derived again, because the record cannot be opened: {error}{cause}"
            );
            if found.changed.is_empty() {
                found.refused(dir, error)?;
            }
            found.open.push(why);
        }
    }
    if !found.changed.is_empty() {
        found.verdict = Wholeness::Changed;
    } else if !found.open.is_empty() {
        found.verdict = Wholeness::Open;
    }
    Ok(found)
}

fn against_manifest(check: &Check, found: &mut Verification) {
    for difference in &check.differences {
        found.changed(&difference.file, difference.what.clone());
    }
    if check.digest.is_none() {
        let why = "there is no manifest: no run on this record ended normally, or an older dbduel \
                   wrote it; edits cannot be detected";
        found.open.push(why.to_owned());
    } else if check.is_open {
        let why = "a run after the last line of the manifest did not end normally; its writes are \
                   not sealed";
        found.open.push(why.to_owned());
    }
}

/// Files that a killed process left half written, as paths below the record.
fn left_half_written(dir: &Path) -> Result<Vec<String>> {
    let paths = half_written(dir).with_context(|| format!("could not list `{}`", dir.display()))?;
    let below = paths
        .iter()
        .map(|path| path.strip_prefix(dir).unwrap_or(path));
    Ok(below.map(|path| path.display().to_string()).collect())
}

/// Every slice that the journal says is finished must have a row, and every file must parse.
fn in_itself(record: &Record, found: &mut Verification) {
    for complaint in &record.complaints {
        let place = match complaint.line {
            0 => String::new(),
            line => format!("line {line} "),
        };
        let what = format!("{place}cannot be understood: {}", complaint.why);
        found.changed(&complaint.file, what);
    }
    let rows = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
    let there: BTreeSet<SliceId> = rows
        .map(|row| SliceId {
            block: row.block,
            position: row.position,
        })
        .collect();
    for slice in record
        .finished_slices()
        .filter(|slice| !there.contains(slice))
    {
        let what = format!("has no row for slice {slice}, which the journal says is finished");
        found.changed(dbduel_record::store::SLICES, what);
    }
}

/// Derives every report again and compares it with the one that lies beside the record.
fn against_reports(
    record: &Record,
    dir: &Path,
    (summary, findings): (&Summary, &[Finding]),
    width: usize,
    found: &mut Verification,
) -> Result<()> {
    let stored = stored_reports(dir)?;
    if stored.is_empty() {
        return Ok(());
    }
    let this = judge::IDENTITY;
    let judge = judge_of(dir);
    if let Some(other) = judge.as_ref().filter(|judge| *judge != this) {
        let why = format!(
            "its reports were derived by dbduel {other}, and this is {this}, which may derive \
             others; verify with the one whose `--version` matches, or compare them with those \
             that `dbduel report DIR --format … --output FILE` derives"
        );
        found.open.push(why);
        return Ok(());
    }
    let is_this_judge = judge.is_some() || names(dir, &stored, this)?;
    // A run writes its reports at its end, the one for programs last.
    let are_older = has_run_since(record, dir);
    let options = report::Options {
        width,
        colour: false,
    };
    let mut known = BTreeSet::new();
    for format in report::FORMATS {
        let Some(name) = format.file_name else {
            continue;
        };
        let rendered = format.render(summary, findings, &options);
        let files = rendered
            .files
            .into_iter()
            .map(|file| (file.name, file.text));
        for (name, expected) in std::iter::once((name.to_owned(), rendered.text)).chain(files) {
            // A report may be deleted; it can be derived again.
            if stored.contains(&name) {
                let text = match read_below(dir, &name, DOCUMENT_BYTES_MAX) {
                    Ok(text) => text,
                    Err(error) if is_unfit(&error) => {
                        found.changed(&name, format!("cannot be read: {error}"));
                        known.insert(name);
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if text == expected.as_bytes() {
                    found.derived.push(name.clone());
                } else if are_older {
                    let why = format!(
                        "`{name}` was derived before the last run on the record, which ended \
                         before it wrote reports; `dbduel report {}` derives them",
                        dir.display()
                    );
                    found.open.push(why);
                } else if !is_this_judge {
                    let why = format!(
                        "`{name}` is not what this dbduel derives from the record, and no report \
                         names this dbduel, {this}, as its source"
                    );
                    found.open.push(why);
                } else {
                    let what = compare(&String::from_utf8_lossy(&text), &expected);
                    found.changed(&name, what);
                }
            }
            known.insert(name);
        }
    }
    for name in stored.difference(&known) {
        let why = format!(
            "`{name}` is named like a report, and no report of that name is derived from the \
             record"
        );
        found.open.push(why);
    }
    Ok(())
}

/// The files beside the record that are named like reports; the manifest has no digests of them.
fn stored_reports(dir: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("report.") || name.starts_with("report-") {
            names.insert(name);
        }
    }
    Ok(names)
}

/// The judge that derived the stored reports, according to `report.json`.
fn judge_of(dir: &Path) -> Option<String> {
    let text = read_text_below(dir, "report.json", DOCUMENT_BYTES_MAX).ok()?;
    let document: Value = serde_json::from_str(&text).ok()?;
    Some(document["summary"]["judged_by"].as_str()?.to_owned())
}

/// True when `report.json` covers the journal only up to an event before the last.
fn has_run_since(record: &Record, dir: &Path) -> bool {
    let Some((last, earlier)) = record.events.split_last() else {
        return false;
    };
    let covers_ms = record_reports::covers_until_ms(dir).filter(|&ms| ms != last.at_ms);
    covers_ms.is_some_and(|ms| earlier.iter().any(|event| event.at_ms == ms))
}

/// Whether one of the stored reports names the judge.
fn names(dir: &Path, stored: &BTreeSet<String>, judge: &str) -> Result<bool> {
    for name in stored {
        match read_below(dir, name, DOCUMENT_BYTES_MAX) {
            Ok(text) if String::from_utf8_lossy(&text).contains(judge) => return Ok(true),
            Err(error) if !is_unfit(&error) => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(false)
}

/// Describes where a stored report differs from the derived one.
fn compare(stored: &str, expected: &str) -> String {
    let documents = serde_json::from_str::<Value>(stored)
        .ok()
        .zip(serde_json::from_str::<Value>(expected).ok());
    match documents {
        Some((stored, expected)) if stored != expected => {
            let mut places = Vec::new();
            differences("", &stored, &expected, &mut places);
            format!("does not follow from the record: {}", places.join("; "))
        }
        _ => first_line(stored, expected),
    }
}

fn first_line(stored: &str, expected: &str) -> String {
    let same = stored
        .lines()
        .zip(expected.lines())
        .take_while(|(one, other)| one == other)
        .count();
    let [one, other] = [stored, expected].map(|text| text.lines().nth(same));
    if one == other {
        return "does not follow from the record: its lines end otherwise".to_owned();
    }
    let [one, other] = [one, other].map(|line| line.unwrap_or("the end"));
    let [one, other] = match one.trim() == other.trim() {
        true => shown_apart(one, other),
        false => shown_apart(one.trim(), other.trim()),
    };
    format!(
        "does not follow from the record: line {} is {one} and the record gives {other}",
        same + 1
    )
}

/// Places where two documents differ, by their paths.
fn differences(path: &str, stored: &Value, expected: &Value, places: &mut Vec<String>) {
    if stored == expected || places.len() >= PLACES_MAX {
        return;
    }
    match (stored, expected) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let of = |object: &serde_json::Map<String, Value>| {
                    object.get(name).cloned().unwrap_or(Value::Null)
                };
                differences(&format!("{path}.{name}"), &of(one), &of(other), places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}[{index}]"), one, other, places);
            }
        }
        _ => {
            let [one, other] = shown_apart(&stored.to_string(), &expected.to_string());
            let place = path.trim_start_matches('.');
            places.push(format!("{place} is {one} and the record gives {other}"));
        }
    }
}

/// Excerpts of two different texts that show where they first differ.
fn shown_apart(one: &str, other: &str) -> [String; 2] {
    let pairs = one.chars().zip(other.chars());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let start = match same < VALUE_CHARACTERS - CHARACTERS_BEFORE {
        true => 0,
        false => same - CHARACTERS_BEFORE,
    };
    [one, other].map(|text| excerpt(text, start))
}

/// Characters of a text from `start` on, with an ellipsis at each end that is cut.
fn excerpt(text: &str, start: usize) -> String {
    let mut rest = text.chars().skip(start);
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    for character in rest.by_ref().take(VALUE_CHARACTERS) {
        match character.is_control() {
            true => shown.extend(character.escape_debug()),
            false => shown.push(character),
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

fn as_text(found: &Verification) -> String {
    let mut text = format!(
        "The record is {}.\n",
        match found.verdict {
            Wholeness::Changed => "not what it was: it was changed",
            Wholeness::Whole => "whole: nothing was changed, and its reports follow from it",
            Wholeness::Open => "not known to be whole",
        }
    );
    for Trouble { file, what } in &found.changed {
        let _ = writeln!(text, "  changed  `{file}` {what}");
    }
    for why in &found.open {
        let _ = writeln!(text, "  unknown  {why}");
    }
    if let Some(digest) = &found.digest {
        let runs = match found.runs_sealed {
            1 => "1 run".to_owned(),
            many => format!("{many} runs"),
        };
        let _ = writeln!(
            text,
            "  sealed   {} files after {runs}; digest {digest}",
            found.files
        );
    }
    for file in &found.torn {
        let _ = writeln!(
            text,
            "  left     `{file}` ends with the rest of an interrupted write; it is not part of the \
             record, and the next run on it removes it"
        );
    }
    for file in &found.half_written {
        let _ = writeln!(
            text,
            "  left     `{file}` is half of a file that a killed dbduel was writing; it is not \
             part of the record, and the next run on it removes it"
        );
    }
    for contradiction in &found.contradictions {
        let _ = writeln!(text, "  verdict  {contradiction}.");
    }
    if !found.derived.is_empty() {
        let _ = writeln!(
            text,
            "  derived  the same bytes: {}",
            found.derived.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests;
