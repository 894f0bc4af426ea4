//! Writes a capture.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::columns::{
    COLUMNS, Column, GrowingFile, MappedFile, NO_NUMBER, NO_PLACE, NO_TIME, create, outcome_code,
};
use super::manifest::{ClassRow, Manifest, StoredFile};
use super::order::{self, Check};
use super::read::SentAs;
use super::sessions::{Session, SessionTable};
use super::texts::TextWriter;
use super::{CLASSES, MANIFEST, StoreError};
use crate::effect::Effect;
use crate::entry::{Outcome, UnixNs};

/// Bytes that are hashed between two looks at whether the import shall end.
const HASHED_AT_ONCE: usize = 4 << 20;
/// Statements of one capture.
const STATEMENTS_MAX: usize = u32::MAX as usize - 1;
/// Length of a value that is NULL, in `parameters.bin`.
pub(super) const NULL_LENGTH: u32 = u32::MAX;

/// What follows from a statement's text alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Analysis {
    /// Place of its class.
    pub class: u32,
    /// Place of its kind in `Kind::ALL`.
    pub kind: u8,
    /// Its effect on the transaction.
    pub effect: Effect,
    /// 1 + the place of the reason why it is not replayed, or 0.
    pub refused: u8,
}

/// A statement beside its text. Times are since 1970.
#[derive(Debug)]
pub struct Row<'a> {
    /// When it began.
    pub start: Option<UnixNs>,
    /// How long it took, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Its session.
    pub session: u32,
    /// Place of its default database.
    pub schema: Option<u32>,
    /// How it ended.
    pub outcome: Option<&'a Outcome>,
    /// Rows returned.
    pub rows_sent: Option<u64>,
    /// Rows changed.
    pub rows_affected: Option<u64>,
    /// Line of the log.
    pub line: u64,
    /// How it was sent.
    pub sent_as: SentAs,
    /// Values of a prepared statement; `None` is NULL.
    pub parameters: Option<&'a [Option<Cow<'a, [u8]>>]>,
}

/// A capture that is being written. It is removed when it is dropped before it is finished.
#[derive(Debug)]
pub struct CaptureWriter {
    columns: Vec<Option<GrowingFile>>,
    texts: TextWriter<Analysis>,
    parameters: GrowingFile,
    parameters_at: u64,
    sessions: SessionTable,
    statements: usize,
    earliest: Option<UnixNs>,
    dir: PartialDirectory,
}

impl CaptureWriter {
    /// Begins a capture that shall become the directory `target`, which must not exist.
    ///
    /// # Errors
    /// When it exists, or nothing can be written beside it.
    pub fn create(target: &Path) -> Result<Self, StoreError> {
        if target.symlink_metadata().is_ok() {
            return Err(StoreError::Exists(target.to_owned()));
        }
        let dir = PartialDirectory::create(target)?;
        let failed = |error| StoreError::file("write in", &dir.path)(error);
        let column = |(column, ..): &(Column, &str, usize)| match column {
            // Found when all statements are known.
            Column::Transaction => Ok(None),
            _ => GrowingFile::create(&column_path(&dir.path, *column)).map(Some),
        };
        let columns = COLUMNS.iter().map(column).collect::<io::Result<_>>();
        let columns = columns.map_err(failed)?;
        let texts = TextWriter::create(&dir.path.join("texts.bin")).map_err(failed)?;
        let parameters = GrowingFile::create(&dir.path.join("parameters.bin")).map_err(failed)?;
        let sessions = SessionTable::create(&dir.path.join("sessions.bin")).map_err(failed)?;
        Ok(CaptureWriter {
            columns,
            texts,
            parameters,
            parameters_at: 0,
            sessions,
            statements: 0,
            earliest: None,
            dir,
        })
    }

    /// Statements so far.
    #[must_use]
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// Earliest start so far.
    #[must_use]
    pub fn earliest(&self) -> Option<UnixNs> {
        self.earliest
    }

