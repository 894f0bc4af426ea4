//! Rules about servers, their settings and their data.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_audit::finding::{Finding, quoted};
use dbduel_record::event::{Event, Severity};
use dbduel_text::counts;

use super::RunEvidence;

/// Names that are listed in a sentence; the rest is counted.
const NAMES_LISTED: usize = 8;

/// Data as one epoch found them, by contender: digest and rows.
type Datasets<'a> = BTreeMap<&'a str, (&'a str, u64)>;

pub fn digests(run: &RunEvidence<'_>) -> Vec<Finding> {
    // Within an epoch only: what a run writes makes a later epoch's data differ from an earlier one's.
    let mut epochs: Vec<Datasets<'_>> = vec![BTreeMap::new()];
    for event in &run.evidence.record.events {
        match &event.what {
            Event::Started { .. } => epochs.push(BTreeMap::new()),
            Event::DatasetReady {
                contender,
                digest,
                rows,
                ..
            } if !digest.is_empty() => {
                if let Some(epoch) = epochs.last_mut() {
                    epoch.insert(contender, (digest, *rows));
                }
            }
            _ => {}
        }
    }
    let baseline = run.judged.baseline.as_str();
    let mut unequal: BTreeSet<&str> = BTreeSet::new();
    for epoch in &epochs {
        let Some(reference) = epoch.get(baseline) else {
            continue;
        };
        unequal.extend(
            epoch
                .iter()
                .filter(|(_, data)| data.0 != reference.0)
                .map(|(name, _)| *name),
        );
    }
    if !unequal.is_empty() {
        let names: Vec<&str> = unequal.into_iter().collect();
        let claim = format!(
            "Data of {} differ from those of `{baseline}`: the digests differ.",
            quoted(&names)
        );
        let remedy = "Reload the data for all contenders; if the digests still differ, a server stores them differently.";
        return vec![Finding::new(Severity::Void, &names, claim, remedy)];
    }
    let complete = epochs
        .iter()
        .find(|epoch| epoch.len() == run.judged.contenders.len());
    match complete.and_then(|epoch| epoch.get(baseline)) {
        Some((digest, rows)) => {
            let short: String = digest.chars().take(12).collect();
            let rows = counts::of(*rows);
            let claim =
                format!("All contenders started with the same {rows} rows (digest {short}).");
            vec![Finding::new(Severity::Note, &[], claim, "None.")]
        }
        None => {
            let claim = "Equality of the data was not checked for all contenders.".to_owned();
            vec![Finding::new(
                Severity::Doubt,
                &[],
                claim,
                "Let dbduel load the data.",
            )]
        }
    }
}

pub fn unmanaged(run: &RunEvidence<'_>) -> Vec<Finding> {
    let contenders = run.judged.contenders.iter();
    let unmanaged: Vec<&str> = contenders
        .filter(|contender| contender.build.as_ref().is_some_and(|build| !build.managed))
        .map(|contender| contender.name.as_str())
        .collect();
    if unmanaged.is_empty() {
        return Vec::new();
    }
    let claim = format!(
        "{} not started by dbduel and not frozen while others ran; background work may have disturbed them.",
        match unmanaged.as_slice() {
            [one] => format!("`{one}` was"),
            many => format!("{} were", quoted(many)),
        }
    );
    vec![Finding::new(
        Severity::Doubt,
        &unmanaged,
        claim,
        "Let dbduel start the server: give a package or a path.",
    )]
}

pub fn builds_differ(run: &RunEvidence<'_>) -> Vec<Finding> {
    let builds: BTreeSet<String> = run
        .judged
        .contenders
        .iter()
        .filter_map(|contender| contender.build.as_ref())
        .map(|build| format!("{} {}", build.product, build.version))
        .collect();
    if builds.len() < 2 {
        return Vec::new();
    }
    let claim = format!(
        "Different builds: {}. A difference is between whole builds with these settings.",
        builds.into_iter().collect::<Vec<_>>().join(", ")
    );
    vec![Finding::new(
        Severity::Note,
        &[],
        claim,
        "To compare settings alone, use one build.",
    )]
}

pub fn settings_differ(run: &RunEvidence<'_>) -> Vec<Finding> {
    let unasked = || {
        run.judged
            .settings
            .iter()
            .filter(|difference| !difference.is_asked_for)
    };
    let on_all = |values: &[Option<String>]| values.iter().all(Option::is_some);
    let differing: Vec<&str> = unasked()
        .filter(|difference| on_all(&difference.values))
        .map(|difference| difference.name.as_str())
        .collect();
    let one_sided = unasked().count() - differing.len();
    if differing.is_empty() && one_sided == 0 {
        return Vec::new();
    }
    let listed = differing
        .iter()
        .take(NAMES_LISTED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let mut claim = match differing.len() {
        0 => "No setting common to all servers differs beyond the configured ones".to_owned(),
        1 => format!("1 effective setting differs that the experiment does not set: {listed}"),
        count if count > NAMES_LISTED => {
            format!(
                "{count} effective settings differ that the experiment does not set: {listed} and others"
            )
        }
        count => {
            format!("{count} effective settings differ that the experiment does not set: {listed}")
        }
    };
    if one_sided > 0 {
        claim.push_str(&format!("; {one_sided} exist on some of the servers only"));
    }
    claim.push('.');
    vec![Finding::new(
        Severity::Note,
        &[],
        claim,
        "Set the relevant ones to the same value on all sides.",
    )]
}
