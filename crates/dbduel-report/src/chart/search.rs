//! The search of a bisection: the revisions in order, what their contests found, and the place of the change.

use dbduel_judge::records::bisect::{BisectSummary, SearchedPart, StepAnswer, SummarisedStep};
use dbduel_judge::summary::Figure;
use dbduel_record::bisect::StepRole;

use crate::words::{self, RatioUnit};

use super::frame::{Plot, shape, titled};
use super::scale::{Scale, ratio_ticks};
use super::style::{colour, legend, marker};
use super::svg::Svg;

/// Answers as the legend has them; their positions are those of the colours and shapes.
const ANSWERS: [&str; 4] = [
    "like the good one",
    "like the bad one",
    "like neither",
    "no answer",
];

/// Distance between contests of one revision, pixels.
const ASIDE: f64 = 7.0;

/// One measured revision.
struct Point<'a> {
    revision: usize,
    /// Index into [`ANSWERS`].
    answer: usize,
    figure: &'a Figure,
    /// Contests of this revision before this one.
    before: usize,
}

/// Draws the search of a part; `None` when nothing was measured.
#[must_use]
pub fn search(summary: &BisectSummary, part: &SearchedPart, width: f64) -> Option<String> {
    let points = points(summary, part);
    let (low, high) = range(summary, &points)?;
    let mut svg = titled(width, "Throughput against the good revision", "ratio");
    let top = legend(&mut svg, &ANSWERS);
    let plot = Plot {
        left: 58.0,
        top: top + 6.0,
        right: width - 14.0,
        bottom: top + 210.0,
    };
    let values = Scale::logarithmic((low, high), plot.upwards());
    let across = Scale::linear(
        (part.good as f64, part.bad as f64),
        (plot.left + 30.0, plot.right - 30.0),
    );
    let above = values.held(1.0 + summary.horizon);
    let size = (
        plot.width(),
        values.held(1.0 / (1.0 + summary.horizon)) - above,
    );
    svg.rect((plot.left, above), size, "band", "within the horizon");
    draw_place(&mut svg, summary, part, plot, &across);
    let unit = RatioUnit::of(points.iter().map(|point| point.figure));
    let ticks = ratio_ticks(low, high, 5);
    plot.horizontal_grid(&mut svg, &values, &ticks, |value| unit.write(value));
    let equal = values.at(1.0);
    svg.line((plot.left, equal), (plot.right, equal), "zero");
    let name = |revision: usize| summary.revisions[revision].name.clone();
    let asked: Vec<usize> = {
        let mut asked: Vec<usize> = points.iter().map(|point| point.revision).collect();
        asked.push(part.good);
        asked.sort_unstable();
        asked.dedup();
        asked
    };
    let places: Vec<f64> = asked.iter().map(|&one| across.at(one as f64)).collect();
    let labels = asked.iter().map(|&one| name(one));
    plot.axis_of_places(&mut svg, &places, labels, "revisions in order");
    for point in &points {
        let Some(value) = point.figure.value() else {
            continue;
        };
        let x = across.at(point.revision as f64) + ASIDE * point.before as f64;
        let class = colour(point.answer);
        if let Some((low, high)) = point.figure.interval() {
            let ends = (values.held(low), values.held(high));
            svg.line((x, ends.0), (x, ends.1), &format!("whisker thin {class}"));
        }
        let title = format!(
            "{}: {} ({}), {}",
            name(point.revision),
            unit.write(value),
            words::doubt(point.figure, |value| unit.write(value)),
            ANSWERS[point.answer]
        );
        svg.path(
            &marker(point.answer, (x, values.held(value)), 4.5),
            &format!("{} {class}", shape(point.figure)),
            &title,
        );
    }
    let label = "Throughput of the tested revisions against the good one, in the order of the revisions, and the place of the change";
    Some(svg.finish(plot.bottom + 37.0, label))
}

/// Draws where the change is, or most probably is.
fn draw_place(
    svg: &mut Svg,
    summary: &BisectSummary,
    part: &SearchedPart,
    plot: Plot,
    across: &Scale,
) {
    let Some(place) = &part.place else {
        return;
    };
    let ends = [place.after, place.up_to].map(|revision| across.at(revision as f64));
    let [after, up_to] = [place.after, place.up_to].map(|one| &summary.revisions[one].name);
    let title = format!(
        "between {after} and {up_to} with a probability of {}",
        words::share(place.probability)
    );
    let size = (ends[1] - ends[0], plot.height());
    svg.rect((ends[0], plot.top), size, "span c1", &title);
}

/// The measured revisions of a part: its bad one by the contest of the ends, the others by their own.
fn points<'a>(summary: &'a BisectSummary, part: &SearchedPart) -> Vec<Point<'a>> {
    let mut points: Vec<Point<'a>> = Vec::new();
    for step in part
        .steps
        .iter()
        .filter_map(|&step| summary.steps.get(step))
    {
        let Some(answer) = answer_of(step) else {
            continue;
        };
        let tested = match step.role {
            StepRole::Ends => Some(part.bad),
            StepRole::Candidate => step.revisions.last().copied(),
            // Its ratio is not to the good revision of the part.
            StepRole::Change => None,
        };
        if let Some(revision) = tested.filter(|_| step.ratio.value().is_some()) {
            let before = points.iter().filter(|point| point.revision == revision);
            let before = before.count();
            points.push(Point {
                before,
                revision,
                answer,
                figure: &step.ratio,
            });
        }
    }
    points
}

fn answer_of(step: &SummarisedStep) -> Option<usize> {
    match step.answer? {
        StepAnswer::LikeGood | StepAnswer::Same => Some(0),
        StepAnswer::LikeBad | StepAnswer::Differ => Some(1),
        StepAnswer::NeitherNearerGood | StepAnswer::NeitherNearerBad => Some(2),
        StepAnswer::Unsure | StepAnswer::Undecided => Some(3),
        StepAnswer::Skipped | StepAnswer::Void => None,
    }
}

/// The ends of the axis of ratios; equality and the horizon are always in sight.
fn range(summary: &BisectSummary, points: &[Point<'_>]) -> Option<(f64, f64)> {
    let mut ends = Vec::new();
    for point in points {
        let value = point.figure.value().filter(|value| value.is_finite())?;
        let (low, high) = point.figure.interval().unwrap_or((value, value));
        // One wild end must not flatten all others.
        ends.extend([value, low.max(0.5 * value), high.min(1.5 * value)]);
    }
    let largest = ends.iter().copied().reduce(f64::max)?;
    let smallest = ends.iter().copied().reduce(f64::min)?;
    if smallest <= 0.0 {
        return None;
    }
    let margin = 1.5 * summary.horizon + 0.01;
    let low = smallest.min(1.0 / (1.0 + margin));
    let high = largest.max(1.0 + margin);
    let air = (high / low).powf(0.06);
    Some((low / air, high * air))
}