    /// Changes a session; the second argument is true where it is new. Its times are since 1970.
    ///
    /// # Errors
    /// When its record cannot be written.
    pub fn change_session(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Session, bool),
    ) -> io::Result<()> {
        self.sessions.change(number, change)
    }

    /// Adds a statement. `analyse` is not called where a recent text is equal.
    ///
    /// # Errors
    /// When it cannot be written, or the capture has too many.
    pub fn statement(
        &mut self,
        row: &Row<'_>,
        text: &[u8],
        analyse: impl FnOnce(&[u8]) -> Analysis,
    ) -> io::Result<Analysis> {
        if self.statements >= STATEMENTS_MAX {
            return Err(io::Error::other(
                "the log has more than four billion statements",
            ));
        }
        let (place, analysis) = match row.sent_as.is_request() {
            // Its text is none in SQL, and must not be taken for one that is equal.
            true => (self.texts.write(text)?, analyse(text)),
            false => self.texts.keep(text, analyse)?,
        };
        let parameters = match row.parameters {
            Some(values) => self.values(values)?,
            None => NO_NUMBER,
        };
        let start = row.start.map(|start| start.max(NO_TIME + 1));
        if let Some(start) = start {
            self.earliest = Some(self.earliest.map_or(start, |earliest| earliest.min(start)));
        }
        self.put(Column::Start, &start.unwrap_or(NO_TIME).to_le_bytes())?;
        let number = |value: Option<u64>| value.unwrap_or(NO_NUMBER).to_le_bytes();
        self.put(Column::Duration, &number(row.duration_ns))?;
        self.put(Column::Class, &analysis.class.to_le_bytes())?;
        self.put(Column::Session, &row.session.to_le_bytes())?;
        self.put(Column::TextOffset, &place.offset.to_le_bytes())?;
        self.put(Column::TextLength, &place.length.to_le_bytes())?;
        self.put(Column::Parameters, &parameters.to_le_bytes())?;
        let schema = row.schema.unwrap_or(NO_PLACE);
        self.put(Column::Schema, &schema.to_le_bytes())?;
        self.put(Column::Outcome, &outcome_code(row.outcome).to_le_bytes())?;
        self.put(Column::RowsSent, &number(row.rows_sent))?;
        self.put(Column::RowsAffected, &number(row.rows_affected))?;
        self.put(Column::Line, &row.line.to_le_bytes())?;
        self.put(Column::Kind, &[analysis.kind])?;
        self.put(Column::Effect, &[analysis.effect as u8])?;
        self.put(Column::Protocol, &[row.sent_as as u8])?;
        self.put(Column::Refused, &[analysis.refused])?;
        self.statements += 1;
        Ok(analysis)
    }

    fn put(&mut self, column: Column, bytes: &[u8]) -> io::Result<()> {
        match &mut self.columns[column as usize] {
            Some(file) => file.push(bytes),
            None => Ok(()),
        }
    }

    /// Writes values: their number, then each with its length. Returns the offset.
    fn values(&mut self, values: &[Option<Cow<'_, [u8]>>]) -> io::Result<u64> {
        let offset = self.parameters_at;
        let length = |count: usize| {
            let count = u32::try_from(count)
                .ok()
                .filter(|count| *count < NULL_LENGTH);
            count.ok_or_else(|| io::Error::other("a value is longer than 4 GiB"))
        };
        self.parameters.push(&length(values.len())?.to_le_bytes())?;
        self.parameters_at += 4;
        for value in values {
            let bytes = value.as_deref().unwrap_or_default();
            let length = match value {
                Some(bytes) => length(bytes.len())?,
                None => NULL_LENGTH,
            };
            self.parameters.push(&length.to_le_bytes())?;
            self.parameters.push(bytes)?;
            self.parameters_at += 4 + bytes.len() as u64;
        }
        Ok(offset)
    }

    /// Finishes the capture: orders its statements, finds transactions, and gives the directory its name. The manifest comes
    /// without counts of transactions and sessions and without files; the complete one is returned.
    ///
    /// # Errors
    /// When something cannot be written, or `check` says so.
    pub fn finish(
        self,
        mut manifest: Manifest,
        classes: &[ClassRow],
        is_mysql: bool,
        check: &mut Check<'_>,
    ) -> Result<Manifest, StoreError> {
        let CaptureWriter {
            columns,
            texts,
            parameters,
            mut sessions,
            statements,
            earliest,
            dir,
            ..
        } = self;
        let path = dir.path.clone();
        let arrange = || -> io::Result<()> {
            for column in columns.into_iter().flatten() {
                column.finish()?;
            }
            texts.finish()?;
            parameters.finish()?;
            sessions.trim()?;
            let base = earliest.unwrap_or_default();
            order::shift_starts(&path, base, check)?;
            let found = order::arrange(&path, statements, &mut sessions, base, is_mysql, check)?;
            let counts = &mut manifest.counts;
            counts.transactions = found.transactions.all;
            counts.explicit_transactions = found.transactions.explicit;
            counts.torn_transactions = found.transactions.torn;
            let last = found.last_moved_end.and_then(|end| u64::try_from(end).ok());
            manifest.span.length_ns = manifest.span.length_ns.max(last.unwrap_or(0));
            for number in 0..sessions.count() {
                let Some(session) = sessions.get(number) else {
                    continue;
                };
                counts.sessions += 1;
                counts.whole_sessions += u64::from(session.is_whole);
                counts.ended_sessions += u64::from(session.has_ended);
            }
            let mut rows = GrowingFile::create(&path.join(CLASSES))?;
            for class in classes {
                rows.push(serde_json::to_string(class)?.as_bytes())?;
                rows.push(b"\n")?;
            }
            rows.finish()
        };
        arrange().map_err(StoreError::file("write in", &path))?;
        drop(sessions);
        manifest.files = stored_files(&path, check)?;
        let failed = || StoreError::file("write", &path);
        let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from);
        let text = text.map_err(failed())?;
        let mut file = create(&path.join(MANIFEST)).map_err(failed())?;
        file.write_all(&text)
            .and_then(|()| file.sync_all())
            .map_err(failed())?;
        dir.keep()?;
        Ok(manifest)
    }
}

