//! `sysbench.rand`: named distributions over ranges that scripts choose draw by draw.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dbduel_client::distributions::{Distribution, Shape};
use dbduel_client::random::{Random, unique};

/// The shapes of the distributions that scripts can name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shapes {
    /// Behind `default`.
    pub default: Shape,
    /// Behind `gaussian`.
    pub gaussian: Shape,
    /// Behind `special`.
    pub special: Shape,
    /// Behind `pareto`.
    pub pareto: Shape,
    /// Behind `zipfian`.
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

/// A shape with the range that it was last asked for: scripts ask for the same one again and again, and some
/// distributions are dear to set up.
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
    /// All of them; the position is the number.
    pub(super) const ALL: [Which; 6] = [
        Which::Default,
        Which::Uniform,
        Which::Gaussian,
        Which::Special,
        Which::Pareto,
        Which::Zipfian,
    ];

    /// The name that scripts know.
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

    /// Begins another stream.
    pub(super) fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Bounds may have fractions, which are cut off.
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

    /// Makes a text of a template, in its place: `#` becomes a digit, `@` a small letter.
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
