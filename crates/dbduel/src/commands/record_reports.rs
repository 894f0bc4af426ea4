//! Writes the reports of a record into its directory, and removes stale ones.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_audit::Finding;
use dbduel_judge::{self as judge, Summary};
use dbduel_lab::contest;
use dbduel_record::foreign::{DOCUMENT_BYTES_MAX, read_text_below};
use dbduel_record::store::{Held, RecordError};
use dbduel_record::whole::write_whole;
use dbduel_record::{Record, RecordWriter};
use dbduel_report::{self as report, ExtraFile, TerminalLength};
use serde_json::Value;

use crate::console;

/// Permissions of a report, before the process's mask.
const FILE_MODE: u32 = 0o666;

/// Writes the record's reports, prints the one for a terminal in the length `shown`, and returns their summary.
///
/// # Errors
/// When the record cannot be read or written.
pub fn write(record: &Path, shown: Option<TerminalLength>) -> Result<Summary> {
    // Locked before it is read, so that no report of a reader of a longer record is replaced.
    let writer = RecordWriter::open(record, contest::now_ms())?;
    derive(&Record::open(record)?, &writer, shown)
}

/// Writes the record's reports when one is missing or they cover less than the record, as after a kill before all were
/// written. Leaves a record that is being written to its writer. True when reports were written.
///
/// # Errors
/// When the record cannot be read, or a report cannot be written.
pub fn write_missing(record: &Path) -> Result<bool> {
    let held = match RecordWriter::hold(record) {
        Ok(held) => held,
        Err(RecordError::InUse(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let evidence = Record::open(record)?;
    if is_complete(&evidence, record) {
        return Ok(false);
    }
    let (summary, findings) = judge::summarise(&evidence);
    make_again(&held, &summary, &findings)?;
    Ok(true)
}

/// True when every report exists, and the one written last covers the journal's last entry.
fn is_complete(evidence: &Record, record: &Path) -> bool {
    let mut names = report::FORMATS.iter().filter_map(|format| format.file_name);
    names.all(|name| record.join(name).is_file())
        && covers_until_ms(record) == evidence.events.last().map(|event| event.at_ms)
}

/// The last moment that the stored report for programs is about, milliseconds since 1970-01-01 UTC.
pub(super) fn covers_until_ms(record: &Path) -> Option<u64> {
    let text = read_text_below(record, LAST_WRITTEN, DOCUMENT_BYTES_MAX).ok()?;
    let document: Value = serde_json::from_str(&text).ok()?;
    document["summary"]["run"]["ended_ms"].as_u64()
}

/// The report that is written last; a test checks that it is the last of the formats.
const LAST_WRITTEN: &str = "report.json";

/// Rewrites all reports of a record and changes nothing else there, not even a torn last line, which is left to the
/// next run on the record. `held` must be taken before the record is read. Returns the names of the written files.
///
/// # Errors
/// When a report cannot be written.
pub fn make_again(held: &Held, summary: &Summary, findings: &[Finding]) -> Result<Vec<String>> {
    let record = held.dir();
    let files = files(summary, findings, &options());
    for file in &files {
        let path = record.join(&file.name);
        write_whole(&path, file.text.as_bytes(), FILE_MODE)
            .with_context(|| format!("could not write `{}`", path.display()))?;
    }
    remove_stale(record, &files)?;
    Ok(files.into_iter().map(|file| file.name).collect())
}

/// As [`write()`], for a record already read and its open writer.
///
/// # Errors
/// When a report cannot be written.
pub(super) fn derive(
    evidence: &Record,
    writer: &RecordWriter,
    shown: Option<TerminalLength>,
) -> Result<Summary> {
    let (summary, findings) = judge::summarise(evidence);
    let options = options();
    if let Some(length) = shown {
        console::print(&report::on_terminal(&summary, &findings, &options, length).text)?;
    }
    let files = files(&summary, &findings, &options);
    for file in &files {
        writer.replace(Path::new(&file.name), file.text.as_bytes())?;
    }
    remove_stale(writer.dir(), &files)?;
    Ok(summary)
}

fn options() -> report::Options {
    report::Options {
        width: console::width(),
        colour: console::is_colour_wanted(),
    }
}

/// The report files, each after the files that it links to, so that an existing report is complete.
fn files(summary: &Summary, findings: &[Finding], options: &report::Options) -> Vec<ExtraFile> {
    let mut files = Vec::new();
    for format in report::FORMATS {
        if let Some(name) = format.file_name {
            let rendered = format.render(summary, findings, options);
            files.extend(rendered.files);
            files.push(ExtraFile {
                name: name.to_owned(),
                text: rendered.text,
            });
        }
    }
    files
}

/// Removes charts of earlier reports that the record, grown since, no longer has.
fn remove_stale(record: &Path, files: &[ExtraFile]) -> Result<()> {
    let listed = || format!("could not list `{}`", record.display());
    for entry in fs::read_dir(record).with_context(listed)? {
        let entry = entry.with_context(listed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_chart = name.starts_with("report-") && name.ends_with(".svg");
        if is_chart && files.iter().all(|file| file.name != name) {
            fs::remove_file(entry.path())
                .with_context(|| format!("could not remove `{}`", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_that_no_longer_follow_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["report-old.svg", "report-new.svg", "report.html", "my.svg"];
        for name in names {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let files = ["report-new.svg", "report.html"].map(|name| ExtraFile {
            name: name.to_owned(),
            text: String::new(),
        });
        remove_stale(dir.path(), &files).unwrap();
        let is_there = names.map(|name| dir.path().join(name).exists());
        assert_eq!(is_there, [false, true, true, true]);
    }

    #[test]
    fn the_report_that_tells_whether_all_are_there_is_written_last() {
        let last = report::FORMATS.last().unwrap();
        assert_eq!(last.file_name, Some(LAST_WRITTEN));
    }
}
