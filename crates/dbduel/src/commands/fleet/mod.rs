//! `dbduel fleet`: submits contests to the agents of a fleet, shows their progress and fetches records.

mod page;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use dbduel_experiment::EXPERIMENT_BYTES_MAX;
use dbduel_fleet::Nats;
use dbduel_fleet::agent;
use dbduel_fleet::archive::RecordArchive;
use dbduel_fleet::cell::CellOutcome;
use dbduel_fleet::status::{self, Ledger};
use dbduel_fleet::submit::{Submitted, cells_of, submit};
use dbduel_fleet::{Fleet, clock};
use dbduel_record::foreign::read_text;
use dbduel_text::counts;
use serde_json::json;

use super::nats::NatsArguments;
use super::run::Unreadable;
use crate::console;
use crate::exit::Exit;

/// Longest name of a campaign, characters.
const CAMPAIGN_CHARACTERS_MAX: usize = 60;
const CAMPAIGN: &str = "default";

/// Verbs of `dbduel fleet`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Put experiments into the work queue: one cell each, or one per combination of a `[sweep]`.
    Submit(SubmitArguments),
    /// Show queue, agents, progress and failures.
    Status(StatusArguments),
    /// List agents: version, processors, memory, kernel, clock.
    Agents(AgentsArguments),
    /// Fetch the records of finished cells.
    Fetch(FetchArguments),
}

/// Options of `dbduel fleet submit`.
#[derive(Debug, Args)]
pub struct SubmitArguments {
    /// Experiment files (TOML).
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<PathBuf>,
    #[command(flatten)]
    nats: NatsArguments,
    /// Campaign in which the cells are counted. In another campaign the same experiment is run again.
    #[arg(long, default_value = CAMPAIGN, value_name = "NAME", value_parser = campaign)]
    campaign: String,
    /// Run each contest this many times, each with its own seed.
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    copies: u32,
}

/// Options of `dbduel fleet status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Only this campaign.
    #[arg(long, value_name = "NAME", value_parser = campaign)]
    campaign: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `dbduel fleet agents`.
#[derive(Debug, Args)]
pub struct AgentsArguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `dbduel fleet fetch`.
#[derive(Debug, Args)]
pub struct FetchArguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// Directory in which the records' directories are created; existing ones are left unchanged.
    #[arg(long, default_value = "results", value_name = "DIR")]
    results: PathBuf,
    /// Only this campaign.
    #[arg(long, value_name = "NAME", value_parser = campaign)]
    campaign: Option<String>,
}

fn campaign(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=CAMPAIGN_CHARACTERS_MAX).contains(&text.len()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "expected 1 to {CAMPAIGN_CHARACTERS_MAX} letters, digits, `-`, `_` and `.`, found `{text}`"
        )),
    }
}

/// Submits to, shows or fetches from the fleet.
///
/// # Errors
/// When an experiment is wrong, NATS cannot be reached, or the fleet has another version.
pub fn fleet(action: &Action) -> Result<Exit> {
    match action {
        Action::Submit(arguments) => put(arguments),
        Action::Status(arguments) => show(arguments),
        Action::Agents(arguments) => agents(arguments),
        Action::Fetch(arguments) => fetch(arguments),
    }
}

fn connect(nats: &NatsArguments) -> Result<Nats> {
    nats.connect("dbduel fleet")
}

fn put(arguments: &SubmitArguments) -> Result<Exit> {
    // All are read before any is submitted.
    let mut cells = Vec::new();
    for path in &arguments.experiments {
        let text = read_text(path, EXPERIMENT_BYTES_MAX)
            .map_err(|source| Unreadable::new(path.clone(), source))?;
        cells.extend(cells_of(
            path,
            &text,
            &arguments.campaign,
            arguments.copies,
        )?);
    }
    let nats = connect(&arguments.nats)?;
    let fleet = Fleet::open(&nats)?;
    let Submitted {
        queued,
        waiting,
        done,
        retried,
    } = submit(&fleet, &cells)?;
    let mut text = format!(
        "{} of campaign {}: {queued} queued",
        counts::things(cells.len() as u64, "cell"),
        arguments.campaign
    );
    for (count, what) in [
        (retried, "of them failed before"),
        (waiting, "in the queue already"),
        (done, "done already"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    console::print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}

fn show(arguments: &StatusArguments) -> Result<Exit> {
    let nats = connect(&arguments.nats)?;
    let status = status::status(&Fleet::open(&nats)?, arguments.campaign.as_deref())?;
    match arguments.json {
        true => console::print_json(&status)?,
        false => console::print(&page::status(&status))?,
    }
    Ok(Exit::Done)
}

fn agents(arguments: &AgentsArguments) -> Result<Exit> {
    let nats = connect(&arguments.nats)?;
    // The protocol of the fleet is not asked: this shows which agents are of another.
    let agents = agent::all(&nats)?;
    let clocks: Vec<Option<clock::ClockOffset>> = agents
        .iter()
        .map(|agent| {
            let measured = clock::measure(&nats, &agent.name);
            measured
                .inspect_err(|error| {
                    console::status_line(&format!(
                        "could not read the clock of {}: {error:#}",
                        agent.name
                    ));
                })
                .ok()
        })
        .collect();
    if arguments.json {
        let list: Vec<serde_json::Value> = agents
            .iter()
            .zip(&clocks)
            .map(|(agent, clock)| json!({ "agent": agent, "clock": clock }))
            .collect();
        console::print_json(&list)?;
    } else {
        console::print(&page::agents(&agents, &clocks))?;
    }
    Ok(Exit::Done)
}

fn fetch(arguments: &FetchArguments) -> Result<Exit> {
    let nats = connect(&arguments.nats)?;
    let fleet = Fleet::open(&nats)?;
    let archive = RecordArchive::open(&nats)?;
    let ledger = Ledger::read(&fleet, arguments.campaign.as_deref())?;
    for entry in &ledger.unreadable {
        console::status_line(&entry.to_string());
    }
    let (mut fetched, mut there, mut failed, mut lost) = (0, 0, 0, 0);
    for (digest, result) in &ledger.results {
        let Some(cell) = ledger.cells.get(digest) else {
            continue;
        };
        let CellOutcome::Record { digest, .. } = &result.outcome else {
            failed += 1;
            continue;
        };
        let name = format!("{}-{}", cell.experiment, cell.short());
        match archive.fetch(digest, &arguments.results, &name) {
            Ok(true) => fetched += 1,
            Ok(false) => there += 1,
            Err(error) => {
                console::status_line(&format!("{}: {error:#}", cell.name()));
                lost += 1;
            }
        }
    }
    let open = ledger.cells.len() - ledger.results.len();
    let mut text = format!(
        "{} fetched to {}",
        counts::things(fetched, "record"),
        arguments.results.display()
    );
    for (count, what) in [
        (there, "there already"),
        (failed, "failed"),
        (lost, "could not be fetched"),
        (open as u64, "not done yet"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    console::print(&format!("{text}\n"))?;
    Ok(match lost {
        0 => Exit::Done,
        _ => Exit::Environment,
    })
}
