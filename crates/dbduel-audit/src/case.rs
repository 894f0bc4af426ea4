//! Input of an audit: the contenders' servers and the circumstances of the contest.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_record::Plan;
use dbduel_record::facts::Host;
use serde::{Deserialize, Serialize};

use super::evidence::ServerEvidence;
use super::table::table;
use super::value::{Value, option_value};
use crate::session;

/// Facts that become the subject of a contest whose contenders are asked to store the tables differently.
const HOW_TABLES_ARE_STORED: [&str; 3] = ["table.compression", "row.format", "table.engine"];

/// The kind of comparison that a contest claims to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Contest {
    /// Performance settings are meant to be equal; each difference is a finding.
    #[default]
    Equalised,
    /// Servers as they come; differences are listed, durability still counts.
    OutOfTheBox,
    /// Each side set by an expert on it; differences are listed, durability still counts.
    Tuned,
}

/// The evidence that an audit rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Servers as configured; no measurement is claimed.
    #[default]
    Configuration,
    /// Published results; missing information that is needed to judge them is a finding.
    Results,
}

/// An accepted finding, and why. Written down so that readers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiver {
    /// A class (`P3`), a fact (`flush.threads`) or a rule (`R7`).
    pub of: String,
    /// The reason.
    pub reason: String,
}

impl Waiver {
    /// True when it accepts findings of this fact or rule, or of this class.
    #[must_use]
    pub fn is_of(&self, rule: &str, class: &str) -> bool {
        let names = |name: &str| !name.is_empty() && self.of.eq_ignore_ascii_case(name);
        names(rule) || names(class)
    }
}

/// Complete input of an audit.
#[derive(Debug, Clone)]
pub struct Case {
    /// The contenders; at least two for a comparison.
    pub contenders: Vec<ServerEvidence>,
    /// Index of the baseline.
    pub baseline: usize,
    /// In a designed contest, name of the only contender that is compared with the baseline: every other contender
    /// takes each setting from one of these two.
    pub target: Option<String>,
    /// The machine, when it is known.
    pub host: Option<Host>,
    /// The kind of comparison that the contest claims to be.
    pub contest: Contest,
    /// The evidence that the audit rests on.
    pub stage: Stage,
    /// Classes, facts, rules or variables that the contest is declared to be about: a difference in them is
    /// disclosed and weighs nothing.
    pub about: Vec<String>,
    /// Facts or variables in which an experiment makes its contenders differ without declaring it. Such a difference
    /// is not held against performance, but against durability.
    pub subject: Vec<String>,
    /// Accepted findings.
    pub waivers: Vec<Waiver>,
    /// Largest number of clients of the run, when it is known.
    pub clients: Option<u32>,
    /// Throughput of each contender that has a verdict, ÷ the baseline's; contenders without a verdict are left out.
    /// `None` for results whose verdicts are not known.
    pub margins: Option<BTreeMap<String, f64>>,
    /// Contenders with an observed resource that differs from the baseline's by enough that it may explain a result.
    pub explained: BTreeSet<String>,
}

impl Case {
    /// A case with contenders only, the first of them the baseline.
    #[must_use]
    pub fn of(contenders: Vec<ServerEvidence>) -> Self {
        Case {
            contenders,
            baseline: 0,
            target: None,
            host: None,
            contest: Contest::default(),
            stage: Stage::default(),
            about: Vec::new(),
            subject: Vec::new(),
            waivers: Vec::new(),
            clients: None,
            margins: None,
            explained: BTreeSet::new(),
        }
    }

    /// Indices of the contenders that are compared with the baseline.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<'_> {
        let is_compared = |&index: &usize| match &self.target {
            Some(target) => self.contenders[index].name == *target,
            None => index != self.baseline,
        };
        (0..self.contenders.len()).filter(is_compared)
    }

    /// Limits the comparison to the two contenders that a designed contest compares.
    pub fn declare_design(&mut self, plan: &Plan) {
        let target = plan.design.as_ref().map(|design| design.target);
        let target = target.and_then(|target| plan.contenders.get(target));
        self.target = target.map(|target| target.name.clone());
    }

    /// True when the variables of the baseline and of this contender are known.
    #[must_use]
    pub fn is_comparable(&self, other: usize) -> bool {
        [self.baseline, other]
            .iter()
            .all(|&index| !self.contenders[index].variables.is_empty())
    }

    /// The names of the baseline and of this contender.
    #[must_use]
    pub fn pair(&self, other: usize) -> [&str; 2] {
        [self.baseline, other].map(|index| self.contenders[index].name.as_str())
    }

    /// Adds an experiment's waivers: class, fact or rule, and the reason.
    pub fn waive(&mut self, waivers: &BTreeMap<String, String>) {
        let waivers = waivers.iter().map(|(of, reason)| Waiver {
            of: of.clone(),
            reason: reason.clone(),
        });
        self.waivers.extend(waivers);
    }

    /// Makes table storage a subject of the contest when the plan asks contenders to store tables differently.
    pub fn declare_tables(&mut self, plan: &Plan) {
        let mut tables = plan.contenders.iter().map(|contender| &contender.tables);
        let first = tables.next();
        if tables.any(|others| Some(others) != first) {
            self.subject
                .extend(HOW_TABLES_ARE_STORED.map(str::to_owned));
        }
    }

    /// Adds the machines that the plan's servers run on.
    pub fn set_hosts(&mut self, plan: &Plan) {
        for evidence in &mut self.contenders {
            let mut contenders = plan.contenders.iter();
            let contender = contenders.find(|one| one.name == evidence.name);
            evidence.host = contender.and_then(|one| one.host.clone());
        }
    }

    /// Adds the session settings that the clients of the plan's workload make.
    pub fn set_sessions(&mut self, plan: &Plan) {
        for evidence in &mut self.contenders {
            let mut contenders = plan.contenders.iter();
            let Some(contender) = contenders.find(|one| one.name == evidence.name) else {
                continue;
            };
            let workload = plan.workload_of(contender);
            evidence.set_by_clients =
                session::session(&workload.name, &workload.parameters, evidence.product);
        }
    }

    /// Makes the settings that an experiment varies a subject of the contest, when the contenders run the same build.
    /// Between different products settings differ because the products do, and say nothing about the question.
    pub fn declare_what_was_asked(&mut self) {
        let asked = self.settings_asked_differently();
        self.subject.extend(asked);
    }

    /// Variables that the contenders were asked to set differently, when they run the same build.
    #[must_use]
    pub(crate) fn settings_asked_differently(&self) -> Vec<String> {
        let Some((first, rest)) = self.contenders.split_first() else {
            return Vec::new();
        };
        if rest
            .iter()
            .any(|other| (other.product, other.version) != (first.product, first.version))
        {
            return Vec::new();
        }
        let names = self
            .contenders
            .iter()
            .flat_map(|contender| contender.asked.keys());
        // Contenders must differ in their places and ports, whatever the contest is about.
        let names = names.filter(|name| !table().is_of_the_instance(name));
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        let value = |contender: &ServerEvidence, name: &str| {
            contender
                .asked
                .get(name)
                .map(|asked| Value::read(&option_value(asked)))
        };
        let differs = |name: &&String| {
            let reference = value(first, name);
            rest.iter()
                .any(|other| match (&reference, value(other, name)) {
                    (Some(one), Some(two)) => !one.is_same(&two),
                    (one, two) => one.is_some() != two.is_some(),
                })
        };
        names.into_iter().filter(differs).cloned().collect()
    }
}
