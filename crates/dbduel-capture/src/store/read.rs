//! Opens a capture and reads it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::columns::{
    COLUMNS, Column, MappedFile, NO_NUMBER, NO_PLACE, NO_TIME, is_error_code, number,
    outcome_of_code,
};
use super::manifest::{ClassRow, Manifest, StoredFile};
use super::sessions::{SESSION_BYTES, TRANSACTION_BYTES};
pub use super::sessions::{Session, Transaction, TransactionBegin, TransactionEnd};
use super::write::{NULL_LENGTH, digest};
use super::{CLASSES, FORMAT, MANIFEST, StoreError};
use crate::effect::Effect;
use crate::entry::Outcome;
use crate::logs::LogProduct;

/// Largest manifest that is read, bytes.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// Largest file of classes that is read, bytes.
const CLASSES_BYTES_MAX: u64 = 512 << 20;

/// Bytes of a page of memory, or a part of one.
const PAGE_BYTES: usize = 4096;

/// How a statement was sent. The number is its code in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SentAs {
    /// As text.
    Text = 0,
    /// As an execution of a prepared statement, whose values are in `parameters.bin`.
    Prepared = 1,
    /// As such an execution, whose values are in the text.
    PreparedInline = 2,
    /// As a request for another default database, whose name is the text.
    InitDb = 3,
    /// As a request for another user, who is the text.
    ChangeUser = 4,
    /// As a request to reset the session.
    Reset = 5,
}

impl SentAs {
    const ALL: [Self; 6] = [
        Self::Text,
        Self::Prepared,
        Self::PreparedInline,
        Self::InitDb,
        Self::ChangeUser,
        Self::Reset,
    ];

    /// The way with this code, [`SentAs::Text`] for an unknown one.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        let known = Self::ALL.get(usize::from(code)).copied();
        known.unwrap_or(Self::Text)
    }

    /// True for a request that is no statement.
    #[must_use]
    pub fn is_request(self) -> bool {
        matches!(self, SentAs::InitDb | SentAs::ChangeUser | SentAs::Reset)
    }
}

/// A statement of a capture. Times are nanoseconds since the capture's start.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStatement<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// When it began.
    pub start: Option<i64>,
    /// How long it took, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Place of its class.
    pub class: u32,
    /// Its session.
    pub session: u32,
    /// Its transaction; `None` for a statement outside of any.
    pub transaction: Option<u32>,
    /// How it was sent.
    pub sent_as: SentAs,
    /// Place of its default database in the manifest.
    pub schema: Option<u32>,
    /// How it ended, where the log says so.
    pub outcome: Option<Outcome>,
    /// Rows returned.
    pub rows_sent: Option<u64>,
    /// Rows changed.
    pub rows_affected: Option<u64>,
    /// Line of the log.
    pub line: u64,
    /// Effect on the transaction.
    pub effect: Effect,
    /// Place in the manifest of the reason why it is not replayed.
    pub refused: Option<u8>,
}

/// A capture, opened for reading.
#[derive(Debug)]
pub struct Capture {
    dir: PathBuf,
    manifest: Manifest,
    classes: Vec<ClassRow>,
    columns: Vec<MappedFile>,
    order: MappedFile,
    sessions: MappedFile,
    transactions: MappedFile,
    texts: MappedFile,
    parameters: MappedFile,
    statements: usize,
}

