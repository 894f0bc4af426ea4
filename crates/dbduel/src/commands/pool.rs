//! `dbduel pool`: one duel on several machines.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_judge::records::pool::{PoolRecord, pool};
use dbduel_record::Record;
use dbduel_report::{self as report, Options};

use super::history::records_in;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel pool`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Records of one experiment, or directories of such records.
    #[arg(required = true, value_name = "DIR")]
    pub records: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Reads the records, pools them and prints the result.
///
/// # Errors
/// When a record cannot be read, or two of them are not the same duel.
pub fn run(arguments: &Arguments) -> Result<Exit> {
    let mut records = Vec::new();
    for place in &arguments.records {
        for dir in records_in(place)? {
            let record = Record::open(&dir)?;
            records.push(PoolRecord::of(dir.display().to_string(), &record));
        }
    }
    let pool = pool(records)?.context("there are no records to pool")?;
    if arguments.json {
        console::print_json(&pool)?;
    } else {
        let options = Options {
            width: console::width(),
            colour: false,
        };
        console::print(&report::pool::pool(&pool, options))?;
    }
    Ok(Exit::Done)
}
