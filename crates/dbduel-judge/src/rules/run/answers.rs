//! Rules about the contenders' answers to captured statements on equal data.

use std::collections::BTreeMap;

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_text::{counts, percent, shortened};

use super::RunEvidence;
use crate::classes::FAILED_VOID;
use crate::summary::{AnswerDifference, AnswersSummary, ClassAnswers, DifferenceKind};

/// Classes that a finding shows; the others are counted.
const CLASSES_SHOWN: usize = 3;
/// Characters of a statement that a finding shows.
const CLASS_CHARS: usize = 100;

const SEE_CLASS: &str = "`dbduel capture show --class` shows the statements with their values; run one on both servers.";

/// Classes of a contender that differ in one way, with their answers.
type Differing<'a> = Vec<(&'a ClassAnswers, &'a AnswerDifference)>;

/// Settings of sessions that a contender refuses, each once, whatever depends on it.
pub fn refused(run: &RunEvidence<'_>) -> Vec<Finding> {
    let all = run
        .judged
        .answers
        .iter()
        .flat_map(|answers| &answers.refused);
    let found = all.map(|one| {
        let severity = severity_of_failing(one.share);
        let claim = format!(
            "`{}` refuses `{}` with error {} ({}, first at {}): {} of the replay ({}) need this setting and fail.",
            one.contender,
            shortened(&one.text, CLASS_CHARS),
            one.error,
            counts::things(one.settings, "statement"),
            one.position,
            counts::things(one.transactions, "transaction"),
            percent::of(one.share),
        );
        let remedy = "Remove what the server does not know from this setting, in the application or in the log, and import the log again.";
        Finding::new(severity, &[&one.contender], claim, remedy)
    });
    found.collect()
}

/// Statements that one side refuses.
pub fn errors(run: &RunEvidence<'_>) -> Vec<Finding> {
    each_contender(run, |answers, name, baseline| {
        let failing = differing(answers, name, |one| {
            one.weighs() && one.kind == DifferenceKind::Error
        });
        if failing.is_empty() {
            return None;
        }
        let whole = failing.iter().filter(|(class, one)| {
            let own = class.contenders.iter().find(|own| own.contender == name);
            own.is_some_and(|own| own.compared == one.statements)
        });
        let share: f64 = whole.map(|(class, _)| class.share).sum();
        let claim = format!(
            "`{name}` and `{baseline}` do not fail alike on equal data: {}.",
            shown(&failing)
        );
        let remedy = "Make both servers accept these statements, or leave them out of the capture.";
        Some(Finding::new(
            severity_of_failing(share),
            &[name],
            claim,
            remedy,
        ))
    })
}

/// Answers that differ although data, settings of sessions and statements are equal.
pub fn differ(run: &RunEvidence<'_>) -> Vec<Finding> {
    each_contender(run, |answers, name, baseline| {
        let found = differing(answers, name, |one| {
            one.weighs() && one.kind != DifferenceKind::Error
        });
        if found.is_empty() {
            return None;
        }
        let claim = format!(
            "`{name}` answers otherwise than `{baseline}` on equal data: {}.",
            shown(&found)
        );
        Some(Finding::new(Severity::Doubt, &[name], claim, SEE_CLASS))
    })
}

/// Differences with a known reason, and those that change no work.
pub fn explained(run: &RunEvidence<'_>) -> Vec<Finding> {
    each_contender(run, |answers, name, baseline| {
        let found = differing(answers, name, |one| !one.weighs());
        if found.is_empty() {
            return None;
        }
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for (_, one) in &found {
            let why = one.excuse.clone();
            *kinds
                .entry(why.unwrap_or_else(|| one.kind.name().to_owned()))
                .or_default() += 1;
        }
        let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(why, count)| format!("{why} {count}"))
            .collect();
        let claim = format!(
            "Answers of `{name}` to {} of statements differ from those of `{baseline}` in what need not be equal: {}.",
            counts::things(found.len() as u64, "class"),
            kinds.join(", ")
        );
        Some(Finding::new(Severity::Note, &[name], claim, "None."))
    })
}

