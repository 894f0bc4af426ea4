//! The plan: an experiment with every default resolved and every seed named.
//!
//! Written to `plan.json` before anything starts. Executing or judging a plan applies no default of its own; an option
//! that is absent here was not asked for.

mod load;
mod resolved;
mod schedule;
mod workload;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::captured;
use crate::design::Design;
use crate::variants::Variants;

pub use load::{Arrival, IoLimit, LoadHosts, LoadLevel, LoadProcess, Objective, RateSearch};
pub use resolved::Resolved;
pub use schedule::{Block, Epochs, Pilot, Schedule, TurnChoice, TurnLength, TurnReason};
pub use workload::{BlockForm, Suite, SuitePhase, SuiteWorkload, Workload};

/// The version of the record's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormatVersion {
    /// Raised by changes that an older reader would misunderstand.
    pub major: u32,
    /// Raised by additions that an older reader may ignore.
    pub minor: u32,
}

impl FormatVersion {
    /// The version that this crate writes. Up to 3.0 errors of PostgreSQL had a number in place of their SQLSTATE, and
    /// up to 3.1 no plans of statements were kept. Up to 3.2 stacks were sampled under the heaviest load only, and no
    /// sweep had settings. Up to 3.3 a slice ended at its planned end, and transactions in flight then were not
    /// counted.
    pub const CURRENT: FormatVersion = FormatVersion { major: 3, minor: 4 };

    /// True when this crate can read a record of this version.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.major == Self::CURRENT.major
    }
}

/// Parameters by name: numbers, strings or booleans.
pub type Parameters = BTreeMap<String, serde_json::Value>;

/// All parameters of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The format of the whole record.
    pub format: FormatVersion,
    /// Version of dbduel that wrote the plan.
    pub dbduel: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// The question of the experiment, in its author's words.
    pub question: String,
    /// The root of every random stream, see [`crate::seed::named_seed`].
    pub seed: u64,
    /// The root of the random streams that fill the tables. Independent of `seed`, so that loaded data can be kept and
    /// used by the next contest.
    pub dataset_seed: u64,
    /// The contenders, in the order of the experiment.
    pub contenders: Vec<Contender>,
    /// Index into `contenders`: the one that the others are compared with.
    pub baseline: usize,
    /// The clients' workload. In a suite, the one whose tables its workloads share; captured statements have those of a dump.
    pub workload: Workload,
    /// The load levels; each is a duel of its own. In a suite, one for each of its workloads.
    pub levels: Vec<LoadLevel>,
    /// How the workloads of a suite are conducted; absent when there is one workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// The latency objective of every load level; absent when none was asked for.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// How the highest rate that meets the objective is searched for; absent when the rates are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// How the load process is run.
    pub load: LoadProcess,
    /// The machines that generate the load; absent when the servers' machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<LoadHosts>,
    /// Budget, slices and epochs.
    pub schedule: Schedule,
    /// When a duel is decided.
    pub decision: DecisionRule,
    /// Deadlines, counts and bounds.
    pub limits: Limits,
    /// A known handicap of one contender, by which the lab tests itself; absent in a real duel.
    #[serde(default)]
    pub injection: Option<Injection>,
    /// How the difference of two contenders is divided among the factors in which they differ; absent where all
    /// contenders were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// Which contenders are variants of one, of which the best is chosen at each level before it is judged; absent
    /// where no contender has variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<Variants>,
    /// Subject of the contest according to the experiment: classes, facts, rules or variables of the audit in which
    /// the contenders differ on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// Findings of the audit that the experiment accepts: class, fact or rule, and the reason.
    #[serde(default)]
    pub waivers: BTreeMap<String, String>,
    /// Every block that the budget allows, in the order of each level. A level that is decided earlier leaves the rest
    /// of its blocks unused.
    pub blocks: Vec<Block>,
    /// Turn lengths chosen by pilots, by level. Never in the plan's own file: readers take them from the journal, with
    /// the blocks that were drawn for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub turns: BTreeMap<usize, TurnChoice>,
}

