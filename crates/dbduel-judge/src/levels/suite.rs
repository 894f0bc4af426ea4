//! A suite as a whole: its groups of workloads, and what its verdicts promise together.

use dbduel_record::Verdict;
use dbduel_stats::StatsError;
use dbduel_stats::compare::mean_of_means;

use crate::duel::log_ratios::{differences, pair, throughput};
use crate::evidence::Evidence;
use crate::summary::{
    Duel, Figure, GroupComparison, How, Spread, SuiteGroup, SuiteSummary, VerdictCounts,
};

/// The suite; `None` for a contest of one workload. `duels` have their final verdicts.
#[must_use]
pub fn suite(evidence: &Evidence<'_>, duels: &[Duel]) -> Option<SuiteSummary> {
    let plan = evidence.plan();
    let suite = plan.suite?;
    let mut names: Vec<&str> = Vec::new();
    for cell in plan.levels.iter().filter_map(|level| level.cell.as_ref()) {
        if !names.contains(&cell.group.as_str()) {
            names.push(&cell.group);
        }
    }
    let mut groups: Vec<SuiteGroup> = names
        .iter()
        .map(|name| group(evidence, duels, Some(name)))
        .collect();
    if groups.len() > 1 {
        groups.push(group(evidence, duels, None));
    }
    let others = plan.contenders.len().saturating_sub(1);
    Some(SuiteSummary {
        mirrored: plan.schedule.mirrored,
        block_form: suite.block_form,
        settle_s: suite.settle_s,
        comparisons: (others * duels.len()) as u32,
        wrong_workloads_max: (1.0 - plan.decision.confidence) * duels.len() as f64,
        groups,
    })
}

fn group(evidence: &Evidence<'_>, duels: &[Duel], name: Option<&str>) -> SuiteGroup {
    let plan = evidence.plan();
    let is_own = |duel: &&Duel| {
        let cell = duel.load.cell.as_ref();
        name.is_none() || cell.map(|cell| cell.group.as_str()) == name
    };
    let own: Vec<&Duel> = duels.iter().filter(is_own).collect();
    let contenders = plan.contenders.len();
    let against_baseline = (0..contenders).filter(|&contender| contender != plan.baseline);
    // Of two it is the comparison with the baseline.
    let first_with_predecessor = if contenders > 2 { 1 } else { contenders };
    SuiteGroup {
        name: name.map(str::to_owned),
        workloads: own.len() as u32,
        against_baseline: against_baseline
            .map(|contender| compare(evidence, &own, contender, plan.baseline))
            .collect(),
        against_predecessor: (first_with_predecessor..contenders)
            .map(|contender| compare(evidence, &own, contender, contender - 1))
            .collect(),
    }
}

fn compare(
    evidence: &Evidence<'_>,
    duels: &[&Duel],
    contender: usize,
    against: usize,
) -> GroupComparison {
    let plan = evidence.plan();
    let name = |contender: usize| plan.contenders[contender].name.clone();
    let series = duels.iter().map(|duel| {
        let blocks = evidence.levels[duel.level].complete.iter();
        let pairs: Vec<_> = blocks
            .map(|block| pair(block, contender, against, throughput))
            .collect();
        differences(&pairs)
    });
    let series: Result<Vec<Vec<f64>>, StatsError> = series.collect();
    let mut verdicts = VerdictCounts::default();
    for duel in duels {
        let between = duel.between(&name(contender), &name(against));
        *match between.map(|(verdict, _)| verdict) {
            Some(Verdict::Faster) => &mut verdicts.faster,
            Some(Verdict::Slower) => &mut verdicts.slower,
            Some(Verdict::Equivalent) => &mut verdicts.equivalent,
            Some(Verdict::Void) => &mut verdicts.void,
            Some(Verdict::Undecided) | None => &mut verdicts.undecided,
        } += 1;
    }
    let (geometric_mean, spread) = match &series {
        Ok(series) => (
            geometric_mean(series, 1.0 - plan.decision.confidence),
            spread(series),
        ),
        Err(error) => (
            Figure::NotMeasured {
                why: error.to_string(),
            },
            None,
        ),
    };
    GroupComparison {
        contender: name(contender),
        against: name(against),
        geometric_mean,
        spread,
        verdicts,
    }
}

