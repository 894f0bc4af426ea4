//! The contest in one sentence per contender: decided levels first, with sizes; undecided ones last.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Comparison, Duel};
use dbduel_record::Verdict;
use dbduel_text::{from_to, multiple, ratio};

use super::continuity::contradictions;
use super::{RatioUnit, clients, joined, ratio_interval, share};
use crate::attribution;

/// Headlines, without the full stop: verdicts that depend on switching, one sentence per contender compared with the
/// baseline, and in a designed contest those on its factors.
#[must_use]
pub fn headlines(summary: &Summary) -> Vec<String> {
    let mut all = contradictions(summary);
    all.extend(verdicts(summary));
    all
}

fn verdicts(summary: &Summary) -> Vec<String> {
    if summary.search.is_some() {
        return crate::scaling::highest_rates(summary);
    }
    if summary.suite.is_some() {
        return crate::suite::headlines(summary);
    }
    let is_compared = |name: &String| {
        let duels = summary.duels.first();
        duels.is_none_or(|duel| duel.comparisons.iter().any(|one| one.contender == *name))
    };
    let names = summary.contenders.iter().map(|contender| &contender.name);
    let others = names.filter(|name| **name != summary.baseline && is_compared(name));
    let verdicts = others.map(|name| headline(summary, name));
    verdicts.chain(attribution::headlines(summary)).collect()
}

/// The duels in which a contender got the same verdict.
struct Outcome<'s> {
    verdict: Verdict,
    duels: Vec<(&'s Duel, &'s Comparison)>,
    /// `at 16 clients`, `at both load levels`.
    place: String,
}

fn headline(summary: &Summary, contender: &str) -> String {
    let baseline = &summary.baseline;
    let outcomes = outcomes(summary, contender);
    let (decided, open): (Vec<_>, Vec<_>) = outcomes
        .iter()
        .partition(|outcome| !matches!(outcome.verdict, Verdict::Undecided | Verdict::Void));
    let is_open: Vec<String> = open
        .iter()
        .map(|outcome| {
            let interval = match outcome.verdict {
                Verdict::Undecided => outcome.interval(),
                _ => String::new(),
            };
            format!("{} {}{interval}", outcome.verdict.word(), outcome.place)
        })
        .collect();
    let Some((first, others)) = decided.split_first() else {
        return match is_open.as_slice() {
            [] => format!("{contender} was not compared"),
            _ => format!(
                "The duel of {contender} against {baseline} is {}",
                is_open.join(" and ")
            ),
        };
    };
    let horizon = summary.rule.horizon;
    let mut text = format!("{contender} is {}", first.phrase(Some(baseline), horizon));
    for (number, outcome) in others.iter().enumerate() {
        text.push_str(match (outcome.verdict, number) {
            (Verdict::Slower, _) => ", but ",
            (_, 0) => " and ",
            _ => ", and ",
        });
        text.push_str(&outcome.phrase(None, horizon));
    }
    let differs =
        |outcome: &Outcome<'_>| matches!(outcome.verdict, Verdict::Faster | Verdict::Slower);
    if summary.is_identical_to_baseline(contender) && outcomes.iter().any(differs) {
        text.push_str(", although the two are identical");
    }
    if !is_open.is_empty() {
        text.push_str(&format!("; the duel is {}", is_open.join(" and ")));
    }
    text
}

/// The verdicts of a contender, decided ones first.
fn outcomes<'s>(summary: &'s Summary, contender: &str) -> Vec<Outcome<'s>> {
    let duels: Vec<(&Duel, &Comparison)> = summary
        .duels
        .iter()
        .filter_map(|duel| {
            let mut comparisons = duel.comparisons.iter();
            Some((duel, comparisons.find(|one| one.contender == contender)?))
        })
        .collect();
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Equivalent,
        Verdict::Undecided,
        Verdict::Void,
    ];
    let outcomes = verdicts.into_iter().filter_map(|verdict| {
        let mut of_it = duels.clone();
        of_it.retain(|(_, comparison)| comparison.verdict == verdict);
        let place = match of_it.len() {
            0 => return None,
            2 if duels.len() == 2 => "at both load levels".to_owned(),
            all @ 3.. if all == duels.len() => format!("at all {} load levels", in_words(all)),
            _ => {
                let duels: Vec<&Duel> = of_it.iter().map(|(duel, _)| *duel).collect();
                format!("at {}", levels(&duels))
            }
        };
        Some(Outcome {
            verdict,
            duels: of_it,
            place,
        })
    });
    outcomes.collect()
}

