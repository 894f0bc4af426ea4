//! Extensions of a record: the least useful time, and the blocks that fill it.
//!
//! The decision rule keeps its planned number of blocks; blocks beyond it are decided by the reserve, which has no
//! limit. So the number drawn here, and the results seen before, cannot raise the error rate.

use std::collections::{BTreeMap, BTreeSet};

use dbduel_record::Plan;
use dbduel_record::plan::{Block, TurnChoice};

use super::BLOCKS_CAP;
use super::blocks::{Cut, numbered_from};
use super::schedule::{block_s, load_s, warm_ups_s};

/// The least time for which restarting the servers of a record is worthwhile, seconds: their warm-ups, and enough to
/// add a quarter to its `blocks`. Less would hardly narrow an interval.
#[must_use]
pub fn least_extension_s(plan: &Plan, blocks: u32) -> f64 {
    let contenders = plan.contenders.len();
    let more = blocks.div_ceil(4).max(1);
    let planned: f64 = plan.blocks.iter().map(|block| load_s(plan, block)).sum();
    let each_s = match plan.blocks.len() {
        planned_blocks if plan.schedule.pilot.is_some() && planned_blocks > 0 => {
            planned / planned_blocks as f64
        }
        _ => block_s(&plan.schedule, contenders),
    };
    warm_ups_s(&plan.schedule, contenders) + f64::from(more) * each_s
}

/// Further blocks that `left_s` seconds of load may need, drawn from the plan's seed and numbered after the plan's.
///
/// `left_s` is all that the record has left, including the rest of its plan. With the plan's blocks that have not
/// `begun`, they fill this time at each level even without warm-ups. The contest begins no block that it has no time
/// for, so some may remain.
#[must_use]
pub fn more_blocks(plan: &Plan, begun: &BTreeSet<u32>, left_s: f64) -> Vec<Block> {
    let own = |level: usize| plan.blocks.iter().filter(move |block| block.level == level);
    let waiting_s = |level: usize| -> f64 {
        let waiting = own(level).filter(|block| !begun.contains(&block.id));
        waiting.map(|block| load_s(plan, block)).sum()
    };
    let known = |level: usize| own(level).map(|block| block.round + 1).max().unwrap_or(0);
    // A level whose turns were not chosen gets its blocks when they are, with all of the budget.
    let cuts = (0..plan.levels.len()).filter_map(|level| Some((level, Cut::of(plan, level)?)));
    let new = cuts.flat_map(|(level, cut)| {
        let mut room_s = left_s - waiting_s(level);
        let blocks = cut.blocks().take(BLOCKS_CAP as usize);
        blocks.skip(known(level) as usize).take_while(move |block| {
            room_s -= load_s(plan, block);
            room_s >= 0.0
        })
    });
    numbered_from(plan.blocks.len(), new)
}

