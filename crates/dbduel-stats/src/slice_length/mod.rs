//! Choice of the slice length: the length at which a minute of measuring narrows the interval of a ratio most, from series of
//! one contender at a time.
//!
//! The choice never looks at a difference between contenders, so it may be made before or while they are compared and cannot
//! favour an outcome: each series is cut into virtual blocks, A B B A with the gaps of real switches, in which A and B are the
//! same contender. The scatter of their ratios, times the root of the time they take, is what a length costs. Where noise is
//! white all lengths cost the same but for the gaps, and long ones win; where the machine's speed wanders the
//! parts of a short block have more of it in common, and short ones win. (The same trade between drift and white noise
//! is read from the two-sample variance of oscillators: Allan 1966; overlapping samples: Howe, Allan and Barnes 1981.)
//!
//! Virtual blocks lack two things: the traces of a switch, which the guard must cover, and rhythms of a contender's own,
//! which both sides of a virtual block share and those of a real one do not. Neither makes a chosen length wrong; the
//! second makes real blocks scatter by more than predicted.

use crate::error::{StatsError, all_finite, at_least};
use crate::moments::as_count;

#[cfg(test)]
mod tests;

/// Lengths that are tried, in seconds, beside the shortest and the longest that are allowed.
pub const LENGTHS_S: [f64; 10] = [0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0];

/// Virtual blocks one after the other that a length needs to be compared by: from fewer its scatter is known too badly.
///
/// On ten simulated machines (white noise, 1/f, random walks, mixtures, and those of [`crate::simulate`]) with 10, 30 and 60 s of
/// both contenders, contests with the cheapest length took up to 1.21 times the least possible time with 4 blocks, 1.16 with 8, and
/// 1.12 with 16, but for 10 s of white noise (1.08, 1.13 and 1.22), where gaps alone make the difference.
pub const BLOCKS_MIN: usize = 16;

/// Of lengths whose interval is wider than the narrowest by at most this factor, which is a tenth more time, the longest is taken,
/// since it holds more. Where noise is mostly slow, 1.1 led to 1.0 to 1.4 times the least possible time in those simulations, and
/// 1.2 to 1.2 to 1.8.
const TOLERANCE: f64 = 1.05;

/// Parameters of a choice beside the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceRule {
    /// Seconds of one value of the series.
    pub tick_s: f64,
    /// Seconds of each slice that are not measured: switch and guard.
    pub unmeasured_s: f64,
    /// The shortest allowed slice.
    pub floor_s: f64,
    /// The longest slice that the plan allows.
    pub cap_s: f64,
    /// Number of contenders; a block has a permutation of them and its reverse.
    pub contenders: usize,
}

/// Reason of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceReason {
    /// It costs least, or hardly more than the cheapest.
    Variance,
    /// It is the shortest that is allowed; a shorter one would cost less.
    Floor,
    /// It is the longest that is allowed; a longer one would cost less.
    Cap,
    /// The series are too short to compare the allowed lengths: the shortest.
    TooLittleData,
}

/// Cost of one length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceCandidate {
    /// The length in seconds.
    pub length_s: f64,
    /// Consecutive virtual blocks in all series; the scatter is estimated from overlapping ones too, which are many
    /// more.
    pub blocks: usize,
    /// Virtual slices without a completion: blocks with one have no ratio, so the length is not chosen.
    pub empty_slices: usize,
    /// Standard deviation of the log ratio of one block; `None` without a block, or with empty slices.
    pub block_sd: Option<f64>,
    /// Half of the 95 % interval that a minute of blocks would give the log ratio, gaps included.
    pub half_width: Option<f64>,
    /// Whether it lies between floor and cap.
    pub is_allowed: bool,
}

impl SliceCandidate {
    /// Its cost, if known well enough for a comparison.
    fn cost(&self) -> Option<f64> {
        self.half_width.filter(|_| self.blocks >= BLOCKS_MIN)
    }
}

/// A length with its candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceChoice {
    /// The chosen length in seconds.
    pub length_s: f64,
    /// Why it was chosen.
    pub reason: SliceReason,
    /// All candidates, the shortest first.
    pub candidates: Vec<SliceCandidate>,
}

/// Chooses the length of slices from `series`: transactions by the tick, of one contender at one level and without a switch in
/// each. Several of a contender, and of different contenders, are pooled and never compared.
///
/// ```
/// use dbduel_stats::slice_length::{SliceReason, SliceRule, choose_slice_length};
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// // A minute of each of two contenders by ticks of 50 ms, on a machine that slows down and recovers every 7 s.
/// let series: Vec<Vec<f64>> = [900.0, 700.0]
///     .map(|rate| (0..1200).map(|tick| rate * (1.0 + 0.2 * (f64::from(tick) / 22.0).sin())).collect())
///     .to_vec();
/// let rule = SliceRule { tick_s: 0.05, unmeasured_s: 0.03, floor_s: 0.1, cap_s: 15.0, contenders: 2 };
/// let choice = choose_slice_length(&series, &rule)?;
/// assert!(choice.length_s <= 0.25);
/// assert_eq!(choice.reason, SliceReason::Floor);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StatsError::Parameter`] for a rule that no slice can follow; [`StatsError::OutOfRange`] or [`StatsError::NotPositive`]
/// for a number of transactions that cannot be.
pub fn choose_slice_length(
    series: &[Vec<f64>],
    rule: &SliceRule,
) -> Result<SliceChoice, StatsError> {
    rule.check()?;
    let totals: Vec<Vec<f64>> = series
        .iter()
        .map(|ticks| running_totals(ticks))
        .collect::<Result<_, _>>()?;
    let mut lengths: Vec<f64> = LENGTHS_S
        .into_iter()
        .filter(|length| *length >= rule.tick_s)
        .chain([rule.floor_s, rule.cap_s])
        .collect();
    lengths.sort_unstable_by(f64::total_cmp);
    lengths.dedup();
    let candidates: Vec<SliceCandidate> = lengths
        .into_iter()
        .map(|length_s| rule.candidate(length_s, &totals))
        .collect();
    let allowed = |candidate: &&SliceCandidate| candidate.is_allowed;
    let chosen = cheapest(candidates.iter().filter(allowed));
    let of_all = cheapest(candidates.iter());
    let (length_s, reason) = match (chosen, of_all) {
        (Some(chosen), Some(of_all)) if of_all < chosen => (chosen, SliceReason::Floor),
        (Some(chosen), Some(of_all)) if of_all > chosen => (chosen, SliceReason::Cap),
        (Some(chosen), _) => (chosen, SliceReason::Variance),
        (None, _) => (rule.floor_s, SliceReason::TooLittleData),
    };
    Ok(SliceChoice {
        length_s,
        reason,
        candidates,
    })
}

