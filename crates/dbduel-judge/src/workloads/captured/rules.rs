//! Rules about captured statements: whether writes of a replay do what they did when they were captured, and how much of a trace
//! was run.

use std::collections::BTreeSet;

use dbduel_audit::Finding;
use dbduel_record::captured::{NAME, is_trace};
use dbduel_record::event::{Event, Severity};
use dbduel_text::{counts, percent, shortened};

use super::{StatementCell, StatementFigures, StatementLevel};
use crate::rules::Rule;
use crate::rules::run::RunEvidence;
use crate::rules::table::run;

#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    run("captured.writes-unlike-log", "A write that finds nothing to change, or a key that exists, does less work than when it was captured.", unlike_log),
    run("captured.writes-differ", "Contenders whose writes find other rows do different work.", differ),
    run("captured.quanta", "A verdict on a trace is about the quanta that were run, which may be a part of it.", quanta),
];

/// Difference of shares from which replay and capture are said to differ, and from which that weighs.
const UNLIKE_LOG: [f64; 2] = [0.05, 0.2];
/// The same for two contenders.
const DIFFERENT: [f64; 2] = [0.01, 0.05];
/// Share of the time, percent, from which the writes of a contender can weigh.
const TIME_PERCENT_MIN: f64 = 5.0;
/// Standard errors by which chance may move the difference of two shares: statements of a transaction go together.
const CHANCE: f64 = 4.0;
/// Characters of a class's text in a finding.
const TEXT_CHARS: usize = 80;

const REMEDY: &str = "Compare the shares by class in the table of classes of statements; where they matter, capture for a longer time, so that \
                      less is drawn again, or use `mode = \"trace\"`, which runs all transactions in their order.";

/// The writes of one contender: those that changed no row, or whose key exists, among all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Writes {
    idle: f64,
    all: f64,
    /// Share of the contender's time, percent.
    time_percent: f64,
}

impl Writes {
    fn of_cell(cell: &StatementCell) -> Self {
        let all = (cell.ok + cell.failed) as f64;
        let percent =
            cell.unchanged_percent.unwrap_or(0.0) + cell.key_exists_percent.unwrap_or(0.0);
        Writes {
            idle: all * percent / 100.0,
            all,
            time_percent: cell.time_share_percent,
        }
    }

    fn plus(self, other: Writes) -> Self {
        Writes {
            idle: self.idle + other.idle,
            all: self.all + other.all,
            time_percent: self.time_percent + other.time_percent,
        }
    }

    fn share(&self) -> f64 {
        self.idle / self.all.max(1.0)
    }

    /// By how much two shares differ; 0 where chance may be the cause.
    fn difference(&self, other: &Writes) -> f64 {
        let difference = (self.share() - other.share()).abs();
        let both = self.plus(*other).share();
        let error =
            (both * (1.0 - both) * (1.0 / self.all.max(1.0) + 1.0 / other.all.max(1.0))).sqrt();
        match difference > CHANCE * error {
            true => difference,
            false => 0.0,
        }
    }
}

/// The weight of a difference of shares: `None` below the first of the limits.
fn severity(difference: f64, limits: [f64; 2], time_percent: f64) -> Option<Severity> {
    let [note, doubt] = limits;
    match difference {
        below if below < note => None,
        large if large >= doubt && time_percent >= TIME_PERCENT_MIN => Some(Severity::Doubt),
        _ => Some(Severity::Note),
    }
}

/// The writing classes of a level, with the cell of one contender.
fn writes(
    level: &StatementLevel,
    who: usize,
) -> impl Iterator<Item = (&StatementFigures, &StatementCell)> {
    let classes = level.classes.iter().filter(|class| class.writes);
    classes.filter_map(move |class| Some((class, class.contenders.get(who)?)))
}

fn all_writes(level: &StatementLevel, who: usize) -> Writes {
    let cells = writes(level, who).map(|(_, cell)| Writes::of_cell(cell));
    cells.fold(Writes::default(), Writes::plus)
}