/// A known handicap: the server is stopped repeatedly during its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Injection {
    /// Index into `Plan::contenders`.
    pub contender: usize,
    /// Long-run share of the time of its turns in which its processes are stopped.
    pub stopped_share: f64,
    /// Mean time from one stop to the next, seconds.
    pub period_s: f64,
    /// The stalls, where the experiment gives their length; absent where it gives a share of each period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<InjectedStalls>,
}

impl Injection {
    /// A handicap of a contender by stalls.
    #[must_use]
    pub fn of_stalls(contender: usize, stalls: InjectedStalls) -> Self {
        Self {
            contender,
            stopped_share: stalls.stopped_share(),
            period_s: stalls.period_s(),
            stalls: Some(stalls),
        }
    }
}

/// Stalls of one length, each after a time in which the server was awake.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InjectedStalls {
    /// Length of a stall, seconds.
    pub stall_s: f64,
    /// Least and largest time awake before a stall, seconds; uniformly distributed.
    pub every_s: [f64; 2],
}

impl InjectedStalls {
    /// Mean time from one stall to the next, seconds.
    #[must_use]
    pub fn period_s(&self) -> f64 {
        let [least, most] = self.every_s;
        self.stall_s + f64::midpoint(least, most)
    }

    /// Long-run share of the time in which the server is stopped.
    #[must_use]
    pub fn stopped_share(&self) -> f64 {
        self.stall_s / self.period_s()
    }
}

/// As in experiments and on the command line: `1 s every 4 s`, `1 s every 2 s to 6 s`.
impl fmt::Display for InjectedStalls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, most] = self.every_s;
        write!(out, "{} s every {least} s", self.stall_s)?;
        match least < most {
            true => write!(out, " to {most} s"),
            false => Ok(()),
        }
    }
}

impl Plan {
    /// True when the servers run on other machines than that of the contest; the contenders then name their agents.
    #[must_use]
    pub fn has_server_hosts(&self) -> bool {
        self.contenders.iter().any(|one| one.host.is_some())
    }

    /// The level with the most clients; of several, the one at the highest rate.
    #[must_use]
    pub fn heaviest_level(&self) -> Option<usize> {
        let rate = |level: &LoadLevel| match level.arrival {
            Arrival::Constant { per_second } | Arrival::Poisson { per_second } => per_second,
            Arrival::Closed { .. } => 0.0,
        };
        (0..self.levels.len()).max_by(|&one, &other| {
            let (one, other) = (&self.levels[one], &self.levels[other]);
            let clients = one.clients.cmp(&other.clients);
            clients.then(rate(one).total_cmp(&rate(other)))
        })
    }

    /// Uncounted load of a level after a switch to another contender, seconds.
    #[must_use]
    pub fn guard_s(&self, level: usize) -> f64 {
        let turns = self.turns.get(&level);
        turns.map_or(self.schedule.guard_s, |turns| turns.guard_s)
    }

    /// Whether a turn begins with a guard. Servers are frozen between all turns; where turns are short every turn has
    /// a guard, so that all begin alike, and longer slices have one where the contender changes.
    #[must_use]
    pub fn is_guarded(&self, block: &Block, position: usize) -> bool {
        self.turns.contains_key(&block.level) || !block.continues(position)
    }

    /// Length of one tick of a level's series, seconds.
    #[must_use]
    pub fn tick_s(&self, level: usize) -> f64 {
        let turns = self.turns.get(&level);
        turns.map_or(self.schedule.tick_s, |turns| turns.tick_s)
    }

    /// Blocks of a level that the error probability is spent over.
    #[must_use]
    pub fn blocks_max(&self, level: usize) -> u32 {
        let turns = self.turns.get(&level);
        turns.map_or(self.decision.blocks_max, |turns| turns.blocks_max)
    }

    /// Total weight of the blocks of a level that the error probability is spent over, see [`Block::weight`]. Planned
    /// blocks that the plan does not list yet weigh 1 each.
    #[must_use]
    pub fn information(&self, level: usize) -> f64 {
        let promised = self.blocks_max(level);
        let own = self.blocks.iter().filter(|block| block.level == level);
        let weights: Vec<f64> = own
            .filter(|block| block.round < promised)
            .map(Block::weight)
            .collect();
        weights.iter().sum::<f64>() + f64::from(promised) - weights.len() as f64
    }

