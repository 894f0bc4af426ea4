//! Load levels: number of clients, arrival of transactions, and the processes and machines that drive them.

use serde::{Deserialize, Serialize};

use super::SuiteWorkload;

/// Number of clients and arrival of their transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadLevel {
    /// Connections, each with its own stream of transactions.
    pub clients: u32,
    /// When transactions fall due.
    pub arrival: Arrival,
    /// The workload of a suite that the clients run; absent when all levels have the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<SuiteWorkload>,
}

impl LoadLevel {
    /// Number of clients that have a transaction under way at any time, however fast the server is: all of them when
    /// each begins its next one at once; otherwise zero, since none is certain to.
    #[must_use]
    pub fn busy_clients(&self) -> u32 {
        match self.arrival {
            Arrival::Closed { think_ms: 0.0 } => self.clients,
            Arrival::Closed { .. } | Arrival::Constant { .. } | Arrival::Poisson { .. } => 0,
        }
    }

    /// Display name of the level: `16 clients`, or a workload of a suite by its name.
    #[must_use]
    pub fn label(&self) -> String {
        if let Some(cell) = &self.cell {
            return cell.name.clone();
        }
        let clients = match self.clients {
            1 => "1 client".to_owned(),
            count => format!("{count} clients"),
        };
        match self.arrival {
            Arrival::Closed { think_ms: 0.0 } => clients,
            Arrival::Closed { think_ms } => format!("{clients}, {think_ms} ms think time"),
            Arrival::Constant { per_second } => format!("{clients}, {per_second}/s constant"),
            Arrival::Poisson { per_second } => format!("{clients}, {per_second}/s Poisson"),
        }
    }
}

/// When transactions fall due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrival {
    /// A client's next transaction is due when its previous one is done, plus the think time.
    Closed {
        /// Think time, milliseconds.
        think_ms: f64,
    },
    /// Equally spaced in time, independent of the server.
    Constant {
        /// Transactions per second, all clients together.
        per_second: f64,
    },
    /// Exponentially distributed gaps.
    Poisson {
        /// Transactions per second on average, all clients together.
        per_second: f64,
    },
}

/// A latency objective: this share of the transactions is done within this time of being due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Objective {
    /// The share, for example 0.99.
    pub share: f64,
    /// The time, microseconds.
    pub latency_us: f64,
}

/// A search for the highest rate that meets the objective. Rates are added to the plan's levels during the contest,
/// each chosen from the results of those before; the journal has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSearch {
    /// Maximum number of rates that are tried, the first one included.
    pub rates_max: u32,
    /// The search ends when the rates around the limit differ by no more than this share.
    pub precision: f64,
    /// Blocks of a rate after which it is checked, ascending; the last is the most it gets.
    pub looks: Vec<u32>,
}

/// How the load process is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadProcess {
    /// Operating system threads that drive the clients.
    pub threads: u32,
    /// How long each wait of a thread polls before it sleeps, microseconds; 0 means that it sleeps at once. Absent in
    /// plans from before busy polling.
    #[serde(default)]
    pub busy_poll_us: u32,
    /// Processor numbers that the load process is confined to; empty means no confinement.
    pub cores: Vec<u32>,
    /// Processor numbers that managed servers are confined to; empty means no confinement.
    pub server_cores: Vec<u32>,
    /// Limit of what managed servers read and write; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_io: Option<IoLimit>,
}

/// Separate machines for the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadHosts {
    /// Address of the servers' machine, on which servers listen for clients; or the name of the agent that runs them.
    /// Empty where each contender names its own.
    pub servers: String,
    /// Names of the agents on the load hosts. Client n runs on host n mod their number; each host has a load process
    /// with [`LoadProcess::threads`] threads.
    pub load: Vec<String>,
}

impl LoadHosts {
    /// Display name of the load hosts: `load1, load2`.
    #[must_use]
    pub fn label(&self) -> String {
        self.load.join(", ")
    }
}

/// Limit of what each managed server reads from its device, and the same limit for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoLimit {
    /// Bytes per second; absent means no limit.
    #[serde(default)]
    pub bytes_per_s: Option<u64>,
    /// Requests to the device per second; absent means no limit.
    #[serde(default)]
    pub operations_per_s: Option<u64>,
}

impl IoLimit {
    /// Display name: `20 MiB/s, 500/s`.
    #[must_use]
    pub fn label(&self) -> String {
        let bytes = self.bytes_per_s.map(|bytes| match bytes {
            bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB/s", bytes >> 20),
            bytes => format!("{:.1} KiB/s", bytes as f64 / 1024.0),
        });
        let operations = self.operations_per_s.map(|count| format!("{count}/s"));
        let parts: Vec<String> = bytes.into_iter().chain(operations).collect();
        parts.join(", ")
    }
}
