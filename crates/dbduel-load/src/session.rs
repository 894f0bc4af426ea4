//! What a server says of a client's session, asked on a connection of the load itself once its
//! statements are prepared and before the first transaction is due.
//!
//! Compares nothing and sets nothing.

use std::collections::BTreeMap;

use dbduel_wire::{Row, Sink};
use serde::{Deserialize, Serialize};

use crate::conn::{Conn, LostError, StatementError};

/// A session as the server sees it. What the server does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// `SHOW SESSION VARIABLES`.
    pub variables: BTreeMap<String, String>,
    /// Cipher of the encryption; empty when there is none.
    pub tls_cipher: Option<String>,
    /// True when the protocol compresses.
    pub compression: Option<bool>,
    /// True when the server has prepared statements of the workload in this session.
    pub prepared: Option<bool>,
}

impl Session {
    /// Asks. A question that the server does not answer leaves its place empty.
    ///
    /// # Errors
    /// When the connection is lost.
    pub async fn ask(conn: &mut Conn) -> Result<Self, LostError> {
        let variables = rows(conn, "SHOW SESSION VARIABLES").await?;
        let mut status = rows(conn, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
        status.extend(rows(conn, "SHOW SESSION STATUS LIKE 'Compression'").await?);
        status.extend(rows(conn, "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").await?);
        let say = |name: &str| status.get(name);
        Ok(Session {
            tls_cipher: say("Ssl_cipher").cloned(),
            compression: say("Compression").map(|value| value.eq_ignore_ascii_case("on")),
            prepared: say("Com_stmt_prepare").map(|count| count != "0"),
            variables,
        })
    }
}

/// Names and values; empty when the server answers with an error.
async fn rows(conn: &mut Conn, sql: &str) -> Result<BTreeMap<String, String>, LostError> {
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
