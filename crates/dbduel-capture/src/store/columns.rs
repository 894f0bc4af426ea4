//! Columns: fixed-width values of statements, written one after the other and read through a map of the file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapMut};

use crate::entry::Outcome;

/// Buffer of a column that is written, bytes.
const BUFFER: usize = 64 << 10;
/// Zeros that are written at once to a file that is mapped, bytes.
const ZEROS: usize = 64 << 10;
/// Mode of the files of a capture: statements hold what users entrust to a database.
const MODE: u32 = 0o600;

/// `start.i64` of a statement whose time is unknown.
pub const NO_TIME: i64 = i64::MIN;
/// A number of 64 bits that is unknown: a duration, rows, an offset.
pub const NO_NUMBER: u64 = u64::MAX;
/// A place of 32 bits that is unknown: a schema, a user, a transaction.
pub const NO_PLACE: u32 = u32::MAX;

/// A column of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Column {
    /// Start, nanoseconds since the capture's start, not before that of the session's previous statement; [`NO_TIME`].
    Start,
    /// Duration, nanoseconds; [`NO_NUMBER`].
    Duration,
    /// Place of the class in `classes.jsonl`.
    Class,
    /// Place of the session in `sessions.bin`.
    Session,
    /// Place of the transaction in `transactions.bin`; [`NO_PLACE`].
    Transaction,
    /// Offset of the text in `texts.bin`.
    TextOffset,
    /// Length of the text, bytes.
    TextLength,
    /// Offset of the values in `parameters.bin`; [`NO_NUMBER`].
    Parameters,
    /// Place of the default database in the manifest's `schemas`; [`NO_PLACE`].
    Schema,
    /// Outcome, see [`outcome_code`].
    Outcome,
    /// Rows returned; [`NO_NUMBER`].
    RowsSent,
    /// Rows changed; [`NO_NUMBER`].
    RowsAffected,
    /// Line of the log, from 1.
    Line,
    /// Kind: its place in `Kind::ALL`.
    Kind,
    /// Effect on the transaction: the code of `Effect`.
    Effect,
    /// How it was sent: the code of `SentAs`.
    Protocol,
    /// Why it is not replayed: 1 + the place in the manifest's `refusals`, or 0.
    Refused,
}

/// File and width, bytes, of each column, in the order of [`Column`].
pub const COLUMNS: [(Column, &str, usize); 17] = [
    (Column::Start, "start.i64", 8),
    (Column::Duration, "duration.u64", 8),
    (Column::Class, "class.u32", 4),
    (Column::Session, "session.u32", 4),
    (Column::Transaction, "transaction.u32", 4),
    (Column::TextOffset, "text-offset.u64", 8),
    (Column::TextLength, "text-length.u32", 4),
    (Column::Parameters, "parameters.u64", 8),
    (Column::Schema, "schema.u32", 4),
    (Column::Outcome, "outcome.u32", 4),
    (Column::RowsSent, "rows-sent.u64", 8),
    (Column::RowsAffected, "rows-affected.u64", 8),
    (Column::Line, "line.u64", 8),
    (Column::Kind, "kind.u8", 1),
    (Column::Effect, "effect.u8", 1),
    (Column::Protocol, "protocol.u8", 1),
    (Column::Refused, "refused.u8", 1),
];

/// A file that grows at its end.
#[derive(Debug)]
pub(super) struct GrowingFile {
    writer: BufWriter<File>,
}

impl GrowingFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(GrowingFile {
            writer: BufWriter::with_capacity(BUFFER, create(path)?),
        })
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A new file that only its owner may read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(MODE)
        .open(path)
}

/// A file of a capture in memory; empty where the file is.
#[derive(Debug, Default)]
pub(super) struct MappedFile {
    map: Option<Mmap>,
}

impl MappedFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix_flags())
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if metadata.len() == 0 {
            return Ok(MappedFile::default());
        }
        // SAFETY: the map is only read. A capture is never changed once it has its name; a program that cuts a file while it is
        // mapped ends this one with SIGBUS, and one that changes bytes changes numbers that are checked where they are used.
        let map = unsafe { Mmap::map(&file)? };
        Ok(MappedFile { map: Some(map) })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    pub(super) fn u8(&self, index: usize) -> Option<u8> {
        self.bytes().get(index).copied()
    }

    pub(super) fn u32(&self, index: usize) -> Option<u32> {
        number(self.bytes(), index).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&self, index: usize) -> Option<u64> {
        number(self.bytes(), index).map(u64::from_le_bytes)
    }

    pub(super) fn i64(&self, index: usize) -> Option<i64> {
        number(self.bytes(), index).map(i64::from_le_bytes)
    }
}

/// Flags with which the files of a capture are opened: a pipe in place of a file must not block.
fn nix_flags() -> i32 {
    // O_NONBLOCK, which regular files ignore; the same on both architectures that are supported.
    0o4000
}

/// The `index`-th value of `N` bytes.
pub(super) fn number<const N: usize>(bytes: &[u8], index: usize) -> Option<[u8; N]> {
    let start = index.checked_mul(N)?;
    bytes.get(start..start.checked_add(N)?)?.try_into().ok()
}

/// A file of a capture that is being written, in memory, to be filled in any order.
#[derive(Debug)]
pub(super) struct FillableFile {
    path: PathBuf,
    file: File,
    map: Option<MmapMut>,
}

impl FillableFile {
    /// A file of that length, filled with zeros.
    pub(super) fn create(path: &Path, length: u64) -> io::Result<Self> {
        Self::of(path, create(path)?, length)
    }

