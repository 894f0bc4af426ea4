//! Meaning of the error numbers of MySQL and MariaDB, and conversion of the codec's errors.

use dbduel_wire::{CommandError, LoginError, WireError};

use super::super::tls::HandshakeError;
use crate::{ErrorClass, LostError, ServerError, StatementError};

/// SQLSTATE class of errors after which the transaction is rolled back and may be tried again. Includes deadlocks
/// (1213), the snapshot conflicts of MyRocks and the certification failures of Galera and group replication.
const TRANSACTION_ROLLBACK: &str = "40";

fn class(code: u16, sqlstate: &str, message: &str) -> ErrorClass {
    match code {
        // ER_CANT_CREATE_TABLE with HA_ERR_FOUND_DUPP_KEY: what MariaDB, and MySQL to 5.5, call the name of a foreign key
        // that is taken.
        1005 if message.contains("errno: 121") => ErrorClass::IndexExists,
        // ER_CHECKREAD (MariaDB with `innodb_snapshot_isolation`), ER_LOCK_WAIT_TIMEOUT.
        1020 | 1205 => ErrorClass::Conflict,
        _ if sqlstate.starts_with(TRANSACTION_ROLLBACK) => ErrorClass::Conflict,
        // ER_DUP_ENTRY
        1062 => ErrorClass::DuplicateKey,
        // ER_TABLE_EXISTS_ERROR
        1050 => ErrorClass::TableExists,
        // ER_DUP_KEYNAME, ER_FK_DUP_NAME
        1061 | 1826 => ErrorClass::IndexExists,
        // ER_REQUIRES_PRIMARY_KEY (MariaDB with `innodb_force_primary_key`), ER_TABLE_WITHOUT_PK (MySQL with
        // `sql_require_primary_key`)
        1173 | 3750 => ErrorClass::NoPrimaryKey,
        // ER_NOT_ALLOWED_COMMAND; ER_CLIENT_LOCAL_FILES_DISABLED of MySQL; ER_LOAD_INFILE_CAPABILITY_DISABLED of MariaDB
        1148 | 3948 | 4166 => ErrorClass::NoFileLoading,
        // ER_UNSUPPORTED_PS
        1295 => ErrorClass::NotPreparable,
        // ER_MAX_PREPARED_STMT_COUNT_REACHED
        1461 => ErrorClass::TooManyPrepared,
        // ER_ACCESS_DENIED_ERROR
        1045 => ErrorClass::AccessDenied,
        // ER_SECURE_TRANSPORT_REQUIRED
        3159 => ErrorClass::TlsRequired,
        // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
        1698 => ErrorClass::PasswordUnused,
        _ => ErrorClass::Other,
    }
}

impl From<dbduel_wire::ServerError> for ServerError {
    fn from(error: dbduel_wire::ServerError) -> Self {
        ServerError {
            class: class(error.code, error.sqlstate(), &error.message),
            code: u32::from(error.code),
            sqlstate: error.sqlstate,
            message: error.message,
        }
    }
}

impl From<WireError> for LostError {
    fn from(error: WireError) -> Self {
        LostError::Protocol(error.into())
    }
}

impl From<WireError> for StatementError {
    fn from(error: WireError) -> Self {
        StatementError::Lost(error.into())
    }
}

impl From<LoginError> for LostError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Refused(error) => LostError::Refused(error.into()),
            other => LostError::Login(other.into()),
        }
    }
}

impl From<CommandError> for LostError {
    fn from(error: CommandError) -> Self {
        LostError::Values(error.into())
    }
}

impl From<HandshakeError> for LostError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Tls(why) => why.into(),
            HandshakeError::Io(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicts_with_other_clients_may_be_tried_again() {
        for (code, sqlstate) in [
            (1213, "40001"),
            (1205, "HY000"),
            (1020, "HY000"),
            (3101, "40000"),
        ] {
            assert_eq!(class(code, sqlstate, ""), ErrorClass::Conflict, "{code}");
        }
        assert_eq!(class(1062, "23000", ""), ErrorClass::DuplicateKey);
        assert_eq!(class(1146, "42S02", ""), ErrorClass::Other);
        assert_eq!(class(1173, "42000", ""), ErrorClass::NoPrimaryKey);
        assert_eq!(class(3750, "HY000", ""), ErrorClass::NoPrimaryKey);
        let taken = "Can't create table `d`.`t` (errno: 121 \"Duplicate key on write or update\")";
        assert_eq!(class(1005, "HY000", taken), ErrorClass::IndexExists);
        assert_eq!(class(1005, "HY000", "(errno: 150)"), ErrorClass::Other);
    }

    #[test]
    fn an_account_that_is_locked_expired_or_used_up_is_not_denied_for_its_password() {
        assert_eq!(class(1045, "28000", ""), ErrorClass::AccessDenied);
        for code in [3118, 4151, 1862, 1226] {
            assert_eq!(class(code, "HY000", ""), ErrorClass::Other, "{code}");
        }
    }
}
