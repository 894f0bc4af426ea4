//! The files: created, opened, checked and removed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dbduel_client::random::Random;
use nix::errno::Errno;
use nix::libc;

use super::access::Buffer;
use super::{FileSet, Mode};

/// Bytes per write when files are created.
const PIECE: u64 = 1 << 20;

/// Errors of the files.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be opened.
    #[error("Cannot open file '{}' errno = {} ({})", shown(path), *errno as i32, errno.desc())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        errno: Errno,
    },
    /// A file is smaller than it must be.
    #[error(
        "Size of file '{}' is {}, but at least {} is expected.",
        shown(path), size_text(*found_bytes), size_text(*wanted_bytes)
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Its size.
        found_bytes: u64,
        /// The size that it must have.
        wanted_bytes: u64,
    },
    /// An access failed.
    #[error("cannot {what} file '{}' at offset {offset}: {source}", path.display())]
    Access {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Offset in the file, bytes.
        offset: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel's queue cannot be created.
    #[error(
        "cannot create a queue for {backlog} requests: {source}; is fs.aio-max-nr large enough?"
    )]
    Queue {
        /// Requests.
        backlog: u32,
        /// The system's error.
        source: io::Error,
    },
    /// A block does not contain what was written.
    #[error(
        "Validation failed on file {file}, block offset {offset}: the checksum of its content is \
         wrong; were the files made with --validate?"
    )]
    Proof {
        /// Number of the file.
        file: u32,
        /// Offset in the file, bytes.
        offset: u64,
    },
}

/// A file's path as messages name it: those of the working directory by their names alone.
fn shown(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(".").unwrap_or(path).display()
}

/// A number of bytes with the largest unit that divides it.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value > 0 && value.is_multiple_of(1024) && unit + 1 < units.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", units[unit])
}

impl FileSet {
    /// The text of an error. Where direct access was refused, it names what must fit the device: the system says no more than
    /// "invalid argument", at whichever operation meets it first.
    #[must_use]
    pub fn explain(&self, error: &FileError) -> String {
        let (path, errno) = match error {
            FileError::Open { path, errno } => (path, *errno),
            FileError::Access { path, source, .. } => {
                let code = source.raw_os_error().unwrap_or_default();
                (path, Errno::from_raw(code))
            }
            _ => return error.to_string(),
        };
        if !self.flags.direct || errno != Errno::EINVAL {
            return error.to_string();
        }
        let path = shown(path);
        if let FileError::Open { .. } = error {
            return format!(
                "{error}; its file system may not support direct access: leave direct out of --file-extra-flags"
            );
        }
        format!(
            "file '{path}' refuses direct access (errno = {}, {}): --file-block-size is {} and a file has {}; make both multiples of the device's block, 512 or 4096 bytes",
            errno as i32,
            errno.desc(),
            size_text(self.block_bytes),
            size_text(self.file_bytes())
        )
    }
}

impl FileError {
    pub(super) fn access(what: &'static str, path: &Path, offset: u64, source: io::Error) -> Self {
        FileError::Access {
            what,
            path: path.to_owned(),
            offset,
            source,
        }
    }
}

/// Action on a file when a set is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// It is created.
    New,
    /// It exists and is extended.
    Longer,
    /// It exists and is long enough.
    Kept,
}

/// Bytes and time that creating the files took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Created {
    /// Bytes that were written.
    pub bytes: u64,
    /// Time that it took, syncs included.
    pub time: Duration,
}

fn path(set: &FileSet, file: u32) -> PathBuf {
    set.folder.join(format!("test_file.{file}"))
}

fn open_one(set: &FileSet, file: u32, is_created: bool) -> Result<(PathBuf, File), FileError> {
    let path = path(set, file);
    let mut flags = 0;
    for (is_wanted, flag) in [
        (set.flags.sync, libc::O_SYNC),
        (set.flags.dsync, libc::O_DSYNC),
        (set.flags.direct, libc::O_DIRECT),
    ] {
        if is_wanted {
            flags |= flag;
        }
    }
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(is_created)
        .truncate(false)
        .custom_flags(flags)
        .open(&path);
    match opened {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(FileError::Open {
            path,
            errno: Errno::from_raw(source.raw_os_error().unwrap_or_default()),
        }),
    }
}

/// Creates, fills and syncs the files. Existing files are kept and only extended, as sysbench does. `on_file` gets each
/// file's name and the action on it beforehand.
///
/// # Errors
/// [`FileError`]; some files may then exist, and [`remove`] removes them.
pub fn create(
    set: &FileSet,
    seed: u64,
    mut on_file: impl FnMut(&str, Making),
) -> Result<Created, FileError> {
    let began = Instant::now();
    let mut random = Random::new(seed);
    let mut bytes = 0;
    // Whole blocks, because each gets a proof of its own when proofs are wanted.
    let piece = (PIECE / set.block_bytes.max(1)).max(1) * set.block_bytes;
    let mut buffer = Buffer::of_bytes(piece);
    for number in 0..set.count {
        let (path, file) = open_one(set, number, true)?;
        let failed = |what, offset, source| FileError::access(what, &path, offset, source);
        let size = set.file_bytes();
        let mut offset = file
            .metadata()
            .map_err(|source| failed("look at", 0, source))?
            .len();
        if set.is_proved {
            offset = 0;
        }
        let making = match offset {
            0 => Making::New,
            length if length < size => Making::Longer,
            _ => Making::Kept,
        };
        on_file(&format!("test_file.{number}"), making);
        while offset < size {
            let length = piece.min(size - offset);
            let block = buffer.bytes(length);
            random.fill_digits(block);
            if set.is_proved {
                super::proof::put(block, offset, set.block_bytes);
            }
            file.write_all_at(block, offset)
                .map_err(|source| failed("write to", offset, source))?;
            offset += length;
            bytes += length;
        }
        file.sync_all()
            .map_err(|source| failed("sync", offset, source))?;
    }
    Ok(Created {
        bytes,
        time: began.elapsed(),
    })
}

/// Removes those of the files that exist.
///
/// # Errors
/// When the system refuses.
pub fn remove(set: &FileSet) -> Result<(), FileError> {
    for number in 0..set.count {
        let path = path(set, number);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::access("remove", &path, 0, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The open files of a run.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) open: Vec<(PathBuf, File)>,
}

impl Files {
    /// Opens the files. Those of [`Mode::SequentialWrite`] are created; the others must exist and be large enough.
    pub(super) fn open(set: &FileSet, mode: Mode, is_mapped: bool) -> Result<Self, FileError> {
        let is_created = mode == Mode::SequentialWrite;
        let wanted = set.file_bytes();
        let mut open = Vec::new();
        for number in 0..set.count {
            let (path, file) = open_one(set, number, is_created)?;
            if is_created {
                // Only what is there can be mapped.
                let length = if is_mapped { wanted } else { 0 };
                file.set_len(0)
                    .and_then(|()| file.set_len(length))
                    .map_err(|source| FileError::access("cut", &path, 0, source))?;
            } else {
                let found = file
                    .metadata()
                    .map_err(|source| FileError::access("look at", &path, 0, source))?
                    .len();
                if found < wanted {
                    return Err(FileError::TooSmall {
                        path,
                        found_bytes: found,
                        wanted_bytes: wanted,
                    });
                }
            }
            open.push((path, file));
        }
        Ok(Files { open })
    }

    /// A file by its number.
    pub(super) fn get(&self, file: u32) -> (&Path, &File) {
        let (path, file) = &self.open[file as usize];
        (path, file)
    }
}
