//! `dbduel export`: where the tables go, and in which forms.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `dbduel export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The directory of a record.
    pub record: PathBuf,
    /// Directory for the files; it is made, and must not hold files of the same names.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// How tables are written; several with commas between them.
    #[arg(
        long = "format",
        value_enum,
        value_delimiter = ',',
        default_value = "csv",
        value_name = "FORMAT"
    )]
    pub formats: Vec<ExportFormat>,
}

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A text file per table.
    Csv,
    /// One database with all tables, and the series within slices.
    Sqlite,
    /// A file per table, and the series within slices.
    Parquet,
}
