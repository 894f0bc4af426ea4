//! `dbduel report`: a record rendered again, on any machine.

use std::fs;

use anyhow::{Context as _, Result};
use dbduel_record::Record;

use super::{fail_if, sweep};
use crate::cli;
use crate::console;
use crate::exit::Exit;
use crate::judge::{
    self,
    audit::disclosure::{Item, checklist},
};
use crate::report;

/// Renders.
///
/// # Errors
/// When there is no record or the output cannot be written.
pub fn report(arguments: &cli::Report) -> Result<Exit> {
    if sweep::is_sweep(&arguments.record) {
        let is_colour_wanted = arguments.output.is_none() && console::is_colour_wanted();
        let name = arguments.format.name();
        return put(
            arguments,
            &sweep::report(&arguments.record, name, is_colour_wanted)?,
        );
    }
    let record = Record::open(&arguments.record)?;
    if arguments.disclosure {
        let items = checklist(&record);
        let text = match arguments.format {
            cli::ReportFormat::Json => console::json(&items)?,
            _ => disclosure(&items),
        };
        return put(arguments, &text);
    }
    let (summary, findings) = judge::summarise(&record);
    let is_to_terminal = arguments.output.is_none();
    let options = report::Options {
        width: console::width(),
        colour: is_to_terminal && console::is_colour_wanted(),
    };
    let format = report::format(arguments.format.name()).context("this format is not built in")?;
    let text = format.render(&summary, &findings, &options).text;
    let exit = put(arguments, &text)?;
    if arguments.fail_if.is_empty() {
        return Ok(exit);
    }
    fail_if::explain(&summary, &arguments.fail_if);
    Ok(fail_if::exit(&summary, &arguments.fail_if))
}

/// Writes to the file that was named, or to standard output.
fn put(arguments: &cli::Report, text: &str) -> Result<Exit> {
    match &arguments.output {
        Some(path) => fs::write(path, text)
            .with_context(|| format!("could not write `{}`", path.display()))?,
        None => console::print(text)?,
    }
    Ok(Exit::Done)
}

/// What a reader must be told, section by section, and where the record has it.
fn disclosure(items: &[Item]) -> String {
    let mut text = String::new();
    let mut section = "";
    for item in items {
        if item.section != section {
            section = &item.section;
            text.push_str(&format!("{section}\n"));
        }
        let state = if item.present { "present" } else { "MISSING" };
        text.push_str(&format!("  {state}  {}  ({})\n", item.item, item.place));
    }
    let missing = items.iter().filter(|item| !item.present).count();
    text.push_str(&format!(
        "\n{} of {} present, {missing} missing\n",
        items.len() - missing,
        items.len()
    ));
    text
}
