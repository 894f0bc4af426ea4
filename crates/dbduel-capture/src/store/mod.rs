//! The capture: a directory with what a log holds.
//!
//! ```text
//! capture.json       the manifest: product, log, options, span, counts, what the log lacks, unreadable parts, checksums
//! classes.jsonl      one line per class of statements
//! NAME.TYPE          one column per property of a statement, little-endian, in the order of the log
//! order.u32          the statements again, grouped by session, in the order of the log within each
//! sessions.bin       64 bytes per session; transactions.bin: 16 bytes per transaction, in the order of `order.u32`
//! texts.bin          texts of statements, recent ones stored once
//! parameters.bin     values of prepared statements
//! ```
//!
//! Columns are memory-mapped, so a capture opens in the time its manifest and classes take. It is written to a directory beside
//! its target and renamed when it is complete. Captures are untrusted like logs: every offset is checked where it is used.

pub mod columns;
pub mod manifest;
mod order;
pub mod read;
mod sessions;
pub(crate) mod texts;
pub mod write;

use std::io;
use std::path::{Path, PathBuf};

pub use manifest::Manifest;
pub use read::Capture;

/// Version of the format of captures.
pub const FORMAT: u32 = 1;

/// Name of the manifest.
pub const MANIFEST: &str = "capture.json";
/// Name of the file of classes.
pub const CLASSES: &str = "classes.jsonl";

/// Why a capture could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The target exists.
    #[error("`{}` exists already; name another directory with --output", .0.display())]
    Exists(PathBuf),
    /// There is no capture.
    #[error("`{}` is no capture: it has no `{MANIFEST}`", .0.display())]
    NoCapture(PathBuf),
    /// A file cannot be read or written.
    #[error("could not {action} `{}`: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The capture is incomplete, changed, or of another version.
    #[error("the capture `{}` cannot be used: {why}", path.display())]
    Unfit {
        /// Its directory.
        path: PathBuf,
        /// What is wrong, as a clause.
        why: String,
    },
}

impl StoreError {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| StoreError::File {
            action,
            path,
            source,
        }
    }

    /// True where the directory that the user named is the cause.
    #[must_use]
    pub fn is_of_place(&self) -> bool {
        matches!(self, StoreError::Exists(_) | StoreError::NoCapture(_))
    }
}
