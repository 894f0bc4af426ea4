//! `--fail-if`: rules that turn the figures of a contest into an exit code, for use in continuous
//! integration.
//!
//! A rule is compared with the interval, never with the point estimate. `slower than 3 %` matches when the whole
//! interval lies beyond the limit: the regression is shown. It does not match when no part of the interval does.
//! Otherwise it is undecided, which is not a success; `possibly slower than 3 %` matches then, too: the regression is
//! not excluded.

use std::str::FromStr;

use dbduel_experiment::quantity::share;
use dbduel_judge::summary::{Figure, Quantity};
use dbduel_judge::workloads::captured::StatementLevel;
use dbduel_judge::{Limit, Limited, LimitedRatio, Standing, Summary};
use dbduel_record::Verdict;
use dbduel_report::words;

use crate::console;
use crate::exit::Exit;

use super::run::exit_of;

/// One rule, about every contender at every load level.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    /// As it was typed.
    text: String,
    /// True for `possibly`: the rule matches unless it is excluded.
    is_possibility_enough: bool,
    /// Limit beyond which the rule matches.
    limit: Limit,
}

/// Result of a rule for one figure, or for several: the gravest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    IsNot,
    Undecided,
    Is,
}

const EXPECTED: &str = "expected a rule such as `slower than 3 %`, `possibly slower than 3 %`, \
                        `p99 higher than 10 %`; quantities beside throughput: p50, p95, p99, cpu, \
                        written, and class, the mean latency of each class of captured statements";

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{EXPECTED}; found `{text}`");
        let (rule, limit) = text.split_once(" than ").ok_or_else(refused)?;
        let share = share(limit)?;
        if !(0.0..1.0).contains(&share) {
            return Err(format!(
                "expected a share from 0 % to less than 100 %, found `{limit}`"
            ));
        }
        let mut words: Vec<&str> = rule.split_whitespace().collect();
        let is_possibility_enough = words.first() == Some(&"possibly");
        if is_possibility_enough {
            words.remove(0);
        }
        let (of, is_about_more) = match words.as_slice() {
            ["slower"] => (Limited::Throughput, false),
            ["faster"] => (Limited::Throughput, true),
            [name, "higher"] => (limited(name).ok_or_else(refused)?, true),
            [name, "lower"] => (limited(name).ok_or_else(refused)?, false),
            _ => return Err(refused()),
        };
        Ok(Self {
            text: text.to_owned(),
            is_possibility_enough,
            limit: Limit {
                of,
                is_about_more,
                share,
            },
        })
    }
}

/// What is called `name` in a rule.
fn limited(name: &str) -> Option<Limited> {
    match name {
        "class" => Some(Limited::ClassLatency),
        _ => quantity_named(name).map(Limited::Quantity),
    }
}

/// The quantity that is called `name` on the command line.
#[must_use]
pub fn quantity_named(name: &str) -> Option<Quantity> {
    match name {
        "p50" => Some(Quantity::LatencyP50),
        "p95" => Some(Quantity::LatencyP95),
        "p99" => Some(Quantity::LatencyP99),
        "cpu" => Some(Quantity::ServerCpuPerTransaction),
        "written" => Some(Quantity::BytesWrittenPerTransaction),
        _ => None,
    }
}

impl FailIf {
    /// The limits of these rules, for a contest to decide.
    #[must_use]
    pub fn limits(rules: &[FailIf]) -> Vec<Limit> {
        rules.iter().map(|rule| rule.limit).collect()
    }

    /// The rule's gravest result, and a sentence fragment for each contender and load level that has it.
    fn answer(&self, summary: &Summary) -> (Answer, Vec<String>) {
        let mut answers = Vec::new();
        for duel in &summary.duels {
            let asked = duel.comparisons.iter().flat_map(|comparison| {
                let ratios = self
                    .limit
                    .ratios(comparison, classes_at(summary, duel.level));
                ratios.into_iter().map(move |one| (comparison, one))
            });
            for (comparison, LimitedRatio { class, ratio }) in asked {
                let mut place = format!("{} at {}", comparison.contender, duel.label);
                place += &class.map_or_else(String::new, |id| format!(", class {id}"));
                place += &ratio.map_or_else(String::new, described);
                if self.limit.standing(ratio) == Standing::Open {
                    place += match ratio.and_then(Figure::interval) {
                        Some(_) => {
                            ", with the limit inside the interval; a larger budget narrows it"
                        }
                        None => "; a larger budget may give one",
                    };
                }
                // In long turns, or without other programs, the answer may be another one, so none is known.
                let answer = match &comparison.contradiction {
                    Some(_) => {
                        place += ", which long turns contradict";
                        Answer::Undecided
                    }
                    None if comparison.is_withheld => {
                        let why = comparison.because.as_deref().unwrap_or_default();
                        place += &format!("; {why}");
                        Answer::Undecided
                    }
                    None => self.answer_of(ratio),
                };
                answers.push((answer, place));
            }
        }
        let gravest = answers.iter().map(|(answer, _)| *answer).max();
        let gravest = gravest.unwrap_or(Answer::Undecided);
        answers.retain(|(answer, _)| *answer == gravest);
        let places = answers.into_iter().map(|(_, place)| place);
        (gravest, places.collect())
    }

