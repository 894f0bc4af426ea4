//! Events of a contest: one stream of what the journal has written and of what it does not keep, for the console, the board and other
//! followers.

use std::cell::RefCell;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use dbduel_load::order::Tick;
use dbduel_record::Plan;
use dbduel_record::event::Event;
use dbduel_record::plan::{Arrival, LoadLevel};
use dbduel_record::record_set::bisection_of;
use dbduel_record::store::SliceResult;
use dbduel_text::percent;

use super::LevelStanding;
use super::board::Phase;
use super::pilot::DRAINED_SHARE_MAX;
use crate::StatusOutput;

/// Something that happened in a contest.
#[derive(Debug)]
pub enum ContestEvent<'e> {
    /// The contest of a plan begins, or is resumed.
    Begun {
        /// The plan.
        plan: &'e Arc<Plan>,
    },
    /// Levels, turns or blocks were added to the plan.
    PlanGrown {
        /// The whole plan.
        plan: &'e Arc<Plan>,
    },
    /// Another phase begins; no contender is under load.
    PhaseBegun(Phase),
    /// A step without measured load begins: a short phrase.
    StepBegun(&'e str),
    /// A tick of load ended.
    Tick {
        /// Index into `Plan::contenders`.
        contender: usize,
        /// Index into `Plan::levels`.
        level: usize,
        /// Its length and counts.
        tick: &'e Tick,
        /// Load used of the budget at its end, seconds.
        used_s: f64,
        /// Purpose and throughput, for progress lines alone.
        message: &'e str,
    },
    /// A slice ended and is in the record.
    SliceRecorded {
        /// Index into `Plan::contenders`.
        contender: usize,
        /// Index into `Plan::levels`.
        level: usize,
        /// Its rows.
        result: &'e SliceResult,
        /// Load used of the budget at its end, seconds.
        used_s: f64,
    },
    /// Load used of the budget without a slice to show for it, seconds.
    LoadUsed {
        /// Used in all.
        used_s: f64,
    },
    /// Standing of a level, before its first block and after each.
    LevelJudged(&'e LevelStanding),
    /// An entry was written to the journal; that of a finished slice is [`ContestEvent::SliceRecorded`].
    Entry(&'e Event),
    /// A statement for the user that the journal does not keep.
    Remark(&'e str),
}

/// Follows the events of a contest.
pub trait Follower: Debug {
    /// Called for each event, in order, by the thread that runs the contest. Entries are in the journal by then.
    fn follow(&self, event: &ContestEvent<'_>);
}

/// Shows a contest on a console: a permanent line for what changes its course, and a progress line.
#[derive(Debug)]
pub struct StatusLines<'o> {
    output: &'o dyn StatusOutput,
    plan: RefCell<Arc<Plan>>,
    /// How to get more time for a duel that stays undecided.
    more_time: String,
}

impl<'o> StatusLines<'o> {
    /// Lines about the contest of `plan` with this record.
    pub fn new(output: &'o dyn StatusOutput, plan: &Arc<Plan>, record: &Path) -> Self {
        Self {
            output,
            plan: RefCell::new(Arc::clone(plan)),
            more_time: more_time(record),
        }
    }

    fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.borrow())
    }
}

impl Follower for StatusLines<'_> {
    fn follow(&self, event: &ContestEvent<'_>) {
        match event {
            ContestEvent::Begun { plan } | ContestEvent::PlanGrown { plan } => {
                self.plan.replace(Arc::clone(plan));
            }
            ContestEvent::StepBegun(what) => self.output.stage(what),
            ContestEvent::Tick {
                used_s, message, ..
            } => self
                .output
                .measuring(*used_s, self.plan().schedule.budget_s, message),
            ContestEvent::Entry(entry) => {
                if let Some(line) = line(&self.plan(), &self.more_time, entry) {
                    self.output.say(&line);
                }
            }
            ContestEvent::Remark(text) => self.output.say(text),
            ContestEvent::PhaseBegun(_)
            | ContestEvent::SliceRecorded { .. }
            | ContestEvent::LoadUsed { .. }
            | ContestEvent::LevelJudged(_) => {}
        }
    }
}

/// How to get more time for the duel of a record that stays undecided. A step of a bisection cannot be extended by itself.
fn more_time(record: &Path) -> String {
    match bisection_of(record) {
        Some(_) => "the bisection repeats the step of a candidate with up to its whole `budget`; if that is too little, begin \
                    a new one with a larger `budget`"
            .to_owned(),
        None => format!(
            "stop it and raise `budget`, or extend the record afterwards with `dbduel run {} --budget TIME`",
            record.display()
        ),
    }
}

