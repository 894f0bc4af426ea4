//! The manifest of a capture, and its classes.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::entry::Lack;
use crate::logs::{LogFormat, LogProduct};

/// Unreadable parts that are listed; all are counted.
pub const LISTED_MAX: usize = 100;

/// What `capture.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Version of dbduel that wrote the capture.
    pub dbduel: String,
    /// The log.
    pub log: LogDescription,
    /// What the user said about the log.
    pub options: UserOptions,
    /// Times.
    pub span: Span,
    /// Counts.
    pub counts: Counts,
    /// What the log cannot say.
    pub lacks: Vec<Lack>,
    /// What was not understood.
    pub unreadable: Unreadable,
    /// Why statements are not replayed; the column `refused` has 1 + the place in this list, or 0.
    pub refusals: Vec<Refusal>,
    /// Default databases; the columns have places in this list. Bytes that are not UTF-8 and backslashes are escaped.
    pub schemas: Vec<String>,
    /// Users, as the schemas.
    pub users: Vec<String>,
    /// What was done to the values, if they are not those of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymised: Option<Anonymised>,
    /// The other files of the capture.
    pub files: Vec<StoredFile>,
}

/// How the values of a capture were replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anonymised {
    /// Statements that were dropped, by reason: those that are not understood must not be passed on.
    pub dropped: Vec<Replaced>,
    /// Values that were replaced otherwise than a reader may expect.
    pub notes: Vec<Replaced>,
}

/// A number of statements or values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// What they are, as a noun phrase.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// The log of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogDescription {
    /// Product that wrote it.
    pub product: LogProduct,
    /// True where neither the log nor the user says the product.
    pub is_product_assumed: bool,
    /// The product's version, where the log has it.
    pub version: Option<String>,
    /// Its format.
    pub format: LogFormat,
    /// Its files, in order.
    pub files: Vec<LogFile>,
    /// Bytes, decompressed.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
}

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFile {
    /// Its path as the user gave it; `-` for standard input.
    pub path: String,
    /// Number of its first line in the whole log, from 1.
    pub first_line: u64,
}

/// What the user said about the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserOptions {
    /// PostgreSQL's `log_line_prefix`.
    pub prefix: Option<String>,
    /// Seconds east of UTC of times without a zone.
    pub timezone_offset_s: Option<i32>,
    /// Default database of sessions whose log does not say it.
    pub schema: Option<String>,
}

/// Times of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First start of a statement, nanoseconds since 1970 UTC; the columns count from it.
    pub start_unix_ns: Option<i64>,
    /// Last end of a statement, or last start where ends are unknown, nanoseconds since `start_unix_ns`.
    pub length_ns: u64,
    /// Resolution of starts, nanoseconds: the coarsest.
    pub step_ns: u32,
    /// False where the log's times name no zone whose offset is known: they count as `options.timezone_offset_s`, or UTC.
    pub names_zone: bool,
}

/// Counts of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Sessions.
    pub sessions: u64,
    /// Sessions whose begin is in the log.
    pub whole_sessions: u64,
    /// Sessions whose end is in the log.
    pub ended_sessions: u64,
    /// Statements, requests that change a session included.
    pub statements: u64,
    /// Transactions.
    pub transactions: u64,
    /// Transactions that a statement begins, by `BEGIN` or under `autocommit=0`.
    pub explicit_transactions: u64,
    /// Transactions of which the log has only a part.
    pub torn_transactions: u64,
    /// Classes of statements.
    pub classes: u64,
    /// Statements without a time.
    pub without_start: u64,
    /// Statements with a duration.
    pub with_duration: u64,
    /// Statements whose outcome the log has.
    pub with_outcome: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Statements that are not replayed.
    pub refused: u64,
}

/// Parts of a log that were not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Parts.
    pub parts: u64,
    /// Lines of all parts.
    pub lines: u64,
    /// The first [`LISTED_MAX`] parts.
    pub listed: Vec<UnreadablePart>,
}

/// A part of a log that was not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadablePart {
    /// First line in the whole log, from 1.
    pub line: u64,
    /// Lines.
    pub lines: u64,
    /// Why.
    pub why: String,
}

/// A reason why statements are not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, as a noun phrase.
    pub what: String,
    /// Statements.
    pub statements: u64,
}

/// A file of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its name.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its content, hexadecimal.
    pub blake3: String,
}

/// A class of statements: a line of `classes.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassRow {
    /// Identity, 16 hexadecimal digits.
    pub id: String,
    /// Text with `?` for values; bytes that are not UTF-8 are escaped, and long texts end with `…`.
    pub text: String,
    /// Kind of its statements.
    pub kind: String,
    /// Statements.
    pub statements: u64,
    /// Statements with a duration.
    pub with_duration: u64,
    /// Sum of their durations, nanoseconds.
    pub duration_ns: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Statements that are not replayed.
    pub refused: u64,
    /// Why, of the first of them.
    pub refused_why: Option<String>,
    /// The first statement: its place in the columns.
    pub first_statement: u64,
    /// Its line in the log.
    pub first_line: u64,
}

impl Manifest {
    /// The position of a line: the log's file and the line in it, as `slow.log.1:12`.
    #[must_use]
    pub fn position(&self, line: u64) -> String {
        let files = self.log.files.iter().rev();
        let file = files.into_iter().find(|file| file.first_line <= line);
        match file {
            Some(file) => format!("{}:{}", file.path, line - file.first_line + 1),
            None => format!("line {line}"),
        }
    }
}

/// Bytes as text: what is not UTF-8 as `\xNN`. With `is_reversible` a backslash is doubled, so that [`unescaped`] restores the
/// bytes.
#[must_use]
pub fn escaped(bytes: &[u8], is_reversible: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        match is_reversible {
            true => text.push_str(&chunk.valid().replace('\\', "\\\\")),
            false => text.push_str(chunk.valid()),
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes of a text that [`escaped`] made reversibly.
#[must_use]
pub fn unescaped(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('\\') {
        return Cow::Borrowed(text.as_bytes());
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 2..at + 4).map(String::from_utf8_lossy);
        let code = code.and_then(|code| u8::from_str_radix(&code, 16).ok());
        let (value, length) = match (*byte, bytes.get(at + 1), code) {
            (b'\\', Some(b'\\'), _) => (b'\\', 2),
            (b'\\', Some(b'x'), Some(code)) => (code, 4),
            (byte, _, _) => (byte, 1),
        };
        plain.push(value);
        at += length;
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_bytes_come_back() {
        for bytes in [
            &b"shop"[..],
            b"",
            b"\xff\x00a\\x41\\",
            "ünï".as_bytes(),
            b"\\\\x",
            b"\xc3",
        ] {
            let text = escaped(bytes, true);
            assert_eq!(unescaped(&text), bytes, "{text}");
        }
        assert_eq!(escaped(b"a\\b\xff", false), "a\\b\\xff");
        assert_eq!(unescaped("\\xzz\\"), &b"\\xzz\\"[..]);
    }
}
