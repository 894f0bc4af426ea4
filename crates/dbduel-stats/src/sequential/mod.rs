//! Verdicts on a sequence of paired differences, looked at after every unit without inflating the
//! error rate.
//!
//! Two tests share the error budget. The sign-flip test with alpha spending has four fifths and a declared largest
//! number of units; the e-process has one fifth and no horizon, so a duel may be extended after its budget. All four
//! verdicts follow from one confidence set, hence they are right together with probability at least 1 − α. One call
//! answers for one pair and one metric; callers divide α when they ask several questions.
//! Larger is called `Faster`, so differences of latencies go in with their sign turned.
//!
//! Limit: a kind of stall rarer than the measured time cannot be seen by any rule here; see
//! [`crate::stalls`].

mod coins;
mod confidence_set;
mod decision;
mod flip_spend;
mod plan;
mod sign_e_process;
mod statistic;
mod verdict;

pub use decision::{Decider, decide};
pub use flip_spend::{Rejection, Side};
pub use plan::{DEFAULT_N_MIN, DEFAULT_PATHS, DEFAULT_RESERVE, SequentialPlan};
pub use verdict::{Decision, Interval, Method, Verdict};

use crate::error::{StatsError, all_finite, open_fraction};
use coins::Coins;
use flip_spend::FlipSpend;
use sign_e_process::SignEProcess;

/// The sign-flip test with alpha spending alone, with the whole of the plan's α and without a margin:
/// the first look at which "the differences are symmetric about zero" is rejected (Fisher 1935; Lan & DeMets
/// 1983).
///
/// ```
/// use dbduel_stats::sequential::{SequentialPlan, Side, flip_spend};
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// // 2 · 2⁻⁷ is the first probability below 0.05 · 7/16.
/// let plan = SequentialPlan::new(16, 0.05, 0.0, 1);
/// let rejection = flip_spend(&[0.03, 0.01, 0.02, 0.02, 0.04, 0.01, 0.03], &plan)?;
/// assert!(rejection.is_some_and(|found| found.at == 7 && found.side == Side::Above));
/// assert_eq!(flip_spend(&[0.03, -0.01, 0.02, 0.02, -0.04, 0.01, 0.03], &plan)?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A difference that is not finite, or a plan that could never decide.
pub fn flip_spend(
    differences: &[f64],
    plan: &SequentialPlan,
) -> Result<Option<Rejection>, StatsError> {
    plan.check()?;
    all_finite("paired differences", differences)?;
    let mut coins = Coins::new(plan.seed, plan.paths);
    let mut test = FlipSpend::new(plan.n_max, plan.n_min, plan.alpha, plan.paths);
    for (number, difference) in differences.iter().enumerate() {
        coins.extend_to(number + 1);
        test.push(*difference, &coins);
    }
    Ok(test.rejection())
}

/// The e-process alone, at level `alpha` and without a horizon: the first unit at which the evidence against
/// fair signs reaches `1 / alpha` (Ville 1939; de la Peña 1999). It may be asked for ever.
///
/// ```
/// use dbduel_stats::sequential::sign_e_process;
///
/// # fn main() -> Result<(), dbduel_stats::StatsError> {
/// let rejection = sign_e_process(&[0.02; 30], 0.01)?;
/// assert!(rejection.is_some_and(|found| found.at <= 12));
/// assert_eq!(sign_e_process(&[0.02, -0.02, 0.02, -0.02], 0.01)?, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A difference that is not finite, or `alpha` outside (0, 1).
pub fn sign_e_process(differences: &[f64], alpha: f64) -> Result<Option<Rejection>, StatsError> {
    open_fraction("alpha", alpha)?;
    all_finite("paired differences", differences)?;
    let mut process = SignEProcess::new(alpha);
    for difference in differences {
        process.push(*difference);
    }
    Ok(process.rejection())
}
