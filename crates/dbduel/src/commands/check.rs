//! `dbduel check`: do the tables on a running server hold what the workload promises of them?

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials};
use dbduel_load::workloads::{self, Moment, Verification, completion};

use crate::cli;
use crate::console;
use crate::exit::Exit;

/// Time for one condition; the largest tables take minutes, none should take an hour.
const CONDITION_DEADLINE: Duration = Duration::from_secs(3600);

/// Checks the workload's conditions.
///
/// # Errors
/// When an argument makes no sense, or the server or its tables cannot be read.
pub fn check(arguments: &cli::Check) -> Result<Exit> {
    let workload = workloads::find(&arguments.workload)?;
    let given = arguments
        .set
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let resolved = completion::complete(workload, &given, Path::new(""))?.parameters;
    let (address, user) = Address::parse_with_user(&arguments.server)?;
    let credentials = Credentials::new(
        user.unwrap_or_else(|| "root".to_owned()),
        password(arguments)?,
    );
    let options = ConnectOptions {
        database: Some(arguments.database.clone()),
        statement_deadline: CONDITION_DEADLINE,
        ..ConnectOptions::default()
    };
    let mut connection = Connection::connect(&address, &credentials, &options)?;
    let moment = if arguments.fresh {
        Moment::Fresh
    } else {
        Moment::AfterLoad
    };
    let verification = workload.verify(&resolved, &mut connection, moment)?;
    console::print(&as_text(workload.name(), &verification)?)?;
    Ok(if verification.holds() {
        Exit::Done
    } else {
        Exit::Void
    })
}

fn password(arguments: &cli::Check) -> Result<String> {
    let Some(path) = &arguments.password_file else {
        return Ok(std::env::var("DBDUEL_PASSWORD").unwrap_or_default());
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read the password file `{}`", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn as_text(workload: &str, verification: &Verification) -> Result<String> {
    let mut text = String::new();
    if verification.conditions.is_empty() {
        writeln!(
            text,
            "the workload `{workload}` promises nothing about its tables"
        )?;
    }
    for condition in &verification.conditions {
        let state = if condition.holds() {
            "holds   "
        } else {
            "VIOLATED"
        };
        writeln!(
            text,
            "{state}  {:<14} {} ({:.1} s)",
            condition.name, condition.about, condition.seconds
        )?;
        if let Some(example) = &condition.example {
            writeln!(
                text,
                "          {} violations, for example {example}",
                condition.violations
            )?;
        }
    }
    for (name, count) in &verification.counts {
        writeln!(text, "{count:>10}  {name}")?;
    }
    Ok(text)
}
