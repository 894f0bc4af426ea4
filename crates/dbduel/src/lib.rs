//! dbduel: a benchmark lab that stages fair duels between database servers.
//!
//! Two halves with one joint: `dbduel-lab` makes records, `dbduel-judge` and `dbduel-report` only read them.

mod commands;
mod console;
mod exit;
mod home;
mod referee;
#[cfg(test)]
mod simulation;

use clap::{CommandFactory as _, Parser as _};
use dbduel_capture::import::ImportError;
use dbduel_capture::show::NoClass;
use dbduel_capture::store::StoreError;
use dbduel_driver::address::AddressError;
use dbduel_machine::interrupt::{self, Interrupted};
use dbduel_record::store::RecordError;
use dbduel_workloads::UnknownWorkload;
use dbduel_workloads::completion::CompletionError;
use dbduel_workloads::parameters::ParameterError;

use commands::bisect::UnfitBisection;
use commands::capture::{ConsentMissing, OtherProduct};
use commands::features::BuiltWithout;
use commands::history::NoRecords;
use commands::init::InitError;
use commands::run::{NotARecord, Unreadable};
use commands::selftest::UnfitInjection;
use commands::{CommandLine, STEP_VERB};
use dbduel_experiment::NotCuttable;
use dbduel_experiment::document::Troubles;
use dbduel_judge::records::pool::NotOneDuel;
use dbduel_lab::contest::{NotComparable, ScriptFails};
use dbduel_server::NameError;
pub use exit::{Exit, GitBisectExit};

/// The definitions of the command line, for man pages, completions and reference pages.
#[must_use]
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Parses the command line and runs its verb.
#[must_use]
pub fn main() -> Exit {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return refused(&error),
    };
    match line.is_of_git_bisect() {
        false => executed(line),
        // A panic's code would be that of a bad commit.
        true => match std::panic::catch_unwind(|| executed(line)) {
            Ok(exit) => exit.of_step(),
            Err(_) => Exit::GitBisect(GitBisectExit::Failed),
        },
    }
}

/// Prints why a command line is not executed: it asks for help, or it is wrong.
fn refused(error: &clap::Error) -> Exit {
    // Without standard error nothing can be said.
    let _ = error.print();
    let is_step = std::env::args_os().any(|word| word == STEP_VERB);
    match (error.use_stderr(), is_step) {
        (false, _) => Exit::Done,
        (true, true) => Exit::Usage.of_step(),
        (true, false) => Exit::Usage,
    }
}

/// Runs the verb, and prints its error.
fn executed(line: CommandLine) -> Exit {
    line.execute().unwrap_or_else(|error| {
        if error.is::<Interrupted>() {
            return Exit::Interrupted;
        }
        console::status_line(&format!("dbduel: {error:#}"));
        // What fails after a request to end is its consequence.
        if interrupt::gives_up() {
            return Exit::Interrupted;
        }
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

/// True when the command line or the experiment file is wrong, not the environment.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Troubles>()
        || error.is::<ScriptFails>()
        || error.is::<AddressError>()
        || error.is::<UnknownWorkload>()
        || error.is::<ParameterError>()
        || error.is::<CompletionError>()
        || error.is::<UnfitInjection>()
        || error.is::<UnfitBisection>()
        || error.is::<NotARecord>()
        || error.is::<NoRecords>()
        || error.downcast_ref().is_some_and(RecordError::is_of_place)
        || error.is::<Unreadable>()
        || error.is::<NameError>()
        || error.is::<InitError>()
        || error.is::<NotCuttable>()
        || error.is::<BuiltWithout>()
        || is_nats_address(error)
        || error.is::<NotOneDuel>()
        || error.is::<NoClass>()
        || error.is::<ConsentMissing>()
        || error.is::<OtherProduct>()
        || error.downcast_ref().is_some_and(ImportError::is_of_input)
        || error.downcast_ref().is_some_and(StoreError::is_of_place)
}

/// True when it is the address of NATS that is wrong.
fn is_nats_address(error: &anyhow::Error) -> bool {
    #[cfg(feature = "fleet")]
    let is_it = error.is::<dbduel_fleet::AddressError>();
    #[cfg(not(feature = "fleet"))]
    let is_it = {
        let _ = error;
        false
    };
    is_it
}
