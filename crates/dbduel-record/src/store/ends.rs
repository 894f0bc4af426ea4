//! Valid ends of the growing files: bytes after them, left by an interrupted write, do not count.
//!
//! The journal states the lengths of the other files whenever a slice finished. Line ends alone would not suffice: a
//! quoted field may contain a line break, so a torn row can end like a complete one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::{COMMITS, EVENTS, GROWING, LATENCY, RecordError};
use crate::event::{Event, Stamped};
use crate::foreign::{self, TABLE_BYTES_MAX};
use crate::manifest::last_seal;

/// The bytes of the growing files that count.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    /// Lengths as the journal states them with the last finished slice; empty when it states none.
    stated: BTreeMap<String, u64>,
    /// True when a slice finished.
    has_slices: bool,
    /// Lengths in the last line of the manifest. Sealed bytes are kept.
    sealed: BTreeMap<String, u64>,
}

impl Ends {
    /// The ends in the record in `dir`, whose journal holds `events`.
    pub(super) fn of(dir: &Path, events: &[Stamped]) -> Self {
        let mut finished = events.iter().filter_map(|event| match &event.what {
            Event::SliceFinished { lengths, .. } => Some(lengths),
            _ => None,
        });
        let last = finished.next_back();
        Self {
            has_slices: last.is_some(),
            stated: last.cloned().unwrap_or_default(),
            sealed: sealed_lengths(dir),
        }
    }

    /// How many of the `bytes` of the growing file `name` count.
    pub(super) fn kept(&self, name: &str, bytes: &[u8]) -> usize {
        let stated = self.stated.get(name).copied();
        let is_stated = !self.stated.is_empty();
        let kept = match name {
            // What servers acknowledged counts whatever became of its slice, and none of its fields holds a line break.
            COMMITS => after_last_line(bytes).max(length(stated)),
            LATENCY if !is_stated => after_last_line(bytes),
            _ if is_stated => length(stated),
            // Written by an earlier version, which stated no lengths.
            _ if self.has_slices => after_last_line(bytes),
            _ => 0,
        };
        kept.max(length(self.sealed.get(name).copied()))
            .min(bytes.len())
    }
}

/// How many of the journal's `bytes` count. Every event is synced before the next, so at most the last one is torn.
pub(super) fn kept_of_journal(dir: &Path, bytes: &[u8]) -> usize {
    let sealed = length(sealed_lengths(dir).get(EVENTS).copied()).min(bytes.len());
    let end = after_last_line(bytes);
    let lines = &bytes[..end.saturating_sub(1)];
    let start = after_last_line(lines);
    let last = &lines[start..];
    let is_whole = last.trim_ascii().is_empty() || serde_json::from_slice::<Value>(last).is_ok();
    if is_whole { end } else { start }.max(sealed)
}

/// A growing file that ends with bytes of an interrupted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornEnd {
    /// The file, by its path below the record.
    pub file: &'static str,
    /// Bytes of it that count.
    pub kept_bytes: u64,
    /// Bytes after them.
    pub removed_bytes: u64,
    /// True when the bytes that count end with a complete line.
    pub(super) is_line_whole: bool,
}

/// The growing files of the record in `dir` that end with bytes of an interrupted write. The next run on the record
/// removes them.
///
/// # Errors
/// When a file cannot be read.
pub fn torn_ends(dir: &Path) -> Result<Vec<TornEnd>, RecordError> {
    let torn = all(dir)?.into_iter().filter(|end| end.removed_bytes > 0);
    Ok(torn.collect())
}

/// The latest stamp of an event, or of a commit written after the last event; 0 for none.
pub(super) fn last_ms(dir: &Path) -> Result<u64, RecordError> {
    let journal = read(dir, EVENTS)?.unwrap_or_default();
    let event_ms = events(&journal).iter().map(|event| event.at_ms).max();
    let commits = read(dir, COMMITS)?.unwrap_or_default();
    let lines = &commits[..after_last_line(&commits).saturating_sub(1)];
    let last = &lines[after_last_line(lines)..];
    let commit_ms = str::from_utf8(last)
        .ok()
        .and_then(|row| row.split(',').next()?.parse().ok());
    Ok(event_ms.unwrap_or(0).max(commit_ms.unwrap_or(0)))
}

/// A file of the record, if it exists.
fn read(dir: &Path, file: &str) -> Result<Option<Vec<u8>>, RecordError> {
    match foreign::read_below(dir, file, TABLE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::File {
            action: "read",
            path: dir.join(file),
            source,
        }),
    }
}

