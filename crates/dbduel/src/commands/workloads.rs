//! `dbduel workloads`: lists the workloads and their parameters.

use std::fmt::Write as _;

use anyhow::Result;
use clap::Args;
use dbduel_workloads::Workload;

use crate::console;
use crate::exit::Exit;

/// Options of `dbduel workloads`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Show this workload with its parameters.
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Lists the workloads, or one with its parameters.
///
/// # Errors
/// When there is no such workload.
pub fn workloads(arguments: &Arguments) -> Result<Exit> {
    let chosen: Vec<&dyn Workload> = match &arguments.name {
        None => dbduel_workloads::WORKLOADS.to_vec(),
        Some(name) => vec![dbduel_workloads::find(name)?],
    };
    if arguments.json {
        let list: Vec<serde_json::Value> =
            chosen.iter().map(|workload| as_json(*workload)).collect();
        console::print_json(&list)?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for workload in &chosen {
        writeln!(text, "{:<24} {}", workload.name(), workload.about())?;
        if arguments.name.is_some() {
            for parameter in workload.parameters() {
                let default = parameter.default.value();
                writeln!(
                    text,
                    "  {:<22} {} Takes {}; default {default}.",
                    parameter.name, parameter.about, parameter.kind
                )?;
            }
        }
    }
    if arguments.name.is_none() {
        text.push_str("\n`dbduel workloads NAME` shows the parameters of one. A script written for sysbench can be one too:\n`[workload] script = \"mine.lua\"`, and `dbduel workloads script` shows what goes with it. So can the\nstatements of your own server: `dbduel workloads captured`.\n");
    }
    console::print(&text)?;
    Ok(Exit::Done)
}

fn as_json(workload: &dyn Workload) -> serde_json::Value {
    let parameters: Vec<serde_json::Value> = workload
        .parameters()
        .iter()
        .map(|parameter| {
            serde_json::json!({
                "name": parameter.name,
                "about": parameter.about,
                "takes": parameter.kind.to_string(),
                "default": parameter.default.value(),
            })
        })
        .collect();
    serde_json::json!({ "name": workload.name(), "about": workload.about(), "parameters": parameters })
}
