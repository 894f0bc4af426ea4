//! How often a steady cell is called unsteady, and whether an unsteady one is found, where the truth is known.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_record::plan::Block;
use dbduel_testkit::synthetic::{MachineNoise, NASTY, QUIET, Scenario, Side, TYPICAL};

use super::*;
use crate::summarise;

/// Simulated runs for each machine and design; the figures in `docs/statistics.md` are from 500.
const RUNS: u64 = 60;

/// What a half says that has too few slices.
const TOO_FEW: &str = "series: got 6, but at least 8 are needed; measure longer";

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
    /// Those of them that are said to have moved against the others by more than the tolerance.
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
                let is_off = |ratio: &Figure| is_beyond(ratio, CellCourse::TOLERANCE);
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
        ("typical", TYPICAL, 8.0, 3.0),
        ("nasty", NASTY, 13.0, 4.0),
    ];
    for (name, noise, never_settled, late) in machines {
        for (clients, blocks) in designs {
            let said = said(noise, clients, blocks, RUNS);
            let where_said = format!("{name}, {} × {blocks}: {said:.1?}", clients.len());
            assert!(
                said.never_settled <= never_settled && said.transient <= late,
                "{where_said}"
            );
            assert!(said.by_itself <= 0.5 && said.entered <= 0.5, "{where_said}");
            assert!(name != "quiet" || said.steady > 98.0, "{where_said}");
        }
    }
}

/// The findings about steadiness of a run on a quiet machine in which contenders have these speeds.
fn findings(log_speed: impl Fn(&Block, usize) -> f64) -> Vec<Finding> {
    let mut found = all_findings(&equals(&[1, 16], 20, 3), log_speed);
    found.retain(|finding| finding.rule.starts_with("steady."));
    found
}

fn all_findings(scenario: &Scenario, log_speed: impl Fn(&Block, usize) -> f64) -> Vec<Finding> {
    summarise(&scenario.on_machine(QUIET, 5, log_speed)).1
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
    assert!(
        found[0]
            .claim
            .contains("of 1 client differ from the later ones")
    );
    assert!(found[0].remedy.contains("a separate experiment"));
}

#[test]
fn where_there_is_one_level_no_other_is_blamed() {
    let cold = |block: &Block, _| if block.round < 4 { -0.4 } else { 0.0 };
    let mut found = all_findings(&equals(&[16], 20, 3), cold);
    found.retain(|finding| finding.rule == "steady.settled-late");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].remedy, "Use a longer warm-up.");
}

#[test]
fn two_slices_apart_are_outliers_and_no_transient() {
    let found = findings(|block, _| if block.round < 1 { -0.4 } else { 0.0 });
    assert_eq!(found, []);
}

#[test]
fn starts_that_differ_are_no_change_within_one() {
    let shifted = |block: &Block, _: usize| if block.round < 8 { -0.4 } else { 0.0 };
    let mut record = equals(&[1, 16], 20, 3).on_machine(QUIET, 5, shifted);
    let as_one = course(&Evidence::of(&record), 0, 0).unwrap();
    assert!(as_one.transient.is_some() || as_one.state == SteadyState::NeverSettled);
    for row in &mut record.slices {
        row.epoch = u32::from(record.plan.blocks[row.block as usize].round >= 8);
    }
    let by_start = course(&Evidence::of(&record), 0, 0).unwrap();
    assert_eq!(by_start.transient, None);
    assert_eq!(by_start.state, SteadyState::Steady, "{:?}", by_start.change);
    assert!(matches!(by_start.change, Figure::Estimated { n: 24, .. }));
}

#[test]
fn a_contender_that_never_settles_is_told_and_a_ratio_that_drifts_is_doubted_once() {
    let mut found = all_findings(&equals(&[1, 16], 20, 3), |block, position| {
        let is_drifting = block.level == 1 && block.order[position] == 1;
        f64::from(u8::from(is_drifting)) * -0.02 * f64::from(block.round)
    });
    found.retain(|one| one.rule.starts_with("steady.") || one.rule == "verdict.ratio-changed");
    let said: Vec<(&str, Severity)> = (found.iter())
        .map(|one| (one.rule.as_str(), one.severity))
        .collect();
    let expected = [
        ("verdict.ratio-changed", Severity::Doubt),
        ("steady.never-settled", Severity::Note),
    ];
    assert_eq!(said, expected);
    assert_eq!(found[1].about, ["b"]);
    assert!(found[1].claim.contains("changed relative to the other"));
}

#[test]
fn of_four_contenders_the_one_that_moves_against_the_others_is_named() {
    let mut four = equals(&[16], 20, 3);
    (four.sides).extend([Side::new("c", &[1.0]), Side::new("d", &[1.0])]);
    // The machine slows all down, and one of them more.
    let mut found = all_findings(&four, |block, position| {
        let own = if block.order[position] == 2 {
            -0.014
        } else {
            0.0
        };
        f64::from(block.round) * (-0.02 + own)
    });
    found.retain(|finding| finding.rule == "steady.never-settled");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].about, ["c"]);
}

#[test]
fn a_trifle_of_own_movement_is_no_doubt() {
    let found = findings(|block, position| {
        let own = if block.order[position] == 1 {
            -0.001
        } else {
            0.0
        };
        f64::from(block.round) * (-0.02 + own)
    });
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|one| one.severity == Severity::Note));
}

#[test]
fn a_machine_that_slows_down_moves_all_alike_and_the_ratio_holds() {
    let found = findings(|block, _| -0.02 * f64::from(block.round));
    assert_eq!(found.len(), 2, "{found:?}");
    for finding in found {
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(finding.about, ["a", "b"]);
        assert!(
            finding.claim.contains("changed equally"),
            "{}",
            finding.claim
        );
    }
}

#[test]
fn what_another_level_left_behind_is_told_by_its_size() {
    let costs = |log_cost: f64| {
        findings(|block, position| {
            let is_first = position < 2;
            f64::from(u8::from(is_first && block.level == 1)) * log_cost
        })
    };
    assert_eq!(costs(-0.015), []);
    let found = costs(-0.05);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity, Severity::Note);
    let found = costs(-0.1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity, Severity::Doubt);
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
    assert!(matches!(course.change, Figure::NotMeasured { why } if why == TOO_FEW));
    let entered = course.entered.unwrap();
    assert!(matches!(entered, Figure::NotMeasured { why } if why.contains("at least 6")));
}
