//! A limit on a ratio that the user sets, and the interval's position relative to it.
//!
//! Every ratio has an interval that holds at every moment of the run at once, throughput with the error probability of the
//! comparison and the quantities beside it with equal shares of that (Bonferroni). Where they hold, every answer about any number
//! of limits is right: limits cost no further error probability, however long a contest goes on for their sake.

use dbduel_record::Record;
use dbduel_record::Verdict;

use super::decide::{Question, decide_blocks};
use super::quantities;
use crate::champions;
use crate::evidence::Evidence;
use crate::summary::{Comparison, Figure, Quantity};
use crate::workloads::captured::{self, StatementLevel};

/// A user's limit on the relative difference from the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// What is limited.
    pub of: Limited,
    /// True when values above the limit are beyond it, false when values below it are.
    pub is_about_more: bool,
    /// The relative difference.
    pub share: f64,
}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Throughput.
    Throughput,
    /// A quantity beside it.
    Quantity(Quantity),
    /// The mean latency of each compared class of captured statements.
    ClassLatency,
}

/// A ratio that a limit is about.
#[derive(Debug, Clone, Copy)]
pub struct LimitedRatio<'s> {
    /// The class of captured statements; absent where the limit is about all transactions.
    pub class: Option<&'s str>,
    /// The ratio; absent where it is not measured.
    pub ratio: Option<&'s Figure>,
}

/// Position of an interval relative to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The whole interval lies beyond the limit.
    Beyond,
    /// The whole interval lies within the limit.
    Within,
    /// The limit lies inside it; more blocks make it narrower.
    Open,
    /// There is no interval, and more blocks would give none.
    Unknown,
}

impl Limit {
    /// Label of the limited quantity.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.of {
            Limited::Throughput => "throughput",
            Limited::Quantity(quantity) => quantity.label(),
            Limited::ClassLatency => "class latency",
        }
    }

    /// Transactions that each slice must have for the ratio to be measured; 0 where any number will do.
    #[must_use]
    pub fn transactions_needed(&self) -> f64 {
        match self.of {
            Limited::Quantity(quantity) => quantities::transactions_needed(quantity).unwrap_or(0.0),
            Limited::Throughput | Limited::ClassLatency => 0.0,
        }
    }

    /// The ratios that the limit is about, of a comparison and of the classes of statements at its level.
    #[must_use]
    pub fn ratios<'s>(
        &self,
        comparison: &'s Comparison,
        classes: Option<&'s StatementLevel>,
    ) -> Vec<LimitedRatio<'s>> {
        let of_all = |ratio| vec![LimitedRatio { class: None, ratio }];
        match self.of {
            Limited::Throughput => of_all(Some(&comparison.ratio)),
            Limited::Quantity(quantity) => {
                let mut quantities = comparison.quantities.iter();
                let found = quantities.find(|one| one.quantity == quantity);
                of_all(found.map(|one| &one.ratio))
            }
            Limited::ClassLatency => {
                let classes = classes.into_iter().flat_map(StatementLevel::compared);
                let own = classes
                    .flat_map(|class| class.contenders.iter().map(move |cell| (class, cell)));
                let own = own.filter(|(_, cell)| cell.contender == comparison.contender);
                own.map(|(class, cell)| LimitedRatio {
                    class: Some(class.id.as_str()),
                    ratio: cell.against_baseline.as_ref().map(|one| &one.ratio),
                })
                .collect()
            }
        }
    }

    /// The ratio at which it lies.
    fn at(&self) -> f64 {
        match self.is_about_more {
            true => 1.0 + self.share,
            false => 1.0 - self.share,
        }
    }

    /// Position of a ratio relative to the limit.
    #[must_use]
    pub fn standing(&self, ratio: Option<&Figure>) -> Standing {
        let Some(ratio) = ratio else {
            return Standing::Unknown;
        };
        let Some((low, high)) = ratio.interval() else {
            return match ratio {
                Figure::NotMeasured { .. } => Standing::Unknown,
                Figure::Estimated { .. } | Figure::Bare { .. } => Standing::Open,
            };
        };
        let (is_beyond, is_within) = match self.is_about_more {
            true => (low > self.at(), high <= self.at()),
            false => (high < self.at(), low >= self.at()),
        };
        match (is_beyond, is_within) {
            (true, _) => Standing::Beyond,
            (_, true) => Standing::Within,
            (false, false) => Standing::Open,
        }
    }
}

