//! The cost of one transaction in one resource, paired within blocks.

use dbduel_record::rows::SliceRow;

use super::paired::{Paired, Taken};
use super::resources::{Resource, Role, Unit};
use super::rows_changed;
use super::{Cost, Moved};
use crate::evidence::Evidence;
use crate::evidence::blocks::CompleteBlock;
use crate::evidence::figures::ratio_over_slices;
use crate::summary::{Figure, How};

/// The cost of `resource`; `None` when neither side has it, or neither used any of it.
pub fn cost(
    evidence: &Evidence<'_>,
    level: usize,
    contender: usize,
    resource: &Resource,
    paired: Paired,
) -> Option<Cost> {
    let plan = evidence.plan();
    let blocks = evidence.watched(level);
    let of_side = |who: usize| -> Option<Taken> {
        let blocks = blocks
            .iter()
            .map(|block| used(evidence, block, who, resource));
        let blocks: Vec<Used> = blocks.collect::<Option<_>>()?;
        Some(Taken::new(
            blocks.iter().map(|block| (block.amount, block.by)),
        ))
    };
    // Nothing is left of a side whose counter does not cover what was measured.
    let why_not = |who: usize| {
        let is_rows = resource.of.1.contains(&rows_changed::METRIC);
        let why = is_rows.then(|| rows_changed::why_not_counted(evidence, who));
        let name = &plan.contenders[who].name;
        let late = || evidence.reports.why_late(name, resource.of.1);
        why.flatten().or_else(late)
    };
    let counted = |who: usize| of_side(who).filter(|_| why_not(who).is_none());
    let (baseline, other) = (counted(plan.baseline), counted(contender));
    let is_idle = |side: &Option<Taken>| side.as_ref().is_none_or(Taken::is_none);
    if is_idle(&baseline) && is_idle(&other) {
        return None;
    }
    let confidence_alpha = 1.0 - plan.decision.confidence;
    let figure = |who: usize, side: &Option<Taken>| match side {
        None => Figure::NotMeasured {
            why: why_not(who)
                .unwrap_or_else(|| format!("`{}` does not count it", plan.contenders[who].name)),
        },
        Some(_) => over_slices(evidence, level, who, resource, confidence_alpha),
    };
    let (ratio, moved) = match (&baseline, &other) {
        (Some(baseline), Some(other)) => {
            let (ratio, moved) = compare(baseline, other, plan.decision.horizon, paired);
            // A block or two cannot show it: one value has none to differ from.
            let could_move = resource.role == Role::Level && blocks.len() >= paired.blocks_needed;
            match could_move && stood_still(baseline) && stood_still(other) {
                true => (without_interval(ratio), Moved::Still),
                false => (ratio, moved),
            }
        }
        _ => (
            Figure::NotMeasured {
                why: "not counted on both sides".to_owned(),
            },
            Moved::Unknown,
        ),
    };
    Some(Cost {
        resource: resource.id.to_owned(),
        name: resource.name.to_owned(),
        unit: resource.unit,
        group: resource.group,
        is_main: resource.role == Role::Main,
        is_level: resource.role == Role::Level,
        baseline: figure(plan.baseline, &baseline),
        contender: figure(contender, &other),
        ratio,
        moved,
    })
}

/// An amount, and the number of transactions (of slices, for a level) that it is divided by.
struct Used {
    amount: f64,
    by: f64,
}

fn used(
    evidence: &Evidence<'_>,
    block: &CompleteBlock<'_>,
    who: usize,
    resource: &Resource,
) -> Option<Used> {
    let mut sum = Used {
        amount: 0.0,
        by: 0.0,
    };
    for row in block.slices_of(who) {
        let one = of_slice(evidence, row, resource)?;
        sum.amount += one.amount;
        sum.by += one.by;
    }
    (sum.by > 0.0).then_some(sum)
}

fn of_slice(evidence: &Evidence<'_>, row: &SliceRow, resource: &Resource) -> Option<Used> {
    let (source, metrics) = resource.of;
    let readings = metrics.iter().map(|metric| match resource.role {
        Role::Level => evidence.reading(row.slice(), source, metric),
        Role::Main | Role::Detail => evidence.used(row.slice(), source, metric),
    });
    let less = resource
        .less
        .and_then(|metric| evidence.used(row.slice(), source, metric))
        .unwrap_or(0.0);
    let factor = match resource.unit {
        Unit::Microseconds => 1e6,
        Unit::Bytes | Unit::Count => 1.0,
    };
    Some(Used {
        amount: (readings.sum::<Option<f64>>()? - less).max(0.0) * factor,
        by: match resource.role {
            Role::Level => 1.0,
            Role::Main | Role::Detail => row.ok as f64,
        },
    })
}

