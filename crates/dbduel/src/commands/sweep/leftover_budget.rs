//! Distribution of a sweep's leftover budget to its undecided cells.
//!
//! Cells run one after the other. Budget that a cell leaves goes to those after it, and the rest at the end to
//! undecided cells before. Such a cell is extended like any other record: blocks beyond those of its plan are decided
//! by the reserve of the error probability, which may be spent at any time, so no choice of cells made here can raise
//! the error rate.
//!
//! Void parts get nothing: more time does not clear up unequal settings or data, a broken condition of the tables, or a
//! contender that commits nothing or fails. An undecided part of the same cell is extended nevertheless.

use dbduel_experiment::expand::least_extension_s;
use dbduel_judge::{self as judge, Summary};
use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_report::words;

use crate::commands::run;
use crate::exit::Exit;

/// Extensions that a cell may have in all. Each costs a start of its servers, and the bound ends a sweep
/// whose cells use nothing of what they get.
const EXTENSIONS_MAX: usize = 4;

/// Relative difference of two times that counts as rounding.
const ROUNDING: f64 = 1e-9;

/// State of a finished cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Load that it used, seconds.
    pub used_s: f64,
    /// Planned load that it did not use, seconds; negative when lost slices took more than planned.
    pub own_s: f64,
    /// Whether more time would help.
    pub want: Want,
    /// True when a part of its answer is void.
    pub is_void: bool,
}

/// Use of more time for a finished cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Want {
    /// All of it is decided or void.
    Nothing,
    /// Undecided; this is the least time that it can use, seconds.
    AtLeast(f64),
    /// Undecided, and not to be extended.
    Closed(Closed),
}

impl Want {
    fn least_s(self) -> Option<f64> {
        match self {
            Self::AtLeast(least_s) => Some(least_s),
            Self::Nothing | Self::Closed(_) => None,
        }
    }
}

/// Why an undecided cell is not extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// The number of starts of its servers was fixed beforehand.
    FixedStarts,
    /// It reached the limit of extensions.
    Extended,
    /// Its ratio changed during the run, which more time does not settle.
    RatioChanged,
}

impl Closed {
    const ALL: [Self; 3] = [Self::FixedStarts, Self::Extended, Self::RatioChanged];

    /// The reason, with the number of cells in `cells`.
    fn text(self, cells: &str) -> String {
        match self {
            Self::FixedStarts => {
                format!("undecided cells have a fixed number of starts ({cells})")
            }
            Self::Extended => {
                format!(
                    "undecided cells reached the limit of {EXTENSIONS_MAX} extensions ({cells})"
                )
            }
            Self::RatioChanged => {
                format!("more time does not settle a ratio that changed during the run ({cells})")
            }
        }
    }
}

impl Standing {
    /// Judges the record of a cell.
    pub(super) fn of(record: &Record) -> Self {
        let used_s = record.used_s();
        let summary = judge::summarise(record).0;
        Self {
            used_s,
            own_s: record.plan.schedule.budget_s - used_s,
            want: want(record, &summary),
            is_void: run::exit_of(&summary) == Exit::Void,
        }
    }
}

fn want(record: &Record, summary: &Summary) -> Want {
    let plan = &record.plan;
    if !run::is_undecided(summary) {
        return Want::Nothing;
    }
    if !run::may_be_extended(plan) {
        return Want::Closed(Closed::FixedStarts);
    }
    if record.extensions().map_or(0, |all| all.count) >= EXTENSIONS_MAX {
        return Want::Closed(Closed::Extended);
    }
    let undecided = summary.duels.iter().filter(|duel| {
        let mut comparisons = duel.comparisons.iter();
        comparisons.any(|one| one.verdict == Verdict::Undecided && one.because.is_none())
    });
    if summary.search.is_none() && undecided.clone().next().is_none() {
        return Want::Closed(Closed::RatioChanged);
    }
    let blocks = undecided.map(|duel| duel.blocks_complete).sum();
    Want::AtLeast(least_extension_s(plan, blocks))
}

/// The cell to extend next and its load, seconds; `None` when no cell can use the remaining budget.
///
/// The cells with the least load are raised to a common level (water-filling). When that gives one of them less than it
/// can use, or less than its plan has left, fewer cells share.
pub(super) fn next(left_s: f64, cells: &[Standing]) -> Option<(usize, f64)> {
    let mut wanting: Vec<(usize, f64, f64)> = cells
        .iter()
        .enumerate()
        .filter_map(|(cell, standing)| {
            let least_s = standing.want.least_s()?.max(standing.own_s.min(left_s));
            Some((cell, standing.used_s, least_s))
        })
        .filter(|(_, _, least_s)| *least_s <= left_s)
        .collect();
    // Stable: cells that had the same go on in the order of the sweep.
    wanting.sort_by(|one, other| one.1.total_cmp(&other.1));
    let gets = (1..=wanting.len()).rev().find_map(|count| {
        let lowest = &wanting[..count];
        let had_s: f64 = lowest.iter().map(|(_, used_s, _)| used_s).sum();
        let height_s = (left_s + had_s) / count as f64;
        // What comes out less by rounding alone is no less.
        let is_of_use = |(_, used_s, least_s): &(usize, f64, f64)| {
            height_s - used_s >= *least_s * (1.0 - ROUNDING)
        };
        let (cell, used_s, _) = lowest[0];
        lowest
            .iter()
            .all(is_of_use)
            .then_some((cell, height_s - used_s))
    });
    // Rounding must not give away more than there is.
    gets.map(|(cell, seconds)| (cell, seconds.min(left_s)))
}