/// The numbered blocks of a level whose turns a pilot has chosen, and how many of them the level's share of the
/// remaining budget covers. The others are for a level that gets the time of one decided earlier.
#[must_use]
pub fn chosen_blocks(
    plan: &Plan,
    level: usize,
    choice: &TurnChoice,
    left_s: f64,
) -> (Vec<Block>, u32) {
    let share_s = left_s / plan.levels.len().max(1) as f64;
    let chosen = Plan {
        turns: BTreeMap::from([(level, choice.clone())]),
        blocks: Vec::new(),
        ..plan.clone()
    };
    let (mut used_s, mut paid) = (0.0, 0);
    let blocks = Cut::chosen(plan, level, choice).blocks();
    let fitting = blocks.take(BLOCKS_CAP as usize).take_while(|block| {
        used_s += load_s(&chosen, block);
        paid += u32::from(used_s <= share_s);
        used_s <= left_s
    });
    let blocks = numbered_from(plan.blocks.len(), fitting);
    (blocks, paid.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    fn plan(clients: &[u32]) -> Plan {
        let scenario = Scenario {
            clients: clients.to_vec(),
            ..Scenario::duel()
        };
        scenario.record().plan
    }

    fn longest_s(plan: &Plan) -> f64 {
        let lengths = plan.blocks.iter().map(|block| load_s(plan, block));
        lengths.fold(0.0, f64::max) * (1.0 + plan.schedule.jitter)
    }

    /// Seconds of the blocks at a level that were not begun.
    fn filled_s(plan: &Plan, more: &[Block], begun: &BTreeSet<u32>, level: usize) -> f64 {
        let all = plan.blocks.iter().chain(more);
        all.filter(|block| block.level == level && !begun.contains(&block.id))
            .map(|block| load_s(plan, block))
            .sum()
    }

    #[test]
    fn the_blocks_fill_the_time_that_is_left_and_none_is_longer() {
        let plan = plan(&[16]);
        let begun: BTreeSet<u32> = plan.blocks.iter().map(|block| block.id).collect();
        for left_s in [0.5, 1.0, 3.7, 20.0].map(|blocks| blocks * longest_s(&plan)) {
            let more = more_blocks(&plan, &begun, left_s);
            let filled_s = filled_s(&plan, &more, &begun, 0);
            assert!(
                filled_s <= left_s && filled_s > left_s - longest_s(&plan),
                "{filled_s} of {left_s}"
            );
            let ids = more.iter().map(|block| block.id);
            assert!(ids.eq((plan.blocks.len() as u32..).take(more.len())));
        }
        assert_eq!(more_blocks(&plan, &begun, 0.0), []);
        assert_eq!(more_blocks(&plan, &begun, -3.0), []);
    }

    #[test]
    fn short_slices_of_one_length_fill_a_long_time_too() {
        let mut plan = plan(&[16]);
        plan.schedule.slice_s = 1.0;
        plan.schedule.jitter = 0.0;
        plan.schedule.guard_s = 0.2;
        let begun: BTreeSet<u32> = plan.blocks.iter().map(|block| block.id).collect();
        let block_s = super::super::schedule::block_load_s(&plan.schedule, plan.contenders.len());
        let left_s = 200.5 * block_s;
        let more = more_blocks(&plan, &begun, left_s);
        assert_eq!(more.len(), 200);
        assert!(left_s - filled_s(&plan, &more, &begun, 0) < block_s);
    }

    #[test]
    fn blocks_that_wait_already_are_part_of_what_fills_the_time() {
        let plan = plan(&[16, 64]);
        let mut begun: BTreeSet<u32> = plan.blocks.iter().map(|block| block.id).collect();
        let waiting: Vec<u32> = plan
            .blocks
            .iter()
            .filter(|block| block.level == 0)
            .map(|block| block.id)
            .take(4)
            .collect();
        begun.retain(|id| !waiting.contains(id));
        let left_s = 6.0 * longest_s(&plan);
        let more = more_blocks(&plan, &begun, left_s);
        let count = |level: usize| more.iter().filter(|block| block.level == level).count();
        assert!(0 < count(0) && count(0) < count(1));
        for level in 0..2 {
            let filled_s = filled_s(&plan, &more, &begun, level);
            assert!(filled_s <= left_s && filled_s > left_s - longest_s(&plan));
        }
    }

    #[test]
    fn blocks_of_chosen_turns_fill_what_is_left_and_count_up_to_the_share_of_their_level() {
        let plan = Plan {
            blocks: Vec::new(),
            ..plan(&[16, 64])
        };
        let choice = turn_choice(0.2, 0.05);
        let (blocks, paid) = chosen_blocks(&plan, 1, &choice, 300.0);
        let chosen = Plan {
            turns: [(1, choice)].into(),
            ..plan
        };
        let load =
            |blocks: &[Block]| -> f64 { blocks.iter().map(|block| load_s(&chosen, block)).sum() };
        assert!(
            (270.0..=300.0).contains(&load(&blocks)),
            "{}",
            load(&blocks)
        );
        let own_s = load(&blocks[..paid as usize]);
        assert!((120.0..=150.0).contains(&own_s), "{own_s}");
        assert!(blocks.iter().all(|block| block.level == 1));
        // More time goes on where these end.
        let grown = Plan { blocks, ..chosen };
        let begun: BTreeSet<u32> = grown.blocks.iter().map(|block| block.id).collect();
        let more = more_blocks(&grown, &begun, 60.0);
        let last = grown.blocks.last().unwrap();
        let of_level = more.iter().find(|block| block.level == 1).unwrap();
        assert_eq!(of_level.round, last.round + 1);
        assert!(of_level.repeats >= last.repeats);
    }

    #[test]
    fn a_longer_extension_begins_with_the_blocks_of_a_shorter_one() {
        let plan = plan(&[16]);
        let begun: BTreeSet<u32> = plan.blocks.iter().map(|block| block.id).collect();
        let short = more_blocks(&plan, &begun, 5.0 * longest_s(&plan));
        let long = more_blocks(&plan, &begun, 9.0 * longest_s(&plan));
        assert!(long.len() > short.len() && long.starts_with(&short));
    }
}