/// The file of a column.
pub(super) fn column_path(dir: &Path, column: Column) -> PathBuf {
    dir.join(COLUMNS[column as usize].1)
}

/// Syncs all files of the directory; their lengths and hashes, by name.
fn stored_files(dir: &Path, check: &mut Check<'_>) -> Result<Vec<StoredFile>, StoreError> {
    let failed = || StoreError::file("read", dir);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed())? {
        names.push(entry.map_err(failed())?.file_name());
    }
    names.sort();
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let path = dir.join(&name);
        let failed = || StoreError::file("write", &path);
        let (bytes, blake3) = digest(&path, check).map_err(failed())?;
        File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(failed())?;
        files.push(StoredFile {
            name: name.to_string_lossy().into_owned(),
            bytes,
            blake3,
        });
    }
    Ok(files)
}

/// Length and hash of a file.
pub(super) fn digest(path: &Path, check: &mut Check<'_>) -> io::Result<(u64, String)> {
    let file = MappedFile::open(path)?;
    let mut hasher = blake3::Hasher::new();
    for chunk in file.bytes().chunks(HASHED_AT_ONCE) {
        check()?;
        hasher.update(chunk);
    }
    let bytes = file.bytes().len() as u64;
    Ok((bytes, hasher.finalize().to_hex().to_string()))
}

/// A directory beside its target that is removed unless it is kept.
#[derive(Debug)]
struct PartialDirectory {
    path: PathBuf,
    target: PathBuf,
    is_kept: bool,
}

