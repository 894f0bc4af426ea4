//! `dbduel drive`: how the load process is started; what it does comes as orders.

use clap::Args;

/// `dbduel drive`.
#[derive(Debug, Args)]
pub struct Drive {
    /// Threads that drive clients.
    #[arg(long)]
    pub threads: u32,
    /// Microseconds that each wait of a thread polls before it sleeps.
    #[arg(long, default_value_t = 0)]
    pub busy_poll_us: u32,
    /// Processors to stay on, separated by commas.
    #[arg(long, value_delimiter = ',', num_args = 0..)]
    pub cores: Vec<String>,
}
