//! Many records of one experiment in the order of their time: where the ratio to the baseline changed.
//!
//! The ratio, and not throughput itself, is followed: day-to-day changes of a machine affect the baseline of the same
//! run alike.

use dbduel_record::Verdict;
use dbduel_record::facts::Host;
use dbduel_record::seed::named_seed;
use dbduel_stats::StatsError;
use dbduel_stats::history::{ChangePoint, HistoryRule, SIDE_MIN, find_changes, raise_alarm};
use dbduel_text::counts;
use serde::Serialize;

use crate::Summary;
use crate::records::Judged;
use crate::records::copies::without_copies;
use crate::summary::{Comparison, Figure, Quantity};

/// Newest runs in which a change still raises an alarm.
const ALARM_RUNS: usize = 2 * SIDE_MIN;

/// The quantity to follow, and the smallest change to report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The quantity; throughput when absent.
    pub quantity: Option<Quantity>,
    /// Smallest relative change worth reporting.
    pub magnitude: f64,
}

/// The histories of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// The quantity that is followed.
    pub quantity: String,
    /// The runs, oldest first.
    pub runs: Vec<HistoryRun>,
    /// One per contender and load level.
    pub series: Vec<HistorySeries>,
    /// Records that do not belong to the others, and copies of one that counts, each with the reason.
    pub left_out: Vec<String>,
}

/// A record of the series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryRun {
    /// Its directory.
    pub place: String,
    /// When its plan was made, RFC 3339, UTC.
    pub created: String,
}

/// One contender at one load level, run by run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySeries {
    /// Name of the contender.
    pub contender: String,
    /// Label of the level.
    pub level: String,
    /// The runs that have a ratio.
    pub points: Vec<HistoryPoint>,
    /// Changes, oldest first.
    pub changes: Vec<HistoryChange>,
    /// A change in the newest runs, tested more strictly because the test is repeated after every run.
    pub alarm: Option<HistoryChange>,
    /// True when the alarm is a change for the worse.
    pub is_alarm_for_the_worse: bool,
    /// Why there is no result, or a caveat.
    pub note: Option<String>,
}

/// The ratio of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Index into the runs.
    pub run: usize,
    /// Contender ÷ baseline; always above zero.
    pub ratio: f64,
    /// The same with its interval, or the reason why there is none.
    pub figure: Figure,
}

/// A change of a quantity between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HistoryChange {
    /// First run after the change, an index into the runs.
    pub run: usize,
    /// Earliest place that is not excluded.
    pub earliest_run: usize,
    /// Latest place that is not excluded.
    pub latest_run: usize,
    /// Ratio after ÷ ratio before.
    pub factor: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Permutation p-value.
    pub p_value: f64,
}

/// Follows the records, in any order. A run counts once, however many copies of its record there are.
///
/// # Errors
/// When the magnitude is not usable.
pub fn follow(mut records: Vec<Judged>, question: &Question) -> Result<History, StatsError> {
    records.sort_by(|a, b| (&a.summary.created, &a.place).cmp(&(&b.summary.created, &b.place)));
    let (records, mut left_out) = without_copies(records);
    let mut kept: Vec<Judged> = Vec::new();
    for record in records {
        let why = kept
            .first()
            .and_then(|first| why_foreign(&first.summary, &record.summary));
        match why {
            Some(why) => left_out.push(format!("{}: {why}", record.place)),
            None => kept.push(record),
        }
    }
    let runs = kept
        .iter()
        .map(|record| HistoryRun {
            place: record.place.clone(),
            created: record.summary.created.clone(),
        })
        .collect();
    let mut series = Vec::new();
    if let Some(first) = kept.first() {
        for (number, duel) in first.summary.duels.iter().enumerate() {
            for comparison in &duel.comparisons {
                let name = &comparison.contender;
                let points = points(&kept, number, name, question.quantity);
                series.push(judge(name, &duel.label, points, question)?);
            }
        }
    }
    Ok(History {
        quantity: question
            .quantity
            .map_or("throughput", Quantity::label)
            .to_owned(),
        runs,
        series,
        left_out,
    })
}

