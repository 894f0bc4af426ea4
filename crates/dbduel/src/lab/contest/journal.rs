//! The record's writer with a clock: everything it writes is stamped here.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dbduel_record::commits::{CommitRange, CommitRow};
use dbduel_record::event::{Event, Finding, SliceId};
use dbduel_record::facts::Size;
use dbduel_record::store::{SliceResult, contender_dir};
use dbduel_record::{RecordError, RecordWriter};

/// Appends to the record.
#[derive(Debug)]
pub struct Journal {
    writer: RecordWriter,
}

impl Journal {
    /// Opens the record in `dir`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        Ok(Self {
            writer: RecordWriter::open(dir, now_ms())?,
        })
    }

    /// The writer, for files that carry no time.
    pub fn writer(&self) -> &RecordWriter {
        &self.writer
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn event(&mut self, event: Event) -> Result<(), RecordError> {
        self.writer.event(now_ms(), event)
    }

    /// Adds a line to the manifest, when nothing more will be written.
    ///
    /// # Errors
    /// When a file cannot be read or the manifest cannot be written.
    pub fn seal(&self) -> Result<String, RecordError> {
        self.writer.seal(now_ms(), env!("CARGO_PKG_VERSION"))
    }

    /// Appends a finding.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn notice(&mut self, finding: Finding) -> Result<(), RecordError> {
        self.event(Event::Noticed { finding })
    }

    /// Appends what a contender's server acknowledged.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn commits(
        &mut self,
        contender: &str,
        ranges: Vec<CommitRange>,
    ) -> Result<(), RecordError> {
        let at_ms = now_ms();
        let rows: Vec<CommitRow> = ranges
            .into_iter()
            .map(|range| CommitRow::of(at_ms, contender, range))
            .collect();
        self.writer.commits(&rows)
    }

    /// Appends a finished slice.
    ///
    /// # Errors
    /// When a table cannot be written.
    pub fn slice(&mut self, slice: SliceId, result: &SliceResult) -> Result<(), RecordError> {
        self.writer.slice(now_ms(), slice, result)
    }
}

/// The size of a contender's data before the first slice, when it is in the record.
pub fn size_before(record: &Path, contender: &str) -> Option<Size> {
    let path = contender_dir(record, contender).join("size.json");
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
