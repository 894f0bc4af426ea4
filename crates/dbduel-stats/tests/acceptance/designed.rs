//! Contests of the runs of a design on the simulated machines, decided effect by effect after every block.

use dbduel_stats::StatsError;
use dbduel_stats::attribution::{FactorialDesign, contrast};
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, WholeShare, decide, share_of_whole};
use dbduel_stats::simulate::{Contender, Design, Machine, NASTY, Noise, QUIET, TYPICAL};

pub const MACHINES: [(&str, Noise); 3] = [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)];

/// Slices as a contest of many contenders has them: all of them within a minute or two.
const SLICES: Design = Design {
    slice: 4,
    guard: 1,
    jitter: 0.3,
};

pub const ALPHA: f64 = 0.05;

/// Blocks of a contest.
pub const BLOCKS: usize = 24;

/// Log throughput of a run.
pub type LogRate = fn(&[bool]) -> f64;

/// A contest of the runs of a design: mean log throughput of each run in every block.
pub struct Contest {
    pub design: FactorialDesign,
    /// Log throughput of each run without noise.
    truth: Vec<f64>,
    /// Of each block, that of each run.
    pub blocks: Vec<Vec<f64>>,
}

impl Contest {
    /// Conducts `blocks` mirrored blocks of all runs in a random order.
    pub fn conduct(
        noise: Noise,
        factors: usize,
        log_rate: impl Fn(&[bool]) -> f64,
        blocks: usize,
        seed: u64,
    ) -> Result<Self, StatsError> {
        let design = FactorialDesign::new(factors)?;
        let truth: Vec<f64> = design.runs().iter().map(|run| log_rate(run)).collect();
        let mut machine = Machine::new(noise, seed);
        let levels = truth.iter();
        let mut contenders: Vec<Contender> = levels
            .map(|level| Contender::new(&noise, *level, &mut machine.random))
            .collect();
        let measured = (0..blocks).map(|_| {
            let length = SLICES.draw_length(&mut machine.random);
            let order = permutation(contenders.len(), &mut machine.random);
            let mut values = vec![0.0; contenders.len()];
            for run in order.iter().chain(order.iter().rev()) {
                let rate = contenders[*run].slice(&mut machine, SLICES.guard, length);
                values[*run] += 0.5 * rate.ln();
            }
            values
        });
        let blocks = measured.collect();
        Ok(Self {
            design,
            truth,
            blocks,
        })
    }

    /// What the contrast is in truth.
    pub fn true_value(&self, weights: &[f64]) -> f64 {
        contrast(weights, &self.truth)
    }

    /// The contrast in every block.
    pub fn differences(&self, weights: &[f64]) -> Vec<f64> {
        let blocks = self.blocks.iter();
        blocks.map(|values| contrast(weights, values)).collect()
    }

    /// The block after which a contrast is first told from `reference`, at this error probability.
    pub fn told_from(
        &self,
        weights: &[f64],
        reference: f64,
        alpha: f64,
        seed: u64,
    ) -> Result<Option<usize>, StatsError> {
        let plan = SequentialPlan::new(self.blocks.len() as f64, alpha, 0.0, seed);
        let mut decider = Decider::new(plan)?;
        for difference in self.differences(weights) {
            decider.push(Unit::new(difference - reference, 1.0))?;
            if decider.has_verdict() {
                return Ok(Some(decider.n()));
            }
        }
        Ok(None)
    }

    /// True when the interval of a contrast is at last within the margins of `horizon`, a ratio less one, as a contest says it.
    fn is_within(
        &self,
        weights: &[f64],
        horizon: f64,
        alpha: f64,
        seed: u64,
    ) -> Result<bool, StatsError> {
        let plan = SequentialPlan::new(self.blocks.len() as f64, alpha, horizon.ln_1p(), seed);
        let units = Unit::of_weight_one(&self.differences(weights));
        Ok(decide(&units, &plan)?.within_margin)
    }

    /// For each factor the block after which its effect is told from zero, error shared over the factors.
    pub fn effects_found(&self, seed: u64) -> Result<Vec<Option<usize>>, StatsError> {
        let factors = self.design.factors();
        let found = (0..factors).map(|factor| {
            let weights = self.design.main_effect(factor);
            self.told_from(&weights, 0.0, ALPHA / factors as f64, seed + factor as u64)
        });
        found.collect()
    }

    /// True when the intervals of these contrasts hold their truths together at every look.
    fn are_held(&self, family: &[Vec<f64>], seed: u64) -> Result<bool, StatsError> {
        let alpha = ALPHA / family.len() as f64;
        let mut is_held = true;
        for (weights, seed) in family.iter().zip(seed..) {
            let truth = self.true_value(weights);
            is_held &= self.told_from(weights, truth, alpha, seed)?.is_none();
        }
        Ok(is_held)
    }

    /// True when the intervals of all main effects do.
    pub fn effects_are_held(&self, seed: u64) -> Result<bool, StatsError> {
        let factors = 0..self.design.factors();
        let family: Vec<Vec<f64>> = factors.map(|one| self.design.main_effect(one)).collect();
        self.are_held(&family, seed)
    }

    /// True when the intervals of all interactions of two do.
    pub fn interactions_are_held(&self, seed: u64) -> Result<bool, StatsError> {
        let interactions = self.design.interactions().into_iter();
        let family: Vec<Vec<f64>> = interactions.map(|one| one.weights).collect();
        self.are_held(&family, seed)
    }

