//! The numbers of a bisection as words, the same in every format.

use dbduel_judge::records::bisect::{
    BisectSummary, SearchedPart, SearchedPlace, StepAnswer, SummarisedStep,
};
use dbduel_record::bisect::{Revision, RevisionSource, StepRole};
use serde::Serialize;

use crate::view::table::{Cell, Column, NUMBER, Row, STACK, TEXT, Table};
use crate::words::{self, RatioUnit};

/// Heading of the intervals, which the page has below their values.
const INTERVAL: &str = "interval";
/// Headings of the table of steps.
const STEP_HEADS: [(&str, &str); 9] = [
    (TEXT, "step"),
    (TEXT, "revision"),
    (TEXT, "answer"),
    (NUMBER, "ratio to good"),
    (TEXT, INTERVAL),
    (NUMBER, "ratio to bad"),
    (TEXT, INTERVAL),
    (NUMBER, "blocks"),
    (NUMBER, "seconds"),
];

/// Content of the report on a bisection, common to all formats.
#[derive(Debug, Clone, Serialize)]
pub struct BisectView {
    pub question: String,
    pub when: String,
    /// Each found change in a sentence, or why there is none.
    pub headlines: Vec<String>,
    /// Progress, meaning of the probability, and what else may differ between revisions.
    pub notes: Vec<String>,
    pub parts: Vec<PartView>,
    /// Every step in running order.
    pub steps: Table,
}

/// A part of the series.
#[derive(Debug, Clone, Serialize)]
pub struct PartView {
    pub title: String,
    pub sentence: String,
    /// Directory of the contest between the revisions before and after the change; empty without one.
    pub measured_by: String,
}

impl BisectView {
    pub fn of(summary: &BisectSummary) -> Self {
        Self {
            question: summary.question.clone(),
            when: summary.created.clone(),
            headlines: headlines(summary),
            notes: notes(summary),
            parts: summary
                .parts
                .iter()
                .filter(|part| !part.steps.is_empty())
                .map(|part| part_view(summary, part))
                .collect(),
            steps: steps(summary),
        }
    }
}

/// A revision with what is known of it: `1a2b3c4 "Subject" of 2026-10-04`.
fn described(revision: &Revision) -> String {
    match &revision.commit {
        None => revision.name.clone(),
        Some(commit) => {
            let date = commit.author_date.split('T').next().unwrap_or_default();
            format!("{} \"{}\" of {date}", revision.name, commit.subject)
        }
    }
}

/// One sentence per found change, the largest part first; without one the state of the search.
fn headlines(summary: &BisectSummary) -> Vec<String> {
    let found = summary.parts.iter().filter_map(|part| {
        let place = part.place.as_ref().filter(|place| place.is_found)?;
        Some(change(summary, part, place))
    });
    let found: Vec<String> = found.collect();
    if !found.is_empty() {
        return found;
    }
    summary
        .parts
        .first()
        .map(|part| vec![unfound(summary, part)])
        .unwrap_or_default()
}

fn change(summary: &BisectSummary, part: &SearchedPart, place: &SearchedPlace) -> String {
    let [before, after] = [place.after, place.up_to].map(|one| &summary.revisions[one]);
    let probability = words::share(place.probability);
    let size = words::ratio_value(&place.ratio).map_or_else(
        || "size not measured yet".to_owned(),
        |value| match words::ratio_interval(&place.ratio).as_str() {
            "" => value,
            interval => format!("{value} ({interval})"),
        },
    );
    let inside = place.up_to - place.after - 1;
    match inside {
        0 => format!(
            "Found with a probability of {probability}: {} changed throughput against {}: {size}.",
            described(after),
            before.name
        ),
        _ => {
            let why = match part
                .unanswered
                .iter()
                .any(|&one| place.after < one && one < place.up_to)
            {
                true => "not answered or not testable",
                false => "not testable",
            };
            format!(
                "Found with a probability of {probability}: throughput changed between {} and {}: {size}. The {} between them: {why}.",
                described(before),
                described(after),
                words::things(inside as u64, "revision"),
            )
        }
    }
}