    /// The workload that fills a contender's tables: its own parameters override the common ones.
    #[must_use]
    pub fn workload_of(&self, contender: &Contender) -> Workload {
        self.workload.with_tables_of(contender)
    }

    /// The workload of a level with a contender's own parameters.
    #[must_use]
    pub fn workload_at(&self, level: usize, contender: &Contender) -> Workload {
        self.workload_of_level(level).with_tables_of(contender)
    }

    /// Connections to each server for the clients of a level. Levels of one workload share theirs.
    #[must_use]
    pub fn connections_at(&self, level: usize) -> u32 {
        let of_all = || self.levels.iter().map(|level| level.clients).max();
        match self.suite {
            Some(_) => self.levels.get(level).map_or(0, |level| level.clients),
            None => of_all().unwrap_or(0),
        }
    }

    /// The workload of a level, without contenders' own parameters.
    #[must_use]
    pub fn workload_of_level(&self, level: usize) -> &Workload {
        let own = self.levels.get(level).and_then(|level| level.cell.as_ref());
        own.map_or(&self.workload, |cell| &cell.workload)
    }

    /// The captured workload of a suite whose dump is loaded beside the tables of [`Plan::workload`]; `None` where no workload of a
    /// suite is one, and where the dump has all tables.
    #[must_use]
    pub fn dump_beside(&self) -> Option<&Workload> {
        let is_captured = |one: &&Workload| one.name == captured::NAME;
        let found = self.workloads().find(is_captured);
        found.filter(|_| !is_captured(&&self.workload))
    }

    /// Every workload that clients run: the one of all levels, or those of a suite.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let cells = self.levels.iter().filter_map(|level| level.cell.as_ref());
        let one = self.suite.is_none().then_some(&self.workload);
        one.into_iter().chain(cells.map(|cell| &cell.workload))
    }
}

/// One configured server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contender {
    /// Unique name; also the name of its directory in the record.
    pub name: String,
    /// Where the server comes from, as the experiment says it (`mariadb-10.11`, `path:/opt/mysql`).
    pub server: String,
    /// Settings asked for, in order.
    pub settings: Vec<Setting>,
    /// Absolute path of the file with a running server's password; the password itself is not stored.
    #[serde(default)]
    pub password_file: Option<String>,
    /// Parameters of the workload that only this contender has: how its tables are stored, not their content.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub tables: Parameters,
    /// Name of the agent on whose machine the server runs; absent for the machine of the contest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// One server setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name as written in the experiment.
    pub name: String,
    /// Value as it is written to the server's configuration file.
    pub value: String,
}

/// When a duel is decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionRule {
    /// Probability that all verdicts of a duel are right, for example 0.95.
    pub confidence: f64,
    /// Two contenders within this relative difference are equivalent, for example 0.02.
    pub horizon: f64,
    /// Fewest blocks before a verdict.
    pub blocks_min: u32,
    /// Blocks per level that the error probability is spent over. Further blocks are decided by
    /// the anytime-valid reserve.
    pub blocks_max: u32,
    /// Share of the error probability kept for looks after `blocks_max`.
    pub reserve: f64,
    /// Simulated sign paths of the randomisation test.
    pub paths: u32,
}

/// Deadlines, counts and bounds of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Longest time from a server's start to its answer, seconds.
    pub server_start_s: f64,
    /// Longest time for a server to stop when asked to, seconds.
    pub server_stop_s: f64,
    /// Longest time of one administrative statement, seconds.
    pub statement_s: f64,
    /// Longest time to load one dataset, seconds.
    pub dataset_s: f64,
    /// Maximum number of retries of a transaction after a conflict: a deadlock, a serialization failure, a changed record, a
    /// lock timeout.
    pub transaction_retries: u32,
    /// Maximum number of restarts of a dead server in one run.
    pub server_restarts: u32,
    /// The run stops when the file system of the sandboxes or of the record has less free space than this.
    pub free_disk_bytes_min: u64,
    /// The crash test of each contender whose settings claim that commits survive a power cut; absent when none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prove: Option<DurabilityProof>,
}

/// A crash test of each contender before the contest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DurabilityProof {
    /// Power cuts of each contender.
    pub cuts: u32,
    /// Load whose writes are cut, seconds.
    pub load_s: f64,
}
