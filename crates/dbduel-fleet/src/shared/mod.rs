//! What the machines of a contest share through the object store of NATS: loaded data, and servers that hosts do not fetch.

pub mod servers;
pub mod snapshots;

use std::time::Duration;

/// Hosts of one contest want it within this time.
const KEEP: Duration = Duration::from_secs(24 * 3600);
