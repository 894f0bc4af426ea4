//! Rules about the lab itself: what it did on purpose, and what the machine did to it.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_record::rows::SliceRow;
use dbduel_stats::median;
use dbduel_text::percent;

use super::RunEvidence;
use crate::contention::{Contention, WAIT_SHARE};
use crate::injected::stopped_share;
use crate::summary::Duel;

/// Distance of a slice's logarithm from the median of its contender, in median absolute deviations made
/// comparable to standard deviations, from which it is outlying (Iglewicz and Hoaglin 1993).
const OUTLYING: f64 = 3.5;
/// Least relative distance of an outlying slice, so that quiet machines do not list trifles.
const OUTLYING_SHARE: f64 = 0.1;
/// Slices from which a contender has a median to be far from.
const SLICES_MIN: usize = 8;
/// Outlying slices that a finding names.
const NAMED_MAX: usize = 5;

/// Reports a handicap that the lab gave a server on purpose.
pub fn injected(run: &RunEvidence<'_>) -> Vec<Finding> {
    let Some(injection) = &run.evidence.plan().injection else {
        return Vec::new();
    };
    let name = run.evidence.plan().contenders[injection.contender]
        .name
        .as_str();
    let stalls = injection.stalls.map(|stalls| format!(", {stalls} awake"));
    let claim = format!(
        "The lab stopped `{name}` for {} of its slices on purpose ({} planned{}); this duel validates the \
         lab and says nothing about the servers.",
        percent::of(stopped_share(run.evidence.record)),
        percent::of(injection.stopped_share),
        stalls.unwrap_or_default()
    );
    vec![Finding::new(
        Severity::Doubt,
        &[name],
        claim,
        "Remove [injection] from the experiment for a real duel.",
    )]
}

fn rows_of<'a>(run: &'a RunEvidence<'_>, duel: &Duel, contender: usize) -> Vec<&'a SliceRow> {
    let blocks = run.evidence.levels[duel.level].complete.iter();
    blocks
        .flat_map(|block| block.slices_of(contender))
        .collect()
}

/// Slices in which the load threads were ready and had no processor, beside other programs.
pub fn starved(run: &RunEvidence<'_>) -> Vec<Finding> {
    let plan = run.evidence.plan();
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let Some(contention) = Contention::of(run.evidence, duel.level) else {
            continue;
        };
        let mut challengers = plan.challengers();
        let is_uneven =
            challengers.any(|contender| contention.is_uneven([contender, plan.baseline]));
        let sides = contention.contenders.iter().zip(&plan.contenders);
        let sides: Vec<String> = sides
            .map(|(waits, contender)| {
                format!(
                    "{} of {} of `{}`",
                    waits.starved, waits.slices, contender.name
                )
            })
            .collect();
        let claim = format!(
            "In {} of {} slices at {} load threads waited for CPU {} percentage points more than usual ({}){}{}.",
            contention.starved(),
            contention.slices(),
            duel.label,
            100.0 * WAIT_SHARE,
            sides.join(", "),
            contention.others(),
            match is_uneven {
                true =>
                    "; one side is affected more often than chance explains, so part of the ratio may come from the machine",
                false => "; may be chance: adds noise, not bias",
            }
        );
        let severity = match is_uneven {
            true => Severity::Doubt,
            false => Severity::Note,
        };
        let remedy = "Stop other work on this machine, or give the load process and the servers their own cores.";
        found.push(Finding::new(severity, &[], claim, remedy).at(duel.level));
    }
    found
}

/// Slices far from the others of their contender.
pub fn outlying(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        for (contender, facts) in run.judged.contenders.iter().enumerate() {
            let rows = rows_of(run, duel, contender);
            let rates: Vec<f64> = rows
                .iter()
                .map(|row| row.ok as f64 / row.measured_s)
                .collect();
            let Some((typical, far)) = far_from_median(&rates) else {
                continue;
            };
            if far.is_empty() {
                continue;
            }
            let named: Vec<String> = far
                .iter()
                .take(NAMED_MAX)
                .map(|&index| {
                    let row = rows[index];
                    // Whole percents do: these are far from 100.
                    let share = (100.0 * rates[index] / typical).round() / 100.0;
                    format!("{}.{} at {}", row.block, row.position, percent::of(share))
                })
                .collect();
            let more = match far.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (lie, they_count) = match far.len() {
                1 => ("lies", "it is included"),
                _ => ("lie", "they are included"),
            };
            let claim = format!(
                "{} of {} slices of `{}` at {} {lie} far from the others (slice {} of the median{more}); {they_count}.",
                far.len(),
                rows.len(),
                facts.name,
                duel.label,
                named.join(", ")
            );
            let remedy = "Check these slices in ticks.csv and other processes at that time.";
            found.push(Finding::new(Severity::Note, &[&facts.name], claim, remedy).at(duel.level));
        }
    }
    found
}

/// The median of positive values, and which of them lie far from it on the logarithmic scale.
fn far_from_median(values: &[f64]) -> Option<(f64, Vec<usize>)> {
    if values.len() < SLICES_MIN || !values.iter().all(|value| *value > 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let centre = median(&mut logs.clone())?;
    let mut deviations: Vec<f64> = logs.iter().map(|log| (log - centre).abs()).collect();
    // 1.4826 makes the median absolute deviation of normal data their standard deviation.
    let spread = 1.4826 * median(&mut deviations)?;
    let limit = (OUTLYING * spread).max(OUTLYING_SHARE.ln_1p());
    let far = (0..logs.len()).filter(|&index| (logs[index] - centre).abs() > limit);
    Some((centre.exp(), far.collect()))
}

#[cfg(test)]
mod tests {
    use dbduel_audit::Finding;

    use super::*;
    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    fn of_rule<'a>(findings: &'a [Finding], rule: &str) -> Vec<&'a Finding> {
        findings.iter().filter(|one| one.rule == rule).collect()
    }

    #[test]
    fn a_slice_far_from_the_others_is_named_and_still_counts() {
        let mut record = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        }
        .record();
        let row = &mut record.slices[9];
        row.ok /= 3;
        let name = format!("slice {}.{} at 3", row.block, row.position);
        let (summary, findings) = summarise(&record);
        let outlying = of_rule(&findings, "lab.outlying-slices");
        assert!(outlying[0].claim.contains(&name), "{}", outlying[0].claim);
        assert_eq!(summary.duels[0].blocks_complete, 14);
    }

    #[test]
    fn values_without_a_logarithm_have_no_outliers() {
        assert!(far_from_median(&[1.0; 3]).is_none());
        assert!(far_from_median(&[0.0; 20]).is_none());
        assert_eq!(
            far_from_median(&[5.0; 20]),
            Some((5.0_f64.ln().exp(), Vec::new()))
        );
    }
}
