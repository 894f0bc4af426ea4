//! Rules about the effects of frequent switches on contenders.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_text::{from_to, percent};

use super::RunEvidence;
use crate::summary::{Duel, Figure, InTurns};

/// Departure of the 99 % quantile from which it is reported.
const P99_DEPARTURE_MIN: f64 = 0.1;

fn checked<'a>(run: &'a RunEvidence<'_>) -> impl Iterator<Item = (&'a Duel, f64, &'a InTurns)> {
    run.judged.duels.iter().flat_map(|duel| {
        let continuity = duel.continuity.iter();
        continuity.flat_map(move |one| {
            let contenders = one.contenders.iter();
            contenders.map(move |contender| (duel, one.turn_s, contender))
        })
    })
}

pub fn contradiction(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        for comparison in &duel.comparisons {
            let Some(one) = &comparison.contradiction else {
                continue;
            };
            let Some((low, high)) = one.departure.interval() else {
                continue;
            };
            let name = comparison.contender.as_str();
            let claim = format!(
                "At {} the ratio of `{name}` in turns of {:.2} s is {} times that in turns of {:.1} s (99 %): \
                 frequent switches change what is measured.",
                duel.label,
                one.turn_s,
                from_to(&format!("{low:.2}"), &format!("{high:.2}")),
                one.unswitched_s
            );
            let remedy = "Use long turns: set `slice` in [schedule] to 8 s or more, with a budget of ten minutes or more.";
            found.push(Finding::new(Severity::Doubt, &[name], claim, remedy).at(duel.level));
        }
    }
    found
}

pub fn departure(run: &RunEvidence<'_>) -> Vec<Finding> {
    let departed = checked(run).filter(|(_, _, one)| one.is_shown);
    let found = departed.filter_map(|(duel, turn_s, one)| {
        let value = one.throughput.value()?;
        let claim = format!(
            "At {} the throughput of `{}` in turns of {turn_s:.2} s is {} of that without a switch: its absolute \
             figures hold for turns only.",
            duel.label,
            one.contender,
            percent::of(value)
        );
        let remedy = "For absolute figures, set `slice` in [schedule] to 8 s or more.";
        let about = [one.contender.as_str()];
        Some(Finding::new(Severity::Note, &about, claim, remedy).at(duel.level))
    });
    found.collect()
}

pub fn quantile(run: &RunEvidence<'_>) -> Vec<Finding> {
    let found = checked(run).filter_map(|(duel, turn_s, one)| {
        let p99: &Figure = one.latency_p99.as_ref()?;
        let ((low, high), value) = (p99.interval()?, p99.value()?);
        let is_shown = low > 1.0 || high < 1.0;
        let is_worth = value.ln().abs() > P99_DEPARTURE_MIN.ln_1p();
        (is_shown && is_worth).then(|| {
            let claim = format!(
                "At {} the p99 of `{}` in turns of {turn_s:.2} s is {value:.2} ({low:.2} to {high:.2}, 95 %) times that without a \
                 switch.",
                duel.label, one.contender
            );
            let remedy = "For quantiles of continuous load, set `slice` in [schedule] to 8 s or more.";
            let about = [one.contender.as_str()];
            Finding::new(Severity::Doubt, &about, claim, remedy).at(duel.level)
        })
    });
    found.collect()
}
