//! The journal: one JSON object per line, the truth about a run's progress.
//!
//! To resume, dbduel filters the plan by the journal; nothing else is consulted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::FileSizes;
use crate::plan::{Block, LoadLevel, SuitePhase, TurnChoice};

/// An event with the time at which it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stamped {
    /// Milliseconds since 1970-01-01 UTC by the clock of the record: it never goes back in a journal, and the
    /// difference of two is the time that passed, even where the machine's clock was set meanwhile.
    pub at_ms: u64,
    /// The event.
    pub what: Event,
}

/// Identifies a slice: a position in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SliceId {
    /// `Block::id` of the plan.
    pub block: u32,
    /// Position in `Block::order`.
    pub position: u32,
}

impl std::fmt::Display for SliceId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.block, self.position)
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// dbduel started to work on this record, for the first time or to resume it.
    Started {
        /// Process number of dbduel.
        pid: u32,
        /// Version of dbduel.
        dbduel: String,
        /// Number of this start, from 0. Servers run by dbduel are restarted, so it is also the epoch.
        epoch: u32,
    },
    /// All servers were restarted, as planned, or because a trace was at its end; on restored tables where the workload is a trace.
    EpochStarted {
        /// Number of this start, continuing the numbers of `Started`.
        epoch: u32,
    },
    /// A record got more time; its new blocks follow those of the plan.
    Extended {
        /// Additional time for warm-up and slices, seconds.
        budget_s: f64,
        /// The additional blocks, drawn from the plan's seed like all others.
        blocks: Vec<Block>,
    },
    /// The search for the highest rate added a rate; its level and blocks follow those of the plan.
    RateAdded {
        /// The load level.
        level: LoadLevel,
        /// Its blocks, drawn from the plan's seed like all others.
        blocks: Vec<Block>,
    },
    /// A pilot chose the length of the turns of a level; its blocks follow those of the plan.
    TurnsChosen {
        /// Index into `Plan::levels`.
        level: usize,
        /// The length, and the lengths that it was chosen from.
        choice: TurnChoice,
        /// The blocks of the level, drawn from the plan's seed like all others.
        blocks: Vec<Block>,
    },
    /// Transactions outlasted the turns of a level for too large a share of the clients' time, so from here on the
    /// turns of its blocks are so many times longer than planned, and a block has as many times fewer.
    TurnsLengthened {
        /// Index into `Plan::levels`.
        level: usize,
        /// How many times longer than planned.
        times: u32,
        /// Share of the clients' time after the planned ends of the earlier turns, of the contender with the largest.
        drained_share: f64,
    },
    /// The long turns of a level were drawn, before its first block. They run between its blocks, are not part of its
    /// verdict, and show whether it would differ without frequent switches.
    LongTurnsDrawn {
        /// Index into `Plan::levels`.
        level: usize,
        /// Measured part of each, seconds.
        turn_s: f64,
        /// Uncounted load before it, seconds.
        guard_s: f64,
        /// Contenders in running order, each once, round by round.
        rounds: Vec<Vec<usize>>,
    },
    /// Each contender was loaded without a switch for much longer than a turn: before the first block beside rehearsed
    /// turns, later between two blocks.
    ContinuityRound(ContinuityRound),
    /// A server answers.
    ServerReady {
        /// Name of the contender.
        contender: String,
        /// Version as the server states it.
        version: String,
        /// Seconds from its start to its first answer; absent for a server that we did not start.
        #[serde(default)]
        start_s: Option<f64>,
    },
    /// A contender's data are in place.
    DatasetReady {
        /// Name of the contender.
        contender: String,
        /// True when the data were already there (restored from a snapshot, or found on a running server), false when
        /// they were loaded for this run.
        restored: bool,
        /// Rows of all tables.
        rows: u64,
        /// Duration, seconds.
        seconds: f64,
        /// Digest of the content; equal data have equal digests on every product.
        digest: String,
        /// Bytes of the data directory, by file sizes.
        bytes: u64,
        /// Bytes of the data directory, as allocated on the device.
        allocated_bytes: u64,
        /// The data directory by the use of its files; absent for a server that dbduel did not start, and in records
        /// of versions that did not separate them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<FileSizes>,
        /// Load time, when the tables were loaded: for this run, or for the snapshot that was restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<LoadTime>,
    },
    /// Warm-up of a contender ended.
    WarmedUp {
        /// Name of the contender.
        contender: String,
        /// Seconds of load.
        seconds: f64,
        /// True when a steady state was detected, false when the cap ended the warm-up.
        steady: bool,
        /// Committed transactions per second in equal steps of the warm-up; empty in records that do not keep it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps_per_s: Vec<f64>,
        /// Index into `Plan::levels`; absent for the level with the most clients, whose warm-up serves all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<usize>,
    },
    /// Another phase of a suite begins.
    PhaseStarted {
        /// The phase.
        phase: SuitePhase,
    },
    /// A server had time without load before the reads of a suite: table statistics were gathered, then it was left
    /// idle.
    Settled {
        /// Name of the contender.
        contender: String,
        /// Seconds that the statements took.
        statements_s: f64,
        /// Seconds without load after them.
        seconds: f64,
    },
    /// The stacks of a server were sampled under the load of a level, which does not count.
    StacksSampled {
        /// Name of the contender.
        contender: String,
        /// Index into the plan's load levels.
        level: usize,
        /// Transactions that were committed per second meanwhile.
        transactions_per_s: f64,
        /// Processor time per sample, seconds per second of sampling.
        cpu_share_per_sample: f64,
    },
    /// A slice begins.
    SliceStarted {
        /// The slice.
        slice: SliceId,
        /// Name of the contender.
        contender: String,
        /// Number of the quantum that it runs, where the workload is a trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<u32>,
    },
    /// A slice ended and all its rows are in the tables.
    SliceFinished {
        /// The slice.
        slice: SliceId,
        /// Bytes of each growing file, including the rows of this slice; empty in records of earlier versions. Bytes
        /// that an interrupted write leaves after these lengths do not count.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        lengths: BTreeMap<String, u64>,
    },
    /// The incomplete end of a file, left by an interrupted write, was removed. No row of a finished slice was in it.
    TailRemoved {
        /// The file, by its path below the record.
        file: String,
        /// Its new length, bytes.
        kept_bytes: u64,
        /// Removed bytes.
        removed_bytes: u64,
    },
    /// A slice brought no result; its block does not count.
    SliceLost {
        /// The slice.
        slice: SliceId,
        /// Why, as a sentence fragment.
        why: String,
        /// Seconds of the budget that it used all the same.
        #[serde(default)]
        seconds: f64,
    },
    /// The user ended the run within a block whose turns had not all ended; the block does not count, and the record
    /// has only this entry of it.
    BlockAbandoned {
        /// The block.
        block: u32,
        /// Seconds of the budget that its turns used all the same.
        seconds: f64,
    },
    /// A server ended unexpectedly.
    ServerDied {
        /// Name of the contender.
        contender: String,
        /// How it ended, and the end of its log.
        how: String,
    },
    /// A server that had died answers again.
    ServerRecovered {
        /// Name of the contender.
        contender: String,
        /// Seconds from its start to its first answer, crash recovery included.
        seconds: f64,
    },
    /// A level needs no more blocks: every comparison with the baseline is decided.
    LevelDecided {
        /// Index into `Plan::levels`.
        level: usize,
        /// Number of complete blocks at that time.
        blocks: u32,
    },
    /// A notice that the report must show.
    Noticed {
        /// The notice.
        #[serde(rename = "finding")]
        notice: Notice,
    },
    /// The run ended.
    Ended {
        /// The reason.
        reason: EndReason,
    },
}

