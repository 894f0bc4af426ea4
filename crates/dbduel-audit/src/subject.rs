//! The subject of a contest: the facts in which its contenders differ on purpose.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::case::Case;
use super::compare::{Outcome, outcome_of};
use super::reading::{self, Reading};
use super::table::{Fact, table};
use super::value::variable_name;
use crate::finding::Finding;

/// The subject of a contest, under the names that facts and variables have.
#[derive(Debug, Clone)]
pub struct Subject {
    declared: BTreeSet<String>,
    asked: BTreeSet<String>,
}

/// A name by which a contest is about a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name, as facts and variables have it.
    pub name: String,
    /// True when the experiment declares it, false when it only follows from its settings.
    pub is_declared: bool,
}

impl Subject {
    /// The subject of a case.
    #[must_use]
    pub fn of(case: &Case) -> Self {
        let names = |names: &[String]| names.iter().map(|name| variable_name(name)).collect();
        Subject {
            declared: names(&case.about),
            asked: names(&case.subject),
        }
    }

    /// The name by which the contest is about this fact: the fact's own, its class, or a variable that it was read
    /// from. `None` when it is not.
    #[must_use]
    pub fn names(&self, fact: &Fact, readings: &[Reading<'_>; 2]) -> Option<Named> {
        let class = variable_name(fact.class.id);
        let read = readings.iter().flat_map(|reading| &reading.from);
        let names: Vec<&str> = [class.as_str(), &fact.name]
            .into_iter()
            .chain(read.map(|read| read.name.as_str()))
            .collect();
        let among = |set: &BTreeSet<String>, is_declared: bool| {
            let name = names.iter().find(|name| set.contains(**name))?;
            Some(Named {
                name: (*name).to_owned(),
                is_declared,
            })
        };
        among(&self.declared, true).or_else(|| among(&self.asked, false))
    }

    /// True when the contest is about this variable, class, fact or rule by name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let name = variable_name(name);
        self.declared.contains(&name) || self.asked.contains(&name)
    }
}

/// The classes of the facts that a contest is about.
#[must_use]
pub fn classes(case: &Case) -> BTreeSet<&'static str> {
    let subject = Subject::of(case);
    outcomes(case, &subject)
        .map(|(fact, _)| fact.class.id)
        .collect()
}

/// A note for every declared name in which no contender differs from the baseline.
#[must_use]
pub fn without_difference(case: &Case) -> Vec<Finding> {
    let is_unmoved = |name: &&String| {
        let only = Subject {
            declared: [variable_name(name)].into(),
            asked: BTreeSet::new(),
        };
        let mut outcomes = outcomes(case, &only).peekable();
        outcomes.peek().is_some()
            && outcomes.all(|(_, outcome)| matches!(outcome, Outcome::Equal | Outcome::Equivalent))
    };
    let note = |name: &String| {
        let claim = format!(
            "The contest is declared to be about `{name}`, but no contender differs in it from the baseline."
        );
        let remedy = "Set it differently, or remove the name from `about`.";
        Finding::new(Severity::Note, &[], claim, remedy)
    };
    case.about.iter().filter(is_unmoved).map(note).collect()
}

/// The facts that a contest is about, with how each contender compares to the baseline.
fn outcomes<'c>(
    case: &'c Case,
    subject: &'c Subject,
) -> impl Iterator<Item = (&'static Fact, Outcome)> + 'c {
    let pairs = case.others().map(|other| [case.baseline, other]);
    pairs.flat_map(move |indices| {
        table().facts.iter().filter_map(move |fact| {
            let readings = indices.map(|index| reading::read(fact, case, index));
            subject.names(fact, &readings)?;
            Some((fact, outcome_of(fact, &readings)))
        })
    })
}
