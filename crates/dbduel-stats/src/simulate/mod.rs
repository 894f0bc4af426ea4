//! Synthetic machines and contenders with known truth, second by second: what the methods of this crate are
//! checked on, and any other method can be.
//!
//! ln y = ln μ + machine + own dips. The machine is a fast and a slow first-order autoregression, a sinusoid, a linear
//! drift, an on/off neighbour and random stalls, all shared by the contender that runs at that second; each contender has periodic
//! dips driven by its own active time. Nothing here was fitted to a real server: it ranks methods and sets thresholds.
//! Throughputs have no unit; a contender without noise has 1. [`FineDuel`] goes below the second.
//!
//! ```
//! use dbduel_stats::compare::paired_mean;
//! use dbduel_stats::simulate::{DEFAULT_DESIGN, TYPICAL, mirrored_duel};
//!
//! # fn main() -> Result<(), dbduel_stats::StatsError> {
//! // How often does the interval of the mean of eight blocks hold the truth, an effect of 5 %?
//! let truth = 1.05_f64.ln();
//! let mut held = 0;
//! for seed in 0..200 {
//!     let log_ratios = mirrored_duel(TYPICAL, DEFAULT_DESIGN, 8, truth, seed);
//!     let mean = paired_mean(&log_ratios, 0.05)?;
//!     held += u32::from((mean.low..=mean.high).contains(&truth));
//! }
//! assert!(held >= 180, "held by {held} of 200");
//! # Ok(())
//! # }
//! ```

use crate::moments::as_count;
use crate::random::RandomStream;
use fine::FineSpeed;

mod fine;
mod noise;

pub use fine::{
    FINE_NASTY, FINE_QUIET, FINE_TYPICAL, FINE_WANDERING, FineBlock, FineDuel, FineNoise, Transient,
};
pub use noise::{
    Autoregressive, Dips, Interference, NASTY, Neighbour, Noise, QUIET, Stalls, TYPICAL, Wave,
};

/// State of an autoregression.
#[derive(Debug, Clone)]
struct Autoregression {
    correlation: f64,
    innovation: f64,
    value: f64,
}

impl Autoregression {
    /// By steps of `step_s`; the parameters are those of whole seconds.
    fn new(process: Autoregressive, step_s: f64, random: &mut RandomStream) -> Self {
        let deviation = process.deviation;
        let correlation = process.correlation.powf(step_s);
        Autoregression {
            correlation,
            innovation: deviation * (1.0 - correlation * correlation).sqrt(),
            value: deviation * random.normal(),
        }
    }

    fn step(&mut self, random: &mut RandomStream) -> f64 {
        self.value = self.correlation * self.value + self.innovation * random.normal();
        self.value
    }
}

/// State of the stalls.
#[derive(Debug, Clone)]
struct Stalling {
    stalls: Stalls,
    /// Seconds of stalls that have begun and are not over.
    ahead_s: f64,
}

impl Stalling {
    fn new(stalls: Stalls) -> Self {
        Stalling {
            stalls,
            ahead_s: 0.0,
        }
    }

    /// ln of the remaining share of the throughput in the next step.
    fn step(&mut self, step_s: f64, random: &mut RandomStream) -> f64 {
        if random.uniform() < self.stalls.per_second * step_s {
            self.ahead_s += -self.stalls.length_s * (1.0 - random.uniform()).ln();
        }
        let lost_s = self.ahead_s.min(step_s);
        self.ahead_s -= lost_s;
        if lost_s > 0.0 {
            (1.0 - lost_s / step_s * (1.0 - self.stalls.left)).ln()
        } else {
            0.0
        }
    }
}

/// A first-order autoregression of unit variance as a series of `n` values.
#[must_use]
pub fn autoregressive_series(correlation: f64, n: usize, random: &mut RandomStream) -> Vec<f64> {
    let mut process = Autoregression::new(
        Autoregressive {
            correlation,
            deviation: 1.0,
        },
        1.0,
        random,
    );
    (0..n).map(|_| process.step(random)).collect()
}

/// A machine: the disturbances common to all contenders.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Source of all randomness of this machine and of its contenders.
    pub random: RandomStream,
    noise: Noise,
    fast: Autoregression,
    slow: Autoregression,
    wave_phase: f64,
    neighbour_on: bool,
    stalling: Stalling,
    steps: usize,
    step_s: f64,
    /// ln of the level in the last step.
    level: f64,
    /// The part faster than the noise, where steps are shorter than seconds.
    fine: Option<FineSpeed>,
    interference: Option<Interference>,
}

