//! Imports a log: recognises it, reads it, and writes a capture.

mod classes;
mod importer;
mod names;

use std::cell::RefCell;
use std::io::{self, BufReader};
use std::path::PathBuf;

pub(crate) use classes::{Classes, Counted};
pub use classes::{FURTHER_CLASSES, Permission};
use importer::Importer;

use crate::logs::pieces::{LogInput, Piece, total_bytes};
use crate::logs::recognise::{HEAD_BYTES, Recognised, Unrecognised, recognise};
use crate::logs::{LogOptions, LogProduct, ReadError};
use crate::store::manifest::{
    Counts, LogDescription, LogFile, Manifest, Span, UserOptions, escaped,
};
use crate::store::write::CaptureWriter;
use crate::store::{FORMAT, StoreError};

/// Read from the log at once, bytes.
const BUFFER: usize = 1 << 20;

/// What to import, and what the user says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The pieces of one log, in order; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// Directory of the capture, which must not exist.
    pub target: PathBuf,
    /// PostgreSQL's `log_line_prefix`.
    pub prefix: Option<Vec<u8>>,
    /// Seconds east of UTC of times without a zone.
    pub timezone_offset_s: Option<i32>,
    /// Default database of sessions whose log does not say it.
    pub schema: Option<Vec<u8>>,
    /// Product, where the log does not say it.
    pub product: Option<LogProduct>,
    /// Where the log comes from, if the files are none of the user's.
    pub source: Option<LogSource>,
}

/// A running server whose log table was written to a file for the import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    /// Stands for the file in the capture.
    pub name: String,
    /// Version of the server.
    pub version: String,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStage {
    /// The log is read.
    Reading {
        /// Bytes of its files so far.
        bytes: u64,
        /// All of them, where that is known.
        total: Option<u64>,
    },
    /// The statements are grouped by session, and transactions found.
    Ordering,
}

/// Why a log was not imported. Nothing of the capture remains.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Its format is not recognised.
    #[error(transparent)]
    Unrecognised(#[from] Unrecognised),
    /// It cannot be read.
    #[error(transparent)]
    Log(#[from] io::Error),
    /// It is not of the format that it begins with.
    #[error("`{position}`: this is not a {format} of {product}: {why}")]
    Unfit {
        /// File and line.
        position: String,
        /// The format.
        format: &'static str,
        /// The product.
        product: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It has no statement.
    #[error("the log has no statements ({lines} lines, {unreadable} of them unreadable{first})")]
    NoStatements {
        /// Its lines.
        lines: u64,
        /// Those that were not understood.
        unreadable: u64,
        /// Position of the first of them and why, if any.
        first: String,
    },
    /// The capture cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportError {
    /// True where the command line or the log is wrong, not the environment.
    #[must_use]
    pub fn is_of_input(&self) -> bool {
        match self {
            ImportError::Unrecognised(_) | ImportError::Unfit { .. } => true,
            ImportError::NoStatements { .. } => true,
            ImportError::Log(error) => error.kind() == io::ErrorKind::NotFound,
            ImportError::Store(error) => error.is_of_place(),
        }
    }
}

/// Imports a log into a new capture and returns its manifest. `observe` is called at least once per megabyte; its error stops the
/// import.
///
/// # Errors
/// See [`ImportError`].
pub fn import(
    options: &ImportOptions,
    observe: &mut dyn FnMut(ImportStage) -> io::Result<()>,
) -> Result<Manifest, ImportError> {
    let total = total_bytes(&options.logs);
    let observe = RefCell::new(observe);
    let mut reading = |bytes| (observe.borrow_mut())(ImportStage::Reading { bytes, total });
    let mut input = LogInput::new(&options.logs, &mut reading);
    let has_prefix = options.prefix.is_some();
    let recognised = recognise(input.peek(HEAD_BYTES)?, options.product, has_prefix)?;
    let writer = CaptureWriter::create(&options.target)?;
    let is_mysql = recognised.product != LogProduct::Postgresql;
    let mut importer = Importer::new(writer, is_mysql, options.schema.as_deref());
    let log_options = LogOptions {
        timezone_offset_s: options.timezone_offset_s,
        line_prefix: options.prefix.clone(),
        product: Some(recognised.product).filter(|_| !recognised.is_product_assumed),
    };
    let mut buffered = BufReader::with_capacity(BUFFER, &mut input);
    let read = recognised
        .format
        .read(&mut buffered, &log_options, &mut importer);
    let pieces = log_files(input.pieces(), options.source.as_ref());
    let mut manifest = manifest_of(options, &recognised, pieces);
    manifest.log.bytes = input.bytes_read();
    manifest.log.lines = input.lines_read();
    match read {
        Ok(()) => {}
        Err(ReadError::Io(error)) => return Err(ImportError::Log(error)),
        Err(ReadError::Unfit { line, why }) => {
            return Err(ImportError::Unfit {
                position: manifest.position(line),
                format: recognised.format.name(),
                product: recognised.product.name(),
                why,
            });
        }
    }
    let mut check = || (observe.borrow_mut())(ImportStage::Ordering);
    importer.finish(manifest, &mut check)
}

fn log_files(pieces: &[Piece], source: Option<&LogSource>) -> Vec<LogFile> {
    let files = pieces.iter().map(|piece| LogFile {
        path: match source {
            Some(source) => source.name.clone(),
            None => piece.path.to_string_lossy().into_owned(),
        },
        first_line: piece.first_line,
    });
    files.collect()
}

/// The manifest without what the statements add.
fn manifest_of(options: &ImportOptions, recognised: &Recognised, files: Vec<LogFile>) -> Manifest {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| escaped(bytes, true));
    Manifest {
        format: FORMAT,
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        log: LogDescription {
            product: recognised.product,
            is_product_assumed: recognised.is_product_assumed,
            version: match &options.source {
                Some(source) => Some(source.version.clone()),
                None => recognised.version.clone(),
            },
            format: recognised.format,
            files,
            bytes: 0,
            lines: 0,
        },
        options: UserOptions {
            prefix: text(&options.prefix),
            timezone_offset_s: options.timezone_offset_s,
            schema: text(&options.schema),
        },
        span: Span {
            names_zone: recognised.names_zone,
            ..Span::default()
        },
        counts: Counts::default(),
        lacks: Vec::new(),
        unreadable: crate::store::manifest::Unreadable::default(),
        refusals: Vec::new(),
        schemas: Vec::new(),
        users: Vec::new(),
        anonymised: None,
        files: Vec::new(),
    }
}

/// A manifest without statements.
#[cfg(test)]
pub(crate) fn manifest_for_tests(recognised: &Recognised) -> Manifest {
    manifest_of(&ImportOptions::default(), recognised, Vec::new())
}
