//! Facts about machines and builds, kept in separate files of the record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::InjectedStalls;

/// The machine that the duel ran on: `host.json`. A field that could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Host {
    /// Identity of the machine: an anonymous digest that differs between machines; absent in old records.
    pub machine: Option<String>,
    /// Model name of the processor.
    pub cpu_model: Option<String>,
    /// Processors that the system schedules on.
    pub cpus: Option<u32>,
    /// Threads per core; 1 when simultaneous multithreading is off.
    pub threads_per_core: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Cores, all sockets together.
    pub cores: Option<u32>,
    /// Whether simultaneous multithreading is on, in the kernel's words: `on`, `off`, `forceoff`, `notsupported`,
    /// `notimplemented`.
    pub smt: Option<String>,
    /// NUMA nodes; 1 when all memory is equally near.
    pub numa_nodes: Option<u32>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Whether the processor may exceed its nominal frequency: `on` or `off`.
    pub turbo: Option<String>,
    /// The kernel's mitigations of the processor's vulnerabilities, by name.
    pub mitigations: BTreeMap<String, String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space, bytes.
    pub swap_bytes: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// The kernel's command line.
    pub kernel_command_line: Option<String>,
    /// The kernel's source of time.
    pub clock_source: Option<String>,
    /// Kernel settings that affect databases, by name (`vm.swappiness`).
    pub kernel_settings: BTreeMap<String, String>,
    /// When the kernel compacts memory to make huge pages.
    pub transparent_huge_pages_defrag: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Name of the hypervisor, when the machine reports one.
    pub virtualisation: Option<String>,
    /// File system of the sandboxes.
    pub file_system: Option<String>,
    /// Its mount options.
    pub mount_options: Option<String>,
    /// Its block device.
    pub block_device: Option<String>,
    /// The whole disk behind the block device, as the kernel calls it.
    pub disk: Option<String>,
    /// Its model, as the disk reports it.
    pub disk_model: Option<String>,
    /// Revision of the disk's firmware.
    pub disk_firmware: Option<String>,
    /// The kernel's driver of the disk.
    pub disk_driver: Option<String>,
    /// Largest write that the disk claims to be atomic, bytes; 0 when it claims none.
    pub disk_atomic_write_bytes: Option<u64>,
    /// True when a single write can bypass the disk's cache (FUA).
    pub force_unit_access: Option<bool>,
    /// True when the disk supports discards (TRIM).
    pub discard: Option<bool>,
    /// Size of the file system of the sandboxes, bytes.
    pub file_system_bytes: Option<u64>,
    /// Free space of it when the facts were read, bytes.
    pub file_system_free_bytes: Option<u64>,
    /// Block sizes of the disk, bytes: logical and physical.
    pub disk_block_bytes: Option<[u64; 2]>,
    /// The kernel's read-ahead, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Length of the kernel's request queue for the device.
    pub queue_requests: Option<u32>,
    /// True when the kernel regards the device as rotating.
    pub rotational: Option<bool>,
    /// The device's input/output scheduler.
    pub io_scheduler: Option<String>,
    /// The device's write cache as the kernel sees it: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Limit of open files of a process.
    pub open_files_limit: Option<u64>,
    /// Version of the control groups, when the machine has them and their limits could be read; an absent limit then
    /// means no limit.
    pub cgroup_version: Option<u32>,
    /// Memory limit of the control group, bytes.
    pub cgroup_memory_bytes: Option<u64>,
    /// Processors that this process may run on, where the control group or an affinity confines it.
    pub allowed_cpus: Option<String>,
    /// Processor limit of the control group, in processors.
    pub cgroup_cpus: Option<f64>,
    /// The machines that generated the load, in the order of the plan; empty where this one did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<LoadHost>,
    /// The machines of the servers, where these differ from the machine of the contest. The facts beside are then
    /// those that all of them have in common.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_hosts: Vec<ServerHost>,
}

