//! Turns of a closed loop whose contenders stall, as load accounting records them: work and time of each turn, where a client's
//! time ends with the transaction that outlasts the turn; and what a report says of a duel of them.

use dbduel_stats::StatsError;
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{
    BlockTotals, Decider, Decision, SequentialPlan, Totals, Unit, decide, unit_length_s,
};
use dbduel_stats::simulate::{Machine, Noise};
use dbduel_stats::stalls::{RatioStalls, stall_chance};

pub const ALPHA: f64 = 0.05;
const CLIENTS: f64 = 8.0;
/// Seconds beyond which a transaction is in excess of what is usual, where durations have no variance.
const LONG_S: f64 = 0.05;
/// Mean seconds of a transaction.
const TRANSACTION_S: f64 = 0.001;
/// Shape of Pareto's law: a mean, and no variance.
const PARETO_SHAPE: f64 = 1.5;

/// When a contender stalls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gaps {
    /// After exponential times awake.
    Random,
    /// After equal times awake, from a random phase.
    Equal,
}

/// Rate, stalls and durations of a contender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContenderLaw {
    /// Logarithm of its rate while awake.
    pub level: f64,
    /// Seconds awake between stalls of a second, and how they vary; none where infinite.
    pub every_s: f64,
    pub gaps: Gaps,
    /// Durations by Pareto's law in place of exponential ones.
    pub is_heavy: bool,
}

/// A contender that never stalls.
pub const STEADY: ContenderLaw = ContenderLaw {
    level: 0.0,
    every_s: f64::INFINITY,
    gaps: Gaps::Random,
    is_heavy: false,
};

impl ContenderLaw {
    pub fn stalling(every_s: f64, gaps: Gaps) -> ContenderLaw {
        ContenderLaw {
            every_s,
            gaps,
            ..STEADY
        }
    }

    /// Logarithm of the throughput in the long run.
    pub fn log_throughput(&self) -> f64 {
        self.level - self.every_s.recip().ln_1p()
    }
}

#[derive(Debug, Clone, Copy)]
struct Contender {
    law: ContenderLaw,
    /// Seconds awake until the next stall.
    awake_s: f64,
}

/// One turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    totals: Totals,
    /// Client seconds that transactions added beyond the close, without stalls of the contender.
    late: f64,
    /// Stalls, of a second each.
    stalls: usize,
    wall_s: f64,
}

fn exponential(random: &mut RandomStream) -> f64 {
    -(1.0 - random.uniform()).ln()
}

/// Poisson's law, for means that are large or do not matter.
fn count(mean: f64, random: &mut RandomStream) -> f64 {
    (mean + mean.sqrt() * random.normal()).round().max(0.0)
}

impl Contender {
    fn new(law: ContenderLaw, random: &mut RandomStream) -> Self {
        let phase = match law.gaps {
            Gaps::Random => exponential(random),
            Gaps::Equal => random.uniform(),
        };
        Contender {
            law,
            awake_s: if law.every_s.is_finite() {
                law.every_s * phase
            } else {
                f64::INFINITY
            },
        }
    }

    /// A turn of `length_s` at this speed of the machine.
    fn turn(&mut self, length_s: f64, speed: f64, random: &mut RandomStream) -> Turn {
        let rate = speed * self.law.level.exp() / TRANSACTION_S;
        if self.law.is_heavy {
            return heavy_turn(length_s, rate, random);
        }
        let (mut work, mut stalls, mut now_s) = (0.0, 0, 0.0);
        while now_s + self.awake_s < length_s {
            work += count(CLIENTS * rate * self.awake_s, random);
            now_s += self.awake_s + 1.0;
            stalls += 1;
            self.awake_s = self.law.every_s
                * match self.law.gaps {
                    Gaps::Random => exponential(random),
                    Gaps::Equal => 1.0,
                };
        }
        if now_s < length_s {
            work += count(CLIENTS * rate * (length_s - now_s), random);
            self.awake_s -= length_s - now_s;
            now_s = length_s;
        }
        // What each client has under way at the close.
        let late: f64 = (0..CLIENTS as usize)
            .map(|_| exponential(random))
            .sum::<f64>()
            / rate;
        Turn {
            totals: Totals {
                work: work + CLIENTS,
                time: CLIENTS * now_s + late,
            },
            late,
            stalls,
            wall_s: now_s + late / CLIENTS,
        }
    }
}

/// A turn of single transactions, whose durations have no variance.
fn heavy_turn(length_s: f64, rate: f64, random: &mut RandomStream) -> Turn {
    let least_s = (PARETO_SHAPE - 1.0) / PARETO_SHAPE / rate;
    let (mut work, mut time, mut last_s, mut excess) = (0.0, 0.0, 0.0_f64, 0.0);
    for _ in 0..CLIENTS as usize {
        let mut now_s = 0.0;
        while now_s < length_s {
            // The power of −1/1.5 of a uniform number.
            let uniform = 1.0 - random.uniform();
            let took_s = least_s / (uniform * uniform).cbrt();
            now_s += took_s;
            excess += (took_s - LONG_S).max(0.0);
            work += 1.0;
        }
        time += now_s;
        last_s = last_s.max(now_s);
    }
    Turn {
        totals: Totals { work, time },
        late: excess,
        stalls: 0,
        wall_s: last_s,
    }
}

