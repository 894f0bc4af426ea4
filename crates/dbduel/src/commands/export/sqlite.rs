//! Tables as one SQLite database.

use dbduel_driver::Dialect;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::table::{Cell, Kind, Table};

/// A database that holds these tables and nothing else.
///
/// # Errors
/// When SQLite cannot hold them.
pub fn bytes(tables: &[Table]) -> rusqlite::Result<Vec<u8>> {
    let mut connection = Connection::open_in_memory()?;
    let transaction = connection.transaction()?;
    for table in tables {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|(name, kind)| format!("{} {}", Dialect::Sqlite.identifier(name), type_of(*kind)))
            .collect();
        let name = Dialect::Sqlite.identifier(table.name);
        transaction.execute(&format!("CREATE TABLE {name} ({})", columns.join(", ")), [])?;
        let places = vec!["?"; table.columns.len()].join(", ");
        let mut insert = transaction.prepare(&format!("INSERT INTO {name} VALUES ({places})"))?;
        for row in &table.rows {
            insert.execute(params_from_iter(row))?;
        }
    }
    transaction.commit()?;
    Ok(connection.serialize("main")?.to_vec())
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "TEXT",
        Kind::Whole => "INTEGER",
        Kind::Real => "REAL",
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Whole(value) => ValueRef::Integer(*value),
            Cell::Real(value) => ValueRef::Real(*value),
            Cell::Missing => ValueRef::Null,
        }))
    }
}
