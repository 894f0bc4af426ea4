//! The command line: a file per verb, with its options and its code.

#[cfg(feature = "fleet")]
pub mod agent;
#[cfg(feature = "fleet")]
pub mod archive;
pub mod audit;
pub mod bisect;
pub mod capture;
pub mod check;
mod connection;
#[cfg(feature = "crash-test")]
pub mod crash_test;
pub mod datasets;
pub mod drive;
pub mod export;
pub mod fail_if;
pub mod features;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod history;
pub mod http;
pub mod init;
pub mod load;
#[cfg(feature = "fleet")]
pub mod load_link;
mod metrics;
#[cfg(feature = "fleet")]
mod nats;
pub mod pool;
pub mod quickstart;
pub mod record_reports;
mod record_set;
pub mod report;
pub mod run;
pub mod selftest;
#[cfg(feature = "fleet")]
pub mod serve;
#[cfg(feature = "fleet")]
pub mod server_link;
pub mod servers;
pub mod sweep;
pub mod sysbench;
pub mod verify;
pub mod watch;
pub mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Parser, Subcommand};
use dbduel_experiment::quantity::duration;
use dbduel_judge::IDENTITY;

use crate::exit::Exit;

/// Runs fair benchmark duels between database servers and reports which is faster, by how much, and with what
/// certainty.
#[derive(Debug, Parser)]
#[command(name = "dbduel", version = IDENTITY, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct CommandLine {
    /// Directory for servers, datasets and sandboxes [default: $XDG_DATA_HOME/dbduel or
    /// ~/.local/share/dbduel].
    #[arg(
        long,
        global = true,
        env = "DBDUEL_HOME",
        hide_env_values = true,
        value_name = "DIR",
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    home: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

/// The verb whose exit code `git bisect run` reads.
pub const STEP_VERB: &str = "bisect-step";

const EXIT_CODES: &str = "Exit codes:
  0    done; of a contest: every duel is decided
  1    the environment failed (a download, a server, a disk)
  2    the command line or the experiment file is wrong
  3    at least one duel or --fail-if rule is undecided; of bisect: no change was found; of verify:
       cannot be determined
  4    at least one duel is void; of audit: the servers are not comparable, or with --fix those
       of the file that it writes; of verify: the record was changed; of crash-test: commits were
       lost or data are corrupt; of capture anonymise: rows of the dump were dropped
  5    a --fail-if rule matched, or history found a new regression
  130  interrupted; resume with `dbduel run DIR`";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a first duel: SQLite with a rollback journal against a write-ahead log, in a minute, or MariaDB in two.
    Quickstart(quickstart::Arguments),
    /// Write an experiment file with comments, from options or answers to questions.
    Init(init::Arguments),
    /// Run an experiment file, or resume the record in a directory.
    Run(run::Arguments),
    /// Measure what each differing setting of two contenders contributes to their difference.
    Attribute(run::AttributeArguments),
    /// Find the version or commit of a server that changed its throughput.
    Bisect(bisect::Arguments),
    /// Answer `git bisect run` for the commit under test: 0 good, 1 bad, 125 cannot be tested, 128 failed, 129 undecided.
    #[command(name = STEP_VERB)]
    BisectStep(bisect::git_step::Arguments),
    /// Put load on a running server, without a contest.
    Load(Box<load::Arguments>),
    /// Cut the power under load, many times, and look for lost commits and corrupt data after each restart.
    #[cfg(feature = "crash-test")]
    CrashTest(crash_test::Arguments),
    /// Accept sysbench's command line: its options, tests, scripts and output.
    Sysbench(sysbench::Arguments),
    /// Render the report of a record.
    Report(report::Arguments),
    /// Find change points over many records of one experiment.
    History(history::Arguments),
    /// Combine records of one duel from several machines, as a random effect.
    Pool(pool::Arguments),
    /// Measure what dbduel can detect on this machine, with two equal contenders.
    Selftest(selftest::Arguments),
    /// Export the tables behind a report as CSV, SQLite or Parquet.
    Export(export::Arguments),
    /// Follow a running contest in a browser on this machine.
    Watch(watch::Arguments),
    /// Check the consistency conditions of a workload's tables.
    Check(check::Arguments),
    /// Audit whether a comparison is fair: effective settings of servers, without load.
    Audit(Box<audit::Arguments>),
    /// Verify that a record is complete and unedited, and that its reports follow from it.
    Verify(verify::Arguments),
    /// List and install server builds.
    #[command(subcommand)]
    Servers(servers::Action),
    /// List and remove snapshots of loaded datasets.
    #[command(subcommand)]
    Datasets(datasets::Action),
    /// Import a server's SQL log into a capture, and show what it holds.
    #[command(subcommand)]
    Capture(capture::Action),
    /// List workloads and their parameters.
    Workloads(workloads::Arguments),
    /// Offer this machine to a fleet, and run its contests with --work.
    #[cfg(feature = "fleet")]
    Agent(agent::Arguments),
    /// Run contests on many machines: submit, status, agents, fetch.
    #[command(subcommand)]
    #[cfg(feature = "fleet")]
    Fleet(fleet::Action),
    /// Keep records in the object store of a nats-server: push, list, get.
    #[command(subcommand)]
    #[cfg(feature = "fleet")]
    Archive(archive::Action),
    /// The load process; `run` starts it and sends orders on standard input.
    #[command(hide = true)]
    Drive(drive::Arguments),
    /// The load process of a contest with load hosts; `run` starts it instead of `drive`.
    #[command(hide = true)]
    #[cfg(feature = "fleet")]
    LoadLink(load_link::Arguments),
    /// The link to a host of servers; `run` starts one for each.
    #[command(hide = true)]
    #[cfg(feature = "fleet")]
    ServerLink(server_link::Arguments),
    /// Servers for a contest of another machine; `agent --servers` starts it and sends orders on standard input.
    #[command(hide = true)]
    #[cfg(feature = "fleet")]
    Serve(serve::Arguments),
    #[cfg(not(all(feature = "crash-test", feature = "fleet")))]
    #[command(flatten)]
    Absent(features::AbsentVerb),
}

