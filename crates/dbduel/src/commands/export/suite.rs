//! Tables that only the record of a suite has.

use dbduel_judge::Summary;
use dbduel_judge::summary::{GroupComparison, SuiteSummary};

use super::table::Kind::{Real, Text, Whole};
use super::table::{Cell, Table};
use super::tables::cells as figure_cells;

/// One row per workload and two contenders: each against the baseline, and each against the one before it.
pub fn cells(summary: &Summary) -> Table {
    let mut table = Table::new(
        "suite",
        &[
            ("group", Text),
            ("workload", Text),
            ("clients", Whole),
            ("contender", Text),
            ("against", Text),
            ("verdict", Text),
            ("ratio", Real),
            ("ratio_low", Real),
            ("ratio_high", Real),
            ("confidence", Real),
            ("blocks", Whole),
            ("latency_us_p95", Real),
            ("against_latency_us_p95", Real),
        ],
    );
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
    for duel in &summary.duels {
        let Some(cell) = &duel.load.cell else {
            continue;
        };
        let p95 = |name: &str| {
            let mut all = duel.contenders.iter();
            let measures = all.find(|one| one.contender == name);
            Cell::real(measures.and_then(|one| one.latency_us_p95.value()))
        };
        for (contender, against) in &couples {
            let Some((verdict, ratio)) = duel.between(contender, against) else {
                continue;
            };
            let mut row = vec![
                Cell::from(cell.group.as_str()),
                cell.name.as_str().into(),
                duel.load.clients.into(),
                (*contender).into(),
                (*against).into(),
                verdict.word().into(),
            ];
            row.extend(figure_cells(&ratio));
            row.push(duel.blocks_complete.into());
            row.push(p95(contender));
            row.push(p95(against));
            table.push(row);
        }
    }
    table
}

/// One row per group and two contenders; the group of all workloads has no name.
pub fn groups(suite: &SuiteSummary) -> Table {
    let mut table = Table::new(
        "groups",
        &[
            ("group", Text),
            ("workloads", Whole),
            ("contender", Text),
            ("against", Text),
            ("geometric_mean", Real),
            ("geometric_mean_low", Real),
            ("geometric_mean_high", Real),
            ("confidence", Real),
            ("min", Real),
            ("q1", Real),
            ("median", Real),
            ("q3", Real),
            ("max", Real),
            ("faster", Whole),
            ("slower", Whole),
            ("equivalent", Whole),
            ("undecided", Whole),
            ("void", Whole),
        ],
    );
    for group in &suite.groups {
        let comparisons = group.against_baseline.iter();
        for one in comparisons.chain(&group.against_predecessor) {
            let GroupComparison {
                contender,
                against,
                geometric_mean,
                spread,
                verdicts,
            } = one;
            let mut row = vec![
                Cell::from(group.name.as_deref().unwrap_or_default()),
                group.workloads.into(),
                contender.as_str().into(),
                against.as_str().into(),
            ];
            row.extend(figure_cells(geometric_mean));
            row.extend(
                [
                    spread.map(|spread| spread.min),
                    spread.map(|spread| spread.q1),
                    spread.map(|spread| spread.median),
                    spread.map(|spread| spread.q3),
                    spread.map(|spread| spread.max),
                ]
                .map(Cell::real),
            );
            row.extend(
                [
                    verdicts.faster,
                    verdicts.slower,
                    verdicts.equivalent,
                    verdicts.undecided,
                    verdicts.void,
                ]
                .map(Cell::from),
            );
            table.push(row);
        }
    }
    table
}
