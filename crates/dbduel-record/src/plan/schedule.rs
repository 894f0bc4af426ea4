//! How time is cut: slices, turns, epochs, blocks.

use serde::{Deserialize, Serialize};

use super::LoadLevel;

/// How time is cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What a pilot chose for a load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Least repeats of a block, so that each slice has the transactions that a limit on a quantile needs.
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
    /// Shorter ones might be as good, but hold too few transactions, or too little beside their guard.
    Shortest,
    /// Longer ones might be as good, but leave too few blocks in the budget.
    Longest,
    /// In shorter ones a contender's own throughput departed from that without a switch.
    Continuity,
    /// The pilot saw too little to predict the scatter.
    TooLittleData,
}

/// What a pilot predicts of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Epochs {
    /// How many epochs at most.
    pub count: u32,
    /// Blocks of each level in one of them.
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
