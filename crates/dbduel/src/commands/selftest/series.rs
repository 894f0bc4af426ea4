//! A series of short duels with a known answer: how many verdicts are right.

use anyhow::Result;
use dbduel_record::Verdict;
use dbduel_record::facts::{SelfTest, SelfTestSeries};
use dbduel_report::words;
use dbduel_server::Home;
use dbduel_stats::median;
use dbduel_stats::proportion::proportion;

use super::duel::{Match, Outcome};
use super::steadiness::{self, Tally};
use crate::console;
use crate::exit::Exit;

/// Probability that the interval of a share is wrong.
const ALPHA: f64 = 0.05;

/// Conducts the duels, prints each and the counts, and adds these to the results.
///
/// # Errors
/// When a duel cannot be conducted.
pub fn run(home: &Home, set: &Match, duels: u32, kept: &mut SelfTest) -> Result<Exit> {
    let mut series = SelfTestSeries {
        injected_share: set.injected_share,
        stalls: set.stalls,
        budget_s: set.budget_s,
        horizon: set.horizon,
        confidence: 0.95,
        ..SelfTestSeries::default()
    };
    let mut exit = Exit::Done;
    let mut stopped_share = 0.0;
    let mut tally = Tally::default();
    let mut decided_s: Vec<f64> = Vec::new();
    for number in 1..=duels {
        let Some(outcome) = set.run_duel(home)? else {
            exit = Exit::Interrupted;
            break;
        };
        count(&mut series, &outcome);
        stopped_share += outcome.stopped_share;
        series.at.clone_from(&outcome.summary.created);
        series.server.clone_from(&outcome.server);
        let ran_s: f64 = outcome
            .resolution
            .last()
            .map_or(0.0, |reached| 60.0 * reached.minutes);
        let line = format!(
            "duel {number} of {duels}: {}, {} of load",
            outcome.described(),
            words::duration(ran_s)
        );
        say(set, &line)?;
        if !matches!(outcome.verdict(), Verdict::Undecided | Verdict::Void) {
            decided_s.push(ran_s);
        }
        tally.add(outcome.steadiness);
    }
    if series.duels == 0 {
        return Ok(exit);
    }
    stopped_share /= f64::from(series.duels);
    series.stopped_share = stopped_share;
    series.steadiness = tally.summed();
    series.decided_s = median(&mut decided_s);
    say(set, &text(&series)?)?;
    let is_injected = series.injected_share > 0.0;
    say(set, &steadiness::table(&series.steadiness, is_injected))?;
    let is_too_wrong = is_worse_than_promised(&series)?;
    // One series of each handicap: the newest.
    let handicap = |one: &SelfTestSeries| (one.injected_share > 0.0, one.stalls.is_some());
    kept.series
        .retain(|other| handicap(other) != handicap(&series));
    kept.series.push(series);
    if is_too_wrong && exit == Exit::Done {
        exit = Exit::Void;
    }
    Ok(exit)
}

fn say(set: &Match, text: &str) -> Result<()> {
    if set.is_quiet {
        console::status_line(text);
    } else {
        console::print(&format!("{text}\n"))?;
    }
    Ok(())
}

fn count(series: &mut SelfTestSeries, outcome: &Outcome) {
    series.duels += 1;
    match outcome.verdict() {
        Verdict::Faster => series.faster += 1,
        Verdict::Slower => series.slower += 1,
        Verdict::Equivalent => series.equivalent += 1,
        Verdict::Undecided => series.undecided += 1,
        Verdict::Void => series.void += 1,
    }
    let truth = truth(series, outcome.stopped_share);
    let holds = outcome
        .comparison()
        .and_then(|comparison| comparison.ratio.interval())
        .is_some_and(|(low, high)| low <= truth && truth <= high);
    series.intervals_hold += u32::from(holds);
}

/// The true ratio of a duel in which the second server was stopped for this share. A duel has few stalls, so for them
/// the long-run share is used.
fn truth(series: &SelfTestSeries, stopped_share: f64) -> f64 {
    1.0 - match series.stalls {
        Some(stalls) => stalls.stopped_share(),
        None => stopped_share,
    }
}

/// Number of wrong verdicts.
fn wrong(series: &SelfTestSeries) -> u32 {
    match series.injected_share {
        0.0 => series.faster + series.slower,
        _ => series.faster + series.equivalent,
    }
}

