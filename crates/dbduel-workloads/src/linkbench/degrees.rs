//! Number of links of a node, by its rank.
//!
//! The published sample (about 3·10⁸ nodes) is represented by fits: 28 knots between which the logarithm of the tail
//! probability is a straight line over the logarithm of the degree, or a closed form with seven parameters. A degree
//! is not drawn: the rank determines it, so that the hottest node has the largest degree of the sample for any size of
//! the graph. A distribution can replace the sample: a rank's degree is then its expected number of draws, rounded.

use super::access::zeta;

/// The largest degree of the sample; the hottest node always has it.
pub(super) const DEGREE_MAX: u64 = 961_963;

/// Degree t and P(degree ≥ t). Largest error of the tail against the sample: 0.5 % to t = 10, 5 % to 100,
/// 2 % to 10 000, 6 % to 100 000; Kolmogorov distance 0.0003; mean 4.087 instead of 4.097.
const KNOTS: [(f64, f64); 28] = [
    (1.0, 0.5467),
    (2.0, 0.2254),
    (3.0, 0.1304),
    (4.0, 0.08007),
    (5.0, 0.05549),
    (6.0, 0.04172),
    (8.0, 0.0268),
    (10.0, 0.01922),
    (16.0, 9.731e-3),
    (32.0, 4.299e-3),
    (64.0, 2.316e-3),
    (128.0, 1.467e-3),
    (256.0, 1.017e-3),
    (512.0, 7.171e-4),
    (1_000.0, 4.937e-4),
    (2_000.0, 3.064e-4),
    (3_500.0, 1.846e-4),
    (5_000.0, 1.255e-4),
    (7_000.0, 8.288e-5),
    (10_000.0, 4.956e-5),
    (14_000.0, 2.826e-5),
    (20_000.0, 1.462e-5),
    (30_000.0, 6.164e-6),
    (50_000.0, 1.86e-6),
    (100_000.0, 3.721e-7),
    (200_000.0, 9.55e-8),
    (500_000.0, 6.6e-9),
    (961_963.0, 3.3e-9),
];

/// Up to this degree the closed form would be off by up to 0.016; the knots are used instead.
const FITTED_FROM: u64 = 5;

/// Model of the degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Model {
    /// The sample, by its knots.
    Knots,
    /// The sample, by the closed form above the first knots.
    Fitted,
    /// The same degree for all.
    Constant(u64),
    /// In proportion to rank^-shape, with this mean.
    Zipf { shape: f64, mean: f64 },
    /// Each rank has this share less than the one before, with this mean.
    Geometric { less: f64, mean: f64 },
}

impl Model {
    fn is_sample(self) -> bool {
        matches!(self, Model::Knots | Model::Fitted)
    }

    /// P(degree ≥ `degree`) of the sample, for `degree` of at least 1.
    fn tail(self, degree: u64) -> f64 {
        match self {
            Model::Fitted if degree >= FITTED_FROM => closed_form(degree as f64),
            _ => interpolate(&KNOTS, degree as f64),
        }
    }

    /// Function from a degree of at least 1 to the number of `nodes` ranks with at least that degree.
    fn ranks_with(self, nodes: u64) -> impl Fn(u64) -> u64 {
        let count = nodes as f64;
        let sum = match self {
            Model::Zipf { shape, .. } => zeta(nodes, shape),
            _ => 1.0,
        };
        move |degree| {
            // From here on the degree is rounded up to.
            let least = degree as f64 - 0.5;
            let ranks = match self {
                // A rank has at least this degree when its place from the top lies within the tail.
                Model::Knots | Model::Fitted => (count * self.tail(degree)).ceil().max(1.0),
                Model::Constant(all) => count * f64::from(u8::from(degree <= all)),
                Model::Zipf { shape, mean } => {
                    (count * mean / sum / least).powf(1.0 / shape).floor()
                }
                Model::Geometric { less, mean } => {
                    let hottest = count * mean * less;
                    if hottest < least {
                        0.0
                    } else {
                        ((least / hottest).ln() / (1.0 - less).ln()).floor() + 1.0
                    }
                }
            };
            (ranks as u64).min(nodes)
        }
    }
}