/// Says that the budget holds fewer blocks than a verdict needs.
fn too_few_blocks(plan: &Plan, more_time: &str, blocks: u32) -> Option<String> {
    let needed = plan.decision.blocks_min;
    (blocks < needed).then(|| {
        format!(
            "; the budget of {} has room for {}, and a verdict needs at least {needed}: this duel stays undecided; {more_time}",
            dbduel_text::duration(plan.schedule.budget_s),
            dbduel_text::counts::things(blocks.into(), "block")
        )
    })
}

/// The line about an entry of the journal; most need none.
fn line(plan: &Plan, more_time: &str, entry: &Event) -> Option<String> {
    let label = |level: usize| plan.levels.get(level).map(LoadLevel::label);
    Some(match entry {
        Event::RateAdded { level, .. } => match level.arrival {
            Arrival::Constant { per_second } | Arrival::Poisson { per_second } => {
                format!("next rate: {per_second} transactions/s")
            }
            Arrival::Closed { .. } => return None,
        },
        Event::TurnsChosen { level, choice, .. } => format!(
            "{}: turns of {}, guard {}{}",
            label(*level)?,
            dbduel_text::duration(choice.turn_s),
            dbduel_text::duration(choice.guard_s),
            too_few_blocks(plan, more_time, choice.blocks_max).unwrap_or_default()
        ),
        Event::TurnsLengthened {
            level,
            times,
            drained_share,
        } => format!(
            "{}: turns lengthened to {}; {} of client time was in transactions after planned ends (limit {})",
            label(*level)?,
            dbduel_text::duration(plan.turns.get(level)?.turn_s * f64::from(*times)),
            percent::of(*drained_share),
            percent::of(DRAINED_SHARE_MAX)
        ),
        Event::SliceLost { slice, why, .. } => {
            let block = plan.blocks.get(slice.block as usize)?;
            let contender = block.order.get(slice.position as usize)?;
            let name = &plan.contenders.get(*contender)?.name;
            format!("slice {slice} of {name} is lost: {why}")
        }
        Event::LevelDecided { level, blocks } => {
            format!("{}: decided after {blocks} blocks", label(*level)?)
        }
        Event::ServerDied { contender, how } => {
            format!("{contender} ended by itself ({how})")
        }
        Event::ServerRecovered { contender, seconds } => {
            format!("{contender} answers again after {seconds:.1} s")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use dbduel_record::bisect::{BISECT, STEPS};
    use dbduel_record::event::SliceId;
    use dbduel_record::plan::TurnChoice;
    use dbduel_testkit::synthetic::{Scenario, turn_choice};

    use super::*;

    #[test]
    fn entries_that_change_the_course_of_a_contest_have_a_line_and_others_have_none() {
        let plan = Scenario::duel().record().plan;
        let name = plan.contenders[plan.blocks[1].order[1]].name.clone();
        let label = plan.levels[0].label();
        let lost = Event::SliceLost {
            slice: SliceId {
                block: 1,
                position: 1,
            },
            why: "it hung".to_owned(),
            seconds: 1.0,
        };
        let decided = |level| Event::LevelDecided { level, blocks: 7 };
        let died = Event::ServerDied {
            contender: name.clone(),
            how: "killed".to_owned(),
        };
        let recovered = Event::ServerRecovered {
            contender: name.clone(),
            seconds: 1.25,
        };
        for (entry, expected) in [
            (lost, Some(format!("slice 1.1 of {name} is lost: it hung"))),
            (died, Some(format!("{name} ended by itself (killed)"))),
            (decided(0), Some(format!("{label}: decided after 7 blocks"))),
            (recovered, Some(format!("{name} answers again after 1.2 s"))),
            // A level that the plan does not have.
            (decided(99), None),
            (Event::EpochStarted { epoch: 1 }, None),
        ] {
            assert_eq!(line(&plan, "", &entry), expected, "{entry:?}");
        }
    }

    #[test]
    fn a_budget_without_room_for_a_verdict_is_said_with_the_way_to_more_time() {
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("bisection");
        let step = set.join(STEPS).join("01");
        std::fs::create_dir_all(&step).unwrap();
        let plan = Scenario::duel().record().plan;
        let chosen = |blocks_max| Event::TurnsChosen {
            level: 0,
            choice: TurnChoice {
                blocks_max,
                ..turn_choice(1.0, 0.1)
            },
            blocks: Vec::new(),
        };
        let needed = plan.decision.blocks_min;
        let said = |blocks| line(&plan, &more_time(&step), &chosen(blocks)).unwrap();
        assert!(!said(needed).contains("stays undecided"));
        let extended = format!("`dbduel run {} --budget TIME`", step.display());
        let alone = said(needed - 1);
        assert!(alone.contains(&extended), "{alone}");
        std::fs::write(set.join(BISECT), "").unwrap();
        let in_bisection = said(needed - 1);
        assert!(in_bisection.contains("begin a new one"), "{in_bisection}");
        assert!(!in_bisection.contains("dbduel run"), "{in_bisection}");
    }
}
