//! Crossings of two contenders over any ascending size, each size measured by a level of some record.
//!
//! A crossing is claimed only between sizes whose differences are certain at every moment of their runs and at all
//! sizes together, since a duel stops when it is decided.

use dbduel_stats::StatsError;
use dbduel_stats::crossover::{Crossing, SizeDifferences, find_crossovers};

use crate::duel::decide::Question;
use crate::evidence::Evidence;

/// Measurement at one size.
pub(crate) struct Size<'a> {
    /// The size; positive.
    pub size: f64,
    /// The record.
    pub evidence: &'a Evidence<'a>,
    /// Index into its plan's levels.
    pub level: usize,
    /// Log ratios of its blocks, contender ÷ baseline.
    pub log_ratios: Vec<f64>,
}

/// The crossings of `contender` and the baseline that all `sizes`, ascending, prove together.
///
/// # Errors
/// Too few sizes or blocks, see [`find_crossovers`].
pub(crate) fn certain_crossings(
    sizes: &[Size<'_>],
    contender: usize,
    confidence: f64,
) -> Result<Vec<Crossing>, StatsError> {
    let differences: Vec<SizeDifferences> = sizes
        .iter()
        .map(|size| SizeDifferences {
            size: size.size,
            differences: size.log_ratios.clone(),
        })
        .collect();
    let curve = find_crossovers(&differences, 1.0 - confidence)?;
    let alpha = (1.0 - confidence) / sizes.len() as f64;
    let is_certain = |at: f64, is_above: bool| {
        let size = sizes.iter().find(|size| size.size == at);
        size.is_some_and(|size| sign(size.evidence, size.level, contender, alpha) == Some(is_above))
    };
    let mut crossings = curve.crossings;
    crossings.retain(|crossing| {
        is_certain(crossing.after_size, !crossing.rising)
            && is_certain(crossing.before_size, crossing.rising)
    });
    Ok(crossings)
}

/// Whether the contender is certainly above the baseline, certainly below, or neither, however often the data were
/// looked at.
fn sign(evidence: &Evidence<'_>, level: usize, contender: usize, alpha: f64) -> Option<bool> {
    let plan = evidence.plan();
    let stream = format!(
        "judge/level/{level}/contender/{}/crossing",
        plan.contenders[contender].name
    );
    let question = Question::with_alpha(plan, [contender, plan.baseline], alpha, stream);
    let comparison = question.compare(&evidence.levels[level].complete);
    match comparison.ratio.interval()? {
        (low, _) if low > 1.0 => Some(true),
        (_, high) if high < 1.0 => Some(false),
        _ => None,
    }
}
