//! Duration of a unit.
//!
//! Short turns keep the machine's noise small, but a contender that is slow for some seconds, for example by its own
//! checkpoint, is slow in many consecutive short blocks, and their signs are not fair coins. A block of short turns
//! therefore repeats its order until it lasts longer than most such disturbances.

/// The shortest unit, in seconds.
///
/// On the simulated machines below the second, with turns of 0.1 to 0.5 s, units of 2.4 s that grow to 20 s led to verdicts
/// between equal contenders in 0 to 5 of 100 duels of 20 minutes, where single blocks of 0.6 s did so in 22 to 57 of 100 with
/// dips of 3 to 6 s; units that begin with 1.2 s did so in up to 14.
pub const UNIT_FIRST_S: f64 = 2.4;

/// A unit lasts this share of the time before it, between the shortest and the longest: large differences are found
/// early.
const UNIT_SHARE: f64 = 0.1;

/// The longest unit, in seconds, unless a block is longer.
const UNIT_LONGEST_S: f64 = 20.0;

/// Least duration of a unit that begins `began_s` seconds into a contest, seconds.
#[must_use]
pub fn unit_length_s(began_s: f64) -> f64 {
    (UNIT_SHARE * began_s).clamp(UNIT_FIRST_S, UNIT_LONGEST_S)
}
