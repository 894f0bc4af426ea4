//! `dbduel archive`: records in the object store of a nats-server.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use dbduel_fleet::archive::{Archived, Packed, RecordArchive};
use dbduel_fleet::cell::short;
use dbduel_report::words;

use super::history::records_in;
use super::nats::NatsArguments;
use crate::console;
use crate::exit::Exit;

/// Verbs of `dbduel archive`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Store records; records already in the archive are left unchanged.
    Push(PushArguments),
    /// List the index: question, contenders, workload, verdicts, machine.
    List(ListArguments),
    /// Fetch records, for any verb that reads records.
    Get(GetArguments),
}

/// Options of `dbduel archive push`.
#[derive(Debug, Args)]
pub struct PushArguments {
    /// Records, or directories of records.
    #[arg(required = true, value_name = "DIR")]
    records: Vec<PathBuf>,
    #[command(flatten)]
    nats: NatsArguments,
}

/// Options of `dbduel archive list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    nats: NatsArguments,
    /// List only records whose entry contains this text; case does not matter.
    #[arg(long, value_name = "TEXT")]
    find: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `dbduel archive get`.
#[derive(Debug, Args)]
pub struct GetArguments {
    /// First digits of a digest, from `archive list` or from a report; `all` fetches every record.
    #[arg(required = true, value_name = "DIGEST")]
    digests: Vec<String>,
    #[command(flatten)]
    nats: NatsArguments,
    /// Directory in which the records' directories are created; existing ones are left unchanged.
    #[arg(long, default_value = "results", value_name = "DIR")]
    results: PathBuf,
}

/// Stores, lists or fetches records.
///
/// # Errors
/// When NATS cannot be reached, a record cannot be read, or the store is full.
pub fn archive(action: &Action) -> Result<Exit> {
    match action {
        Action::Push(arguments) => push(arguments)?,
        Action::List(arguments) => list(arguments)?,
        Action::Get(arguments) => return get(arguments),
    }
    Ok(Exit::Done)
}

/// The records of the archive; names what else is in it.
fn listed(archive: &RecordArchive<'_>) -> Result<Vec<Archived>> {
    let (records, unreadable) = archive.list()?;
    for entry in unreadable {
        console::status_line(&entry.to_string());
    }
    Ok(records)
}

fn push(arguments: &PushArguments) -> Result<()> {
    let mut records = Vec::new();
    for place in &arguments.records {
        records.extend(records_in(place)?);
    }
    let nats = arguments.nats.connect("dbduel archive")?;
    let archive = RecordArchive::open(&nats)?;
    let folder = scratch_folder().context("could not create a folder for packed records")?;
    let pushed = records.iter().try_for_each(|record| {
        let packed = Packed::of(record, &folder.join("record.tar.gz"))?;
        let what = match archive.store(&packed)? {
            true => "stored",
            false => "there already",
        };
        let line = format!("{}  {}  {what}\n", short(&packed.digest), record.display());
        Ok(console::print(&line)?)
    });
    let _ = std::fs::remove_dir_all(&folder);
    pushed
}

/// A new folder that only its owner may enter.
fn scratch_folder() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let name = format!(
        "dbduel-archive-{}-{:x}",
        std::process::id(),
        dbduel_machine::random::fresh_seed()
    );
    let folder = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

fn list(arguments: &ListArguments) -> Result<()> {
    let nats = arguments.nats.connect("dbduel archive")?;
    let mut records = listed(&RecordArchive::open(&nats)?)?;
    if let Some(wanted) = &arguments.find {
        let wanted = wanted.to_lowercase();
        records.retain(|record| line(record).to_lowercase().contains(&wanted));
    }
    if arguments.json {
        console::print_json(&records)?;
        return Ok(());
    }
    let mut text: String = records.iter().map(line).collect();
    if records.is_empty() {
        text.push_str(
            "no records; `dbduel archive push DIR` and the agents of a fleet store them\n",
        );
    }
    Ok(console::print(&text)?)
}

fn line(record: &Archived) -> String {
    let index = &record.index;
    let contenders: Vec<String> = index
        .contenders
        .iter()
        .map(|(name, server)| format!("{name} ({server})"))
        .collect();
    let mut text = format!("{}  {}\n", short(&record.digest), index.question);
    for part in &index.verdicts {
        let _ = writeln!(text, "    {part}");
    }
    let _ = writeln!(
        text,
        "    {} on {}; {}; {}; {}",
        words::joined_texts(&contenders),
        index.workload,
        index.host,
        index.created,
        words::bytes(record.bytes)
    );
    text
}

/// A record that cannot be fetched does not keep the others from it.
fn get(arguments: &GetArguments) -> Result<Exit> {
    let nats = arguments.nats.connect("dbduel archive")?;
    let archive = RecordArchive::open(&nats)?;
    let mut wanted = Vec::new();
    for digits in &arguments.digests {
        match digits.as_str() {
            "all" => wanted.extend(listed(&archive)?),
            digits => wanted.push(archive.named(digits)?),
        }
    }
    let mut exit = Exit::Done;
    for record in wanted {
        // Times as they stand in names of records.
        let stamp: String = record
            .index
            .created
            .chars()
            .filter(char::is_ascii_digit)
            .take(14)
            .collect();
        let name = format!("{stamp}-{}", short(&record.digest));
        let what = match archive.fetch(&record.digest, &arguments.results, &name) {
            Ok(true) => "fetched",
            Ok(false) => "there already",
            Err(error) => {
                console::status_line(&format!("{error:#}"));
                exit = Exit::Environment;
                continue;
            }
        };
        let place = arguments.results.join(name);
        console::print(&format!(
            "{}  {}  {what}\n",
            short(&record.digest),
            place.display()
        ))?;
    }
    Ok(exit)
}