/// The longest of the lengths that hardly cost more than the cheapest.
fn cheapest<'a>(candidates: impl Iterator<Item = &'a SliceCandidate> + Clone) -> Option<f64> {
    let costs = candidates.clone().filter_map(SliceCandidate::cost);
    let least = costs.min_by(f64::total_cmp)?;
    let is_cheap = |one: &&SliceCandidate| one.cost().is_some_and(|cost| cost <= TOLERANCE * least);
    candidates
        .filter(is_cheap)
        .map(|one| one.length_s)
        .max_by(f64::total_cmp)
}

/// Cumulative transactions at each tick, beginning with zero.
fn running_totals(ticks: &[f64]) -> Result<Vec<f64>, StatsError> {
    all_finite("transactions of a tick", ticks)?;
    if let Some(index) = ticks.iter().position(|count| *count < 0.0) {
        return Err(StatsError::NotPositive {
            what: "transactions of a tick",
            index,
            value: ticks[index],
        });
    }
    let mut total = 0.0;
    let totals = ticks.iter().map(|count| {
        total += count;
        total
    });
    Ok([0.0].into_iter().chain(totals).collect())
}

impl SliceRule {
    fn check(&self) -> Result<(), StatsError> {
        at_least("contenders", 2, self.contenders)?;
        let wrong = |name, value, requirement| {
            Err(StatsError::Parameter {
                name,
                value,
                requirement,
            })
        };
        if !(1e-6..=1e6).contains(&self.tick_s) {
            return wrong("tick_s", self.tick_s, "a length of time");
        }
        if !(0.0..=1e6).contains(&self.unmeasured_s) {
            return wrong("unmeasured_s", self.unmeasured_s, "a length of time");
        }
        if !(self.tick_s..=1e6).contains(&self.floor_s) {
            return wrong("floor_s", self.floor_s, "at least a tick");
        }
        if !(self.floor_s..=1e6).contains(&self.cap_s) {
            return wrong("cap_s", self.cap_s, "at least the floor");
        }
        Ok(())
    }

    /// Cuts the series into virtual blocks with slices of `length_s`, one from every tick on.
    fn candidate(&self, length_s: f64, totals: &[Vec<f64>]) -> SliceCandidate {
        let ticks = |seconds: f64| as_count((seconds / self.tick_s).round());
        let length = ticks(length_s).max(1);
        let gap = ticks(self.unmeasured_s);
        let slices = 2 * self.contenders;
        let span = slices * length + (slices - 1) * gap;
        let (mut blocks, mut empty_slices) = (0, 0);
        let (mut squares, mut overlapping) = (0.0, 0.0);
        for series in totals {
            blocks += (series.len() - 1 + gap) / (span + gap);
            for start in 0..series.len().saturating_sub(span) {
                let slice = |place: usize| {
                    let from = start + place * (length + gap);
                    series[from + length] - series[from]
                };
                empty_slices += (0..slices).filter(|place| slice(*place) <= 0.0).count();
                squares += self.mean_square(slice);
                overlapping += 1.0;
            }
        }
        let is_usable = overlapping > 0.0 && empty_slices == 0;
        let block_sd = is_usable.then(|| (squares / overlapping).sqrt());
        let block_s = slices as f64 * (length as f64 * self.tick_s + self.unmeasured_s);
        SliceCandidate {
            length_s,
            blocks,
            empty_slices,
            block_sd,
            half_width: block_sd.map(|sd| 1.96 * sd * (block_s / 60.0).sqrt()),
            is_allowed: self.floor_s <= length_s && length_s <= self.cap_s,
        }
    }

    /// Mean square of the log ratios of all pairs of positions in a block: a random permutation puts two contenders
    /// into any of them with equal probability. A position holds a slice of the first half and its mirror image.
    fn mean_square(&self, slice: impl Fn(usize) -> f64) -> f64 {
        let last = 2 * self.contenders - 1;
        let levels: Vec<f64> = (0..self.contenders)
            .map(|place| (slice(place) + slice(last - place)).ln())
            .collect();
        let pairs = (1..self.contenders).flat_map(|one| (0..one).map(move |other| (one, other)));
        let (mut squares, mut count) = (0.0, 0.0);
        for (one, other) in pairs {
            squares += (levels[one] - levels[other]).powi(2);
            count += 1.0;
        }
        squares / count
    }
}
