//! Machines below the second: duels of short slices, with the effects of switches.
//!
//! The machines are those of whole seconds with three additions: scatter of each tick, movement of the same size at
//! every time scale (1/f), and a random walk. They have the properties that verdicts of short slices meet: noise that
//! is mostly slow, contenders that need a moment after a thaw, and time that a switch takes.

use super::{
    Autoregression, Autoregressive, Contender, Dips, Machine, NASTY, Noise, QUIET, TYPICAL,
};
use crate::moments::{as_count, mean};
use crate::random::RandomStream;
use crate::sequential::{BlockTotals, Totals};

/// Loss of a contender after it was thawed: cold caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transient {
    /// Share of the throughput that is missing at first.
    pub depth: f64,
    /// Seconds after which a third of the loss remains.
    pub decay_s: f64,
}

/// Parameters of a machine below the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineNoise {
    /// Movements over seconds.
    pub noise: Noise,
    /// Seconds of a tick, the resolution of all series.
    pub tick_s: f64,
    /// Independent scatter of ln y of a contender: the standard deviation of a mean over one second.
    pub white: f64,
    /// Movement of the machine's speed at all time scales: the standard deviation of each of eight parts, whose memories are
    /// from 0.05 s to a quarter of an hour, four times as long each.
    pub flicker: f64,
    /// Random walk of the machine's speed: the standard deviation of the change of ln y in one second.
    pub walk: f64,
    /// Seconds that a switch takes, beside the guard.
    pub switch_s: f64,
    /// Transient that a switch leaves in the slice after it.
    pub transient: Transient,
}

const SWITCH_S: f64 = 0.01;
/// Uncounted load before a stretch without a switch, seconds.
const LEAD_S: f64 = 0.2;

const TRANSIENT: Transient = Transient {
    depth: 0.2,
    decay_s: 0.02,
};

/// [`QUIET`] below the second.
pub const FINE_QUIET: FineNoise = FineNoise {
    noise: QUIET,
    tick_s: 0.05,
    white: 0.01,
    flicker: 0.01,
    walk: 0.0,
    switch_s: SWITCH_S,
    transient: TRANSIENT,
};

/// [`TYPICAL`] below the second.
pub const FINE_TYPICAL: FineNoise = FineNoise {
    noise: TYPICAL,
    white: 0.02,
    flicker: 0.03,
    ..FINE_QUIET
};

/// [`NASTY`] below the second.
pub const FINE_NASTY: FineNoise = FineNoise {
    noise: NASTY,
    white: 0.03,
    flicker: 0.06,
    ..FINE_QUIET
};

/// A machine whose speed wanders by the second, as that of a virtual machine among others: its blocks scatter by 10 to 20 %,
/// whatever the length of their slices, and contenders without a rhythm of their own.
pub const FINE_WANDERING: FineNoise = FineNoise {
    noise: Noise {
        dips: Dips {
            depth: 0.0,
            ..QUIET.dips
        },
        ..QUIET
    },
    white: 0.02,
    flicker: 0.08,
    walk: 0.03,
    ..FINE_QUIET
};

/// The parts of a machine's speed that are faster than its [`Noise`].
#[derive(Debug, Clone)]
pub(super) struct FineSpeed {
    flicker: Vec<Autoregression>,
    walk: f64,
    walked: f64,
}

impl FineSpeed {
    pub(super) fn new(fine: &FineNoise, random: &mut RandomStream) -> Self {
        let part = |octave: i32| {
            let memory_s = 0.05 * 4_f64.powi(octave);
            let process = Autoregressive {
                correlation: (-1.0 / memory_s).exp(),
                deviation: fine.flicker,
            };
            Autoregression::new(process, fine.tick_s, random)
        };
        FineSpeed {
            flicker: (0..8).map(part).collect(),
            walk: fine.walk * fine.tick_s.sqrt(),
            walked: 0.0,
        }
    }

    pub(super) fn step(&mut self, random: &mut RandomStream) -> f64 {
        self.walked += self.walk * random.normal();
        let parts = self.flicker.iter_mut();
        self.walked + parts.map(|part| part.step(random)).sum::<f64>()
    }
}

/// One mirrored block of a duel of short slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineBlock {
    /// Logarithm of the ratio of throughput, second contender ÷ first.
    pub log_ratio: f64,
    /// Work of the second contender, and of the first as the reference, with the seconds in which it was done.
    pub totals: BlockTotals,
    /// Seconds that the block took, with its guards and switches.
    pub wall_s: f64,
}

/// Two contenders on a machine below the second.
#[derive(Debug, Clone)]
pub struct FineDuel {
    fine: FineNoise,
    machine: Machine,
    contenders: [Contender; 2],
}

impl FineDuel {
    /// A duel at a true log effect; one seed is one duel.
    #[must_use]
    pub fn new(fine: FineNoise, effect: f64, seed: u64) -> Self {
        let mut machine = Machine::in_ticks(&fine, seed);
        let contenders = super::two_contenders(&fine.noise, effect, &mut machine);
        FineDuel {
            fine,
            machine,
            contenders,
        }
    }

    /// Throughput of each contender by the tick, over `seconds` without a switch, one after the other: the end of
    /// a warm-up.
    pub fn uninterrupted(&mut self, seconds: f64) -> [Vec<f64>; 2] {
        let ticks = self.ticks(seconds);
        let deviation = self.white();
        self.contenders.each_mut().map(|contender| {
            let rate = |_| {
                let scatter = deviation * self.machine.random.normal();
                contender.step(&mut self.machine) * scatter.exp()
            };
            (0..ticks).map(rate).collect()
        })
    }

