//! Settings of a connection as names and values. SQLite has a PRAGMA for each and no statement for all.

use dbduel_wire::{ColumnKind, RowFormat};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::put;
use super::settings::READABLE;
use crate::{Row, Sink, Summary, Value};

/// The statement that `rows` implements.
pub const SHOW_SETTINGS: &str = "SHOW VARIABLES";

/// Further queries, with names of our own.
const QUESTIONS: &[(&str, &str)] = &[
    ("sqlite_version", "SELECT sqlite_version()"),
    ("sqlite_source_id", "SELECT sqlite_source_id()"),
    (
        "compile_options",
        "SELECT group_concat(compile_options, ' ') FROM pragma_compile_options",
    ),
];

/// Passes to `sink` the settings of a connection and its file, by the names of their PRAGMAs, with SQLite's version
/// and compile options.
pub(super) fn rows<S: Sink>(connection: &Connection, sink: &mut S) -> rusqlite::Result<Summary> {
    let kinds: [ColumnKind; 2] = [Value::Bytes(b"").kind(); 2];
    let mut summary = Summary {
        result_sets: 1,
        ..Summary::default()
    };
    sink.result_set(kinds.len());
    if sink.wants_columns() {
        for name in ["name", "value"] {
            sink.column(&super::column(name));
        }
    }
    let pragmas = READABLE
        .iter()
        .map(|name| (*name, format!("PRAGMA {name}")));
    let others = QUESTIONS
        .iter()
        .map(|(name, sql)| (*name, (*sql).to_owned()));
    for (name, sql) in others.chain(pragmas) {
        let value = connection.query_row(&sql, [], |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Integer(number) => number.to_string(),
                other => other.as_str().unwrap_or_default().to_owned(),
            })
        })?;
        let mut row = 2_u16.to_be_bytes().to_vec();
        put(&mut row, format_args!("{name}"));
        put(&mut row, format_args!("{value}"));
        summary.rows += 1;
        if sink.wants_rows() {
            sink.row(&Row::new(&row, RowFormat::PostgresText, &kinds));
        }
    }
    Ok(summary)
}
