//! Settings that make contenders equal.
//!
//! Works on predictions: each setting is applied to a copy of the evidence, so that later facts follow
//! from earlier settings, and the copy is audited again. What no setting can make equal stays a finding,
//! and so does what the contest is about or what a waiver accepts: equal would be another question.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::case::{Case, Contest, Waiver};
use super::evidence::ServerEvidence;
use super::expression;
use super::finding::RemedySetting;
use super::predict::{Defaults, Taken, predict};
use super::remedy::equalising;
use super::rules;
use super::subject::Subject;
use super::table::table;
use super::{Audit, Outcome, audit, classes::Weight, compare, reading};

/// Each round may bring out differences that the one before hid.
const ROUNDS_MAX: usize = 4;

/// An equalised contest.
#[derive(Debug, Clone)]
pub struct Fix {
    /// What to set, per contender, in the order of the classes; no name twice per contender.
    pub settings: Vec<RemedySetting>,
    /// What the contenders had set themselves and keep.
    pub kept: Vec<RemedySetting>,
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
            predict(&mut contender.clone(), &setting.name, &setting.value) == Taken::Yes
        })
    });
    let is_replaced = |kept: &RemedySetting| {
        settings
            .iter()
            .any(|setting| setting.contender == kept.contender && setting.name == kept.name)
    };
    let mut kept: Vec<RemedySetting> = case.contenders.iter().flat_map(own_settings).collect();
    kept.retain(|setting| !is_replaced(setting));
    let after = audit(&fixed);
    Fix {
        settings,
        kept,
        after,
    }
}

/// What a contender was asked to set; where nobody knows, the facts in which it differs from the
/// defaults of its version.
fn own_settings(contender: &ServerEvidence) -> Vec<RemedySetting> {
    let setting = |(name, value): (&String, &String)| RemedySetting {
        contender: contender.name.clone(),
        name: if name == "tx_isolation" {
            "transaction_isolation".to_owned()
        } else {
            name.clone()
        },
        value: value.clone(),
    };
    let is_taken = |setting: &RemedySetting| {
        predict(&mut contender.clone(), &setting.name, &setting.value) == Taken::Yes
    };
    if !contender.asked.is_empty() {
        return contender
            .asked
            .iter()
            .map(setting)
            .filter(is_taken)
            .collect();
    }
    let Some(defaults) = Defaults::nearest(contender.product, contender.version) else {
        return Vec::new();
    };
    let is_of_the_build = |name: &str| {
        name.starts_with("version") || name.starts_with("have_") || name == "innodb_version"
    };
    let matters = table()
        .facts
        .iter()
        .filter(|fact| fact.weight > Weight::Information);
    let names: BTreeSet<&str> = matters
        .flat_map(|fact| &fact.rows)
        .flat_map(|row| expression::names(&row.value))
        .collect();
    let own = contender.variables.iter().filter(|(name, value)| {
        let default = defaults.variables.get(*name);
        names.contains(name.as_str())
            && !is_of_the_build(name)
            && default.is_some_and(|default| default != *value)
    });
    own.map(setting).filter(is_taken).collect()
}

/// One pass over the facts and the rules; applies and returns what it sets.
fn round(case: &mut Case) -> Vec<RemedySetting> {
    let mut settings = Vec::new();
    let subject = Subject::of(case);
    let waivers = case.waivers.clone();
    let others: Vec<usize> = (0..case.contenders.len())
        .filter(|&index| index != case.baseline)
        .collect();
    for fact in table()
        .facts
        .iter()
        .filter(|fact| fact.weight > Weight::Information || fact.asked_weight > Weight::Information)
        .filter(|fact| !is_waived(&waivers, &fact.name, fact.class.id))
    {
        for &other in &others {
            let indices = [case.baseline, other];
            let readings = indices.map(|index| reading::read(fact, case, index));
            let wanted = equalising(fact, case, &indices, &readings);
            let is_apart = compare::outcome_of(fact, &readings) == Outcome::Differs
                && subject.names(fact, &readings).is_none();
            if is_apart {
                apply(case, &wanted);
                settings.extend(wanted);
            }
        }
    }
    // What is wrong on all sides alike makes nobody unequal; changing it would be another contest.
    let open = rules::check_all(case).into_iter().filter(|finding| {
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
    use crate::judge::audit::tests::server;

    /// What no setting can make equal between any two of the recorded servers.
    #[test]
    fn a_fix_leaves_no_doubt_between_any_two_recorded_servers() {
        let servers: Vec<&str> = Defaults::servers()
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