    /// Log ratios of each contender's rate in `count` turns of `length_s` to its rate in as much time without a switch: both contenders
    /// take turns, and each runs by itself, in an order by a coin. `loss` is what switching costs them: the logarithm by which every rate
    /// in turns is lower, whatever their length.
    pub fn continuity_round(
        &mut self,
        length_s: f64,
        guard_s: f64,
        count: u32,
        loss: [f64; 2],
    ) -> [f64; 2] {
        let mut logs = [0.0; 2];
        let turns_first = self.machine.random.below(2) == 0;
        let first = self.machine.random.below(2);
        let order = [first, 1 - first];
        for in_turns in [turns_first, !turns_first] {
            if in_turns {
                let mut rates = [0.0; 2];
                for _ in 0..count {
                    for contender in order {
                        rates[contender] += self.turn(contender, length_s, guard_s);
                    }
                }
                for contender in order {
                    let rate: f64 = rates[contender] / f64::from(count);
                    logs[contender] += rate.ln() - loss[contender];
                }
            } else {
                for contender in order {
                    let seconds = length_s * f64::from(count);
                    logs[contender] -= self.turn(contender, seconds, LEAD_S).ln();
                }
            }
        }
        logs
    }

    /// A length of slices around `length_s`, as far as the share `jitter` to either side.
    pub fn jittered(&mut self, length_s: f64, jitter: f64) -> f64 {
        length_s * (1.0 + jitter * (2.0 * self.machine.random.uniform() - 1.0))
    }

    /// The next block: A B B A or B A A B by a coin of the duel's own, run through `repeats` times, with turns of `length_s`
    /// after a switch and a guard of `guard_s` each, in whole ticks.
    pub fn block(&mut self, length_s: f64, guard_s: f64, repeats: u32) -> FineBlock {
        let first = self.machine.random.below(2);
        let order = [first, 1 - first, 1 - first, first];
        let mut rates = [0.0_f64; 4];
        for _ in 0..repeats {
            for (rate, contender) in rates.iter_mut().zip(order) {
                *rate += self.turn(contender, length_s, guard_s);
            }
        }
        let mut level = [0.0; 2];
        let mut totals = [Totals::default(); 2];
        let turn_s = self.ticks(length_s) as f64 * self.fine.tick_s;
        for (rate, contender) in rates.iter().zip(order) {
            level[contender] += 0.5 * rate.ln();
            totals[contender].work += rate * turn_s;
            totals[contender].time += f64::from(repeats) * turn_s;
        }
        let [reference, contender] = totals;
        FineBlock {
            log_ratio: level[1] - level[0],
            totals: BlockTotals {
                contender,
                reference,
            },
            wall_s: 4.0 * f64::from(repeats) * self.turn_s(length_s, guard_s),
        }
    }

    /// Seconds of a turn with its switch and guard.
    #[must_use]
    pub fn turn_s(&self, length_s: f64, guard_s: f64) -> f64 {
        (self.unmeasured(guard_s) + self.ticks(length_s)) as f64 * self.fine.tick_s
    }

    /// Mean throughput of a turn.
    fn turn(&mut self, contender: usize, length_s: f64, guard_s: f64) -> f64 {
        let deviation = self.white();
        let transient = self.fine.transient;
        let (guard, length) = (self.unmeasured(guard_s), self.ticks(length_s));
        let own = &mut self.contenders[contender];
        let mut rates = Vec::with_capacity(length);
        for tick in 0..guard + length {
            let scatter = deviation * self.machine.random.normal();
            let since_s = (tick as f64 + 0.5) * self.fine.tick_s;
            let warmth = 1.0 - transient.depth * (-since_s / transient.decay_s).exp();
            let rate = own.step(&mut self.machine) * scatter.exp() * warmth;
            if tick >= guard {
                rates.push(rate);
            }
        }
        mean(&rates)
    }

    /// Standard deviation of a contender's own scatter in a tick.
    fn white(&self) -> f64 {
        self.fine.white / self.fine.tick_s.sqrt()
    }

    /// Ticks of a switch and a guard.
    fn unmeasured(&self, guard_s: f64) -> usize {
        self.ticks(guard_s + self.fine.switch_s)
    }

    fn ticks(&self, seconds: f64) -> usize {
        as_count((seconds / self.fine.tick_s).round())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::variance;

    /// Standard deviation of the ratio of a block of slices of this length.
    fn deviation(fine: FineNoise, length_s: f64) -> f64 {
        let ratios: Vec<f64> = (0..30)
            .flat_map(|seed| {
                let mut duel = FineDuel::new(fine, 0.0, seed);
                (0..5)
                    .map(|_| duel.block(length_s, 0.0, 1).log_ratio)
                    .collect::<Vec<_>>()
            })
            .collect();
        variance(&ratios).sqrt()
    }

    #[test]
    fn a_wandering_machine_scatters_blocks_of_any_length() {
        for length_s in [0.1, 0.5, 2.0] {
            let found = deviation(FINE_WANDERING, length_s);
            assert!((0.08..0.25).contains(&found), "{length_s}: {found}");
        }
    }

    #[test]
    fn a_thawed_contender_is_slow_at_first_and_both_are() {
        let still = FineNoise {
            white: 0.0,
            flicker: 0.0,
            ..FINE_QUIET
        };
        let mut duel = FineDuel::new(still, 0.05, 1);
        let cold = duel.turn(0, 0.05, 0.0);
        let warm = duel.turn(0, 0.05, 0.1);
        assert!(cold < 0.97 * warm, "{cold} {warm}");
        assert!((duel.block(0.1, 0.0, 1).log_ratio - 0.05).abs() < 0.02);
    }
}