impl Machine {
    /// A machine at its first second, in steps of a second; one seed is one machine.
    #[must_use]
    pub fn new(noise: Noise, seed: u64) -> Self {
        Machine::in_steps(noise, 1.0, seed)
    }

    /// A machine at its first tick, in ticks as long as those of its noise; one seed is one machine.
    #[must_use]
    pub fn in_ticks(fine: &FineNoise, seed: u64) -> Self {
        let mut machine = Machine::in_steps(fine.noise, fine.tick_s, seed);
        machine.fine = Some(FineSpeed::new(fine, &mut machine.random));
        machine
    }

    /// The machine in steps of `step_s`.
    fn in_steps(noise: Noise, step_s: f64, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, 1000);
        let fast = Autoregression::new(noise.fast, step_s, &mut random);
        let slow = Autoregression::new(noise.slow, step_s, &mut random);
        let wave_phase = std::f64::consts::TAU * random.uniform();
        let neighbour_on = noise
            .neighbour
            .is_some_and(|one| random.uniform() < one.on_s / (one.on_s + one.off_s));
        Machine {
            random,
            noise,
            fast,
            slow,
            wave_phase,
            neighbour_on,
            stalling: Stalling::new(noise.stalls),
            steps: 0,
            step_s,
            level: 0.0,
            fine: None,
            interference: None,
        }
    }

    /// The same machine with a periodic disturbance on top of its noise.
    #[must_use]
    pub fn with_interference(self, interference: Interference) -> Self {
        Machine {
            interference: Some(interference),
            ..self
        }
    }

    /// Whole seconds that have passed.
    #[must_use]
    pub fn second(&self) -> usize {
        as_count(self.steps as f64 * self.step_s)
    }

    /// ln of the machine's level in the next step.
    pub fn step(&mut self) -> f64 {
        let t = self.steps as f64 * self.step_s;
        self.steps += 1;
        let noise = self.noise;
        let mut level = self.fast.step(&mut self.random) + self.slow.step(&mut self.random);
        let Wave {
            amplitude,
            period_s,
        } = noise.wave;
        if amplitude > 0.0 {
            level += amplitude * (std::f64::consts::TAU * t / period_s + self.wave_phase).sin();
        }
        level += noise.drift_per_hour * t / 3600.0;
        if let Some(neighbour) = noise.neighbour {
            let leave = if self.neighbour_on {
                1.0 / neighbour.on_s
            } else {
                1.0 / neighbour.off_s
            };
            if self.random.uniform() < leave * self.step_s {
                self.neighbour_on = !self.neighbour_on;
            }
            if self.neighbour_on {
                level += (1.0 - neighbour.depth).ln();
            }
        }
        level += self.stalling.step(self.step_s, &mut self.random);
        if let Some(interference) = self.interference
            && (self.second() + interference.phase_s)
                .checked_rem(interference.period_s)
                .is_some_and(|at| at < interference.length_s)
        {
            level += (1.0 - interference.depth).ln();
        }
        if let Some(fine) = &mut self.fine {
            level += fine.step(&mut self.random);
        }
        self.level = level;
        level
    }
}

/// A contender with its own cycle of dips and, if asked for, its own stalls.
#[derive(Debug, Clone)]
pub struct Contender {
    active: f64,
    dips: Dips,
    log_level: f64,
    own_stalls: Option<Stalling>,
}

impl Contender {
    /// A contender at a random point of its cycle; `log_level` is the logarithm of its throughput without noise.
    #[must_use]
    pub fn new(noise: &Noise, log_level: f64, random: &mut RandomStream) -> Self {
        Contender {
            active: noise.dips.period_s * random.uniform(),
            dips: noise.dips,
            log_level,
            own_stalls: None,
        }
    }

    /// The same contender with stalls of its own, by its own time under load.
    #[must_use]
    pub fn with_stalls(self, stalls: Stalls) -> Self {
        Contender {
            own_stalls: Some(Stalling::new(stalls)),
            ..self
        }
    }

    /// Throughput of the contender in the machine's next step.
    pub fn step(&mut self, machine: &mut Machine) -> f64 {
        let mut level = self.log_level + machine.step();
        if self.active % self.dips.period_s < self.dips.length_s {
            level += (1.0 - self.dips.depth).ln();
        }
        if let Some(stalling) = &mut self.own_stalls {
            level += stalling.step(machine.step_s, &mut machine.random);
        }
        self.active += machine.step_s;
        level.exp()
    }

