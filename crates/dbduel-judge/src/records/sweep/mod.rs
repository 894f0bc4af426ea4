//! The cells of a sweep side by side: curves over each factor, and where contenders change places.
//!
//! Ratios are compared within blocks, so that they may be read across cells; throughput of different cells
//! was measured at different times, and its intervals do not hold what the machine did in between. Reads the
//! records of the cells and nothing else.

mod summary;

use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::sweep::{Factor, SweepPlan};
use dbduel_record::used::Extensions;

use crate::evidence::Evidence;
use crate::levels::crossing::{Size, certain_crossings};
use crate::levels::scaling::bounds;
use crate::summary::{Comparison, Measures, SCHEMA_VERSION};
use crate::{IDENTITY, Summary, summarise};
pub use summary::{
    CellState, FactorCrossing, FactorCrossings, FactorCurve, FactorPoint, SweepSummary, SweptCell,
    SweptComparison, SweptDuel, SweptExtension, SweptMeasures,
};

/// Judges the cells of a sweep, given in the order of the plan. Never fails: what is missing is said.
#[must_use]
pub fn summarise_sweep(plan: &SweepPlan, records: &[Option<Record>]) -> SweepSummary {
    let judged: Vec<Option<Judged<'_>>> = records
        .iter()
        .map(|record| {
            let record = record.as_ref()?;
            Some(Judged {
                summary: summarise(record).0,
                evidence: Evidence::of(record),
            })
        })
        .collect();
    let cells: Vec<SweptCell> = plan
        .cells
        .iter()
        .enumerate()
        .map(|(number, cell)| {
            let judged = judged.get(number).and_then(Option::as_ref);
            SweptCell {
                name: cell.name.clone(),
                label: plan.label(cell),
                levels: cell.levels.clone(),
                state: judged.map_or(CellState::NotBegun, |one| state(one.evidence.record)),
                extension: judged.and_then(|one| extension(one.evidence.record)),
                duels: judged.map_or_else(Vec::new, |one| duels(&one.summary)),
            }
        })
        .collect();
    let any = judged.iter().flatten().next().map(|one| &one.summary);
    let curves = (0..plan.factors.len()).flat_map(|factor| curves(plan, &cells, &judged, factor));
    SweepSummary {
        schema_version: SCHEMA_VERSION,
        judged_by: IDENTITY.to_owned(),
        planned_by: plan.dbduel.clone(),
        created: plan.created.clone(),
        question: plan.question.clone(),
        baseline: any.map(|summary| summary.baseline.clone()),
        contenders: any.map_or_else(Vec::new, |summary| {
            let names = summary.contenders.iter();
            names.map(|contender| contender.name.clone()).collect()
        }),
        confidence: any.map(|summary| summary.rule.confidence),
        horizon: any.map(|summary| summary.rule.horizon),
        factors: plan.factors.clone(),
        curves: curves.collect(),
        cells,
    }
}

/// A cell that has begun.
struct Judged<'a> {
    summary: Summary,
    evidence: Evidence<'a>,
}

fn state(record: &Record) -> CellState {
    match record.is_over() {
        true => CellState::Over,
        false => CellState::Unfinished,
    }
}

fn extension(record: &Record) -> Option<SweptExtension> {
    let Extensions {
        count,
        used_s,
        blocks,
    } = record.extensions()?;
    Some(SweptExtension {
        count,
        used_s,
        blocks,
    })
}

fn duels(summary: &Summary) -> Vec<SweptDuel> {
    let measures = |measures: &Measures| SweptMeasures {
        contender: measures.contender.clone(),
        throughput_per_s: measures.throughput_per_s.clone(),
        latency_us_p99: measures.latency_us_p99.clone(),
    };
    let compared = |comparison: &Comparison| SweptComparison {
        contender: comparison.contender.clone(),
        verdict: comparison.verdict,
        because: comparison.because.clone(),
        ratio: comparison.ratio.clone(),
    };
    let duels = summary.duels.iter().map(|duel| SweptDuel {
        label: duel.label.clone(),
        contenders: duel.contenders.iter().map(measures).collect(),
        comparisons: duel.comparisons.iter().map(compared).collect(),
    });
    duels.collect()
}