impl Capture {
    /// Opens a capture: reads the manifest and the classes, maps the columns, and compares their lengths.
    ///
    /// # Errors
    /// When it is no capture, of another version, or incomplete.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let (manifest, _) = read_manifest(dir)?;
        let unfit = |why: String| StoreError::Unfit {
            path: dir.to_owned(),
            why,
        };
        let map = |name: &str| {
            let path = dir.join(name);
            let file = MappedFile::open(&path).map_err(StoreError::file("open", &path))?;
            let stored = manifest.files.iter().find(|file| file.name == name);
            let bytes = stored.map(|file| file.bytes);
            match bytes == Some(file.bytes().len() as u64) {
                true => Ok(file),
                false => Err(unfit(format!(
                    "`{name}` has {} bytes, and the manifest says {}",
                    file.bytes().len(),
                    bytes.map_or_else(|| "nothing of it".to_owned(), |bytes| bytes.to_string())
                ))),
            }
        };
        let statements = usize::try_from(manifest.counts.statements)
            .ok()
            .filter(|count| *count < NO_PLACE as usize);
        let statements = statements.ok_or_else(|| unfit("it has too many statements".into()))?;
        let rows = |name: &str, count: u64, width: usize| {
            let file = map(name)?;
            let wanted = count.checked_mul(width as u64);
            match wanted == Some(file.bytes().len() as u64) {
                true => Ok(file),
                false => Err(unfit(format!("`{name}` does not have {count} rows"))),
            }
        };
        let columns = COLUMNS
            .iter()
            .map(|(_, name, width)| rows(name, statements as u64, *width));
        let sessions = map("sessions.bin")?;
        if !sessions.bytes().len().is_multiple_of(SESSION_BYTES) {
            return Err(unfit("`sessions.bin` ends within a session".into()));
        }
        let transactions = manifest.counts.transactions;
        Ok(Capture {
            columns: columns.collect::<Result<_, _>>()?,
            order: rows("order.u32", statements as u64, 4)?,
            sessions,
            transactions: rows("transactions.bin", transactions, TRANSACTION_BYTES)?,
            texts: map("texts.bin")?,
            parameters: map("parameters.bin")?,
            classes: read_classes(dir, manifest.counts.classes)?,
            dir: dir.to_owned(),
            statements,
            manifest,
        })
    }

    /// Compares all files with their hashes in the manifest. `check` is called now and then; its error ends the comparison.
    ///
    /// # Errors
    /// The first file that differs or cannot be read.
    pub fn verify(&self, check: &mut dyn FnMut() -> io::Result<()>) -> Result<(), StoreError> {
        for StoredFile {
            name,
            bytes,
            blake3,
        } in &self.manifest.files
        {
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(self.unfit(format!("the manifest names the file `{name}`")));
            }
            let path = self.dir.join(name);
            let found = digest(&path, check).map_err(StoreError::file("read", &path))?;
            if found != (*bytes, blake3.clone()) {
                return Err(self.unfit(format!("`{name}` was changed after the import")));
            }
        }
        Ok(())
    }

    fn unfit(&self, why: String) -> StoreError {
        StoreError::Unfit {
            path: self.dir.clone(),
            why,
        }
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The classes, in the order in which they were found.
    #[must_use]
    pub fn classes(&self) -> &[ClassRow] {
        &self.classes
    }

    /// Number of statements.
    #[must_use]
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// Number of places of sessions; some may be without one.
    #[must_use]
    pub fn session_places(&self) -> usize {
        self.sessions.bytes().len() / SESSION_BYTES
    }

    /// Syntax of the statements.
    #[must_use]
    pub fn syntax(&self) -> dbduel_sql::Syntax {
        match self.manifest.log.product {
            LogProduct::Postgresql => dbduel_sql::Syntax::POSTGRESQL,
            LogProduct::Mysql | LogProduct::Mariadb => dbduel_sql::Syntax::MYSQL,
        }
    }

    /// The statement at a place of the columns.
    #[must_use]
    pub fn statement(&self, index: usize) -> Option<StoredStatement<'_>> {
        let u8 = |column: Column| self.columns[column as usize].u8(index);
        let u32 = |column: Column| self.columns[column as usize].u32(index);
        let u64 = |column: Column| self.columns[column as usize].u64(index);
        let known = |value: u64| Some(value).filter(|value| *value != NO_NUMBER);
        let place = |value: u32| Some(value).filter(|value| *value != NO_PLACE);
        Some(StoredStatement {
            text: self.text(index)?,
            start: self.start(index),
            duration_ns: self.duration_ns(index),
            class: u32(Column::Class)?,
            session: u32(Column::Session)?,
            transaction: place(u32(Column::Transaction)?),
            sent_as: SentAs::of_code(u8(Column::Protocol)?),
            schema: place(u32(Column::Schema)?),
            outcome: outcome_of_code(u32(Column::Outcome)?),
            rows_sent: known(u64(Column::RowsSent)?),
            rows_affected: known(u64(Column::RowsAffected)?),
            line: u64(Column::Line)?,
            effect: Effect::of_code(u8(Column::Effect)?),
            refused: u8(Column::Refused)?.checked_sub(1),
        })
    }

    /// Start of a statement, nanoseconds since the capture's start.
    #[must_use]
    pub fn start(&self, index: usize) -> Option<i64> {
        let start = self.columns[Column::Start as usize].i64(index);
        start.filter(|start| *start != NO_TIME)
    }

    /// Duration of a statement, nanoseconds.
    #[must_use]
    pub fn duration_ns(&self, index: usize) -> Option<u64> {
        let duration = self.columns[Column::Duration as usize].u64(index);
        duration.filter(|duration| *duration != NO_NUMBER)
    }

    /// Place of the class of a statement.
    #[must_use]
    pub fn class_place(&self, index: usize) -> Option<u32> {
        self.columns[Column::Class as usize].u32(index)
    }

    /// Place of the kind of a statement in `Kind::ALL`.
    #[must_use]
    pub fn kind_place(&self, index: usize) -> Option<usize> {
        self.columns[Column::Kind as usize]
            .u8(index)
            .map(usize::from)
    }

    /// How a statement was sent.
    #[must_use]
    pub fn sent_as(&self, index: usize) -> Option<SentAs> {
        self.columns[Column::Protocol as usize]
            .u8(index)
            .map(SentAs::of_code)
    }

    /// Place of a statement's default database in the manifest; `None` where it is unknown.
    #[must_use]
    pub fn schema_place(&self, index: usize) -> Option<u32> {
        let place = self.columns[Column::Schema as usize].u32(index);
        place.filter(|place| *place != NO_PLACE)
    }

    /// True for a statement that failed, where the log says so.
    #[must_use]
    pub fn has_failed(&self, index: usize) -> bool {
        let outcome = self.columns[Column::Outcome as usize].u32(index);
        outcome.is_some_and(is_error_code)
    }

    /// Text of a statement.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&[u8]> {
        let offset = self.columns[Column::TextOffset as usize].u64(index)?;
        let length = self.columns[Column::TextLength as usize].u32(index)?;
        slice(self.texts.bytes(), offset, length)
    }

    /// Values of a prepared statement in order, `None` for NULL; nothing where it has none or they are damaged.
    pub fn parameters(&self, index: usize) -> impl Iterator<Item = Option<&[u8]>> {
        let bytes = self.parameters.bytes();
        let offset = self.columns[Column::Parameters as usize].u64(index);
        let u32_at = |at: u64| slice(bytes, at, 4).and_then(|four| number(four, 0));
        let offset = offset.filter(|offset| *offset != NO_NUMBER);
        let count = offset.and_then(u32_at).map_or(0, u32::from_le_bytes);
        let mut at = offset.unwrap_or_default().saturating_add(4);
        (0..count).map_while(move |_| {
            let length = u32::from_le_bytes(u32_at(at)?);
            at = at.checked_add(4)?;
            if length == NULL_LENGTH {
                return Some(None);
            }
            let value = slice(bytes, at, length)?;
            at += u64::from(length);
            Some(Some(value))
        })
    }

    /// A session by its number.
    #[must_use]
    pub fn session(&self, number: u32) -> Option<Session> {
        let start = (number as usize).checked_mul(SESSION_BYTES)?;
        let end = start.checked_add(SESSION_BYTES)?;
        Session::read(self.sessions.bytes().get(start..end)?)
    }

    /// All sessions with their numbers.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, Session)> {
        let numbers = 0..self.session_places() as u32;
        numbers.filter_map(|number| Some((number, self.session(number)?)))
    }

    /// A transaction by its place.
    #[must_use]
    pub fn transaction(&self, place: u32) -> Option<Transaction> {
        let start = (place as usize).checked_mul(TRANSACTION_BYTES)?;
        let end = start.checked_add(TRANSACTION_BYTES)?;
        Transaction::read(self.transactions.bytes().get(start..end)?)
    }

    /// Reads one byte of each page of the texts and values, so that reads of a load find them in memory.
    pub fn read_ahead(&self) {
        for file in [&self.texts, &self.parameters] {
            let pages = file.bytes().iter().step_by(PAGE_BYTES);
            std::hint::black_box(pages.fold(0_u8, |sum, byte| sum ^ byte));
        }
    }

    /// The statements at places of the order, such as those of a session or a transaction.
    pub fn ordered(&self, first: u32, count: u32) -> impl Iterator<Item = usize> {
        let places = first as usize..(first as usize).saturating_add(count as usize);
        places.map_while(|place| {
            let statement = self.order.u32(place)? as usize;
            (statement < self.statements).then_some(statement)
        })
    }
}