/// A machine that runs servers of a contest conducted by another machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerHost {
    /// Name of its agent.
    pub name: String,
    /// Version of dbduel there, with the digest of its judge.
    pub dbduel: String,
    /// Facts about the machine.
    pub facts: Host,
}

/// A machine that generated load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadHost {
    /// Name of its agent.
    pub name: String,
    /// Version of dbduel there, with the digest of its judge.
    pub dbduel: String,
    /// As [`Host::machine`].
    pub machine: Option<String>,
    /// Model name of the processor.
    pub cpu_model: Option<String>,
    /// Processors that the system schedules on.
    pub cpus: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
}

impl From<&ServerHost> for LoadHost {
    fn from(host: &ServerHost) -> Self {
        let facts = &host.facts;
        LoadHost {
            name: host.name.clone(),
            dbduel: host.dbduel.clone(),
            machine: facts.machine.clone(),
            cpu_model: facts.cpu_model.clone(),
            cpus: facts.cpus,
            memory_bytes: facts.memory_bytes,
            kernel: facts.kernel.clone(),
        }
    }
}

impl Host {
    /// The facts of the machines with servers of a contest that another machine conducts: those that all share, and
    /// each machine's own.
    #[must_use]
    pub fn of_server_hosts(hosts: Vec<ServerHost>) -> Self {
        let facts = |host: &ServerHost| serde_json::to_value(&host.facts).unwrap_or_default();
        let mut common = hosts.first().map(facts).unwrap_or_default();
        for other in hosts.iter().skip(1).map(facts) {
            if let Some(common) = common.as_object_mut() {
                common.retain(|name, value| other.get(name) == Some(value));
            }
        }
        // Each fact is absent where it is not known.
        let common: Self = serde_json::from_value(common).unwrap_or_default();
        Self {
            server_hosts: hosts,
            ..common
        }
    }

    /// Display name of its processors: `2 × Intel Xeon`.
    #[must_use]
    pub fn processors_label(&self) -> String {
        let model = self.cpu_model.as_deref().unwrap_or("processor");
        format!("{} × {model}", self.cpus.unwrap_or_default())
    }
}

/// The server of a contender: `contenders/NAME/build.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Build {
    /// `MariaDB`, `MySQL`, `Percona Server`.
    pub product: String,
    /// Version as the server states it.
    pub version: String,
    /// `@@version_comment`.
    pub version_comment: String,
    /// Where it came from: package names and versions, a path, an address.
    pub origin: String,
    /// The server program; absent when dbduel did not start the server.
    pub daemon: Option<String>,
    /// SHA-256 of the server program, hexadecimal.
    pub daemon_sha256: Option<String>,
    /// Instruction set that it was built for.
    pub machine: Option<String>,
    /// Memory allocator as the server states it.
    pub allocator: Option<String>,
    /// True when dbduel starts, freezes and stops the server.
    pub managed: bool,
}

/// How the load connects to a server: `contenders/NAME/connection.json`. Read on a connection of the load itself;
/// facts that the server does not report are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Connection {
    /// `unix socket` or `tcp`.
    pub transport: Option<String>,
    /// Cipher of the encryption; empty when there is none.
    pub tls_cipher: Option<String>,
    /// True when the protocol is compressed.
    pub compression: Option<bool>,
    /// True when statements of the workload are prepared on the server, false when they are sent as text.
    pub prepared: Option<bool>,
    /// The client: program and version.
    pub client: String,
}

/// Size of a data directory: `contenders/NAME/size.json`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Size {
    /// Sum of the sizes of all files before the first slice, bytes.
    pub before_bytes: u64,
    /// Allocated on the device for all files before the first slice, bytes.
    pub before_allocated_bytes: u64,
    /// Sum of the sizes of all files after the last slice, bytes.
    pub after_bytes: u64,
    /// Allocated on the device for all files after the last slice, bytes.
    pub after_allocated_bytes: u64,
    /// The files before the first slice by their use; absent in records of versions that did not separate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_files: Option<FileSizes>,
    /// The files after the last slice by their use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_files: Option<FileSizes>,
}

