//! Settings that make contenders equal.
//!
//! Works on predictions: each setting is applied to a copy of the evidence, so that later facts follow from earlier
//! settings, and the copy is audited again. Differences that no setting removes stay findings, and so do those that
//! the contest is about or that a waiver accepts: removing these would change the question.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::case::{Case, Contest, Waiver};
use super::defaults::{Machine, expected, is_of_the_build};
use super::evidence::ServerEvidence;
use super::expression;
use super::forms;
use super::predict::{Taken, predict};
use super::remedy::equalising;
use super::subject::Subject;
use super::table::{Fact, table};
use super::value::Value;
use super::{Audit, Outcome, audit, classes::Weight, compare, reading};
use crate::finding::RemedySetting;
use crate::rules;

/// Each round may bring out differences that the one before hid.
const ROUNDS_MAX: usize = 4;

/// An equalised contest.
#[derive(Debug, Clone)]
pub struct Fix {
    /// Settings to add, per contender, in the order of the classes; no name twice per contender.
    pub settings: Vec<RemedySetting>,
    /// Settings that the contenders made themselves and keep.
    pub kept: Vec<RemedySetting>,
    /// Requested settings that their servers reject.
    pub refused: Vec<RemedySetting>,
    /// Unknown facts that affect the grade: the fact and its contender.
    pub unknown: Vec<String>,
    /// The audit of the contenders as they would be with these settings.
    pub after: Audit,
}

/// Finds settings that make the contenders of `case` equal in every class.
#[must_use]
pub fn fix(case: &Case) -> Fix {
    let mut fixed = case.clone();
    fixed.contest = Contest::Equalised;
    for contender in &mut fixed.contenders {
        contender.is_predicted = true;
        // What was seen of the old configuration says nothing about the new one.
        contender.variables_after.clear();
        contender.status_before.clear();
        contender.status_after.clear();
        contender.probe.clear();
    }
    let mut settings: Vec<RemedySetting> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found = round(&mut fixed);
        if found.is_empty() {
            break;
        }
        for setting in found {
            settings.retain(|known| {
                (&known.contender, &known.name) != (&setting.contender, &setting.name)
            });
            settings.push(setting);
        }
    }
    // A setting that the server does not take is not part of a fix.
    settings.retain(|setting| {
        let contender = fixed
            .contenders
            .iter()
            .find(|contender| contender.name == setting.contender);
        contender.is_some_and(|contender| {
            let taken = predict(&mut contender.clone(), &setting.name, &setting.value);
            matches!(taken, Taken::Yes | Taken::NoVariable)
        })
    });
    // `skip_log_bin` and `log_bin` are one setting.
    let bare = |name: &str| name.strip_prefix("skip_").unwrap_or(name).to_owned();
    let is_replaced = |kept: &RemedySetting| {
        settings.iter().any(|setting| {
            setting.contender == kept.contender && bare(&setting.name) == bare(&kept.name)
        })
    };
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    for contender in &case.contenders {
        for (setting, taken) in own_settings(contender) {
            match taken {
                _ if is_replaced(&setting) => {}
                Taken::Yes | Taken::NoVariable => kept.push(setting),
                Taken::Ignored | Taken::Refused => refused.push(setting),
            }
        }
    }
    let after = audit(&fixed);
    Fix {
        settings,
        kept,
        refused,
        unknown: unknown(&fixed),
        after,
    }
}

/// Facts that affect the grade, that settings decide, and that depend on a machine that is not described.
fn unknown(case: &Case) -> Vec<String> {
    let matters = |fact: &&Fact| fact.weight > Weight::Information;
    let mut found = Vec::new();
    for fact in table().facts.iter().filter(matters) {
        for (index, contender) in case.contenders.iter().enumerate() {
            let reading = reading::read(fact, case, index);
            let is_settable = reading.row.is_some_and(|row| !row.set.is_empty());
            if reading.is_undetermined && is_settable {
                found.push(format!("{} of `{}`", fact.title, contender.name));
            }
        }
    }
    found
}

