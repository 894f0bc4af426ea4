//! `dbduel selftest`: measures which differences the lab detects on this machine, and its own cost.
//!
//! One duel of a contender with itself gives the width of the interval minute by minute, and a server
//! that answers at once gives the load process's own cost. A series of short duels, with or without a
//! known difference, counts how many verdicts are right. The result is kept in the home and copied into
//! every later record of the same machine, so that reports can cite it.

mod duel;
mod null;
mod series;
mod steadiness;
pub mod store;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_experiment::check_stalls;
use dbduel_experiment::quantity::{self, duration, share};
use dbduel_machine::interrupt;
use dbduel_record::facts::{Resolution, SelfTest};
use dbduel_record::plan::InjectedStalls;
use dbduel_report::words;
use dbduel_server::{Home, ServerName, Silent, install};

use crate::console;
use crate::exit::Exit;
use crate::home;
use duel::Match;

/// Options of `dbduel selftest`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The server [default: the installed one, or mariadb-10.11].
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// Workload.
    #[arg(long, default_value = "oltp-point-select", value_name = "NAME")]
    pub workload: String,
    /// Connections.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,
    /// Time for warm-up and slices of one duel; 40 s or more.
    #[arg(long, default_value = "3 min", value_name = "TIME", value_parser = duration)]
    pub budget: Duration,
    /// Length of all slices [default: chosen by a pilot].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub slice: Option<Duration>,
    /// Run this many short duels and count right verdicts, instead of one duel for the resolution.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub duels: Option<u32>,
    /// Inject a known difference: stop the second server for this share of its slices, such as `10 %`.
    #[arg(long, value_name = "SHARE", value_parser = injected, requires = "duels")]
    pub inject: Option<f64>,
    /// Inject stalls: stop the second server for this long after each time awake, such as `1 s every 4 s` or `1 s every
    /// 2 s to 6 s`. A stall may outlast a turn.
    #[arg(long, value_name = "STALLS", value_parser = stalls, requires = "duels", conflicts_with = "inject")]
    pub stall: Option<InjectedStalls>,
    /// Differences within this count as equivalent in a series.
    #[arg(long, default_value = "5 %", value_name = "SHARE", value_parser = share)]
    pub horizon: f64,
    /// Directory in which the records' directories are created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn injected(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| match (0.001..=0.9).contains(&share) {
        true => Ok(share),
        false => Err(format!("expected from 0.1 % to 90 %, found `{text}`")),
    })
}

fn stalls(text: &str) -> Result<InjectedStalls, String> {
    quantity::stalls(text).and_then(|stalls| check_stalls(&stalls).map(|()| stalls))
}

/// Server to fetch when none is installed.
const FETCHED: &str = "mariadb-10.11";

/// Tests the lab and stores the result.
///
/// # Errors
/// When the arguments contradict each other or a duel cannot be conducted.
pub fn selftest(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    let set = Match::of(arguments, server(&home, arguments)?);
    if 0.0 < set.injected_share && set.injected_share <= set.horizon {
        return Err(UnfitInjection.into());
    }
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let mut kept = store::read(&home)
        .filter(|kept| kept.host == store::this_host())
        .unwrap_or_default();
    kept.host = store::this_host();
    let exit = match arguments.duels {
        None => single(&home, &set, &mut kept)?,
        Some(duels) => series::run(&home, &set, duels, &mut kept)?,
    };
    if exit != Exit::Interrupted {
        store::write(&home, &kept)?;
    }
    if arguments.json {
        console::print_json(&kept)?;
    }
    Ok(exit)
}

/// An injected difference that the verdict could rightly call equivalent.
#[derive(Debug, thiserror::Error)]
#[error(
    "a difference within the horizon is rightly called equivalent, so it proves nothing; raise \
     `--inject` or `--stall`, or lower `--horizon`"
)]
pub struct UnfitInjection;

/// The server that was named, or the one of the quickstart.
fn server(home: &Home, arguments: &Arguments) -> Result<String> {
    if let Some(server) = &arguments.server {
        return Ok(server.clone());
    }
    let installed = install::install(&ServerName::parse("installed")?, home, &Silent);
    Ok(installed.map_or(FETCHED, |_| "installed").to_owned())
}

/// One duel over the whole budget, and the null server.
fn single(home: &Home, set: &Match, kept: &mut SelfTest) -> Result<Exit> {
    let null_server = null::measure(set)?;
    let Some(outcome) = set.run_duel(home)? else {
        return Ok(Exit::Interrupted);
    };
    if outcome.resolution.is_empty() {
        bail!(
            "the duel gave no interval ({}); its record is `{}`; give a longer --budget",
            outcome.described(),
            outcome.record.display()
        );
    }
    let summary = &outcome.summary;
    kept.at.clone_from(&summary.created);
    kept.dbduel.clone_from(&summary.planned_by);
    kept.server = outcome.server.clone();
    kept.workload.clone_from(&summary.workload.name);
    kept.clients = set.clients;
    kept.confidence = summary.rule.confidence;
    kept.resolution.clone_from(&outcome.resolution);
    kept.null_server = Some(null_server);
    if !set.is_quiet {
        console::print(&table(kept, &outcome.described()))?;
        console::print(&format!("record: {}\n", outcome.record.display()))?;
    }
    Ok(Exit::Done)
}

fn table(kept: &SelfTest, verdict: &str) -> String {
    let mut text = format!(
        "The lab against itself: {}, {}, {}\n\n  minutes  blocks  detectable difference\n",
        kept.server,
        kept.workload,
        words::clients(kept.clients)
    );
    for Resolution {
        minutes,
        blocks,
        half_width,
    } in &kept.resolution
    {
        text.push_str(&format!(
            "  {minutes:7.1}  {blocks:6}  ±{}\n",
            words::share(*half_width)
        ));
    }
    text.push_str(&format!(
        "\nHalf-width of the {} interval of the ratio of two equal contenders, valid at all times \
         at once.\nVerdict on the two: {verdict}\n",
        words::share(kept.confidence)
    ));
    if let Some(null) = &kept.null_server {
        text.push_str(&format!(
            "Null server: {} of client CPU per transaction ({} to {}, n = {}), {} transactions/s\n",
            words::latency(null.client_cpu_us_per_transaction),
            words::latency(null.low_us),
            words::latency(null.high_us),
            null.slices,
            words::number(null.transactions_per_s)
        ));
    }
    text
}
