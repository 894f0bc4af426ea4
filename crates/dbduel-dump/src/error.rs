//! Why a dump is not loaded.

use std::io;
use std::path::PathBuf;

/// Why a dump is not loaded. Heads of statements have `?` in place of values.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The file cannot be read to its end.
    #[error("could not read dump `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An anonymous dump cannot be written.
    #[error("could not write `{}`", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is no dump that can be loaded.
    #[error("dump `{}`: {why}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is and what to do.
        why: String,
    },
    /// A statement is not run.
    #[error("dump `{}`:{line}:{column}: {why} [{rule}]: `{head}`", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Line on which the statement begins, from 1.
        line: u64,
        /// Byte of the line on which it begins, from 1.
        column: u64,
        /// Name of the rule.
        rule: &'static str,
        /// What is refused and what to do.
        why: String,
        /// The beginning of the statement.
        head: String,
    },
    /// The server refused a statement.
    #[error("dump `{}`:{line}:{column}: the server refused `{head}` with {why}", .path.display())]
    Server {
        /// The file.
        path: PathBuf,
        /// Line on which the statement begins, from 1.
        line: u64,
        /// Byte of the line on which it begins, from 1.
        column: u64,
        /// The beginning of the statement.
        head: String,
        /// Name of the server's error, and what to do where that is known. Its text may have values of the dump.
        why: String,
    },
    /// The connection broke, or the time is up.
    #[error("dump `{}`:{line}:{column}: `{head}` got no complete answer; the server's log may say why", .path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// Line on which the statement begins, from 1.
        line: u64,
        /// Byte of the line on which it begins, from 1.
        column: u64,
        /// The beginning of the statement.
        head: String,
        /// The reason.
        source: io::Error,
    },
    /// The caller stopped the load.
    #[error("cancelled")]
    Cancelled,
}
