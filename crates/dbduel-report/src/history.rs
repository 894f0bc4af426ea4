//! The history of an experiment as text: what changed and when, then every run.

use std::fmt::Write as _;

use dbduel_judge::records::history::{History, HistoryChange, HistorySeries};
use dbduel_judge::summary::Figure;

use super::interval_scale::IntervalScale;
use super::words::{self, RatioUnit};

/// Every series with its changes and its runs.
#[must_use]
pub fn history(history: &History) -> String {
    let mut text = String::new();
    for series in &history.series {
        let _ = writeln!(
            text,
            "{} at {}: {} against the baseline, {}",
            series.contender,
            series.level,
            history.quantity,
            words::things(series.points.len() as u64, "run")
        );
        for change in &series.changes {
            let _ = writeln!(text, "  changed  {}", described(history, change));
        }
        if series.changes.is_empty() {
            let _ = writeln!(text, "  no change found");
        }
        if let Some(alarm) = &series.alarm {
            let word = match series.is_alarm_for_the_worse {
                true => "ALARM  ",
                false => "better ",
            };
            let _ = writeln!(text, "  {word}  {}", described(history, alarm));
        }
        if let Some(note) = &series.note {
            let _ = writeln!(text, "  note     {note}");
        }
        runs(&mut text, history, series);
        text.push('\n');
    }
    for left_out in &history.left_out {
        let _ = writeln!(text, "left out: {left_out}");
    }
    text
}

fn described(history: &History, change: &HistoryChange) -> String {
    let run = |index: usize| history.runs[index].created.as_str();
    format!(
        "{} ({} to {}) at the run of {}, between {} and {}; p = {:.4}",
        words::ratio(change.factor),
        words::ratio(change.low),
        words::ratio(change.high),
        run(change.run),
        run(change.earliest_run),
        run(change.latest_run),
        change.p_value
    )
}

/// One line per run: its interval drawn on a common scale, and its ratio.
fn runs(text: &mut String, history: &History, series: &HistorySeries) {
    let scale = IntervalScale::of(series.points.iter().map(|point| point.ratio));
    let unit = RatioUnit::of(series.points.iter().map(|point| &point.figure));
    for point in &series.points {
        let starts = series.changes.iter().any(|change| change.run == point.run);
        let run = &history.runs[point.run];
        let _ = writeln!(
            text,
            "  {} {}{} {}  {}",
            run.created,
            if starts { '>' } else { ' ' },
            scale.line(&point.figure),
            ratio(&point.figure, unit),
            run.place
        );
    }
}

fn ratio(figure: &Figure, unit: RatioUnit) -> String {
    let value = unit.value(figure);
    match figure.interval() {
        Some(_) => format!("{value} ({})", unit.interval(figure)),
        None => format!("{value} (no interval)"),
    }
}
