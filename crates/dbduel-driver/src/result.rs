//! The rows of a statement, kept in memory up to a limit.

use dbduel_wire::{Column, WireError};

use super::{Row, Sink, Summary};

/// Maximum number of bytes of values in one result set.
pub(super) const RESULT_LIMIT: usize = 256 << 20;

/// The rows of a statement, and its other effects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultSet {
    /// Names of the columns; empty when the statement returns no rows.
    pub columns: Vec<String>,
    /// The values as text, `None` for NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Rows affected, last generated number, warnings, status.
    pub summary: Summary,
}

impl ResultSet {
    /// A value as text, with invalid bytes replaced; `None` for NULL and for a position that does not exist.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.rows.get(row)?.get(column)?.as_ref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// Keeps the first result set; of further ones, as a procedure may return, only the summary is added.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) set: ResultSet,
    result_sets: u32,
    pub(super) bytes: usize,
    pub(super) failed: Option<WireError>,
}

impl Collector {
    fn keeps(&self) -> bool {
        self.result_sets == 1 && self.bytes <= RESULT_LIMIT && self.failed.is_none()
    }
}

impl Sink for Collector {
    fn result_set(&mut self, _columns: usize) {
        self.result_sets += 1;
    }

    fn column(&mut self, column: &Column<'_>) {
        if self.keeps() {
            self.set
                .columns
                .push(String::from_utf8_lossy(column.name).into_owned());
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        // What a row costs beyond its bytes counts too, or many empty rows would be free.
        self.bytes += row.payload().len() + (row.len() + 1) * size_of::<Option<Vec<u8>>>();
        if !self.keeps() {
            return;
        }
        match row
            .values()
            .map(|value| value.map(|value| value.as_bytes().map(<[u8]>::to_vec)))
            .collect()
        {
            Ok(values) => self.set.rows.push(values),
            Err(error) => self.failed = Some(error),
        }
    }
}
