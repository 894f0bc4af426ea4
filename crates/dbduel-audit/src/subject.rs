//! The subject of a contest: the facts in which its contenders differ on purpose.

use std::collections::BTreeSet;

use dbduel_record::event::Severity;

use super::case::Case;
use super::compare::{Outcome, is_near, outcome_of};
use super::evidence::ServerEvidence;
use super::expression;
use super::predict::predict;
use super::reading::{self, Reading};
use super::table::{Fact, table};
use super::value::{Value, variable_name};
use crate::finding::Finding;

/// The subject of a contest, under the names that facts and variables have.
#[derive(Debug, Clone)]
pub struct Subject {
    declared: BTreeSet<String>,
    asked: BTreeSet<String>,
    /// True when every setting that an experiment gives its contenders differently is declared, so that all other
    /// differences between their servers follow from those.
    is_declared_whole: bool,
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
        let declared: BTreeSet<String> = names(&case.about);
        let set = case.settings_asked_differently();
        // A published option file need not have all that its server was started with.
        let is_known = !case.contenders.iter().any(|one| one.is_asked_by_file);
        Subject {
            asked: names(&case.subject),
            is_declared_whole: is_known
                && !set.is_empty()
                && set.iter().all(|name| declared.contains(name)),
            declared,
        }
    }

    /// The name by which the contest is about the difference of this fact between two contenders: the fact's own, its
    /// class, or a variable that it was read from. `None` when it is not, also where a declared variable is only one of
    /// several that make the difference.
    #[must_use]
    pub fn names(
        &self,
        fact: &Fact,
        case: &Case,
        indices: [usize; 2],
        readings: &[Reading<'_>; 2],
    ) -> Option<Named> {
        let class = variable_name(fact.class.id);
        let whole = [&class, &fact.name];
        let whole = whole.into_iter().find(|name| self.declared.contains(*name));
        let declared = || {
            let name = self.declared_variable(fact, readings)?;
            let is_whole = self.is_declared_whole
                || outcome_of(fact, readings) != Outcome::Differs
                || self.explains(fact, case, indices, readings);
            is_whole.then_some(name)
        };
        let named = |name: &str, is_declared| Named {
            name: name.to_owned(),
            is_declared,
        };
        if let Some(name) = whole.map(String::as_str).or_else(declared) {
            return Some(named(name, true));
        }
        let read = readings.iter().flat_map(|reading| &reading.from);
        let read = read.map(|read| read.name.as_str());
        let mut asked = [class.as_str(), &fact.name].into_iter().chain(read);
        let is_asked = |name: &&str| self.asked.contains(*name) && !self.declared.contains(*name);
        asked.find(is_asked).map(|name| named(name, false))
    }

    /// The declared variable that a fact was read from on a side.
    #[must_use]
    pub fn declared_variable<'r>(
        &self,
        fact: &Fact,
        readings: &'r [Reading<'_>; 2],
    ) -> Option<&'r str> {
        let mut read = readings.iter().flat_map(|reading| &reading.from);
        let is_declared = |name: &&str| *name != fact.name && self.declared.contains(*name);
        read.find_map(|read| Some(read.name.as_str()).filter(is_declared))
    }

    /// True when the declared variables make the whole difference of a fact: each contender, given those of the other,
    /// has the other's value.
    fn explains(
        &self,
        fact: &Fact,
        case: &Case,
        indices: [usize; 2],
        readings: &[Reading<'_>; 2],
    ) -> bool {
        let [Some(one), Some(two)] = [readings[0].value(), readings[1].value()] else {
            return false;
        };
        let pair = indices.map(|index| &case.contenders[index]);
        let value = |evidence: ServerEvidence| {
            let mut alone = Case::of(vec![evidence]);
            alone.host.clone_from(&case.host);
            reading::read(fact, &alone, 0).value().cloned()
        };
        let is = |evidence: ServerEvidence, expected: &Value| {
            value(evidence).is_some_and(|found| is_near(fact.compare, &found, expected))
        };
        if is(self.with_those_of(pair[0], pair[1]), two)
            && is(self.with_those_of(pair[1], pair[0]), one)
        {
            return true;
        }
        // Servers of one build have the same variables; those of two have other names for the same.
        let rows = [readings[0].row, readings[1].row];
        let is_one_row = matches!(rows, [Some(first), Some(second)] if std::ptr::eq(first, second));
        if is_one_row {
            return false;
        }
        let brought = |target: Option<&Value>| {
            let shown = [target.unwrap_or(two), target.unwrap_or(one)];
            [0, 1].map(|side| value(self.brought_to(shown[side], fact, case, indices[side])))
        };
        match fact.target.as_ref().and_then(reading::constant) {
            Some(target) => {
                let [first, second] = brought(Some(&target));
                first
                    .zip(second)
                    .is_some_and(|(first, second)| is_near(fact.compare, &first, &second))
            }
            None => {
                let [first, second] = brought(None);
                let is = |found: Option<Value>, expected: &Value| {
                    found.is_some_and(|found| is_near(fact.compare, &found, expected))
                };
                is(first, two) || is(second, one)
            }
        }
    }

    /// A server with the declared variables of another, where both have them.
    fn with_those_of(&self, server: &ServerEvidence, other: &ServerEvidence) -> ServerEvidence {
        let mut server = server.clone();
        for name in &self.declared {
            let shown = server.variables.get_mut(name);
            if let Some((shown, others)) = shown.zip(other.variables.get(name)) {
                shown.clone_from(others);
            }
        }
        server
    }

    /// A contender with its declared variables set as a fact needs for `target`, and as the facts that it follows from
    /// need for their own targets.
    fn brought_to(&self, target: &Value, fact: &Fact, case: &Case, index: usize) -> ServerEvidence {
        let mut server = case.contenders[index].clone();
        let reading = reading::read(fact, case, index);
        let names = reading.row.map(|row| expression::names(&row.value));
        let names = names.into_iter().flatten();
        let sources = names.filter_map(|name| table().fact(name.strip_prefix("fact.")?));
        let sources = sources.filter_map(|source| {
            let target = reading::constant(source.target.as_ref()?)?;
            Some((reading::read(source, case, index), target))
        });
        let own = std::iter::once((reading.clone(), target.clone()));
        for (reading, target) in own.chain(sources) {
            for (name, value) in reading::settings_for(&reading, &target, case, index) {
                let variable = name.strip_prefix("skip_").unwrap_or(&name);
                if self.declared.contains(variable) {
                    predict(&mut server, &name, &value);
                }
            }
        }
        server
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
    let is_about = |(fact, indices, readings): &Compared| {
        subject.names(fact, case, *indices, readings).is_some()
    };
    compared(case)
        .filter(is_about)
        .map(|(fact, _, _)| fact.class.id)
        .collect()
}

/// A note for every declared name in which no contender differs from the baseline.
#[must_use]
pub fn without_difference(case: &Case) -> Vec<Finding> {
    let is_unmoved = |name: &&String| {
        let name = variable_name(name);
        let is_of = |(fact, _, readings): &Compared| {
            let mut read = readings.iter().flat_map(|reading| &reading.from);
            fact.name == name
                || variable_name(fact.class.id) == name
                || read.any(|read| read.name == name)
        };
        let mut outcomes = compared(case)
            .filter(is_of)
            .map(|(fact, _, readings)| outcome_of(fact, &readings))
            .peekable();
        outcomes.peek().is_some()
            && outcomes.all(|outcome| matches!(outcome, Outcome::Equal | Outcome::Equivalent))
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

/// A fact, the indices of the baseline and of a contender, and what is read of each.
type Compared = (&'static Fact, [usize; 2], [Reading<'static>; 2]);

/// Every fact of every contender beside the baseline's.
fn compared(case: &Case) -> impl Iterator<Item = Compared> + '_ {
    let pairs = case.others().map(|other| [case.baseline, other]);
    pairs.flat_map(move |indices| {
        table().facts.iter().map(move |fact| {
            let readings = indices.map(|index| reading::read(fact, case, index));
            (fact, indices, readings)
        })
    })
}