impl PartialDirectory {
    fn create(target: &Path) -> Result<Self, StoreError> {
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no last name");
        let name = target.file_name().ok_or_else(no_name);
        let name = name.map_err(StoreError::file("create", target))?;
        for attempt in 0_u32.. {
            let mut partial = std::ffi::OsString::from(".");
            partial.push(name);
            partial.push(format!(".partial-{}-{attempt}", std::process::id()));
            let path = target.with_file_name(partial);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    return Ok(PartialDirectory {
                        path,
                        target: target.to_owned(),
                        is_kept: false,
                    });
                }
                // Of a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {}
                Err(error) => return Err(StoreError::file("create", &path)(error)),
            }
        }
        Err(StoreError::Exists(target.to_owned()))
    }

    /// Gives the directory the name of its target.
    fn keep(mut self) -> Result<(), StoreError> {
        // A rename would replace an empty directory.
        if self.target.symlink_metadata().is_ok() {
            return Err(StoreError::Exists(self.target.clone()));
        }
        let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        sync(&self.path).map_err(StoreError::file("sync", &self.path))?;
        fs::rename(&self.path, &self.target).map_err(StoreError::file("create", &self.target))?;
        self.is_kept = true;
        let parent = self.target.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        sync(parent).map_err(StoreError::file("sync", parent))
    }
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            // The error that led here is the one to report.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::recognise::recognise;
    use crate::store::Capture;

    fn manifest(statements: u64) -> Manifest {
        let log = b"# Time: 2026-11-28T00:15:02.782987Z\n";
        let recognised = recognise(log, None, false).unwrap();
        let mut manifest = crate::import::manifest_for_tests(&recognised);
        manifest.counts.statements = statements;
        manifest
    }

    fn row(session: u32) -> Row<'static> {
        Row {
            start: None,
            duration_ns: None,
            session,
            schema: None,
            outcome: None,
            rows_sent: None,
            rows_affected: None,
            line: 1,
            sent_as: SentAs::Prepared,
            parameters: None,
        }
    }

    fn analysis(_: &[u8]) -> Analysis {
        Analysis {
            class: 0,
            kind: 0,
            effect: Effect::Runs,
            refused: 0,
        }
    }

    #[test]
    fn values_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.cap");
        let mut writer = CaptureWriter::create(&target).unwrap();
        let lists: [&[Option<&[u8]>]; 3] =
            [&[Some(b"2"), None, Some(b"")], &[], &[Some(b"\xff\0")]];
        for (place, list) in lists.iter().enumerate() {
            let values: Vec<Option<Cow<'_, [u8]>>> =
                list.iter().map(|value| value.map(Cow::Borrowed)).collect();
            let row = Row {
                parameters: Some(&values),
                ..row(place as u32)
            };
            writer.change_session(row.session, |_, _| {}).unwrap();
            writer.statement(&row, b"select $1", analysis).unwrap();
        }
        writer.statement(&row(0), b"select 1", analysis).unwrap();
        writer
            .finish(manifest(4), &[], false, &mut || Ok(()))
            .unwrap();
        let capture = Capture::open(&target).unwrap();
        for (place, list) in lists.iter().enumerate() {
            let values: Vec<Option<&[u8]>> = capture.parameters(place).collect();
            assert_eq!(values, *list);
        }
        assert_eq!(capture.parameters(3).count(), 0);
        assert_eq!(capture.parameters(4).count(), 0);
        // One text for three statements.
        assert_eq!(
            std::fs::metadata(target.join("texts.bin")).unwrap().len(),
            17
        );
    }

    #[test]
    fn statements_of_a_session_keep_their_order_and_starts_do_not_decrease() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.cap");
        let mut writer = CaptureWriter::create(&target).unwrap();
        writer.change_session(0, |_, _| {}).unwrap();
        // As in a slow log whose ends are whole seconds.
        for (start, text) in [
            (Some(50), "first"),
            (None, "second"),
            (Some(20), "third"),
            (Some(20), "fourth"),
            (None, "fifth"),
        ] {
            let row = Row {
                start,
                duration_ns: Some(100),
                ..row(0)
            };
            writer.statement(&row, text.as_bytes(), analysis).unwrap();
        }
        let manifest = writer
            .finish(manifest(5), &[], false, &mut || Ok(()))
            .unwrap();
        let capture = Capture::open(&target).unwrap();
        let session = capture.session(0).unwrap();
        let texts = capture.ordered(session.first, session.count);
        let texts: Vec<&[u8]> = texts.filter_map(|index| capture.text(index)).collect();
        let expected = ["first", "second", "third", "fourth", "fifth"];
        assert_eq!(texts, expected.map(str::as_bytes));
        let starts: Vec<Option<i64>> = (0..5).map(|index| capture.start(index)).collect();
        assert_eq!(starts, [Some(30), None, Some(30), Some(30), None]);
        assert_eq!((session.last, manifest.span.length_ns), (Some(130), 130));
    }

    #[test]
    fn a_long_session_is_arranged_in_linear_time() {
        const STATEMENTS: u32 = 100_000;
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.cap");
        let mut writer = CaptureWriter::create(&target).unwrap();
        writer.change_session(0, |_, _| {}).unwrap();
        for _ in 0..STATEMENTS {
            writer.statement(&row(0), b"select 1", analysis).unwrap();
        }
        let manifest = manifest(u64::from(STATEMENTS));
        writer.finish(manifest, &[], false, &mut || Ok(())).unwrap();
        let capture = Capture::open(&target).unwrap();
        // Each statement is a transaction of its own.
        for place in 0..STATEMENTS {
            let statement = capture.statement(place as usize).unwrap();
            assert_eq!(statement.transaction, Some(place));
        }
    }
}