    /// A complete file of the capture that is being written, to change it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        Self::of(path, file, length)
    }

    fn of(path: &Path, file: File, length: u64) -> io::Result<Self> {
        let mut fillable = FillableFile {
            path: path.to_owned(),
            file,
            map: None,
        };
        fillable.resize(length)?;
        Ok(fillable)
    }

    /// Changes the length; new bytes are zeros.
    ///
    /// # Errors
    /// When the file system has no room; the error names the file.
    pub(super) fn resize(&mut self, length: u64) -> io::Result<()> {
        self.map = None;
        self.allocate(length).map_err(|error| {
            let path = self.path.display();
            let text = format!("could not make `{path}` {length} bytes long: {error}");
            io::Error::new(error.kind(), text)
        })?;
        if length > 0 {
            // SAFETY: this process made the file a moment ago in a directory that only its user may enter, and maps it once.
            self.map = Some(unsafe { MmapMut::map_mut(&self.file)? });
        }
        Ok(())
    }

    /// Cuts the file, or writes zeros at its end: bytes of a hole would need room when they are written through the map, where a full
    /// disk ends the process with SIGBUS.
    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut at = self.file.metadata()?.len();
        if length < at {
            return self.file.set_len(length);
        }
        let zeros = [0; ZEROS];
        while at < length {
            let left = usize::try_from(length - at).unwrap_or(ZEROS).min(ZEROS);
            self.file.write_all_at(&zeros[..left], at)?;
            at += left as u64;
        }
        Ok(())
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or_default()
    }

    pub(super) fn length(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.len() as u64)
    }
}

/// Set in the code of an outcome that is a SQLSTATE.
const STATE: u32 = 1 << 31;
/// Set in the code of an outcome that is an error's number.
const NUMBER: u32 = 1 << 30;

/// Code of an outcome in its column: 0 unknown, 1 no error, 2³⁰ + number for an error of MySQL, 2³¹ + SQLSTATE in base 36.
#[must_use]
pub fn outcome_code(outcome: Option<&Outcome>) -> u32 {
    match outcome {
        None => 0,
        Some(Outcome::Ok) => 1,
        Some(Outcome::Number(number)) => NUMBER | u32::from(*number),
        Some(Outcome::State(state)) => {
            state.iter().fold(0, |code, byte| {
                let digit = char::from(*byte).to_digit(36).unwrap_or_default();
                36 * code + digit
            }) | STATE
        }
    }
}

/// The outcome of a code.
#[must_use]
pub fn outcome_of_code(code: u32) -> Option<Outcome> {
    match code {
        0 => None,
        1 => Some(Outcome::Ok),
        _ if code & STATE != 0 => {
            let mut rest = code & !STATE;
            let mut state = [b'0'; 5];
            for byte in state.iter_mut().rev() {
                let digit = char::from_digit(rest % 36, 36).unwrap_or('0');
                *byte = digit.to_ascii_uppercase() as u8;
                rest /= 36;
            }
            Some(Outcome::State(state))
        }
        _ => Some(Outcome::Number((code & 0xffff) as u16)),
    }
}

/// True for the code of an error.
#[must_use]
pub fn is_error_code(code: u32) -> bool {
    code > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_come_back() {
        for outcome in [
            None,
            Some(Outcome::Ok),
            Some(Outcome::Number(1)),
            Some(Outcome::Number(u16::MAX)),
            Some(Outcome::State(*b"42P01")),
            Some(Outcome::State(*b"ZZZZZ")),
            Some(Outcome::State(*b"00000")),
        ] {
            let code = outcome_code(outcome.as_ref());
            assert_eq!(outcome_of_code(code), outcome);
            let is_error = !matches!(outcome, None | Some(Outcome::Ok));
            assert_eq!(is_error_code(code), is_error);
        }
        for code in [2, 77, u32::MAX, STATE - 1] {
            let _ = outcome_of_code(code);
        }
    }

    #[test]
    fn columns_are_in_the_order_of_their_names() {
        for (place, (column, file, width)) in COLUMNS.into_iter().enumerate() {
            assert_eq!(column as usize, place);
            let bits: usize = file.rsplit_once('.').unwrap().1[1..].parse().unwrap();
            assert_eq!(bits, 8 * width, "{file}");
        }
    }

    #[test]
    fn maps_answer_within_their_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut file = GrowingFile::create(&path).unwrap();
        file.push(&7_u64.to_le_bytes()).unwrap();
        file.finish().unwrap();
        let map = MappedFile::open(&path).unwrap();
        assert_eq!((map.u64(0), map.u64(1)), (Some(7), None));
        assert_eq!(
            (map.u32(0), map.u32(1), map.u32(2)),
            (Some(7), Some(0), None)
        );
        assert_eq!((map.u8(8), map.u64(usize::MAX)), (None, None));
        assert!(MappedFile::open(dir.path()).is_err());
        let mut fillable = FillableFile::create(&dir.path().join("b"), 0).unwrap();
        assert!(fillable.bytes().is_empty());
        fillable.resize(4).unwrap();
        fillable.bytes()[0] = 1;
        fillable.resize(8).unwrap();
        assert_eq!(fillable.bytes(), [1, 0, 0, 0, 0, 0, 0, 0]);
        drop(fillable);
        let mut fillable = FillableFile::open(&dir.path().join("b")).unwrap();
        fillable.resize(2).unwrap();
        assert_eq!(fillable.bytes(), [1, 0]);
        assert_eq!(fillable.length(), 2);
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let error = FillableFile::of(path, file.unwrap(), 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("`/dev/full`"), "{error}");
    }
}
