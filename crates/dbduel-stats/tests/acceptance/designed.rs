//! Contests of the runs of a design on the simulated machines, decided effect by effect after every block.

use dbduel_stats::StatsError;
use dbduel_stats::attribution::{FactorialDesign, contrast};
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, WholeShare, share_of_whole};
use dbduel_stats::simulate::{Contender, Design, Machine, NASTY, Noise, QUIET, TYPICAL};

pub const MACHINES: [(&str, Noise); 3] = [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)];

/// Slices as a contest of many contenders has them: all of them within a minute or two.
const SLICES: Design = Design {
    slice: 4,
    guard: 1,
    jitter: 0.3,
};

pub const ALPHA: f64 = 0.05;

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
        log_rate: LogRate,
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
