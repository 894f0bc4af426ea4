//! Rules about the contest as a whole, for problems that a single contender does not show.

use dbduel_record::event::Severity;
use dbduel_text::percent;

use super::Contender;
use crate::compare::{Outcome, compare};
use crate::evidence::ServerEvidence;
use crate::finding::{Finding, FindingKind};
use crate::subject;
use crate::{Case, Stage};

/// Data up to this share of the pool are in memory (a rule of thumb).
const IN_MEMORY_MAX: f64 = 0.9;
/// Data beyond this share of the pool are on disk (a rule of thumb).
const ON_DISK_MIN: f64 = 1.2;
/// Sizes of one dataset that differ by no more than this share are one size (a rule of thumb).
const SIZE_SWING: f64 = 0.1;
/// Rates that differ by more than this factor are reported (a rule of thumb).
const RATE_RATIO: f64 = 2.0;
/// Rates closer than this many standard deviations may be one (a rule of thumb). More than the usual two or three:
/// deadlocks come in clusters.
const RATE_DEVIATIONS: f64 = 5.0;

/// Classes whose facts decide how much of the data a pool holds: its size, and how tables are stored.
const OF_DATA_AND_POOL: &[&str] = &["P1", "S4", "D7"];

pub fn data_against_pool(case: &Case) -> Vec<Finding> {
    let subject = subject::classes(case);
    if OF_DATA_AND_POOL.iter().any(|class| subject.contains(class)) {
        return Vec::new();
    }
    let class_of = |index: usize| -> Option<(&'static str, f64)> {
        let data = case.contenders[index].data_bytes? as f64;
        let ratio = data / Contender { case, index }.number("pool.bytes")?;
        let class = match ratio {
            ratio if ratio < IN_MEMORY_MAX => "in memory",
            ratio if ratio <= ON_DISK_MIN => "at the boundary",
            _ => "larger than memory",
        };
        Some((class, ratio))
    };
    let Some(reference) = class_of(case.baseline) else {
        return Vec::new();
    };
    case.others()
        .filter_map(|other| {
            let found = class_of(other)?;
            if found.0 == reference.0 {
                return None;
            }
            let [one, two] = case.pair(other);
            let claim = format!(
                "Data are {} on `{one}` ({:.2} × its pool) and {} on `{two}` ({:.2} × its pool).",
                reference.0, reference.1, found.0, found.1
            );
            // Equal data take a little more or less room each time that they are loaded.
            let is_close =
                found.1.max(reference.1) <= (1.0 + SIZE_SWING) * found.1.min(reference.1);
            let (kind, severity) = if is_close {
                (FindingKind::Relevance, Severity::Note)
            } else {
                (FindingKind::Advantage, Severity::Doubt)
            };
            Some(
                Finding::new(
                    severity,
                    &[one, two],
                    claim,
                    "Choose a data or pool size that puts all sides into the same class.",
                )
                .of(kind),
            )
        })
        .collect()
}

pub fn temporary_tables(case: &Case) -> Vec<Finding> {
    let rate = |server: &ServerEvidence| {
        let made = server
            .delta("created_tmp_tables")
            .filter(|&made| made >= 1000.0)?;
        Some(Rate {
            count: server.delta("created_tmp_disk_tables")?,
            of: made,
        })
    };
    rates_that_differ(
        case,
        rate,
        0.01,
        percent::of,
        "Share of temporary tables that went to disk",
        "Set the same memory for temporary tables on all sides.",
    )
}

pub fn rollbacks(case: &Case) -> Vec<Finding> {
    let rate = |server: &ServerEvidence| {
        let commits = server
            .delta("com_commit")
            .filter(|&commits| commits >= 1000.0)?;
        let failed = server
            .delta("innodb_deadlocks")
            .unwrap_or(0.0)
            .max(server.delta("com_rollback").unwrap_or(0.0));
        Some(Rate {
            count: failed,
            of: commits,
        })
    };
    rates_that_differ(
        case,
        rate,
        0.001,
        |share| format!("{:.2} per 1000", share * 1000.0),
        "Transactions rolled back per commit",
        "Count failed transactions separately from throughput, equally on all sides.",
    )
}