fn unfound(summary: &BisectSummary, part: &SearchedPart) -> String {
    let [good, bad] = [part.good, part.bad].map(|one| &summary.revisions[one].name);
    let ratio = part
        .steps
        .first()
        .and_then(|&step| words::ratio_value(&summary.steps[step].ratio))
        .map_or_else(String::new, |value| format!(" ({value})"));
    match part.ends {
        None => match part.steps.last().map(|&step| &summary.steps[step]) {
            // A step of `git bisect run`, which takes the ends as given.
            Some(step) if step.answer.is_some() => {
                format!("{}: {}.", tested(summary, step), answer(step))
            }
            Some(_) | None => format!("{good} and {bad} are not compared yet."),
        },
        Some(StepAnswer::Differ) if part.restarts.is_some_and(|known| known.is_too_large) => {
            format!(
                "No change found: restarts of the servers change their throughput by nearly as much as {bad} and {good} differ, so a \
             contest cannot tell which of them a revision is like. Measure more restarts in each contest: more `epochs` in \
             [schedule], such as 8, and a larger `budget`."
            )
        }
        Some(StepAnswer::Differ) => match &part.place {
            Some(place) => {
                let [after, up_to] =
                    [place.after, place.up_to].map(|one| &summary.revisions[one].name);
                format!(
                    "{bad} differs from {good}{ratio}. The change is not found yet; most probable so far: between {after} and \
                     {up_to}, {}.",
                    words::share(place.probability)
                )
            }
            None => format!("{bad} differs from {good}{ratio}. The change is not found yet."),
        },
        Some(StepAnswer::Same) => format!(
            "No search: {good} and {bad} do not differ by more than the horizon of {}{ratio}.",
            words::share(summary.horizon)
        ),
        Some(StepAnswer::Void) => format!(
            "No search: the contest of {good} and {bad} is void: {}",
            part.steps
                .first()
                .and_then(|&step| summary.steps[step].because.clone())
                .unwrap_or_else(|| "see its report".to_owned())
        ),
        Some(
            StepAnswer::Undecided
            | StepAnswer::LikeGood
            | StepAnswer::LikeBad
            | StepAnswer::NeitherNearerGood
            | StepAnswer::NeitherNearerBad
            | StepAnswer::Unsure
            | StepAnswer::Skipped,
        ) => format!(
            "No search: the budget ended before {good} and {bad} were decided{ratio}. A larger `budget` or `horizon` may \
             decide them."
        ),
    }
}

/// Below it, the probability that restarts make an answer wrong is not worth its digits.
const ERROR_SHOWN_MIN: f64 = 1e-4;

/// What restarts did to the ratio of a part's ends, and to the answers.
fn restarts(summary: &BisectSummary, part: &SearchedPart) -> Option<String> {
    let known = part.restarts?;
    let [good, bad] = [part.good, part.bad].map(|one| &summary.revisions[one].name);
    let unit = RatioUnit::of_values([known.ratio]);
    let effect = match known.deviation > 0.0 {
        true => format!(
            "restarts change it with a standard deviation of {}, and make an answer wrong with a probability of {}{}",
            unit.deviation(known.deviation),
            match known.error < ERROR_SHOWN_MIN {
                true => "less than ",
                false => "",
            },
            words::share(known.error.max(ERROR_SHOWN_MIN))
        ),
        false => "no effect of restarts beyond the noise of blocks".to_owned(),
    };
    Some(format!(
        "{bad} against {good}, with the servers restarted for each contest: {} on average; {effect} ({} contests)",
        unit.write(known.ratio),
        known.contests
    ))
}

fn notes(summary: &BisectSummary) -> Vec<String> {
    let seconds: f64 = summary.steps.iter().map(|step| step.seconds).sum();
    let mut notes = vec![format!(
        "{} revisions, {}, {}{}",
        summary.revisions.len(),
        words::things(summary.steps.len() as u64, "step"),
        words::duration(seconds),
        match summary.is_over {
            true => "",
            false => "; not finished",
        }
    )];
    notes.push(format!(
        "the place of a change is wrong with a probability of at most {}, if its part has exactly one and the effect of restarts is as \
         estimated; ratios are of throughput, within blocks",
        words::share(1.0 - summary.confidence)
    ));
    if let Some(cell) = &summary.cell {
        notes.push(format!("one workload of a suite: {cell}"));
    }
    match &summary.source {
        RevisionSource::Versions => notes.push(
            "builds of different versions may differ in packager, compiler and flags; such a difference is part of what is found"
                .to_owned(),
        ),
        RevisionSource::Repository(repository) => {
            notes.push(format!(
                "every revision built by the same command, `{}`",
                repository.build
            ));
            if repository.builds_ahead {
                notes.push(
                    "builds ran beside the contests (`--jobs 2`): noise for all contenders of a block alike"
                        .to_owned(),
                );
            }
            if repository.merges > 0 {
                notes.push(format!(
                    "first parents only: {} among the revisions stand for all that they merged",
                    words::things(repository.merges as u64, "merge")
                ));
            }
        }
    }
    let neither = summary.steps.iter().filter(|step| {
        matches!(
            step.answer,
            Some(StepAnswer::NeitherNearerGood | StepAnswer::NeitherNearerBad)
        )
    });
    let neither: Vec<&str> = neither
        .filter_map(|step| step.revisions.last())
        .map(|&one| summary.revisions[one].name.as_str())
        .collect();
    if !neither.is_empty() {
        notes.push(format!(
            "differs from both ends, so there is more than one change: {}",
            words::joined(&neither)
        ));
    }
    notes.extend(
        summary
            .parts
            .iter()
            .filter_map(|part| restarts(summary, part)),
    );
    notes
}