/// Why a record does not belong to the history that `first` began.
fn why_foreign(first: &Summary, other: &Summary) -> Option<String> {
    let names = |summary: &Summary| -> Vec<String> {
        let contenders = summary.contenders.iter();
        contenders.map(|contender| contender.name.clone()).collect()
    };
    let labels = |summary: &Summary| -> Vec<String> {
        summary
            .duels
            .iter()
            .map(|duel| duel.label.clone())
            .collect()
    };
    let machine = |host: &Host| (host.cpu_model.clone(), host.cpus, host.memory_bytes);
    let checks = [
        (first.question != other.question, "it asks another question"),
        (names(first) != names(other), "it has other contenders"),
        (first.baseline != other.baseline, "it has another baseline"),
        (first.workload != other.workload, "it has another workload"),
        (labels(first) != labels(other), "it has other load levels"),
        (
            machine(&first.host) != machine(&other.host),
            "it ran on another machine",
        ),
    ];
    let found = checks.into_iter().find(|(differs, _)| *differs);
    found.map(|(_, why)| why.to_owned())
}

fn points(
    kept: &[Judged],
    duel: usize,
    contender: &str,
    quantity: Option<Quantity>,
) -> Vec<HistoryPoint> {
    let of_run = |(run, record): (usize, &Judged)| {
        let mut comparisons = record.summary.duels[duel].comparisons.iter();
        let comparison = comparisons.find(|one| one.contender == contender)?;
        let figure = figure(comparison, quantity)?;
        let ratio = figure.value().filter(|ratio| *ratio > 0.0)?;
        Some(HistoryPoint {
            run,
            ratio,
            figure: figure.clone(),
        })
    };
    kept.iter().enumerate().filter_map(of_run).collect()
}

fn figure(comparison: &Comparison, quantity: Option<Quantity>) -> Option<&Figure> {
    if comparison.verdict == Verdict::Void {
        return None;
    }
    let Some(quantity) = quantity else {
        return Some(&comparison.ratio);
    };
    let mut quantities = comparison.quantities.iter();
    quantities
        .find(|one| one.quantity == quantity)
        .map(|one| &one.ratio)
}

