//! Objects that the machines of a contest share through the object store of NATS: loaded data, and servers that hosts
//! do not fetch.

pub mod servers;
pub mod snapshots;

use std::time::Duration;

/// Time that a shared object is kept; the hosts of one contest fetch it within this time.
const KEEP: Duration = Duration::from_secs(24 * 3600);