/// A steep core and a shallow shoulder with a cut-off; within 7.5 % of the sample to 100 000.
fn closed_form(degree: f64) -> f64 {
    let core = 2.7074 * (degree + 1.126).powf(-2.2107);
    let shoulder = 0.01981 * degree.powf(-0.5375) / (1.0 + (degree / 7_255.6).powf(1.7708));
    core + shoulder
}

/// Linear interpolation between the logarithms of the knots; zero beyond the last one.
pub(super) fn interpolate(knots: &[(f64, f64)], at: f64) -> f64 {
    let right = knots.partition_point(|knot| knot.0 < at);
    match (
        right.checked_sub(1).map(|left| knots[left]),
        knots.get(right),
    ) {
        (_, None) => 0.0,
        (None, Some(&(_, first))) => first,
        (Some((x0, y0)), Some(&(x1, y1))) => {
            let share = (at / x0).ln() / (x1 / x0).ln();
            (y0.ln() + share * (y1 / y0).ln()).exp()
        }
    }
}

/// The degrees of all ranks, as a staircase.
#[derive(Debug)]
pub(super) struct Degrees {
    /// Numbers of ranks with at least a degree; falling counts, rising degrees.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    ranks: u64,
    degree: u64,
}

/// Ranks that share a degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stair {
    pub(super) ranks: u64,
    pub(super) degree: u64,
}

impl Degrees {
    /// The degrees of `nodes` nodes, at most `most` links each.
    pub(super) fn new(model: Model, nodes: u64, most: u64) -> Self {
        let ranks_with = model.ranks_with(nodes);
        let mut steps: Vec<Step> = Vec::new();
        for degree in 1..=most {
            let ranks = ranks_with(degree);
            if ranks == 0 {
                break;
            }
            match steps.last_mut() {
                Some(last) if ranks >= last.ranks => last.degree = degree,
                _ => steps.push(Step { ranks, degree }),
            }
            if ranks == 1 && model.is_sample() {
                // The hottest node alone is left, and has them all.
                steps.pop();
                steps.push(Step {
                    ranks,
                    degree: most,
                });
                break;
            }
        }
        Degrees { steps }
    }

    /// Links of the node with this rank, 0 being the hottest.
    #[inline]
    pub(super) fn of_rank(&self, rank: u64) -> u64 {
        // Most nodes stand on the first few steps.
        let near = self
            .steps
            .iter()
            .take(4)
            .take_while(|step| step.ranks > rank)
            .count();
        let below = match near {
            4 => self.steps.partition_point(|step| step.ranks > rank),
            few => few,
        };
        below
            .checked_sub(1)
            .map_or(0, |index| self.steps[index].degree)
    }