/// Why budget is left although not every cell has an answer; `None` when there is no such budget or cell.
pub(super) fn left_over(left_s: f64, cells: &[Standing]) -> Option<String> {
    if left_s < 1.0 {
        return None;
    }
    let those = |is_meant: &dyn Fn(&Standing) -> bool| {
        let count = cells.iter().filter(|cell| is_meant(cell)).count();
        (count > 0).then(|| format!("{count} of {} cells", cells.len()))
    };
    let short = those(&|cell| cell.want.least_s().is_some());
    let closed = Closed::ALL.iter().filter_map(|reason| {
        let cells = those(&|cell| cell.want == Want::Closed(*reason))?;
        Some(reason.text(&cells))
    });
    let void = those(&|cell| cell.is_void);
    let reasons: Vec<String> = (short.iter())
        .map(|cells| format!("too little to extend undecided cells ({cells})"))
        .chain(closed)
        .chain(void.iter().map(|cells| {
            format!("more time does not cure void results ({cells}); the reports name the cause")
        }))
        .collect();
    (!reasons.is_empty()).then(|| {
        let left = words::duration(left_s);
        format!("{left} of the budget left over: {}", reasons.join(", and "))
    })
}

#[cfg(test)]
mod tests {
    use dbduel_record::Event;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    fn undecided(used_s: f64, least_s: f64) -> Standing {
        Standing {
            used_s,
            own_s: 0.0,
            want: Want::AtLeast(least_s),
            is_void: false,
        }
    }

    fn decided(used_s: f64) -> Standing {
        Standing {
            used_s,
            own_s: 0.0,
            want: Want::Nothing,
            is_void: false,
        }
    }

    /// What every cell gets when each uses all that it is given and stays undecided.
    fn given(mut left_s: f64, mut cells: Vec<Standing>) -> Vec<f64> {
        let mut given = vec![0.0; cells.len()];
        while let Some((cell, seconds)) = next(left_s, &cells) {
            given[cell] += seconds;
            cells[cell].used_s += seconds;
            left_s -= seconds;
        }
        assert!(left_s >= 0.0, "{left_s}");
        given
    }

    #[test]
    fn undecided_cells_that_had_the_same_get_the_same_and_decided_ones_nothing() {
        let cells = vec![undecided(30.0, 5.0), decided(10.0), undecided(30.0, 5.0)];
        assert_eq!(given(40.0, cells), [20.0, 0.0, 20.0]);
    }

    #[test]
    fn cells_that_had_less_catch_up_first() {
        let cells = vec![undecided(40.0, 5.0), undecided(10.0, 5.0)];
        assert_eq!(given(20.0, cells.clone()), [0.0, 20.0]);
        assert_eq!(given(50.0, cells), [10.0, 40.0]);
    }

    #[test]
    fn where_it_is_too_little_for_all_fewer_get_enough() {
        let cells = vec![undecided(10.0, 8.0); 3];
        assert_eq!(given(20.0, cells.clone()), [10.0, 10.0, 0.0]);
        assert_eq!(given(7.0, cells), [0.0; 3]);
        let cells = vec![undecided(10.0, 30.0), undecided(20.0, 5.0)];
        assert_eq!(given(12.0, cells), [0.0, 12.0]);
    }

    #[test]
    fn a_cell_gets_no_less_than_its_plan_lets_it_use() {
        let early = Standing {
            own_s: 10.0,
            ..undecided(30.0, 5.0)
        };
        let cells = [early, undecided(28.0, 5.0)];
        // One height for both would be 35 seconds, but the first could not be held to it.
        assert_eq!(next(12.0, &cells), Some((1, 12.0)));
        assert_eq!(next(12.0, &cells[..1]), Some((0, 12.0)));
        assert_eq!(next(8.0, &cells[..1]), Some((0, 8.0)));
    }

