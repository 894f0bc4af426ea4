//! The workload's conditions on its tables: checked before the first transaction and after the last, and recorded.

use anyhow::{Result, bail};
use dbduel_record::facts::{Condition, Conditions};
use dbduel_workloads::{Moment, Verification, Workload};

use super::ContestConfig;
use super::backend::ContenderServer;
use super::journal::Journal;
use crate::dataset;

/// Checks before the first transaction. `restored` as in [`dbduel_record::Event::DatasetReady`].
///
/// # Errors
/// When the tables cannot be read or a condition is violated: such data cannot be used for a contest.
pub fn before(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    restored: bool,
    journal: &Journal<'_>,
) -> Result<()> {
    // Tables that were found on a running server may have seen transactions.
    let moment = match !resident.backend.is_ours() && restored {
        true => Moment::AfterLoad,
        false => Moment::Fresh,
    };
    config.step(&format!("{}: checking its tables", resident.name));
    let (verification, broken) = dataset::verify(&config.plan, workload, resident, moment)?;
    keep(&resident.name, &verification, "before", journal)?;
    if let Some(notice) = broken {
        bail!("{} Nothing was measured.", notice.claim);
    }
    say(config, &resident.name, &verification);
    Ok(())
}

/// Checks after the last transaction; a violated condition is a notice.
///
/// # Errors
/// When the tables cannot be read or the record cannot be written.
pub fn after(
    config: &ContestConfig<'_>,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
) -> Result<()> {
    let moment = Moment::AfterLoad;
    let (verification, broken) = dataset::verify(&config.plan, workload, resident, moment)?;
    keep(&resident.name, &verification, "after", journal)?;
    match broken {
        Some(notice) => journal.notice(notice)?,
        None => say(config, &resident.name, &verification),
    }
    Ok(())
}

fn keep(
    contender: &str,
    verification: &Verification,
    moment: &str,
    journal: &Journal<'_>,
) -> Result<()> {
    if verification.conditions.is_empty() {
        return Ok(());
    }
    let file = format!("conditions.{moment}.json");
    Ok(journal
        .writer()
        .contender_json(contender, &file, &facts(verification))?)
}

fn say(config: &ContestConfig<'_>, contender: &str, verification: &Verification) {
    let count = verification.conditions.len();
    if count > 0 {
        let seconds: f64 = verification
            .conditions
            .iter()
            .map(|condition| condition.seconds)
            .sum();
        config.remark(&format!(
            "{contender}: {} (checked in {seconds:.1} s)",
            match count {
                1 => "the one condition holds".to_owned(),
                count => format!("all {count} conditions hold"),
            }
        ));
    }
}

/// The result of a check in the record's terms.
#[must_use]
pub fn facts(verification: &Verification) -> Conditions {
    let conditions = verification.conditions.iter().map(|found| Condition {
        name: found.name.to_owned(),
        about: found.about.to_owned(),
        violations: found.violations,
        example: found.example.clone(),
        seconds: found.seconds,
    });
    let counts = verification.counts.iter();
    Conditions {
        conditions: conditions.collect(),
        counts: counts
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect(),
    }
}