    /// Whether the interval of the share of the whole that the first `listed` factors explain holds the truth, and its width;
    /// `None` where there is none, or no whole to have a share of.
    pub fn closure(&self, listed: usize, seed: u64) -> Result<Option<(bool, f64)>, StatsError> {
        let part = self.design.sum_of(0..listed);
        let whole = self.design.whole();
        if self.true_value(&whole) == 0.0 {
            return Ok(None);
        }
        let truth = self.true_value(&part) / self.true_value(&whole);
        let units = |weights: &[f64]| Unit::of_weight_one(&self.differences(weights));
        let plan = SequentialPlan::new(self.blocks.len() as f64, ALPHA, 0.0, seed);
        let share = share_of_whole(&units(&part), &units(&whole), &plan)?;
        Ok(match share {
            WholeShare::Estimated(share) => {
                let (low, high) = (share.interval.low, share.interval.high);
                Some((low <= truth && truth <= high, high - low))
            }
            WholeShare::OfNothing | WholeShare::NotConstant => None,
        })
    }
}

/// The first stage of a contest, and a second one with new data.
struct TwoStages {
    /// The factors that the first stage does not show to be within the horizon.
    remaining: Vec<usize>,
    /// A factor left whose effect is beyond the horizon.
    is_wrongly_left: bool,
    /// Of the remaining factors, in their order, and of the others as one more; none where all or no factors remain.
    second: Option<Contest>,
}

impl TwoStages {
    /// `horizon` is a ratio less one.
    fn conduct(
        noise: Noise,
        factors: usize,
        log_rate: LogRate,
        horizon: f64,
        seed: u64,
    ) -> Result<Self, StatsError> {
        let first = Contest::conduct(noise, factors, log_rate, BLOCKS, seed)?;
        let mut stages = Self {
            remaining: Vec::new(),
            is_wrongly_left: false,
            second: None,
        };
        for factor in 0..factors {
            let weights = first.design.main_effect(factor);
            let (alpha, stream) = (ALPHA / factors as f64, seed + factor as u64);
            if first.is_within(&weights, horizon, alpha, stream)? {
                stages.is_wrongly_left |= first.true_value(&weights).abs() > horizon.ln_1p();
            } else {
                stages.remaining.push(factor);
            }
        }
        let remaining = &stages.remaining;
        if (1..factors).contains(&remaining.len()) {
            let whole = |run: &[bool]| {
                let (left, own) = run.split_last().unwrap_or((&false, &[]));
                let mut levels = vec![*left; factors];
                for (factor, is_second) in remaining.iter().zip(own) {
                    levels[*factor] = *is_second;
                }
                log_rate(&levels)
            };
            let factors = remaining.len() + 1;
            // Another machine state and other orders: what chose the factors judges nothing.
            let second = Contest::conduct(noise, factors, whole, BLOCKS, !seed)?;
            stages.second = Some(second);
        }
        Ok(stages)
    }
}

/// What went wrong in second stages after a first one of five factors, and what they had.
#[derive(Debug, Default)]
pub struct SecondStages {
    /// Contests in which some factors left and some remained.
    pub conducted: usize,
    /// Contests in which a factor left whose effect is beyond the horizon.
    pub wrongly_left: usize,
    /// Second stages that named a factor without effect.
    pub named: usize,
    /// Second stages in which the interval of an effect missed the truth at some look.
    pub effects_missed: usize,
    /// The same of an interaction.
    pub interactions_missed: usize,
    /// Second stages that measured every two factors' interaction by itself.
    pub clear: usize,
}

impl SecondStages {
    /// Of so many contests with a horizon of 3 %, both stages of [`BLOCKS`].
    pub fn conduct(noise: Noise, log_rate: LogRate, contests: u64) -> Result<Self, StatsError> {
        let mut found = Self::default();
        for seed in 0..contests {
            let stages = TwoStages::conduct(noise, 5, log_rate, 0.03, seed)?;
            found.wrongly_left += usize::from(stages.is_wrongly_left);
            let Some(second) = stages.second else {
                continue;
            };
            found.conducted += 1;
            let has_no_effect = |factor: usize| {
                let weights = second.design.main_effect(factor);
                second.true_value(&weights).abs() < 1e-12
            };
            let mut named = second.effects_found(seed)?.into_iter().enumerate();
            let is_wrong = named.any(|(factor, block)| block.is_some() && has_no_effect(factor));
            found.named += usize::from(is_wrong);
            found.effects_missed += usize::from(!second.effects_are_held(seed)?);
            found.interactions_missed += usize::from(!second.interactions_are_held(seed)?);
            let interactions = second.design.interactions();
            found.clear += usize::from(interactions.iter().all(|one| one.pairs.len() == 1));
        }
        Ok(found)
    }

    /// How often each kind of error was made.
    pub fn errors(&self) -> [usize; 4] {
        [
            self.wrongly_left,
            self.named,
            self.effects_missed,
            self.interactions_missed,
        ]
    }
}

fn permutation(count: usize, random: &mut RandomStream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}

/// No factor does anything.
pub fn nothing(_: &[bool]) -> f64 {
    0.0
}

/// 12, 5 and −3 %, the first two of which bring 6 % more together, and two that do nothing.
pub fn five(run: &[bool]) -> f64 {
    let on = |factor: usize| f64::from(u8::from(run[factor]));
    0.12 * on(0) + 0.05 * on(1) - 0.03 * on(2) + 0.06 * on(0) * on(1)
}

/// 10, 5 and 0 %, and 6 % more where all three are on.
pub fn three_together(run: &[bool]) -> f64 {
    let on = |factor: usize| f64::from(u8::from(run[factor]));
    0.10 * on(0) + 0.05 * on(1) + 0.06 * on(0) * on(1) * on(2)
}
