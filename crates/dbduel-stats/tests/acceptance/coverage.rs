//! How often each kind of interval holds the truth, on the three machines.
//!
//! Three promises that are kept differently: an interval that is valid at every look at once must be wider
//! than one that was to be looked at once, and one contender's figures have no pairing to lean on. Beside them
//! are intervals that others would make of the same figures. The same numbers are printed as tables by
//! `examples/coverage_table.rs`.

use dbduel_stats::Estimate;
use dbduel_stats::compare::paired_mean;
use dbduel_stats::mean::series_mean;
use dbduel_stats::quantile::{BatchCount, quantile_estimate};
use dbduel_stats::random::RandomStream;
use dbduel_stats::sequential::{Decider, SequentialPlan, Unit, flip_spend};
use dbduel_stats::simulate::{
    Autoregressive, DEFAULT_DESIGN, Dips, Machine, NASTY, Noise, QUIET, Stalls, TYPICAL, Wave,
    mirrored_duel, mirrored_seconds, two_contenders,
};

use crate::other_intervals::{RIVALS, student};

pub const ALPHA: f64 = 0.05;
pub const MARGIN: f64 = 0.02;
pub const TRUE_RATIO: f64 = 1.02;
pub const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
pub const MACHINES: [(&str, Noise); 3] = [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)];

/// How many intervals there were, how many of them hold the truth, and how wide they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coverage {
    pub given: usize,
    pub held: usize,
    /// Sum of half the widths, each as a share of the truth.
    half_widths: f64,
}

impl Coverage {
    fn count(&mut self, is_held: bool) {
        self.given += 1;
        self.held += usize::from(is_held);
    }

    fn count_interval(&mut self, interval: &Estimate, truth: f64) {
        self.count(interval.contains(truth));
        self.half_widths += 0.5 * (interval.high - interval.low) / truth;
    }

    pub fn percent(self) -> f64 {
        100.0 * self.held as f64 / self.given.max(1) as f64
    }

    /// Mean half width in percent of the truth.
    pub fn half_width_percent(self) -> f64 {
        100.0 * self.half_widths / self.given.max(1) as f64
    }
}

/// The intervals of the ratio of two contenders.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfRatio {
    /// The duel's own interval, at all looks of the planned blocks at once.
    pub at_every_look: Coverage,
    /// The same where the duel stops by its verdict.
    pub at_the_stop: Coverage,
    /// The sign-flip test inverted after the last block alone.
    pub sign_flip_once: Coverage,
    /// The interval of [`paired_mean`] after the last block alone.
    pub mean_once: Coverage,
    /// Student's interval after the last block alone, which takes blocks for independent.
    pub student_once: Coverage,
}

/// The machine with contenders that have no rhythm of their own, and without stalls: what is left is
/// autocorrelated, drifts and has neighbours, and is shared by both.
pub fn shared_alone(noise: Noise) -> Noise {
    Noise {
        dips: Dips {
            length_s: 0.0,
            depth: 0.0,
            ..noise.dips
        },
        stalls: Stalls::NONE,
        ..noise
    }
}

/// The machine with waves of twice the length, and a slow part that takes twice as long to forget itself.
pub fn twice_as_slow(noise: Noise) -> Noise {
    Noise {
        wave: Wave {
            period_s: 2.0 * noise.wave.period_s,
            ..noise.wave
        },
        slow: Autoregressive {
            correlation: 0.5 + 0.5 * noise.slow.correlation,
            ..noise.slow
        },
        ..noise
    }
}

