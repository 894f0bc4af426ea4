//! Problems of one server alone, or of the contest as a whole.
//!
//! A problem of a server is bias or only makes the result less relevant, depending on the other servers; that is
//! decided here. Limits called a rule of thumb are heuristics and stand in the claim beside the number.

pub mod compared;
pub mod contest;
pub mod debt;
pub mod device;
pub mod disclosure;
pub mod engine;
pub mod general;
pub mod machines;
pub mod memory;
pub mod option_file;
pub mod power_cut;
pub mod taken;
#[cfg(test)]
mod tests;
pub mod torn_pages;
pub mod work;

use dbduel_record::event::Severity;

use crate::classes::Weight;
use crate::evidence::ServerEvidence;
use crate::finding::{Finding, FindingKind, RemedySetting, Side};
use crate::reading::{self, Read};
use crate::table::table;
use crate::value::Value;
use crate::{Case, Contest};

/// A measured value that is less than this many times its limit, on one side alone, is no bias (a rule of thumb).
const EXCESS_MIN: f64 = 2.0;

/// How far a gauge of one server swings within a run (a rule of thumb): its excess is divided by this.
const GAUGE_SWING: f64 = 2.0;

/// One contender of a case.
pub struct Contender<'a> {
    pub case: &'a Case,
    /// Which contender.
    pub index: usize,
}

/// A problem of a contender.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// What is wrong, a clause that follows the contender's name, with the numbers in it.
    pub what: String,
    /// The evidence for it.
    pub from: Vec<Read>,
    /// Suggested action.
    pub remedy: String,
    /// Settings that would help.
    pub set: Vec<(String, String)>,
    /// Another weight than the rule's.
    pub severity: Option<Severity>,
    /// How many times the limit it is, for measured values.
    pub excess: Option<f64>,
}

impl Hit {
    pub(super) fn new(what: String, remedy: &str) -> Self {
        Hit {
            what,
            from: Vec::new(),
            remedy: remedy.to_owned(),
            set: Vec::new(),
            severity: None,
            excess: None,
        }
    }

    pub(super) fn excess(mut self, excess: f64) -> Self {
        self.excess = Some(excess);
        self
    }

    /// The excess of a value that is read once, at the end, and goes up and down during the run.
    pub(super) fn gauge(self, excess: f64) -> Self {
        self.excess(excess / GAUGE_SWING)
    }

    pub(super) fn from(mut self, contender: &Contender<'_>, names: &[&str]) -> Self {
        self.from = contender.reads(names);
        self
    }

    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        self.set.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// One finding for all contenders that the rule hits, weighed by whether it hits all.
pub(super) fn weigh(
    weight: Weight,
    check: fn(&Contender<'_>) -> Option<Hit>,
    case: &Case,
) -> Option<Finding> {
    let hits: Vec<(usize, Hit)> = (0..case.contenders.len())
        .filter_map(|index| Some((index, check(&Contender { case, index })?)))
        .collect();
    let (_, first) = hits.first()?;
    let is_everywhere = hits.len() == case.contenders.len();
    let is_listed_only = case.contest != Contest::Equalised && weight == Weight::Performance;
    // Of two equal servers one may be just above a limit and the other just below.
    let is_close = |(_, hit): &(usize, Hit)| hit.excess.is_some_and(|excess| excess < EXCESS_MIN);
    let is_chance = !is_everywhere && hits.iter().all(is_close);
    let heaviest = hits.iter().filter_map(|(_, hit)| hit.severity).max();
    let (kind, severity) = match heaviest {
        Some(severity) => (FindingKind::Misconfigured, severity),
        None if is_everywhere || is_listed_only || is_chance => {
            (FindingKind::Relevance, weight.severity_unread())
        }
        None => (FindingKind::Misconfigured, weight.severity()),
    };
    let rests_on_inference = |(index, hit): &(usize, Hit)| {
        let inferred = &case.contenders[*index].basis.inferred;
        hit.from.iter().any(|read| inferred.contains(&read.name))
    };
    let severity = if hits.iter().any(rests_on_inference) {
        Severity::Note
    } else {
        severity
    };
    let name = |index: usize| case.contenders[index].name.clone();
    let is_alike =
        is_everywhere && hits.len() > 1 && hits.iter().all(|(_, hit)| hit.what == first.what);
    let claim = if is_alike {
        format!("Each side {}.", first.what)
    } else {
        let clauses: Vec<String> = hits
            .iter()
            .map(|(index, hit)| format!("`{}` {}", name(*index), hit.what))
            .collect();
        format!("{}.", clauses.join("; "))
    };
    let evidence = hits
        .iter()
        .map(|(index, hit)| Side {
            contender: name(*index),
            value: hit.what.clone(),
            from: hit.from.clone(),
        })
        .collect();
    let remedy_settings = hits
        .iter()
        .flat_map(|(index, hit)| {
            hit.set.iter().map(|(setting, value)| RemedySetting {
                contender: name(*index),
                name: setting.clone(),
                value: value.clone(),
            })
        })
        .collect();
    let about: Vec<&str> = hits
        .iter()
        .map(|(index, _)| case.contenders[*index].name.as_str())
        .collect();
    let finding = Finding::new(severity, &about, claim, &first.remedy);
    Some(Finding {
        kind,
        evidence,
        remedy_settings,
        ..finding
    })
}

impl<'a> Contender<'a> {
    pub(super) fn server(&self) -> &'a ServerEvidence {
        &self.case.contenders[self.index]
    }

    /// A fact of this contender.
    pub(super) fn fact(&self, name: &str) -> Option<Value> {
        reading::read(table().fact(name)?, self.case, self.index)
            .value()
            .cloned()
    }

    pub(super) fn number(&self, fact: &str) -> Option<f64> {
        self.fact(fact)?.number()
    }

    /// Value of a variable, as a switch.
    pub(super) fn switch(&self, variable: &str) -> Option<bool> {
        Value::read(self.server().variables.get(variable)?).switch()
    }

    /// Names with what stands there; `after.` and `delta.` before the name of a counter.
    pub(super) fn reads(&self, names: &[&str]) -> Vec<Read> {
        let server = self.server();
        let value = |name: &str| match name.split_once('.') {
            Some(("after", counter)) => server.status_after.get(counter).cloned(),
            Some(("delta", counter)) => server.delta(counter).map(|delta| delta.to_string()),
            _ => server.look_up(name).map(|(raw, _)| raw),
        };
        names
            .iter()
            .filter_map(|name| {
                Some(Read {
                    name: (*name).to_owned(),
                    value: value(name)?,
                })
            })
            .collect()
    }
}
