//! `dbduel run` and `dbduel quickstart`: which contest, and what is done beside it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::some_time;
use crate::commands::fail_if::FailIf;
use crate::commands::http::Loopback;

/// `dbduel quickstart`.
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
}

/// `dbduel run`.
#[derive(Debug, Args)]
pub struct Run {
    /// An experiment file (TOML), or the directory of a record to go on with.
    pub target: PathBuf,
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print the plan as JSON and stop; starts nothing.
    #[arg(long)]
    pub plan: bool,
    /// With --plan, run the top level of a script that is the workload, to learn its options, with everything that a
    /// program may do. Without this it is given neither os, io nor ffi.
    #[arg(long, requires = "plan")]
    pub run_script: bool,
    /// Keep the servers' sandboxes after the contest.
    #[arg(long)]
    pub keep: bool,
    /// After the last block, put every server under load for some seconds more and sample its stacks with
    /// `perf`, for flame graphs in the report. None of that counts.
    #[arg(long)]
    pub stacks: bool,
    /// Give a record so much more time; what comes beyond the plan is decided by the reserve of the
    /// error probability that was kept for it.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub budget: Option<Duration>,
    /// Exit with 5 when this is the case, such as `slower than 3 %`: the whole interval is beyond.
    /// `possibly slower than 3 %`: some of it is. Also `p99 higher than 10 %` (p50, p95, p99, cpu,
    /// written). Can be given several times.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
    /// Tell how the contest stands as OpenMetrics text, at http://ADDRESS/metrics while it runs; 127.0.0.1:0
    /// takes a free port. A loopback address only: whoever collects elsewhere comes through a tunnel.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<Loopback>,
    /// Show the report in a browser on this machine while it grows, as `dbduel watch` does; the address is
    /// printed. A page that is open is made anew every 10 s at most, which takes processor time beside the
    /// contest.
    #[arg(long)]
    pub live: bool,
}
