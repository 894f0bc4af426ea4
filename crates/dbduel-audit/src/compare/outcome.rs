//! Comparison of two readings of one fact: equal in meaning, near enough, or different.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::reading::{Reading, State};
use crate::table::{Compare, Fact};
use crate::value::Value;

/// How two readings of a fact relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The same, and shown the same way.
    Equal,
    /// The same in meaning, or near enough, though settings differ.
    Equivalent,
    /// They differ.
    Differs,
    /// Only one of the servers has anything of the kind.
    OneSided,
    /// Unknown: its source was not examined on a side.
    NotSeen,
    /// Expected on a side, but missing.
    Unreadable,
}

/// How two readings of a fact relate.
#[must_use]
pub fn outcome_of(fact: &Fact, readings: &[Reading<'_>; 2]) -> Outcome {
    let [one, two] = readings;
    match (&one.state, &two.state) {
        (State::Known(first), State::Known(second)) if is_near(fact.compare, first, second) => {
            if one.from == two.from {
                Outcome::Equal
            } else {
                Outcome::Equivalent
            }
        }
        (State::Known(_), State::Known(_)) => Outcome::Differs,
        (State::Unreadable(_), _) | (_, State::Unreadable(_)) => Outcome::Unreadable,
        (State::NotSeen, _) | (_, State::NotSeen) => Outcome::NotSeen,
        (State::NotThere, State::NotThere) => Outcome::Equal,
        (State::NotThere, _) | (_, State::NotThere) => Outcome::OneSided,
    }
}

/// True when two values of a fact are the same in meaning, or near enough.
#[must_use]
pub fn is_near(compare: Compare, one: &Value, two: &Value) -> bool {
    if one.is_same(two) {
        return true;
    }
    let numbers = || Some((one.number()?, two.number()?));
    match compare {
        Compare::Equal | Compare::List => false,
        Compare::Within(share) => {
            numbers().is_some_and(|(a, b)| (a - b).abs() <= share * a.abs().max(b.abs()))
        }
        // The other side may have a word: "until the next checkpoint".
        Compare::WhereBoth => [one, two].iter().any(|value| value.number() == Some(0.0)),
        Compare::Ratio(ratio) => {
            numbers().is_some_and(|(a, b)| a.min(b) > 0.0 && a.max(b) <= ratio * a.min(b))
        }
        Compare::Flags => {
            let (one, two) = differing_flags(&parts(one), &parts(two));
            one.is_empty() && two.is_empty()
        }
    }
}

pub(super) fn parts(list: &Value) -> BTreeSet<String> {
    let list = list.to_string();
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Flags that both sides have and that differ.
pub(super) fn differing_flags(
    one: &BTreeSet<String>,
    two: &BTreeSet<String>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let names =
        |flags: &BTreeSet<String>| flags.iter().map(|flag| name(flag)).collect::<BTreeSet<_>>();
    let (first, second) = (names(one), names(two));
    let of = |flags: &BTreeSet<String>, others: &BTreeSet<String>| {
        flags
            .difference(others)
            .filter(|flag| first.contains(&name(flag)) && second.contains(&name(flag)))
            .cloned()
            .collect()
    };
    (of(one, two), of(two, one))
}
