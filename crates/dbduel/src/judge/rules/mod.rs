//! What a reader must be told about a run: rules are rows of a table.
//!
//! A rule reads the record and the summary and answers with findings. It does not sort, print or
//! change a verdict; a finding of severity void takes verdicts away in [`crate::judge::summarise`].

mod lab;
mod load;
mod observe;
mod order;
mod order_entry;
mod run;
mod server;
mod steady;
mod verdict;

use dbduel_record::event::{Event, Finding, Severity};

use super::evidence::Evidence;
use super::fairness;
use super::summary::Summary;

/// What rules look at.
pub struct Case<'a> {
    /// The record.
    pub evidence: &'a Evidence<'a>,
    /// What was concluded from it, verdicts before any of them is void.
    pub summary: &'a Summary,
}

/// A finding, and the level that it is confined to.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The finding.
    pub finding: Finding,
    /// Index into the plan's levels; absent when it is about all of them.
    pub level: Option<usize>,
}

/// One rule.
pub struct Rule {
    /// Stable name, `subject.what`.
    pub id: &'static str,
    /// Why it matters, one sentence.
    pub why: &'static str,
    /// The findings in a case.
    pub check: fn(&Case<'_>) -> Vec<Found>,
}

/// Every rule of the judge, in the order in which a report lists equal weights.
pub const RULES: &[Rule] = &[
    Rule {
        id: "lab.injected",
        why: "A handicap that the lab gave proves the lab and says nothing about the servers.",
        check: lab::injected,
    },
    Rule {
        id: "lab.identical-contenders",
        why: "A server that differs from itself shows what chance and the lab add to every other difference.",
        check: verdict::identical,
    },
    Rule {
        id: "load.nothing-committed",
        why: "Without committed transactions there is no throughput to compare.",
        check: load::nothing_committed,
    },
    Rule {
        id: "load.silent-slices",
        why: "A slice without a commit has no logarithm and is counted by convention.",
        check: load::silent_slices,
    },
    Rule {
        id: "data.digest",
        why: "Contenders that hold different data do different work.",
        check: server::digests,
    },
    Rule {
        id: "load.failures",
        why: "A transaction that was given up is work not done; a server that refuses work looks fast.",
        check: load::failures,
    },
    Rule {
        id: "load.retries",
        why: "Repeated attempts are load that throughput does not show.",
        check: load::retries,
    },
    Rule {
        id: "load.skipped",
        why: "Arrivals that were never sent make an overloaded server look better than it is.",
        check: load::skipped,
    },
    Rule {
        id: "load.saturated",
        why: "A load process without processor time to spare measures itself.",
        check: load::saturated,
    },
    Rule {
        id: "lab.starved",
        why: "Slices in which foreign processes took the load's processors are noise that costs time, and a bias when \
              they prefer one side.",
        check: lab::starved,
    },
    Rule {
        id: "lab.outlying-slices",
        why: "A few slices far from all others may carry a result; they are told and never dropped.",
        check: lab::outlying,
    },
    Rule {
        id: "lab.carry-over",
        why: "A switch that costs more than the guard is charged to slices, and to one side more when it recovers slower.",
        check: order::carried_over,
    },
    Rule {
        id: "load.lag",
        why: "Transactions that the load process sends late add its own delay to every latency.",
        check: load::lag,
    },
    Rule {
        id: "load.stalled",
        why: "While the load process stalls a server has nothing to do, which looks as if it were slow.",
        check: load::stalled,
    },
    Rule {
        id: "warm-up.not-steady",
        why: "A server that still warms up is compared at a moment, not in its steady state.",
        check: run::not_steady,
    },
    Rule {
        id: "steady.never-settled",
        why: "A cell that changes until its end is compared on its way, not in its steady state.",
        check: steady::never_settled,
    },
    Rule {
        id: "steady.settled-late",
        why: "Slices of a cell that still settles are part of its figures.",
        check: steady::settled_late,
    },
    Rule {
        id: "steady.level-entered",
        why: "Caches and logs that another load level filled take part in a slice's result.",
        check: steady::level_entered,
    },
    Rule {
        id: "server.unmanaged",
        why: "A server that cannot be frozen works in the background while others are measured.",
        check: server::unmanaged,
    },
    Rule {
        id: "server.died",
        why: "A crash is a result, and a restarted server is another instance.",
        check: run::server_died,
    },
    Rule {
        id: "run.lost-slices",
        why: "What is missing may be missing for a reason that favours one side.",
        check: run::lost_slices,
    },
    Rule {
        id: "run.resumed",
        why: "A restart alone can move a server by a percent.",
        check: run::resumed,
    },
    Rule {
        id: "run.extended",
        why: "Whoever may go on until the answer pleases needs an error probability that allows it.",
        check: run::extended,
    },
    Rule {
        id: "run.unfinished",
        why: "A run that was cut short did not take the time that it was given.",
        check: run::unfinished,
    },
    Rule {
        id: "observe.window",
        why: "A counter that was read over another time than the slice says of the slice only what is even over time.",
        check: observe::window,
    },
    Rule {
        id: "observe.waits-one-sided",
        why: "Waits that only one side counts explain nothing, and counting them costs that side time.",
        check: observe::waits_one_sided,
    },
    Rule {
        id: "record.complaints",
        why: "What could not be read does not count.",
        check: run::complaints,
    },
    Rule {
        id: "verdict.short-horizon",
        why: "Stalls rarer than the measured time are invisible, whatever the statistics.",
        check: verdict::short_horizon,
    },
    Rule {
        id: "verdict.skewed-blocks",
        why: "When robust and plain estimates part, a few blocks carry the result.",
        check: verdict::skewed,
    },
    Rule {
        id: "verdict.ratio-changed",
        why: "A ratio that changes during the run has no single value.",
        check: verdict::ratio_changed,
    },
    Rule {
        id: "verdict.uneven-stalls",
        why: "Stalls belong to a server's performance, but few of them are luck.",
        check: verdict::uneven_stalls,
    },
    Rule {
        id: "order-entry.unaudited",
        why: "A derived workload must not be taken for the audited benchmark.",
        check: order_entry::unaudited,
    },
    Rule {
        id: "order-entry.response-time",
        why: "Throughput that keeps its users waiting is not what the specification counts.",
        check: order_entry::response_times,
    },
    Rule {
        id: "order-entry.mix",
        why: "NOPM grows when the other transactions are left out.",
        check: order_entry::mix,
    },
    Rule {
        id: "order-entry.rollbacks",
        why: "Orders that are rolled back on purpose are part of the work.",
        check: order_entry::rollbacks,
    },
    Rule {
        id: "order-entry.skipped-deliveries",
        why: "A delivery without an order is hardly any work.",
        check: order_entry::skipped_deliveries,
    },
    Rule {
        id: "order-entry.scaling",
        why: "Terminals that wait as people do bound what a warehouse can bring.",
        check: order_entry::scaling,
    },
    Rule {
        id: "server.builds-differ",
        why: "Different products or versions differ in more than the settings asked for.",
        check: server::builds_differ,
    },
    Rule {
        id: "server.settings-differ",
        why: "A difference that nobody asked for may be the cause of the result.",
        check: server::settings_differ,
    },
];

/// Why a rule matters; `None` for findings of the journal, which come from elsewhere.
#[must_use]
pub fn why(rule: &str) -> Option<&'static str> {
    RULES.iter().find(|row| row.id == rule).map(|row| row.why)
}