/// Counts over simulated duels of `blocks` planned blocks.
pub fn of_ratio(noise: Noise, blocks: usize, duels: u64) -> OfRatio {
    let truth = TRUE_RATIO.ln();
    let mut found = OfRatio::default();
    for seed in 0..duels {
        let units = mirrored_duel(noise, DEFAULT_DESIGN, blocks, truth, seed);
        let from_truth: Vec<f64> = units.iter().map(|unit| unit - truth).collect();
        // The interval is what the tests have not rejected, so it holds the truth unless they reject it.
        let is_held_after = |looks: usize| {
            let plan = SequentialPlan::new(blocks as f64, ALPHA, 0.0, seed);
            !feed(&from_truth[..looks], plan).has_verdict()
        };
        let stop = feed(
            &units,
            SequentialPlan::new(blocks as f64, ALPHA, MARGIN, seed),
        )
        .n();
        found.at_every_look.count(is_held_after(blocks));
        found.at_the_stop.count(is_held_after(stop));
        let once = SequentialPlan {
            n_min: blocks,
            ..SequentialPlan::new(blocks as f64, ALPHA, 0.0, seed)
        };
        let rejection = flip_spend(&Unit::of_weight_one(&from_truth), &once).unwrap();
        found.sign_flip_once.count(rejection.is_none());
    }
    [found.mean_once, found.student_once] = of_mean(noise, blocks, ALPHA, duels);
    found
}

/// The intervals of the mean alone at `alpha`, by [`paired_mean`] and by Student, in the same duels.
pub fn of_mean(noise: Noise, blocks: usize, alpha: f64, duels: u64) -> [Coverage; 2] {
    let mut found = [Coverage::default(); 2];
    for seed in 0..duels {
        let units = mirrored_duel(noise, DEFAULT_DESIGN, blocks, TRUE_RATIO.ln(), seed);
        let intervals = [paired_mean(&units, alpha).unwrap(), student(&units, alpha)];
        for (coverage, interval) in found.iter_mut().zip(intervals) {
            coverage.count_interval(&interval.map_increasing(f64::exp), TRUE_RATIO);
        }
    }
    found
}

/// Looks after every unit, of weight 1, and stops at the first verdict, as a duel does.
pub fn feed(differences: &[f64], plan: SequentialPlan) -> Decider {
    let mut decider = Decider::new(plan).unwrap();
    for unit in Unit::of_weight_one(differences) {
        decider.push(unit).unwrap();
        if decider.has_verdict() {
            break;
        }
    }
    decider
}

/// The intervals of one contender's own figures.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfFigures {
    /// Mean throughput, from its slices.
    pub mean: Coverage,
    /// The same as others would make it.
    pub rivals: [Coverage; RIVALS.len()],
    pub quantiles: [Coverage; QUANTILES.len()],
}

/// What one contender of one duel shows.
struct Run {
    /// Throughput of every second, by slice.
    slices: Vec<Vec<f64>>,
    /// Latencies of all requests with the number of their slice, ascending.
    latencies: Vec<(f64, usize)>,
    /// The largest latency of every second.
    maxima: Vec<f64>,
}

impl Run {
    /// The first contender of a duel. Ten requests arrive in a second at throughput 1, and their latencies
    /// are log-normal around the reciprocal of the throughput.
    fn new(noise: Noise, blocks: usize, seed: u64) -> Self {
        let mut machine = Machine::new(noise, seed);
        let mut contenders = two_contenders(&noise, 0.0, &mut machine);
        let all = mirrored_seconds(&mut machine, &mut contenders, DEFAULT_DESIGN, blocks);
        let own = all.into_iter().filter(|(contender, _)| *contender == 0);
        let slices: Vec<Vec<f64>> = own.map(|(_, seconds)| seconds).collect();
        let mut random = RandomStream::new(seed, 50);
        let (mut latencies, mut maxima) = (Vec::new(), Vec::new());
        for (number, slice) in slices.iter().enumerate() {
            for throughput in slice {
                let requests = (10.0 * throughput).round() as usize;
                let mut max = f64::NAN;
                for _ in 0..requests {
                    let latency = (0.5 * random.normal()).exp() / throughput;
                    latencies.push((latency, number));
                    max = latency.max(max);
                }
                maxima.push(max);
            }
        }
        latencies.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Run {
            slices,
            latencies,
            maxima,
        }
    }

    fn quantile(&self, q: f64) -> f64 {
        quantile(&self.latencies, |latency| latency.0, q)
    }

