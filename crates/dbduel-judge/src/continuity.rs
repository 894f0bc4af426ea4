//! The continuity check: each contender's throughput in turns against that without a switch, and whether long turns
//! would change a verdict.

use std::collections::BTreeMap;

use dbduel_record::Record;
use dbduel_record::event::{ContinuityRound, Event, LoadStretch};
use dbduel_stats::Estimate;
use dbduel_stats::compare::paired_mean;
use dbduel_stats::continuity::Departure;

use super::evidence::blocks::{CompleteBlock, LevelBlocks};
use super::summary::{
    Comparison, Continuity, ContinuityStage, Contradiction, Figure, How, InTurns,
};

/// A departure of a contender's throughput below this share does not matter.
pub const DEPARTURE_MIN: f64 = 0.05;
/// Error probability of each interval of a departure.
const ALPHA: f64 = 0.05;
/// Error probability of a contradiction of one comparison.
const CONTRADICTION_ALPHA: f64 = 0.01;
/// Share of the difference that a verdict names, or of its horizon, beyond which a different answer of long turns
/// matters.
const OF_EFFECT_MAX: f64 = 0.5;
/// With at least this many rounds between blocks, they are preferred to those before the first block, which are
/// shorter.
const ROUNDS_BETWEEN_MIN: usize = 6;

/// The departure of a contender in rehearsed rounds; `None` with too few rounds.
#[must_use]
pub fn departure(rounds: &[ContinuityRound], contender: &str) -> Option<Departure> {
    let pairs = rounds.iter().map(|round| Pair::rehearsed(round, contender));
    departure_of(&pairs.collect::<Vec<_>>(), LoadStretch::per_s)
}

/// A contender in turns, and next to it without a switch.
#[derive(Debug, Clone, Default)]
struct Pair {
    in_turns: Vec<LoadStretch>,
    unswitched: Option<LoadStretch>,
}

impl Pair {
    fn rehearsed(round: &ContinuityRound, contender: &str) -> Self {
        let own = |all: &[LoadStretch]| all.iter().find(|one| one.contender == contender).cloned();
        Self {
            in_turns: own(&round.in_turns).into_iter().collect(),
            unswitched: own(&round.unswitched),
        }
    }

    /// Logarithm of `of` in turns, minus that in the stretch without a switch.
    fn log_ratio(&self, of: impl Fn(&LoadStretch) -> Option<f64>) -> Option<f64> {
        let unswitched = of(self.unswitched.as_ref()?).filter(|value| *value > 0.0)?;
        let logs = self.in_turns.iter().filter_map(&of);
        let logs: Vec<f64> = logs.filter(|value| *value > 0.0).map(f64::ln).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        mean.is_finite().then(|| mean - unswitched.ln())
    }
}

fn departure_of(pairs: &[Pair], of: impl Fn(&LoadStretch) -> Option<f64>) -> Option<Departure> {
    let logs: Vec<f64> = pairs
        .iter()
        .filter_map(|pair| pair.log_ratio(&of))
        .collect();
    Departure::of(&logs, ALPHA).ok()
}

fn figure(log_ratio: Estimate, alpha: f64) -> Figure {
    Figure::of_log_ratio(log_ratio, alpha, How::Continuity)
}

/// The check of a level.
struct Check {
    stage: ContinuityStage,
    turn_s: f64,
    unswitched_s: f64,
    /// By contender, round by round.
    pairs: BTreeMap<String, Vec<Pair>>,
}

