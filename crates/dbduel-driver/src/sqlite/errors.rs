//! Meaning of SQLite's result codes.

use std::io;
use std::path::Path;
use std::time::Duration;

use dbduel_record::rows::{SQLITE_ERRORS, error_name};
use rusqlite::ffi;

use crate::socket::deadline_passed;
use crate::{ErrorClass, LostError, ServerError, StatementError};

/// SQLite has no SQLSTATE; this is the one for general errors.
const NO_STATE: [u8; 5] = *b"HY000";

fn class(extended_code: i32, message: &str) -> ErrorClass {
    match (extended_code, extended_code & 0xff) {
        // Another connection holds a lock, or has written since this one's snapshot (SQLITE_BUSY_SNAPSHOT).
        (_, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => ErrorClass::Conflict,
        (
            ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID,
            _,
        ) => ErrorClass::DuplicateKey,
        // SQLite has no code of its own for these.
        (_, ffi::SQLITE_ERROR) if message.ends_with("already exists") => {
            match message.starts_with("index ") {
                true => ErrorClass::IndexExists,
                false => ErrorClass::TableExists,
            }
        }
        _ => ErrorClass::Other,
    }
}

fn server_error(extended_code: i32, message: String) -> ServerError {
    ServerError {
        class: class(extended_code, &message),
        code: SQLITE_ERRORS | extended_code.unsigned_abs(),
        sqlstate: NO_STATE,
        message,
    }
}

/// A failure of the file or its disk makes the connection unusable; after any other error it remains usable.
#[cold]
pub(super) fn meaning(error: rusqlite::Error) -> StatementError {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            let message = message.unwrap_or_else(|| error.to_string());
            (error.extended_code, message)
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg),
        other => (ffi::SQLITE_ERROR, other.to_string()),
    };
    let message = match advice(code) {
        Some(advice) => format!("{message}; {advice}"),
        None => message,
    };
    // The file was removed or renamed below the connection, which can never write again.
    if code == ffi::SQLITE_READONLY_DBMOVED {
        return lost(code, &message).into();
    }
    match code & 0xff {
        ffi::SQLITE_IOERR | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_CANTOPEN => {
            lost(code, &message).into()
        }
        // By the deadline, or given up, when this is not read.
        ffi::SQLITE_INTERRUPT => deadline_passed().into(),
        _ => server_error(code, message).into(),
    }
}

/// Advice for errors whose text has none.
fn advice(extended_code: i32) -> Option<&'static str> {
    match extended_code {
        ffi::SQLITE_BUSY => Some(
            "another connection has locked the file: close it if it belongs to another program, or raise `busy_timeout`",
        ),
        ffi::SQLITE_IOERR_SHMOPEN
        | ffi::SQLITE_IOERR_SHMSIZE
        | ffi::SQLITE_IOERR_SHMLOCK
        | ffi::SQLITE_IOERR_SHMMAP => Some(
            "write-ahead logging needs file-backed shared memory, which this file system does not support: put the file on \
             another one, or set `journal_mode` to `delete`",
        ),
        _ => None,
    }
}

fn lost(code: i32, message: &str) -> LostError {
    let name = error_name(SQLITE_ERRORS | code.unsigned_abs());
    io::Error::other(format!("{name}: {message}")).into()
}

/// The file cannot be opened.
#[cold]
pub(super) fn not_opened(path: &Path, error: &rusqlite::Error) -> LostError {
    if !path.exists() {
        let text = format!("there is no file `{}`", path.display());
        return io::Error::new(io::ErrorKind::NotFound, text).into();
    }
    io::Error::other(format!("`{}`: {error}", path.display())).into()
}

/// The error of a session that could not enter the queue of writers in time.
#[cold]
pub(super) fn not_let_through(timeout: Duration) -> ServerError {
    let message = match timeout.is_zero() {
        true => "another client is writing and this transaction has already read; begin it with BEGIN IMMEDIATE".to_owned(),
        false => format!(
            "waited {} ms (`busy_timeout`) for other writers to finish",
            timeout.as_millis()
        ),
    };
    server_error(ffi::SQLITE_BUSY, message)
}

#[cold]
pub(super) fn too_many_statements() -> ServerError {
    let class = ErrorClass::TooManyPrepared;
    let error = server_error(
        ffi::SQLITE_FULL,
        "too many prepared statements on this connection".to_owned(),
    );
    ServerError { class, ..error }
}

#[cold]
pub(super) fn unknown_statement() -> ServerError {
    let message = "this connection has no such prepared statement".to_owned();
    server_error(ffi::SQLITE_MISUSE, message)
}

#[cold]
pub(super) fn no_text() -> ServerError {
    server_error(ffi::SQLITE_MISUSE, "the statement is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_with_other_connections_may_be_tried_again() {
        for code in [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
        ] {
            assert_eq!(class(code, "database is locked"), ErrorClass::Conflict);
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_READONLY, ffi::SQLITE_ERROR] {
            assert_eq!(class(code, "no such table: t"), ErrorClass::Other);
        }
        assert_eq!(
            class(ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ""),
            ErrorClass::DuplicateKey
        );
        assert_eq!(
            class(ffi::SQLITE_ERROR, "table t already exists"),
            ErrorClass::TableExists
        );
        assert_eq!(
            class(ffi::SQLITE_ERROR, "index i already exists"),
            ErrorClass::IndexExists
        );
    }

    #[test]
    fn an_error_of_the_file_system_says_what_to_do() {
        let failure = ffi::Error::new(ffi::SQLITE_IOERR_SHMMAP);
        let lost = meaning(rusqlite::Error::SqliteFailure(failure, None));
        assert!(lost.to_string().contains("`journal_mode`"), "{lost}");
    }

    #[test]
    fn an_error_is_known_by_the_name_of_its_code() {
        let error = server_error(ffi::SQLITE_BUSY_SNAPSHOT, "database is locked".to_owned());
        assert_eq!(error.name(), "SQLITE_BUSY_SNAPSHOT");
    }
}