/// Requested settings of a contender; where these are unknown, the facts in which it differs from the defaults of its
/// version. Each with the value that its server makes of it.
fn own_settings(contender: &ServerEvidence) -> Vec<(RemedySetting, Taken)> {
    let with_what_becomes_of_it = |(name, value): (&str, String)| {
        let setting = RemedySetting {
            contender: contender.name.clone(),
            name: name.to_owned(),
            value,
        };
        let taken = predict(&mut contender.clone(), &setting.name, &setting.value);
        (setting, taken)
    };
    if !contender.asked.is_empty() {
        let asked = contender.asked.iter();
        return asked
            .map(|(name, value)| forms::written(contender.product, name, value, contender.version))
            .zip(contender.asked.keys())
            .map(|(value, name)| with_what_becomes_of_it((name, value)))
            .collect();
    }
    let machine = Machine::default();
    let Some(defaults) = expected("", contender.product, contender.version, machine) else {
        return Vec::new();
    };
    let matters = table()
        .facts
        .iter()
        .filter(|fact| fact.weight > Weight::Information);
    let names: BTreeSet<&str> = matters
        .flat_map(|fact| &fact.rows)
        .flat_map(|row| expression::names(&row.value))
        .collect();
    let as_option = |name, value: &str| match contender.product.has_innodb() {
        true => as_option(name, value),
        false => {
            let written = forms::written(contender.product, name, value, contender.version);
            (name, written)
        }
    };
    let own = contender.variables.iter().filter(|(name, value)| {
        let default = defaults.variables.get(*name);
        // A default that follows from the machine may be another one elsewhere.
        let is_open = || defaults.basis.undetermined.contains(*name);
        names.contains(name.as_str())
            && !is_of_the_build(name)
            && default.map_or_else(is_open, |default| default != *value)
    });
    own.map(|(name, value)| with_what_becomes_of_it(as_option(name, value)))
        .collect()
}

/// The value in an option file that makes a variable show this value.
fn as_option<'n>(name: &'n str, value: &str) -> (&'n str, String) {
    match (name, Value::read(value).switch()) {
        // Any value of log_bin is the name of a file.
        ("log_bin", Some(false)) => ("skip_log_bin", "ON".to_owned()),
        ("log_bin", Some(true)) => ("log_bin", "binlog".to_owned()),
        ("tx_isolation", _) => ("transaction_isolation", value.to_owned()),
        _ => (name, value.to_owned()),
    }
}

/// One pass over the facts and the rules; applies and returns what it sets.
fn round(case: &mut Case) -> Vec<RemedySetting> {
    let mut settings = Vec::new();
    let subject = Subject::of(case);
    let waivers = case.waivers.clone();
    // A setting that no finding names stays.
    let findings = audit(case).findings;
    let is_found = |fact: &Fact| findings.iter().any(|finding| finding.rule == fact.name);
    let others: Vec<usize> = (0..case.contenders.len())
        .filter(|&index| index != case.baseline)
        .collect();
    for fact in table()
        .facts
        .iter()
        .filter(|fact| is_found(fact) && !is_waived(&waivers, &fact.name, fact.class.id))
    {
        for &other in &others {
            let indices = [case.baseline, other];
            let readings = indices.map(|index| reading::read(fact, case, index));
            // What is only inferred, or follows from a machine that is not described, may differ
            // unless both sides are of one version and show the same.
            let [one, two] = indices.map(|index| &case.contenders[index]);
            let are_alike = (one.product, one.version) == (two.product, two.version)
                && readings[0].from == readings[1].from;
            let is_open = !are_alike
                && readings.iter().any(|reading| {
                    reading.is_inferred || reading.is_undetermined || reading.is_assumed
                });
            let is_apart = compare::outcome_of(fact, &readings) == Outcome::Differs || is_open;
            // A product that cannot be otherwise is no model for one that is made otherwise.
            let is_by_design = !one.product.is_related_to(two.product)
                && readings
                    .iter()
                    .any(|reading| reading.row.is_some_and(|row| row.is_architecture));
            // Settings of servers do not reach what clients set themselves.
            let is_of_clients = indices
                .iter()
                .zip(&readings)
                .any(|(&index, reading)| reading::set_by_clients(reading, case, index).is_some());
            if is_apart
                && !is_by_design
                && !is_of_clients
                && compare::weight(fact, case, &indices, &readings) > Weight::Information
                && subject.names(fact, case, indices, &readings).is_none()
            {
                let mut wanted = equalising(fact, case, &indices, &readings);
                wanted.retain(|setting| !subject.has(&setting.name));
                apply(case, &wanted);
                settings.extend(wanted);
            }
        }
    }
    // A fault on all sides leaves them equal; changing it would be another contest.
    let open = rules::of_servers(case).into_iter().filter(|finding| {
        finding.severity > Severity::Note && !is_waived(&waivers, &finding.rule, &finding.class)
    });
    for finding in open {
        let wanted: Vec<RemedySetting> = finding
            .remedy_settings
            .into_iter()
            .filter(|setting| !subject.has(&setting.name))
            .collect();
        apply(case, &wanted);
        settings.extend(wanted);
    }
    settings
}