fn judge(
    contender: &str,
    level: &str,
    points: Vec<HistoryPoint>,
    question: &Question,
) -> Result<HistorySeries, StatsError> {
    let logs: Vec<f64> = points.iter().map(|point| point.ratio.ln()).collect();
    let magnitude = question.magnitude.ln_1p();
    let seed = named_seed(0, &format!("history/{level}/{contender}"));
    let history = find_changes(&logs, &HistoryRule::offline(magnitude, seed))?;
    let change = |found: &ChangePoint, offset: usize| HistoryChange {
        run: points[found.at + offset].run,
        earliest_run: points[found.between.0 + offset].run,
        latest_run: points[found.between.1 + offset].run,
        factor: found.size.value.exp(),
        low: found.size.low.exp(),
        high: found.size.high.exp(),
        p_value: found.p_value,
    };
    // What changed longer ago was told then; the newest runs are held against what came after it.
    let since = history
        .changes
        .iter()
        .map(|found| found.at)
        .rfind(|at| at + ALARM_RUNS <= logs.len())
        .unwrap_or(0);
    let alarm = raise_alarm(&logs[since..], &HistoryRule::alarm(magnitude, seed))?
        .filter(|found| since + found.at + ALARM_RUNS >= logs.len());
    let is_worse = |found: &ChangePoint| match question.quantity {
        None => found.size.value < 0.0,
        Some(_) => found.size.value > 0.0,
    };
    let note = match (logs.len() < 2 * SIDE_MIN, history.is_autocorrelated) {
        (true, _) => Some(format!(
            "{} with a ratio; detecting a change needs at least {}",
            counts::things(logs.len() as u64, "run"),
            2 * SIDE_MIN
        )),
        (false, true) => Some(
            "neighbouring runs are correlated beyond the changes, so more of these may be chance than the error probability states"
                .to_owned(),
        ),
        (false, false) => None,
    };
    Ok(HistorySeries {
        contender: contender.to_owned(),
        level: level.to_owned(),
        changes: history
            .changes
            .iter()
            .map(|found| change(found, 0))
            .collect(),
        alarm: alarm.as_ref().map(|found| change(found, since)),
        is_alarm_for_the_worse: alarm.as_ref().is_some_and(is_worse),
        points,
        note,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    /// Records of one experiment, a day apart, with the given ratios.
    fn records(ratios: impl IntoIterator<Item = f64>) -> Vec<Judged> {
        let scenario = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        };
        let (summary, _) = summarise(&scenario.record());
        let days = ratios.into_iter().enumerate().map(|(day, ratio)| {
            let mut summary = summary.clone();
            summary.created = format!("2026-{:02}-{:02}T03:00:00Z", 1 + day / 28, 1 + day % 28);
            // A scatter of half a percent that repeats without a trend.
            let ratio = ratio * (1.0 + 0.001 * ((day * 7 % 11) as f64 - 5.0));
            if let Figure::Estimated {
                value, low, high, ..
            } = &mut summary.duels[0].comparisons[0].ratio
            {
                (*value, *low, *high) = (ratio, ratio * 0.99, Some(ratio * 1.01));
            }
            Judged {
                place: format!("results/{day}"),
                summary,
            }
        });
        days.collect()
    }

    const QUESTION: Question = Question {
        quantity: None,
        magnitude: 0.01,
    };

    #[test]
    fn a_regression_is_found_with_its_place_and_size_and_raises_an_alarm() {
        let ratios = (0..30).map(|day| if day < 23 { 1.0 } else { 0.95 });
        let mut given = records(ratios);
        given.reverse();
        let history = follow(given, &QUESTION).unwrap();
        let series = &history.series[0];
        assert_eq!(series.points.len(), 30);
        assert_eq!(series.changes.len(), 1);
        let change = series.changes[0];
        assert!(change.run.abs_diff(23) <= 1, "{change:?}");
        assert!(change.low < 0.95 && 0.95 < change.high, "{change:?}");
        assert!(series.is_alarm_for_the_worse, "{:?}", series.alarm);
    }

    #[test]
    fn an_old_change_and_one_for_the_better_are_told_without_alarm() {
        let old = follow(
            records((0..40).map(|day| if day < 15 { 1.0 } else { 0.95 })),
            &QUESTION,
        );
        let old = &old.unwrap().series[0];
        assert_eq!((old.changes.len(), old.alarm), (1, None));
        let better = follow(
            records((0..30).map(|day| if day < 23 { 1.0 } else { 1.06 })),
            &QUESTION,
        );
        let better = &better.unwrap().series[0];
        assert!(better.alarm.is_some() && !better.is_alarm_for_the_worse);
    }

    #[test]
    fn a_run_counts_once_however_many_copies_there_are() {
        let mut given = records([1.0, 1.0, 1.0]);
        let copy_of = |record: &Judged, place: &str| Judged {
            place: place.to_owned(),
            ..record.clone()
        };
        given.push(copy_of(&given[1], "archive/1"));
        // The first was resumed after it was copied.
        let mut longer = copy_of(&given[0], "results/0-longer");
        longer.summary.run.ended_ms = longer.summary.run.ended_ms.map(|at_ms| at_ms + 1);
        given.push(longer);
        let history = follow(given, &QUESTION).unwrap();
        let places: Vec<&str> = history.runs.iter().map(|run| run.place.as_str()).collect();
        assert_eq!(places, ["results/0-longer", "archive/1", "results/2"]);
        assert_eq!(history.series[0].points.len(), 3);
        assert_eq!(
            history.left_out,
            [
                "results/0: the same run as results/0-longer, which counts once",
                "results/1: the same run as archive/1, which counts once"
            ]
        );
    }

    #[test]
    fn few_runs_and_no_runs_are_said_to_be_few() {
        let few = follow(records([1.0, 0.5, 1.0]), &QUESTION).unwrap();
        assert!(few.series[0].note.as_ref().unwrap().starts_with("3 runs"));
        assert_eq!(few.series[0].alarm, None);
        assert_eq!(follow(Vec::new(), &QUESTION).unwrap().series, []);
    }

    #[test]
    fn records_of_another_experiment_or_machine_are_left_out_with_the_reason() {
        let mut given = records([1.0; 12]);
        given[3].summary.workload.name = "oltp-point-select".to_owned();
        given[5].summary.host.cpus = Some(64);
        let history = follow(given, &QUESTION).unwrap();
        assert_eq!(history.runs.len(), 10);
        assert_eq!(
            history.left_out,
            [
                "results/3: it has another workload",
                "results/5: it ran on another machine"
            ]
        );
    }
}
