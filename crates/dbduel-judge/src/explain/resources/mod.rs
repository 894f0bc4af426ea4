//! The resources that a transaction costs: rows of tables over the readings of the record, one table for each
//! kind of counter.

mod engine;
mod formats;
mod server;
mod time;
mod waits;

use serde::Serialize;

pub use time::carries;

/// Group of a resource; a report lists resources by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Processor time and scheduling of the server.
    Processor,
    /// Reads and writes of the server.
    Storage,
    /// Activity of the whole disk, for all programs.
    Disk,
    /// Buffer pool and flushing.
    Pages,
    /// Redo, binary log, syncs.
    Log,
    /// Row locks and indexes.
    Access,
    /// Compressed pages and trees.
    Formats,
    /// Waits of all threads, as the performance schema counts them.
    Waits,
    /// The load process.
    Client,
}

impl Group {
    /// The group as people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Processor => "processor",
            Group::Storage => "server's input and output",
            Group::Disk => "disk, all users of it",
            Group::Pages => "pages",
            Group::Log => "logs",
            Group::Access => "locks and lookups",
            Group::Formats => "compression and trees",
            Group::Waits => "waits of all threads (performance schema)",
            Group::Client => "load process",
        }
    }
}

/// Unit of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Bytes.
    Bytes,
    /// Events.
    Count,
}

/// Every table, in the order of a report.
const TABLES: [&[Resource]; 5] = [
    server::SERVER,
    engine::ENGINE,
    formats::FORMATS,
    waits::WAITS,
    server::CLIENT,
];

/// Every resource, in the order of a report.
pub fn all() -> impl Iterator<Item = &'static Resource> {
    TABLES.into_iter().flatten()
}

/// The name of every resource.
pub fn resource_ids() -> impl Iterator<Item = &'static str> {
    all().map(|resource| resource.id)
}

/// Role of a resource in an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One of the few that sum up others.
    Main,
    /// A part of what a main one sums up.
    Detail,
    /// A level such as dirty pages, which is not divided by transactions.
    Level,
}

#[derive(Debug)]
pub struct Resource {
    pub role: Role,
    /// Stable name.
    pub id: &'static str,
    /// Name for people, fit for the middle of a sentence.
    pub name: &'static str,
    /// Unit of the cost; readings in seconds become microseconds.
    pub unit: Unit,
    /// Its group.
    pub group: Group,
    /// Source and metrics whose sum it is.
    pub of: (&'static str, &'static [&'static str]),
    /// Metric of the same source that is subtracted from it, where a record has it.
    pub less: Option<&'static str>,
}

const fn resource(
    role: Role,
    id: &'static str,
    name: &'static str,
    unit: Unit,
    group: Group,
    of: (&'static str, &'static [&'static str]),
) -> Resource {
    Resource {
        role,
        id,
        name,
        unit,
        group,
        of,
        less: None,
    }
}