/// Number of right verdicts.
fn right(series: &SelfTestSeries) -> u32 {
    match series.injected_share {
        0.0 => series.equivalent,
        _ => series.slower,
    }
}

/// True when the series rules out the promised error rate.
fn is_worse_than_promised(series: &SelfTestSeries) -> Result<bool> {
    let wrong = proportion(wrong(series) as usize, series.duels as usize, ALPHA)?;
    Ok(wrong.low > 1.0 - series.confidence)
}

fn text(series: &SelfTestSeries) -> Result<String> {
    let of = |count: u32| -> Result<String> {
        let share = proportion(count as usize, series.duels as usize, ALPHA)?;
        Ok(format!(
            "{count} of {} ({}; 95 % interval {} to {})",
            series.duels,
            words::share(share.value),
            words::share(share.low),
            words::share(share.high)
        ))
    };
    let truth = match (series.injected_share, series.stalls) {
        (0.0, _) => "The two were equal".to_owned(),
        (planned, Some(stalls)) => format!(
            "The second was stopped for {stalls} awake: {} of the time in the long run ({} measured). True ratio: {}",
            words::share(planned),
            words::share(series.stopped_share),
            words::ratio(truth(series, series.stopped_share))
        ),
        (planned, None) => format!(
            "The second was stopped for {} of its slices ({} were planned)",
            words::share(series.stopped_share),
            words::share(planned)
        ),
    };
    let mut text = format!(
        "\n{truth}.\n  right      {}\n  wrong      {}\n  undecided  {}\n  interval contains the \
         true ratio {}\n",
        of(right(series))?,
        of(wrong(series))?,
        of(series.undecided)?,
        of(series.intervals_hold)?
    );
    if let Some(decided_s) = series.decided_s {
        text.push_str(&format!(
            "  load to a verdict, median of those decided {}\n",
            words::duration(decided_s)
        ));
    }
    if series.void > 0 {
        text.push_str(&format!("  void       {}\n", of(series.void)?));
    }
    text.push_str(match is_worse_than_promised(series)? {
        true => "More verdicts are wrong than the confidence allows: do not trust verdicts on this machine.",
        false => "The number of wrong verdicts is consistent with the confidence of 95 %.",
    });
    Ok(text)
}

#[cfg(test)]
mod tests {
    use dbduel_record::plan::InjectedStalls;

    use super::*;

    fn series(injected_share: f64, counts: [u32; 4]) -> SelfTestSeries {
        let [faster, slower, equivalent, undecided] = counts;
        SelfTestSeries {
            injected_share,
            duels: counts.iter().sum(),
            faster,
            slower,
            equivalent,
            undecided,
            confidence: 0.95,
            ..SelfTestSeries::default()
        }
    }

    #[test]
    fn what_is_right_depends_on_the_truth() {
        let equal = series(0.0, [1, 1, 30, 8]);
        assert_eq!((right(&equal), wrong(&equal)), (30, 2));
        let injected = series(0.1, [0, 35, 1, 4]);
        assert_eq!((right(&injected), wrong(&injected)), (35, 1));
    }

    #[test]
    fn the_truth_about_stalls_is_that_of_the_long_run() {
        let pulses = series(0.2, [0, 9, 1, 0]);
        assert_eq!(truth(&pulses, 0.25), 0.75);
        let stalls = SelfTestSeries {
            stalls: Some(InjectedStalls {
                stall_s: 1.0,
                every_s: [4.0, 4.0],
            }),
            stopped_share: 0.19,
            ..pulses
        };
        assert_eq!(truth(&stalls, 0.25), 0.8);
        let text = text(&stalls).unwrap();
        let expected = "The second was stopped for 1 s every 4 s awake: 20 % of the time in the long run (19 % measured). \
                        True ratio: −20.0 %.";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn only_a_count_that_rules_the_promise_out_is_worse_than_promised() {
        assert!(!is_worse_than_promised(&series(0.0, [1, 1, 38, 0])).unwrap());
        assert!(!is_worse_than_promised(&series(0.0, [2, 3, 35, 0])).unwrap());
        assert!(is_worse_than_promised(&series(0.0, [5, 5, 30, 0])).unwrap());
        assert!(
            text(&series(0.0, [5, 5, 30, 0]))
                .unwrap()
                .contains("do not trust")
        );
    }
}
