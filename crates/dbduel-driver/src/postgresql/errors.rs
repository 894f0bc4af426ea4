//! Meaning of SQLSTATEs, and conversion of the codec's errors.

use std::io;

use dbduel_wire::postgresql::LoginError;
use dbduel_wire::postgresql::ServerError as WireServerError;

use crate::{ErrorClass, LostError, ServerError, StatementError};

/// `in_failed_sql_transaction`.
const IN_FAILED_TRANSACTION: [u8; 5] = *b"25P02";

fn class(sqlstate: &str) -> ErrorClass {
    match sqlstate {
        // serialization_failure, deadlock_detected, lock_not_available (`lock_timeout` and NOWAIT).
        "40001" | "40P01" | "55P03" => ErrorClass::Conflict,
        // unique_violation
        "23505" => ErrorClass::DuplicateKey,
        // duplicate_table, which indexes are too
        "42P07" => ErrorClass::TableExists,
        // duplicate_object: a constraint, among others
        "42710" => ErrorClass::IndexExists,
        // invalid_password
        "28P01" => ErrorClass::AccessDenied,
        _ => ErrorClass::Other,
    }
}

/// SQLSTATE as a number of base 36, for callers that identify errors by numbers.
pub fn code(sqlstate: &str) -> u32 {
    u32::from_str_radix(sqlstate, 36).unwrap_or_default()
}

pub(super) fn with_state(sqlstate: [u8; 5], message: String) -> ServerError {
    let text = std::str::from_utf8(&sqlstate).unwrap_or("XX000");
    ServerError {
        class: class(text),
        code: code(text),
        sqlstate,
        message,
    }
}

/// A COMMIT that the server answered with ROLLBACK.
#[cold]
pub(super) fn commit_rolled_back() -> ServerError {
    let message =
        "COMMIT was answered with ROLLBACK, because a statement of the transaction had failed";
    with_state(IN_FAILED_TRANSACTION, message.to_owned())
}

impl From<WireServerError> for StatementError {
    /// After a fatal error the server closes the connection: a terminated backend, or a server that shuts down.
    #[cold]
    fn from(error: WireServerError) -> Self {
        if error.is_fatal {
            let text = format!("the server ended the connection: {error}");
            return io::Error::new(io::ErrorKind::ConnectionAborted, text).into();
        }
        with_state(error.sqlstate, error.message).into()
    }
}

impl From<LoginError> for LostError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Refused(error) => {
                LostError::Refused(with_state(error.sqlstate, error.message))
            }
            LoginError::Wire(error) => error.into(),
            other => LostError::Login(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_with_other_clients_may_be_tried_again() {
        for sqlstate in ["40001", "40P01", "55P03"] {
            assert_eq!(class(sqlstate), ErrorClass::Conflict, "{sqlstate}");
        }
        for sqlstate in ["25P02", "57014", "53300", "42P01"] {
            assert_eq!(class(sqlstate), ErrorClass::Other, "{sqlstate}");
        }
        assert_eq!(class("23505"), ErrorClass::DuplicateKey);
    }

    #[test]
    fn every_state_has_a_number_of_its_own() {
        assert_eq!(code("40P01"), 4 * 36_u32.pow(4) + 25 * 36 * 36 + 1);
        assert_ne!(code("40001"), code("40P01"));
    }

    #[test]
    fn a_fatal_error_loses_the_connection() {
        let error = |is_fatal| {
            StatementError::from(WireServerError {
                sqlstate: *b"57P01",
                message: "terminating connection".to_owned(),
                is_fatal,
            })
        };
        assert!(matches!(error(true), StatementError::Lost(lost) if lost.may_pass()));
        assert!(matches!(error(false), StatementError::Server(_)));
    }
}
