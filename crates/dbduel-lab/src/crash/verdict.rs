//! State of a server after a cut: its own checks, the workload's conditions, and every acknowledged commit.

use std::time::Duration;

use anyhow::Result;
use dbduel_driver::Connection;
use dbduel_machine::interrupt;
use dbduel_server::StartError;
use dbduel_workloads::Moment;
use dbduel_workloads::fill;
use serde::Serialize;

use super::pages;
use super::stand::{OnVolume, Stand};
use super::traced_load::Promised;

/// Limit of recorded complaints of one kind.
const COMPLAINTS_MAX: usize = 5;
/// Limit of characters of a recorded complaint.
const COMPLAINT_LENGTH: usize = 400;
/// Timeout of a clean shutdown after a recovery.
const STOP_DEADLINE: Duration = Duration::from_secs(120);

/// Result of the checks after one cut.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CutVerdict {
    /// Seconds from the start of the server to the first login; absent when it did not start.
    pub recovery_s: Option<f64>,
    /// Missing acknowledged commits; absent when they could not be counted.
    pub lost: Option<u64>,
    /// Seconds from the acknowledgement of the oldest lost commit to the cut.
    pub oldest_lost_s: Option<f64>,
    /// The first lost commit, in words.
    pub example: Option<String>,
    /// Commits present without an acknowledgement: at most one per client.
    pub unacknowledged: Option<u64>,
    /// Violated conditions of the workload: a transaction's changes are missing or orphaned.
    pub violated: Vec<String>,
    /// Errors of the server: it does not start, ends, refuses a table or a statement.
    pub complaints: Vec<String>,
    /// Pages with a wrong checksum after recovery and a clean shutdown.
    pub bad_pages: Vec<String>,
}

impl CutVerdict {
    fn complain(&mut self, text: &str) {
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(shortened(text));
        }
    }
}

fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(COMPLAINT_LENGTH).collect()
}

/// The verdict on a server that did not start.
pub fn refused(why: &StartError) -> CutVerdict {
    let mut verdict = CutVerdict::default();
    verdict.complain(&match why {
        StartError::Died { status, tail, .. } => {
            format!("it ended during startup with {status}: {}", errors_in(tail))
        }
        StartError::NeverReady { waited, tail, .. } => {
            format!(
                "no login within {} s: {}",
                waited.as_secs(),
                errors_in(tail)
            )
        }
        other => other.to_string(),
    });
    verdict
}

/// Checks everything, then shuts the server down and checks its pages.
///
/// # Errors
/// When the user interrupts, or the volume cannot be unmounted.
pub fn judge(
    stand: &Stand<'_>,
    mut started: OnVolume,
    promised: &Promised<'_>,
) -> Result<CutVerdict> {
    let mut verdict = CutVerdict {
        recovery_s: Some(started.server.ready_after().as_secs_f64()),
        ..CutVerdict::default()
    };
    if let Err(error) = look(stand, &started, promised, &mut verdict) {
        interrupt::check()?;
        verdict.complain(&format!("{error:#}"));
    }
    if let Some(status) = started.server.ended()? {
        let log = started.server.log_since_start();
        verdict.complain(&format!(
            "the server ended with {status}; {}",
            errors_in(&log)
        ));
        started.cut()?;
        return Ok(verdict);
    }
    for line in error_lines(&started.server.log_since_start()) {
        verdict.complain(line);
    }
    let stopped = started.stop(STOP_DEADLINE)?;
    if stopped.is_orderly {
        verdict.bad_pages = pages::bad_pages(stand, COMPLAINTS_MAX)?;
    } else {
        verdict.complain("the server did not shut down cleanly after its recovery");
    }
    stopped.unmount()?;
    Ok(verdict)
}

