//! Facts of two contenders side by side: equal, equivalent, or a finding.
//!
//! Weighs each difference by its class, by whom it favours, and by whether the contest is about it.

mod outcome;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use dbduel_record::event::Severity;
use serde::{Deserialize, Serialize};

use super::case::{Case, Contest};
use super::classes::Weight;
use super::reading::{self, Reading, State};
use super::remedy::{equalising, remedy_settings};
use super::subject::Subject;
use super::table::{Compare, Fact, Faster, Row, table};
use super::value::Value;
use crate::finding::{Finding, FindingKind, RemedySetting, Side};
pub use outcome::{Outcome, is_near, outcome_of};
use outcome::{differing_flags, parts};

/// A fact of a contender beside that of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Class of the fact.
    pub class: String,
    /// Name of the fact.
    pub fact: String,
    /// Title of the fact.
    pub title: String,
    /// How the two relate.
    pub outcome: Outcome,
    /// The baseline and the other.
    pub sides: [Side; 2],
}

/// Every fact of `other` beside the baseline's, and the findings about those that differ.
#[must_use]
pub fn compare(case: &Case, other: usize) -> (Vec<Comparison>, Vec<Finding>) {
    let subject = Subject::of(case);
    let mut comparisons = Vec::new();
    let mut findings = Vec::new();
    for fact in &table().facts {
        let pair = Pair::of(fact, case, other);
        if pair
            .readings
            .iter()
            .all(|reading| reading.state == State::NotThere)
        {
            continue;
        }
        let outcome = pair.outcome();
        findings.extend(pair.finding(outcome, &subject));
        comparisons.push(Comparison {
            class: fact.class.id.to_owned(),
            fact: fact.name.clone(),
            title: fact.title.clone(),
            outcome,
            sides: pair.sides(),
        });
    }
    (comparisons, findings)
}

/// Added to the claim of a difference that weighs less because a default is inferred.
const INFERRED: &str = "; the default is inferred from the manual or other versions: read it from the server, or set it";

