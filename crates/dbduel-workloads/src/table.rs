//! A workload's definition of a table: how it is created, and its rows.

use dbduel_client::random::Random;
use dbduel_driver::{Credentials, Dialect};
use dbduel_record::plan::Parameters;

use crate::fill::{FillError, FillReport, FillWatch, Place};

/// A table to be created and filled.
pub struct Table {
    /// Its name, unquoted.
    pub name: String,
    /// The statement that creates it.
    pub create: String,
    /// Columns that are filled, without quotes and separated by commas.
    pub columns: &'static str,
    /// Rows to fill in.
    pub rows: u64,
    /// Writes the values of a row.
    pub content: Box<dyn RowContent>,
    /// Statements after the rows are in, such as those that create secondary indexes.
    pub finish: Vec<String>,
    /// Columns that the digest covers, without quotes and separated by commas.
    pub digest_columns: &'static str,
    /// Columns whose values are decimals and which the dialect keeps as whole numbers of their last place, with the number
    /// of places.
    pub scaled: Vec<(&'static str, u32)>,
}

impl Table {
    /// Names of the columns that are filled.
    pub(crate) fn column_names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.split(',').map(str::trim)
    }

    /// The table with its filled columns, as in a statement that fills them.
    pub(crate) fn filled(&self, dialect: Dialect) -> String {
        let (table, columns) = (
            dialect.identifier(&self.name),
            dialect.identifiers(self.column_names()),
        );
        format!("{table} ({columns})")
    }
}

/// Appends the next row of a table with each call.
pub type RowWriter<'a> = Box<dyn FnMut(&mut Random, &mut String) + 'a>;

/// The content of a table.
pub trait RowContent: Send + Sync {
    /// Sets the seed of the whole dataset before the first row; for content that several tables or chunks share.
    fn seed(&mut self, seed: u64) {
        let _ = seed;
    }

    /// Appends the values of row `row`, counted from 1, as a parenthesised SQL list, or as several separated by
    /// commas. The same stream and row give the same text.
    ///
    /// A value is a number, `NULL`, a string of printable ASCII in single quotes without quote and backslash in it, or
    /// bytes in hexadecimal (`x'c3a4'`): so LOAD DATA reads the text like INSERT.
    fn write(&self, row: u64, random: &mut Random, sql: &mut String);

    /// Writes the rows from `first` on, one with each call. For content that computes the next row more cheaply than
    /// any row, or whose rows share state within a chunk.
    fn writer(&self, first: u64) -> RowWriter<'_> {
        let mut row = first;
        Box::new(move |random, sql| {
            self.write(row, random, sql);
            row += 1;
        })
    }
}

/// A workload that makes its tables itself.
pub trait OwnData {
    /// The account that its clients log in to, where the lab's is `lab`. [`OwnData::fill`] creates another one.
    fn account(&self, lab: &Credentials) -> Credentials {
        lab.clone()
    }

    /// Creates and fills the tables.
    ///
    /// # Errors
    /// [`FillError`].
    fn fill(
        &self,
        parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<FillReport, FillError>;

    /// Drops the tables.
    ///
    /// # Errors
    /// [`FillError`].
    fn clear(
        &self,
        parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<(), FillError>;
}