/// A count and its total.
#[derive(Clone, Copy)]
struct Rate {
    count: f64,
    of: f64,
}

impl Rate {
    fn value(self) -> f64 {
        self.count / self.of
    }

    /// True when two servers with one and the same rate would often differ like this: within
    /// [`RATE_DEVIATIONS`] standard deviations of a difference of two proportions.
    fn is_chance(self, other: Rate) -> bool {
        let pooled = (self.count + other.count) / (self.of + other.of);
        let variance = (pooled * (1.0 - pooled)).max(0.0) * (1.0 / self.of + 1.0 / other.of);
        (self.value() - other.value()).abs() <= RATE_DEVIATIONS * variance.sqrt()
    }
}

/// Findings about contenders whose rate is above `floor` and another one's by more than the usual factor.
fn rates_that_differ(
    case: &Case,
    rate: impl Fn(&ServerEvidence) -> Option<Rate>,
    floor: f64,
    show: impl Fn(f64) -> String,
    title: &str,
    remedy: &str,
) -> Vec<Finding> {
    let baseline = &case.contenders[case.baseline];
    let Some(reference) = rate(baseline) else {
        return Vec::new();
    };
    case.others()
        .filter_map(|other| {
            let server = &case.contenders[other];
            let found = rate(server)?;
            let (one, two) = (reference.value(), found.value());
            let (low, high) = (one.min(two), one.max(two));
            if high < floor || high <= RATE_RATIO * low || reference.is_chance(found) {
                return None;
            }
            let claim = format!(
                "{title}: {} on `{}`, {} on `{}`, more than a factor of {RATE_RATIO} apart (a rule of thumb).",
                show(one),
                baseline.name,
                show(two),
                server.name
            );
            Some(Finding::new(Severity::Doubt, &case.pair(other), claim, remedy).of(FindingKind::Advantage))
        })
        .collect()
}

pub fn one_platform(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let host = case.host.as_ref();
    // R51 is about several machines, which may have different devices.
    if host.is_some_and(|host| host.server_hosts.len() > 1) {
        return Vec::new();
    }
    let device = host
        .and_then(|host| host.block_device.as_deref())
        .unwrap_or("not named");
    let relies_on_device = (0..case.contenders.len()).any(|index| {
        let protection = Contender { case, index }.fact("torn_page.protection");
        protection.is_some_and(|protection| protection.to_string() != "doublewrite")
    });
    let atomic = if relies_on_device {
        "; without a doublewrite buffer the device affects the result too"
    } else {
        ""
    };
    let claim = format!("One machine and one storage device ({device}){atomic}.");
    vec![
        Finding::new(
            Severity::Note,
            &[],
            claim,
            "Repeat on another kind of storage, or limit the conclusion to this one.",
        )
        .of(FindingKind::Relevance),
    ]
}

/// From this number of open differences on, the cause of the result is unknown (a rule of thumb).
const DIFFERENCES_MIN: usize = 2;

pub fn confounded(case: &Case) -> Vec<Finding> {
    case.others()
        .filter_map(|other| {
            let (comparisons, findings) = compare(case, other);
            let open: Vec<&Finding> = findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
            let apart = comparisons.iter().filter(|one| one.outcome == Outcome::Differs).count();
            if open.len() < DIFFERENCES_MIN {
                return None;
            }
            let [one, two] = case.pair(other);
            let names: Vec<&str> = open.iter().map(|finding| finding.rule.as_str()).collect();
            let claim = format!(
                "`{one}` and `{two}` differ in {} facts that can change the result ({}) and {apart} in all; the cause is unknown.",
                open.len(),
                names.join(", ")
            );
            Some(Finding::new(Severity::Note, &[one, two], claim, "Equalise them (`dbduel audit --fix`), then change one at a time.").of(FindingKind::Relevance))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_deadlocks_more_are_chance_and_many_are_not() {
        let rate = |count: f64| Rate {
            count,
            of: 10_000.0,
        };
        assert!(rate(3.0).is_chance(rate(9.0)));
        assert!(!rate(30.0).is_chance(rate(190.0)));
        assert!(rate(0.0).is_chance(rate(0.0)));
    }
}
