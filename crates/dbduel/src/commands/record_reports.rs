//! The reports in a record's directory: all that follow from it, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_record::store::RecordError;
use dbduel_record::{Record, RecordWriter};
use serde_json::Value;

use crate::console;
use crate::judge::{self, Summary};
use crate::report;

/// Writes the record's reports, prints the terminal one if that `is_shown`, and gives their summary.
///
/// # Errors
/// When the record cannot be read or written.
pub fn write(record: &Path, is_shown: bool) -> Result<Summary> {
    let evidence = Record::open(record)?;
    derive(&evidence, &RecordWriter::open(record)?, is_shown)
}

/// Writes the record's reports where one is missing, or where they tell of less than the record has, as after a
/// process was killed before it had written all. A record that somebody writes gets its reports from them.
///
/// # Errors
/// When the record cannot be read or written.
pub fn write_missing(record: &Path) -> Result<()> {
    let evidence = Record::open(record)?;
    if is_complete(&evidence, record) {
        return Ok(());
    }
    match RecordWriter::open(record) {
        Ok(writer) => derive(&evidence, &writer, false).map(|_| ()),
        Err(RecordError::InUse(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// True when every report is there, and the one that is written last tells of the journal's last entry.
fn is_complete(evidence: &Record, record: &Path) -> bool {
    let mut names = report::FORMATS
        .iter()
        .filter_map(|format| format.file_name());
    names.all(|name| record.join(name).is_file())
        && tells_of_ms(record) == evidence.events.last().map(|event| event.at_ms)
}

/// The last moment that the stored report for programs tells of, milliseconds since 1970-01-01 UTC.
fn tells_of_ms(record: &Path) -> Option<u64> {
    let text = fs::read_to_string(record.join(LAST_WRITTEN)).ok()?;
    let document: Value = serde_json::from_str(&text).ok()?;
    document["summary"]["run"]["ended_ms"].as_u64()
}

/// The report that is written after all others; a test holds that it is the last of the formats.
const LAST_WRITTEN: &str = "report.json";

fn derive(evidence: &Record, writer: &RecordWriter, is_shown: bool) -> Result<Summary> {
    let (summary, findings) = judge::summarise(evidence);
    let options = report::Options {
        width: console::width(),
        colour: console::is_colour_wanted(),
    };
    let mut charts = BTreeSet::new();
    for format in report::FORMATS {
        let rendered = format.render(&summary, &findings, &options);
        // A report after what it links to, so that one that is there is whole.
        for file in rendered.files {
            writer.replace(Path::new(&file.name), file.text.as_bytes())?;
            charts.insert(file.name);
        }
        match format.file_name() {
            Some(name) => writer.replace(Path::new(name), rendered.text.as_bytes())?,
            None if is_shown => console::print(&rendered.text)?,
            None => {}
        }
    }
    remove_stale(writer.dir(), &charts)?;
    Ok(summary)
}

/// Removes charts of earlier reports that the record, which has grown since, no longer gives.
fn remove_stale(record: &Path, charts: &BTreeSet<String>) -> Result<()> {
    let listed = || format!("could not list `{}`", record.display());
    for entry in fs::read_dir(record).with_context(listed)? {
        let entry = entry.with_context(listed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_chart = name.starts_with("report-") && name.ends_with(".svg");
        if is_chart && !charts.contains(&name) {
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
        let charts = BTreeSet::from(["report-new.svg".to_owned()]);
        remove_stale(dir.path(), &charts).unwrap();
        let is_there = names.map(|name| dir.path().join(name).exists());
        assert_eq!(is_there, [false, true, true, true]);
    }
    #[test]
    fn the_report_that_tells_whether_all_are_there_is_written_last() {
        let last = report::FORMATS.last().unwrap();
        assert_eq!(last.file_name(), Some(LAST_WRITTEN));
    }
}