impl CommandLine {
    /// True when `git bisect` reads the exit code.
    #[must_use]
    pub fn is_of_git_bisect(&self) -> bool {
        matches!(self.verb, Verb::BisectStep(_))
    }

    /// Runs the verb.
    ///
    /// # Errors
    /// Those of the verb.
    pub fn execute(self) -> Result<Exit> {
        let home = self.home;
        match self.verb {
            Verb::Quickstart(arguments) => quickstart::quickstart(home, &arguments),
            Verb::Init(arguments) => init::init(home, &arguments),
            Verb::Run(arguments) => run::run(home, &arguments, run::Purpose::Run),
            Verb::Attribute(arguments) => run::attribute(home, &arguments),
            Verb::Bisect(arguments) => bisect::bisect(home, &arguments),
            Verb::BisectStep(arguments) => bisect::git_step::bisect_step(home, &arguments),
            Verb::Load(arguments) => load::load(&arguments),
            #[cfg(feature = "crash-test")]
            Verb::CrashTest(arguments) => crash_test::crash_test(home, &arguments),
            Verb::Selftest(arguments) => selftest::selftest(home, &arguments),
            Verb::History(arguments) => history::history(&arguments),
            Verb::Pool(arguments) => pool::run(&arguments),
            Verb::Sysbench(arguments) => Ok(sysbench::sysbench(&arguments.words)),
            Verb::Report(arguments) => report::report(&arguments),
            Verb::Export(arguments) => export::export(&arguments),
            Verb::Watch(arguments) => watch::watch(&arguments),
            Verb::Check(arguments) => check::check(&arguments),
            Verb::Audit(arguments) => audit::audit(home, &arguments),
            Verb::Verify(arguments) => verify::verify(&arguments),
            Verb::Servers(action) => servers::servers(home, action),
            Verb::Datasets(action) => datasets::datasets(home, action),
            Verb::Capture(action) => capture::capture(home, &action),
            Verb::Workloads(arguments) => workloads::workloads(&arguments),
            #[cfg(feature = "fleet")]
            Verb::Agent(arguments) => agent::agent(home, &arguments),
            #[cfg(feature = "fleet")]
            Verb::Fleet(action) => fleet::fleet(&action),
            #[cfg(feature = "fleet")]
            Verb::Archive(action) => archive::archive(&action),
            Verb::Drive(arguments) => drive::drive(&arguments),
            #[cfg(feature = "fleet")]
            Verb::LoadLink(arguments) => load_link::load_link(&arguments),
            #[cfg(feature = "fleet")]
            Verb::ServerLink(arguments) => server_link::server_link(&arguments),
            #[cfg(feature = "fleet")]
            Verb::Serve(arguments) => serve::serve(home, &arguments),
            #[cfg(not(all(feature = "crash-test", feature = "fleet")))]
            Verb::Absent(verb) => Err(verb.refusal().into()),
        }
    }
}

/// A workload parameter and its value.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected KEY=VALUE such as `tables=4`, found `{text}`"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// A duration above zero.
fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than zero, such as `20 min`".to_owned()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_home_is_accepted() {
        let parsed = CommandLine::try_parse_from(["dbduel", "--home", "", "servers", "list"]);
        assert_eq!(parsed.unwrap().home, Some(PathBuf::new()));
    }
}