    fn answer_of(&self, ratio: Option<&Figure>) -> Answer {
        match self.limit.standing(ratio) {
            Standing::Beyond => Answer::Is,
            Standing::Within => Answer::IsNot,
            Standing::Open | Standing::Unknown if self.is_possibility_enough => Answer::Is,
            Standing::Open | Standing::Unknown => Answer::Undecided,
        }
    }
}

/// The classes of captured statements at a level.
fn classes_at(summary: &Summary, level: usize) -> Option<&StatementLevel> {
    let mut levels = summary.statement_classes.iter();
    levels.find(|one| one.level == level)
}

fn described(ratio: &Figure) -> String {
    let value = words::ratio_value(ratio).unwrap_or_else(|| words::NOT_MEASURED.to_owned());
    match ratio {
        Figure::Estimated { .. } => format!(": {value} ({})", words::ratio_interval(ratio)),
        Figure::Bare { .. } => format!(": {value}, without an interval"),
        Figure::NotMeasured { why } => format!(": {value} ({why})"),
    }
}

/// Exit code of a contest. Without rules, or with a void duel, it is that of the verdicts. With rules: whether one
/// matches, else whether one is undecided.
#[must_use]
pub fn exit(summary: &Summary, rules: &[FailIf]) -> Exit {
    let plain = exit_of(summary);
    if rules.is_empty() || plain == Exit::Void {
        return plain;
    }
    let answers = rules.iter().map(|rule| rule.answer(summary).0);
    match answers.max() {
        Some(Answer::Is) => Exit::RuleHit,
        Some(Answer::Undecided) => Exit::Undecided,
        Some(Answer::IsNot) | None => Exit::Done,
    }
}

/// True when more blocks may decide a rule.
#[must_use]
pub fn has_open(summary: &Summary, rules: &[FailIf]) -> bool {
    let comparisons = summary
        .duels
        .iter()
        .flat_map(|duel| duel.comparisons.iter().map(move |one| (duel, one)));
    let mut open = comparisons.filter(|(_, comparison)| comparison.verdict != Verdict::Void);
    open.any(|(duel, comparison)| {
        let classes = classes_at(summary, duel.level);
        let mut limits = rules.iter().map(|rule| rule.limit);
        limits.any(|limit| {
            let ratios = limit.ratios(comparison, classes);
            let mut standings = ratios.iter().map(|one| limit.standing(one.ratio));
            standings.any(|standing| standing == Standing::Open)
        })
    })
}

