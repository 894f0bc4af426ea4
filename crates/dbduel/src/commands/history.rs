//! `dbduel history`: change points over many records of one experiment.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_experiment::quantity::share;
use dbduel_judge as judge;
use dbduel_judge::records::Judged;
use dbduel_judge::records::history::{Question, follow};
use dbduel_judge::summary::Quantity;
use dbduel_record::Record;
use dbduel_record::store::PLAN;
use dbduel_report as report;

use super::fail_if::quantity_named;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel history`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Records, or directories of records.
    #[arg(required = true, value_name = "DIR")]
    pub records: Vec<PathBuf>,
    /// Quantity to examine: p50, p95, p99, cpu or written [default: throughput].
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    pub quantity: Option<Quantity>,
    /// Smallest change of the ratio to report.
    #[arg(long, default_value = "1 %", value_name = "SHARE", value_parser = share)]
    pub magnitude: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn quantity(text: &str) -> Result<Quantity, String> {
    quantity_named(text)
        .ok_or_else(|| format!("expected p50, p95, p99, cpu or written, found `{text}`"))
}

/// Reads the records and prints the change points of their ratios.
///
/// # Errors
/// When a directory cannot be read or holds no record.
pub fn history(arguments: &Arguments) -> Result<Exit> {
    let mut records = Vec::new();
    for place in &arguments.records {
        for dir in records_in(place)? {
            match Record::open(&dir) {
                Ok(record) => records.push(Judged {
                    place: dir.display().to_string(),
                    summary: judge::summarise(&record).0,
                }),
                Err(error) => {
                    let error = anyhow::Error::new(error);
                    console::status_line(&format!("left out: {error:#}"));
                }
            }
        }
    }
    if records.is_empty() {
        bail!("none of the records could be read");
    }
    let question = Question {
        quantity: arguments.quantity,
        magnitude: arguments.magnitude,
    };
    let history = follow(records, &question).context("`--magnitude` is out of range")?;
    if arguments.json {
        console::print_json(&history)?;
    } else {
        console::print(&report::history::history(&history))?;
    }
    let is_worse = history
        .series
        .iter()
        .any(|series| series.is_alarm_for_the_worse);
    Ok(if is_worse { Exit::RuleHit } else { Exit::Done })
}

/// A directory without records was given in place of records.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not a record and contains none; name records or a directory of results", .0.display())]
pub struct NoRecords(PathBuf);

/// The record itself, or the records right below a directory of results.
///
/// # Errors
/// When the directory cannot be read or holds none.
pub(super) fn records_in(place: &Path) -> Result<Vec<PathBuf>> {
    if place.join(PLAN).is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = std::fs::read_dir(place)
        .with_context(|| format!("could not read `{}`", place.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join(PLAN).is_file())
        .collect();
    if found.is_empty() {
        return Err(NoRecords(place.to_owned()).into());
    }
    found.sort();
    Ok(found)
}
