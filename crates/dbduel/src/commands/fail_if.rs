//! `--fail-if`: rules that turn the figures of a contest into an exit code, for use in continuous
//! integration.
//!
//! A rule compares with the interval, never with the point. `slower than 3 %` is hit when the whole
//! interval lies beyond: the regression is proved. `possibly slower than 3 %` is hit when any of the
//! interval does, or when there is none: the regression is not excluded.

use std::str::FromStr;

use crate::console;
use crate::exit::Exit;
use crate::judge::Summary;
use crate::judge::summary::{Figure, Quantity};
use crate::lab::experiment::quantity::share;
use crate::report::words;

use super::run::exit_of;

/// One rule, about every contender at every load level.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    /// As it was typed.
    text: String,
    /// True for a rule that is hit unless it is excluded.
    is_possibility_enough: bool,
    /// What is compared; throughput when absent.
    quantity: Option<Quantity>,
    /// True when more than the baseline hits, false when less does.
    is_about_more: bool,
    /// The relative difference beyond which the rule is hit.
    share: f64,
}

const EXPECTED: &str = "expected such as `slower than 3 %`, `possibly slower than 3 %`, `p99 higher than 10 %`; \
     quantities beside throughput: p50, p95, p99, cpu, written";

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
        let (quantity, is_about_more) = match words.as_slice() {
            ["slower"] => (None, false),
            ["faster"] => (None, true),
            [name, "higher"] => (Some(quantity_named(name).ok_or_else(refused)?), true),
            [name, "lower"] => (Some(quantity_named(name).ok_or_else(refused)?), false),
            _ => return Err(refused()),
        };
        Ok(Self {
            text: text.to_owned(),
            is_possibility_enough,
            quantity,
            is_about_more,
            share,
        })
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
    /// Where the rule is hit, one sentence fragment each.
    #[must_use]
    pub fn hits(&self, summary: &Summary) -> Vec<String> {
        let mut hits = Vec::new();
        for duel in &summary.duels {
            for comparison in &duel.comparisons {
                let ratio = match self.quantity {
                    None => Some(&comparison.ratio),
                    Some(quantity) => comparison
                        .quantities
                        .iter()
                        .find(|one| one.quantity == quantity)
                        .map(|one| &one.ratio),
                };
                if self.is_hit(ratio) {
                    let found = ratio.map_or_else(String::new, described);
                    hits.push(format!("{} at {}{found}", comparison.contender, duel.label));
                }
            }
        }
        hits
    }

    fn is_hit(&self, ratio: Option<&Figure>) -> bool {
        let Some((low, high)) = ratio.and_then(Figure::interval) else {
            return self.is_possibility_enough;
        };
        match (self.is_about_more, self.is_possibility_enough) {
            (true, false) => low > 1.0 + self.share,
            (true, true) => high > 1.0 + self.share,
            (false, false) => high < 1.0 - self.share,
            (false, true) => low < 1.0 - self.share,
        }
    }
}

fn described(ratio: &Figure) -> String {
    let value = words::ratio_value(ratio).unwrap_or_else(|| words::NOT_MEASURED.to_owned());
    match ratio {
        Figure::Estimated { .. } => format!(": {value} ({})", words::ratio_interval(ratio)),
        Figure::Bare { .. } => format!(": {value}, without an interval"),
        Figure::NotMeasured { .. } => format!(": {value}"),
    }
}

/// What a contest means for a script: that of its verdicts without rules; with rules whether one is
/// hit. No rule can be trusted when a duel is void.
#[must_use]
pub fn exit(summary: &Summary, rules: &[FailIf]) -> Exit {
    let plain = exit_of(summary);
    if rules.is_empty() || plain == Exit::Void {
        return plain;
    }
    if rules.iter().any(|rule| !rule.hits(summary).is_empty()) {
        Exit::RuleHit
    } else {
        Exit::Done
    }
}

/// Says on standard error which rules are hit, and where.
pub fn explain(summary: &Summary, rules: &[FailIf]) {
    for rule in rules {
        let hits = rule.hits(summary);
        let is_void = exit_of(summary) == Exit::Void;
        console::status_line(&match (hits.is_empty(), is_void) {
            (_, true) => format!("`{}` is unknown: a duel is void", rule.text),
            (true, false) => format!("`{}` is not the case", rule.text),
            (false, false) => format!("`{}` is the case: {}", rule.text, hits.join("; ")),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::summarise;
    use crate::judge::summary::{How, Verdict};
    use crate::judge::synthetic::Scenario;

    #[track_caller]
    fn check(rule: &str, interval: Option<(f64, f64)>, expected: bool) {
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
            rule.is_hit(Some(&figure)),
            expected,
            "{rule:?} {interval:?}"
        );
    }

    #[test]
    fn a_rule_asks_the_interval_and_not_the_point() {
        check("slower than 3 %", Some((0.90, 0.96)), true);
        // The point is 4 % below, the interval reaches up to 2 %.
        check("slower than 3 %", Some((0.94, 0.98)), false);
        check("possibly slower than 3 %", Some((0.94, 0.98)), true);
        check("possibly slower than 3 %", Some((0.98, 1.04)), false);
        check("faster than 3 %", Some((1.04, 1.06)), true);
        check("faster than 3 %", Some((1.01, 1.06)), false);
        check("possibly p99 higher than 10 %", Some((1.01, 1.2)), true);
    }

    #[test]
    fn without_an_interval_nothing_is_proved_and_nothing_excluded() {
        check("slower than 3 %", None, false);
        check("possibly slower than 3 %", None, true);
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
        // At one client the contender is 8 % faster.
        assert_eq!(exit(&good, &rule("faster than 3 %")), Exit::RuleHit);
        assert_eq!(exit(&good, &rule("slower than 3 %")), Exit::Done);
        scenario.sides[1].failed_share = 0.05;
        let (void, _) = summarise(&scenario.record());
        assert_eq!(exit(&void, &rule("faster than 3 %")), Exit::Void);
        assert!(good.duels[0].comparisons[0].verdict == Verdict::Faster);
    }
}
