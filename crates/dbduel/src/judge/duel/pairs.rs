//! Every two contenders of a level, with the error probability of the whole family controlled.
//!
//! The level's error probability is divided equally among the pairs (Bonferroni), which keeps every
//! interval valid at every moment of the run and all of them together. Knows throughput only.

use super::decide::Question;
use crate::judge::evidence::Evidence;
use crate::judge::summary::PairComparison;

/// The pairs of `level`, later contenders against earlier ones; none for a duel of two, where the
/// comparison with the baseline says it all.
pub fn compare(evidence: &Evidence<'_>, level: usize) -> Vec<PairComparison> {
    let plan = evidence.plan();
    let contenders = plan.contenders.len();
    if contenders < 3 {
        return Vec::new();
    }
    let pairs = contenders * (contenders - 1) / 2;
    let alpha = (1.0 - plan.decision.confidence) / pairs as f64;
    let blocks = &evidence.levels[level].complete;
    let name = |contender: usize| plan.contenders[contender].name.clone();
    let couples =
        (0..contenders).flat_map(|one| (one + 1..contenders).map(move |other| (one, other)));
    let compared = couples.map(|(reference, contender)| {
        let stream = format!(
            "judge/level/{level}/pair/{}/{}",
            name(contender),
            name(reference)
        );
        let question = Question::with_alpha(plan, [contender, reference], alpha, stream);
        let comparison = question.compare(blocks);
        PairComparison {
            contender: name(contender),
            against: name(reference),
            verdict: comparison.verdict,
            ratio: comparison.ratio,
            alpha,
            because: comparison.because,
        }
    });
    compared.collect()
}
