//! `dbduel load`: one server, one workload, one load level.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use dbduel_experiment::quantity::{busy_poll, duration};

use crate::commands::connection::{Server, Tls};
use crate::commands::{key_and_value, positive_duration};

/// Options of `dbduel load`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    pub server: Server,
    /// Workload; `dbduel workloads` lists the names.
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Parameters of the workload; `dbduel workloads NAME` lists them.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Connections, each with one transaction at a time [default: 1, or as many as the workload requires].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: Option<u32>,
    /// Open loop: transactions due per second, independent of the server. Without it every client starts its next
    /// transaction when the last one is done.
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    pub rate: Option<f64>,
    /// Distribution of the arrivals of --rate.
    #[arg(long, value_enum, default_value_t = LoadArrival::Constant, requires = "rate")]
    pub arrival: LoadArrival,
    /// Pause of a client between two transactions, such as `5 ms`.
    #[arg(long, default_value = "0 s", value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub think_time: Duration,
    /// How long to measure. A step of fixed work (see `dbduel workloads insert-benchmark`) ends when the work is done, at
    /// the latest after this time.
    #[arg(long, default_value = "30 s", value_name = "TIME", value_parser = positive_duration)]
    pub duration: Duration,
    /// Load before the measurement, not counted [default: 5 s; none for a step of fixed work].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub warm_up: Option<Duration>,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    #[command(flatten)]
    pub tls: Tls,
    /// Create the database and fill the tables before the load.
    #[arg(long)]
    pub prepare: bool,
    /// Drop the workload's tables after the load.
    #[arg(long)]
    pub cleanup: bool,
    /// Threads that drive clients [default: a quarter of the processors, at least two; one when the machine has two
    /// processors and there are 32 clients or more; one per client, at most 16, while other programs are busy on them].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Busy polling: time that a waiting load thread polls for replies before it sleeps, at most `100 ms`. Latencies up to
    /// this time are exact to a few microseconds. Takes one processor per thread, so the server must not need it.
    #[arg(long, default_value = "0 s", value_name = "TIME", value_parser = busy_poll)]
    pub busy_poll: Duration,
    /// Seed of the clients' random values [default: drawn at random].
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Write latencies to a HdrHistogram interval log.
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Write acknowledged commits, for `dbduel check --against` after a crash. Only for workloads that keep a commit log.
    #[arg(long, value_name = "FILE")]
    pub commits: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Distribution of the arrivals of --rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadArrival {
    /// Equal gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= 1e9)
        .ok_or_else(|| "expected a number of transactions per second above 0".to_owned())
}
