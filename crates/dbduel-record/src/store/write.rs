//! Writing: append and sync, or write beside and rename. Nothing else touches the record.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::{
    COMMITS, ERRORS, EVENTS, EXPERIMENT, HOST, LATENCY, PLAN, READINGS, RecordError, SECONDS,
    SLICES, TICKS, contender_dir,
};
use crate::commits::CommitRow;
use crate::event::{Event, SliceId, Stamped};
use crate::facts::Host;
use crate::latency::{self, Interval};
use crate::manifest::{self, MANIFEST};
use crate::plan::Plan;
use crate::rows::{ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use crate::whole::{remove_half_written, write_whole};

/// How often a lock is tried that others hold for a moment: to see whether the record is free, or to write its reports.
const LOCK_LOOKS: u32 = 100;
/// Between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Permission of a record's files: whatever the process's mask allows.
const MODE: u32 = 0o666;

/// Everything that one slice adds to the record.
#[derive(Debug, Clone, Default)]
pub struct SliceResult {
    /// One row per class, [`crate::rows::ALL_CLASSES`] among them.
    pub classes: Vec<SliceRow>,
    /// The series inside the slice.
    pub ticks: Vec<TickRow>,
    /// What the samplers read.
    pub readings: Vec<ReadingRow>,
    /// The same second by second, for the samplers that are cheap enough.
    pub seconds: Vec<SecondRow>,
    /// Errors by code.
    pub errors: Vec<ErrorRow>,
    /// Histograms by class.
    pub latencies: Vec<Interval>,
}

/// A record that nobody writes for as long as this lives. Several may hold it at a time; a writer waits for all of them
/// for a moment only.
#[derive(Debug)]
pub struct Held {
    dir: PathBuf,
    /// Has the lock; a record without a journal was never written to.
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
    journal: File,
}

impl RecordWriter {
    /// Makes a new record in `dir`, which must not exist or be empty, with its plan.
    ///
    /// # Errors
    /// When the directory holds something, or a file cannot be written.
    pub fn create(
        dir: &Path,
        experiment: &[u8],
        plan: &Plan,
        host: &Host,
        now_ms: u64,
    ) -> Result<Self, RecordError> {
        fs::create_dir_all(dir).map_err(failed("create", dir))?;
        let mut entries = fs::read_dir(dir).map_err(failed("list", dir))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty(dir.to_owned()));
        }
        let writer = Self::open(dir)?;
        writer.replace(Path::new(EXPERIMENT), experiment)?;
        writer.replace_json(Path::new(HOST), host)?;
        append(&dir.join(LATENCY), latency::header(now_ms).as_bytes())?;
        for contender in &plan.contenders {
            let path = contender_dir(dir, &contender.name);
            fs::create_dir_all(&path).map_err(failed("create", &path))?;
        }
        // Last, because a directory with a plan is a record.
        writer.replace_json(Path::new(PLAN), plan)?;
        Ok(writer)
    }

    /// Opens an existing record to go on with it. Torn last lines are completed with a newline, so
    /// that what is appended starts on a line of its own, and files that a killed writer left half
    /// written are removed.
    ///
    /// # Errors
    /// When another process writes this record, or a file cannot be opened, written or removed.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let path = dir.join(EVENTS);
        let journal = appending(&path)?;
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
        // Whoever began them is gone, or would hold the lock.
        remove_half_written(dir).map_err(failed("clear half-written files of", dir))?;
        for name in [
            EVENTS, SLICES, TICKS, READINGS, SECONDS, ERRORS, LATENCY, COMMITS,
        ] {
            end_torn_line(&dir.join(name))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            journal,
        })
    }

    /// Makes sure that nobody writes the record in `dir` at this moment. Changes nothing.
    ///
    /// # Errors
    /// When another process writes it, or the journal cannot be looked at.
    pub fn is_free(dir: &Path) -> Result<(), RecordError> {
        Self::hold(dir).map(drop)
    }

    /// Keeps writers away from the record in `dir`, so that what follows from it can be written beside its data. Changes
    /// nothing.
    ///
    /// # Errors
    /// When another process writes it, or the journal cannot be looked at.
    pub fn hold(dir: &Path) -> Result<Held, RecordError> {
        let path = dir.join(EVENTS);
        let held = |journal| Held {
            dir: dir.to_owned(),
            _journal: journal,
        };
        let journal = match File::open(&path) {
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

    /// Appends an event. After this returns, no crash can lose it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn event(&mut self, at_ms: u64, what: Event) -> Result<(), RecordError> {
        let path = self.dir.join(EVENTS);
        let mut line = serde_json::to_string(&Stamped { at_ms, what }).map_err(|error| {
            RecordError::Malformed {
                path: path.clone(),
                why: error.to_string(),
            }
        })?;
        assert!(!line.contains('\n'), "an event is one line");
        line.push('\n');
        let written = self
            .journal
            .write_all(line.as_bytes())
            .and_then(|()| self.journal.sync_data());
        written.map_err(failed("append to", &path))
    }

    /// Appends a finished slice to the tables and then says so in the journal.
    ///
    /// # Errors
    /// When a file cannot be written; the slice then does not count.
    pub fn slice(
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
        } = result;
        self.rows(SLICES, classes)?;
        self.rows(TICKS, ticks)?;
        self.rows(READINGS, readings)?;
        self.rows(SECONDS, seconds)?;
        self.rows(ERRORS, errors)?;
        let lines: String = latencies.iter().map(latency::line).collect();
        append(&self.dir.join(LATENCY), lines.as_bytes())?;
        self.event(at_ms, Event::SliceFinished { slice })
    }

    /// Appends to the durability log. After this returns, no crash can lose it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn commits(&self, rows: &[CommitRow]) -> Result<(), RecordError> {
        self.rows(COMMITS, rows)
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
        let folder = path.parent().unwrap_or(&self.dir);
        fs::create_dir_all(folder).map_err(failed("create", folder))?;
        write_whole(&path, bytes, MODE).map_err(failed("write", &path))
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

    /// Adds a line to the manifest: digests of everything that the record holds now. Returns the
    /// digest of the manifest, which a report cites.
    ///
    /// # Errors
    /// When a file cannot be read or the manifest cannot be written.
    pub fn seal(&self, at_ms: u64, dbduel: &str) -> Result<String, RecordError> {
        let manifest = manifest::extended(&self.dir, at_ms, dbduel)?;
        self.replace(Path::new(MANIFEST), manifest.as_bytes())?;
        Ok(manifest::digest(manifest.as_bytes()))
    }

    /// Writes or replaces a file of the record, for example a report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn replace(&self, name: &Path, bytes: &[u8]) -> Result<(), RecordError> {
        let path = self.dir.join(name);
        write_whole(&path, bytes, MODE).map_err(failed("write", &path))
    }

    fn replace_json<T: Serialize>(&self, name: &Path, value: &T) -> Result<(), RecordError> {
        let bytes = to_json(&self.dir.join(name), value)?;
        self.replace(name, &bytes)
    }

    fn rows<T: Serialize>(&self, name: &str, rows: &[T]) -> Result<(), RecordError> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.dir.join(name);
        let is_new = fs::metadata(&path).map_or(true, |metadata| metadata.len() == 0);
        let mut table = csv::WriterBuilder::new()
            .has_headers(is_new)
            .from_writer(Vec::new());
        for row in rows {
            table
                .serialize(row)
                .map_err(|error| malformed(&path, &error))?;
        }
        let bytes = table
            .into_inner()
            .map_err(|error| malformed(&path, &error))?;
        append(&path, &bytes)
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

fn appending(path: &Path) -> Result<File, RecordError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(failed("open", path))
}

fn append(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut file = appending(path)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_data())
        .map_err(failed("append to", path))
}

fn end_torn_line(path: &Path) -> Result<(), RecordError> {
    match fs::read(path) {
        Ok(bytes) if !bytes.is_empty() && !bytes.ends_with(b"\n") => append(path, b"\n"),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("read", path)(error)),
    }
}
