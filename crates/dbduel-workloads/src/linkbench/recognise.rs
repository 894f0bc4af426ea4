//! Checks that the tables are those that the parameters ask for.
//!
//! Tables of the original program are valid too, so only what an operation depends on is checked.

use dbduel_driver::{ClientConnection, Connection, Protocol, StatementError};
use dbduel_record::plan::Parameters;

use super::settings::Settings;
use crate::parameters::Resolved;
use crate::rows::{each, unusable};
use crate::verification::VerifyError;

/// The tables cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unfit(String);

/// A query to the server, and the meaning of an unexpected answer.
pub(super) struct Question {
    sql: String,
    /// Whether a row is expected, or none.
    row_wanted: bool,
    otherwise: String,
}

/// Queries made before tables are used.
pub(super) fn questions(parameters: &Parameters, settings: &Settings) -> Vec<Question> {
    let mut questions = Vec::new();
    if settings.generate_nodes {
        // Single nodes may have been deleted; a whole half is missing only from another graph.
        let middle = settings.start + settings.nodes / 2;
        questions.push(Question {
            sql: format!("SELECT id FROM nodetable WHERE id >= {middle} LIMIT 1"),
            row_wanted: true,
            otherwise: format!(
                "`nodetable` ends before id {middle}, so it was loaded with a smaller `maxid1`; load it again or lower `maxid1`"
            ),
        });
    }
    let algorithm = Resolved(parameters).text("page_compression");
    if algorithm != "none" {
        questions.push(Question {
            sql: "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
                  AND table_name = 'linktable' AND LOWER(create_options) LIKE '%compress%'"
                .to_owned(),
            row_wanted: true,
            otherwise: format!(
                "`linktable` is not page-compressed, but `page_compression = \"{algorithm}\"`; the server may not \
                 support it (MySQL from 5.7, MariaDB from 10.1), or the tables are older"
            ),
        });
        questions.push(Question {
            sql: format!(
                "SHOW GLOBAL VARIABLES WHERE Variable_name = 'innodb_compression_algorithm' AND Value <> '{algorithm}'"
            ),
            row_wanted: false,
            otherwise: format!(
                "the server does not compress pages with {algorithm}; set \
                 `innodb_compression_algorithm = \"{algorithm}\"`"
            ),
        });
    }
    questions
}

/// Runs the queries on a client's connection.
pub(super) async fn ask(
    conn: &mut ClientConnection,
    questions: &[Question],
) -> Result<(), StatementError> {
    for question in questions {
        let mut statement = conn.prepare(&question.sql, Protocol::Text).await?;
        let rows = each(conn, &mut statement, &[], |_| Some(())).await?;
        if (rows > 0) != question.row_wanted {
            return Err(unusable(&question.otherwise));
        }
    }
    Ok(())
}

/// Runs the queries on a connection for administration.
pub(super) fn ask_blocking(
    connection: &mut Connection,
    questions: &[Question],
) -> Result<(), VerifyError> {
    for question in questions {
        let answer = connection.query(&question.sql)?;
        if answer.rows.is_empty() == question.row_wanted {
            return Err(VerifyError::unusable(Unfit(question.otherwise.clone())));
        }
    }
    Ok(())
}