impl Check {
    /// The rounds between blocks where there are enough, else those before the first one in turns as long as those of the blocks.
    fn of(record: &Record, level: usize, blocks: &LevelBlocks<'_>) -> Option<Self> {
        let names: Vec<&str> = record
            .plan
            .contenders
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let rounds: Vec<(usize, &ContinuityRound)> = record
            .events
            .iter()
            .enumerate()
            .filter_map(|(at, event)| match &event.what {
                Event::ContinuityRound(round) if round.level == level => Some((at, round)),
                _ => None,
            })
            .collect();
        let (rehearsed, between): (Vec<_>, Vec<_>) = rounds
            .into_iter()
            .partition(|(_, round)| !round.in_turns.is_empty());
        let last_turn_s = between.last().map(|(_, round)| round.turn_s);
        let (stage, turn_s, pairs) = if between.len() >= ROUNDS_BETWEEN_MIN {
            let beside = Beside::of(record, blocks);
            let pairs = |name: &str| -> Vec<Pair> {
                let rounds = between.iter();
                rounds
                    .map(|(at, round)| beside.pair(*at, round, name))
                    .collect()
            };
            let pairs = names.iter().map(|name| ((*name).to_owned(), pairs(name)));
            (
                ContinuityStage::BetweenBlocks,
                last_turn_s?,
                pairs.collect(),
            )
        } else {
            let turn_s = record.plan.turns.get(&level)?.turn_s;
            let own: Vec<&ContinuityRound> = rehearsed
                .iter()
                .map(|(_, round)| *round)
                .filter(|round| round.turn_s == turn_s)
                .collect();
            let pairs = |name: &str| -> Vec<Pair> {
                own.iter()
                    .map(|round| Pair::rehearsed(round, name))
                    .collect()
            };
            let pairs = names.iter().map(|name| ((*name).to_owned(), pairs(name)));
            (ContinuityStage::BeforeBlocks, turn_s, pairs.collect())
        };
        let pairs: BTreeMap<String, Vec<Pair>> = pairs;
        let lengths = pairs
            .values()
            .flatten()
            .filter_map(|pair| Some(pair.unswitched.as_ref()?.seconds));
        let lengths: Vec<f64> = lengths.collect();
        let unswitched_s = lengths.iter().sum::<f64>() / lengths.len() as f64;
        unswitched_s.is_finite().then_some(Self {
            stage,
            turn_s,
            unswitched_s,
            pairs,
        })
    }

    fn in_turns(&self, contender: &str) -> Option<InTurns> {
        let pairs = self.pairs.get(contender)?;
        let of = |of: fn(&LoadStretch) -> Option<f64>| {
            let departure = departure_of(pairs, of)?;
            Some(figure(departure.log_ratio, ALPHA))
        };
        let throughput = departure_of(pairs, LoadStretch::per_s)?;
        Some(InTurns {
            contender: contender.to_owned(),
            throughput: figure(throughput.log_ratio, ALPHA),
            is_shown: throughput.is_shown_beyond(DEPARTURE_MIN.ln_1p()),
            detectable: throughput.detectable.exp_m1(),
            latency_p99: of(|one| Some(one.latency_us_p99)),
            cpu_per_transaction: of(|one| one.cpu_us_per_transaction),
            written_per_transaction: of(|one| one.written_bytes_per_transaction),
            flushes_per_transaction: of(|one| one.disk_flushes_per_transaction),
        })
    }

    /// Differences of `of` between two contenders, round by round.
    fn differences(
        &self,
        [contender, baseline]: [&str; 2],
        of: impl Fn(&Pair) -> Option<f64>,
    ) -> Vec<f64> {
        let own = |name: &str| self.pairs.get(name).map_or(&[][..], Vec::as_slice);
        let both = own(contender).iter().zip(own(baseline));
        both.filter_map(|(contender, baseline)| Some(of(contender)? - of(baseline)?))
            .collect()
    }
}

/// The blocks beside each entry of the journal.
struct Beside<'a> {
    /// Entry of the journal with which a block was complete, and the block, in that order.
    completed: Vec<(usize, &'a CompleteBlock<'a>)>,
    names: Vec<&'a str>,
}

