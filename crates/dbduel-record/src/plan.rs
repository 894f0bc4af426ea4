//! The plan: an experiment with every default resolved and every seed named.
//!
//! Written to `plan.json` before anything starts. Executing or judging a plan applies no
//! default of its own; what is not in here was not asked for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::design::Design;
use crate::variants::Variants;

/// The version of the record's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormatVersion {
    /// Raised when an older reader would misunderstand the record.
    pub major: u32,
    /// Raised when something was added that an older reader may ignore.
    pub minor: u32,
}

impl FormatVersion {
    /// What this crate writes. Version 1 had no repeated blocks, and its readers would give each of them the same weight;
    /// version 2 had no suites, and its readers would take their workloads for load levels of one. Up to 3.0 errors of
    /// PostgreSQL had a number in the place of their SQLSTATE, and up to 3.1 no plans of statements were kept. Up to 3.2
    /// stacks were sampled under the heaviest load only, and no sweep had settings.
    pub const CURRENT: FormatVersion = FormatVersion { major: 3, minor: 3 };

    /// True when a record of this version is understood by this crate.
    #[must_use]
    pub fn is_readable(self) -> bool {
        (1..=Self::CURRENT.major).contains(&self.major)
    }
}

/// Parameters by name: numbers, strings or booleans.
pub type Parameters = BTreeMap<String, serde_json::Value>;

/// Everything that a run is going to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The format of the whole record.
    pub format: FormatVersion,
    /// Version of dbduel that wrote the plan.
    pub dbduel: String,
    /// When the plan was made, RFC 3339, UTC.
    pub created: String,
    /// What the experiment wants to know, in its author's words.
    pub question: String,
    /// The root of every random stream, see [`crate::seed::named_seed`].
    pub seed: u64,
    /// The root of the random streams that fill the tables. It does not follow from `seed`, so that
    /// loaded data can be kept and used by the next contest.
    pub dataset_seed: u64,
    /// The contenders, in the order of the experiment.
    pub contenders: Vec<Contender>,
    /// Index into `contenders`: whom the others are compared with.
    pub baseline: usize,
    /// What the clients do. In a suite, the workload whose tables all its workloads share.
    pub workload: Workload,
    /// The load levels; each is a duel of its own. In a suite, one for each of its workloads.
    pub levels: Vec<LoadLevel>,
    /// How the workloads of a suite are conducted; absent when there is one workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// The latency that every load level is held against; absent when none was asked for.
    #[serde(default)]
    pub objective: Option<Objective>,
    /// How the highest rate that meets the objective is searched for; absent when the rates are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearch>,
    /// How the load process is run.
    pub load: LoadProcess,
    /// How long and in which pieces.
    pub schedule: Schedule,
    /// When a duel is decided.
    pub decision: DecisionRule,
    /// Deadlines, counts and bounds.
    pub limits: Limits,
    /// A known handicap that the lab gives to one contender, to prove itself; absent in a real duel.
    #[serde(default)]
    pub injection: Option<Injection>,
    /// How the difference of two contenders is divided among the factors in which they differ; absent where all contenders
    /// were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// Which contenders are variants of one, of which the best is chosen at each level before it is judged; absent where each
    /// contender is set in one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<Variants>,
    /// What the experiment says that the contest is about: classes, facts, rules or variables of the audit. The
    /// contenders differ in them on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// Findings of the audit that the experiment accepts: class, fact or rule, and the reason.
    #[serde(default)]
    pub waivers: BTreeMap<String, String>,
    /// Every block that the budget could allow, in the order of each level. A level that
    /// is decided earlier leaves the rest of its blocks unused.
    pub blocks: Vec<Block>,
    /// What pilots chose, by level. Never in the plan's own file: readers take it from the journal, with the blocks that
    /// were drawn for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub turns: BTreeMap<usize, TurnChoice>,
}

/// A known handicap: the server is stopped for a share of its slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Injection {
    /// Index into `Plan::contenders`.
    pub contender: usize,
    /// Share of the time in which its processes are stopped.
    pub stopped_share: f64,
    /// Time from one stop to the next, seconds.
    pub period_s: f64,
}

impl Plan {
    /// The level with most clients; of several the one at the highest rate.
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

    /// Load of a level that is not counted after a switch to another contender, seconds.
    #[must_use]
    pub fn guard_s(&self, level: usize) -> f64 {
        let turns = self.turns.get(&level);
        turns.map_or(self.schedule.guard_s, |turns| turns.guard_s)
    }

