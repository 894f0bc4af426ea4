//! The reports in a record's directory: all that follow from it, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_record::{Record, RecordWriter};

use crate::console;
use crate::judge::{self, Summary};
use crate::report;

/// Writes the record's reports, prints the terminal one if that `is_shown`, and gives their summary.
///
/// # Errors
/// When the record cannot be read or written.
pub fn write(record: &Path, is_shown: bool) -> Result<Summary> {
    let evidence = Record::open(record)?;
    let (summary, findings) = judge::summarise(&evidence);
    let options = report::Options {
        width: console::width(),
        colour: console::is_colour_wanted(),
    };
    let writer = RecordWriter::open(record)?;
    let mut charts = BTreeSet::new();
    for format in report::FORMATS {
        let rendered = format.render(&summary, &findings, &options);
        match format.file_name() {
            Some(name) => writer.replace(Path::new(name), rendered.text.as_bytes())?,
            None if is_shown => console::print(&rendered.text)?,
            None => {}
        }
        for file in rendered.files {
            writer.replace(Path::new(&file.name), file.text.as_bytes())?;
            charts.insert(file.name);
        }
    }
    remove_stale(record, &charts)?;
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
}
