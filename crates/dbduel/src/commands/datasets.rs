//! `dbduel datasets`: the snapshots of loaded data.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use crate::cli;
use crate::console;
use crate::exit::Exit;
use crate::home;
use crate::lab::dataset::Snapshots;

/// Lists or removes.
///
/// # Errors
/// When a snapshot does not exist or cannot be removed.
pub fn datasets(home: Option<PathBuf>, verb: cli::Datasets) -> Result<Exit> {
    let snapshots = Snapshots::new(&home::find(home)?);
    let list = snapshots.list()?;
    let mut text = String::new();
    match verb {
        cli::Datasets::List { json: true } => {
            let list: Vec<serde_json::Value> = list
                .iter()
                .map(|(id, description)| serde_json::json!({ "id": id, "snapshot": description }))
                .collect();
            text = console::json(&list)?;
        }
        cli::Datasets::List { json: false } => {
            for (id, description) in &list {
                writeln!(text, "{:>8} MiB  {id}", description.bytes >> 20)?;
            }
            if list.is_empty() {
                text.push_str("no snapshots; a contest keeps one of the data that it loads\n");
            }
        }
        cli::Datasets::Remove { ids } => {
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
    }
    console::print(&text)?;
    Ok(Exit::Done)
}