fn part_view(summary: &BisectSummary, part: &SearchedPart) -> PartView {
    let [good, bad] = [part.good, part.bad].map(|one| &summary.revisions[one].name);
    let place = part.place.as_ref().filter(|place| place.is_found);
    let measured_by = place.and_then(|place| place.measured_by);
    PartView {
        title: format!("{good} to {bad}"),
        sentence: match place {
            Some(place) => change(summary, part, place),
            None => unfound(summary, part),
        },
        measured_by: measured_by.map_or_else(String::new, |step| summary.steps[step].name.clone()),
    }
}

fn steps(summary: &BisectSummary) -> Table {
    let figures = summary.steps.iter();
    let figures = figures.flat_map(|step| [Some(&step.ratio), step.ratio_to_bad.as_ref()]);
    let unit = RatioUnit::of(figures.flatten());
    let rows = summary.steps.iter().map(|step| row(summary, step, unit));
    let columns = STEP_HEADS.map(|(class, head)| Column {
        is_below: head == INTERVAL,
        ..Column::from((class, head))
    });
    Table {
        class: STACK,
        ..Table::new(columns.to_vec(), rows)
    }
}

fn row(summary: &BisectSummary, step: &SummarisedStep, unit: RatioUnit) -> Row {
    let has_record = step.answer != Some(StepAnswer::Skipped) || step.blocks > 0;
    let first = Cell {
        link: match has_record {
            true => format!("steps/{}/report.html", step.name),
            false => String::new(),
        },
        ..Cell::from(&step.name)
    };
    let why = step.because.clone().unwrap_or_default();
    let answer = Cell {
        note: match step.answer {
            Some(StepAnswer::Skipped | StepAnswer::Void | StepAnswer::Unsure) => why,
            Some(_) | None => String::new(),
        },
        ..Cell::from(answer(step))
    };
    let to_bad = step.ratio_to_bad.as_ref();
    let figures = [
        unit.value(&step.ratio),
        unit.short_interval(&step.ratio),
        to_bad.map_or_else(String::new, |ratio| unit.value(ratio)),
        to_bad.map_or_else(String::new, |ratio| unit.short_interval(ratio)),
        step.blocks.to_string(),
        format!("{:.0}", step.seconds),
    ];
    let figures = figures.into_iter().zip(STEP_HEADS[3..].iter().copied());
    let figures = figures.map(|(value, (_, label))| Cell {
        label,
        ..Cell::from(value)
    });
    [first, Cell::from(tested(summary, step)), answer]
        .into_iter()
        .chain(figures)
        .collect()
}

/// The revision under test, or the pair.
fn tested(summary: &BisectSummary, step: &SummarisedStep) -> String {
    let name = |at: usize| {
        let revision = step.revisions.get(at);
        revision.map_or("", |&one| summary.revisions[one].name.as_str())
    };
    match step.role {
        StepRole::Ends | StepRole::Change => format!("{} against {}", name(1), name(0)),
        StepRole::Candidate => name(2).to_owned(),
    }
}

fn answer(step: &SummarisedStep) -> &'static str {
    match step.answer {
        None => "unfinished",
        Some(StepAnswer::Differ) => "they differ",
        Some(StepAnswer::Same) => "within the horizon",
        Some(StepAnswer::Undecided) => "undecided",
        Some(StepAnswer::Void) => "void",
        Some(StepAnswer::LikeGood) => "like the good one",
        Some(StepAnswer::LikeBad) => "like the bad one",
        Some(StepAnswer::NeitherNearerGood) => "like neither, nearer to the good one",
        Some(StepAnswer::NeitherNearerBad) => "like neither, nearer to the bad one",
        Some(StepAnswer::Unsure) => "no answer",
        Some(StepAnswer::Skipped) => "skipped",
    }
}