/// Prints each rule's result to standard error, and where it applies.
pub fn explain(summary: &Summary, rules: &[FailIf]) {
    let is_void = exit_of(summary) == Exit::Void;
    for rule in rules {
        let (text, (answer, places)) = (&rule.text, rule.answer(summary));
        let places = places.join("; ");
        console::status_line(&match answer {
            _ if is_void => format!("`{text}` is unknown: a duel is void"),
            Answer::IsNot => format!("`{text}` does not match"),
            Answer::Is => format!("`{text}` matches: {places}"),
            Answer::Undecided => format!("`{text}` is undecided: {places}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_judge::summary::How;
    use dbduel_testkit::synthetic::Scenario;
    use dbduel_testkit::synthetic::captured::captured_record;
    use dbduel_testkit::synthetic::continuity::rehearsed;

    #[track_caller]
    fn check(rule: &str, interval: Option<(f64, f64)>, expected: Answer) {
        let figure = match interval {
            Some((low, high)) => Figure::Estimated {
                value: f64::midpoint(low, high),
                low,
                high: Some(high),
                confidence: 0.95,
                n: 9,
                how: How::PairedBlocks,
            },
            None => Figure::NotMeasured {
                why: "no complete block".to_owned(),
            },
        };
        let rule: FailIf = rule.parse().unwrap();
        assert_eq!(
            rule.answer_of(Some(&figure)),
            expected,
            "{rule:?} {interval:?}"
        );
    }

    #[test]
    fn a_rule_asks_the_interval_and_not_the_point() {
        check("slower than 3 %", Some((0.90, 0.96)), Answer::Is);
        // The point is 4 % below, the interval reaches up to 2 %.
        check("slower than 3 %", Some((0.94, 0.98)), Answer::Undecided);
        check("slower than 3 %", Some((0.98, 1.04)), Answer::IsNot);
        check("possibly slower than 3 %", Some((0.94, 0.98)), Answer::Is);
        check(
            "possibly slower than 3 %",
            Some((0.98, 1.04)),
            Answer::IsNot,
        );
        check("faster than 3 %", Some((1.04, 1.06)), Answer::Is);
        check("faster than 3 %", Some((1.01, 1.06)), Answer::Undecided);
        check(
            "possibly p99 higher than 10 %",
            Some((1.01, 1.2)),
            Answer::Is,
        );
    }

    #[test]
    fn without_an_interval_nothing_is_proved_and_nothing_excluded() {
        check("slower than 3 %", None, Answer::Undecided);
        check("possibly slower than 3 %", None, Answer::Is);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_an_example() {
        for wrong in [
            "",
            "slower",
            "slower than",
            "slower than fish",
            "slower than 120 %",
            "p98 higher than 3 %",
            "p99 slower than 3 %",
            "maybe slower than 3 %",
            "slower than -1 %",
        ] {
            assert!(wrong.parse::<FailIf>().is_err(), "{wrong}");
        }
        assert!(
            "p97 higher than 1 %"
                .parse::<FailIf>()
                .unwrap_err()
                .contains("p99")
        );
    }

    #[test]
    fn a_void_duel_outweighs_every_rule() {
        let mut scenario = Scenario::duel();
        let (good, _) = summarise(&scenario.record());
        let rule = |text: &str| vec![text.parse::<FailIf>().unwrap()];
        // At one client the contender is 8 % faster, with a p99 whose interval is some per cent wide.
        assert_eq!(exit(&good, &rule("faster than 3 %")), Exit::RuleHit);
        assert_eq!(exit(&good, &rule("slower than 3 %")), Exit::Done);
        let p99 = &good.duels[0].comparisons[0].quantities[2].ratio;
        let (low, high) = p99.interval().unwrap();
        let inside = f64::midpoint(low, high) - 1.0;
        let side = if inside < 0.0 { "lower" } else { "higher" };
        let unknown = format!("p99 {side} than {} %", inside.abs() * 100.0);
        assert_eq!(exit(&good, &rule(&unknown)), Exit::Undecided, "{unknown}");
        let mut both = rule(&unknown);
        both.extend(rule("faster than 3 %"));
        assert_eq!(exit(&good, &both), Exit::RuleHit);
        scenario.sides[1].failed_share = 0.05;
        let (void, _) = summarise(&scenario.record());
        assert_eq!(exit(&void, &rule("faster than 3 %")), Exit::Void);
        assert!(good.duels[0].comparisons[0].verdict == Verdict::Faster);
    }

    #[test]
    fn a_rule_about_classes_names_those_that_it_matches() {
        let (summary, _) = summarise(&captured_record());
        let rule: FailIf = "class higher than 10 %".parse().unwrap();
        let (answer, places) = rule.answer(&summary);
        assert_eq!((answer, places.len()), (Answer::Is, 1));
        assert!(
            places[0].contains("at 4 clients, class b2b2b2b2: 3"),
            "{places:?}"
        );
        let rule: FailIf = "class higher than 99 %".parse().unwrap();
        assert_eq!(rule.answer(&summary).0, Answer::Is);
        let lower: FailIf = "class lower than 20 %".parse().unwrap();
        assert_eq!(lower.answer(&summary).0, Answer::IsNot);
        // Without captured statements nothing is shown.
        let (other, _) = summarise(&Scenario::duel().record());
        assert_eq!(rule.answer(&other).0, Answer::Undecided);
        assert!(!has_open(&other, &[rule]));
    }

    #[test]
    fn nothing_is_excluded_where_long_turns_give_another_answer() {
        let exit_of = |in_turns: [f64; 2]| {
            let rules: Vec<FailIf> = vec!["slower than 3 %".parse().unwrap()];
            exit(&summarise(&rehearsed(in_turns)).0, &rules)
        };
        assert_eq!(exit_of([1.0, 1.0]), Exit::Done);
        // In turns the second loses two fifths of its speed.
        assert_eq!(exit_of([1.0, 0.6]), Exit::Undecided);
    }
}
