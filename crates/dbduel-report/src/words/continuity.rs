//! Results of the continuity check: verdicts that depend on switching, and each contender in turns against the same
//! without a switch.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Continuity, Contradiction, Duel, Figure};
use dbduel_text::multiple;

use super::{duration, share};

/// One sentence per verdict that long turns contradict, without the full stop.
#[must_use]
pub fn contradictions(summary: &Summary) -> Vec<String> {
    let duels = summary.duels.iter();
    let found = duels.flat_map(|duel| {
        let comparisons = duel.comparisons.iter();
        comparisons.filter_map(|one| {
            let found = one.contradiction.as_ref()?;
            Some(contradiction(summary, duel, one, found))
        })
    });
    found.collect()
}

fn contradiction(
    summary: &Summary,
    duel: &Duel,
    comparison: &Comparison,
    found: &Contradiction,
) -> String {
    format!(
        "The answer depends on the switching: {} has {} the throughput of {} in turns of {}, {} in turns of {} ({}, {} confidence)",
        comparison.contender,
        with_interval(&comparison.ratio),
        summary.baseline,
        duration(found.turn_s),
        with_interval(&found.ratio),
        duration(found.unswitched_s),
        duel.label,
        share(confidence(&found.departure)),
    )
}

fn confidence(figure: &Figure) -> f64 {
    match figure {
        Figure::Estimated { confidence, .. } => *confidence,
        Figure::Bare { .. } | Figure::NotMeasured { .. } => 0.0,
    }
}

/// `5.5× (4.9–6.2)`.
fn with_interval(ratio: &Figure) -> String {
    let value = ratio.value().map(multiple).unwrap_or_default();
    match ratio.interval() {
        Some((low, high)) if high.is_finite() => {
            let bare = |end: f64| multiple(end).trim_end_matches('×').to_owned();
            format!("{value} ({}–{})", bare(low), bare(high))
        }
        _ => value,
    }
}

/// One sentence per level with turns: result of the check and its sensitivity.
#[must_use]
pub fn continuity(summary: &Summary) -> Vec<String> {
    let checked = summary.duels.iter().filter_map(|duel| {
        let checked = match (&duel.continuity, &duel.turns) {
            (Some(continuity), _) => in_turns(continuity),
            (None, Some(_)) => "not checked; the budget holds too few rounds".to_owned(),
            (None, None) => return None,
        };
        let at = match summary.duels.len() {
            1 => String::new(),
            _ => format!(" at {}", duel.label),
        };
        Some(format!("Throughput in turns ÷ continuous{at}: {checked}"))
    });
    checked.collect()
}

fn in_turns(continuity: &Continuity) -> String {
    let of = |value: fn(&dbduel_judge::summary::InTurns) -> Option<&Figure>| {
        let all = continuity.contenders.iter().filter_map(|one| {
            let figure = value(one)?;
            Some(format!("{} {}", one.contender, ratio(figure)))
        });
        all.collect::<Vec<_>>().join(", ")
    };
    let detectable = continuity.contenders.iter().map(|one| one.detectable);
    let detectable = match detectable.fold(0.0, f64::max) {
        share_of @ ..=1.0 => share(share_of),
        more => format!("a factor of {:.1}", 1.0 + more),
    };
    let used = [
        (
            "bytes written",
            of(|one| one.written_per_transaction.as_ref()),
        ),
        (
            "disk cache flushes",
            of(|one| one.flushes_per_transaction.as_ref()),
        ),
    ];
    let used = used.into_iter().filter(|(_, ratios)| !ratios.is_empty());
    let used: String = used
        .map(|(what, ratios)| format!("; {what} per transaction: {ratios}"))
        .collect();
    format!(
        "{} (turns of {}, {} without a switch, 95 %; departures of {} found in 9 of 10 checks){used}",
        of(|one| Some(&one.throughput)),
        duration(continuity.turn_s),
        duration(continuity.unswitched_s),
        detectable,
    )
}

/// `0.99 (0.97–1.01)`.
fn ratio(figure: &Figure) -> String {
    let value = figure
        .value()
        .map_or_else(String::new, |value| format!("{value:.2}"));
    match figure.interval() {
        Some((low, high)) if high.is_finite() => format!("{value} ({low:.2}–{high:.2})"),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::continuity::rehearsed;

    use crate::words;

    #[test]
    fn the_check_is_said_with_its_ratio_of_each_contender() {
        let (summary, _) = summarise(&rehearsed([1.0, 1.0]));
        let said = words::continuity(&summary);
        assert!(
            said[0].contains("Throughput in turns ÷ continuous at 1 client: "),
            "{said:?}"
        );
        assert!(
            said[0].contains("disk cache flushes per transaction"),
            "{said:?}"
        );
    }

    #[test]
    fn a_contradiction_is_said_before_the_verdict() {
        let (summary, _) = summarise(&rehearsed([1.0, 0.6]));
        let first = words::headlines(&summary).swap_remove(0);
        assert!(
            first.starts_with("The answer depends on the switching: "),
            "{first}"
        );
    }
}
