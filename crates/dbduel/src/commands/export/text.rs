//! Tables as CSV with a header line; a missing value is an empty field.

use anyhow::Result;

use super::table::{Cell, Table};

/// The file's bytes.
///
/// # Errors
/// Never in practice: the text is written to memory.
pub fn bytes(table: &Table) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(table.names())?;
    for row in &table.rows {
        writer.write_record(row.iter().map(field))?;
    }
    Ok(writer.into_inner()?)
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Whole(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Missing => String::new(),
    }
}