    #[test]
    fn what_a_cell_leaves_by_being_decided_goes_to_the_others() {
        let mut cells = [undecided(30.0, 5.0), undecided(30.0, 5.0)];
        let (first, seconds) = next(40.0, &cells).unwrap();
        assert_eq!((first, seconds), (0, 20.0));
        // It needed 4 of its 20 seconds.
        cells[0] = decided(34.0);
        assert_eq!(next(36.0, &cells), Some((1, 36.0)));
        cells[1] = decided(50.0);
        assert_eq!(next(16.0, &cells), None);
    }

    #[test]
    fn what_is_void_wants_nothing_and_hides_nothing_that_is_undecided() {
        let three_blocks = Scenario {
            clients: vec![16],
            blocks: 3,
            ..Scenario::four()
        };
        let all = Standing::of(&three_blocks.record());
        assert!(all.want.least_s().is_some() && !all.is_void);

        // One of three comparisons is void.
        let mut unequal = three_blocks.clone();
        unequal.sides[2].digest = "another".to_owned();
        let one = Standing::of(&unequal.record());
        assert_eq!(one.want, all.want);
        assert!(one.is_void);

        // All of them.
        let mut unequal = three_blocks;
        unequal.sides[0].digest = "another".to_owned();
        let none = Standing::of(&unequal.record());
        assert_eq!(none.want, Want::Nothing);
        assert!(none.is_void);
    }

    #[test]
    fn time_that_helps_nobody_is_told_with_the_reason() {
        let void = Standing {
            is_void: true,
            ..decided(10.0)
        };
        assert_eq!(left_over(60.0, &[decided(30.0), decided(10.0)]), None);
        assert_eq!(left_over(0.4, &[void]), None);
        assert_eq!(
            left_over(60.0, &[decided(30.0), void]).unwrap(),
            "60 s of the budget left over: more time does not cure void results (1 of 2 cells); the reports name the cause"
        );
        let said = left_over(60.0, &[undecided(30.0, 90.0), void]).unwrap();
        assert!(
            said.contains(
                "too little to extend undecided cells (1 of 2 cells), and more time does not"
            ),
            "{said}"
        );
    }

    #[test]
    fn time_is_told_that_is_left_because_what_is_undecided_may_not_have_it() {
        for (reason, word) in [
            (Closed::FixedStarts, "fixed number of starts"),
            (Closed::Extended, "limit of 4 extensions"),
            (Closed::RatioChanged, "a ratio that changed"),
        ] {
            let closed = Standing {
                want: Want::Closed(reason),
                ..decided(30.0)
            };
            assert_eq!(next(60.0, &[closed]), None);
            let said = left_over(60.0, &[decided(10.0), closed, closed]).unwrap();
            assert!(
                said.contains(word) && said.contains("(2 of 3 cells)"),
                "{said}"
            );
        }
    }

    #[test]
    fn only_an_undecided_record_that_may_be_extended_wants_more() {
        let scenario = Scenario {
            clients: vec![16],
            blocks: 3,
            ..Scenario::duel()
        };
        let record = scenario.record();
        let standing = Standing::of(&record);
        let least_s = standing
            .want
            .least_s()
            .expect("three blocks decide nothing");
        assert!(standing.used_s > 0.0);
        let warm_ups_s = record.plan.schedule.warm_up_cap_s * record.plan.contenders.len() as f64;
        assert!(least_s > warm_ups_s, "{least_s}");

        let mut restarted = record.clone();
        restarted.plan.schedule.epochs = Some(dbduel_record::plan::Epochs {
            count: 4,
            blocks: 3,
        });
        assert_eq!(
            Standing::of(&restarted).want,
            Want::Closed(Closed::FixedStarts)
        );

        let mut often = record;
        let extended = dbduel_record::Stamped {
            at_ms: often.events.last().unwrap().at_ms,
            what: Event::Extended {
                budget_s: 0.0,
                blocks: Vec::new(),
            },
        };
        often.events.extend(vec![extended; EXTENSIONS_MAX]);
        assert_eq!(Standing::of(&often).want, Want::Closed(Closed::Extended));

        let whole = Scenario {
            clients: vec![16],
            ..Scenario::duel()
        };
        assert_eq!(Standing::of(&whole.record()).want, Want::Nothing);

        // A ratio that changed is undecided, and stays so however long it is measured.
        let long = Scenario {
            blocks: 20,
            ..whole
        };
        let mut changed = long.record();
        for row in &mut changed.slices {
            let is_late = row.block >= long.blocks / 2;
            if row.contender == "no-doublewrite" {
                row.ok = if is_late { row.ok / 9 } else { row.ok * 9 };
            }
        }
        let summary = judge::summarise(&changed).0;
        let comparison = &summary.duels[0].comparisons[0];
        assert!(comparison.because.is_some(), "{comparison:?}");
        assert_eq!(comparison.verdict, Verdict::Undecided);
        let closed = Want::Closed(Closed::RatioChanged);
        assert_eq!(Standing::of(&changed).want, closed);
    }
}