impl Outcome<'_> {
    /// `7.9 % faster than B at 1 client`; `baseline` is `None` where it was already named.
    fn phrase(&self, baseline: Option<&str>, horizon: f64) -> String {
        let place = &self.place;
        let word = self.verdict.word();
        if self.verdict == Verdict::Equivalent {
            let (to, within) = match baseline {
                Some(name) => (name, format!(" (within {})", share(horizon))),
                None => ("it", String::new()),
            };
            return format!("{word} to {to} {place}{within}");
        }
        let than = baseline.map_or(String::new(), |name| format!(" than {name}"));
        let reservation = match self.duels.iter().all(|(_, one)| one.is_within_horizon) {
            true => format!(", which is less than the horizon of {}", share(horizon)),
            false => String::new(),
        };
        let interval = self.interval();
        match self.span() {
            Some(Span::Percent(by)) => format!("{by} {word}{than} {place}{interval}{reservation}"),
            Some(Span::Multiple(times)) => {
                format!("{word}{than} {place}, with {times} its throughput{interval}")
            }
            None => format!("{word}{than} {place}{reservation}"),
        }
    }

    /// Interval of the size, for a single duel only; several show theirs beside each.
    fn interval(&self) -> String {
        match self.duels.as_slice() {
            [(_, comparison)] => match ratio_interval(&comparison.ratio) {
                interval if interval.is_empty() => String::new(),
                interval => format!(" ({interval})"),
            },
            _ => String::new(),
        }
    }

    /// Size from the smallest to the largest point estimate; a single one is written like its interval.
    fn span(&self) -> Option<Span> {
        let mut values: Vec<f64> = self
            .duels
            .iter()
            .filter_map(|(_, comparison)| comparison.ratio.value())
            .collect();
        values.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
        let (first, last) = (*values.first()?, *values.last()?);
        let unit = match self.duels.as_slice() {
            [(_, comparison)] => RatioUnit::of([&comparison.ratio]),
            _ => RatioUnit::of_values(values.iter().copied()),
        };
        Some(if unit == RatioUnit::Percent {
            let number = |value: f64| {
                let text = ratio(value);
                text.trim_start_matches(['+', '−', '±'])
                    .trim_end_matches(" %")
                    .to_owned()
            };
            Span::Percent(format!("{} %", from_to(&number(first), &number(last))))
        } else {
            Span::Multiple(from_to(&multiple(first), &multiple(last)))
        })
    }
}

/// The size of a difference in words.
enum Span {
    /// `3.4 to 15.3 %`
    Percent(String),
    /// `2.41×`, of the baseline's throughput.
    Multiple(String),
}

fn in_words(count: usize) -> String {
    let words = ["three", "four", "five", "six", "seven", "eight", "nine"];
    let word = count.checked_sub(3).and_then(|index| words.get(index));
    word.map_or_else(|| count.to_string(), |word| (*word).to_owned())
}

/// Load levels in few words: `1 and 16 clients`, `16 clients, 500/s and 1000/s constant`.
fn levels(duels: &[&Duel]) -> String {
    let (mut counts, mut arrivals) = (Vec::new(), Vec::new());
    for duel in duels {
        let arrival = duel.label.split_once(", ").map_or("", |(_, rest)| rest);
        if !counts.contains(&duel.load.clients) {
            counts.push(duel.load.clients);
        }
        if !arrivals.contains(&arrival) {
            arrivals.push(arrival);
        }
    }
    if counts.len() > 1 && arrivals.len() > 1 {
        let labels: Vec<String> = duels
            .iter()
            .map(|duel| match duel.label.split_once(", ") {
                Some((clients, arrival)) => format!("{clients} ({arrival})"),
                None => duel.label.clone(),
            })
            .collect();
        return super::joined_texts(&labels);
    }
    let clients = match counts.as_slice() {
        [one] => clients(*one),
        several => {
            let numbers: Vec<String> = several.iter().map(u32::to_string).collect();
            format!("{} clients", super::joined_texts(&numbers))
        }
    };
    match one_unit(&arrivals) {
        arrival if arrival.is_empty() => clients,
        arrival => format!("{clients}, {arrival}"),
    }
}