/// How much a difference in this fact weighs, which may depend on whether a side set it on purpose.
#[must_use]
pub fn weight(
    fact: &Fact,
    case: &Case,
    indices: &[usize; 2],
    readings: &[Reading<'_>; 2],
) -> Weight {
    let was_asked_for = indices.iter().zip(readings).any(|(&index, reading)| {
        let asked = &case.contenders[index].asked;
        reading
            .from
            .iter()
            .any(|read| asked.contains_key(&read.name))
    });
    if was_asked_for {
        fact.weight.max(fact.asked_weight)
    } else {
        fact.weight
    }
}

/// The line of an experiment that declares these names beside those that it declares already.
#[must_use]
pub fn declaration(declared: &[String], names: &[&str]) -> String {
    let declared = declared.iter().map(String::as_str);
    let mut all: Vec<&str> = declared.collect();
    for name in names {
        if !all.contains(name) {
            all.push(name);
        }
    }
    let all: Vec<String> = all.iter().map(|name| format!("\"{name}\"")).collect();
    format!("about = [{}]", all.join(", "))
}

struct Pair<'a> {
    fact: &'a Fact,
    case: &'a Case,
    indices: [usize; 2],
    readings: [Reading<'a>; 2],
}

impl<'a> Pair<'a> {
    fn of(fact: &'a Fact, case: &'a Case, other: usize) -> Self {
        let indices = [case.baseline, other];
        Pair {
            fact,
            case,
            indices,
            readings: indices.map(|index| reading::read(fact, case, index)),
        }
    }

    fn outcome(&self) -> Outcome {
        outcome_of(self.fact, &self.readings)
    }

    fn name(&self, side: usize) -> &str {
        &self.case.contenders[self.indices[side]].name
    }

    fn shown(&self, side: usize) -> String {
        let shown = self.value_shown(side);
        let reading = &self.readings[side];
        if reading.is_inferred && reading.value().is_some() {
            format!("{shown} (inferred)")
        } else {
            shown
        }
    }

    /// True when both contenders are of one product, or of related ones.
    fn are_related(&self) -> bool {
        let [one, two] = self
            .indices
            .map(|index| self.case.contenders[index].product);
        one.is_related_to(two)
    }

    /// True when a side has its value by the design of its product.
    fn is_by_design(&self) -> bool {
        let mut rows = self.readings.iter().filter_map(|reading| reading.row);
        rows.any(|row| row.is_by_design(self.are_related()))
    }

    /// The parameter by which clients of the workload decide this fact on a side.
    fn set_by_clients(&self) -> Option<&'static str> {
        let mut sides = self.readings.iter().zip(self.indices);
        sides.find_map(|(reading, index)| reading::set_by_clients(reading, self.case, index))
    }

    /// True when a setting changes the value, but would not make it that of the other product.
    fn is_apart(&self, reading: &Reading<'_>) -> bool {
        let is = |row: &&Row| row.is_by_design(self.are_related()) && !row.set.is_empty();
        reading.row.as_ref().is_some_and(is)
    }

    /// True when a side rests on a default that is inferred from other versions.
    fn is_inferred(&self) -> bool {
        self.readings.iter().any(|reading| reading.is_inferred)
    }

    fn value_shown(&self, side: usize) -> String {
        match &self.readings[side].state {
            State::Known(_)
                if self.fact.is_plain
                    && let [read] = self.readings[side].from.as_slice() =>
            {
                if read.value.is_empty() {
                    "''".to_owned()
                } else {
                    read.value.clone()
                }
            }
            State::Known(value) => {
                let row = self.readings[side].row;
                let label = row.and_then(|row| row.labels.get(&value.to_string()));
                label.cloned().unwrap_or_else(|| self.fact.show(value))
            }
            State::NotThere => "does not exist".to_owned(),
            State::NotSeen => "no evidence".to_owned(),
            State::Unreadable(missing) => format!("unreadable without {}", missing.join(", ")),
        }
    }

    fn side_by_side(&self) -> String {
        [0, 1]
            .map(|side| format!("`{}` {}", self.name(side), self.shown(side)))
            .join(", ")
    }

    fn sides(&self) -> [Side; 2] {
        [0, 1].map(|side| Side {
            contender: self.name(side).to_owned(),
            value: self.shown(side),
            from: self.readings[side].from.clone(),
        })
    }

    /// The name of the side that is faster by this fact.
    fn favoured(&self) -> Option<&str> {
        let [one, two] = [self.readings[0].value()?, self.readings[1].value()?];
        let first_is_faster = match &self.fact.faster {
            Faster::Unknown => return None,
            Faster::Larger => one.order(two)?.is_gt(),
            Faster::Smaller => one.order(two)?.is_lt(),
            Faster::Words(words) => {
                let rank = |value: &Value| words.iter().position(|word| *word == value.to_string());
                rank(one)? < rank(two)?
            }
        };
        Some(self.name(usize::from(!first_is_faster)))
    }

    fn finding(&self, outcome: Outcome, subject: &Subject) -> Option<Finding> {
        match outcome {
            Outcome::Differs => Some(self.difference(subject)),
            Outcome::Unreadable => Some(self.unreadable()),
            // Facts without evidence and facts of one side are listed together.
            Outcome::Equal | Outcome::Equivalent | Outcome::OneSided | Outcome::NotSeen => None,
        }
    }

    fn difference(&self, subject: &Subject) -> Finding {
        let weight = weight(self.fact, self.case, &self.indices, &self.readings);
        let is_architecture = self.is_by_design();
        let is_listed_only = self.case.contest != Contest::Equalised;
        let named = subject.names(self.fact, self.case, self.indices, &self.readings);
        let (kind, severity, remark) = match (weight, &named) {
            (Weight::Durability, Some(named)) if named.is_declared => (
                FindingKind::Declared,
                Severity::Note,
                "; the contest is about this, so the faster side is also less durable",
            ),
            (Weight::Durability, Some(_)) => (
                FindingKind::Declared,
                Severity::Doubt,
                "; the experiment asks for this, and the faster side is also less durable",
            ),
            (_, Some(_)) => (
                FindingKind::Declared,
                Severity::Note,
                "; the contest is about this",
            ),
            (Weight::Semantics | Weight::Performance, None) if is_architecture => (
                FindingKind::Architecture,
                Severity::Note,
                "; one of them has it by design",
            ),
            (Weight::Durability | Weight::Semantics, None) => {
                (FindingKind::NotComparable, weight.severity(), "")
            }
            (Weight::Performance, None) if is_listed_only => (
                FindingKind::Difference,
                Severity::Note,
                "; listed, not equalised",
            ),
            (Weight::Performance, None) if matches!(self.fact.class.id, "P22" | "P23") => {
                (FindingKind::ClientSide, Severity::Doubt, "")
            }
            (Weight::Performance, None) => (FindingKind::Advantage, Severity::Doubt, ""),
            (Weight::Information, None) => (FindingKind::Difference, Severity::Note, ""),
        };
        let (kind, severity, remark) = if self.is_inferred() && severity > Severity::Note {
            (FindingKind::Difference, Severity::Note, INFERRED)
        } else {
            (kind, severity, remark)
        };
        let is_declared = named.as_ref().is_some_and(|named| named.is_declared);
        let short = subject.declared_variable(self.fact, &self.readings);
        let short = short.filter(|_| !is_declared).map(|name| {
            format!("; `{name}`, which the contest is about, does not account for all of it")
        });
        let short = short.unwrap_or_default();
        let favours = self.favoured().map(str::to_owned);
        let favour = favours
            .as_ref()
            .map(|name| format!(", in favour of `{name}`"))
            .unwrap_or_default();
        let claim = match self.list_difference() {
            Some(words) => format!("{}: {words}{favour}{short}{remark}.", self.fact.title),
            None => format!(
                "{}: {}{favour}{short}{remark}.",
                self.fact.title,
                self.side_by_side()
            ),
        };
        let (mut remedy, remedy_settings) = self.remedy();
        if let Some(named) = named
            && severity > Severity::Note
        {
            let about = declaration(&self.case.about, &[&named.name]);
            remedy = format!(
                "If it is intended, declare it in the experiment: {about}. Otherwise: {remedy}"
            );
        }
        Finding {
            kind,
            favours,
            remedy_settings,
            ..self.about_fact(severity, &claim, &remedy)
        }
    }

    fn about_fact(&self, severity: Severity, claim: &str, remedy: &str) -> Finding {
        let about = [self.name(0), self.name(1)];
        Finding {
            rule: self.fact.name.clone(),
            class: self.fact.class.id.to_owned(),
            why: self.fact.why.clone(),
            evidence: self.sides().into(),
            ..Finding::new(severity, &about, self.sentence(claim), remedy)
        }
    }

    /// Entries that only one of two lists has; `None` where a value is not a list.
    fn list_difference(&self) -> Option<String> {
        if !matches!(self.fact.compare, Compare::List | Compare::Flags) {
            return None;
        }
        let [one, two] = [0, 1].map(|side| self.readings[side].value().map(parts));
        let (one, two) = (one.unwrap_or_default(), two.unwrap_or_default());
        let (one, two) = match self.fact.compare {
            Compare::Flags => differing_flags(&one, &two),
            _ => (one, two),
        };
        let only = |side: usize, mine: &BTreeSet<String>, others: &BTreeSet<String>| {
            let only: Vec<&str> = mine.difference(others).map(String::as_str).collect();
            (!only.is_empty())
                .then(|| format!("only `{}` has {}", self.name(side), only.join(", ")))
        };
        let sides = [only(0, &one, &two), only(1, &two, &one)];
        Some(sides.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }

    fn unreadable(&self) -> Finding {
        let claim = format!("{}: {}.", self.fact.title, self.side_by_side());
        let severity = match self.is_inferred() {
            true => Severity::Note,
            false => self.fact.weight.severity_unread(),
        };
        let remedy = "Provide the full output of SHOW GLOBAL VARIABLES; an unreadable value does not count as equal.";
        let finding = self.about_fact(severity, &claim, remedy);
        finding.of(FindingKind::Unreadable)
    }

    /// With a capital at the start, unless that is the name of a variable.
    fn sentence(&self, text: &str) -> String {
        let mut characters = text.chars();
        match characters.next() {
            Some(first) if !self.fact.is_plain => first.to_uppercase().chain(characters).collect(),
            _ => text.to_owned(),
        }
    }

    /// The settings that remove a difference: both sides to the table's target, or the other to the baseline, or the
    /// reverse.
    fn remedy(&self) -> (String, Vec<RemedySetting>) {
        let none = "No setting makes them equal; say so beside the result.";
        let unsettled = self.fact.remedy.as_deref().unwrap_or(none).to_owned();
        if self.readings.iter().any(|reading| self.is_apart(reading)) {
            return (unsettled, Vec::new());
        }
        if let Some(parameter) = self.set_by_clients() {
            let remedy = format!(
                "Clients set it themselves, whatever the servers are set to: give the workload's parameter `{parameter}` under [workload] a value that means the same on both."
            );
            return (remedy, Vec::new());
        }
        let settings = equalising(self.fact, self.case, &self.indices, &self.readings);
        // Durability is never given up to be equal.
        let may_mirror = self.fact.weight < Weight::Durability || self.fact.target.is_none();
        let mirrored = match (self.readings[0].value(), self.readings[1].value()) {
            (Some(first), Some(second)) if may_mirror => {
                [self.settings_to(1, first), self.settings_to(0, second)]
            }
            _ => [Vec::new(), Vec::new()],
        };
        let words = |settings: &[RemedySetting]| {
            let of_each = settings.chunk_by(|one, next| one.contender == next.contender);
            let words = of_each.map(|settings| {
                let set: Vec<String> = settings
                    .iter()
                    .map(|setting| format!("{} = {}", setting.name, setting.value))
                    .collect();
                format!("{} on `{}`", set.join(" and "), settings[0].contender)
            });
            words.collect::<Vec<_>>().join(", ")
        };
        let mut ways: Vec<String> = Vec::new();
        for way in [&settings, &mirrored[0], &mirrored[1]] {
            let way = words(way);
            if !way.is_empty() && !ways.contains(&way) {
                ways.push(way);
            }
        }
        if ways.is_empty() {
            return (unsettled, settings);
        }
        (format!("Set {}.", ways.join(", or ")), settings)
    }

    fn settings_to(&self, side: usize, target: &Value) -> Vec<RemedySetting> {
        remedy_settings(&self.readings[side], target, self.case, self.indices[side])
    }
}
