//! Checks that a verdict on throughput rests on enough stalls.
//!
//! When a server stalls for a second now and then, a few stalls say little about its throughput in the long run. The
//! trace of such stalls in a slice is the time that clients waited for transactions that outlasted their turns.

use dbduel_record::rows::SliceRow;
use dbduel_stats::StatsError;
use dbduel_stats::sequential::{Decision, Verdict};
use dbduel_stats::stalls::{RatioStalls, StallChance, stall_chance};

use super::decide::Question;
use crate::evidence::blocks::CompleteBlock;
use crate::summary::FewStalls;

/// Widens the interval for the chance in too few stalls, and withdraws a verdict that does not survive this.
/// `centre`: the log ratio of all work. `None` where there are enough stalls, or none.
pub(super) fn widen(
    question: &Question<'_>,
    blocks: &[CompleteBlock<'_>],
    centre: f64,
    decision: &mut Decision,
) -> Result<Option<FewStalls>, StatsError> {
    let Some(interval) = decision.interval else {
        return Ok(None);
    };
    let chance = |who: usize| {
        let rows: Vec<&SliceRow> = blocks.iter().flat_map(|one| one.slices_of(who)).collect();
        chance_of(&rows, question.alpha)
    };
    let stalls = RatioStalls {
        contender: chance(question.contender)?,
        reference: chance(question.reference)?,
    };
    if !stalls.are_too_few(centre, &interval) {
        return Ok(None);
    }
    let widened = stalls.widened(centre, &interval);
    let margin = question.plan.decision.horizon.ln_1p();
    let is_within = -margin <= widened.low && widened.high <= margin;
    let stands = match decision.verdict {
        Verdict::Faster => widened.low >= 0.0,
        Verdict::Slower => widened.high <= 0.0,
        Verdict::Equivalent => is_within,
        Verdict::Undecided => true,
    };
    decision.interval = Some(widened);
    if decision.is_balanced && !widened.excludes(centre) {
        (decision.estimate, decision.is_balanced) = (centre, false);
    }
    decision.within_margin &= is_within;
    if !stands {
        decision.verdict = Verdict::Undecided;
        decision.within_margin = false;
        (decision.decided_at, decision.method) = (None, None);
    }
    let costlier = match stalls.contender.share >= stalls.reference.share {
        true => (question.contender, stalls.contender),
        false => (question.reference, stalls.reference),
    };
    Ok(Some(FewStalls {
        contender: question.plan.contenders[costlier.0].name.clone(),
        stalls: costlier.1.effective,
        share: costlier.1.share,
    }))
}

/// What chance in the number of its stalls may have done to a contender with these slices.
fn chance_of(rows: &[&SliceRow], alpha: f64) -> Result<StallChance, StatsError> {
    let mut drained: Vec<f64> = rows.iter().filter_map(|row| row.drained_s).collect();
    if drained.is_empty() {
        return Ok(StallChance::default());
    }
    let middle = drained.len() / 2;
    // What the last transactions of a slice take in any case.
    let usual = *drained.select_nth_unstable_by(middle, f64::total_cmp).1;
    let excess: Vec<f64> = drained.iter().map(|one| (one - usual).max(0.0)).collect();
    let measured_s: f64 = rows.iter().map(|row| row.measured_s).sum();
    stall_chance(&excess, measured_s, alpha)
}
