//! Writing a record: append and sync, or write a temporary file and rename it. Nothing else changes a record.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{
    COMMITS, ERRORS, EVENTS, EXPERIMENT, GROWING, HOST, LATENCY, PLAN, READINGS, RecordError,
    SECONDS, SLICES, STATEMENT_CLASSES, STATEMENT_ROWS, TICKS, contender_dir, ends,
};
use crate::commits::CommitRow;
use crate::event::{Event, SliceId, Stamped};
use crate::facts::Host;
use crate::files::{Change, FileSystem, LocalFiles, create_dir_all};
use crate::foreign;
use crate::latency::{self, Interval};
use crate::manifest::{self, MANIFEST};
use crate::plan::Plan;
use crate::rows::{ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use crate::statement_classes::{StatementClasses, StatementRow};
use crate::whole::{remove_half_written, write_whole_on};

/// Attempts to take a lock that others hold briefly, to check whether the record is free or to write its reports.
const LOCK_LOOKS: u32 = 100;
/// Time between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Permission of a record's files, before the process's umask.
const MODE: u32 = 0o666;
/// The same for its folders.
const DIR_MODE: u32 = 0o777;

/// The data that one slice adds to the record.
#[derive(Debug, Clone, Default)]
pub struct SliceResult {
    /// One row per class, [`crate::rows::ALL_CLASSES`] among them.
    pub classes: Vec<SliceRow>,
    /// The series inside the slice.
    pub ticks: Vec<TickRow>,
    /// Readings of the samplers.
    pub readings: Vec<ReadingRow>,
    /// The same second by second, for the samplers that are cheap enough.
    pub seconds: Vec<SecondRow>,
    /// Errors by code.
    pub errors: Vec<ErrorRow>,
    /// Histograms by class.
    pub latencies: Vec<Interval>,
    /// One row per class of statements that occurred, where single statements are measured.
    pub statements: Vec<StatementRow>,
}

/// A guard against writers: the record is not written while it lives. Several may exist at a time; a writer waits for
/// all of them, but only briefly.
#[derive(Debug)]
pub struct Held {
    dir: PathBuf,
    /// Holds the lock; a record without a journal was never written to.
    _journal: Option<File>,
}

impl Held {
    /// The record's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Writes one record. It holds a lock on the journal, so a record has one writer at a time.
#[derive(Debug)]
pub struct RecordWriter {
    dir: PathBuf,
    files: Arc<dyn FileSystem>,
    /// Holds the lock.
    _journal: File,
    /// Bytes of the growing files that count, absent for 0. A longer file ends with bytes of a failed write.
    lengths: BTreeMap<&'static str, u64>,
    /// The latest stamp so far; written stamps never decrease.
    last_ms: u64,
}

impl RecordWriter {
    /// Creates a new record in `dir`, which must not exist or be empty, with its plan.
    ///
    /// # Errors
    /// When the directory is not empty, or a file cannot be written.
    pub fn create(
        dir: &Path,
        experiment: &[u8],
        plan: &Plan,
        host: &Host,
        now_ms: u64,
    ) -> Result<Self, RecordError> {
        Self::create_on(Arc::new(LocalFiles), dir, experiment, plan, host, now_ms)
    }

    /// As [`RecordWriter::create`], on another file system than the machine's own.
    ///
    /// # Errors
    /// As [`RecordWriter::create`].
    pub fn create_on(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        experiment: &[u8],
        plan: &Plan,
        host: &Host,
        now_ms: u64,
    ) -> Result<Self, RecordError> {
        create_dir_all(&*files, dir, DIR_MODE).map_err(failed("create", dir))?;
        let mut entries = fs::read_dir(dir).map_err(failed("list", dir))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty(dir.to_owned()));
        }
        let mut writer = Self::open_on(files, dir, now_ms)?;
        writer.replace(Path::new(EXPERIMENT), experiment)?;
        writer.replace_json(Path::new(HOST), host)?;
        writer.append(LATENCY, latency::header(now_ms).as_bytes())?;
        for contender in &plan.contenders {
            writer.make_dir(&contender_dir(dir, &contender.name))?;
        }
        // Last, because a directory with a plan is a record.
        writer.replace_json(Path::new(PLAN), plan)?;
        Ok(writer)
    }

    /// Opens an existing record to resume it. Removes what interrupted writes left: temporary files, and the ends of
    /// files that do not count, which the journal records with `now_ms`.
    ///
    /// # Errors
    /// When another process writes this record, an entry of it is neither a regular file nor a folder, or a file
    /// cannot be opened, written or removed.
    pub fn open(dir: &Path, now_ms: u64) -> Result<Self, RecordError> {
        Self::open_on(Arc::new(LocalFiles), dir, now_ms)
    }

    /// As [`RecordWriter::open`], on another file system than the machine's own.
    ///
    /// # Errors
    /// As [`RecordWriter::open`].
    pub fn open_on(
        files: Arc<dyn FileSystem>,
        dir: &Path,
        now_ms: u64,
    ) -> Result<Self, RecordError> {
        // What is appended must not go elsewhere.
        foreign::check_entries(dir)?;
        let path = dir.join(EVENTS);
        // Makes the journal when there is none.
        let made = Change::Append {
            path: &path,
            bytes: b"",
            mode: MODE,
        };
        files.apply(made).map_err(failed("open", &path))?;
        let journal = File::open(&path).map_err(failed("open", &path))?;
        let mut looks = 1;
        // The kernel drops the lock with the process, however that ends.
        loop {
            match journal.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if looks < LOCK_LOOKS => {
                    looks += 1;
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(RecordError::InUse(dir.to_owned())),
                Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
            }
        }
        // The process that began them is gone, or would hold the lock.
        remove_half_written(&*files, dir).map_err(failed("clear half-written files of", dir))?;
        files
            .apply(Change::Sync { path: dir })
            .map_err(failed("sync", dir))?;
        let mut writer = Self {
            dir: dir.to_owned(),
            files,
            _journal: journal,
            lengths: BTreeMap::new(),
            last_ms: ends::last_ms(dir)?,
        };
        writer.remove_torn_ends(now_ms)?;
        Ok(writer)
    }

    /// Truncates every growing file to the length that counts.
    fn remove_torn_ends(&mut self, now_ms: u64) -> Result<(), RecordError> {
        let ends = ends::all(&self.dir)?;
        let lengths = ends.iter().map(|end| (end.file, end.kept_bytes));
        self.lengths = lengths.collect();
        // Nothing can be stated behind a torn event.
        self.restore_length(EVENTS)?;
        // Earlier versions sealed torn lines. What is appended starts on a line of its own.
        for end in ends.iter().filter(|end| !end.is_line_whole) {
            self.append(end.file, b"\n")?;
        }
        // Stated before it is done: should that fail, the next writer finds the same ends.
        for end in ends.iter().filter(|end| end.removed_bytes > 0) {
            let removed = Event::TailRemoved {
                file: end.file.to_owned(),
                kept_bytes: end.kept_bytes,
                removed_bytes: end.removed_bytes,
            };
            self.event(now_ms, removed)?;
        }
        ends.iter()
            .try_for_each(|end| self.restore_length(end.file))
    }

    /// Checks that no process writes the record in `dir` at this moment. Changes nothing.
    ///
    /// # Errors
    /// When another process writes it, or the journal cannot be read.
    pub fn is_free(dir: &Path) -> Result<(), RecordError> {
        Self::hold(dir).map(drop)
    }

    /// Keeps writers away from the record in `dir`, so that derived files can be written beside its data. Changes
    /// nothing.
    ///
    /// # Errors
    /// When another process writes it, or the journal cannot be read.
    pub fn hold(dir: &Path) -> Result<Held, RecordError> {
        let path = dir.join(EVENTS);
        let held = |journal| Held {
            dir: dir.to_owned(),
            _journal: journal,
        };
        let journal = match foreign::open_below(dir, EVENTS) {
            Ok(journal) => journal,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(held(None)),
            Err(source) => return Err(failed("open", &path)(source)),
        };
        match journal.try_lock_shared() {
            Ok(()) => Ok(held(Some(journal))),
            Err(TryLockError::WouldBlock) => Err(RecordError::InUse(dir.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed("lock", &path)(source)),
        }
    }

    /// The record's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The latest stamp in the record; 0 for none.
    #[must_use]
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// Appends an event, stamped with `at_ms` or with the latest stamp so far if that is later. After this returns, no
    /// crash can lose it.
    ///
    /// # Errors
    /// When the journal cannot be written; it is then unchanged.
    pub fn event(&mut self, at_ms: u64, what: Event) -> Result<(), RecordError> {
        let path = self.dir.join(EVENTS);
        let at_ms = at_ms.max(self.last_ms);
        let mut line = serde_json::to_string(&Stamped { at_ms, what })
            .map_err(|error| malformed(&path, &error))?;
        assert!(!line.contains('\n'), "an event is one line");
        line.push('\n');
        self.append(EVENTS, line.as_bytes())?;
        self.last_ms = at_ms;
        Ok(())
    }

    /// Appends a finished slice to the tables and then to the journal.
    ///
    /// # Errors
    /// When a file cannot be written; the slice then does not count.
    pub fn slice(
        &mut self,
        at_ms: u64,
        slice: SliceId,
        result: &SliceResult,
    ) -> Result<(), RecordError> {
        let before = self.lengths.clone();
        let written = self.append_slice(at_ms, slice, result);
        if written.is_err() {
            self.lengths = before;
        }
        written
    }

    fn append_slice(
        &mut self,
        at_ms: u64,
        slice: SliceId,
        result: &SliceResult,
    ) -> Result<(), RecordError> {
        let SliceResult {
            classes,
            ticks,
            readings,
            seconds,
            errors,
            latencies,
            statements,
        } = result;
        self.rows(SLICES, classes)?;
        self.rows(TICKS, ticks)?;
        self.rows(READINGS, readings)?;
        self.rows(SECONDS, seconds)?;
        self.rows(ERRORS, errors)?;
        let lines: String = latencies.iter().map(latency::line).collect();
        self.append(LATENCY, lines.as_bytes())?;
        self.rows(STATEMENT_ROWS, statements)?;
        let lengths = self.lengths.iter();
        let lengths = lengths
            .filter(|(name, bytes)| **name != EVENTS && **bytes > 0)
            .map(|(name, bytes)| ((*name).to_owned(), *bytes))
            .collect();
        self.event(at_ms, Event::SliceFinished { slice, lengths })
    }

    /// Appends to the durability log. After this returns, no crash can lose it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn commits(&mut self, rows: &[CommitRow]) -> Result<(), RecordError> {
        self.rows(COMMITS, rows)?;
        let latest = rows.iter().map(|row| row.at_ms).max();
        self.last_ms = self.last_ms.max(latest.unwrap_or(0));
        Ok(())
    }

    /// Writes the classes of single statements.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn statement_classes(&self, classes: &StatementClasses) -> Result<(), RecordError> {
        self.replace_json(Path::new(STATEMENT_CLASSES), classes)
    }

    /// Writes or replaces a file of a contender.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn contender_file(
        &self,
        contender: &str,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), RecordError> {
        let path = contender_dir(&self.dir, contender).join(name);
        self.make_dir(path.parent().unwrap_or(&self.dir))?;
        self.write(&path, bytes)
    }

    /// Writes or replaces a file of a contender as JSON.
    ///
    /// # Errors
    /// When the value cannot be written.
    pub fn contender_json<T: Serialize>(
        &self,
        contender: &str,
        name: &str,
        value: &T,
    ) -> Result<(), RecordError> {
        let bytes = to_json(&contender_dir(&self.dir, contender).join(name), value)?;
        self.contender_file(contender, name, &bytes)
    }

    /// Adds a line to the manifest: digests of all current files of the record. Returns the digest of the manifest,
    /// which a report cites.
    ///
    /// # Errors
    /// When a file cannot be read or the manifest cannot be written.
    pub fn seal(&self, at_ms: u64, dbduel: &str) -> Result<String, RecordError> {
        for name in GROWING {
            self.restore_length(name)?;
        }
        let manifest = manifest::extended(&self.dir, at_ms, dbduel)?;
        self.replace(Path::new(MANIFEST), manifest.as_bytes())?;
        Ok(manifest::digest(manifest.as_bytes()))
    }

    /// Writes or replaces a file of the record, for example a report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn replace(&self, name: &Path, bytes: &[u8]) -> Result<(), RecordError> {
        self.write(&self.dir.join(name), bytes)
    }

    /// Creates a folder of the record and its missing parents.
    ///
    /// # Errors
    /// When a folder cannot be created.
    pub fn create_dir(&self, path: &Path) -> Result<(), RecordError> {
        self.make_dir(&self.dir.join(path))
    }

    fn make_dir(&self, path: &Path) -> Result<(), RecordError> {
        create_dir_all(&*self.files, path, DIR_MODE).map_err(failed("create", path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
        write_whole_on(&*self.files, path, bytes, MODE).map_err(failed("write", path))
    }

    fn replace_json<T: Serialize>(&self, name: &Path, value: &T) -> Result<(), RecordError> {
        let bytes = to_json(&self.dir.join(name), value)?;
        self.replace(name, &bytes)
    }

    fn rows<T: Serialize>(&mut self, name: &'static str, rows: &[T]) -> Result<(), RecordError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.dir.join(name);
        let mut table = csv::WriterBuilder::new()
            .has_headers(self.length(name) == 0)
            .from_writer(Vec::new());
        for row in rows {
            table
                .serialize(row)
                .map_err(|error| malformed(&path, &error))?;
        }
        let bytes = table
            .into_inner()
            .map_err(|error| malformed(&path, &error))?;
        self.append(name, &bytes)
    }

    /// Bytes of a growing file that count.
    fn length(&self, name: &str) -> u64 {
        self.lengths.get(name).copied().unwrap_or(0)
    }

    /// Appends to a growing file and syncs it. After a failed attempt the file is restored, at the latest before the
    /// next write.
    fn append(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), RecordError> {
        if bytes.is_empty() {
            return Ok(());
        }
        // The journal first: while it claims a slice whose writing failed, the rows of that slice stay.
        self.restore_length(EVENTS)?;
        self.restore_length(name)?;
        let (path, before) = (self.dir.join(name), self.length(name));
        let added = Change::Append {
            path: &path,
            bytes,
            mode: MODE,
        };
        let mut written = self.files.apply(added);
        if written.is_ok() {
            written = self.files.apply(Change::Sync { path: &path });
        }
        if written.is_ok() && before == 0 {
            written = self.files.apply(Change::Sync { path: &self.dir });
        }
        match written {
            Ok(()) => {
                self.lengths.insert(name, before + bytes.len() as u64);
                Ok(())
            }
            Err(error) => {
                // Tried again before the next write; the first error is the one to report.
                let _ = self.restore_length(name);
                Err(failed("append to", &path)(error))
            }
        }
    }

    /// Truncates the bytes that a failed write left at the end of a growing file.
    fn restore_length(&self, name: &str) -> Result<(), RecordError> {
        let (path, length) = (self.dir.join(name), self.length(name));
        let found = match fs::metadata(&path) {
            Ok(facts) => facts.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(source) => return Err(failed("read", &path)(source)),
        };
        if found < length {
            let why = format!(
                "it has {found} bytes but {length} were written; another program has truncated it"
            );
            return Err(malformed(&path, &why));
        }
        if found == length {
            return Ok(());
        }
        let path = &path;
        self.files
            .apply(Change::Truncate { path, length })
            .and_then(|()| self.files.apply(Change::Sync { path }))
            .map_err(failed("remove the torn end of", path))
    }
}

fn to_json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, RecordError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| malformed(path, &error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn malformed(path: &Path, error: &dyn std::fmt::Display) -> RecordError {
    RecordError::Malformed {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |source| RecordError::File {
        action,
        path,
        source,
    }
}