    /// Throughput of `length` seconds after `guard` uncounted ones.
    pub fn seconds(&mut self, machine: &mut Machine, guard: usize, length: usize) -> Vec<f64> {
        for _ in 0..guard {
            self.step(machine);
        }
        (0..length).map(|_| self.step(machine)).collect()
    }

    /// Mean throughput over `length` seconds after `guard` uncounted ones; NaN of no seconds.
    pub fn slice(&mut self, machine: &mut Machine, guard: usize, length: usize) -> f64 {
        self.seconds(machine, guard, length).iter().sum::<f64>() / length as f64
    }
}

/// A layout of the slices of two contenders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Counted seconds of a slice.
    pub slice: usize,
    /// Seconds before them that are not counted.
    pub guard: usize,
    /// Relative jitter of the slice length, drawn per block.
    pub jitter: f64,
}

/// A layout with the product's defaults.
pub const DEFAULT_DESIGN: Design = Design {
    slice: 15,
    guard: 2,
    jitter: 0.3,
};

impl Design {
    /// Counted seconds of the slices of one block.
    #[must_use]
    pub fn draw_length(&self, random: &mut RandomStream) -> usize {
        let factor = 1.0 + self.jitter * (2.0 * random.uniform() - 1.0);
        as_count((self.slice as f64 * factor).round())
    }
}

/// Log ratios B ÷ A of `blocks` random mirrored blocks (ABBA or BAAB) at a true log effect.
#[must_use]
pub fn mirrored_duel(
    noise: Noise,
    design: Design,
    blocks: usize,
    effect: f64,
    seed: u64,
) -> Vec<f64> {
    let mut machine = Machine::new(noise, seed);
    let mut contenders = two_contenders(&noise, effect, &mut machine);
    mirrored_blocks(&mut machine, &mut contenders, design, blocks)
}

/// Two contenders, the second faster by the log effect `effect`.
#[must_use]
pub fn two_contenders(noise: &Noise, effect: f64, machine: &mut Machine) -> [Contender; 2] {
    [0.0, effect].map(|level| Contender::new(noise, level, &mut machine.random))
}

/// Log ratios B ÷ A of the next mirrored blocks of a running duel.
pub fn mirrored_blocks(
    machine: &mut Machine,
    contenders: &mut [Contender; 2],
    design: Design,
    blocks: usize,
) -> Vec<f64> {
    mirrored_seconds(machine, contenders, design, blocks)
        .chunks_exact(4)
        .map(|block| {
            let mut level = [0.0; 2];
            for (contender, seconds) in block {
                let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
                level[*contender] += 0.5 * mean.ln();
            }
            level[1] - level[0]
        })
        .collect()
}

/// Log ratios of the second contender ÷ the first in the next blocks of a running contest, each block with every
/// contender once, in an order drawn for each block.
pub fn single_blocks(
    machine: &mut Machine,
    contenders: &mut [Contender],
    design: Design,
    blocks: usize,
) -> Vec<f64> {
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let block = |_| {
        let length = design.draw_length(&mut machine.random);
        for last in (1..order.len()).rev() {
            order.swap(last, machine.random.below(last + 1));
        }
        let mut levels = [0.0; 2];
        for &contender in &order {
            let seconds = contenders[contender].seconds(machine, design.guard, length);
            if let Some(level) = levels.get_mut(contender) {
                *level = (seconds.iter().sum::<f64>() / seconds.len() as f64).ln();
            }
        }
        levels[1] - levels[0]
    };
    (0..blocks).map(block).collect()
}

/// The slices of the next mirrored blocks of a running duel, four to a block: the contender of each and its throughput
/// by the second.
pub fn mirrored_seconds(
    machine: &mut Machine,
    contenders: &mut [Contender; 2],
    design: Design,
    blocks: usize,
) -> Vec<(usize, Vec<f64>)> {
    let mut slices = Vec::with_capacity(4 * blocks);
    for _ in 0..blocks {
        let length = design.draw_length(&mut machine.random);
        let first = machine.random.below(2);
        for contender in [first, 1 - first, 1 - first, first] {
            let seconds = contenders[contender].seconds(machine, design.guard, length);
            slices.push((contender, seconds));
        }
    }
    slices
}
