//! `dbduel datasets`: the snapshots of loaded data.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use dbduel_experiment::quantity::size;
use dbduel_lab::snapshots::Snapshots;

use crate::console;
use crate::exit::Exit;
use crate::home;

/// Verbs of `dbduel datasets`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the snapshots.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots.
    Remove {
        /// Identifiers as `datasets list` shows them, or `all`.
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove the least recently used snapshots until the others fit into the limit.
    Prune {
        /// Space for the snapshots that stay, such as "10 GiB".
        #[arg(long, value_name = "SIZE", value_parser = size)]
        keep: u64,
    },
}

/// Lists or removes snapshots.
///
/// # Errors
/// When a snapshot does not exist or cannot be removed.
pub fn datasets(home: Option<PathBuf>, verb: Action) -> Result<Exit> {
    let snapshots = Snapshots::new(&home::find(home)?);
    let list = snapshots.list()?;
    let mut text = String::new();
    match verb {
        Action::List { json: true } => {
            let list: Vec<serde_json::Value> = list
                .iter()
                .map(|(id, description)| serde_json::json!({ "id": id, "snapshot": description }))
                .collect();
            text = console::json(&list)?;
        }
        Action::List { json: false } => {
            for (id, description) in &list {
                writeln!(text, "{:>8} MiB  {id}", description.bytes >> 20)?;
            }
            if list.is_empty() {
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
                let bytes = snapshots.remove(&id)?;
                writeln!(text, "removed {id} ({} MiB)", bytes >> 20)?;
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
