//! State of a client's session as its server reports it, queried on a connection of the load itself after its
//! statements are prepared and before the first transaction is due.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ClientConnection, Dialect, LostError, Row, SQLITE_SHOW_SETTINGS, Sink, StatementError,
};

/// A session as the server reports it. Facts that the server does not report are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// `SHOW SESSION VARIABLES`, PostgreSQL's `pg_settings`, or SQLite's PRAGMAs.
    pub variables: BTreeMap<String, String>,
    /// True when the connection changed to TLS at login, from the client's own knowledge.
    pub tls: bool,
    /// Cipher of the encryption as the server names it, without control characters; empty when the server reports
    /// none.
    pub tls_cipher: Option<String>,
    /// True when the protocol compresses.
    pub compression: Option<bool>,
    /// True when the server has prepared statements of the workload in this session.
    pub prepared: Option<bool>,
}

impl Session {
    /// Queries the server. A fact that it does not answer stays absent.
    ///
    /// # Errors
    /// When the connection is lost.
    pub async fn ask(conn: &mut ClientConnection) -> Result<Self, LostError> {
        let (variables, questions) = match conn.dialect() {
            Dialect::PostgreSql => ("SELECT name, setting FROM pg_settings", POSTGRESQL_STATUS),
            Dialect::MySql => ("SHOW SESSION VARIABLES", MYSQL_STATUS),
            Dialect::Sqlite => (SQLITE_SHOW_SETTINGS, SQLITE_STATUS),
        };
        let variables = rows(conn, variables).await?;
        let mut status = BTreeMap::new();
        for sql in questions {
            status.extend(rows(conn, sql).await?);
        }
        let say = |name: &str| status.get(name);
        Ok(Session {
            tls: conn.is_encrypted(),
            tls_cipher: say("Ssl_cipher").map(|name| cipher_name(name)),
            compression: say("Compression").map(|value| value.eq_ignore_ascii_case("on")),
            prepared: say("Com_stmt_prepare").map(|count| count != "0"),
            variables,
        })
    }
}

/// Queries about a session, each returning a name and a value.
const MYSQL_STATUS: &[&str] = &[
    "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
    "SHOW SESSION STATUS LIKE 'Compression'",
    "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'",
];

/// The same of PostgreSQL, whose protocol does not compress.
const POSTGRESQL_STATUS: &[&str] = &[
    "SELECT 'Ssl_cipher', COALESCE(cipher, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    "SELECT 'Compression', 'off'",
    "SELECT 'Com_stmt_prepare', count(*) FROM pg_prepared_statements",
];

/// Longest cipher name that is kept; the longest in use has 37 bytes.
const CIPHER_NAME_LIMIT: usize = 64;

/// The same of SQLite, whose statements are all prepared and never sent.
const SQLITE_STATUS: &[&str] = &[
    "SELECT 'Compression', 'off'",
    "SELECT 'Com_stmt_prepare', 1",
];

/// Cipher names consist of printable characters without spaces.
fn cipher_name(said: &str) -> String {
    let printable = said.chars().filter(char::is_ascii_graphic);
    printable.take(CIPHER_NAME_LIMIT).collect()
}

/// Names and values; empty when the server answers with an error.
async fn rows(
    conn: &mut ClientConnection,
    sql: &str,
) -> Result<BTreeMap<String, String>, LostError> {
    let mut pairs = Pairs::default();
    match conn.query_into(sql.as_bytes(), &mut pairs).await {
        Ok(_) => Ok(pairs.0),
        Err(StatementError::Server(_)) => Ok(BTreeMap::new()),
        Err(StatementError::Lost(lost)) => Err(lost),
    }
}

/// Keeps the first two columns of every row.
#[derive(Default)]
struct Pairs(BTreeMap<String, String>);

impl Sink for Pairs {
    fn row(&mut self, row: &Row<'_>) {
        let text = |index: usize| match row.value(index) {
            Some(Ok(value)) => value
                .as_bytes()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        if let Some(name) = text(0) {
            self.0.insert(name, text(1).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_drives_no_terminal_by_the_name_of_a_cipher() {
        assert_eq!(
            cipher_name("TLS_AES_256_GCM_SHA384"),
            "TLS_AES_256_GCM_SHA384"
        );
        assert_eq!(cipher_name("\u{1b}[2J AES\n"), "[2JAES");
        assert_eq!(cipher_name(&"x".repeat(100_000)).len(), CIPHER_NAME_LIMIT);
    }
}