fn is_waived(waivers: &[Waiver], name: &str, class: &str) -> bool {
    waivers.iter().any(|waiver| waiver.is_of(name, class))
}

fn apply(case: &mut Case, settings: &[RemedySetting]) {
    for setting in settings {
        let Some(contender) = case
            .contenders
            .iter_mut()
            .find(|contender| contender.name == setting.contender)
        else {
            continue;
        };
        let before = contender.clone();
        if predict(contender, &setting.name, &setting.value) != Taken::Yes {
            *contender = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Defaults;
    use crate::tests::server;

    #[test]
    fn a_fix_sets_nothing_that_is_in_no_finding() {
        let servers: Vec<&str> = Defaults::servers()
            .filter(|(_, product, _)| product.has_innodb())
            .map(|(recorded, _, _)| recorded)
            .collect();
        for pair in servers.windows(2) {
            let case = Case::of(vec![server("a", pair[0]), server("b", pair[1])]);
            let fix = fix(&case);
            // Settings follow from findings of the audit, or of one of the contenders with such settings.
            let mut cases = vec![case.clone()];
            let mut set = case;
            for setting in &fix.settings {
                apply(&mut set, std::slice::from_ref(setting));
                cases.push(set.clone());
            }
            let findings = cases.iter().flat_map(|case| audit(case).findings);
            let findings: Vec<_> = findings.collect();
            for setting in &fix.settings {
                let is_set_by = |rule: &str| {
                    let facts = table().facts.iter().filter(|fact| fact.name == rule);
                    let mut sets = facts.flat_map(|fact| &fact.rows).flat_map(|row| &row.set);
                    sets.any(|(name, _)| *name == setting.name)
                };
                let is_found = findings.iter().any(|finding| {
                    finding.remedy_settings.contains(setting) || is_set_by(&finding.rule)
                });
                assert!(is_found, "{pair:?}: {setting:?}");
            }
        }
    }

    /// What no setting can make equal between any two of the recorded servers.
    #[test]
    fn a_fix_leaves_no_doubt_between_any_two_recorded_servers() {
        let servers: Vec<&str> = Defaults::servers()
            .filter(|(_, product, _)| product.has_innodb())
            .map(|(recorded, _, _)| recorded)
            .filter(|recorded| *recorded != "mysql-5.6.21")
            .collect();
        let mut left = BTreeSet::new();
        for (index, one) in servers.iter().enumerate() {
            for other in &servers[index + 1..] {
                let fix = fix(&Case::of(vec![server("a", one), server("b", other)]));
                let heavy = fix
                    .after
                    .findings
                    .iter()
                    .filter(|finding| finding.severity > Severity::Note);
                // Which library allocates memory is decided when a server is built or started, not by a setting.
                for finding in heavy.filter(|finding| finding.rule != "memory.allocator") {
                    left.insert(format!("{one} and {other}: {}", finding.claim));
                }
            }
        }
        assert!(left.is_empty(), "{left:#?}");
    }
}
