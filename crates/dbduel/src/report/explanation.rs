//! The explanation in sentences and rows, the same in every format.
//!
//! Says how things moved together and by how much; a cause is never named, because paired blocks do not
//! show one.

use serde::Serialize;

use super::words;
use crate::judge::Summary;
use crate::judge::explain::{Cost, Division, Explanation, Latency, Moved, Part, Unit};
use crate::judge::summary::{Figure, Verdict};

/// Costs that are spoken of; the table has all of them.
const SPOKEN: usize = 7;
/// Parts of the latency that are spoken of.
const PARTS: usize = 3;

/// What must be read with every explanation.
pub const CAUTION: &str = "These quantities moved together with the difference; that does not show which of them \
     caused it. Changing one setting at a time does. The intervals of one explanation hold together.";

/// One explanation, ready to be laid out.
#[derive(Debug, Clone, Serialize)]
pub struct ExplanationView {
    /// Name of the load level.
    pub level: String,
    /// Name of the contender.
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// Name of the baseline.
    pub baseline: String,
    /// Sentences, the most telling first.
    pub sentences: Vec<String>,
    /// Where the time of a transaction went; empty when it could not be divided.
    pub parts: Vec<RowView>,
    /// Costs by group.
    pub costs: Vec<RowView>,
}

/// One row of a table of an explanation.
#[derive(Debug, Clone, Serialize)]
pub struct RowView {
    /// Heading of the group that begins with this row, or empty.
    pub group: &'static str,
    /// What it is.
    pub name: String,
    /// Of the baseline.
    pub baseline: String,
    /// Of the contender.
    pub contender: String,
    /// Change with its interval.
    pub change: String,
    /// `less`, `more`, `same`, `unclear` or `unknown`.
    pub moved: &'static str,
}

/// The explanations of a summary that have something to show.
#[must_use]
pub fn views(summary: &Summary) -> Vec<ExplanationView> {
    summary
        .explanations
        .iter()
        .filter(|explanation| is_telling(explanation))
        .map(|explanation| view(summary, explanation))
        .collect()
}

/// True when there is something to show: something moved, or the latency could be divided.
#[must_use]
pub fn is_telling(explanation: &Explanation) -> bool {
    !explanation.moved.is_empty() || matches!(explanation.latency, Latency::Divided(_))
}

/// The sentences of one explanation.
#[must_use]
pub fn sentences(summary: &Summary, explanation: &Explanation) -> Vec<String> {
    let mut sentences = Vec::new();
    let (contender, baseline) = (&explanation.contender, &summary.baseline);
    if let Some(sentence) = restraint(summary, explanation) {
        sentences.push(sentence);
    }
    match &explanation.latency {
        Latency::Divided(division) => sentences.push(of_latency(division, contender, baseline)),
        Latency::NotDivided { why } => {
            sentences.push(format!(
                "The time of a transaction could not be divided: {why}."
            ));
        }
    }
    let moved = explanation.moved.iter().take(SPOKEN);
    sentences.extend(moved.map(|&index| of_cost(&explanation.costs[index], contender, baseline)));
    let named = |indices: &[usize]| -> Vec<String> {
        indices
            .iter()
            .map(|&index| {
                let cost = &explanation.costs[index];
                format!("{} ({})", cost.name, change(cost))
            })
            .collect()
    };
    let (same, unclear) = (named(&explanation.same), named(&explanation.unclear));
    if !same.is_empty() {
        let within = words::share(summary.rule.horizon);
        let what = words::joined_texts(&same);
        sentences.push(format!("The same within {within} per transaction: {what}."));
    }
    if !unclear.is_empty() {
        let what = words::joined_texts(&unclear);
        sentences.push(format!("Not told apart by these blocks: {what}."));
    }
    sentences
}

