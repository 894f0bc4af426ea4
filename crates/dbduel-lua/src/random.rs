//! `sysbench.rand`: named distributions over ranges that scripts choose draw by draw.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dbduel_client::distributions::{Distribution, Shape};
use dbduel_client::random::{Random, unique};

/// The shapes of the distributions that scripts can name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shapes {
    /// Shape of `default`.
    pub default: Shape,
    /// Shape of `gaussian`.
    pub gaussian: Shape,
    /// Shape of `special`.
    pub special: Shape,
    /// Shape of `pareto`.
    pub pareto: Shape,
    /// Shape of `zipfian`.
    pub zipfian: Shape,
}

impl Default for Shapes {
    /// sysbench's parameters, and `special` as the default, as in its version 1.0.
    fn default() -> Self {
        let special = Shape::Special {
            iterations: 12,
            band_percent: 1.0,
            band_share_percent: 75.0,
        };
        Shapes {
            default: special,
            gaussian: Shape::Gaussian { iterations: 12 },
            special,
            pareto: Shape::Pareto { h: 0.2 },
            zipfian: Shape::Zipfian { exponent: 0.8 },
        }
    }
}

/// A shape with its most recent range: scripts request the same one repeatedly, and some distributions are expensive
/// to set up.
struct Remembered {
    shape: Shape,
    range: (i64, i64),
    distribution: Distribution,
}

impl Remembered {
    fn new(shape: Shape) -> Self {
        Remembered {
            shape,
            range: (0, 0),
            distribution: Distribution::new(shape, 0, 0),
        }
    }

    #[inline]
    fn draw(&mut self, random: &mut Random, low: i64, high: i64) -> i64 {
        if self.range != (low, high) {
            self.range = (low, high);
            self.distribution = Distribution::new(self.shape, low, high);
        }
        self.distribution.draw(random)
    }
}

/// Names a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Default,
    Uniform,
    Gaussian,
    Special,
    Pareto,
    Zipfian,
}

impl Which {
    /// All of them, indexed by number.
    pub(super) const ALL: [Which; 6] = [
        Which::Default,
        Which::Uniform,
        Which::Gaussian,
        Which::Special,
        Which::Pareto,
        Which::Zipfian,
    ];

    /// Name used by scripts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Which::Default => "default",
            Which::Uniform => "uniform",
            Which::Gaussian => "gaussian",
            Which::Special => "special",
            Which::Pareto => "pareto",
            Which::Zipfian => "zipfian",
        }
    }
}

/// The random numbers of one state.
pub(super) struct Dice {
    random: Random,
    shapes: [Remembered; 6],
    sequence: Arc<AtomicU32>,
}

impl Dice {
    pub(super) fn new(shapes: &Shapes, sequence: Arc<AtomicU32>) -> Self {
        let Shapes {
            default,
            gaussian,
            special,
            pareto,
            zipfian,
        } = *shapes;
        Dice {
            random: Random::new(0),
            shapes: [default, Shape::Uniform, gaussian, special, pareto, zipfian]
                .map(Remembered::new),
            sequence,
        }
    }

    /// Starts another stream.
    pub(super) fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Fractions of bounds are truncated.
    #[inline]
    pub(super) fn draw(&mut self, which: Which, low: f64, high: f64) -> i64 {
        self.shapes[which as usize].draw(&mut self.random, low as i64, high as i64)
    }

    pub(super) fn unique(&self) -> u32 {
        unique(self.sequence.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn uniform_double(&mut self) -> f64 {
        self.random.uniform()
    }

    /// The upper and the lower half of 64 random bits.
    pub(super) fn halves(&mut self) -> (u32, u32) {
        let bits = self.random.bits();
        ((bits >> 32) as u32, bits as u32)
    }

    /// Fills in a template, in place: `#` becomes a digit, `@` a lower-case letter.
    pub(super) fn fill(&mut self, template: &mut [u8]) {
        let mut rest = template;
        while let Some(&first) = rest.first() {
            let run = rest
                .iter()
                .position(|&byte| byte != first)
                .unwrap_or(rest.len());
            let (same, tail) = rest.split_at_mut(run);
            match first {
                b'#' => self.random.fill_digits(same),
                b'@' => same.fill_with(|| b'a' + self.random.below(26) as u8),
                _ => {}
            }
            rest = tail;
        }
    }

    /// Between `min` and `max` characters from `0` to `z`.
    pub(super) fn varstring(&mut self, min: u32, max: u32, text: &mut Vec<u8>) {
        let length = min + self.random.below(u64::from(max.saturating_sub(min)) + 1) as u32;
        text.clear();
        text.extend((0..length).map(|_| b'0' + self.random.below(75) as u8));
    }
}