/// Mean of the workloads' mean log ratios. A workload without blocks is no part of it.
fn geometric_mean(series: &[Vec<f64>], alpha: f64) -> Figure {
    let measured: Vec<&[f64]> = series
        .iter()
        .map(Vec::as_slice)
        .filter(|differences| !differences.is_empty())
        .collect();
    if measured.is_empty() {
        return Figure::NotMeasured {
            why: "no complete block".to_owned(),
        };
    }
    let (n, how) = (measured.len(), How::GroupMean);
    match mean_of_means(&measured, alpha) {
        Ok(mean) => Figure::Estimated {
            value: mean.value.exp(),
            low: mean.low.exp(),
            high: Some(mean.high.exp()).filter(|high| high.is_finite()),
            confidence: 1.0 - alpha,
            n,
            how,
        },
        Err(error) => Figure::Bare {
            value: (measured.iter().map(|one| mean_of(one)).sum::<f64>() / n as f64).exp(),
            n,
            how,
            why: error.to_string(),
        },
    }
}

fn mean_of(differences: &[f64]) -> f64 {
    differences.iter().sum::<f64>() / differences.len() as f64
}

/// Quartiles as linear interpolations between the workloads' ratios (Hyndman and Fan 1996, type 7).
fn spread(series: &[Vec<f64>]) -> Option<Spread> {
    let measured = series.iter().filter(|one| !one.is_empty());
    let mut ratios: Vec<f64> = measured.map(|one| mean_of(one).exp()).collect();
    ratios.sort_by(f64::total_cmp);
    let last = ratios.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let below = place as usize;
        let above = (below + 1).min(last);
        ratios[below] + (place - below as f64) * (ratios[above] - ratios[below])
    };
    Some(Spread {
        min: ratios[0],
        q1: at(0.25),
        median: at(0.5),
        q3: at(0.75),
        max: ratios[last],
    })
}

#[cfg(test)]
mod tests {

    use crate::summarise;
    use crate::summary::{Figure, VerdictCounts};
    use dbduel_testkit::synthetic::suite::suite_record;

    #[test]
    fn groups_count_the_verdicts_of_their_workloads_and_average_their_ratios() {
        let (summary, _) = summarise(&suite_record());
        let suite = summary.suite.unwrap();
        let names: Vec<Option<&str>> = suite
            .groups
            .iter()
            .map(|group| group.name.as_deref())
            .collect();
        assert_eq!(names, [Some("point"), Some("write"), None]);
        assert_eq!((suite.comparisons, suite.groups[2].workloads), (9, 3));
        assert!((suite.wrong_workloads_max - 0.15).abs() < 1e-12);
        for group in &suite.groups {
            assert_eq!(group.against_baseline.len(), 3);
            assert_eq!(group.against_predecessor.len(), 3);
            for one in group
                .against_baseline
                .iter()
                .chain(&group.against_predecessor)
            {
                let VerdictCounts {
                    faster,
                    slower,
                    equivalent,
                    undecided,
                    void,
                } = one.verdicts;
                let counted = faster + slower + equivalent + undecided + void;
                assert_eq!(counted, group.workloads, "{one:?}");
            }
        }
        // Truths of the scenario: 0.92 and 1.00, and 1.31.
        let mysql = &suite.groups[0].against_baseline[1];
        let (low, high) = mysql.geometric_mean.interval().unwrap();
        let truth = 0.92_f64.sqrt();
        assert!(low < truth && truth < high, "{mysql:?}");
        let spread = mysql.spread.unwrap();
        assert!(spread.min < 0.95 && spread.max > 0.97 && spread.q1 < spread.q3);
        let write = &suite.groups[1].against_baseline[1];
        assert_eq!(
            (write.verdicts.faster, write.spread.unwrap().min),
            (1, write.spread.unwrap().max)
        );
    }

    #[test]
    fn two_contenders_are_compared_in_both_directions() {
        let (summary, _) = summarise(&suite_record());
        let duel = &summary.duels[2];
        let (one, ratio) = duel.between("mysql-8.0", "mariadb-10.11").unwrap();
        let (other, inverse) = duel.between("mariadb-10.11", "mysql-8.0").unwrap();
        assert_eq!(one.reversed(), other);
        assert!((ratio.value().unwrap() * inverse.value().unwrap() - 1.0).abs() < 1e-12);
        let pair = duel.between("mysql-9.7", "mysql-8.0").unwrap().1;
        assert!(matches!(pair, Figure::Estimated { .. }), "{pair:?}");
        assert!(duel.between("mysql-9.7", "mariadb-11.8").is_none());
        // Two neighbours share the error probability, the pairs with the baseline have the one of their verdicts.
        let alphas = duel.pairs.iter().map(|pair| pair.alpha);
        assert_eq!(alphas.clone().count(), 5);
        assert_eq!(
            alphas.filter(|alpha| (*alpha - 0.025).abs() < 1e-9).count(),
            2
        );
        assert!(duel.between("mysql-9.7", "mysql-9.7").is_none());
    }
}
