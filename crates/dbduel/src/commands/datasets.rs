//! `dbduel datasets`: the snapshots of loaded data, and dumps that were taken of servers.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use dbduel_experiment::quantity::size;
use dbduel_lab::snapshots::Snapshots;
use serde_json::{Value, json};

use super::run::server_dump;
use crate::console;
use crate::exit::Exit;
use crate::home;

/// Verbs of `dbduel datasets`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the snapshots, and the dumps that `[data] server` took.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots or dumps. A dump that a contest needs which is not finished stays.
    Remove {
        /// Identifiers as `datasets list` shows them, or `all` for all snapshots.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove the least recently used snapshots until the others fit into the limit. Dumps are not counted.
    Prune {
        /// Space for the snapshots that stay, such as "10 GiB".
        #[arg(long, value_name = "SIZE", value_parser = size)]
        keep: u64,
    },
}

/// Lists or removes snapshots and dumps.
///
/// # Errors
/// When one does not exist or cannot be removed.
pub fn datasets(home: Option<PathBuf>, verb: Action) -> Result<Exit> {
    let home = home::find(home)?;
    let snapshots = Snapshots::new(&home);
    let list = snapshots.list()?;
    let dumps = server_dump::kept(&home)?;
    let mut text = String::new();
    match verb {
        Action::List { json: true } => {
            let snapshots = list
                .iter()
                .map(|(id, description)| json!({ "id": id, "snapshot": description }));
            let dumps = dumps.iter().map(
                |dump| json!({ "id": dump.id, "dump": { "path": dump.path, "bytes": dump.bytes } }),
            );
            text = console::json(&snapshots.chain(dumps).collect::<Vec<Value>>())?;
        }
        Action::List { json: false } => {
            let snapshots = list.iter().map(|(id, found)| (id, found.bytes));
            let dumps = dumps.iter().map(|dump| (&dump.id, dump.bytes));
            for (id, bytes) in snapshots.chain(dumps) {
                writeln!(text, "{:>8} MiB  {id}", bytes >> 20)?;
            }
            if text.is_empty() {
                text.push_str("no snapshots; a contest stores one of each dataset that it loads\n");
            }
        }
        Action::Remove { ids } => {
            let is_all = ids.iter().any(|id| id == "all");
            let chosen = if is_all {
                list.into_iter().map(|(id, _)| id).collect()
            } else {
                ids
            };
            for id in chosen {
                let bytes = match dumps.iter().find(|dump| dump.id == id) {
                    Some(dump) => {
                        server_dump::remove(&home, dump)?;
                        dump.bytes
                    }
                    None => snapshots.remove(&id)?,
                };
                writeln!(text, "removed {id} ({} MiB)", bytes >> 20)?;
            }
            if is_all && !dumps.is_empty() {
                text.push_str(
                    "dumps stay, as no server has these rows again: name each to remove it\n",
                );
            }
        }
        Action::Prune { keep } => {
            for (id, bytes) in snapshots.prune(keep)? {
                writeln!(text, "removed {id} ({} MiB)", bytes >> 20)?;
            }
            if text.is_empty() {
                writeln!(text, "nothing to remove: all snapshots fit")?;
            }
        }
    }
    console::print(&text)?;
    Ok(Exit::Done)
}
