//! The judge as the referee of a contest: the same code decides when to stop and gives the verdict.

use dbduel_record::bisect::{BAD, GOOD};
use dbduel_record::event::ContinuityRound;
use dbduel_record::late::LateShares;
use dbduel_record::rows::SliceRow;
use dbduel_record::{Plan, Record, Verdict};

use dbduel_judge::continuity::{DEPARTURE_MIN, departure};
use dbduel_judge::levels::search;
use dbduel_judge::records::bisect::{StepAnswer, answer_of_candidate};
use dbduel_judge::workloads::captured::undecided_classes;
use dbduel_judge::{self as judge, Limit};
use dbduel_lab::contest::{ComparisonStanding, DepartureStanding, LevelStanding, Referee};
use dbduel_text::counts;

/// The judge, with further limits for a contest to decide.
#[derive(Debug, Default)]
pub struct Judge {
    /// Limits of `--fail-if`.
    pub limits: Vec<Limit>,
    /// Whether the contest asks which end of a bisection its baseline is like. It is then over with that answer.
    pub is_of_candidate: bool,
}

/// True once the comparisons with a candidate say which end it is like. That it is like neither needs both of them, which
/// are then decided.
fn is_candidate_placed(comparisons: &[ComparisonStanding]) -> bool {
    let standing = |name: &str| -> Option<(Verdict, Option<f64>)> {
        let found = comparisons.iter().find(|one| one.contender == name)?;
        Some((found.verdict, found.ratio))
    };
    let (Some(good), Some(bad)) = (standing(GOOD), standing(BAD)) else {
        return false;
    };
    matches!(
        answer_of_candidate(good, bad),
        StepAnswer::LikeGood | StepAnswer::LikeBad
    )
}

impl Referee for Judge {
    fn decide_level(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> LevelStanding {
        let decision = judge::decide_level(plan, rows, level);
        let comparisons = decision.comparisons.into_iter();
        let comparisons: Vec<ComparisonStanding> = comparisons
            .map(|comparison| ComparisonStanding {
                verdict: comparison.verdict,
                ratio: comparison.ratio.value(),
                interval: comparison.ratio.interval(),
                contender: comparison.contender,
                because: comparison.because,
            })
            .collect();
        LevelStanding {
            level,
            blocks_complete: decision.blocks_complete,
            is_answered: self.is_of_candidate && is_candidate_placed(&comparisons),
            comparisons,
            effects: decision.effects.iter().map(|one| one.verdict).collect(),
        }
    }

    fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    fn open_questions(&self, record: &Record, level: usize) -> Vec<String> {
        let limits = judge::open_limits(record, level, &self.limits).into_iter();
        let limits = limits.map(|limit| format!("the limit of {} is open", limit.name()));
        // A bisection asks about the whole only.
        let classes = if self.is_of_candidate {
            0
        } else {
            undecided_classes(record, level)
        };
        let classes = Some(classes).filter(|undecided| *undecided > 0);
        let classes = classes.map(|undecided| {
            let undecided = counts::things(undecided as u64, "class");
            format!("{undecided} of statements undecided")
        });
        limits.chain(classes).collect()
    }

    fn doubts(&self, record: &Record, level: usize) -> Vec<String> {
        judge::doubts(record, level)
    }

    fn transactions_needed(&self) -> f64 {
        let needed = self.limits.iter().map(Limit::transactions_needed);
        needed.fold(0.0, f64::max)
    }

    fn champions(&self, plan: &Plan, rows: &[SliceRow], level: usize) -> Option<Vec<usize>> {
        judge::champions::champions(plan, rows, level)
    }

    fn late_shares(&self, record: &Record) -> LateShares {
        search::late_shares(record)
    }

    fn is_rate_settled(
        &self,
        plan: &Plan,
        rows: &[SliceRow],
        late: &LateShares,
        level: usize,
    ) -> bool {
        search::is_settled(plan, rows, late, level)
    }

    fn next_rate(&self, plan: &Plan, rows: &[SliceRow], late: &LateShares) -> Option<f64> {
        search::next_rate(plan, rows, late)
    }

    fn departure(&self, rounds: &[ContinuityRound], contender: &str) -> DepartureStanding {
        let limit = DEPARTURE_MIN.ln_1p();
        match departure(rounds, contender) {
            Some(departure) if departure.is_shown_beyond(limit) => {
                DepartureStanding::Shown(departure.log_ratio.value)
            }
            Some(departure) if departure.is_within(limit) => DepartureStanding::Excluded,
            _ => DepartureStanding::Open,
        }
    }
}
