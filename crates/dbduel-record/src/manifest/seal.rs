//! Writing a line of the manifest.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{MANIFEST, digest, digest_of_file};
use crate::event::{Event, Stamped};
use crate::foreign::{self, TABLE_BYTES_MAX};
use crate::store::{EVENTS, RecordError};

/// One line of the manifest: the record's files at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// When it was written, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Version of dbduel that wrote it.
    pub dbduel: String,
    /// Digest of all lines before this one; absent in the first.
    pub previous: Option<String>,
    /// True when a slice had begun; facts known before the first slice must then stay unchanged.
    pub has_begun: bool,
    /// Every file, by its path below the record.
    pub files: BTreeMap<String, FileDigest>,
}

/// A file's length and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Length, bytes.
    pub bytes: u64,
    /// BLAKE3 of the content, hexadecimal.
    pub blake3: String,
}

/// The record's manifest with a new line for the current files.
pub(crate) fn extended(dir: &Path, at_ms: u64, dbduel: &str) -> Result<String, RecordError> {
    let before = match foreign::read_text_below(dir, MANIFEST, TABLE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => {
            return Err(RecordError::File {
                action: "read",
                path: dir.join(MANIFEST),
                source,
            });
        }
    };
    let mut listed = BTreeMap::new();
    for file in super::files(dir)? {
        let bytes = dir.join(&file).metadata().map_or(0, |facts| facts.len());
        let blake3 = digest_of_file(dir, &file, Some(bytes))?;
        listed.insert(file, FileDigest { bytes, blake3 });
    }
    let seal = Seal {
        at_ms,
        dbduel: dbduel.to_owned(),
        previous: (!before.is_empty()).then(|| digest(before.as_bytes())),
        has_begun: has_begun(dir),
        files: listed,
    };
    let line = serde_json::to_string(&seal).map_err(|error| RecordError::Malformed {
        path: dir.join(MANIFEST),
        why: error.to_string(),
    })?;
    Ok(format!("{before}{line}\n"))
}

/// The last line of the record's manifest; `None` without a manifest or a valid line.
pub(crate) fn last_seal(dir: &Path) -> Option<Seal> {
    let text = foreign::read_text_below(dir, MANIFEST, TABLE_BYTES_MAX).ok()?;
    serde_json::from_str(text.lines().next_back()?).ok()
}

/// True when the journal has a slice.
fn has_begun(dir: &Path) -> bool {
    let journal = foreign::read_text_below(dir, EVENTS, TABLE_BYTES_MAX).unwrap_or_default();
    let mut events = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Stamped>(line).ok());
    events.any(|event| matches!(event.what, Event::SliceStarted { .. }))
}