/// The files of a data directory by their use. The parts add up to the directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FileSizes {
    /// Tables and indexes of all databases but the server's own. The shared tablespace too, where no table has a file
    /// of its own.
    pub data: FileSize,
    /// Write-ahead logs of the engines.
    pub redo: FileSize,
    /// Undo tablespaces; undo in the shared tablespace counts as `system`.
    pub undo: FileSize,
    /// Temporary tablespaces, tables and files.
    pub temporary: FileSize,
    /// Binary and relay logs, error, general and slow query logs.
    pub logs: FileSize,
    /// The server's own databases, the shared tablespace, the doublewrite files, keys and everything else.
    pub system: FileSize,
}

impl FileSizes {
    /// All files together.
    #[must_use]
    pub fn total(&self) -> FileSize {
        let parts = [
            self.data,
            self.redo,
            self.undo,
            self.temporary,
            self.logs,
            self.system,
        ];
        parts
            .iter()
            .fold(FileSize::default(), |sum, part| FileSize {
                bytes: sum.bytes + part.bytes,
                allocated_bytes: sum.allocated_bytes + part.allocated_bytes,
            })
    }
}

/// Size of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FileSize {
    /// Sum of the file sizes, bytes.
    pub bytes: u64,
    /// Allocated on the device, bytes: less than `bytes` where files have holes.
    pub allocated_bytes: u64,
}

/// Conditions that a workload promises of its tables, and whether they hold: `contenders/NAME/conditions.before.json`
/// and `conditions.after.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Conditions {
    /// The conditions checked.
    pub conditions: Vec<Condition>,
    /// Counts that are neither right nor wrong in themselves.
    pub counts: BTreeMap<String, u64>,
}

/// Proof of durability of a contender: counts of power cuts before its contest: `contenders/NAME/proof.json`, written before the contest where its plan asks
/// for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Proof {
    /// The setting with which the server promises less than durability of each commit; no power was cut then.
    pub weaker_promise: Option<String>,
    /// Number of power cuts.
    pub cuts: u32,
    /// Acknowledged commits before each cut, summed over the cuts in which they could be counted.
    pub acknowledged: u64,
    /// Acknowledged commits that were lost.
    pub lost: u64,
    /// Cuts with lost commits and no other error.
    pub cuts_with_loss: u32,
    /// Cuts after which the data were wrong, or the server did not start.
    pub cuts_corrupt: u32,
    /// Findings of the first cut after which something was missing or wrong.
    pub example: Option<String>,
    /// Clients of the load during which power was cut.
    pub clients: u32,
    /// Length of that load, seconds.
    pub load_s: f64,
    /// Duration of the whole test, seconds.
    pub seconds: f64,
}

impl Proof {
    /// True when something was missing or wrong after a cut.
    #[must_use]
    pub fn is_disproved(&self) -> bool {
        self.cuts_with_loss > 0 || self.cuts_corrupt > 0
    }

    /// True when the power was cut and nothing was missing or wrong.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.cuts > 0 && !self.is_disproved()
    }
}

/// One condition on the tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Condition {
    /// Its name, unique in its workload.
    pub name: String,
    /// The condition, in a sentence.
    pub about: String,
    /// Number of violations, as far as they were counted.
    pub violations: u64,
    /// The first violation.
    pub example: Option<String>,
    /// Duration of the queries, seconds.
    pub seconds: f64,
}

