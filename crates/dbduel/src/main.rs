//! dbduel: a benchmark lab that stages fair duels between database servers.
//!
//! Two halves with one joint: [`lab`] makes records, [`judge`] and [`report`] only read them.

mod chance;
mod cli;
mod commands;
mod console;
mod counts;
mod exit;
#[cfg(test)]
mod faulty_files;
mod home;
mod interrupt;
mod judge;
mod lab;
mod percent;
mod report;
mod visible;

use clap::Parser as _;
use dbduel_load::address::AddressError;
use dbduel_load::workloads::UnknownWorkload;
use dbduel_load::workloads::completion::CompletionError;
use dbduel_load::workloads::parameters::ParameterError;
use dbduel_record::store::RecordError;

use cli::{Cli, Verb};
use commands::run::{NotARecord, Unreadable};
use commands::selftest::UnfitInjection;
use exit::Exit;
use interrupt::Interrupted;
use lab::contest::NotComparable;
use lab::experiment::document::Troubles;
use lab::server::NameError;

fn main() -> Exit {
    let Cli { home, verb } = Cli::parse();
    let result = match verb {
        Verb::Quickstart(arguments) => commands::quickstart::quickstart(home, &arguments),
        Verb::Run(arguments) => commands::run::run(home, &arguments),
        Verb::Load(arguments) => commands::load::load(&arguments),
        Verb::Selftest(arguments) => commands::selftest::selftest(home, &arguments),
        Verb::History(arguments) => commands::history::history(&arguments),
        Verb::Sysbench(arguments) => Ok(commands::sysbench::sysbench(&arguments.words)),
        Verb::Report(arguments) => commands::report::report(&arguments),
        Verb::Export(arguments) => commands::export::export(&arguments),
        Verb::Watch(arguments) => commands::watch::watch(&arguments),
        Verb::Check(arguments) => commands::check::check(&arguments),
        Verb::Audit(arguments) => commands::audit::audit(home, &arguments),
        Verb::Verify(arguments) => commands::verify::verify(&arguments),
        Verb::Servers(verb) => commands::servers::servers(home, verb),
        Verb::Datasets(verb) => commands::datasets::datasets(home, verb),
        Verb::Workloads(arguments) => commands::workloads::workloads(&arguments),
        Verb::Drive(arguments) => commands::drive::drive(&arguments),
    };
    result.unwrap_or_else(|error| {
        if error.is::<Interrupted>() {
            return Exit::Interrupted;
        }
        console::complain(&format!("dbduel: {error:#}"));
        if error.is::<NotComparable>() {
            return Exit::Void;
        }
        if is_usage(&error) {
            Exit::Usage
        } else {
            Exit::Environment
        }
    })
}

/// True when what was typed or written is wrong, and not the surroundings.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Troubles>()
        || error.is::<AddressError>()
        || error.is::<UnknownWorkload>()
        || error.is::<ParameterError>()
        || error.is::<CompletionError>()
        || error.is::<UnfitInjection>()
        || error.is::<NotARecord>()
        || error.downcast_ref().is_some_and(RecordError::is_of_place)
        || error.is::<Unreadable>()
        || error.is::<NameError>()
}