/// A word of restraint where throughput itself does not differ.
fn restraint(summary: &Summary, explanation: &Explanation) -> Option<String> {
    let duel = summary
        .duels
        .iter()
        .find(|duel| duel.level == explanation.level)?;
    let comparison = duel
        .comparisons
        .iter()
        .find(|one| one.contender == explanation.contender)?;
    let what = match comparison.verdict {
        Verdict::Faster | Verdict::Slower => return None,
        Verdict::Equivalent => "are equivalent in throughput",
        Verdict::Undecided => "are not told apart in throughput",
        Verdict::Void => "have no valid verdict here",
    };
    Some(format!(
        "The two {what}; what follows says how they differ in what they use, not why one would be faster."
    ))
}

fn of_latency(division: &Division, contender: &str, baseline: &str) -> String {
    let value = |figure: &Figure| words::value(figure, words::latency);
    let whole = format!(
        "A transaction takes {} with `{contender}` and {} with `{baseline}`",
        value(&division.contender_us),
        value(&division.baseline_us)
    );
    let mut certain: Vec<&Part> = division
        .parts
        .iter()
        .filter(|part| is_certain(&part.difference_us))
        .collect();
    let size = |part: &Part| part.difference_us.value().unwrap_or(0.0);
    certain.sort_by(|one, other| size(other).abs().total_cmp(&size(one).abs()));
    let listed = |is_wanted: fn(f64) -> bool| -> Vec<String> {
        certain
            .iter()
            .filter(|part| is_wanted(size(part)))
            .take(PARTS)
            .map(|part| format!("{} by {}", part.doing.name(), amount(&part.difference_us)))
            .collect()
    };
    let (shorter, longer) = (listed(|us| us < 0.0), listed(|us| us > 0.0));
    let mut clauses = Vec::new();
    if !shorter.is_empty() {
        clauses.push(format!("shorter: {}", shorter.join(", ")));
    }
    if !longer.is_empty() {
        clauses.push(format!("longer: {}", longer.join(", ")));
    }
    if clauses.is_empty() {
        return format!("{whole}; no part of it is certainly shorter or longer.");
    }
    format!("{whole}; {}.", clauses.join("; "))
}

fn is_certain(difference: &Figure) -> bool {
    difference
        .interval()
        .is_some_and(|(low, high)| high < 0.0 || low > 0.0)
}

/// The size of a difference with its interval, in one unit: `450 µs [300, 600]`.
fn amount(difference: &Figure) -> String {
    let value = difference.value().unwrap_or(0.0).abs();
    let (factor, unit) = words::latency_unit(value);
    let text = |us: f64| words::number(us.abs() / factor);
    match difference.interval() {
        Some((low, high)) => {
            let (near, far) = if value > 0.0 && high <= 0.0 {
                (high, low)
            } else {
                (low, high)
            };
            format!("{} {unit} [{}, {}]", text(value), text(near), text(far))
        }
        None => format!("{} {unit}", text(value)),
    }
}

/// Verb, object, and whether it can be counted, for the resources that are spoken of most.
const SAYINGS: &[(&str, &str, &str, bool)] = &[
    ("server-cpu", "uses", "processor time in the server", false),
    ("server-run-queue", "spends", "time in the run queue", false),
    ("server-read", "reads", "bytes from the device", true),
    ("server-written", "writes", "bytes to the device", true),
    ("page-misses", "misses", "pages in the buffer pool", true),
    ("pages-flushed", "flushes", "pages", true),
    (
        "pages-flushed-lru",
        "flushes",
        "pages from the LRU list",
        true,
    ),
    (
        "pages-flushed-sync",
        "flushes",
        "pages because the log was full",
        true,
    ),
    (
        "doublewrite-pages",
        "writes",
        "pages to the doublewrite buffer",
        true,
    ),
    (
        "doublewrite-batches",
        "writes",
        "batches of the doublewrite buffer",
        true,
    ),
    ("redo", "writes", "bytes of redo", true),
    ("redo-syncs", "makes", "syncs of the redo log", true),
    ("data-syncs", "makes", "syncs of the engine's files", true),
    ("binary-log", "writes", "bytes of binary log", true),
    (
        "page-requests",
        "makes",
        "requests to the buffer pool",
        true,
    ),
    (
        "voluntary-switches",
        "makes",
        "voluntary context switches",
        true,
    ),
    (
        "involuntary-switches",
        "suffers",
        "involuntary context switches",
        true,
    ),
    ("row-lock-time", "spends", "time in row lock waits", false),
    ("row-lock-waits", "makes", "waits for row locks", true),
    ("server-read-calls", "makes", "read calls", true),
    ("server-write-calls", "makes", "write calls", true),
    (
        "client-cpu",
        "takes",
        "processor time of the load process",
        false,
    ),
    (
        "adaptive-hash-hits",
        "answers",
        "lookups by the adaptive hash index",
        true,
    ),
];

