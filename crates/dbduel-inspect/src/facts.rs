//! Facts that a running server reports, kept in the record as files.
//!
//! The formats are those of `mysql --batch --skip-column-names`, as in users' own dumps.

use anyhow::{Context as _, Result};
use dbduel_driver::introspection;
use dbduel_driver::{Connection, Dialect, SQLITE_SHOW_SETTINGS};
use dbduel_record::store::{STATUS_AFTER, STATUS_BEFORE, stints};
use dbduel_record::{RecordWriter, tsv};

use dbduel_server::{COUNTERS, FactQuery, ServerProduct, VARIABLES, Version, recognise};

/// When the facts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Data loaded, nothing measured.
    Before,
    /// The server was restarted during a contest: a new stint begins, whose counters are unrelated to the previous
    /// ones.
    Again,
    /// Everything measured, server still running.
    After,
}

/// A server's answer to one fact query, as names and values; empty where there is no such query, or it is refused.
pub fn answers(connection: &mut Connection, question: &str) -> Vec<(String, String)> {
    let found = questions(connection)
        .into_iter()
        .find(|query| query.name == question);
    let rows = found.and_then(|query| rows(connection, query.sql).ok());
    let pair = |row: Vec<String>| match <[String; 2]>::try_from(row) {
        Ok([name, value]) => Some((name, value)),
        Err(_) => None,
    };
    rows.unwrap_or_default()
        .into_iter()
        .filter_map(pair)
        .collect()
}

/// Records the answers to the product's queries: counters at each moment, variables and the engine's status text at the
/// beginning and the end, everything else at the beginning.
///
/// # Errors
/// When the record cannot be written, or variables and counters cannot be read. Another query that a version does not
/// understand leaves no file.
pub fn keep(
    record: &RecordWriter,
    contender: &str,
    connection: &mut Connection,
    moment: Moment,
) -> Result<()> {
    let begun = stints(record.dir(), contender);
    if moment == Moment::Before && begun > 0 {
        // An earlier start came to nothing; its last look must not be taken for this one's.
        record.contender_file(contender, STATUS_AFTER, b"")?;
    }
    for query in questions(connection) {
        let file = match (query.name, moment) {
            ("status", Moment::Before) => STATUS_BEFORE.to_owned(),
            ("status", Moment::Again) => of_stint(begun, STATUS_BEFORE),
            ("status", Moment::After) => of_stint(begun.saturating_sub(1), STATUS_AFTER),
            ("variables", Moment::Before) => "variables.before.tsv".to_owned(),
            ("variables", Moment::After) => "variables.after.tsv".to_owned(),
            ("engine-status", Moment::Before) => "engine-status.before.txt".to_owned(),
            ("engine-status", Moment::After) => "engine-status.txt".to_owned(),
            (name, Moment::Before) => format!("{name}.tsv"),
            (_, Moment::Again | Moment::After) => continue,
        };
        let answer: String = match (rows(connection, query.sql), query.name) {
            (Ok(rows), "engine-status") => {
                rows.into_iter().filter_map(|mut row| row.pop()).collect()
            }
            (Ok(rows), _) => rows.iter().map(|row| tsv::line(row)).collect(),
            (Err(error), "variables" | "status") => return Err(error),
            (Err(_), _) => continue,
        };
        record.contender_file(contender, &file, answer.as_bytes())?;
    }
    Ok(())
}

/// A file of a stint of a contender's server, below the contender's directory.
fn of_stint(stint: u32, file: &str) -> String {
    if stint == 0 {
        file.to_owned()
    } else {
        format!("stint-{stint}/{file}")
    }
}

/// Identity of a server, as it reports it.
pub struct Identity {
    /// `None` for one that we do not start ourselves.
    pub product: Option<&'static dyn ServerProduct>,
    /// The version as the server writes it.
    pub version: String,
    /// Its build comment.
    pub comment: String,
    number: Option<Version>,
}

/// Queries a server's identity.
pub fn identify(connection: &mut Connection) -> Identity {
    let full = match connection.dialect() {
        Dialect::Sqlite => connection.server_version().to_owned(),
        Dialect::MySql | Dialect::PostgreSql => {
            scalar(connection, "SELECT VERSION()").unwrap_or_default()
        }
    };
    let (version, comment, number) = match connection.dialect() {
        Dialect::MySql => {
            let comment = scalar(connection, "SELECT @@version_comment").unwrap_or_default();
            let number = Version::parse(&full);
            (full, comment, number)
        }
        Dialect::PostgreSql => {
            let number = recognise(&full).and_then(|product| product.version(&full));
            (connection.server_version().to_owned(), full, number)
        }
        Dialect::Sqlite => {
            let number = Version::parse(&full);
            (full, "SQLite".to_owned(), number)
        }
    };
    let product = match connection.dialect() {
        // It is none that is started.
        Dialect::Sqlite => None,
        Dialect::MySql | Dialect::PostgreSql => recognise(&format!("{version} {comment}")),
    };
    Identity {
        product,
        version,
        comment,
        number,
    }
}

/// Fact queries for this server; for a product that we do not start, those that all products answer.
fn questions(connection: &mut Connection) -> Vec<FactQuery> {
    if connection.dialect() == Dialect::Sqlite {
        return SQLITE_QUESTIONS.to_vec();
    }
    let Identity {
        product, number, ..
    } = identify(connection);
    match (product, number) {
        (Some(product), Some(version)) => product.fact_queries(version),
        _ => vec![
            FactQuery {
                name: "variables",
                sql: VARIABLES,
            },
            FactQuery {
                name: "status",
                sql: COUNTERS,
            },
        ],
    }
}

/// Fact queries for SQLite. It counts nothing for a file but its size.
const SQLITE_QUESTIONS: &[FactQuery] = &[
    FactQuery {
        name: "variables",
        sql: SQLITE_SHOW_SETTINGS,
    },
    FactQuery {
        name: "status",
        sql: "SELECT 'page_count', page_count FROM pragma_page_count UNION ALL \
              SELECT 'freelist_count', freelist_count FROM pragma_freelist_count",
    },
];

/// Records the definitions of `tables`, and returns them.
///
/// # Errors
/// When the server does not answer or the record cannot be written.
pub fn keep_schema(
    record: &RecordWriter,
    contender: &str,
    connection: &mut Connection,
    tables: &[String],
) -> Result<String> {
    let mut schema = String::new();
    for table in tables {
        let question = introspection::definition(connection.dialect(), table);
        let rows = rows(connection, &question)?;
        if let Some(definition) = rows.first().and_then(|row| row.get(1)) {
            schema.push_str(definition);
            schema.push_str(";\n\n");
        }
    }
    record.contender_file(contender, "schema.sql", schema.as_bytes())?;
    Ok(schema)
}

/// The single value that `statement` returns; `None` when the server does not know the variable.
#[must_use]
pub fn scalar(connection: &mut Connection, statement: &str) -> Option<String> {
    rows(connection, statement).ok()?.first()?.first().cloned()
}

fn rows(connection: &mut Connection, statement: &str) -> Result<Vec<Vec<String>>> {
    let result = connection
        .query(statement)
        .with_context(|| format!("`{statement}` failed"))?;
    let text =
        |field: Option<Vec<u8>>| String::from_utf8_lossy(&field.unwrap_or_default()).into_owned();
    Ok(result
        .rows
        .into_iter()
        .map(|row| row.into_iter().map(text).collect())
        .collect())
}
