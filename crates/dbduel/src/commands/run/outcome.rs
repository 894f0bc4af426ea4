//! End of a contest: its reports, status lines and exit code.

use std::path::Path;

use anyhow::Result;
use dbduel_judge::Summary;
use dbduel_judge::summary::RateBracket;
use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::event::EndReason;

use super::RunOptions;
use crate::commands::{fail_if, record_reports};
use crate::console;
use crate::exit::Exit;

/// The page that people look at, in the record's directory.
const PAGE: &str = "report.html";

/// Shows the result of a contest and turns it into an exit code.
pub(super) fn finish(
    record: &Path,
    ended: Result<EndReason>,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    match ended {
        Ok(EndReason::Interrupted) => {
            show(record, options)?;
            console::status_line(&format!(
                "interrupted; resume with `dbduel run {0}`, for which its data stay in the home until then; without the record \
                 `{0}` the next run removes them",
                record.display()
            ));
            Ok(Exit::Interrupted)
        }
        Ok(_) => show(record, options),
        Err(error) => {
            // What was measured can be looked at; the error is the one to report, not a second one.
            let _ = match has_slices(record) {
                true => show(record, options).map(drop),
                false => record_reports::write(record, None).map(drop),
            };
            Err(error)
        }
    }
}

fn has_slices(record: &Path) -> bool {
    Record::open(record).is_ok_and(|record| record.finished_slices().next().is_some())
}

/// Writes the record's reports, prints the terminal one and turns the verdicts into an exit code.
pub(super) fn show(record: &Path, options: &RunOptions<'_>) -> Result<Exit> {
    let length = options.length.on(console::height());
    let summary = record_reports::write(record, Some(length))?;
    console::print(&format!("\nreport: {}\n", record.join(PAGE).display()))?;
    fail_if::explain(&summary, options.fail_if);
    Ok(fail_if::exit(&summary, options.fail_if))
}

/// The exit code of the verdicts.
#[must_use]
pub fn exit_of(summary: &Summary) -> Exit {
    if has(summary, Verdict::Void) {
        Exit::Void
    } else if is_undecided(summary) {
        Exit::Undecided
    } else {
        Exit::Done
    }
}

/// True when more time may decide something, even where another part of the answer is void.
#[must_use]
pub fn is_undecided(summary: &Summary) -> bool {
    if summary.search.is_some() {
        // What was asked is the highest rate, not who is faster at one of them.
        let mut found = summary.objectives.iter().map(|one| one.highest_rate);
        let is_bracketed = |bracket: Option<RateBracket>| {
            bracket.is_some_and(|one| one.met_up_to.is_some() && one.missed_from.is_some())
        };
        !found.all(is_bracketed)
    } else {
        has(summary, Verdict::Undecided)
    }
}

fn has(summary: &Summary, verdict: Verdict) -> bool {
    let duels = || summary.duels.iter();
    let comparisons = duels().flat_map(|duel| &duel.comparisons);
    let divided = duels().filter_map(|duel| duel.attribution.as_ref());
    let effects = divided.flat_map(|attribution| &attribution.effects);
    let mut verdicts = comparisons
        .map(|comparison| comparison.verdict)
        .chain(effects.map(|effect| effect.verdict));
    verdicts.any(|found| found == verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge as judge;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn what_is_void_hides_nothing_that_is_undecided() {
        let scenario = Scenario {
            blocks: 3,
            ..Scenario::duel()
        };
        let (mut summary, _) = judge::summarise(&scenario.record());
        assert_eq!(exit_of(&summary), Exit::Undecided);
        summary.duels[0].comparisons[0].verdict = Verdict::Void;
        assert_eq!(exit_of(&summary), Exit::Void);
        assert!(is_undecided(&summary));
        for comparison in summary
            .duels
            .iter_mut()
            .flat_map(|duel| &mut duel.comparisons)
        {
            comparison.verdict = Verdict::Void;
        }
        assert!(!is_undecided(&summary));
    }
}
