//! `dbduel report`: a record rendered again, on any machine.

use std::fs;

use anyhow::{Context as _, Result};
use dbduel_record::Record;

use crate::cli;
use crate::console;
use crate::exit::Exit;
use crate::judge;
use crate::report;

/// Renders.
///
/// # Errors
/// When there is no record or the output cannot be written.
pub fn report(arguments: &cli::Report) -> Result<Exit> {
    let record = Record::open(&arguments.record)?;
    let (summary, findings) = judge::summarise(&record);
    let is_to_terminal = arguments.output.is_none();
    let options = report::Options {
        width: console::width(),
        colour: is_to_terminal && console::is_colour_wanted(),
    };
    let format = report::format(arguments.format.name()).context("this format is not built in")?;
    let text = format.render(&summary, &findings, &options).text;
    match &arguments.output {
        Some(path) => fs::write(path, text)
            .with_context(|| format!("could not write `{}`", path.display()))?,
        None => console::print(&text)?,
    }
    Ok(Exit::Done)
}