fn of_cost(cost: &Cost, contender: &str, baseline: &str) -> String {
    let saying = SAYINGS.iter().find(|(id, ..)| *id == cost.resource);
    let is_countable = saying.map_or(cost.unit != Unit::Microseconds, |saying| saying.3);
    let (verb, object) =
        saying.map_or(("shows", cost.name.as_str()), |saying| (saying.1, saying.2));
    let per = if cost.is_level {
        ""
    } else {
        " per transaction"
    };
    let (ours, theirs) = (
        value(cost.unit, &cost.contender),
        value(cost.unit, &cost.baseline),
    );
    let how_much = match (cost.moved, is_countable) {
        (Moved::Less, true) => "fewer",
        (Moved::Less, false) => "less",
        _ => "more",
    };
    let Some(ratio) = cost.ratio.value() else {
        let (contender_value, baseline_value) = (cost.contender.value(), cost.baseline.value());
        return match (contender_value, baseline_value) {
            (Some(0.0), _) => {
                format!("`{contender}` {verb} no {object}{per}; `{baseline}` {theirs}.")
            }
            (_, Some(0.0)) => {
                format!("`{contender}` {verb} {ours} {object}{per}; `{baseline}` none.")
            }
            _ => format!(
                "`{contender}` {verb} {how_much} {object}{per}: {ours} against {theirs}, none in some blocks."
            ),
        };
    };
    if cost.is_level {
        return format!(
            "The {} of `{contender}` stands at {ours}, that of `{baseline}` at {theirs} ({}).",
            cost.name,
            change(cost)
        );
    }
    let size = if (0.1..2.0).contains(&ratio) {
        // Whole percents, unless all of the interval would become the same number.
        let is_narrow = cost
            .ratio
            .interval()
            .is_some_and(|(low, high)| high - low < 0.02);
        let digits = usize::from(is_narrow);
        let percent = |ratio: f64| format!("{:.digits$}", 100.0 * (ratio - 1.0).abs());
        let range = cost.ratio.interval().map_or(String::new(), |(low, high)| {
            let (near, far) = if ratio < 1.0 {
                (high, low)
            } else {
                (low, high)
            };
            format!(" [{}, {}]", percent(near), percent(far))
        });
        format!("{} %{range} {how_much} {object}", percent(ratio))
    } else {
        let range = cost.ratio.interval().map_or(String::new(), |(low, high)| {
            format!(" [{}, {}]", words::number(low), words::number(high))
        });
        format!("{} times{range} the {object}", words::number(ratio))
    };
    format!("`{contender}` {verb} {size}{per}: {ours} against {theirs}.")
}

fn value(unit: Unit, figure: &Figure) -> String {
    words::value(figure, |amount| match unit {
        Unit::Microseconds => words::latency(amount),
        Unit::Bytes => words::bytes_of(amount),
        Unit::Count => words::number(amount),
    })
}

/// The change of a cost with its interval: `−47 % [−50 %, −44 %]`.
#[must_use]
pub fn change(cost: &Cost) -> String {
    let Some(text) = words::ratio_value(&cost.ratio) else {
        return match cost.moved {
            Moved::Less => "less".to_owned(),
            Moved::More => "more".to_owned(),
            _ => "–".to_owned(),
        };
    };
    match words::ratio_interval(&cost.ratio) {
        interval if interval.is_empty() => text,
        interval => format!("{text} [{interval}]"),
    }
}