/// Statements that were not compared.
pub fn not_compared(run: &RunEvidence<'_>) -> Vec<Finding> {
    let Some(answers) = &run.judged.answers else {
        return Vec::new();
    };
    if let Some(why) = &answers.because {
        let claim = format!("No answers were compared: {why}.");
        let remedy = "Remove the cause, if equal answers matter, and measure again.";
        return vec![Finding::new(Severity::Note, &[], claim, remedy)];
    }
    let mut found = each_contender(run, |answers, name, _| {
        let mut reasons: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
        for class in &answers.classes {
            let own = class.contenders.iter().find(|own| own.contender == name);
            let why = own.filter(|own| own.compared == 0);
            if let Some(why) = why.and_then(|own| own.not_compared.as_deref()) {
                let sum = reasons.entry(why).or_default();
                sum.0 += 1;
                sum.1 += class.share;
            }
        }
        if reasons.is_empty() {
            return None;
        }
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(why, (count, share))| {
                format!(
                    "{}, {} of the statements: {why}",
                    counts::things(count, "class"),
                    percent::of(share)
                )
            })
            .collect();
        let claim = format!(
            "Answers of `{name}` were not compared: {}.",
            reasons.join("; ")
        );
        Some(Finding::new(
            Severity::Note,
            &[name],
            claim,
            "None, unless these statements matter.",
        ))
    });
    if answers.classes_beyond > 0 {
        let claim = format!(
            "Answers were compared for the {} of statements with most of them, and not for {} further ones.",
            counts::things(answers.classes.len() as u64, "class"),
            counts::of(answers.classes_beyond.into())
        );
        found.push(Finding::new(
            Severity::Note,
            &[],
            claim,
            "None, unless these statements matter.",
        ));
    }
    found
}

fn severity_of_failing(share: f64) -> Severity {
    match share > FAILED_VOID {
        true => Severity::Void,
        false => Severity::Doubt,
    }
}

/// What `check` finds of every contender but the baseline, whose name it gets, too.
fn each_contender(
    run: &RunEvidence<'_>,
    check: impl Fn(&AnswersSummary, &str, &str) -> Option<Finding>,
) -> Vec<Finding> {
    let baseline = run.judged.baseline.as_str();
    let Some(answers) = &run.judged.answers else {
        return Vec::new();
    };
    let names = run.judged.contenders.iter().map(|one| one.name.as_str());
    let others = names.filter(|name| *name != baseline);
    others
        .filter_map(|name| check(answers, name, baseline))
        .collect()
}

fn differing<'a>(
    answers: &'a AnswersSummary,
    name: &str,
    is_wanted: impl Fn(&AnswerDifference) -> bool,
) -> Differing<'a> {
    let found = answers.classes.iter().filter_map(|class| {
        let own = class.contenders.iter().find(|own| own.contender == name)?;
        let difference = own.difference.as_ref()?;
        is_wanted(difference).then_some((class, difference))
    });
    found.collect()
}

/// Number and share of the classes, and the largest of them.
fn shown(found: &Differing<'_>) -> String {
    let share: f64 = found.iter().map(|(class, _)| class.share).sum();
    let examples = found.iter().take(CLASSES_SHOWN).map(|(class, one)| {
        let kind = match one.kind {
            // Its detail begins with the word.
            DifferenceKind::Error => String::new(),
            kind => format!("{}: ", kind.name()),
        };
        format!(
            "`{}` ({kind}{}, {})",
            shortened(&class.text, CLASS_CHARS),
            one.detail,
            one.position
        )
    });
    let examples: Vec<String> = examples.collect();
    let more = match found.len().saturating_sub(CLASSES_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "{}, {} of the statements: {}{more}",
        counts::things(found.len() as u64, "class"),
        percent::of(share),
        examples.join("; ")
    )
}
