//! Verdicts on a sequence of paired differences or of the totals of blocks, looked at after every unit without inflating the
//! error rate.
//!
//! Two tests share the error budget. The sign-flip test with alpha spending has four fifths and a declared weight of all
//! units together; the e-process has one fifth and no horizon, so a duel may be extended after its budget. All four
//! verdicts follow from one confidence set, hence they are right together with probability at least 1 − α. One call
//! answers for one pair and one metric; callers divide α when they ask several questions.
//! Larger is called `Faster`, so differences of latencies go in with their sign turned.
//!
//! A unit is a difference with its weight, such as that of a block whose slices were longer than those of another. Weights
//! of 1 and their number as the total are what is meant where nothing is said of weights. Or it is what two contenders did in a
//! block, work and time ([`Unit::of_totals`]): then the effect is the log ratio of their throughputs over all blocks together,
//! which stalls that fall into few of the blocks move by what they cost.
//!
//! Limit: a kind of stall rarer than the measured time cannot be seen by any rule here; see
//! [`crate::stalls`].

pub(crate) mod balance;
mod coins;
mod confidence_set;
mod decision;
mod flip_spend;
mod plan;
mod share;
mod sign_e_process;
mod statistic;
mod totals;
mod unit;
mod unit_length;
mod verdict;

pub use decision::{Decider, decide};
pub use flip_spend::{Rejection, Side};
pub use plan::{DEFAULT_N_MIN, DEFAULT_PATHS, DEFAULT_RESERVE, SequentialPlan};
pub use share::{Share, WholeShare, share_of_whole};
pub use totals::{BlockTotals, Totals};
pub use unit::Unit;
pub use unit_length::{UNIT_FIRST_S, unit_length_s};
pub use verdict::{Decision, Interval, Method, Verdict};

use crate::error::{StatsError, open_fraction};
use coins::Coins;
use flip_spend::FlipSpend;
use sign_e_process::SignEProcess;
use unit::check_all;

/// The sign-flip test with alpha spending alone, with the whole of the plan's α and without a margin:
/// the first look at which "the differences are symmetric about zero" is rejected (Fisher 1935; Lan & DeMets
/// 1983).
///
/// ```
/// use dbduel_stats::sequential::{SequentialPlan, Side, Unit, flip_spend};
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// // 2 · 2⁻⁷ is the first probability below 0.05 · 7/16.
/// let plan = SequentialPlan::new(16.0, 0.05, 0.0, 1);
/// let units = Unit::of_weight_one(&[0.03, 0.01, 0.02, 0.02, 0.04, 0.01, 0.03]);
/// let rejection = flip_spend(&units, &plan)?;
/// assert!(rejection.is_some_and(|found| found.at == 7 && found.side == Side::Above));
/// let units = Unit::of_weight_one(&[0.03, -0.01, 0.02, 0.02, -0.04, 0.01, 0.03]);
/// assert_eq!(flip_spend(&units, &plan)?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A unit that cannot be computed with, or a plan that could never decide.
pub fn flip_spend(units: &[Unit], plan: &SequentialPlan) -> Result<Option<Rejection>, StatsError> {
    plan.check()?;
    check_all(units)?;
    let mut coins = Coins::new(plan.seed, plan.paths);
    let mut test = FlipSpend::new(plan, plan.alpha);
    for (number, unit) in units.iter().enumerate() {
        coins.extend_to(number + 1);
        test.push(unit.without(0.0), unit.weight, &coins);
    }
    Ok(test.rejection())
}

/// The e-process alone, at level `alpha` and without a horizon: the first unit at which the evidence against
/// fair signs reaches `1 / alpha` (Ville 1939; de la Peña 1999). It may be asked for ever.
///
/// ```
/// use dbduel_stats::sequential::{Unit, sign_e_process};
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// let rejection = sign_e_process(&[Unit::new(0.02, 1.0); 30], 0.01)?;
/// assert!(rejection.is_some_and(|found| found.at <= 12));
/// let in_turns = Unit::of_weight_one(&[0.02, -0.02, 0.02, -0.02]);
/// assert_eq!(sign_e_process(&in_turns, 0.01)?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A unit that cannot be computed with, or `alpha` outside (0, 1).
pub fn sign_e_process(units: &[Unit], alpha: f64) -> Result<Option<Rejection>, StatsError> {
    open_fraction("alpha", alpha)?;
    check_all(units)?;
    let mut process = SignEProcess::new(alpha);
    for unit in units {
        process.push(unit.without(0.0));
    }
    Ok(process.rejection())
}
