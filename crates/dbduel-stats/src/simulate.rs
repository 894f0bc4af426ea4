//! Synthetic machines and contenders with known truth, second by second: what the methods of this crate are
//! checked on, and any other method can be.
//!
//! ln y = ln μ + machine + own dips. The machine is a fast and a slow first-order autoregression, a
//! sinusoid, a linear drift, an on/off neighbour and random stalls, all shared by whoever runs at that
//! second; each contender has periodic dips driven by its own active time. Nothing here was fitted to a
//! real server: it ranks methods and sets thresholds. It does not know how a method works, nor what it concludes.
//! Throughputs have no unit; a contender without noise has 1.
//!
//! ```
//! use dbduel_stats::compare::paired_mean;
//! use dbduel_stats::simulate::{DEFAULT_DESIGN, TYPICAL, mirrored_duel};
//!
//! # fn main() -> Result<(), dbduel_stats::StatsError> {
//! // How often does Student's interval of eight blocks hold the truth, an effect of 5 %?
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

use crate::random::RandomStream;

/// Parameters of a machine and of the contenders' dips.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// The fast autoregression: correlation from one second to the next, standard deviation of ln y.
    pub fast: (f64, f64),
    /// The slow autoregression, likewise.
    pub slow: (f64, f64),
    /// The sinusoid: amplitude in ln y, period in seconds.
    pub wave: (f64, f64),
    /// The linear drift: change of ln y in an hour.
    pub drift_per_hour: f64,
    /// Mean seconds on, mean seconds off, depth.
    pub neighbour: Option<(f64, f64, f64)>,
    /// Rate per second, mean length, what is left of the throughput.
    pub stall: (f64, f64, f64),
    /// Period, length, depth.
    pub dip: (f64, f64, f64),
}

/// A machine that has little else to do: throughput of one second scatters by about 5 %.
pub const QUIET: Noise = Noise {
    fast: (0.5, 0.015),
    slow: (0.99, 0.01),
    wave: (0.0, 1800.0),
    drift_per_hour: 0.0,
    neighbour: None,
    stall: (1.0 / 1200.0, 1.0, 0.3),
    dip: (45.0, 3.0, 0.15),
};

/// A machine shared as most are: throughput of one second scatters by about 14 %.
pub const TYPICAL: Noise = Noise {
    fast: (0.6, 0.04),
    slow: (0.99, 0.05),
    wave: (0.05, 1800.0),
    drift_per_hour: -0.03,
    neighbour: None,
    stall: (1.0 / 300.0, 1.5, 0.1),
    dip: (45.0, 4.0, 0.35),
};

/// A machine with a noisy neighbour: throughput of one second scatters by about 23 %.
pub const NASTY: Noise = Noise {
    fast: (0.8, 0.06),
    slow: (0.995, 0.10),
    wave: (0.08, 1200.0),
    drift_per_hour: -0.10,
    neighbour: Some((60.0, 240.0, 0.25)),
    stall: (1.0 / 120.0, 2.0, 0.1),
    dip: (60.0, 6.0, 0.40),
};

/// First-order autoregression with the given correlation and marginal deviation.
struct Autoregression {
    correlation: f64,
    innovation: f64,
    value: f64,
}