fn over_slices(
    evidence: &Evidence<'_>,
    level: usize,
    who: usize,
    resource: &Resource,
    alpha: f64,
) -> Figure {
    let slices = evidence.levels[level].slices_of(who);
    let (amounts, by): (Vec<f64>, Vec<f64>) = slices
        .filter_map(|row| of_slice(evidence, row, resource))
        .map(|used| (used.amount, used.by))
        .unzip();
    ratio_over_slices(&amounts, &by, alpha, How::Readings)
}

/// True when all blocks have the same of it; so it is with a single block.
fn stood_still(side: &Taken) -> bool {
    let mut next = side.each().skip(1);
    side.each().zip(&mut next).all(|(one, next)| one == next)
}

/// The same value as a figure that claims no more: blocks without any spread have an interval without any width.
fn without_interval(ratio: Figure) -> Figure {
    match ratio {
        Figure::Estimated { value, n, how, .. } => Figure::Bare {
            value,
            n,
            how,
            why: "it did not change in any block".to_owned(),
        },
        other => other,
    }
}

/// The ratio and what it shows. Where one side has none of it there is no ratio, and the difference shows alone.
fn compare(baseline: &Taken, contender: &Taken, horizon: f64, paired: Paired) -> (Figure, Moved) {
    if baseline.is_none() || contender.is_none() {
        let ratio = Figure::NotMeasured {
            why: "none of it on one side".to_owned(),
        };
        let moved = match paired.difference(baseline, contender).interval() {
            Some((_, high)) if high < 0.0 => Moved::Less,
            Some((low, _)) if low > 0.0 => Moved::More,
            _ => Moved::Unclear,
        };
        return (ratio, moved);
    }
    let ratio = paired.ratio(baseline, contender);
    let moved = match ratio.interval() {
        Some((low, high)) if 1.0 / (1.0 + horizon) <= low && high <= 1.0 + horizon => Moved::Same,
        Some((_, high)) if high < 1.0 => Moved::Less,
        Some((low, _)) if low > 1.0 => Moved::More,
        _ => Moved::Unclear,
    };
    (ratio, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRED: Paired = Paired {
        alpha: 0.01,
        blocks_needed: 6,
    };

    /// Blocks of one transaction each.
    fn taken(amounts: &[f64]) -> Taken {
        Taken::new(amounts.iter().map(|amount| (*amount, 1.0)))
    }

    #[track_caller]
    fn check(baseline: &[f64], contender: &[f64], expected: Moved) {
        let compared = compare(&taken(baseline), &taken(contender), 0.02, PAIRED);
        assert_eq!(compared.1, expected);
    }

    #[test]
    fn blocks_show_less_more_the_same_or_nothing() {
        let level = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
        let scaled = |factor: f64| level.map(|value| value * factor);
        check(&level, &scaled(0.6), Moved::Less);
        check(&level, &scaled(1.7), Moved::More);
        check(&level, &scaled(1.003), Moved::Same);
        check(
            &level,
            &[80.0, 130.0, 70.0, 140.0, 95.0, 60.0],
            Moved::Unclear,
        );
        check(&level[..5], &scaled(0.6)[..5], Moved::Unclear);
    }

    #[test]
    fn a_constant_has_no_interval() {
        assert!(stood_still(&taken(&[435.0; 7])) && stood_still(&taken(&[435.0])));
        assert!(!stood_still(&taken(&[435.0, 436.0, 435.0])));
        let (ratio, _) = compare(&taken(&[1.0; 7]), &taken(&[435.0; 7]), 0.02, PAIRED);
        let ratio = without_interval(ratio);
        assert!(ratio.interval().is_none() && (ratio.value().unwrap() - 435.0).abs() < 1e-9);
    }

    #[test]
    fn what_only_one_side_does_has_no_ratio_and_is_seen_all_the_same() {
        let some = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95];
        let none = [0.0; 6];
        check(&some, &none, Moved::Less);
        check(&none, &some, Moved::More);
        check(&none[..2], &some[..2], Moved::Unclear);
        assert_eq!(
            compare(&taken(&some), &taken(&none), 0.02, PAIRED)
                .0
                .value(),
            None
        );
    }

    #[test]
    fn what_only_some_blocks_have_is_compared_all_the_same() {
        let many = [0.5, 0.51, 0.49, 0.5, 0.52, 0.5, 0.48, 0.5];
        let few = [0.0, 0.0, 0.001, 0.0, 0.0, 0.0, 0.0, 0.0];
        let (ratio, moved) = compare(&taken(&many), &taken(&few), 0.02, PAIRED);
        assert_eq!(moved, Moved::Less);
        assert!((ratio.value().unwrap() - 0.001 / 4.0).abs() < 1e-9);
    }
}