impl<'a> Beside<'a> {
    fn of(record: &'a Record, blocks: &'a LevelBlocks<'a>) -> Self {
        let by_id: BTreeMap<u32, &CompleteBlock<'_>> = blocks
            .complete
            .iter()
            .map(|one| (one.block.id, one))
            .collect();
        let mut ends: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, event) in record.events.iter().enumerate() {
            if let Event::SliceFinished { slice, .. } = event.what {
                ends.insert(slice.block, at);
            }
        }
        let completed = ends
            .into_iter()
            .filter_map(|(id, at)| Some((at, *by_id.get(&id)?)));
        let mut completed: Vec<_> = completed.collect();
        completed.sort_by_key(|(at, _)| *at);
        let names = record.plan.contenders.iter().map(|one| one.name.as_str());
        Self {
            completed,
            names: names.collect(),
        }
    }

    /// A round beside the slices of the block before it and of the one after it.
    fn pair(&self, at: usize, round: &ContinuityRound, contender: &str) -> Pair {
        let after = self.completed.partition_point(|(ended, _)| *ended < at);
        let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let near = near.filter_map(|index| self.completed.get(index));
        let who = self.names.iter().position(|name| *name == contender);
        let in_turns = near.filter_map(|(_, block)| stretch_of(block, who?, contender));
        Pair {
            in_turns: in_turns.collect(),
            ..Pair::rehearsed(round, contender)
        }
    }
}

/// A contender's slices of a block.
fn stretch_of(block: &CompleteBlock<'_>, who: usize, contender: &str) -> Option<LoadStretch> {
    let rows: Vec<_> = block.slices_of(who).collect();
    let count = rows.len().max(1) as f64;
    (!rows.is_empty()).then(|| LoadStretch {
        contender: contender.to_owned(),
        turns: block.block.repeats * rows.len() as u32,
        seconds: rows.iter().map(|row| row.measured_s).sum(),
        transactions: rows.iter().map(|row| row.ok).sum(),
        latency_us_p99: rows.iter().map(|row| row.latency_us_p99).sum::<f64>() / count,
        cpu_us_per_transaction: None,
        written_bytes_per_transaction: None,
        disk_flushes_per_transaction: None,
    })
}

/// The check of a level. Verdicts that long turns do not support become undecided.
pub(super) fn judge(
    record: &Record,
    level: usize,
    blocks: &LevelBlocks<'_>,
    comparisons: &mut [Comparison],
) -> Option<Continuity> {
    let check = Check::of(record, level, blocks)?;
    let plan = &record.plan;
    for comparison in comparisons {
        let baseline = &plan.contenders[plan.baseline].name;
        let found = contradiction(&check, comparison, baseline, plan.decision.horizon);
        if let Some(found) = &found
            && !found.supports(comparison.verdict, plan.decision.horizon)
        {
            comparison.withhold(format!(
                "turns of {:.2} s gave `{}`, which load without a switch does not support",
                found.turn_s,
                comparison.verdict.word()
            ));
        }
        comparison.contradiction = found;
    }
    let contenders = plan.contenders.iter();
    let contenders: Vec<InTurns> = contenders
        .filter_map(|contender| check.in_turns(&contender.name))
        .collect();
    (!contenders.is_empty()).then_some(Continuity {
        stage: check.stage,
        turn_s: check.turn_s,
        unswitched_s: check.unswitched_s,
        contenders,
    })
}

/// The answer of long turns where it contradicts the verdict.
fn contradiction(
    check: &Check,
    comparison: &Comparison,
    baseline: &str,
    horizon: f64,
) -> Option<Contradiction> {
    let both = [comparison.contender.as_str(), baseline];
    let departures = check.differences(both, |pair| pair.log_ratio(LoadStretch::per_s));
    let difference = paired_mean(&departures, CONTRADICTION_ALPHA).ok()?;
    let effect = comparison.ratio.value()?.ln().abs();
    let matters = OF_EFFECT_MAX * effect.max(horizon.ln_1p());
    let matters = matters.min(DEPARTURE_MIN.ln_1p());
    if difference.contains(0.0) || difference.value.abs() <= matters {
        return None;
    }
    let logs = check.differences(both, |pair| Some(pair.unswitched.as_ref()?.per_s()?.ln()));
    Some(Contradiction {
        turn_s: check.turn_s,
        unswitched_s: check.unswitched_s,
        ratio: figure(paired_mean(&logs, ALPHA).ok()?, ALPHA),
        departure: figure(difference, CONTRADICTION_ALPHA),
    })
}