fn look(
    stand: &Stand<'_>,
    started: &OnVolume,
    promised: &Promised<'_>,
    verdict: &mut CutVerdict,
) -> Result<()> {
    let mut connection = stand.connect(started)?;
    count_lost(stand, &mut connection, promised, verdict)?;
    check_tables(stand, &mut connection, verdict)?;
    let moment = Moment::AfterLoad;
    let verification = stand
        .workload
        .verify(stand.parameters(), &mut connection, moment)?;
    let violated = verification.conditions.iter();
    let violated = violated.filter(|condition| !condition.holds());
    verdict.violated = violated
        .map(|condition| {
            let example = condition.example.as_deref().unwrap_or("none");
            shortened(&format!(
                "{} ({} violations, for example {example})",
                condition.about, condition.violations
            ))
        })
        .collect();
    Ok(())
}

fn count_lost(
    stand: &Stand<'_>,
    connection: &mut Connection,
    promised: &Promised<'_>,
    verdict: &mut CutVerdict,
) -> Result<()> {
    let mut lost_of = |count: usize| {
        let log = promised.log(count);
        let checked = stand
            .workload
            .verify_commits(stand.parameters(), connection, &log);
        checked.map(Option::unwrap_or_default)
    };
    let all = promised.acknowledged.len();
    let checked = lost_of(all)?;
    verdict.lost = Some(checked.lost);
    verdict.example = checked.example;
    verdict.unacknowledged = Some(checked.beyond);
    if checked.lost > 0 {
        // The shortest beginning of the log that lacks something ends with the oldest lost commit.
        let (mut complete, mut lacking) = (0, all);
        while lacking - complete > 1 {
            let middle = complete + (lacking - complete) / 2;
            match lost_of(middle)?.lost {
                0 => complete = middle,
                _ => lacking = middle,
            }
        }
        let oldest = &promised.acknowledged[lacking - 1];
        let age_ns = promised.cut_ns.saturating_sub(oldest.at_ns);
        verdict.oldest_lost_s = Some(age_ns as f64 / 1e9);
    }
    Ok(())
}

/// Lets the server check the workload's tables.
fn check_tables(
    stand: &Stand<'_>,
    connection: &mut Connection,
    verdict: &mut CutVerdict,
) -> Result<()> {
    let tables = stand.workload.tables(stand.dialect, stand.parameters());
    for table in tables {
        for complaint in fill::complaints(connection, &table.name)? {
            verdict.complain(&format!("table `{}`: {complaint}", table.name));
        }
    }
    Ok(())
}

/// Lines by which MySQL, MariaDB and PostgreSQL report errors. PostgreSQL's `FATAL` is left out: it also marks a login
/// that comes too early, and one that ends the server shows by its exit.
fn error_lines(log: &str) -> impl Iterator<Item = &str> {
    let is_error = |line: &&str| {
        let marks = ["[ERROR]", " ERROR: ", " PANIC: "];
        marks.iter().any(|mark| line.contains(mark))
    };
    log.lines().filter(is_error)
}

/// Error lines of a log; for PostgreSQL the reason of its end, but not of a refused early login. The end of the log
/// when there are none.
fn errors_in(log: &str) -> String {
    let ended_by = log
        .lines()
        .filter(|line| line.contains(" FATAL: ") && !line.contains("the database system is "));
    let errors: Vec<&str> = error_lines(log).chain(ended_by).take(3).collect();
    match errors.is_empty() {
        true => log.lines().rev().take(3).collect::<Vec<_>>().join(" / "),
        false => errors.join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_a_server_is_said_and_not_the_logins_that_came_too_early() {
        let log = "LOG:  starting\n\
                   [9] FATAL:  the database system is starting up\n\
                   [7] FATAL:  invalid page in block 3 of relation base/5/16400\n\
                   [1] LOG:  database system is shut down\n";
        assert_eq!(
            errors_in(log),
            "[7] FATAL:  invalid page in block 3 of relation base/5/16400"
        );
        let without = log.replace("FATAL:  invalid", "LOG:  invalid");
        assert!(errors_in(&without).starts_with("[1] LOG:  database system is shut down / "));
        assert_eq!(errors_in("a [ERROR] b\nc"), "a [ERROR] b");
    }
}