    /// Whether a turn begins with a guard. Servers are frozen between all turns; where turns are short every one has a guard,
    /// so that all begin alike, and longer slices have one where the contender changes.
    #[must_use]
    pub fn is_guarded(&self, block: &Block, position: usize) -> bool {
        self.turns.contains_key(&block.level) || !block.continues(position)
    }

    /// Length of one look at the series inside a slice of a level, seconds.
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

    /// The weight of all blocks of a level that the error probability is spent over, see [`Block::weight`]. Those that
    /// the plan promises and does not hold weigh 1 each.
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

    /// The workload that fills the tables as a contender has it: its own parameters stand before those of all.
    #[must_use]
    pub fn workload_of(&self, contender: &Contender) -> Workload {
        self.workload.with_tables_of(contender)
    }

    /// The workload of a level as a contender has it.
    #[must_use]
    pub fn workload_at(&self, level: usize, contender: &Contender) -> Workload {
        let own = self.levels.get(level).and_then(|level| level.cell.as_ref());
        let workload = own.map_or(&self.workload, |cell| &cell.workload);
        workload.with_tables_of(contender)
    }

    /// Connections that the clients of a level have to each server. Levels of one workload share theirs.
    #[must_use]
    pub fn connections_at(&self, level: usize) -> u32 {
        let of_all = || self.levels.iter().map(|level| level.clients).max();
        match self.suite {
            Some(_) => self.levels.get(level).map_or(0, |level| level.clients),
            None => of_all().unwrap_or(0),
        }
    }

    /// Every workload that clients run: the one of all levels, or those of a suite.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let cells = self.levels.iter().filter_map(|level| level.cell.as_ref());
        let one = self.suite.is_none().then_some(&self.workload);
        one.into_iter().chain(cells.map(|cell| &cell.workload))
    }
}

/// One configured server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contender {
    /// Unique name; also the name of its directory in the record.
    pub name: String,
    /// Where the server comes from, as the experiment says it (`mariadb-10.11`, `path:/opt/mysql`).
    pub server: String,
    /// Settings asked for, in order.
    pub settings: Vec<Setting>,
    /// Absolute path of the file with a running server's password; the password itself is nowhere.
    #[serde(default)]
    pub password_file: Option<String>,
    /// Parameters of the workload that this contender has of its own: how its tables are stored, not
    /// what they hold.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub tables: Parameters,
}

/// One server setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name as written in the experiment.
    pub name: String,
    /// Value as it is written to the server's configuration file.
    pub value: String,
}

/// A workload with its parameters complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Name in the table of workloads.
    pub name: String,
    /// Every parameter that the workload has.
    pub parameters: Parameters,
}

impl Workload {
    /// With those of its parameters that a contender has of its own.
    fn with_tables_of(&self, contender: &Contender) -> Workload {
        let mut workload = self.clone();
        for (name, value) in &contender.tables {
            if let Some(own) = workload.parameters.get_mut(name) {
                own.clone_from(value);
            }
        }
        workload
    }
}

/// How the workloads of a suite are conducted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// Why blocks are mirrored, or hold every contender once.
    pub block_form: BlockForm,
    /// Time without load that each server gets before the reads that follow writes, seconds.
    pub settle_s: f64,
}

/// Why blocks are mirrored, or hold every contender once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockForm {
    /// The experiment says so.
    AsWritten,
    /// Mirrored: linear drift cancels within a block, and the budget holds enough of them for a verdict in each workload.
    Affordable,
    /// Each once: the budget holds too few mirrored blocks for a verdict in each workload.
    TooFewMirrored,
}

/// One workload of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteWorkload {
    /// Unique name within the suite.
    pub name: String,
    /// Workloads of one group are summarised together.
    pub group: String,
    /// When it runs.
    pub phase: SuitePhase,
    /// Middle of the measured part of its slices, seconds, where that is not the schedule's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_s: Option<f64>,
    /// What its clients do.
    pub workload: Workload,
}

/// Part of a suite, in the order in which they run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SuitePhase {
    /// Reads of tables that were not changed since they were filled.
    Fresh,
    /// Changes that leave the number of rows as it is.
    Write,
    /// Reads after the changes, when the servers had time to settle.
    Read,
    /// Changes of the number of rows.
    Last,
}