/// What a duel measured.
#[derive(Debug, Clone, Default)]
pub struct MeasuredDuel {
    pub blocks: Vec<(BlockTotals, f64)>,
    /// The difference of the logarithms of the mean throughputs of a block's turns.
    pub differences: Vec<Unit>,
    /// Client seconds in excess of what is usual, per stall and per turn: of the contender, of the reference.
    pub excess: [Vec<f64>; 2],
    /// Stalls of the contender.
    pub stalls: usize,
    pub weight_max: f64,
}

/// What numbers exceed their median by.
fn beyond_usual(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let usual = numbers.get(numbers.len() / 2).copied().unwrap_or_default();
    let excess = numbers.iter().map(|number| (number - usual).max(0.0));
    excess.collect()
}

/// A duel of `budget_s` seconds of load, in turns of `turn_s`, in blocks as a contest plans them.
pub fn conduct(
    noise: Noise,
    laws: [ContenderLaw; 2],
    turn_s: f64,
    budget_s: f64,
    seed: u64,
) -> MeasuredDuel {
    let mut random = RandomStream::new(seed, 2000);
    let mut machine = Machine::new(noise, seed);
    let mut contenders = laws.map(|law| Contender::new(law, &mut random));
    let mut measured = MeasuredDuel::default();
    let (mut planned_s, mut wall_s, mut level) = (0.0, 0.0, machine.step());
    let mut late = [Vec::new(), Vec::new()];
    loop {
        let repeats = (unit_length_s(planned_s) / (4.0 * turn_s)).ceil();
        planned_s += repeats * 4.0 * turn_s;
        if planned_s > budget_s {
            for (excess, late) in measured.excess.iter_mut().zip(late) {
                excess.extend(beyond_usual(late));
            }
            return measured;
        }
        let first = random.below(2);
        let order = [first, 1 - first, 1 - first, first];
        let mut block = [Totals::default(); 2];
        let mut rates = [0.0; 2];
        for turn in 0..4 * repeats as usize {
            while machine.second() < wall_s as usize {
                level = machine.step();
            }
            let own = order[turn % 4];
            let turn = contenders[own].turn(turn_s, level.exp(), &mut random);
            wall_s += turn.wall_s;
            block[own].work += turn.totals.work;
            block[own].time += turn.totals.time;
            rates[own] += turn.totals.work / turn.totals.time;
            late[own].push(turn.late);
            measured.excess[own].extend(std::iter::repeat_n(CLIENTS, turn.stalls));
            measured.stalls += if own == 0 { turn.stalls } else { 0 };
        }
        let [contender, reference] = block;
        let totals = BlockTotals {
            contender,
            reference,
        };
        measured.blocks.push((totals, repeats));
        let difference = (rates[0] / rates[1]).ln();
        measured.differences.push(Unit::new(difference, repeats));
        measured.weight_max += repeats;
    }
}

/// Interval and findings of a duel whose true log ratio is known.
#[derive(Debug, Clone, Copy)]
pub struct JudgedDuel {
    pub decision: Decision,
    /// The interval holds the truth.
    pub is_held: bool,
    /// The report says that too few stalls were seen.
    pub is_too_few: bool,
    /// The interval with what chance in the stalls may do holds the truth.
    pub is_held_widened: bool,
    /// The interval of the mean of the blocks' log ratios holds the truth.
    pub is_held_by_differences: bool,
}

pub fn plan(measured: &MeasuredDuel, seed: u64) -> SequentialPlan {
    SequentialPlan::new(measured.weight_max, ALPHA, 0.0, seed)
}

pub fn judge(measured: &MeasuredDuel, truth: f64, seed: u64) -> Result<JudgedDuel, StatsError> {
    let plan = plan(measured, seed);
    let decision = decide(&Unit::of_totals(&measured.blocks)?, &plan)?;
    let all = measured.blocks.iter();
    let all = all.fold(BlockTotals::default(), |all, block| all.plus(block.0));
    let [contender, reference] = &measured.excess;
    let stalls = RatioStalls {
        contender: stall_chance(contender, all.contender.time, ALPHA)?,
        reference: stall_chance(reference, all.reference.time, ALPHA)?,
    };
    let centre = all.log_ratio();
    let interval = decision.interval;
    // The test of the truth alone costs a thirtieth of an interval.
    let shifted = measured.differences.iter().map(|unit| {
        let difference = unit.difference().unwrap_or(f64::NAN);
        Unit::new(difference - truth, unit.weight)
    });
    let mut by_differences = Decider::new(plan)?;
    for unit in shifted {
        by_differences.push(unit)?;
    }
    Ok(JudgedDuel {
        decision,
        is_held: interval.is_some_and(|set| (set.low..=set.high).contains(&truth)),
        is_too_few: interval.is_some_and(|set| stalls.are_too_few(centre, &set)),
        is_held_widened: interval.is_some_and(|set| {
            let set = stalls.widened(centre, &set);
            (set.low..=set.high).contains(&truth)
        }),
        is_held_by_differences: !by_differences.has_verdict(),
    })
}
