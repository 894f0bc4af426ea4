//! Division of time: slices, turns, epochs, blocks.

use serde::{Deserialize, Serialize};

use super::LoadLevel;

/// Division of a contest's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    /// Time for warm-up and slices together, seconds.
    pub budget_s: f64,
    /// Middle of the measured part of a slice, seconds; the slices of each block are drawn around it.
    pub slice_s: f64,
    /// Half-width of that draw as a share of `slice_s`.
    pub jitter: f64,
    /// Uncounted load after a switch to another contender, seconds.
    pub guard_s: f64,
    /// Longest time to wait for transactions in flight at the end of a slice, seconds.
    pub drain_s: f64,
    /// Length of a tick inside a slice, seconds.
    pub tick_s: f64,
    /// Longest warm-up of one contender, seconds.
    pub warm_up_cap_s: f64,
    /// A steady state is certified only after this many seconds in it.
    pub warm_up_hold_s: f64,
    /// Planned restarts of all servers; absent when the verdicts are about one start of them.
    #[serde(default)]
    pub epochs: Option<Epochs>,
    /// How the length of turns is chosen during the contest, level by level; `slice_s` is then the longest that may be
    /// chosen. Absent when all slices are as long as `slice_s` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Pilot>,
    /// Whether a block is a permutation of the contenders and its reverse. Otherwise it holds every contender once.
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pilot {
    /// The shortest turn that may be chosen, seconds.
    pub turn_s_min: f64,
    /// Load on each contender, without a switch, from which the scatter of a length is predicted, seconds.
    pub steady_s: f64,
    /// Switches to each contender, from which the guard is measured.
    pub switches: u32,
}

/// Choice of a pilot for a load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnChoice {
    /// Middle of the measured part of a turn, seconds; the turns of each block are drawn around it.
    pub turn_s: f64,
    /// Uncounted load after a switch to another contender, seconds.
    pub guard_s: f64,
    /// Length of a tick inside a turn, seconds.
    pub tick_s: f64,
    /// Blocks that the error probability is spent over; replaces the plan's.
    pub blocks_max: u32,
    /// Why this length.
    pub reason: TurnReason,
    /// The candidate lengths, ascending.
    pub lengths: Vec<TurnLength>,
    /// Load of the pilot, all contenders together, seconds.
    pub seconds: f64,
    /// Median time from the end of a turn until the load of the next one, seconds.
    pub switch_s: f64,
    /// How long throughput shows a switch, the longest of all contenders, seconds.
    pub transient_s: f64,
    /// Fewest repeats of a block, so that each slice has the transactions that a limit on a quantile needs.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeats_min: u32,
}

/// Why a pilot chose a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TurnReason {
    /// Its interval is predicted to narrow fastest.
    Scatter,
    /// Shorter turns might be as good, but hold too few transactions, or too little time relative to their guard.
    Shortest,
    /// Longer turns might be as good, but leave too few blocks in the budget.
    Longest,
    /// In shorter turns a contender's own throughput differed from that without a switch.
    Continuity,
    /// The pilot had too little data to predict the scatter.
    TooLittleData,
}

/// A pilot's prediction for one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnLength {
    /// Measured part of a turn, seconds.
    pub turn_s: f64,
    /// Mirrored blocks of one contender's own series that the prediction comes from.
    pub blocks: u32,
    /// Standard deviation of their log ratios.
    pub block_sd: f64,
    /// Half width of a 95 % interval of the ratio after a minute of such blocks, switches included.
    pub half_width_per_minute: f64,
}

/// Planned restarts of all servers, so that verdicts are about them and not about one start of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epochs {
    /// Maximum number of epochs.
    pub count: u32,
    /// Blocks of each level per epoch.
    pub blocks: u32,
}

/// One block: a permutation of the contenders, and its reverse unless the schedule says otherwise, one slice each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How often the running order is repeated: a slice is measured in this many turns. 1 in plans from before turns.
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
    /// Weight of the block in a verdict: proportional to its measured time, among blocks with one length of turns.
    #[must_use]
    pub fn weight(&self) -> f64 {
        f64::from(self.repeats)
    }

    /// The turns of the block in running order: number of the repeat, and position in the order.
    pub fn turns(&self) -> impl Iterator<Item = (u32, usize)> + use<> {
        let positions = self.order.len();
        (0..self.repeats)
            .flat_map(move |repeat| (0..positions).map(move |position| (repeat, position)))
    }

    /// Number of earlier slices in the order of the contender at `position`.
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
