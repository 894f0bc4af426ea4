//! Durability check after a crash: does the server still have every commit that it acknowledged?
//!
//! Compares the durability log of the record with the server, before new work can replace lost commits.

use std::time::Duration;

use anyhow::Result;
use dbduel_driver::{Connection, Dialect};
use dbduel_record::commits::CommitRange;
use dbduel_record::event::{Notice, Severity};
use dbduel_workloads::CommitCheck;

use super::ContestConfig;
use super::backend::ContenderServer;
use super::journal::Journal;
use dbduel_inspect::facts::scalar;

/// Journals the result, be it loss or none.
///
/// # Errors
/// When the record cannot be written; a server that does not answer is a notice.
pub fn compare(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    log: &[CommitRange],
    journal: &mut Journal<'_>,
) -> Result<()> {
    match verdict(config, resident, log) {
        Some(notice) => Ok(journal.notice(notice)?),
        None => Ok(()),
    }
}

/// As [`compare`], but silent when nothing is lost.
///
/// # Errors
/// As [`compare`].
pub fn compare_quietly(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    log: &[CommitRange],
    journal: &mut Journal<'_>,
) -> Result<()> {
    match verdict(config, resident, log).filter(|notice| notice.severity > Severity::Note) {
        Some(notice) => Ok(journal.notice(notice)?),
        None => Ok(()),
    }
}

/// `None` for a workload that keeps no log.
fn verdict(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    log: &[CommitRange],
) -> Option<Notice> {
    if log.is_empty() {
        return None;
    }
    match ask(config, resident, log) {
        Ok((commit_check, weaker)) => commit_check
            .map(|commit_check| describe(&resident.name, &commit_check, weaker.as_deref())),
        Err(error) => Some(Notice::new(
            "data.commits-unknown",
            Severity::Doubt,
            &[&resident.name],
            format!(
                "could not verify the acknowledged commits of `{}`: {error:#}",
                resident.name
            ),
            "read its log in the record; `dbduel check --against` repeats the comparison",
        )),
    }
}

/// Compares the log, and reads the server's commit durability setting.
fn ask(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    log: &[CommitRange],
) -> Result<(Option<CommitCheck>, Option<String>)> {
    let plan = &config.plan;
    let workload = dbduel_workloads::find(&plan.workload.name)?;
    let mut connection = resident.connect(Duration::from_secs_f64(plan.limits.dataset_s))?;
    let commit_check = workload.verify_commits(&plan.workload.parameters, &mut connection, log)?;
    Ok((commit_check, weaker_promise(&mut connection)))
}

/// The setting that weakens commit durability, as `name = value`; `None` when it promises that each commit is on disk, or cannot be read.
pub fn weaker_promise(connection: &mut Connection) -> Option<String> {
    let (setting, sql, full): (_, _, &[&str]) = match connection.dialect() {
        Dialect::MySql => (
            "innodb_flush_log_at_trx_commit",
            "SELECT @@global.innodb_flush_log_at_trx_commit",
            &["1"],
        ),
        Dialect::PostgreSql => (
            "synchronous_commit",
            "SHOW synchronous_commit",
            &["on", "local", "remote_write", "remote_apply"],
        ),
        Dialect::Sqlite => ("synchronous", "PRAGMA synchronous", &["2", "3"]),
    };
    let value = scalar(connection, sql)?;
    (!full.contains(&value.as_str())).then(|| format!("{setting} = {value}"))
}

fn describe(contender: &str, commit_check: &CommitCheck, weaker: Option<&str>) -> Notice {
    let CommitCheck {
        acknowledged,
        lost,
        example,
        ..
    } = commit_check;
    if *lost == 0 {
        let claim = format!(
            "`{contender}` ended unexpectedly and still has all {acknowledged} commits of the durability log"
        );
        let remedy = "nothing to do";
        return Notice::new(
            "data.commits-kept",
            Severity::Note,
            &[contender],
            claim,
            remedy,
        );
    }
    let example = example.as_deref().unwrap_or("unknown");
    let (severity, promise) = match weaker {
        Some(setting) => (Severity::Doubt, format!(", as {setting} allows")),
        None => (Severity::Void, String::new()),
    };
    Notice::new(
        "data.commits-lost",
        severity,
        &[contender],
        format!(
            "`{contender}` lost {lost} of {acknowledged} acknowledged commits{promise}; the first is \
             {example}"
        ),
        "compare servers with the same durability: innodb_flush_log_at_trx_commit = 1, and sync_binlog = 1 where there is a \
         binary log; synchronous_commit = on for PostgreSQL",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_weighs_as_much_as_the_promise_that_it_breaks() {
        let commit_check = |lost| CommitCheck {
            acknowledged: 100,
            lost,
            example: (lost > 0).then(|| "order 3001".to_owned()),
            beyond: 0,
        };
        for (lost, weaker, severity, part) in [
            (0, None, Severity::Note, "still has all 100 commits"),
            (2, None, Severity::Void, "lost 2 of 100"),
            (2, None, Severity::Void, "the first is order 3001"),
            (2, Some("a = 0"), Severity::Doubt, "as a = 0 allows"),
        ] {
            let found = describe("a", &commit_check(lost), weaker);
            assert_eq!(found.severity, severity, "{found:?}");
            assert!(found.claim.contains(part), "{found:?}");
        }
    }
}
