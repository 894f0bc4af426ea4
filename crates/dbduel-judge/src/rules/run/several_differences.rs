//! The rule that proposes to divide a difference of two contenders that differ in several things at once.

use std::collections::BTreeSet;

use dbduel_audit::Finding;
use dbduel_audit::variable_name;
use dbduel_record::Plan;
use dbduel_record::Verdict;
use dbduel_record::event::Severity;
use dbduel_stats::attribution::{FACTORS_MAX, FactorialDesign};

use super::RunEvidence;
use crate::settings::is_same_value;

/// Names of what differs that a claim lists.
const NAMED: usize = 4;

/// A decided duel of two contenders that were asked to differ in several settings does not say which of them makes the
/// difference.
pub fn several_differences(run: &RunEvidence<'_>) -> Vec<Finding> {
    let plan = run.evidence.plan();
    if plan.contenders.len() != 2 || plan.design.is_some() {
        return Vec::new();
    }
    let comparisons = run.judged.duels.iter().flat_map(|duel| &duel.comparisons);
    let mut decided =
        comparisons.filter(|one| matches!(one.verdict, Verdict::Faster | Verdict::Slower));
    let differences = differences(plan);
    let design = FactorialDesign::new(differences.len().min(FACTORS_MAX));
    let (Some(one), Ok(design)) = (decided.next(), design) else {
        return Vec::new();
    };
    if differences.len() < 2 {
        return Vec::new();
    }
    let mut names: Vec<String> = differences
        .iter()
        .take(NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    if differences.len() > NAMED {
        names.push(format!("{} more", differences.len() - NAMED));
    }
    let claim = format!(
        "`{}` differs from `{}` in {} things at once ({}); the duel does not say which of them makes the difference. \
         `dbduel attribute experiment.toml` does, with {} contenders and a budget of about {:.0} min for an effect of this size.",
        one.contender,
        run.judged.baseline,
        differences.len(),
        names.join(", "),
        design.runs().len(),
        (plan.schedule.budget_s / 60.0).ceil(),
    );
    let remedy = "List the settings that matter in `factors` of [attribute]; all others together form one more factor.";
    vec![Finding::new(
        Severity::Note,
        &[&one.contender],
        claim,
        remedy,
    )]
}

/// Differences that the plan asks for between the two contenders: settings, parameters of tables, the server.
fn differences(plan: &Plan) -> BTreeSet<String> {
    let value = |contender: usize, name: &str| {
        let mut settings = plan.contenders[contender].settings.iter();
        let found = settings.find(|setting| variable_name(&setting.name) == name);
        found.map(|setting| setting.value.clone())
    };
    let [one, other] = [0, 1].map(|contender| &plan.contenders[contender]);
    let names = one.settings.iter().chain(&other.settings);
    let names = names.map(|setting| variable_name(&setting.name));
    let differs = |name: &String| match (value(0, name), value(1, name)) {
        (Some(one), Some(other)) => !is_same_value(&one, &other),
        (one, other) => one != other,
    };
    let tables = one.tables.keys().chain(other.tables.keys());
    let tables = tables
        .filter(|name| one.tables.get(*name) != other.tables.get(*name))
        .cloned();
    let server = (one.server != other.server).then(|| "server".to_owned());
    names.filter(differs).chain(tables).chain(server).collect()
}

#[cfg(test)]
mod tests {
    use dbduel_record::Record;
    use dbduel_record::plan::Setting;

    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn contenders_that_differ_in_several_settings_are_to_be_divided() {
        let mut record = Scenario::duel().record();
        let claim = |record: &Record| {
            let (_, findings) = summarise(record);
            let found = findings
                .into_iter()
                .find(|one| one.rule == "verdict.several-differences");
            found.map(|finding| finding.claim)
        };
        assert_eq!(claim(&record), None);
        for name in ["innodb_lru_scan_depth", "innodb_io_capacity"] {
            record.plan.contenders[1].settings.push(Setting {
                name: name.to_owned(),
                value: "7".to_owned(),
            });
        }
        let claim = claim(&record).unwrap();
        assert!(
            claim.contains("in 3 things at once") && claim.contains("with 8 contenders"),
            "{claim}"
        );
    }
}
