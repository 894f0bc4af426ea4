//! Searches for a change in a series of revisions on the simulated machines: each step is a contest of the first, the last
//! and one revision between them.

use dbduel_stats::StatsError;
use dbduel_stats::bisection::{Answer, Bisection};
use dbduel_stats::compare::{BlockSlices, SliceValue, block_differences};
use dbduel_stats::pool::Stratum;
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit};
use dbduel_stats::simulate::{Contender, DEFAULT_DESIGN, Design, FineNoise, Machine, Noise};

/// Probability of a wrong result that the searches promise.
pub const ALPHA: f64 = 0.05;

/// Blocks of two contenders that the budget of the experiment has room for.
const BUDGET_BLOCKS: usize = 1200;

/// Contests of one revision without an answer, after which it is not asked again, as in the product.
const UNSURE_MAX: u32 = 3;

/// Steps of a search, at most.
const STEPS_MAX: usize = 60;

/// Seconds of a step that are not blocks: starting, loading and warming up three servers.
const OVERHEAD_S: f64 = 60.0;

/// Short slices, so that a block takes as long as in a contest of the product.
const DESIGN: Design = Design {
    slice: 2,
    guard: 0,
    ..DEFAULT_DESIGN
};

/// The noise of the machine of a search.
#[derive(Debug, Clone, Copy)]
pub enum MachineNoise {
    /// By the second.
    Seconds(Noise),
    /// Below the second.
    #[allow(
        dead_code,
        reason = "only the example's table has such a machine: it takes long"
    )]
    Ticks(FineNoise),
}

impl MachineNoise {
    fn machine(&self, seed: u64) -> Machine {
        match self {
            Self::Seconds(noise) => Machine::new(*noise, seed),
            Self::Ticks(fine) => Machine::in_ticks(fine, seed),
        }
    }

    fn contenders(&self, levels: [f64; 3], machine: &mut Machine) -> [Contender; 3] {
        let noise = match self {
            Self::Seconds(noise) => noise,
            Self::Ticks(fine) => &fine.noise,
        };
        levels.map(|level| Contender::new(noise, level, &mut machine.random))
    }

    /// Mean throughput of a contender over the machine's next seconds.
    fn slice(&self, contender: &mut Contender, machine: &mut Machine, seconds: usize) -> f64 {
        let Self::Ticks(fine) = self else {
            return contender.slice(machine, DESIGN.guard, seconds);
        };
        let steps = (seconds as f64 / fine.tick_s).round() as usize;
        let scatter = fine.white / (seconds as f64).sqrt() * machine.random.normal();
        contender.slice(machine, DESIGN.guard, steps) * scatter.exp()
    }
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundPlace {
    /// The true one.
    Right,
    /// A range that holds it, around revisions that stayed without an answer.
    Range,
    /// Another one.
    Wrong,
    /// None within the steps, or the search was given up because of what restarts do.
    Nothing,
}

/// A search that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Searched {
    /// What it found.
    pub found: FoundPlace,
    /// Contests.
    pub steps: usize,
    /// Time of the contests, seconds.
    pub seconds: f64,
}

/// A contest of three.
struct Step {
    /// What it says of the revision in the middle of the list.
    answer: Answer,
    /// Difference of the last revision from the first.
    ends: Stratum,
    /// Difference of the revision in the middle from the first.
    to_first: Stratum,
    blocks: usize,
    seconds: f64,
}

/// What a restart of a server does to its throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartNoise {
    /// Standard deviation of the logarithm of throughput between starts.
    pub deviation: f64,
    /// Whether the search estimates it, as in the product.
    pub is_estimated: bool,
}

/// Every start of a server is as fast as the others.
pub const NO_RESTART_NOISE: RestartNoise = RestartNoise {
    deviation: 0.0,
    is_estimated: true,
};

/// Mean of the differences of blocks with its standard error.
fn mean_of(differences: &[f64]) -> Stratum {
    let count = differences.len() as f64;
    let effect = differences.iter().sum::<f64>() / count;
    let squares = differences.iter().map(|one| (one - effect).powi(2));
    Stratum {
        effect,
        error: (squares.sum::<f64>() / (count - 1.0) / count).sqrt(),
    }
}

fn step(
    noise: MachineNoise,
    levels: [f64; 3],
    error: f64,
    blocks_max: usize,
    seed: u64,
) -> Result<Step, StatsError> {
    let mut machine = noise.machine(seed);
    let mut contenders = noise.contenders(levels, &mut machine);
    let plan = SequentialPlan::new(blocks_max as f64, error, 0.0, seed);
    // The revision against the first, and against the last one.
    let mut pairs = [Decider::new(plan)?, Decider::new(plan)?];
    // Of the differences to the first, and to the last one.
    let mut sums = [0.0_f64; 2];
    // Of the last, and of the middle revision from the first.
    let mut from_first = [Vec::new(), Vec::new()];
    let mut order = [0, 1, 2];
    let mut seconds = OVERHEAD_S;
    for blocks in 1..=blocks_max {
        let length = DESIGN.draw_length(&mut machine.random);
        machine.random.shuffle(&mut order);
        let turns = order.into_iter().chain(order.into_iter().rev());
        let slices: Vec<SliceValue> = turns
            .map(|contender| SliceValue {
                contender,
                value: noise.slice(&mut contenders[contender], &mut machine, length),
            })
            .collect();
        seconds += (6 * (length + DESIGN.guard)) as f64;
        let block = [BlockSlices {
            length: length as f64,
            slices,
        }];
        let differences = block_differences(&block, 3, 0)?;
        for (all, contender) in from_first.iter_mut().zip([2, 1]) {
            all.push(differences[contender][0]);
        }
        let others = pairs.iter_mut().zip(&mut sums).zip([0, 2]);
        for ((pair, sum), other) in others {
            let difference = block_differences(&block, 3, other)?[1][0];
            pair.push(Unit::new(difference, 1.0))?;
            *sum += difference;
        }
        // As in the product: one difference alone is an answer only where the other end is nearer.
        let is_nearer_to_first = sums[0].abs() < sums[1].abs();
        let answer = match (
            pairs[0].has_verdict(),
            pairs[1].has_verdict(),
            is_nearer_to_first,
        ) {
            (_, true, true) => Answer::Good,
            (true, _, false) => Answer::Bad,
            (false, false, _) | (true, false, true) | (false, true, false) => continue,
        };
        return Ok(Step {
            answer,
            ends: mean_of(&from_first[0]),
            to_first: mean_of(&from_first[1]),
            blocks,
            seconds,
        });
    }
    Ok(Step {
        answer: Answer::Unsure,
        ends: mean_of(&from_first[0]),
        to_first: mean_of(&from_first[1]),
        blocks: blocks_max,
        seconds,
    })
}

