//! Work per transaction by the servers' counters, as a possible cause of a difference.
//!
//! Counters that differ are evidence, not a proved cause; counters that do not differ leave a result
//! without any.

use dbduel_record::event::Severity;

use super::compared::unclassified_of;
use crate::compare::{Outcome, compare};
use crate::evidence::ServerEvidence;
use crate::finding::{Finding, FindingKind, Side};
use crate::reading::Read;
use crate::{Case, Product, Stage};

/// Less work per transaction than this explains nothing (a rule of thumb).
const WORK_MIN: f64 = 0.01;
/// A difference by more than this factor may explain a result (a rule of thumb).
pub const TELLING_RATIO: f64 = 1.2;
/// A margin beyond this needs a cause (a rule of thumb).
const MARGIN: f64 = 1.1;

/// Counters of work, with their units.
const WORK: &[(&str, &str)] = &[
    ("innodb_data_reads", "data reads"),
    ("innodb_data_writes", "data writes"),
    ("innodb_data_fsyncs", "syncs"),
    ("innodb_data_written", "bytes written"),
    ("innodb_buffer_pool_read_requests", "page requests"),
    ("innodb_num_pages_page_compressed", "pages compressed"),
    ("innodb_num_pages_page_decompressed", "pages decompressed"),
    ("innodb_row_lock_waits", "row lock waits"),
    ("handler_read_key", "index look-ups"),
    ("handler_read_next", "rows read in order"),
    ("bytes_sent", "bytes sent"),
];

/// The same of PostgreSQL: columns of `pg_stat_database`, of all databases together.
const POSTGRESQL_WORK: &[(&str, &str)] = &[
    ("blks_read", "data reads"),
    ("blks_hit", "page requests without a read"),
    ("tup_returned", "rows read"),
    ("tup_fetched", "index look-ups"),
    ("tup_inserted", "rows inserted"),
    ("tup_updated", "rows updated"),
    ("tup_deleted", "rows deleted"),
    ("temp_bytes", "bytes of temporary files"),
    ("deadlocks", "deadlocks"),
];

/// Work per transaction, by kind.
type Profile = Vec<(&'static str, f64)>;

pub fn unexplained(case: &Case) -> Vec<Finding> {
    if case.stage != Stage::Results {
        return Vec::new();
    }
    let is_large = |server: &ServerEvidence| {
        let margin = case.margins.as_ref()?.get(&server.name);
        Some(margin.is_some_and(|margin| margin.max(1.0 / margin) > MARGIN))
    };
    let baseline = &case.contenders[case.baseline];
    let explained = case.others().filter_map(|other| {
        let server = &case.contenders[other];
        // What is undecided needs no cause, and a small difference has no doubt about it.
        let is_large = is_large(server);
        if is_large == Some(false) {
            return None;
        }
        // Differences that the samplers saw are no proved cause; yet no doubt says beside them that nothing differs.
        let is_explained = case.explained.contains(&server.name);
        let profiles = profile(baseline).zip(profile(server));
        let is_uncounted = [baseline, server]
            .iter()
            .any(|one| counts_of(one) == Counts::None);
        let mut finding = match profiles {
            None if is_uncounted => incomparable(baseline, server),
            None if is_explained => return None,
            None => without_counters(baseline, server),
            Some(_) if counts_of(baseline) != counts_of(server) => incomparable(baseline, server),
            Some((one, two)) => {
                let doubt = if is_explained {
                    Doubt::None
                } else if is_large.is_none() {
                    Doubt::Unknown
                } else if are_alike(case, other) {
                    Doubt::Chance
                } else {
                    Doubt::Open
                };
                explain((baseline, one), (server, two), doubt)?
            }
        };
        finding.about = case.pair(other).map(str::to_owned).into();
        Some(finding)
    });
    explained.collect()
}

/// How to read a result without a known cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Nothing open: another resource differs with it.
    None,
    /// It is not known whether there is a difference at all.
    Unknown,
    /// The contenders are alike, so the verdict is probably one that the confidence leaves to chance.
    Chance,
    /// Which of their differences it was.
    Open,
}

/// True when no fact of the two differs, the contest is about no setting, and no variable without a
/// class differs: then there is nothing that a difference of speed could come from, and a verdict
/// is one of those that the confidence leaves to chance.
fn are_alike(case: &Case, other: usize) -> bool {
    let (comparisons, findings) = compare(case, other);
    let differs = |outcome: Outcome| {
        !matches!(
            outcome,
            Outcome::Equal | Outcome::Equivalent | Outcome::NotSeen
        )
    };
    findings.is_empty()
        && case.subject.is_empty()
        && case.about.is_empty()
        && unclassified_of(case, other).is_none()
        && !comparisons.iter().any(|one| differs(one.outcome))
}

