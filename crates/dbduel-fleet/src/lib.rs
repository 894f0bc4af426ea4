//! Contests on other machines: a work queue of cells, agents that take them, an archive of their records, all on NATS.
//!
//! A contest itself knows nothing of this: an agent runs `dbduel run` as a child and delivers the record.

mod access;
pub mod agent;
pub mod archive;
pub mod cell;
mod child;
pub mod clock;
pub mod hosts;
pub mod pack;
pub mod permitted;
mod shared;
pub mod status;
pub mod submit;
pub mod work;

use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_nats::{Entries, Queue};
use serde::{Deserialize, Serialize};

pub use access::NatsAccess;
pub use dbduel_nats::{AddressError, Nats, NatsAddress};

/// Version of the fleet's protocol: names on NATS, formats of cells and results.
pub const PROTOCOL: u32 = 1;

/// Subject on which every agent reports its state.
pub const AGENTS: &str = "dbduel.agents";
/// Time for the answers of agents.
pub const ANSWERS_WAIT: Duration = Duration::from_secs(1);

const QUEUE: &str = "dbduel-cells";
const CELLS: &str = "dbduel.cells";
const ENTRIES: &str = "dbduel-fleet";
/// A worker that does not renew its lease within this time loses its cell.
const LEASE: Duration = Duration::from_secs(20);
/// Key of the entry with the fleet's protocol.
const PROTOCOL_KEY: &str = "protocol";

/// Version of a fleet, written by the first program that used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FleetVersion {
    protocol: u32,
    dbduel: String,
}

/// A fleet of another protocol.
#[derive(Debug, thiserror::Error)]
#[error(
    "the fleet at {url} uses protocol {} of dbduel {}, and this is dbduel {} with protocol \
     {PROTOCOL}; use one version on all machines, or another nats-server",
    fleet.protocol,
    fleet.dbduel,
    env!("CARGO_PKG_VERSION")
)]
pub struct OtherProtocol {
    url: String,
    fleet: FleetVersion,
}

/// The parts of a fleet on a connection.
#[derive(Debug)]
pub struct Fleet<'n> {
    /// The connection to nats-server.
    pub nats: &'n Nats,
    /// Cells that wait or are being run.
    pub queue: Queue<'n>,
    /// Submitted cells and their results.
    pub entries: Entries<'n>,
}

impl<'n> Fleet<'n> {
    /// Opens the fleet of a nats-server, and creates it if missing.
    ///
    /// # Errors
    /// [`OtherProtocol`], or when the server refuses something.
    pub fn open(nats: &'n Nats) -> Result<Self> {
        let entries = nats.entries(ENTRIES, "dbduel: cells of a fleet and their results")?;
        let own = FleetVersion {
            protocol: PROTOCOL,
            dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        };
        if !entries.create(PROTOCOL_KEY, serde_json::to_vec(&own)?)? {
            let found = entries.get(PROTOCOL_KEY)?.unwrap_or_default();
            let fleet: FleetVersion = serde_json::from_slice(&found).with_context(|| {
                format!("the entry `{PROTOCOL_KEY}` of the fleet is not understood")
            })?;
            if fleet.protocol != PROTOCOL {
                let url = nats.url().to_owned();
                return Err(OtherProtocol { url, fleet }.into());
            }
        }
        Ok(Fleet {
            nats,
            queue: nats.queue(QUEUE, CELLS, LEASE)?,
            entries,
        })
    }
}