/// How many clients, and how their transactions fall due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How many of the clients have a transaction under way at any time, however fast the server is: all of them when
    /// each begins its next one at once, otherwise none for certain.
    #[must_use]
    pub fn busy_clients(&self) -> u32 {
        match self.arrival {
            Arrival::Closed { think_ms: 0.0 } => self.clients,
            Arrival::Closed { .. } | Arrival::Constant { .. } | Arrival::Poisson { .. } => 0,
        }
    }

    /// How people call the level: `16 clients`, or a workload of a suite by its name.
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Arrival {
    /// A client's next transaction is due when its previous one is done, plus the think time.
    Closed {
        /// Think time, milliseconds.
        think_ms: f64,
    },
    /// Equally spaced in time, whatever the server does.
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

/// A latency objective: this share of the transactions is done within this time after they were due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The share, for example 0.99.
    pub share: f64,
    /// The time, microseconds.
    pub latency_us: f64,
}

/// A search for the highest rate that meets the objective. Rates are added to the plan's levels while the
/// contest runs, each chosen by what the ones before showed; the journal says which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateSearch {
    /// Rates that are tried at most, the first one included.
    pub rates_max: u32,
    /// The search ends when the rates around the limit differ by no more than this share.
    pub precision: f64,
    /// Blocks of a rate after which it is looked at, ascending; it gets no more than the last of them.
    pub looks: Vec<u32>,
}

/// How the load process is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadProcess {
    /// Operating system threads that drive the clients.
    pub threads: u32,
    /// How long each wait of a thread polls before it sleeps, microseconds; 0 means that it sleeps at once. Absent in plans
    /// from before there was polling.
    #[serde(default)]
    pub busy_poll_us: u32,
    /// Processor numbers that the load process is confined to; empty means no confinement.
    pub cores: Vec<u32>,
    /// Processor numbers that managed servers are confined to; empty means no confinement.
    pub server_cores: Vec<u32>,
    /// What managed servers may read and write at most; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_io: Option<IoLimit>,
}

/// What each managed server may read from its device, and as much that it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// Bytes per second; absent means no limit.
    #[serde(default)]
    pub bytes_per_s: Option<u64>,
    /// Requests to the device per second; absent means no limit.
    #[serde(default)]
    pub operations_per_s: Option<u64>,
}

impl IoLimit {
    /// How people call it: `20 MiB/s, 500/s`.
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

/// How time is cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Time for warm-up and slices together, seconds.
    pub budget_s: f64,
    /// Middle of the measured part of a slice, seconds; blocks draw theirs around it.
    pub slice_s: f64,
    /// Half-width of that draw as a share of `slice_s`.
    pub jitter: f64,
    /// Not counted after a switch to another contender, seconds.
    pub guard_s: f64,
    /// Longest time to wait for transactions in flight at the end of a slice, seconds.
    pub drain_s: f64,
    /// Length of one look at the series inside a slice, seconds.
    pub tick_s: f64,
    /// Warm-up of one contender ends here at the latest, seconds.
    pub warm_up_cap_s: f64,
    /// A steady state is certified only after this much retained time, seconds.
    pub warm_up_hold_s: f64,
    /// Planned restarts of all servers; absent when one start of them is all that is asked about.
    #[serde(default)]
    pub epochs: Option<Epochs>,
    /// How the length of turns is chosen while the contest runs, level by level; `slice_s` is then the longest that may be
    /// chosen. Absent when all slices are as long as `slice_s` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Pilot>,
    /// Whether a block is a permutation of the contenders and its reverse. Else it holds every contender once.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub mirrored: bool,
}

