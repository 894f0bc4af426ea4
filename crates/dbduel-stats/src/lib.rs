//! Statistics of measurements that are taken in pairs, in random order, on machines that drift.
//!
//! Pure functions of data and seed: numbers in, numbers out. The crate has no clock, no files, no units
//! and no names of servers; callers keep those and attach them to what comes back. Bad input is a
//! [`StatsError`], never a panic. Same input, same seed, same output, on every machine and for ever.
//!
//! The modules, in the order in which a duel uses them:
//!
//! * [`steady`]: has the warm-up ended? [`guard`]: how much of a slice does a switch spoil?
//! * [`slice_length`]: how long should slices be? [`continuity`]: does switching change what is measured?
//! * [`mean`], [`quantile`]: one contender's figures, with intervals that survive slow movements of the machine.
//! * [`compare`]: mirrored blocks to paired differences, and cross-checks of their mean.
//!   [`order`], [`trend`]: does a switch leave traces, does the ratio drift?
//! * [`sequential`]: faster, slower, equivalent or undecided, checked after every block.
//!   [`epochs`]: the same for servers that were restarted in between.
//! * [`attribution`]: contenders between two, and the effect of each of their differing settings.
//! * [`stalls`]: the stalls seen, whether they are enough, and what unseen ones could still overturn.
//! * [`scaling`], [`crossover`], [`history`]: curves over concurrency, crossings over sizes, changes
//!   over runs. [`pool`]: one comparison on several machines.
//! * [`simulate`]: machines and contenders with known truth, for tests of methods.
//!
//! ```
//! use dbduel_stats::compare::{BlockSlices, SliceValue, block_differences};
//! use dbduel_stats::sequential::{SequentialPlan, Unit, Verdict, decide};
//!
//! # fn main() -> Result<(), dbduel_stats::StatsError> {
//! // Twelve blocks, A B B A or B A A B, while the machine slows down; B is 5 % faster.
//! let blocks: Vec<BlockSlices> = (0..12_u32)
//!     .map(|block| {
//!         let order = if block % 3 == 0 { [0, 1, 1, 0] } else { [1, 0, 0, 1] };
//!         let slices = (0_u32..).zip(order).map(|(position, contender)| SliceValue {
//!             contender,
//!             value: 1000.0 * 1.05_f64.powi(contender as i32) - f64::from(4 * block + position),
//!         });
//!         BlockSlices { length: 15.0, slices: slices.collect() }
//!     })
//!     .collect();
//! let differences = block_differences(&blocks, 2, 0)?;
//! let units = Unit::of_weight_one(&differences[1]);
//! let plan = SequentialPlan::new(40.0, 0.05, 1.02_f64.ln(), 7);
//! let decision = decide(&units, &plan)?;
//! assert_eq!(decision.verdict, Verdict::Faster);
//! assert!((decision.estimate.exp() - 1.05).abs() < 0.002);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod autocorrelation;
mod error;
mod estimate;
mod linear;
mod moments;
mod slow_movement;
mod waves;

pub mod attribution;
pub mod bisection;
pub mod compare;
pub mod continuity;
pub mod crossover;
pub mod epochs;
pub mod guard;
pub mod history;
pub mod mean;
pub mod order;
pub mod pool;
pub mod proportion;
pub mod quantile;
pub mod random;
pub mod scaling;
pub mod sequential;
pub mod simulate;
pub mod slice_length;
pub mod stalls;
pub mod steady;
pub mod trend;

pub use error::{MAGNITUDE_MAX, StatsError};
pub use estimate::Estimate;
pub use moments::median;
