//! Tables that only the record of a suite has.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Figure, SuiteSummary};
use dbduel_record::Verdict;
use dbduel_record::plan::SuiteWorkload;

use super::table::Kind::{Real, Text, Whole};
use super::table::{Cell, Table};
use super::tables::{confidence, high, low};

/// Two contenders at a workload of a suite.
struct Couple<'s> {
    duel: &'s Duel,
    workload: &'s SuiteWorkload,
    contender: &'s str,
    against: &'s str,
    verdict: Verdict,
    ratio: Figure,
}

/// One row per workload and two contenders: each against the baseline, and each against the one before it.
pub fn cells(summary: &Summary) -> Table {
    let names: Vec<&str> = summary
        .contenders
        .iter()
        .map(|facts| facts.name.as_str())
        .collect();
    let mut couples: Vec<(&str, &str)> = names
        .iter()
        .filter(|name| **name != summary.baseline)
        .map(|name| (*name, summary.baseline.as_str()))
        .collect();
    for pair in names.windows(2) {
        if !couples.contains(&(pair[1], pair[0])) {
            couples.push((pair[1], pair[0]));
        }
    }
    let couples = &couples;
    let rows = summary.duels.iter().flat_map(|duel| {
        couples.iter().filter_map(move |&(contender, against)| {
            let (verdict, ratio) = duel.between(contender, against)?;
            Some(Couple {
                duel,
                workload: duel.load.cell.as_ref()?,
                contender,
                against,
                verdict,
                ratio,
            })
        })
    });
    Table::of(
        "suite",
        rows,
        &[
            ("group", Text, |one| (&one.workload.group).into()),
            ("workload", Text, |one| (&one.workload.name).into()),
            ("clients", Whole, |one| one.duel.load.clients.into()),
            ("contender", Text, |one| one.contender.into()),
            ("against", Text, |one| one.against.into()),
            ("verdict", Text, |one| one.verdict.word().into()),
            ("ratio", Real, |one| one.ratio.value().into()),
            ("ratio_low", Real, |one| low(&one.ratio)),
            ("ratio_high", Real, |one| high(&one.ratio)),
            ("confidence", Real, |one| confidence(&one.ratio)),
            ("blocks", Whole, |one| one.duel.blocks_complete.into()),
            ("latency_us_p95", Real, |one| p95(one.duel, one.contender)),
            ("against_latency_us_p95", Real, |one| {
                p95(one.duel, one.against)
            }),
        ],
    )
}

fn p95(duel: &Duel, name: &str) -> Cell {
    let mut all = duel.contenders.iter();
    let measures = all.find(|one| one.contender == name);
    measures.and_then(|one| one.latency_us_p95.value()).into()
}

/// One row per group and two contenders; the group of all workloads has no name.
pub fn groups(suite: &SuiteSummary) -> Table {
    let rows = suite.groups.iter().flat_map(|group| {
        let comparisons = group.against_baseline.iter();
        let comparisons = comparisons.chain(&group.against_predecessor);
        comparisons.map(move |one| (group, one))
    });
    Table::of(
        "groups",
        rows,
        &[
            ("group", Text, |(group, _)| {
                group.name.as_deref().unwrap_or_default().into()
            }),
            ("workloads", Whole, |(group, _)| group.workloads.into()),
            ("contender", Text, |(_, one)| (&one.contender).into()),
            ("against", Text, |(_, one)| (&one.against).into()),
            ("geometric_mean", Real, |(_, one)| {
                one.geometric_mean.value().into()
            }),
            ("geometric_mean_low", Real, |(_, one)| {
                low(&one.geometric_mean)
            }),
            ("geometric_mean_high", Real, |(_, one)| {
                high(&one.geometric_mean)
            }),
            ("confidence", Real, |(_, one)| {
                confidence(&one.geometric_mean)
            }),
            ("min", Real, |(_, one)| {
                one.spread.map(|spread| spread.min).into()
            }),
            ("q1", Real, |(_, one)| {
                one.spread.map(|spread| spread.q1).into()
            }),
            ("median", Real, |(_, one)| {
                one.spread.map(|spread| spread.median).into()
            }),
            ("q3", Real, |(_, one)| {
                one.spread.map(|spread| spread.q3).into()
            }),
            ("max", Real, |(_, one)| {
                one.spread.map(|spread| spread.max).into()
            }),
            ("faster", Whole, |(_, one)| one.verdicts.faster.into()),
            ("slower", Whole, |(_, one)| one.verdicts.slower.into()),
            ("equivalent", Whole, |(_, one)| {
                one.verdicts.equivalent.into()
            }),
            ("undecided", Whole, |(_, one)| one.verdicts.undecided.into()),
            ("void", Whole, |(_, one)| one.verdicts.void.into()),
        ],
    )
}