fn without_counters(one: &ServerEvidence, two: &ServerEvidence) -> Finding {
    let claim = format!(
        "Cause unknown: no counters of the work per transaction of `{}` and `{}`.",
        one.name, two.name
    );
    let remedy = match counts_of(one) {
        Counts::OfMySql | Counts::None => {
            "Publish SHOW GLOBAL STATUS from before and after the run."
        }
        Counts::OfPostgreSql => "Publish pg_stat_database from before and after the run.",
    };
    Finding::new(Severity::Doubt, &[], claim, remedy).of(FindingKind::Undisclosed)
}

/// The family of counters that a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    OfMySql,
    OfPostgreSql,
    /// SQLite has none.
    None,
}

fn counts_of(server: &ServerEvidence) -> Counts {
    match server.product {
        Product::PostgreSql => Counts::OfPostgreSql,
        Product::Sqlite => Counts::None,
        Product::MySql | Product::MariaDb | Product::Percona => Counts::OfMySql,
    }
}

/// Counters of two products that do not count the same, or of one that counts nothing.
fn incomparable(one: &ServerEvidence, two: &ServerEvidence) -> Finding {
    let claim = format!(
        "Cause not compared: `{}` and `{}` do not count work per transaction alike.",
        one.name, two.name
    );
    let remedy = "Compare CPU time, bytes written and syncs per transaction.";
    Finding::new(Severity::Note, &[], claim, remedy).of(FindingKind::Relevance)
}

fn explain(
    one: (&ServerEvidence, Profile),
    two: (&ServerEvidence, Profile),
    doubt: Doubt,
) -> Option<Finding> {
    let between = format!("between `{}` and `{}`", one.0.name, two.0.name);
    let pairs = one
        .1
        .iter()
        .zip(&two.1)
        .map(|(first, second)| (first.0, first.1, second.1));
    let is_apart = |a: f64, b: f64| a.max(b) > WORK_MIN && a.max(b) > TELLING_RATIO * a.min(b);
    let apart: Vec<String> = pairs
        .filter(|(_, a, b)| is_apart(*a, *b))
        .map(|(name, a, b)| format!("{name} {a:.2} and {b:.2}"))
        .collect();
    if apart.is_empty() {
        if doubt == Doubt::None {
            return None;
        }
        let chance = if doubt == Doubt::Chance {
            ", and no compared fact differs: may be chance"
        } else {
            ""
        };
        let claim = format!(
            "Cause not established: no counter of work per transaction differs by more than a factor of {TELLING_RATIO} (a rule of thumb) {between}{chance}."
        );
        let severity = if doubt == Doubt::Open {
            Severity::Doubt
        } else {
            Severity::Note
        };
        let remedy = "Check CPU time, waits and the client.";
        return Some(Finding::new(severity, &[], claim, remedy).of(FindingKind::Relevance));
    }
    let claim = format!(
        "Work per transaction that differs {between}: {}.",
        apart.join(", ")
    );
    let remedy = "Explain the result by these, or state that they do not.";
    let finding = Finding::new(Severity::Note, &[], claim, remedy).of(FindingKind::Relevance);
    Some(finding.resting_on([one, two].map(|(server, work)| side(server, &work))))
}

fn side(server: &ServerEvidence, work: &Profile) -> Side {
    let read = |(name, rate): &(&str, f64)| Read {
        name: (*name).to_owned(),
        value: format!("{rate:.4}"),
    };
    Side {
        contender: server.name.clone(),
        value: format!("{} counters per transaction", work.len()),
        from: work.iter().map(read).collect(),
    }
}

/// Work divided by committed transactions; by statements where nothing was committed explicitly.
fn profile(server: &ServerEvidence) -> Option<Profile> {
    if counts_of(server) == Counts::None {
        return None;
    }
    if counts_of(server) == Counts::OfPostgreSql {
        let total = |column: &str| server.delta_of_all("pg_stat_database/", column);
        let transactions = total("xact_commit").filter(|&commits| commits > 0.0)?;
        let work = POSTGRESQL_WORK.iter();
        let work = work.filter_map(|(column, name)| Some((*name, total(column)? / transactions)));
        return Some(work.collect());
    }
    let commits = server.delta("com_commit").filter(|&commits| commits > 0.0);
    let transactions = commits.or_else(|| server.statements())?;
    let per_transaction = |counter: &str| server.delta(counter).unwrap_or(0.0) / transactions;
    Some(
        WORK.iter()
            .map(|(counter, name)| (*name, per_transaction(counter)))
            .collect(),
    )
}
