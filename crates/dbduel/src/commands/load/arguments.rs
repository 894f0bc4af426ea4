//! `dbduel load`: one server, one workload, one load level.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::commands::connection::{Server, Tls};
use crate::commands::{key_and_value, positive_duration};
use crate::lab::experiment::quantity::{busy_poll, duration};

/// Options of `dbduel load`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which server, and how to log in.
    #[command(flatten)]
    pub server: Server,
    /// What the clients do; `dbduel workloads` lists the names.
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Parameters of the workload; `dbduel workloads NAME` lists them.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Connections, each with one transaction at a time.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Transactions that fall due per second, whatever the server does; without it every client
    /// starts its next transaction when the last one is done.
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    pub rate: Option<f64>,
    /// How transactions that fall due at a rate are spread.
    #[arg(long, value_enum, default_value_t = LoadArrival::Constant, requires = "rate")]
    pub arrival: LoadArrival,
    /// Pause of a client between two transactions, such as `5 ms`.
    #[arg(long, default_value = "0 s", value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub think_time: Duration,
    /// How long to measure.
    #[arg(long, default_value = "30 s", value_name = "TIME", value_parser = positive_duration)]
    pub duration: Duration,
    /// Load before that, which is not counted.
    #[arg(long, default_value = "5 s", value_name = "TIME", value_parser = duration)]
    pub warm_up: Duration,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    /// How all connections use TLS.
    #[command(flatten)]
    pub tls: Tls,
    /// Create the database and fill the tables before the load.
    #[arg(long)]
    pub prepare: bool,
    /// Drop the workload's tables after the load.
    #[arg(long)]
    pub cleanup: bool,
    /// Threads that drive clients [default: a quarter of the processors, but at least two; one where 32 clients or
    /// more keep two processors busy with a server beside them].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Busy polling: how long a load thread that waits looks for replies again and again before it sleeps, at most
    /// `100 ms`. For latencies exact to a few microseconds; takes one processor per thread, which the server must not
    /// need. `2 ms` serves latencies up to two milliseconds; longer ones are late by as much as without it.
    #[arg(long, default_value = "0 s", value_name = "TIME", value_parser = busy_poll)]
    pub busy_poll: Duration,
    /// Root of the clients' random values [default: another one each time].
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Write the latencies as a HdrHistogram interval log.
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Write what the server acknowledged as committed, also when it crashed meanwhile, for
    /// `dbduel check --against`. Only workloads that keep such a log have something to write.
    #[arg(long, value_name = "FILE")]
    pub commits: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// How transactions that fall due at a rate are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadArrival {
    /// Equally spaced.
    Constant,
    /// At random: exponentially distributed gaps.
    Poisson,
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= 1e9)
        .ok_or_else(|| "expected a number of transactions per second above 0".to_owned())
}