/// A round of the continuity check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContinuityRound {
    /// Index into `Plan::levels`.
    pub level: usize,
    /// Middle of the measured part of the turns compared with, seconds.
    pub turn_s: f64,
    /// Results of each contender in rehearsed turns; empty between blocks, where its slices are compared instead.
    pub in_turns: Vec<LoadStretch>,
    /// Results of each contender without a switch.
    pub unswitched: Vec<LoadStretch>,
    /// Load of the whole round, seconds.
    pub seconds: f64,
}

/// Results of one contender in one or several turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadStretch {
    /// Name of the contender.
    pub contender: String,
    /// Number of turns.
    pub turns: u32,
    /// Their measured parts, seconds.
    pub seconds: f64,
    /// Transactions committed in them.
    pub transactions: u64,
    /// 99 % quantile of their latencies, microseconds; 0 without transactions.
    pub latency_us_p99: f64,
    /// Processor time of the server per transaction, microseconds; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_transaction: Option<f64>,
    /// Bytes that the server wrote to the device per transaction; absent where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes_per_transaction: Option<f64>,
    /// Disk cache flushes per transaction, by all users of the disk while the contender was awake; absent where they
    /// were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_flushes_per_transaction: Option<f64>,
}

impl LoadStretch {
    /// Committed transactions per second; `None` without any.
    #[must_use]
    pub fn per_s(&self) -> Option<f64> {
        let per_s = self.transactions as f64 / self.seconds;
        (self.transactions > 0 && per_s.is_finite()).then_some(per_s)
    }
}

/// Load time of a contender's tables. One observation: it is reported, not judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTime {
    /// Rows sent.
    pub rows: u64,
    /// Parallel connections.
    pub connections: u32,
    /// Seconds until all rows were in.
    pub rows_s: f64,
    /// Seconds for secondary indexes, keys and statistics, which followed.
    pub finish_s: f64,
    /// Processor time of the load process for the rows, seconds.
    pub cpu_s: f64,
    /// What was changed of a dump so that the server takes it, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Every duel is decided.
    Decided,
    /// The time budget is spent.
    BudgetSpent,
    /// The user asked to stop. The record can be resumed.
    Interrupted,
    /// The run could not continue; a notice says why. The record can be resumed.
    Failed,
}

/// How much a notice or a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// For information.
    Note,
    /// Weakens the verdict.
    Doubt,
    /// No verdict may be based on this.
    Void,
}

/// A statement about the contest, with the numbers that support it and a remedy. The judge makes a finding of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Finding"))]
pub struct Notice {
    /// Stable name of the rule that found it.
    pub rule: String,
    /// How much it weighs.
    pub severity: Severity,
    /// Contenders that it concerns; empty means the whole contest.
    pub about: Vec<String>,
    /// One sentence, with the numbers in it.
    pub claim: String,
    /// How to avoid it in the next run.
    pub remedy: String,
}

impl Notice {
    /// A notice of this rule.
    #[must_use]
    pub fn new(
        rule: &str,
        severity: Severity,
        about: &[&str],
        claim: String,
        remedy: &str,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            severity,
            about: about.iter().map(|&name| name.to_owned()).collect(),
            claim,
            remedy: remedy.to_owned(),
        }
    }
}
