//! Rules about traces of the running order: does a slice remember who ran before it?

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_stats::compare::{BlockSlices, SliceValue};
use dbduel_stats::guard::guard_length;
use dbduel_stats::order::carry_over;
use dbduel_text::percent;

use super::RunEvidence;
use crate::duel::log_ratios::throughput;
use crate::evidence::blocks::CompleteBlock;

/// Probability of reporting a trace in a run without any.
const ALPHA: f64 = 0.01;

/// Slices right after a switch that commit less than those that follow one of the same contender: the
/// guard is shorter than what a server needs to come back.
pub fn carried_over(run: &RunEvidence<'_>) -> Vec<Finding> {
    // Where blocks hold every contender once, slices hardly ever follow one of the same contender.
    if !run.evidence.plan().schedule.mirrored {
        return Vec::new();
    }
    let contenders = &run.judged.contenders;
    let statements = (contenders.len() * run.judged.duels.len()).max(1);
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let blocks = run.evidence.levels[duel.level].complete.iter();
        // Where the order is repeated, all but the first of its turns follow a switch of their own.
        let once = blocks.filter(|block| block.block.repeats == 1);
        let blocks: Vec<BlockSlices> = once.map(mirrored).collect();
        let guard_s = run.evidence.plan().guard_s(duel.level);
        // A level whose blocks cannot be compared has a finding that says so.
        let carried =
            carry_over(&blocks, contenders.len(), ALPHA / statements as f64).unwrap_or_default();
        for (number, (facts, estimate)) in contenders.iter().zip(carried).enumerate() {
            let Some(estimate) = estimate.filter(|estimate| estimate.high < 0.0) else {
                continue;
            };
            let lost = |log_ratio: f64| percent::of(-log_ratio.exp_m1());
            let claim = format!(
                "At {}, slices of `{}` right after a switch commit {} less ({} to {}) than its consecutive slices: \
                 the guard of {} s is too short. Ratios are biased as far as these losses differ between contenders.",
                duel.label,
                facts.name,
                lost(estimate.value),
                lost(estimate.high),
                lost(estimate.low),
                guard_s
            );
            let remedy = match transient_s(run, duel.level, number) {
                Some(transient_s) => format!(
                    "Set `guard` in [schedule] to {:.1} s or more: throughput recovers about {transient_s:.1} s after the \
                     present guard.",
                    guard_s + transient_s
                ),
                None => "Set a longer `guard` in [schedule], or use longer slices.".to_owned(),
            };
            found
                .push(Finding::new(Severity::Doubt, &[&facts.name], claim, &remedy).at(duel.level));
        }
    }
    found
}

/// How long after the guard the switch still shows in the ticks of slices that follow one, seconds; `None` when that
/// is unknown.
fn transient_s(run: &RunEvidence<'_>, level: usize, contender: usize) -> Option<f64> {
    let blocks = run.evidence.levels[level].complete.iter();
    let slices = blocks.flat_map(|block| {
        let switched = block.rows.iter().enumerate().filter(|(position, _)| {
            block.block.order[*position] == contender && !block.block.continues(*position)
        });
        switched.map(|(_, row)| {
            let ticks = run.evidence.ticks(row.slice()).iter();
            ticks.map(|tick| tick.ok as f64 / tick.length_s).collect()
        })
    });
    let slices: Vec<Vec<f64>> = slices.collect();
    let ticks = guard_length(&slices, ALPHA)
        .ok()
        .filter(|ticks| *ticks > 0)?;
    Some(ticks as f64 * run.evidence.plan().tick_s(level))
}

fn mirrored(block: &CompleteBlock<'_>) -> BlockSlices {
    let slices = block.block.order.iter().zip(&block.rows);
    BlockSlices {
        length: block.block.slice_s,
        slices: slices
            .map(|(&contender, row)| SliceValue {
                contender,
                value: throughput(row),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    /// A duel in which the second contender loses this share of every slice that follows a switch.
    fn told(lost: f64) -> Vec<String> {
        let mut record = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        }
        .record();
        let blocks = record.plan.blocks.clone();
        for row in &mut record.slices {
            let block = &blocks[row.block as usize];
            if row.contender == "no-doublewrite" && !block.continues(row.position as usize) {
                row.ok = (row.ok as f64 * (1.0 - lost)) as u64;
            }
        }
        let (_, findings) = summarise(&record);
        let own = findings
            .into_iter()
            .filter(|finding| finding.rule == "lab.carry-over");
        own.map(|finding| finding.claim).collect()
    }

    #[test]
    fn a_switch_that_costs_more_than_the_guard_is_told_with_its_contender() {
        let told = told(0.2);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("`no-doublewrite` right after a switch"),
            "{told:?}"
        );
    }

    #[test]
    fn an_order_without_traces_is_not_spoken_of() {
        assert_eq!(told(0.0), Vec::<String>::new());
    }
}