    /// Requests of every slice, and how many of them are at or below `bar`.
    fn batches(&self, bar: f64) -> Vec<BatchCount> {
        let none = BatchCount {
            total: 0,
            at_or_below: 0,
        };
        let mut batches = vec![none; self.slices.len()];
        for (latency, slice) in &self.latencies {
            batches[*slice].total += 1;
            batches[*slice].at_or_below += u64::from(*latency <= bar);
        }
        batches
    }
}

fn quantile<T>(ascending: &[T], value: impl Fn(&T) -> f64, q: f64) -> f64 {
    let rank = (q * ascending.len() as f64).ceil() as usize;
    value(&ascending[rank.clamp(1, ascending.len()) - 1])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Counts over the first contenders of simulated duels. The truth is what all of them show together: the
/// expectation over everything that a machine of this kind may do in that time.
pub fn of_figures(noise: Noise, blocks: usize, duels: u64) -> OfFigures {
    // One latency in so many stands for all of them in the truth.
    const THINNING: usize = 53;
    let mut answers = Vec::new();
    let mut all_latencies = Vec::new();
    for seed in 0..duels {
        let run = Run::new(noise, blocks, seed);
        let slices: Vec<f64> = run.slices.iter().map(|slice| mean(slice)).collect();
        let quantiles = QUANTILES.map(|q| {
            let batches = run.batches(run.quantile(q));
            let estimate =
                quantile_estimate(q, ALPHA, &batches, |q| run.quantile(q), &run.maxima).unwrap();
            estimate.interval.ok()
        });
        answers.push((slices, quantiles));
        let offset = seed as usize % THINNING;
        let some = run.latencies.iter().skip(offset).step_by(THINNING);
        all_latencies.extend(some.map(|(latency, _)| *latency));
    }
    all_latencies.sort_unstable_by(f64::total_cmp);
    let means: Vec<f64> = answers.iter().map(|(slices, _)| mean(slices)).collect();
    let truth = mean(&means);
    let mut found = OfFigures::default();
    for (slices, quantiles) in &answers {
        let own = series_mean(slices, ALPHA).unwrap();
        found.mean.count_interval(&own, truth);
        for (coverage, (_, rival)) in found.rivals.iter_mut().zip(RIVALS) {
            coverage.count_interval(&rival(slices), truth);
        }
        for ((coverage, q), interval) in found.quantiles.iter_mut().zip(QUANTILES).zip(quantiles) {
            if let Some(interval) = interval {
                coverage.count_interval(interval, quantile(&all_latencies, |x| *x, q));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_stats::simulate::autoregressive_series;

    const BLOCKS: usize = 56;

    /// True unless coverage is below 95 % by more than happens by chance for one in a thousand choices of the
    /// seeds, which are fixed.
    fn is_kept(coverage: Coverage) -> bool {
        let given = coverage.given as f64;
        coverage.held as f64 >= 0.95 * given - 3.1 * (0.95 * 0.05 * given).sqrt()
    }

    #[test]
    fn intervals_of_the_ratio_hold_the_truth_at_every_look_and_at_the_last_alone() {
        for (name, noise) in MACHINES {
            let found = of_ratio(noise, BLOCKS, 1000);
            let kinds = [
                found.at_every_look,
                found.at_the_stop,
                found.sign_flip_once,
                found.mean_once,
            ];
            assert!(kinds.into_iter().all(is_kept), "{name}: {found:?}");
        }
    }

    /// Neither too narrow nor needlessly wide where the noise is the machine's and not the contenders' own.
    #[test]
    fn intervals_are_within_two_points_of_what_they_promise_at_one_look_or_at_all_at_once() {
        for (name, noise) in MACHINES {
            for blocks in [24, BLOCKS] {
                let found = of_ratio(shared_alone(noise), blocks, 1000);
                for coverage in [found.sign_flip_once, found.mean_once] {
                    let points = (coverage.percent() - 95.0).abs();
                    assert!(points <= 2.0, "{name} {blocks}: {found:?}");
                }
                // What holds at all looks at once is promised 95 % of the time at all looks at once.
                let at_once = found.at_every_look.percent();
                assert!(
                    (93.0..=97.5).contains(&at_once),
                    "{name} {blocks}: {found:?}"
                );
            }
        }
    }

    /// Contenders with a rhythm of their own: blocks scatter by more than their mean does, which only their order shows.
    /// In so many duels each, with what chance may add to the points, by how many more of the duels Student's interval holds
    /// the truth, and how many of the narrow intervals may miss it.
    fn check_means_with_a_rhythm(duels: u64, chance: f64, more: usize, missed_max: usize) {
        for (name, noise) in MACHINES {
            for (blocks, within) in [(7, 2.5), (14, 2.0), (28, 2.0), (56, 2.0)] {
                let found = of_mean(noise, blocks, ALPHA, duels);
                let [own, student] = found;
                let points = (own.percent() - 95.0).abs();
                assert!(points <= within + chance, "{name} {blocks}: {found:?}");
                // The same duels for both, so that few in a thousand are no chance.
                assert!(
                    own.held + more <= student.held,
                    "{name} {blocks}: {found:?}"
                );
                // A share such as a statement of an explanation has: not below it by more than chance.
                let [own, _] = of_mean(noise, blocks, 0.01, duels);
                let missed = own.given - own.held;
                assert!(missed <= missed_max, "{name} {blocks}: {own:?}");
            }
        }
    }

    /// A tenth of the duels, for every commit: 3.1 standard deviations are 3.4 points.
    #[test]
    fn intervals_of_a_mean_are_near_what_they_promise_where_contenders_have_a_rhythm_too() {
        check_means_with_a_rhythm(400, 3.4, 0, 10);
    }

    #[test]
    #[ignore = "nightly: 96,000 duels"]
    fn intervals_of_a_mean_are_within_two_points_where_contenders_have_a_rhythm_too() {
        check_means_with_a_rhythm(4000, 0.0, 32, 60);
    }

    /// An hour's intervals of the mean are narrower where there is a rhythm, and sign flips nearer to their promise. Where
    /// there is none that costs little after an hour, and a quarter of the width after a quarter of an hour.
    #[test]
    fn heeding_the_order_of_blocks_gains_with_a_rhythm_and_costs_without() {
        for (name, noise) in MACHINES {
            let wider = |[own, student]: [Coverage; 2]| {
                own.half_width_percent() / student.half_width_percent()
            };
            let found = of_ratio(noise, BLOCKS, 1000);
            let narrower = wider([found.mean_once, found.student_once]);
            assert!(narrower < 0.97, "{name}: {found:?}");
            assert!(
                found.sign_flip_once.held + 8 <= found.student_once.held,
                "{name}: {found:?}"
            );
            assert!(found.sign_flip_once.percent() <= 98.0, "{name}: {found:?}");
            for (blocks, price) in [(BLOCKS / 4, 1.15..1.3), (BLOCKS, 1.0..1.09)] {
                let found = of_mean(shared_alone(noise), blocks, ALPHA, 500);
                assert!(price.contains(&wider(found)), "{name} {blocks}: {found:?}");
            }
        }
    }

    /// The shares of the error that the statements of an explanation have, on independent units.
    #[test]
    fn means_are_missed_no_more_often_than_allowed_at_small_probabilities() {
        const SERIES: u64 = 20_000;
        for (n, alpha, least, most) in [
            (14, 0.01, 120, 244),
            (56, 0.01, 120, 244),
            (14, 0.001, 4, 34),
            (56, 0.001, 4, 34),
        ] {
            let is_missed = |seed: &u64| {
                let mut random = RandomStream::new(*seed, 51);
                let units: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                !paired_mean(&units, alpha).unwrap().contains(0.0)
            };
            let missed = (0..SERIES).filter(is_missed).count();
            // The most that happens by chance but once in a thousand choices of seeds.
            assert!((least..=most).contains(&missed), "{n} {alpha}: {missed}");
        }
    }

    /// What neighbouring blocks have in common, as the documentation states it.
    #[test]
    fn dips_of_their_own_make_neighbouring_blocks_differ() {
        let correlation = |noise: Noise| {
            let (mut products, mut squares) = (0.0, 0.0);
            for seed in 0..1000 {
                let units = mirrored_duel(noise, DEFAULT_DESIGN, BLOCKS, 0.0, seed);
                products += units.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
                squares += units[1..].iter().map(|unit| unit * unit).sum::<f64>();
            }
            products / squares
        };
        for (name, noise) in MACHINES {
            let (own, shared) = (correlation(noise), correlation(shared_alone(noise)));
            assert!((-0.17..-0.09).contains(&own), "{name}: {own}");
            assert!(shared.abs() < 0.01, "{name}: {shared}");
        }
    }

    /// A ratio that wanders by itself is no longer one number, and is still taken for a difference less often than by
    /// methods that take blocks for independent.
    #[test]
    fn a_ratio_that_wanders_is_taken_for_a_difference_less_often_than_by_blocks_as_independent() {
        let missed = |method: fn(&[f64], f64) -> Estimate| {
            let is_missed = |seed: &u64| {
                let mut random = RandomStream::new(*seed, 52);
                let units = autoregressive_series(0.3, BLOCKS, &mut random);
                !method(&units, ALPHA).contains(0.0)
            };
            (0..1000).filter(is_missed).count()
        };
        let (own, others) = (
            missed(|units, alpha| paired_mean(units, alpha).unwrap()),
            missed(student),
        );
        assert!(own + 50 <= others, "{own} {others}");
    }

    /// Not below the promise by more than chance, although the waves of the noisy machines are up to four times as long as
    /// the shortest run. Most quantiles beyond the bulk are refused there.
    #[test]
    fn a_contenders_own_figures_are_covered_after_eight_minutes_as_after_an_hour() {
        const DUELS: usize = 400;
        for (name, noise) in MACHINES {
            for blocks in [BLOCKS / 8, BLOCKS / 4, BLOCKS] {
                let found = of_figures(noise, blocks, DUELS as u64);
                assert_eq!(found.mean.given, DUELS);
                let kinds = found.quantiles.iter().chain([&found.mean]);
                let shown: Vec<&Coverage> = kinds.filter(|kind| kind.given > DUELS / 2).collect();
                assert!(shown.len() >= 3, "{name} {blocks}: {found:?}");
                let is_near = |kind: &&Coverage| kind.percent() >= 93.5;
                assert!(shown.iter().all(is_near), "{name} {blocks}: {found:?}");
            }
        }
    }

    /// The limit that is stated: of a wave of an hour a quarter of an hour shows too little, though others miss more.
    #[test]
    fn a_wave_much_longer_than_the_run_is_not_covered() {
        let found = of_figures(twice_as_slow(TYPICAL), BLOCKS / 4, 200);
        let [_, batches, three, _] = found.rivals;
        assert!(found.mean.percent() < 90.0, "{found:?}");
        assert!(found.mean.held > batches.held && found.mean.held > three.held);
    }

    /// Controls: what is usual makes intervals that are too narrow on the same machines. Two cosines cover nearly as well
    /// from half an hour on, by being wider, and less after eight minutes.
    #[test]
    fn usual_intervals_of_a_contenders_own_figures_cover_less_or_are_wider() {
        for (name, noise) in MACHINES {
            let early = of_figures(noise, BLOCKS / 8, 400);
            let [.., two] = early.rivals;
            assert!(two.percent() < 93.0, "{name}: {early:?}");
            assert!(
                two.percent() + 3.0 < early.mean.percent(),
                "{name}: {early:?}"
            );
            let late = of_figures(noise, BLOCKS / 2, 200);
            let [.., two] = late.rivals;
            assert!(
                two.percent() + 5.0 > late.mean.percent(),
                "{name}: {late:?}"
            );
            let found = of_figures(noise, BLOCKS / 4, 200);
            let [independent, batches, three, two] = found.rivals;
            assert!(independent.percent() < 90.0, "{name}: {found:?}");
            assert!(batches.percent() < 90.0, "{name}: {found:?}");
            assert!(three.percent() <= found.mean.percent(), "{name}: {found:?}");
            let wider = two.half_width_percent() / found.mean.half_width_percent();
            assert!(wider > 1.05, "{name}: {found:?}");
        }
    }
}
