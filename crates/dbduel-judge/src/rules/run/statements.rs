//! Rules about how servers run the statements of a workload.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_text::shortened;

use super::RunEvidence;

/// Classes that a finding shows; the rest is counted.
const CLASSES_SHOWN: usize = 2;
/// Characters of a statement that a finding shows.
const CLASS_CHARS: usize = 160;

/// Contenders that have another plan than the baseline.
pub fn changed(run: &RunEvidence<'_>) -> Vec<Finding> {
    let baseline = run.judged.baseline.as_str();
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        for facts in &run.judged.contenders {
            let name = facts.name.as_str();
            let changed = duel.statements.iter().filter_map(|statement| {
                let plans = statement.changed(name, baseline)?;
                let [own, other] = plans.map(|plan| plan.steps.join("`, `"));
                let class = shortened(&statement.class, CLASS_CHARS);
                Some(format!("`{class}` has `{own}` instead of `{other}`"))
            });
            let changed: Vec<String> = changed.collect();
            if changed.is_empty() {
                continue;
            }
            let more = match changed.len().saturating_sub(CLASSES_SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let shown: Vec<&str> = changed
                .iter()
                .take(CLASSES_SHOWN)
                .map(String::as_str)
                .collect();
            let claim = format!(
                "At {} `{name}` has a different plan from `{baseline}` for {} of {} classes of statements: {}{more}.",
                duel.label,
                changed.len(),
                duel.statements.len(),
                shown.join("; "),
            );
            let remedy = "Compare the optimiser's settings and the statistics of the tables; the page has the plans.";
            found.push(Finding::new(Severity::Note, &[name], claim, remedy).at(duel.level));
        }
    }
    found
}

/// Statements of which a contender gave no plan.
pub fn not_explained(run: &RunEvidence<'_>) -> Vec<Finding> {
    let remedy = "None, unless the plan matters; then run EXPLAIN on the server.";
    let mut found = Vec::new();
    for duel in &run.judged.duels {
        let own = run.evidence.record.contenders.iter();
        for (files, facts) in own.zip(&run.judged.contenders) {
            let name = facts.name.as_str();
            let sample = files.statements.as_ref().and_then(|own| own.at(duel.level));
            let missing = duel.statements.iter().filter_map(|statement| {
                let why = statement.of(name)?.because.as_ref()?;
                Some(format!(
                    "`{}`: {why}",
                    shortened(&statement.class, CLASS_CHARS)
                ))
            });
            let missing: Vec<String> = missing.collect();
            let claim = match (sample.and_then(|own| own.because.as_ref()), missing.first()) {
                (Some(why), _) => format!(
                    "No plans of `{name}` at {}, because its statements could not be sampled: {why}.",
                    duel.label
                ),
                (None, Some(first)) => format!(
                    "No plan of `{name}` at {} for {} of {} classes of statements, first {first}.",
                    duel.label,
                    missing.len(),
                    duel.statements.len()
                ),
                (None, None) => continue,
            };
            found.push(Finding::new(Severity::Note, &[name], claim, remedy).at(duel.level));
        }
    }
    found
}