/// The findings of the journal, then those of the audit, then those of every rule.
pub fn check_all(evidence: &Evidence<'_>, summary: &Summary) -> Vec<Found> {
    let noticed = evidence
        .record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::Noticed { finding } => Some(Found {
                finding: finding.clone(),
                level: None,
            }),
            _ => None,
        });
    let mut found: Vec<Found> = Vec::new();
    for one in noticed {
        // A resumed run notices the same thing again.
        let audit = summary.audit.as_ref();
        if !found.contains(&one) && !fairness::is_superseded(&one.finding, audit) {
            found.push(one);
        }
    }
    found.extend(summary.audit.iter().flat_map(fairness::found));
    let case = Case { evidence, summary };
    for rule in RULES {
        for mut one in (rule.check)(&case) {
            rule.id.clone_into(&mut one.finding.rule);
            found.push(one);
        }
    }
    found
}

/// A finding about some contenders; the rule's name is filled in by the table.
fn finding(severity: Severity, about: &[&str], claim: String, remedy: &str) -> Found {
    let about = about.iter().map(|name| (*name).to_owned()).collect();
    let finding = Finding {
        rule: String::new(),
        severity,
        about,
        claim,
        remedy: remedy.to_owned(),
    };
    Found {
        finding,
        level: None,
    }
}

impl Found {
    fn at(self, level: usize) -> Self {
        Self {
            level: Some(level),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_unique_name_and_a_reason() {
        let mut seen = std::collections::BTreeSet::new();
        for rule in RULES {
            assert!(seen.insert(rule.id), "`{}` stands twice", rule.id);
            assert!(
                rule.id.contains('.'),
                "`{}`: a name is `subject.what`",
                rule.id
            );
            assert!(
                rule.why.ends_with('.'),
                "`{}`: the reason is a sentence",
                rule.id
            );
        }
    }
}
