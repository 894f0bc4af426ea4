//! Reads and writes files, in order or at random, with syncs like those of a database.
//!
//! ```text
//! plan (what comes next) ─► FileIo (counts, syncs) ─► access (plain, queued or mapped) ─► files
//! ```

mod access;
mod aio;
mod files;
mod plan;
mod proof;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dbduel_client::distributions::Shape;
use dbduel_client::run::Counts;

use super::{Machine, Next, Worker};
use access::{Access, Buffer};
use files::Files;
pub use files::{Created, FileError, Making, create, remove, size_text};
use plan::{Order, Plan};

/// Order and kind of the accesses to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Files are written again from the start, one block after the other.
    SequentialWrite,
    /// Files are overwritten, one block after the other.
    SequentialRewrite,
    /// Files are read, one block after the other.
    SequentialRead,
    /// Blocks are read at random.
    RandomRead,
    /// Blocks are overwritten at random.
    RandomWrite,
    /// Blocks are read and overwritten at random.
    RandomMix,
}

impl Mode {
    /// True when blocks are drawn at random.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite | Mode::RandomMix)
    }
}

/// How files are accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One system call per block.
    Plain,
    /// Through the kernel's queue, with several requests per thread pending.
    Queued {
        /// Most pending requests.
        backlog: u32,
    },
    /// As mapped memory.
    Mapped,
}

/// Flags with which the files are opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// `O_SYNC`.
    pub sync: bool,
    /// `O_DSYNC`.
    pub dsync: bool,
    /// `O_DIRECT`.
    pub direct: bool,
}

/// The files.
#[derive(Debug, Clone)]
pub struct FileSet {
    /// Their folder; their names are `test_file.0` and so on.
    pub folder: PathBuf,
    /// Number of files.
    pub count: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Flags with which they are opened.
    pub flags: OpenFlags,
    /// Whether blocks contain a checksum of their content, which is checked when they are read.
    pub is_proved: bool,
}

impl FileSet {
    /// Bytes of one file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.total_bytes / u64::from(self.count.max(1))
    }
}

/// Parameters of the test.
#[derive(Debug, Clone)]
pub struct FileIoSpec {
    /// The files.
    pub files: FileSet,
    /// Order and kind of the accesses.
    pub mode: Mode,
    /// Method of access.
    pub method: Method,
    /// Number of reads and writes after which all files are synced if any was a write; 0 for never.
    pub sync_every: u64,
    /// Whether a file is synced after each write to it.
    pub sync_each_write: bool,
    /// Whether all files are synced at the end.
    pub sync_at_end: bool,
    /// Whether a sync is `fdatasync`, which leaves out metadata not needed to read the data again.
    pub sync_data_only: bool,
    /// Blocks per sequential access; 0 counts as 1.
    pub merged_blocks: u64,
    /// Reads per write of [`Mode::RandomMix`].
    pub reads_per_write: f64,
    /// Distribution of random blocks.
    pub shape: Shape,
    /// Workers.
    pub workers: u32,
    /// Root of the random streams.
    pub seed: u64,
}

/// The test.
#[derive(Debug)]
pub struct FileIo {
    spec: FileIoSpec,
    files: Files,
    plan: Mutex<Plan>,
    /// Workers that have not ended.
    running: AtomicU32,
}

impl FileIo {
    /// Opens the files.
    ///
    /// # Errors
    /// [`FileError`]: they are missing, too small, or cannot be opened with these flags.
    pub fn open(spec: FileIoSpec) -> Result<Self, FileError> {
        let files = Files::open(&spec.files, spec.mode, spec.method == Method::Mapped)?;
        let plan = Mutex::new(Plan::new(&spec));
        let running = AtomicU32::new(spec.workers);
        Ok(FileIo {
            spec,
            files,
            plan,
            running,
        })
    }
}

impl Machine for FileIo {
    fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String> {
        let access = Access::new(&self.spec, &self.files);
        let access = access.map_err(|error| self.spec.files.explain(&error))?;
        Ok(Box::new(FileWorker {
            test: self,
            access,
            buffer: Buffer::new(&self.spec, number),
        }))
    }
}

struct FileWorker<'a> {
    test: &'a FileIo,
    access: Access<'a>,
    buffer: Buffer,
}

impl Worker for FileWorker<'_> {
    fn event(&mut self, _number: u64, counts: &mut Counts) -> Result<Next, String> {
        let order = self
            .test
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next();
        self.obey(order, counts)
            .map_err(|error| self.test.spec.files.explain(&error))?;
        Ok(Next::Done)
    }

    fn finish(&mut self, counts: &mut Counts) -> Result<(), String> {
        let mut finish = || -> Result<(), FileError> {
            self.access.settle()?;
            let is_last = self.test.running.fetch_sub(1, Ordering::AcqRel) == 1;
            let was_written = self
                .test
                .plan
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .was_written();
            if is_last && was_written && self.test.spec.sync_at_end {
                for file in 0..self.test.spec.files.count {
                    self.access.sync(file, self.test.spec.sync_data_only)?;
                    counts.others += 1;
                }
            }
            Ok(())
        };
        finish().map_err(|error| self.test.spec.files.explain(&error))
    }
}

impl FileWorker<'_> {
    fn obey(&mut self, order: Order, counts: &mut Counts) -> Result<(), FileError> {
        match order {
            Order::Read {
                file,
                offset,
                bytes,
            } => {
                self.access.read(file, offset, bytes, &mut self.buffer)?;
                counts.reads += 1;
                counts.bytes_read += bytes;
            }
            Order::Write {
                file,
                offset,
                bytes,
            } => {
                self.access.write(file, offset, bytes, &mut self.buffer)?;
                counts.writes += 1;
                counts.bytes_written += bytes;
                if self.test.spec.sync_each_write {
                    self.access.sync(file, self.test.spec.sync_data_only)?;
                    counts.others += 1;
                }
            }
            Order::Sync { file } => {
                self.access.sync(file, self.test.spec.sync_data_only)?;
                counts.others += 1;
            }
        }
        Ok(())
    }
}

/// Longest wait for a queued request. A dead device must not hold up a run for ever.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests;