/// The ends of all growing files that exist, the journal first.
pub(super) fn all(dir: &Path) -> Result<Vec<TornEnd>, RecordError> {
    let mut ends = Ends::default();
    let mut found = Vec::new();
    for file in GROWING {
        let Some(bytes) = read(dir, file)? else {
            continue;
        };
        let kept = if file == EVENTS {
            let kept = kept_of_journal(dir, &bytes);
            ends = Ends::of(dir, &events(&bytes[..kept]));
            kept
        } else {
            ends.kept(file, &bytes)
        };
        found.push(TornEnd {
            file,
            kept_bytes: kept as u64,
            removed_bytes: (bytes.len() - kept) as u64,
            is_line_whole: kept == 0 || bytes[kept - 1] == b'\n',
        });
    }
    Ok(found)
}

/// The events of a journal that can be parsed.
fn events(bytes: &[u8]) -> Vec<Stamped> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn sealed_lengths(dir: &Path) -> BTreeMap<String, u64> {
    let seal = last_seal(dir);
    let files = seal.into_iter().flat_map(|seal| seal.files);
    files.map(|(file, digest)| (file, digest.bytes)).collect()
}

/// Bytes up to the end of the last complete line.
fn after_last_line(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|&byte| byte == b'\n');
    last.map_or(0, |at| at + 1)
}

fn length(bytes: Option<u64>) -> usize {
    bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::event::SliceId;

    fn finished(lengths: &[(&str, u64)]) -> Stamped {
        let lengths = lengths.iter();
        Stamped {
            at_ms: 1,
            what: Event::SliceFinished {
                slice: SliceId {
                    block: 0,
                    position: 0,
                },
                lengths: lengths
                    .map(|(name, bytes)| ((*name).to_owned(), *bytes))
                    .collect(),
            },
        }
    }

    #[track_caller]
    fn check(events: &[Stamped], name: &str, text: &str, kept: usize) {
        let folder = tempfile::tempdir().unwrap();
        let ends = Ends::of(folder.path(), events);
        assert_eq!(ends.kept(name, text.as_bytes()), kept, "{name}: {text:?}");
    }

    #[test]
    fn a_file_ends_where_the_journal_says_and_else_with_its_last_whole_line() {
        use super::super::{ERRORS, SLICES};
        let stated = [finished(&[(ERRORS, 4), (LATENCY, 2), (COMMITS, 2)])];
        // A torn row whose quoted field holds a line break looks whole.
        check(&stated, ERRORS, "a\nb\n\"c\nd\n", 4);
        check(&stated, ERRORS, "a\n", 2);
        check(&stated, SLICES, "0,1\n", 0);
        check(&stated, LATENCY, "a\nb\n", 2);
        check(&stated, COMMITS, "a\nb\nc", 4);
        // A version that stated no lengths.
        check(&[finished(&[])], ERRORS, "a\nb", 2);
        // No slice finished.
        check(&[], ERRORS, "a\nb\n", 0);
        check(&[], LATENCY, "#head\nTag", 6);
        check(&[], COMMITS, "", 0);
    }

    #[test]
    fn the_latest_stamp_is_that_of_an_event_or_of_a_commit_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        assert_eq!(last_ms(dir).unwrap(), 0);
        let line = serde_json::to_string(&finished(&[])).unwrap();
        // Written when the machine's clock was followed, and set back.
        let later = line.replace("\"at_ms\":1", "\"at_ms\":70");
        fs::write(dir.join(EVENTS), format!("{later}\n{line}\n{{\"at_ms\":9")).unwrap();
        assert_eq!(last_ms(dir).unwrap(), 70);
        let head = "at_ms,contender,series,first,last\n";
        fs::write(dir.join(COMMITS), head).unwrap();
        assert_eq!(last_ms(dir).unwrap(), 70);
        fs::write(dir.join(COMMITS), format!("{head}80,a,1,1,1\n95,a")).unwrap();
        assert_eq!(last_ms(dir).unwrap(), 80);
    }

    #[test]
    fn only_the_last_event_of_a_journal_can_be_torn() {
        let folder = tempfile::tempdir().unwrap();
        for (text, kept) in [
            ("", 0),
            ("{}\n", 3),
            ("{}\n{\"a", 3),
            ("{}\n\0\0\0}\n", 3),
            ("{}\n\0\n\0\n", 5),
            ("{}\n\n", 4),
            ("{\"a", 0),
        ] {
            assert_eq!(
                kept_of_journal(folder.path(), text.as_bytes()),
                kept,
                "{text:?}"
            );
        }
    }
}