fn slice(bytes: &[u8], offset: u64, length: u32) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(length as usize)?)
}

/// The manifest of a capture, and the BLAKE3 hash of its file, which has the hashes of all others, hexadecimal.
///
/// # Errors
/// When the directory is no capture, or one of another version.
pub fn read_manifest(dir: &Path) -> Result<(Manifest, String), StoreError> {
    let path = dir.join(MANIFEST);
    let text = match regular(&path).map(|file| file.take(MANIFEST_BYTES_MAX)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreError::NoCapture(dir.to_owned()));
        }
        Err(error) => Err(error),
        Ok(mut file) => {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map(|_| text)
        }
    };
    let text = text.map_err(StoreError::file("read", &path))?;
    let unfit = |why: String| StoreError::Unfit {
        path: dir.to_owned(),
        why,
    };
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    let version: Result<Version, _> = serde_json::from_slice(&text);
    let damaged = |error: serde_json::Error| unfit(format!("its `{MANIFEST}` is damaged: {error}"));
    let version = version.map_err(damaged)?.format;
    if version != FORMAT {
        return Err(unfit(format!(
            "it has format {version}, and this dbduel reads format {FORMAT}; import the log again"
        )));
    }
    let manifest = serde_json::from_slice(&text).map_err(damaged)?;
    Ok((manifest, blake3::hash(&text).to_hex().to_string()))
}

fn read_classes(dir: &Path, count: u64) -> Result<Vec<ClassRow>, StoreError> {
    let path = dir.join(CLASSES);
    let file = regular(&path).map_err(StoreError::file("open", &path))?;
    let mut classes = Vec::new();
    for line in BufReader::new(file.take(CLASSES_BYTES_MAX)).split(b'\n') {
        let line = line.map_err(StoreError::file("read", &path))?;
        let class = serde_json::from_slice(&line).map_err(|error| StoreError::Unfit {
            path: dir.to_owned(),
            why: format!("line {} of `{CLASSES}`: {error}", classes.len() + 1),
        })?;
        classes.push(class);
    }
    match classes.len() as u64 == count {
        true => Ok(classes),
        false => Err(StoreError::Unfit {
            path: dir.to_owned(),
            why: format!("`{CLASSES}` does not have {count} classes"),
        }),
    }
}

/// A regular file that is opened for reading; links are followed.
fn regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}
