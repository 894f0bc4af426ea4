//! How steady throughput and costs are from block to block, judged alike: on the same blocks, and each with
//! the whole error probability of a comparison, which in a report the quantities share.
//!
//! Answers whether a cost would decide a duel earlier than throughput does.

use dbduel_record::Record;
use dbduel_record::Verdict;

use crate::duel::decide::{Question, decide_blocks};
use crate::duel::quantities::compare_one;
use crate::evidence::Evidence;
use crate::summary::{Change, Quantity};

/// Label of throughput beside the costs.
pub const THROUGHPUT: &str = "throughput";

/// Costs that might be steadier than throughput.
const COSTS: [Quantity; 2] = [
    Quantity::ServerCpuPerTransaction,
    Quantity::BytesWrittenPerTransaction,
];

/// One quantity of the first contender that is not the baseline, at the first load level.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// Label of the quantity.
    pub quantity: &'static str,
    /// The answer.
    pub change: Change,
    /// Standard deviation of one block's log ratio.
    pub block_sd: Option<f64>,
    /// Blocks after which the answer first stood.
    pub decided_at_block: Option<usize>,
}

/// Throughput first, then the costs; empty without a second contender.
#[must_use]
pub fn steadiness(record: &Record) -> Vec<Steadiness> {
    let evidence = Evidence::of(record);
    let plan = evidence.plan();
    let Some(blocks) = evidence.levels.first() else {
        return Vec::new();
    };
    let decision = decide_blocks(plan, blocks, 0);
    let mut others = plan.challengers();
    let (Some(throughput), Some(contender)) = (decision.comparisons.first(), others.next()) else {
        return Vec::new();
    };
    let first = Steadiness {
        quantity: THROUGHPUT,
        change: match throughput.verdict {
            Verdict::Faster => Change::Higher,
            Verdict::Slower => Change::Lower,
            Verdict::Equivalent => Change::Equivalent,
            Verdict::Undecided => Change::Undecided,
            Verdict::Void => Change::NotCompared,
        },
        block_sd: throughput.block_sd,
        decided_at_block: throughput.decided_at_block,
    };
    let question = Question::against_baseline(plan, contender, 0);
    let costs = COSTS.into_iter().map(|quantity| {
        let answer = compare_one(&evidence, 0, &question, quantity, question.alpha);
        Steadiness {
            quantity: quantity.label(),
            change: answer.change,
            block_sd: answer.block_sd,
            decided_at_block: answer.decided_at_block,
        }
    });
    std::iter::once(first).chain(costs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn a_cost_that_does_not_scatter_is_told_beside_throughput_that_does() {
        let scenario = Scenario {
            clients: vec![16],
            noise: 0.3,
            ..Scenario::duel()
        };
        let mut record = scenario.record();
        let costs: Vec<((u32, u32), f64)> = record
            .slices
            .iter()
            .map(|row| ((row.block, row.position), row.ok as f64))
            .collect();
        for reading in &mut record.readings {
            let of_slice = costs
                .iter()
                .find(|(slice, _)| *slice == (reading.block, reading.position));
            if let (Some((_, ok)), "server") = (of_slice, reading.source.as_str()) {
                // The second contender takes a tenth more for every transaction, always.
                let extra = 1.0 + 0.1 * f64::from(u8::from(reading.contender == "no-doublewrite"));
                reading.value = ok * 1e-4 * extra;
            }
        }
        let [throughput, cpu, bytes] = <[Steadiness; 3]>::try_from(steadiness(&record)).unwrap();
        assert_eq!(throughput.quantity, THROUGHPUT);
        assert!(throughput.block_sd.unwrap() > 0.01);
        assert!(cpu.block_sd.unwrap() < 1e-9, "{cpu:?}");
        assert_eq!(cpu.change, Change::Higher);
        assert!(cpu.decided_at_block.is_some());
        // The synthetic servers are not watched writing.
        assert_eq!((bytes.change, bytes.block_sd), (Change::NotCompared, None));
    }
}
