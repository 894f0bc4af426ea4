//! dbduel: a benchmark lab that stages fair duels between database servers.
//!
//! Two halves with one joint: [`lab`] makes records, [`judge`] and [`report`] only read them.

mod cli;
mod commands;
mod console;
mod exit;
mod home;
mod interrupt;
mod judge;
mod lab;
mod report;

use clap::Parser as _;

use cli::{Cli, Verb};
use exit::Exit;
use interrupt::Interrupted;
use lab::experiment::document::Troubles;

fn main() -> Exit {
    let Cli { home, verb } = Cli::parse();
    let result = match verb {
        Verb::Quickstart(arguments) => commands::quickstart::quickstart(home, &arguments),
        Verb::Run(arguments) => commands::run::run(home, &arguments),
        Verb::Report(arguments) => commands::report::report(&arguments),
        Verb::Servers(verb) => commands::servers::servers(home, verb),
        Verb::Datasets(verb) => commands::datasets::datasets(home, verb),
        Verb::Workloads(arguments) => commands::workloads::workloads(&arguments),
        Verb::Drive(arguments) => commands::drive::drive(&arguments),
    };
    result.unwrap_or_else(|error| {
        if error.is::<Interrupted>() {
            return Exit::Interrupted;
        }
        eprintln!("dbduel: {error:#}");
        if error.is::<Troubles>() {
            Exit::Usage
        } else {
            Exit::Environment
        }
    })
}