fn view(summary: &Summary, explanation: &Explanation) -> ExplanationView {
    let level = summary
        .duels
        .iter()
        .find(|duel| duel.level == explanation.level)
        .map_or_else(String::new, |duel| duel.label.clone());
    let parts = match &explanation.latency {
        Latency::Divided(division) => rows_of(division),
        Latency::NotDivided { .. } => Vec::new(),
    };
    let mut last = "";
    let costs = explanation.costs.iter().map(|cost| {
        let name = cost.group.name();
        let group = if name == last { "" } else { name };
        last = name;
        RowView {
            group,
            name: if cost.is_level {
                format!("{} (level)", cost.name)
            } else {
                cost.name.clone()
            },
            baseline: value(cost.unit, &cost.baseline),
            contender: value(cost.unit, &cost.contender),
            change: change(cost),
            moved: moved(cost.moved),
        }
    });
    ExplanationView {
        level,
        contender: explanation.contender.clone(),
        number: summary
            .contenders
            .iter()
            .position(|facts| facts.name == explanation.contender)
            .unwrap_or(0),
        baseline: summary.baseline.clone(),
        sentences: sentences(summary, explanation),
        parts,
        costs: costs.collect(),
    }
}

fn rows_of(division: &Division) -> Vec<RowView> {
    let row = |name: &str, figures: [&Figure; 3]| {
        let [baseline, contender, difference] = figures;
        let sign = match difference.value() {
            Some(value) if value < 0.0 => "−",
            Some(value) if value > 0.0 => "+",
            _ => "",
        };
        let is_less = difference.value().is_some_and(|value| value < 0.0);
        RowView {
            group: "",
            name: name.to_owned(),
            baseline: words::value(baseline, words::latency),
            contender: words::value(contender, words::latency),
            change: match difference.interval() {
                Some((low, high)) => format!(
                    "{sign}{} [{}, {}]",
                    words::latency(difference.value().unwrap_or(0.0).abs()),
                    signed(low),
                    signed(high)
                ),
                None => format!(
                    "{sign}{}",
                    words::value(difference, |us| words::latency(us.abs()))
                ),
            },
            moved: match is_certain(difference) {
                true if is_less => "less",
                true => "more",
                false => "unclear",
            },
        }
    };
    let mut rows: Vec<RowView> = division
        .parts
        .iter()
        .filter(|part| {
            [&part.baseline_us, &part.contender_us]
                .iter()
                .any(|figure| figure.value().is_some_and(|us| us > 0.0))
        })
        .map(|part| {
            row(
                part.doing.name(),
                [&part.baseline_us, &part.contender_us, &part.difference_us],
            )
        })
        .collect();
    rows.push(row(
        "the whole transaction",
        [
            &division.baseline_us,
            &division.contender_us,
            &division.difference_us,
        ],
    ));
    rows
}

fn signed(us: f64) -> String {
    let sign = if us < 0.0 { "−" } else { "+" };
    format!("{sign}{}", words::latency(us.abs()))
}

fn moved(moved: Moved) -> &'static str {
    match moved {
        Moved::Less => "less",
        Moved::More => "more",
        Moved::Same => "same",
        Moved::Unclear => "unclear",
        Moved::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::summarise;
    use crate::judge::synthetic::{Observation, Scenario};

    #[test]
    fn a_difference_is_told_in_sentences_without_a_cause() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let text = sentences(&summary, &summary.explanations[0]).join("\n");
        insta::assert_snapshot!("explanation_sentences", text);
        for word in ["because", "due to", "caused", "thanks to", "therefore"] {
            assert!(!text.contains(word), "`{word}` claims a cause: {text}");
        }
    }

    #[test]
    fn sayings_are_about_resources_that_exist() {
        let record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        let (summary, _) = summarise(&record);
        let said = SAYINGS.iter().filter(|(id, ..)| {
            summary.explanations[0]
                .costs
                .iter()
                .any(|cost| cost.resource == *id)
        });
        assert!(said.count() >= 4);
    }
}
