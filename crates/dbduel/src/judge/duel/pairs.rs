//! Every two contenders of a level, with the error probability of the whole family controlled.
//!
//! The level's error probability is divided equally among the pairs (Bonferroni), which keeps every
//! interval valid at every moment of the run and all of them together. Latency and cost have an equal
//! error probability of their own, divided among the pairs and then among the quantities of a pair. A
//! stepwise division (Holm 1979) would decide a little more but has no intervals, and must know all
//! answers before it gives one, where duels are looked at after every block.

use super::decide::Question;
use super::quantities;
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
            quantities: quantities::compare(evidence, level, &question),
        }
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::summary::{Change, Quantity, Verdict};
    use crate::judge::synthetic::{QUIET, Scenario, Side, TYPICAL};

    /// Four contenders at one level, of which the last is faster by `faster` on the logarithmic scale.
    fn pairs(
        seed: u64,
        noise: crate::judge::synthetic::MachineNoise,
        faster: f64,
    ) -> Vec<PairComparison> {
        let names = ["a", "b", "c", "d"];
        let scenario = Scenario {
            sides: names.map(|name| Side::new(name, &[1.0])).to_vec(),
            clients: vec![16],
            blocks: 20,
            seed,
            ..Scenario::duel()
        };
        let log_speed =
            |block: &dbduel_record::plan::Block, position: usize| match block.order[position] {
                3 => faster,
                _ => 0.0,
            };
        let record = scenario.on_machine(noise, 900 + seed, log_speed);
        compare(&Evidence::of(&record), 0)
    }

    /// Claims that two differ, in throughput or a latency.
    fn claims(pair: &PairComparison) -> usize {
        let quantities = pair.quantities.iter();
        let changed = quantities.filter(|one| matches!(one.change, Change::Higher | Change::Lower));
        changed.count() + usize::from(matches!(pair.verdict, Verdict::Faster | Verdict::Slower))
    }

    #[test]
    fn four_equals_are_hardly_ever_told_apart() {
        let wrong = (0..8).filter(|&seed| {
            let pairs = pairs(seed, TYPICAL, 0.0);
            assert_eq!(pairs.len(), 6);
            pairs.iter().any(|pair| claims(pair) > 0)
        });
        // A run is wrong with a probability of a tenth at most, 5 % for throughput and 5 % for the rest; of eight
        // that would make more than two wrong for 4 % of all choices of seeds. It tells of a gross fault only.
        assert!(wrong.count() <= 2);
    }

    #[test]
    fn the_one_that_differs_is_found_in_every_pair_and_quantity_that_it_has() {
        for pair in pairs(1, QUIET, 0.1) {
            let is_fourth = pair.contender == "d";
            let wanted = if is_fourth { 4 } else { 0 };
            assert_eq!(claims(&pair), wanted, "{pair:?}");
            let p99 = &pair.quantities[2];
            assert_eq!(p99.quantity, Quantity::LatencyP99);
            let truth = if is_fourth { (-0.1_f64).exp() } else { 1.0 };
            let (low, high) = p99.ratio.interval().unwrap();
            assert!(low < truth && truth < high, "{low} {high}");
        }
    }
}
