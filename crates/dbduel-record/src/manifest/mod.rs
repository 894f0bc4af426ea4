//! The manifest: digests of every file of a record, one line at the end of each run.
//!
//! Shows whether the files are unchanged since then, and when the run was resumed, whether earlier data was only
//! appended to. An editor of a record can write a new manifest too: that shows in the manifest's own digest, which
//! reports cite.
//!
//! Reports are not in it: they follow from the record and can be derived again.

mod check;
mod seal;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use check::{Check, Difference, check};
pub use seal::{FileDigest, Seal};
pub(crate) use seal::{extended, last_seal};

use crate::foreign::open_below;
use crate::store::{ANSWERS, EXPERIMENT, GROWING, HOST, PLAN, RecordError, SELFTEST};
use crate::whole::{DEPTH_MAX, is_half_written};

/// The manifest's file.
pub const MANIFEST: &str = "manifest.jsonl";

/// Allowed changes to a file when a run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Fixed,
    /// It may grow at its end.
    Growing,
    /// It may be rewritten, for example a server's counters at the end of a run.
    Renewed,
}

/// Allowed changes of a file, by its path below the record.
fn kind(path: &str) -> Kind {
    const FIXED: &[&str] = &[EXPERIMENT, PLAN, HOST, SELFTEST, ANSWERS];
    if GROWING.contains(&path) {
        Kind::Growing
    } else if FIXED.contains(&path) || path.contains(".before.") || path.starts_with("scripts/") {
        Kind::Fixed
    } else {
        Kind::Renewed
    }
}

/// The digest of bytes as manifests and reports write it: BLAKE3, hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The digest of the first `bytes` of the file at `path` below the record, or of all of it.
fn digest_of_file(dir: &Path, path: &str, bytes: Option<u64>) -> Result<String, RecordError> {
    let read = || -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut file = open_below(dir, path)?.take(bytes.unwrap_or(u64::MAX));
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            };
        }
        Ok(hasher.finalize().to_hex().to_string())
    };
    read().map_err(|source| RecordError::File {
        action: "read",
        path: dir.join(path),
        source,
    })
}

/// Files of the record that are not derived from it, as paths below it with `/` between names, sorted. Entries that
/// are neither files nor folders are listed too, so that they show as differences.
fn files(dir: &Path) -> Result<Vec<String>, RecordError> {
    let mut found = Vec::new();
    walk(dir, "", 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(
    dir: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), RecordError> {
    let failed = |source| RecordError::File {
        action: "list",
        path: PathBuf::from(dir),
        source,
    };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().map_err(failed)?.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), &format!("{path}/"), depth + 1, found)?;
        } else if !is_beside_the_record(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// True for the manifest, for reports, and for a temporary file that a killed writer left behind.
fn is_beside_the_record(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_report = |path: &str| path.starts_with("report.") || path.starts_with("report-");
    path == MANIFEST || is_report(path) || is_half_written(name)
}
