//! `dbduel check`: checks the consistency conditions of a workload's tables on a running server, and that acknowledged
//! commits are there.

mod log;
mod page;

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_driver::{ConnectOptions, Connection};
use dbduel_record::plan::{self, Parameters};
use dbduel_workloads::fill::{self, RESUME};
use dbduel_workloads::parameters::ScriptAccess;
use dbduel_workloads::{Moment, Workload, completion};

use super::connection::{Server, Tls};
use super::connection::{connect as connect_to, endpoint, tls};
use super::key_and_value;
use crate::console;
use crate::exit::Exit;
use log::Log;
use page::Document;

/// Options of `dbduel check`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    pub server: Server,
    /// Workload whose conditions are checked; `dbduel workloads` lists the names [default: from the record of
    /// --against].
    #[arg(long, value_name = "NAME", required_unless_present = "against")]
    pub workload: Option<String>,
    /// Parameters that the tables were loaded with [default: from the record of --against].
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    #[command(flatten)]
    pub tls: Tls,
    /// Also check conditions that hold only before the first transaction.
    #[arg(long)]
    pub fresh: bool,
    /// Compare the tables with acknowledged commits, from a record or a file written by `load --commits`.
    #[arg(long, value_name = "RECORD|FILE")]
    pub against: Option<PathBuf>,
    /// Contender whose commit log is compared, when the record has several.
    #[arg(long, value_name = "NAME", requires = "against")]
    pub contender: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Time for one condition; the largest tables take minutes, none should take an hour.
const CONDITION_DEADLINE: Duration = Duration::from_secs(3600);

/// Checks the workload's conditions, and its durability log when one is given.
///
/// # Errors
/// When an argument is invalid, or the server, its tables or the log cannot be read.
pub fn check(arguments: &Arguments) -> Result<Exit> {
    let log = match &arguments.against {
        Some(path) => Some(Log::read(path, arguments.contender.as_deref())?),
        None => None,
    };
    let asked = asked(arguments, log.as_ref())?;
    let workload = dbduel_workloads::find(&asked.name)?;
    let resolved = completion::complete(
        workload,
        &asked.parameters,
        Path::new(""),
        ScriptAccess::Confined,
    )?
    .parameters;
    let mut connection = connect(arguments)?;
    if fill::is_unfinished(&mut connection)? {
        bail!(
            "a fill of the tables in database `{}` was interrupted; with `dbduel load --prepare`, {RESUME}",
            arguments.database
        );
    }
    let moment = if arguments.fresh {
        Moment::Fresh
    } else {
        Moment::AfterLoad
    };
    let verification = workload.verify(&resolved, &mut connection, moment)?;
    if verification.conditions.is_empty() {
        require_tables(workload, &resolved, &mut connection, &arguments.database)?;
    }
    let mut document = Document::of(workload, &verification);
    if let Some(log) = &log {
        let commit_check = workload
            .verify_commits(&resolved, &mut connection, &log.ranges)?
            .with_context(|| format!("the workload `{}` keeps no durability log", asked.name))?;
        document = document.with(page::Durability::of(log, &commit_check));
    }
    if arguments.json {
        console::print_json(&document)?;
    } else {
        console::print(&page::text(&document))?;
    }
    Ok(if document.holds {
        Exit::Done
    } else {
        Exit::Void
    })
}

/// Refuses a database that lacks one of the workload's tables.
fn require_tables(
    workload: &dyn Workload,
    parameters: &Parameters,
    connection: &mut Connection,
    database: &str,
) -> Result<()> {
    let present = fill::table_names(connection)?;
    let tables = workload.tables(connection.dialect(), parameters);
    let missing = tables.iter().find(|table| !present.contains(&table.name));
    if let Some(table) = missing {
        bail!(
            "database `{database}` has no table `{}`, which the workload `{}` needs; `dbduel load --prepare` fills it",
            table.name,
            workload.name()
        );
    }
    Ok(())
}

/// The record's workload, with name and parameters from the command line taking precedence.
fn asked(arguments: &Arguments, log: Option<&Log>) -> Result<plan::Workload> {
    let recorded = log.and_then(|log| log.workload.clone());
    let mut asked = match (&arguments.workload, recorded) {
        (Some(name), Some(recorded)) if dbduel_workloads::find(name)?.name() == recorded.name => {
            recorded
        }
        (Some(name), _) => plan::Workload {
            name: name.clone(),
            parameters: Default::default(),
        },
        (None, Some(recorded)) => recorded,
        (None, None) => {
            bail!(
                "a commit log without a record does not name its workload; give it with --workload"
            )
        }
    };
    for (name, value) in &arguments.set {
        asked
            .parameters
            .insert(name.replace('-', "_"), value.as_str().into());
    }
    Ok(asked)
}

fn connect(arguments: &Arguments) -> Result<Connection> {
    let (address, credentials) = endpoint(&arguments.server)?;
    let options = ConnectOptions {
        dialect: address.dialect,
        database: Some(arguments.database.clone()),
        statement_deadline: CONDITION_DEADLINE,
        tls: tls(&arguments.tls),
        ..ConnectOptions::default()
    };
    connect_to(&address.place, &credentials, &options)
}