/// Joins texts without repeating a last word that all share: `500/s and 1000/s constant`.
fn one_unit(texts: &[&str]) -> String {
    if let [_, .., last] = texts
        && let Some((_, unit)) = last.rsplit_once(' ')
        && let Some(starts) = texts
            .iter()
            .map(|text| text.strip_suffix(unit))
            .collect::<Option<Vec<_>>>()
    {
        let starts: Vec<&str> = starts.into_iter().map(str::trim_end).collect();
        return format!("{} {unit}", joined(&starts));
    }
    joined(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Equivalent, Faster, Slower, Undecided, Void};
    use dbduel_record::plan::Arrival;

    use dbduel_judge::summarise;
    use dbduel_judge::summary::{Figure, How};
    use dbduel_testkit::synthetic::Scenario;

    /// A contest of `new` against `old` with these numbers of clients, verdicts and ratios.
    fn contest(levels: &[(u32, Verdict, f64)]) -> Summary {
        let mut scenario = Scenario {
            clients: levels.iter().map(|level| level.0).collect(),
            blocks: 0,
            ..Scenario::duel()
        };
        "old".clone_into(&mut scenario.sides[0].name);
        "new".clone_into(&mut scenario.sides[1].name);
        let (mut summary, _) = summarise(&scenario.record());
        for (duel, (_, verdict, ratio)) in summary.duels.iter_mut().zip(levels) {
            let comparison = &mut duel.comparisons[0];
            comparison.verdict = *verdict;
            comparison.ratio = Figure::Bare {
                value: *ratio,
                n: 8,
                how: How::PairedBlocks,
                why: "a test".to_owned(),
            };
        }
        summary
    }

    #[track_caller]
    fn check(levels: &[(u32, Verdict, f64)], expected: &str) {
        assert_eq!(headlines(&contest(levels)), [expected]);
    }

    #[test]
    fn all_decided_alike() {
        check(
            &[(1, Faster, 1.034), (8, Faster, 1.153), (64, Faster, 1.08)],
            "new is 3.4 to 15.3 % faster than old at all three load levels",
        );
        check(
            &[(1, Slower, 0.9), (8, Slower, 0.9)],
            "new is 10.0 % slower than old at both load levels",
        );
        check(
            &[(1, Faster, 1.9), (8, Faster, 2.41)],
            "new is faster than old at both load levels, with 1.90× to 2.41× its throughput",
        );
        check(
            &[(1, Equivalent, 1.001), (8, Equivalent, 0.999)],
            "new is equivalent to old at both load levels (within 2 %)",
        );
    }

    #[test]
    fn decided_differently() {
        check(
            &[(1, Slower, 0.966), (16, Slower, 0.9), (64, Faster, 1.296)],
            "new is 29.6 % faster than old at 64 clients, but 3.4 to 10.0 % slower at 1 and 16 clients",
        );
        check(
            &[(1, Faster, 1.079), (16, Equivalent, 1.002)],
            "new is 7.9 % faster than old at 1 client and equivalent to it at 16 clients",
        );
        check(
            &[(1, Equivalent, 1.0), (16, Faster, 1.05), (64, Slower, 0.2)],
            "new is 5.0 % faster than old at 16 clients, but slower at 64 clients, with 0.200× its throughput, and \
             equivalent to it at 1 client",
        );
    }

    #[test]
    fn some_undecided_or_void() {
        check(
            &[
                (1, Faster, 1.079),
                (16, Undecided, 1.01),
                (64, Undecided, 1.01),
            ],
            "new is 7.9 % faster than old at 1 client; the duel is undecided at 16 and 64 clients",
        );
        check(
            &[(1, Faster, 1.079), (16, Undecided, 1.01), (64, Void, 1.01)],
            "new is 7.9 % faster than old at 1 client; the duel is undecided at 16 clients and void at 64 clients",
        );
    }

    #[test]
    fn none_decided() {
        check(
            &[
                (1, Undecided, 1.01),
                (16, Undecided, 1.01),
                (64, Undecided, 0.99),
            ],
            "The duel of new against old is undecided at all three load levels",
        );
        check(
            &[(1, Void, 1.01), (16, Void, 1.01)],
            "The duel of new against old is void at both load levels",
        );
        check(
            &[(1, Undecided, 1.01), (16, Void, 1.01)],
            "The duel of new against old is undecided at 1 client and void at 16 clients",
        );
    }

    #[test]
    fn one_load_level() {
        check(
            &[(16, Faster, 1.05)],
            "new is 5.0 % faster than old at 16 clients",
        );
        check(
            &[(16, Slower, 0.25)],
            "new is slower than old at 16 clients, with 0.250× its throughput",
        );
        check(
            &[(16, Equivalent, 1.0)],
            "new is equivalent to old at 16 clients (within 2 %)",
        );
        check(
            &[(8, Undecided, 1.01)],
            "The duel of new against old is undecided at 8 clients",
        );
        check(
            &[(1, Void, 1.01)],
            "The duel of new against old is void at 1 client",
        );
    }

    #[test]
    fn a_single_size_has_its_interval_and_is_written_like_it() {
        let estimated = |verdict, value, low, high| {
            let mut summary = contest(&[(16, verdict, value)]);
            summary.duels[0].comparisons[0].ratio = Figure::Estimated {
                value,
                low,
                high: Some(high),
                confidence: 0.95,
                n: 8,
                how: How::PairedBlocks,
            };
            headlines(&summary)
        };
        assert_eq!(
            estimated(Faster, 1.156, 1.122, 1.181),
            ["new is 15.6 % faster than old at 16 clients (+12.2 % to +18.1 %)"]
        );
        assert_eq!(
            estimated(Faster, 1.474, 1.05, 2.004),
            ["new is faster than old at 16 clients, with 1.47× its throughput (1.050× to 2.00×)"]
        );
        assert_eq!(
            estimated(Undecided, 1.048, 0.924, 1.168),
            ["The duel of new against old is undecided at 16 clients (−7.6 % to +16.8 %)"]
        );
    }

    #[test]
    fn a_difference_below_the_horizon_is_called_so() {
        let mut summary = contest(&[(16, Faster, 1.012)]);
        summary.duels[0].comparisons[0].is_within_horizon = true;
        assert_eq!(
            headlines(&summary),
            ["new is 1.2 % faster than old at 16 clients, which is less than the horizon of 2 %"]
        );
    }

    #[test]
    fn a_difference_between_identical_contenders_is_called_one() {
        let headline = |verdict| {
            let mut summary = contest(&[(16, verdict, 1.36)]);
            summary.identical = vec![["old", "new"].map(str::to_owned)];
            headlines(&summary).swap_remove(0)
        };
        assert_eq!(
            headline(Faster),
            "new is 36.0 % faster than old at 16 clients, although the two are identical"
        );
        assert!(!headline(Equivalent).contains("identical"));
    }

    #[test]
    fn rates_are_named_with_their_unit_once() {
        let mut summary = contest(&[(16, Faster, 1.1), (16, Faster, 1.1), (16, Undecided, 1.0)]);
        for (duel, per_second) in summary.duels.iter_mut().zip([500.0, 1000.0, 2000.0]) {
            duel.load.arrival = Arrival::Poisson { per_second };
            duel.label = duel.load.label();
        }
        assert_eq!(
            headlines(&summary),
            [
                "new is 10.0 % faster than old at 16 clients, 500/s and 1000/s Poisson; the duel is undecided at \
                 16 clients, 2000/s Poisson"
            ]
        );
    }
}