impl Schedule {
    /// The schedule of a load level, which may have longer slices.
    #[must_use]
    pub fn at(&self, level: &LoadLevel) -> Schedule {
        let own = level.cell.as_ref().and_then(|cell| cell.slice_s);
        Schedule {
            slice_s: own.unwrap_or(self.slice_s),
            ..self.clone()
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_yes(value: &bool) -> bool {
    *value
}

/// Bounds of a pilot: a short measurement of each contender by itself, from which the length of turns is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pilot {
    /// The shortest turn that may be chosen, seconds.
    pub turn_s_min: f64,
    /// Load on each contender, without a switch, from which the scatter of a length is predicted, seconds.
    pub steady_s: f64,
    /// Switches to each contender, from which the guard is measured.
    pub switches: u32,
}

/// What a pilot chose for a load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnChoice {
    /// Middle of the measured part of a turn, seconds; blocks draw theirs around it.
    pub turn_s: f64,
    /// Not counted after a switch to another contender, seconds.
    pub guard_s: f64,
    /// Length of one look at the series inside a turn, seconds.
    pub tick_s: f64,
    /// Blocks that the error probability is spent over; takes the place of the plan's.
    pub blocks_max: u32,
    /// Why this length.
    pub reason: TurnReason,
    /// The lengths that it was chosen from, ascending.
    pub lengths: Vec<TurnLength>,
    /// Load that it took, all contenders together, seconds.
    pub seconds: f64,
    /// Median time from the end of a turn until the load of the next one, seconds.
    pub switch_s: f64,
    /// How long a switch shows in throughput, the longest of all contenders, seconds.
    pub transient_s: f64,
}

/// Why a pilot chose a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TurnReason {
    /// Its interval is predicted to narrow fastest.
    Scatter,
    /// Shorter ones might be as good, but hold too few transactions, or too little beside their guard.
    Shortest,
    /// Longer ones might be as good, but leave too few blocks in the budget.
    Longest,
    /// The pilot saw too little to predict the scatter.
    TooLittleData,
}

/// What a pilot predicts of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnLength {
    /// Measured part of a turn, seconds.
    pub turn_s: f64,
    /// Mirrored blocks of one contender's own series that the prediction comes from.
    pub blocks: u32,
    /// Standard deviation of their log ratios.
    pub block_sd: f64,
    /// Half width that a 95 % interval of the ratio would have after a minute of such blocks, switches included.
    pub half_width_per_minute: f64,
}

/// All servers are restarted again and again, so that verdicts are about them and not about one
/// start of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Epochs {
    /// How many epochs at most.
    pub count: u32,
    /// Blocks of each level in one of them.
    pub blocks: u32,
}

/// When a duel is decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionRule {
    /// Probability that all of a duel's statements are right, for example 0.95.
    pub confidence: f64,
    /// Two contenders within this relative difference are equivalent, for example 0.02.
    pub horizon: f64,
    /// No verdict before this many blocks.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// A server must answer within this time after its start, seconds.
    pub server_start_s: f64,
    /// A server must end within this time after it was asked to, seconds.
    pub server_stop_s: f64,
    /// One administrative statement, seconds.
    pub statement_s: f64,
    /// Loading one dataset, seconds.
    pub dataset_s: f64,
    /// How often one transaction is tried again after a deadlock or a lock timeout.
    pub transaction_retries: u32,
    /// How often a dead server is started again in one run.
    pub server_restarts: u32,
    /// The run stops when the file system of the sandboxes or of the record has less than this.
    pub free_disk_bytes_min: u64,
    /// The crash test of each contender whose settings claim that commits survive a power cut; absent when none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prove: Option<DurabilityProof>,
}

/// A crash test of each contender before the contest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityProof {
    /// Power cuts of each contender.
    pub cuts: u32,
    /// Load whose writes are cut, seconds.
    pub load_s: f64,
}

/// One block: a permutation of the contenders, and its reverse unless the schedule says otherwise, one slice each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Position in `Plan::blocks`.
    pub id: u32,
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Number of the block within its level, from 0.
    pub round: u32,
    /// Contenders in running order.
    pub order: Vec<usize>,
    /// Measured seconds of each slice of this block, in one turn.
    pub slice_s: f64,
    /// How often the running order is run through: a slice is measured in as many turns. 1 in plans from before turns.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeats: u32,
}

fn once() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_once(repeats: &u32) -> bool {
    *repeats == 1
}

impl Block {
    /// What the block weighs in a verdict: in proportion to the time that it is measured, among blocks of one length of
    /// turns.
    #[must_use]
    pub fn weight(&self) -> f64 {
        f64::from(self.repeats)
    }

    /// The turns of the block in the order they run: number of the repeat, and position in the running order.
    pub fn turns(&self) -> impl Iterator<Item = (u32, usize)> + use<> {
        let positions = self.order.len();
        (0..self.repeats)
            .flat_map(move |repeat| (0..positions).map(move |position| (repeat, position)))
    }

    /// How many slices of the contender at `position` ran before it in the order.
    #[must_use]
    pub fn slices_before(&self, position: usize) -> usize {
        let before = self.order.iter().take(position);
        before
            .filter(|contender| **contender == self.order[position])
            .count()
    }

    /// True when the slice at `position` starts with the contender that ran just before it.
    #[must_use]
    pub fn continues(&self, position: usize) -> bool {
        position > 0 && self.order[position] == self.order[position - 1]
    }
}