/// The limits that the record leaves open at a level: more blocks may decide them.
#[must_use]
pub fn open_limits<'l>(record: &Record, level: usize, limits: &'l [Limit]) -> Vec<&'l Limit> {
    let judged = champions::judged_record(record);
    let record = judged.as_ref().unwrap_or(record);
    let plan = &record.plan;
    let evidence = Evidence::of(record);
    let decision = decide_blocks(plan, &evidence.levels[level], level);
    let compared = plan.challengers().zip(decision.comparisons);
    let compared: Vec<Comparison> = compared
        .filter(|(_, comparison)| comparison.verdict != Verdict::Void)
        .map(|(contender, mut comparison)| {
            let question = Question::against_baseline(plan, contender, level);
            let asked = Quantity::ALL.into_iter().filter(|quantity| {
                let mut limits = limits.iter();
                limits.any(|limit| limit.of == Limited::Quantity(*quantity))
            });
            comparison.quantities = asked
                .map(|quantity| {
                    let alpha = quantities::alpha_of(&question);
                    quantities::compare_one(&evidence, level, &question, quantity, alpha)
                })
                .collect();
            comparison
        })
        .collect();
    let has_classes = limits.iter().any(|one| one.of == Limited::ClassLatency);
    let classes = has_classes.then(|| captured::at(&evidence, level));
    let is_open = |limit: &&Limit| {
        let ratios = compared
            .iter()
            .flat_map(|comparison| limit.ratios(comparison, classes.as_ref()));
        let mut standings = ratios.map(|one| limit.standing(one.ratio));
        standings.any(|standing| standing == Standing::Open)
    };
    limits.iter().filter(is_open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::summary::How;
    use dbduel_testkit::synthetic::Scenario;
    use dbduel_testkit::synthetic::captured::captured_record;

    fn figure(low: f64, high: Option<f64>) -> Figure {
        Figure::Estimated {
            value: low,
            low,
            high,
            confidence: 0.95,
            n: 9,
            how: How::PairedBlocks,
        }
    }

    #[test]
    fn an_interval_is_beyond_a_limit_within_it_or_open() {
        let more = |share| Limit {
            of: Limited::Throughput,
            is_about_more: true,
            share,
        };
        let less = |share| Limit {
            is_about_more: false,
            ..more(share)
        };
        let cases = [
            (more(0.1), 1.2, Some(1.3), Standing::Beyond),
            (more(0.1), 1.05, Some(1.3), Standing::Open),
            (more(0.1), 0.9, Some(1.05), Standing::Within),
            (more(0.1), 0.9, None, Standing::Open),
            (less(0.03), 0.9, Some(0.96), Standing::Beyond),
            (less(0.03), 0.94, Some(0.98), Standing::Open),
            (less(0.03), 0.98, Some(1.04), Standing::Within),
            (less(0.03), 0.98, None, Standing::Within),
        ];
        for (limit, low, high, expected) in cases {
            let standing = limit.standing(Some(&figure(low, high)));
            assert_eq!(standing, expected, "{limit:?} {low} {high:?}");
        }
        assert_eq!(more(0.1).standing(None), Standing::Unknown);
        let unmeasured = Figure::NotMeasured { why: String::new() };
        assert_eq!(more(0.1).standing(Some(&unmeasured)), Standing::Unknown);
        let bare = Figure::Bare {
            value: 1.5,
            n: 2,
            how: How::PairedBlocks,
            why: String::new(),
        };
        assert_eq!(more(0.1).standing(Some(&bare)), Standing::Open);
    }

    #[test]
    fn limits_are_open_exactly_where_the_summary_has_no_answer() {
        let record = Scenario::duel().record();
        let (summary, _) = summarise(&record);
        let quantities = Quantity::ALL.map(Limited::Quantity);
        let mut limits = Vec::new();
        for of in quantities.into_iter().chain([Limited::Throughput]) {
            for share in [0.0, 0.005, 0.02, 0.05, 0.1, 0.3] {
                for is_about_more in [true, false] {
                    limits.push(Limit {
                        of,
                        is_about_more,
                        share,
                    });
                }
            }
        }
        let mut seen = [0, 0];
        for duel in &summary.duels {
            let open = open_limits(&record, duel.level, &limits);
            for limit in &limits {
                let comparisons = duel.comparisons.iter();
                let mut ratios = comparisons.flat_map(|one| limit.ratios(one, None));
                let expected = ratios.any(|one| limit.standing(one.ratio) == Standing::Open);
                assert_eq!(open.contains(&limit), expected, "{limit:?}");
                seen[usize::from(expected)] += 1;
            }
        }
        assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
    }

    #[test]
    fn limits_of_classes_are_open_where_an_interval_of_one_holds_them() {
        let record = captured_record();
        let (summary, _) = summarise(&record);
        let limit = |share| Limit {
            of: Limited::ClassLatency,
            is_about_more: true,
            share,
        };
        let ratios = limit(0.1).ratios(
            &summary.duels[0].comparisons[0],
            summary.statement_classes.first(),
        );
        let standings = |limit: Limit| {
            let own = ratios.iter();
            own.map(|one| (one.class.unwrap_or_default(), limit.standing(one.ratio)))
                .collect::<Vec<_>>()
        };
        // One class is three times slower, three are equal, and one is too small to be compared.
        assert_eq!(
            standings(limit(0.1)),
            [
                ("a1a1a1a1", Standing::Within),
                ("b2b2b2b2", Standing::Beyond),
                ("c3c3c3c3", Standing::Within),
                ("d4d4d4d4", Standing::Within)
            ]
        );
        let limits = [limit(0.1), limit(2.0)];
        assert_eq!(open_limits(&record, 0, &limits), [&limits[1]]);
    }
}