impl Autoregression {
    fn new((correlation, deviation): (f64, f64), random: &mut RandomStream) -> Self {
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

/// Unit-variance first-order autoregression as a series.
pub fn autoregressive_series(correlation: f64, n: usize, random: &mut RandomStream) -> Vec<f64> {
    let mut process = Autoregression::new((correlation, 1.0), random);
    (0..n).map(|_| process.step(random)).collect()
}

/// The machine: what everybody suffers alike.
pub struct Machine {
    /// Where all chance of this machine and of its contenders comes from.
    pub random: RandomStream,
    noise: Noise,
    fast: Autoregression,
    slow: Autoregression,
    wave_phase: f64,
    neighbour_on: bool,
    stall_left: f64,
    /// Seconds that have passed.
    pub second: usize,
    /// Period, seconds on, depth and phase of an interference on top of the noise.
    pub interference: Option<(usize, usize, f64, usize)>,
}

impl Machine {
    /// A machine at its first second; one seed is one machine.
    #[must_use]
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut random = RandomStream::new(seed, 1000);
        let fast = Autoregression::new(noise.fast, &mut random);
        let slow = Autoregression::new(noise.slow, &mut random);
        let wave_phase = std::f64::consts::TAU * random.uniform();
        let neighbour_on = noise
            .neighbour
            .is_some_and(|(on, off, _)| random.uniform() < on / (on + off));
        Machine {
            random,
            noise,
            fast,
            slow,
            wave_phase,
            neighbour_on,
            stall_left: 0.0,
            second: 0,
            interference: None,
        }
    }

    /// ln of the machine's level in the next second.
    pub fn step(&mut self) -> f64 {
        let t = self.second as f64;
        self.second += 1;
        let noise = self.noise;
        let mut level = self.fast.step(&mut self.random) + self.slow.step(&mut self.random);
        if noise.wave.0 > 0.0 {
            level +=
                noise.wave.0 * (std::f64::consts::TAU * t / noise.wave.1 + self.wave_phase).sin();
        }
        level += noise.drift_per_hour * t / 3600.0;
        if let Some((on, off, depth)) = noise.neighbour {
            let leave = if self.neighbour_on {
                1.0 / on
            } else {
                1.0 / off
            };
            if self.random.uniform() < leave {
                self.neighbour_on = !self.neighbour_on;
            }
            if self.neighbour_on {
                level += (1.0 - depth).ln();
            }
        }
        let (rate, length, factor) = noise.stall;
        level += stall_step(&mut self.stall_left, rate, length, factor, &mut self.random);
        if let Some((period, on, depth, phase)) = self.interference
            && (self.second + phase)
                .checked_rem(period)
                .is_some_and(|at| at < on)
        {
            level += (1.0 - depth).ln();
        }
        level
    }
}

/// One second of a process of random stalls: ln of what is left of the throughput.
pub fn stall_step(
    left: &mut f64,
    rate: f64,
    length: f64,
    factor: f64,
    random: &mut RandomStream,
) -> f64 {
    if random.uniform() < rate {
        *left += -length * (1.0 - random.uniform()).ln();
    }
    let lost = left.min(1.0);
    *left -= lost;
    if lost > 0.0 {
        (1.0 - lost * (1.0 - factor)).ln()
    } else {
        0.0
    }
}

/// One contender with its own cycle of dips and, if asked for, its own stalls.
pub struct Contender {
    active: f64,
    dip: (f64, f64, f64),
    log_level: f64,
    /// Rate per active second, mean length, what is left.
    pub own_stalls: Option<(f64, f64, f64)>,
    stall_left: f64,
}

impl Contender {
    /// A contender at a random point of its cycle; `log_level` is the logarithm of its throughput without noise.
    pub fn new(noise: &Noise, log_level: f64, random: &mut RandomStream) -> Self {
        Contender {
            active: noise.dip.0 * random.uniform(),
            dip: noise.dip,
            log_level,
            own_stalls: None,
            stall_left: 0.0,
        }
    }

    /// Throughput of the contender in the machine's next second.
    pub fn step(&mut self, machine: &mut Machine) -> f64 {
        let mut level = self.log_level + machine.step();
        let (period, length, depth) = self.dip;
        if self.active % period < length {
            level += (1.0 - depth).ln();
        }
        if let Some((rate, length, factor)) = self.own_stalls {
            level += stall_step(
                &mut self.stall_left,
                rate,
                length,
                factor,
                &mut machine.random,
            );
        }
        self.active += 1.0;
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

/// How the slices of two contenders are laid out.
#[derive(Debug, Clone, Copy)]
pub struct Design {
    /// Counted seconds of a slice.
    pub slice: usize,
    /// Seconds before them that are not counted.
    pub guard: usize,
    /// Relative jitter of the slice length, drawn per block.
    pub jitter: f64,
}

/// The product's defaults.
pub const DEFAULT_DESIGN: Design = Design {
    slice: 15,
    guard: 2,
    jitter: 0.3,
};

impl Design {
    /// Counted seconds of the slices of one block.
    pub fn draw_length(&self, random: &mut RandomStream) -> usize {
        let factor = 1.0 + self.jitter * (2.0 * random.uniform() - 1.0);
        (self.slice as f64 * factor).round() as usize
    }
}

/// Log ratios B ÷ A of `blocks` random mirrored blocks (ABBA or BAAB) at a true log effect.
pub fn mirrored_duel(
    noise: Noise,
    design: Design,
    blocks: usize,
    effect: f64,
    seed: u64,
) -> Vec<f64> {
    let mut machine = Machine::new(noise, seed);
    let mut pair = pair(&noise, effect, &mut machine);
    mirrored_blocks(&mut machine, &mut pair, design, blocks)
}

/// Two contenders, the second faster by `effect`.
pub fn pair(noise: &Noise, effect: f64, machine: &mut Machine) -> [Contender; 2] {
    [0.0, effect].map(|level| Contender::new(noise, level, &mut machine.random))
}

/// Goes on with a duel: the log ratios of the next mirrored blocks.
pub fn mirrored_blocks(
    machine: &mut Machine,
    pair: &mut [Contender; 2],
    design: Design,
    blocks: usize,
) -> Vec<f64> {
    mirrored_seconds(machine, pair, design, blocks)
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

/// Goes on with a duel: contender and throughput by the second of every slice of the next mirrored blocks,
/// four slices to a block.
pub fn mirrored_seconds(
    machine: &mut Machine,
    pair: &mut [Contender; 2],
    design: Design,
    blocks: usize,
) -> Vec<(usize, Vec<f64>)> {
    let mut slices = Vec::with_capacity(4 * blocks);
    for _ in 0..blocks {
        let length = design.draw_length(&mut machine.random);
        let first = machine.random.below(2);
        for contender in [first, 1 - first, 1 - first, first] {
            let seconds = pair[contender].seconds(machine, design.guard, length);
            slices.push((contender, seconds));
        }
    }
    slices
}
