//! How often a steady cell is called unsteady, and whether an unsteady one is found, where the truth is known.

use dbduel_record::event::{Finding, Severity};
use dbduel_record::plan::Block;

use super::*;
use crate::judge::summarise;
use crate::judge::synthetic::{MachineNoise, NASTY, QUIET, Scenario, Side, TYPICAL};

/// Simulated runs for each machine and design; the figures in `docs/statistics.md` are from 500.
const RUNS: u64 = 60;

/// Two equal contenders in slices of 15 s.
fn equals(clients: &[u32], blocks: u32, seed: u64) -> Scenario {
    let speeds = vec![1.0; clients.len()];
    Scenario {
        sides: vec![Side::new("a", &speeds), Side::new("b", &speeds)],
        clients: clients.to_vec(),
        blocks,
        seed,
        ..Scenario::duel()
    }
}

/// What was said of the cells of many runs, percent of the cells.
#[derive(Debug, Default)]
struct Said {
    steady: f64,
    never_settled: f64,
    /// Those of them that are said to have moved against the others.
    by_itself: f64,
    transient: f64,
    entered: f64,
}

fn said(noise: MachineNoise, clients: &[u32], blocks: u32, runs: u64) -> Said {
    let mut said = Said::default();
    let share = 100.0 / (runs as f64 * 2.0 * clients.len() as f64);
    for seed in 0..runs {
        let record = equals(clients, blocks, seed).on_machine(noise, 7000 + seed, |_, _| 0.0);
        let evidence = Evidence::of(&record);
        for level in 0..clients.len() {
            for contender in 0..2 {
                let course = course(&evidence, level, contender).unwrap();
                let never = course.state == SteadyState::NeverSettled;
                let is_off = |ratio: &Figure| {
                    ratio
                        .interval()
                        .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
                };
                said.steady += share * f64::from(course.state == SteadyState::Steady);
                said.never_settled += share * f64::from(never);
                said.by_itself += share * f64::from(never && is_off(&course.own_change));
                said.transient += share * f64::from(course.transient.is_some());
                said.entered += share * f64::from(course.entered.as_ref().is_some_and(is_off));
            }
        }
    }
    said
}

#[test]
fn steady_cells_are_rarely_called_unsteady() {
    let designs: [(&[u32], u32); 3] = [(&[16], 12), (&[16], 53), (&[1, 16, 64], 18)];
    // Percent of the cells that may be said to have never settled, and to have settled late.
    let machines = [
        ("quiet", QUIET, 1.0, 1.0),
        ("typical", TYPICAL, 8.0, 15.0),
        ("nasty", NASTY, 15.0, 20.0),
    ];
    for (name, noise, never_settled, late) in machines {
        for (clients, blocks) in designs {
            let said = said(noise, clients, blocks, RUNS);
            let where_said = format!("{name}, {} × {blocks}: {said:.1?}", clients.len());
            assert!(
                said.never_settled <= never_settled && said.transient <= late,
                "{where_said}"
            );
            assert!(said.by_itself <= 1.5 && said.entered <= 1.5, "{where_said}");
            assert!(name != "quiet" || said.steady > 98.0, "{where_said}");
        }
    }
}

/// The findings about steadiness of a run on a quiet machine in which contenders have these speeds.
fn findings(log_speed: impl Fn(&Block, usize) -> f64) -> Vec<Finding> {
    let record = equals(&[1, 16], 20, 3).on_machine(QUIET, 5, log_speed);
    let (_, findings) = summarise(&record);
    let own = findings.into_iter();
    own.filter(|finding| finding.rule.starts_with("steady."))
        .collect()
}

#[test]
fn a_run_without_trouble_is_not_spoken_of() {
    assert_eq!(findings(|_, _| 0.0), []);
}

#[test]
fn a_level_that_warms_up_in_its_own_blocks_is_told() {
    let found = findings(|block, _| match (block.level, block.round) {
        (0, 0..4) => -0.4,
        _ => 0.0,
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].rule, "steady.settled-late");
    assert_eq!(found[0].about, ["a", "b"]);
    assert!(found[0].claim.contains("of 1 client lie apart"));
}

#[test]
fn a_contender_that_never_settles_is_told_and_the_other_is_not() {
    let found = findings(|block, position| {
        let is_drifting = block.level == 1 && block.order[position] == 1;
        f64::from(u8::from(is_drifting)) * -0.02 * f64::from(block.round)
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (
            found[0].rule.as_str(),
            found[0].severity,
            &found[0].about[..]
        ),
        (
            "steady.never-settled",
            Severity::Doubt,
            &["b".to_owned()][..]
        )
    );
}

#[test]
fn a_machine_that_slows_down_moves_all_alike_and_the_ratio_holds() {
    let found = findings(|block, _| -0.02 * f64::from(block.round));
    assert_eq!(found.len(), 2, "{found:?}");
    for finding in found {
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(finding.about, ["a", "b"]);
        assert!(finding.claim.contains("moved alike"), "{}", finding.claim);
    }
}

#[test]
fn what_another_level_left_behind_is_told() {
    let found = findings(|block, position| {
        let is_first = position < 2;
        f64::from(u8::from(is_first && block.level == 1)) * -0.1
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].rule, "steady.level-entered");
    assert!(
        found[0].claim.starts_with("At 16 clients"),
        "{}",
        found[0].claim
    );
}

#[test]
fn too_few_slices_show_nothing_and_say_so() {
    let record =
        equals(&[1, 16], 3, 1).on_machine(QUIET, 1, |block, _| -0.1 * f64::from(block.round));
    let mut record = record;
    record
        .slices
        .retain(|row| record.plan.blocks[row.block as usize].round < 3);
    let course = course(&Evidence::of(&record), 0, 0).unwrap();
    assert_eq!(course.state, SteadyState::NotShown);
    assert!(matches!(course.change, Figure::NotMeasured { why } if why.contains('8')));
    let entered = course.entered.unwrap();
    assert!(matches!(entered, Figure::NotMeasured { why } if why.contains("at least 6")));
}