/// Contenders whose writes changed no row, or found a key that exists, at another rate than when they were captured.
fn unlike_log(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for level in &run.judged.statement_classes {
        let label = &run.judged.duels[level.level].label;
        for (who, facts) in run.judged.contenders.iter().enumerate() {
            let (mut replayed, mut captured) = (Writes::default(), Writes::default());
            let mut most: Option<(f64, &str)> = None;
            for (class, cell) in writes(level, who) {
                // Classes whose log does not say what they changed cannot be compared.
                let Some(unchanged_percent) = class.captured.unchanged_percent else {
                    continue;
                };
                let own = Writes::of_cell(cell);
                let all = class.captured.statements as f64;
                replayed = replayed.plus(own);
                captured = captured.plus(Writes {
                    idle: all * unchanged_percent / 100.0,
                    all,
                    time_percent: 0.0,
                });
                let more = own.idle - own.all * unchanged_percent / 100.0;
                if most.is_none_or(|(largest, _)| more.abs() > largest) {
                    most = Some((more.abs(), class.text.as_str()));
                }
            }
            let difference = replayed.difference(&captured);
            let Some(severity) = severity(difference, UNLIKE_LOG, replayed.time_percent) else {
                continue;
            };
            let class = most.map_or_else(String::new, |(_, text)| {
                format!(
                    "; most of the difference is in `{}`",
                    shortened(text, TEXT_CHARS)
                )
            });
            let name = facts.name.as_str();
            let claim = format!(
                "At {label} {} of {} of `{name}` changed no row or found a key that exists, against {} of those captured; they hold \
                 {} of the time{class}.",
                percent::of(replayed.share()),
                counts::things(replayed.all as u64, "write"),
                percent::of(captured.share()),
                percent::of(replayed.time_percent / 100.0),
            );
            found.push(Finding::new(severity, &[name], claim, REMEDY).at(level.level));
        }
    }
    found
}

/// Contenders whose writes changed no row, or found a key that exists, at another rate than those of the baseline.
fn differ(run: &RunEvidence<'_>) -> Vec<Finding> {
    let baseline = run.evidence.plan().baseline;
    let mut found = Vec::new();
    for level in &run.judged.statement_classes {
        let label = &run.judged.duels[level.level].label;
        let reference = all_writes(level, baseline);
        for (who, facts) in run.judged.contenders.iter().enumerate() {
            let own = all_writes(level, who);
            let time_percent = own.time_percent.max(reference.time_percent);
            let difference = own.difference(&reference);
            let Some(severity) = severity(difference, DIFFERENT, time_percent) else {
                continue;
            };
            let name = facts.name.as_str();
            let claim = format!(
                "At {label} {} of the writes of `{name}` changed no row or found a key that exists, against {} of `{}`.",
                percent::of(own.share()),
                percent::of(reference.share()),
                run.judged.baseline,
            );
            found.push(Finding::new(severity, &[name], claim, REMEDY).at(level.level));
        }
    }
    found
}

fn quanta(run: &RunEvidence<'_>) -> Vec<Finding> {
    let workload = &run.evidence.plan().workload;
    if workload.name != NAME || !is_trace(&workload.parameters) {
        return Vec::new();
    }
    let (mut passes, mut slices, mut is_new) = (0_u64, 0_u64, false);
    let mut different = BTreeSet::new();
    for event in &run.evidence.record.events {
        is_new |= matches!(
            &event.what,
            Event::Started { .. } | Event::EpochStarted { .. }
        );
        if let Event::SliceStarted {
            quantum: Some(quantum),
            ..
        } = &event.what
        {
            passes += u64::from(std::mem::take(&mut is_new));
            slices += 1;
            different.insert(*quantum);
        }
    }
    let passes = match passes {
        1 => "one pass".to_owned(),
        _ => format!("{} passes", counts::of(passes)),
    };
    let claim = format!(
        "{} ran {} different quanta of the trace, in {passes}, each on restored tables after a warm-up with the first quantum.",
        counts::things(slices, "slice"),
        counts::of(different.len() as u64),
    );
    vec![Finding::new(Severity::Note, &[], claim, "Nothing to do.")]
}
