//! Error messages of sysbench's drivers, in the words of the client library that each is built on.

use dbduel_client::run::advice;
use dbduel_driver::address::Address;
use dbduel_driver::{Dialect, ErrorClass, ServerError, TlsMode};

/// `PGRES_FATAL_ERROR`, the result status of libpq for every error of the server.
const FATAL_RESULT: u32 = 7;

/// A function of a client library, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LibraryCall {
    Connect,
    Query,
    Prepare {
        /// Prepared statements that all clients together need at least.
        needed: u64,
    },
    Execute,
}

impl LibraryCall {
    fn name(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::PostgreSql, LibraryCall::Connect) => "PQconnectdb",
            (Dialect::PostgreSql, LibraryCall::Query) => "PQexec",
            (Dialect::PostgreSql, LibraryCall::Prepare { .. }) => "PQprepare",
            (Dialect::PostgreSql, LibraryCall::Execute) => "PQexecPrepared",
            (_, LibraryCall::Connect) => "mysql_real_connect",
            (_, LibraryCall::Query) => "mysql_drv_query",
            (_, LibraryCall::Prepare { .. }) => "mysql_stmt_prepare",
            (_, LibraryCall::Execute) => "mysql_stmt_execute",
        }
    }
}

/// The driver's name for scripts.
pub fn driver_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::PostgreSql => "pgsql",
        // There is no driver for SQLite.
        Dialect::MySql | Dialect::Sqlite => "mysql",
    }
}

/// The error number that scripts see; 0 for PostgreSQL, whose errors only have a SQLSTATE.
pub(super) fn errno(dialect: Dialect, error: &ServerError) -> u32 {
    match dialect {
        Dialect::MySql | Dialect::Sqlite => error.code,
        Dialect::PostgreSql => 0,
    }
}

/// Messages for a failed statement; the text of a prepared one is not shown.
pub(super) fn failed_lines(
    dialect: Dialect,
    call: LibraryCall,
    error: &ServerError,
    query: Option<&str>,
) -> Vec<String> {
    let (function, message) = (call.name(dialect), &error.message);
    match (dialect, query) {
        (Dialect::MySql | Dialect::Sqlite, None) => {
            vec![format!(
                "{function}() returned error {} ({message})",
                error.code
            )]
        }
        (Dialect::MySql | Dialect::Sqlite, Some(query)) => vec![format!(
            "{function}() returned error {} ({message}) for query '{query}'",
            error.code
        )],
        (Dialect::PostgreSql, query) => {
            let failed = format!("{function}() failed: {FATAL_RESULT} {message}");
            let query = query.map(|query| format!("failed query was: {query}"));
            std::iter::once(failed).chain(query).collect()
        }
    }
}

/// Messages for a statement that cannot be prepared when all clients together need so many at least.
pub(super) fn not_prepared_lines(
    dialect: Dialect,
    error: &ServerError,
    needed: u64,
) -> Vec<String> {
    let function = LibraryCall::Prepare { needed }.name(dialect);
    let message = &error.message;
    let mut lines = match dialect {
        Dialect::MySql | Dialect::Sqlite => vec![
            format!("{function}() failed"),
            format!("MySQL error: {} \"{message}\"", error.code),
        ],
        Dialect::PostgreSql => vec![format!("{function}() failed: ERROR:  {message}")],
    };
    if error.class == ErrorClass::TooManyPrepared {
        lines.push(advice::on_prepared_statements(format!("at least {needed}")));
    }
    lines
}

/// Messages for a connection that cannot be made.
pub(super) fn unreachable_lines(
    dialect: Dialect,
    tls: &TlsMode,
    address: &Address,
    error: &ServerError,
) -> Vec<String> {
    let advice = advice::on_login(dialect, tls, error);
    match dialect {
        Dialect::MySql | Dialect::Sqlite => {
            let place = match address {
                Address::Unix { path } => format!("socket '{}'", path.display()),
                Address::Tcp { host, port } => format!("host '{host}', port {port}"),
                Address::File { path, .. } => format!("file '{}'", path.display()),
            };
            vec![
                format!("unable to connect to MySQL server on {place}, aborting..."),
                format!("error {}: {}{advice}", error.code, error.message),
            ]
        }
        // The error says where.
        Dialect::PostgreSql => vec![format!("Connection to database failed: {}", error.message)],
    }
}

/// Message for a statement whose number of parameters differs from its placeholders.
pub(super) fn wrong_number_of_parameters(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MySql | Dialect::Sqlite => "Wrong number of parameters to mysql_stmt_bind_param",
        Dialect::PostgreSql => "wrong number of parameters in prepared statement",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_without_tls_suggests_tls() {
        let address = Address::Tcp {
            host: "db".to_owned(),
            port: 3306,
        };
        let denied = ServerError {
            class: ErrorClass::AccessDenied,
            code: 1045,
            sqlstate: *b"28000",
            message: "no".to_owned(),
        };
        let last = |tls: &TlsMode| unreachable_lines(Dialect::MySql, tls, &address, &denied).pop();
        let plain = last(&TlsMode::Off).unwrap();
        assert!(
            plain.starts_with("error 1045: no; ") && plain.contains("--mysql-ssl"),
            "{plain}"
        );
        assert_eq!(last(&TlsMode::Required).unwrap(), "error 1045: no");
    }
}
