//! Expands contenders with `[variants]` into a contender for each combination of their values.
//!
//! The contenders are added to the experiment as if written there, with the places of their sources.

use std::collections::BTreeSet;

use dbduel_record::plan::Schedule;
use dbduel_record::variants::{VariantGroup, Variants};
use dbduel_server::{Meaning, ServerName};

use super::schedule::{block_s, warm_ups_s};
use super::{counted, product};
use crate::experiment::document::{Located, Report, Troubles};
use crate::experiment::{
    Contender, Experiment, ExperimentFile, Rates, Setting, normalised_name, resolved,
};

/// Limit of variants of all contenders together, each a resident server.
const VARIANTS_MAX: usize = 16;
/// Rounds in which variants compete: enough to distinguish four variants of two contenders at 95 % confidence.
const CHOOSING_ROUNDS: u32 = 12;
/// Limit of choosing as a share of the time for slices.
const CHOOSING_SHARE: f64 = 0.5;

/// The experiment with a contender for each variant, and the groups; `None` where no contender has variants.
///
/// # Errors
/// Impossible variants, or variants in conflict with other parts, with line and column.
pub(super) fn crossed(
    file: &ExperimentFile<'_>,
) -> Result<Option<(Experiment, Vec<VariantGroup>)>, Troubles> {
    let experiment = file.experiment;
    if !experiment.has_variants() {
        return Ok(None);
    }
    let report = Report::new(file.path, file.text);
    check_company(&report, experiment);
    // Counted before they are made: their number grows with every list.
    let counts = experiment.contenders.iter().map(|written| {
        let variants = resolved(&experiment.contenders, written).variants;
        product(variants.iter().map(|(_, values)| values.len()))
    });
    let together = counts.fold(0, usize::saturating_add);
    if together > VARIANTS_MAX {
        let message = format!(
            "the contenders have {} variants together, each a resident server; at most {VARIANTS_MAX} can compete: list fewer \
             values",
            counted(together)
        );
        report.add(&span(experiment), message);
        return report.finish(None);
    }
    let mut own = experiment.clone();
    own.contenders.clear();
    let mut groups = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for written in &experiment.contenders {
        let whole = resolved(&experiment.contenders, written);
        let combinations = combinations(&whole);
        check_server(&report, &whole);
        let settings = whole.variants.iter().map(|(name, _)| name.value.clone());
        let begin = own.contenders.len();
        own.contenders
            .extend(combinations.iter().map(|values| variant(&whole, values)));
        groups.push(VariantGroup {
            name: whole.name.value.clone(),
            settings: settings.collect(),
            members: (begin..own.contenders.len()).collect(),
        });
    }
    for contender in &own.contenders {
        if !names.insert(contender.name.value.clone()) {
            let message = format!("two variants are called `{}`", contender.name.value);
            report.add(&contender.name.span, message);
        }
    }
    let baseline = experiment.baseline.as_ref().and_then(|baseline| {
        let group = groups.iter().find(|group| group.name == baseline.value)?;
        Some(Located {
            value: own.contenders[group.members[0]].name.value.clone(),
            span: baseline.span.clone(),
        })
    });
    own.baseline = baseline;
    // That contenders differ in them is what was asked for.
    let asked = own
        .contenders
        .iter()
        .flat_map(|contender| &contender.variants);
    let asked: Vec<Located<String>> = asked.map(|(name, _)| name.clone()).collect();
    for name in asked {
        let is_known = own.about.iter().any(|about| about.value == name.value);
        if !is_known {
            own.about.push(name);
        }
    }
    report.finish(Some((own, groups)))
}

/// The groups with their rounds of choosing, and the schedule of the remaining time for judging, with one contender per
/// group.
pub(super) fn share_time(
    groups: Vec<VariantGroup>,
    schedule: &Schedule,
    levels: usize,
) -> (Variants, Schedule) {
    let contenders: usize = groups.iter().map(|group| group.members.len()).sum();
    let levels = levels.max(1) as f64;
    let warm_ups_s = |contenders| warm_ups_s(schedule, contenders);
    let measuring_s = schedule.budget_s - warm_ups_s(contenders);
    let round_s = block_s(schedule, contenders) * levels;
    let affordable = (CHOOSING_SHARE * measuring_s / round_s).max(1.0);
    let choosing_rounds = (affordable as u32).min(CHOOSING_ROUNDS);
    let choosing_s = f64::from(choosing_rounds) * round_s;
    let judging = Schedule {
        budget_s: measuring_s - choosing_s + warm_ups_s(groups.len()),
        ..schedule.clone()
    };
    let variants = Variants {
        choosing_rounds,
        groups,
    };
    (variants, judging)
}

fn span(experiment: &Experiment) -> std::ops::Range<usize> {
    let mut variants = experiment.contenders.iter().flat_map(|one| &one.variants);
    variants.next().map_or(0..0, |(name, _)| name.span.clone())
}

/// Refuses features that exclude variants.
fn check_company(report: &Report<'_>, experiment: &Experiment) {
    let span = span(experiment);
    let is_searched = experiment
        .load
        .rate
        .as_ref()
        .is_some_and(|rate| rate.value == Rates::Searched);
    for (is_there, what) in [
        (experiment.attribute.is_some(), "[attribute]"),
        (experiment.suite.is_some(), "[suite]"),
        (experiment.injection.is_some(), "[injection]"),
        (experiment.schedule.epochs.is_some(), "`epochs`"),
        (is_searched, "a searched rate"),
    ] {
        if is_there {
            report.add(&span, format!("variants cannot be combined with {what}"));
        }
    }
}

/// Refuses variants of a running server: dbduel must start a server to set them.
fn check_server(report: &Report<'_>, contender: &Contender) {
    let name = contender.server.as_ref();
    let name = name.and_then(|server| ServerName::parse(&server.value).ok());
    let is_running = name.is_some_and(|name| matches!(name.meaning, Meaning::Running(_)));
    if is_running && let Some((setting, _)) = contender.variants.first() {
        let message = format!(
            "`{}` is a running server; variants change settings, so dbduel must start the server",
            contender.name.value
        );
        report.add(&setting.span, message);
    }
}

/// Every combination of the listed values; the last setting changes fastest.
fn combinations(contender: &Contender) -> Vec<Vec<Located<String>>> {
    let mut combinations = vec![Vec::new()];
    for (_, values) in &contender.variants {
        let longer = combinations
            .iter()
            .flat_map(|begin: &Vec<Located<String>>| {
                values.iter().map(move |value| {
                    let mut longer = begin.clone();
                    longer.push(value.clone());
                    longer
                })
            });
        combinations = longer.collect();
    }
    combinations
}

/// The contender with these values of its variants: `mysql [0, 96]`.
fn variant(whole: &Contender, values: &[Located<String>]) -> Contender {
    let mut own = whole.clone();
    if values.is_empty() {
        return own;
    }
    let texts: Vec<&str> = values.iter().map(|value| value.value.as_str()).collect();
    own.name.value = format!("{} [{}]", whole.name.value, texts.join(", "));
    for ((name, _), value) in whole.variants.iter().zip(values) {
        let normalised = normalised_name(&name.value);
        own.settings
            .retain(|setting| normalised_name(&setting.name.value) != normalised);
        own.settings.push(Setting {
            name: name.clone(),
            value: value.clone(),
        });
    }
    own
}