/// The curves over one factor.
fn curves(
    plan: &SweepPlan,
    cells: &[SweptCell],
    judged: &[Option<Judged<'_>>],
    factor: usize,
) -> Vec<FactorCurve> {
    let labels: Vec<String> = cells
        .iter()
        .find(|cell| !cell.duels.is_empty())
        .map(|cell| cell.duels.iter().map(|duel| duel.label.clone()).collect())
        .unwrap_or_default();
    let is_beside = |one: &SweptCell, other: &SweptCell| {
        let levels = one.levels.iter().zip(&other.levels).enumerate();
        levels
            .into_iter()
            .all(|(number, (one, other))| number == factor || one == other)
    };
    // One curve for each cell at the first level of the factor, in the order of the other factors.
    let mut starts: Vec<usize> = (0..cells.len())
        .filter(|&cell| cells[cell].levels[factor] == 0)
        .collect();
    starts.sort_by_key(|&cell| cells[cell].levels.clone());
    let mut curves = Vec::new();
    for start in starts {
        let mut along: Vec<usize> = (0..cells.len())
            .filter(|&cell| is_beside(&cells[cell], &cells[start]))
            .collect();
        along.sort_by_key(|&cell| cells[cell].levels[factor]);
        let others = plan.factors.iter().zip(&cells[start].levels).enumerate();
        let held: Vec<String> = others
            .filter(|(number, _)| *number != factor)
            .map(|(_, (other, &level))| format!("{} = {}", other.name, other.levels[level].label))
            .collect();
        for duel in 0..labels.len().max(1) {
            let load = labels.get(duel).filter(|_| labels.len() > 1);
            curves.push(FactorCurve {
                factor,
                held: held.iter().chain(load).cloned().collect(),
                duel,
                crossings: crossings(&plan.factors[factor], &along, judged, cells, duel),
                cells: along.clone(),
            });
        }
    }
    curves
}

/// Where every contender crosses the baseline along a curve.
fn crossings(
    factor: &Factor,
    along: &[usize],
    judged: &[Option<Judged<'_>>],
    cells: &[SweptCell],
    duel: usize,
) -> Vec<FactorCrossings> {
    let (Some(sizes), Some(first)) = (factor.sizes(), judged.iter().flatten().next()) else {
        return Vec::new();
    };
    let plan = first.evidence.plan();
    let others = plan.challengers();
    let crossed = others.enumerate().map(|(number, contender)| {
        let measured = along.iter().zip(&sizes).map(|(&cell, &size)| {
            let one = judged[cell]
                .as_ref()
                .ok_or_else(|| format!("the cell {} has not begun", cells[cell].label))?;
            let comparison = one
                .summary
                .duels
                .get(duel)
                .and_then(|duel| duel.comparisons.get(number))
                .ok_or_else(|| format!("the cell {} has no such duel", cells[cell].label))?;
            if comparison.verdict == Verdict::Void {
                return Err(format!("the cell {} is void", cells[cell].label));
            }
            Ok(Size {
                size,
                evidence: &one.evidence,
                level: duel,
                log_ratios: comparison.log_ratios(),
            })
        });
        let outcome = measured
            .collect::<Result<Vec<Size<'_>>, String>>()
            .and_then(|measured| {
                certain_crossings(&measured, contender, plan.decision.confidence)
                    .map_err(|error| error.to_string())
            });
        FactorCrossings {
            contender: plan.contenders[contender].name.clone(),
            outcome: match outcome {
                Err(why) => FactorCrossing::NotKnown { why },
                Ok(found) if found.is_empty() => FactorCrossing::NoneDemonstrated {
                    from: sizes[0],
                    to: sizes[sizes.len() - 1],
                },
                Ok(found) => FactorCrossing::Found {
                    points: found
                        .iter()
                        .map(|crossing| FactorPoint {
                            at: bounds(&crossing.at),
                            is_faster_above: crossing.rising,
                        })
                        .collect(),
                },
            },
        }
    });
    crossed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::sweep;

    #[test]
    fn contenders_that_change_places_are_said_to_between_the_levels_where_they_do() {
        let (plan, records) = sweep(&[1_000, 10_000, 100_000], &[0.8, 0.9, 1.25]);
        let summary = summarise_sweep(&plan, &records);
        let [curve] = summary.curves.as_slice() else {
            panic!("{:?}", summary.curves)
        };
        // In the order of the levels, though the cells ran the other way round.
        assert_eq!(curve.cells, [2, 1, 0]);
        let FactorCrossing::Found { points } = &curve.crossings[0].outcome else {
            panic!("{:?}", curve.crossings)
        };
        let at = points[0].at;
        assert!(points.len() == 1 && points[0].is_faster_above);
        assert!(at.low > 9_999.9 && at.high < 100_000.1, "{at:?}");
        assert!(
            summary
                .cells
                .iter()
                .all(|cell| cell.state == CellState::Over)
        );
    }

    #[test]
    fn curves_that_do_not_cross_are_not_said_to() {
        let (plan, records) = sweep(&[1_000, 10_000], &[1.1, 1.2]);
        let summary = summarise_sweep(&plan, &records);
        assert_eq!(
            summary.curves[0].crossings[0].outcome,
            FactorCrossing::NoneDemonstrated {
                from: 1_000.0,
                to: 10_000.0
            }
        );
    }

    #[test]
    fn a_cell_whose_turn_has_not_come_is_missing_and_named() {
        let (plan, mut records) = sweep(&[1_000, 10_000], &[0.8, 1.2]);
        records[1] = None;
        let summary = summarise_sweep(&plan, &records);
        assert_eq!(summary.cells[1].state, CellState::NotBegun);
        let FactorCrossing::NotKnown { why } = &summary.curves[0].crossings[0].outcome else {
            panic!("{:?}", summary.curves)
        };
        assert!(why.contains("table_size = 1000 has not begun"), "{why}");
        let empty = summarise_sweep(&plan, &[None, None]);
        assert!(empty.baseline.is_none() && empty.curves[0].crossings.is_empty());
    }

    #[test]
    fn a_factor_without_numbers_has_a_curve_and_no_crossing() {
        let (mut plan, records) = sweep(&[1_000, 10_000], &[0.8, 1.2]);
        plan.factors[0].levels[1].size = None;
        let summary = summarise_sweep(&plan, &records);
        assert!(summary.curves.len() == 1 && summary.curves[0].crossings.is_empty());
    }

    #[test]
    fn an_interrupted_cell_is_unfinished_until_it_ends() {
        let (_, records) = sweep(&[1, 2], &[1.0, 1.0]);
        let mut record = records.into_iter().flatten().next().unwrap();
        assert_eq!(state(&record), CellState::Over);
        let at_ms = record.events.last().unwrap().at_ms;
        record.events.push(dbduel_record::Stamped {
            at_ms,
            what: dbduel_record::Event::Started {
                pid: 1,
                dbduel: String::new(),
                epoch: 1,
            },
        });
        assert_eq!(state(&record), CellState::Unfinished);
    }
}