/// Searches among `last` + 1 revisions for a change of `effect` (of the logarithm) at a random place. `None` for no change: a
/// search that should not have been begun.
pub fn search(
    noise: MachineNoise,
    restarts: RestartNoise,
    last: usize,
    effect: f64,
    seed: u64,
) -> Result<Option<Searched>, StatsError> {
    let mut random = RandomStream::new(seed, 17);
    let first_bad = 1 + random.below(last);
    let mut bisection = Bisection::new(last, ALPHA)?;
    let error = bisection.error_of_answer();
    let mut contest = |middle: f64, blocks_max: usize| {
        let levels =
            [0.0, middle, effect].map(|level| level + restarts.deviation * random.normal());
        step(noise, levels, error, blocks_max, random.bits())
    };
    // The ends must differ: the last revision against the first, as a revision that is like the last.
    let ends = contest(effect, BUDGET_BLOCKS)?;
    if ends.answer != Answer::Bad {
        return Ok(None);
    }
    if restarts.is_estimated {
        bisection.take_ends(Some(ends.to_first));
    }
    // Of three contenders the budget holds two thirds as many blocks. A step gets a quarter of it at least.
    let (least, most) = (BUDGET_BLOCKS / 6, 2 * BUDGET_BLOCKS / 3);
    let mut seconds = ends.seconds;
    let mut steps = 1;
    let mut unsure = vec![0; last + 1];
    while let Some(revision) = bisection.next()
        && steps < STEPS_MAX
    {
        let level = if revision >= first_bad { effect } else { 0.0 };
        // Twice the blocks of the ends, and twice as many again after each contest without an answer.
        let blocks_max = ((2 * ends.blocks) << unsure[revision]).clamp(least, most);
        let mut step = contest(level, blocks_max)?;
        if restarts.is_estimated {
            if bisection.is_reversed(step.ends.effect) {
                step.answer = Answer::Unsure;
            }
            bisection.take_ends(Some(step.ends));
        }
        unsure[revision] += u32::from(step.answer == Answer::Unsure);
        bisection.take(
            revision,
            match unsure[revision] < UNSURE_MAX {
                true => step.answer,
                false => Answer::Skipped,
            },
        );
        steps += 1;
        seconds += step.seconds;
    }
    Ok(Some(Searched {
        found: match bisection.found() {
            None => FoundPlace::Nothing,
            Some(place) if first_bad <= place.after || place.up_to < first_bad => FoundPlace::Wrong,
            Some(place) if place.up_to - place.after > 1 => FoundPlace::Range,
            Some(_) => FoundPlace::Right,
        },
        steps,
        seconds,
    }))
}

/// Ends of `count` searches among 129 revisions on the typical machine.
#[cfg(test)]
fn ends_of_searches(count: u64, effect: f64) -> Vec<Option<Searched>> {
    let noise = MachineNoise::Seconds(dbduel_stats::simulate::TYPICAL);
    let searches = (0..count).map(|seed| search(noise, NO_RESTART_NOISE, 128, effect, seed));
    searches.collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_change_of_five_percent_is_found_as_often_as_promised() {
    let searches = 100;
    let ends = ends_of_searches(searches, -0.05);
    let right = ends
        .iter()
        .flatten()
        .filter(|end| end.found == FoundPlace::Right);
    let right = right.count() as u64;
    // Of 100 at a true 95 %, fewer than 87 happen once in a thousand builds.
    assert!(right >= 87, "{right} of {searches}");
    let wrong = ends
        .iter()
        .flatten()
        .filter(|end| end.found == FoundPlace::Wrong);
    assert!(wrong.count() <= 13);
    let steps = ends.iter().flatten().map(|end| end.steps as f64);
    let mean = steps.sum::<f64>() / ends.len() as f64;
    // Twice the logarithm of the number of places, and those that are asked again.
    assert!(mean <= 20.0, "{mean} steps");
    let mut all = ends.iter().flatten();
    assert!(all.all(|end| end.seconds >= OVERHEAD_S * end.steps as f64));
}

#[test]
fn without_a_change_no_search_begins() {
    let searches = 100;
    let begun = ends_of_searches(searches, 0.0).iter().flatten().count();
    // The test of the ends is wrong in 1 % of searches; of 100, more than 5 happen once in a thousand builds.
    assert!(begun <= 5, "{begun} of {searches}");
}