/// Resolution and cost of the lab on a machine: `selftest.json`. Measured by a duel of a contender with itself before
/// the run of the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SelfTest {
    /// When it was measured, RFC 3339, UTC.
    pub at: String,
    /// Version of dbduel.
    pub dbduel: String,
    /// Digest that identifies the machine.
    pub host: String,
    /// The server.
    pub server: String,
    /// The clients' workload.
    pub workload: String,
    /// Number of clients.
    pub clients: u32,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Width of the interval of the ratio of two equal contenders over time.
    pub resolution: Vec<Resolution>,
    /// The load process's own cost.
    pub null_server: Option<NullCost>,
    /// Series of duels with a known answer, at most one of each kind.
    pub series: Vec<SelfTestSeries>,
}

/// Resolution for two equal contenders after some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution {
    /// Load so far, minutes.
    pub minutes: f64,
    /// Blocks so far.
    pub blocks: u32,
    /// Half of the interval, as a share of the ratio.
    pub half_width: f64,
}

/// The same workload against a server that answers at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NullCost {
    /// Transactions per second.
    pub transactions_per_s: f64,
    /// Processor time of the load process per transaction, microseconds.
    pub client_cpu_us_per_transaction: f64,
    /// Lower end of its interval.
    pub low_us: f64,
    /// Upper end of its interval.
    pub high_us: f64,
    /// Slices behind it.
    pub slices: u32,
}

/// Verdicts of a series of duels with a known answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SelfTestSeries {
    /// When its last duel was planned, RFC 3339, UTC.
    pub at: String,
    /// The server.
    pub server: String,
    /// Share of the slices in which the second server was to be stopped; zero for equal contenders.
    pub injected_share: f64,
    /// The stops, where they were stalls of a given length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<InjectedStalls>,
    /// Share in which it was actually stopped, on average.
    pub stopped_share: f64,
    /// Budget of one duel, seconds.
    pub budget_s: f64,
    /// Horizon of the duels.
    pub horizon: f64,
    /// Confidence of the duels.
    pub confidence: f64,
    /// Duels conducted.
    pub duels: u32,
    /// Verdicts on the second contender.
    pub faster: u32,
    /// See `faster`.
    pub slower: u32,
    /// See `faster`.
    pub equivalent: u32,
    /// See `faster`.
    pub undecided: u32,
    /// See `faster`.
    pub void: u32,
    /// Duels whose interval holds the true ratio.
    pub intervals_hold: u32,
    /// Seconds of load from the first block to the verdict, the median over the duels that have one.
    pub decided_s: Option<f64>,
    /// Steadiness of throughput, and of quantities that may be steadier.
    pub steadiness: Vec<SeriesSteadiness>,
}

/// Steadiness of a quantity from block to block over a series of duels, each quantity judged like throughput: on the
/// same blocks, with the same error probability.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SeriesSteadiness {
    /// The quantity.
    pub quantity: String,
    /// Duels in which it could be compared.
    pub duels: u32,
    /// Standard deviation of one block's log ratio, the median over those duels.
    pub block_sd: f64,
    /// Duels in which the two were called different.
    pub different: u32,
    /// Duels in which they were called equivalent.
    pub equivalent: u32,
    /// Blocks after which either was decided, the median; absent when nothing was.
    pub blocks: Option<f64>,
    /// Duels in which it was decided after fewer blocks than throughput. A duel ends when throughput is decided, so
    /// later decisions are not known.
    pub before_throughput: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_servers_have_in_common_what_is_equal() {
        let host = |name: &str, cpus: u32| ServerHost {
            name: name.to_owned(),
            facts: Host {
                cpus: Some(cpus),
                kernel: Some("6.1".to_owned()),
                ..Host::default()
            },
            ..ServerHost::default()
        };
        let hosts = Host::of_server_hosts(vec![host("db1", 2), host("db2", 4)]);
        assert_eq!((hosts.cpus, hosts.kernel.as_deref()), (None, Some("6.1")));
        assert_eq!(hosts.server_hosts.len(), 2);
        let one = Host::of_server_hosts(vec![host("db1", 2)]);
        assert_eq!(one.cpus, Some(2));
    }
}