    /// Every degree above 0 with the number of its ranks.
    pub(super) fn stairs(&self) -> impl Iterator<Item = Stair> + '_ {
        self.steps.iter().enumerate().map(|(index, step)| Stair {
            ranks: step.ranks - self.steps.get(index + 1).map_or(0, |next| next.ranks),
            degree: step.degree,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(model: Model, nodes: u64) -> u64 {
        let degrees = Degrees::new(model, nodes, DEGREE_MAX);
        degrees
            .stairs()
            .map(|stair| stair.ranks * stair.degree)
            .sum()
    }

    #[test]
    fn graphs_of_every_size_have_the_published_number_of_links() {
        // Totals of the sample itself; the knots are allowed to miss by 1 %, the closed form by 2 %.
        for (nodes, published) in [
            (1_000, 963_593),
            (10_000, 992_404),
            (100_000, 1_341_526),
            (1_000_000, 4_975_697),
            (10_000_000, 41_721_824),
        ] {
            for (model, tolerance) in [(Model::Knots, 0.01), (Model::Fitted, 0.02)] {
                let found = links(model, nodes);
                let distance = found as f64 / f64::from(published) - 1.0;
                assert!(
                    distance.abs() < tolerance,
                    "{model:?}, {nodes} nodes: {found} links, {published} published"
                );
            }
        }
    }

    #[test]
    fn the_staircase_says_the_same_as_the_definition() {
        let nodes = 50_000;
        let degrees = Degrees::new(Model::Knots, nodes, DEGREE_MAX);
        for rank in (0..nodes).step_by(7).chain(0..2_000) {
            let degree = degrees.of_rank(rank);
            let reaches = |degree| nodes as f64 * Model::Knots.tail(degree) > rank as f64;
            assert!(
                degree == 0 || rank == 0 || reaches(degree),
                "{rank}: {degree}"
            );
            assert!(
                degree == DEGREE_MAX || !reaches(degree + 1),
                "{rank}: {degree}"
            );
        }
        assert_eq!(degrees.of_rank(0), DEGREE_MAX);
        assert_eq!(degrees.of_rank(nodes - 1), 0);
    }

    #[test]
    fn the_quantiles_are_those_of_the_sample() {
        let nodes = 100_000_000_u64;
        let degrees = Degrees::new(Model::Knots, nodes, DEGREE_MAX);
        for (quantile, published, tolerance) in [
            (0.5, 1.0, 0.0),
            (0.9, 3.0, 0.0),
            (0.95, 5.0, 0.0),
            (0.99, 15.0, 0.1),
            (0.999, 264.0, 0.05),
            (0.9999, 6_051.0, 0.05),
            (0.99999, 24_000.0, 0.05),
            (0.999_999, 64_914.0, 0.05),
        ] {
            let rank = ((1.0 - quantile) * nodes as f64) as u64;
            let found = degrees.of_rank(rank) as f64;
            assert!(
                (found / published - 1.0).abs() <= tolerance,
                "{quantile}: {found}"
            );
        }
    }

    #[test]
    fn a_cap_and_a_constant_hold_for_all() {
        let capped = Degrees::new(Model::Knots, 1_000, 500);
        assert_eq!(capped.of_rank(0), 500);
        let constant = Degrees::new(Model::Constant(3), 1_000, DEGREE_MAX);
        assert!((0..1_000).all(|rank| constant.of_rank(rank) == 3));
        let none = Degrees::new(Model::Constant(0), 1_000, DEGREE_MAX);
        assert_eq!(none.of_rank(0), 0);
    }

    #[test]
    fn distributions_give_each_rank_what_it_would_be_drawn() {
        let nodes = 20_000_u64;
        let (shape, less, mean) = (1.2, 0.001, 4.1);
        let sum = zeta(nodes, shape);
        let all = mean * nodes as f64;
        let zipf = |rank: u64| all / ((rank + 1) as f64).powf(shape) / sum;
        let geometric = |rank: u64| all * less * (1.0 - less).powf(rank as f64);
        let check = |model, drawn: &dyn Fn(u64) -> f64| {
            let degrees = Degrees::new(model, nodes, DEGREE_MAX);
            for rank in (0..200).chain((200..nodes).step_by(97)) {
                // Half a link from the border either neighbour is right.
                let distance = (degrees.of_rank(rank) as f64 - drawn(rank)).abs();
                assert!(distance < 0.5 + 1e-6, "{model:?}, {rank}: {distance}");
            }
        };
        check(Model::Zipf { shape, mean }, &zipf);
        check(Model::Geometric { less, mean }, &geometric);
        let flat = Model::Geometric { less: 1.0, mean };
        assert_eq!(Degrees::new(flat, nodes, DEGREE_MAX).of_rank(0), 82_000);
        assert_eq!(Degrees::new(flat, nodes, DEGREE_MAX).of_rank(1), 0);
        let capped = Degrees::new(Model::Zipf { shape, mean }, nodes, 50);
        assert_eq!(capped.of_rank(0), 50);
    }
}
