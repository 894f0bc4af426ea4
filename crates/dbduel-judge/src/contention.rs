//! Waits of load threads for a processor beside other programs: whom they met, and whether they may be the cause of a
//! verdict.
//!
//! Turns alternate, so other programs disturb all contenders alike on average; but over few slices, or where they take
//! what one contender leaves idle, they can disturb one more. A closed loop whose load threads wait for a share w of their
//! time would commit 1 ÷ (1 − w) times as much if these waits were all that it lost. A verdict against the contender that
//! waited more holds only if it holds with both rates corrected by that factor.

use std::collections::BTreeSet;

use dbduel_record::event::SliceId;
use dbduel_record::plan::Arrival;
use dbduel_record::rows::SliceRow;
use dbduel_record::{Plan, Verdict};
use dbduel_stats::stalls::{StallCount, compare_stalls};
use dbduel_text::percent;

use crate::evidence::Evidence;
use crate::summary::{Comparison, Figure, PairComparison, supports};

/// Share of its time that a load thread may wait for a processor beyond what is usual at the level, before the slice is
/// starved. Servers that share its processors make it wait too, so the usual wait is none of other programs.
pub const WAIT_SHARE: f64 = 0.1;
/// Share of starved slices from which the machine is called loaded.
const STARVED_SHARE: f64 = 0.05;
/// Processors in use by other programs from which waits may be theirs. Without any, kernel threads that write pages and
/// logs, and the lab itself, use less.
const PROCESSORS_MIN: f64 = 0.25;
/// Share of waits from which a corrected rate would say nothing.
const WAIT_SHARE_MAX: f64 = 0.99;
/// Error probability of "one contender has more starved slices" from which a verdict is doubted. Larger than that of a
/// finding: the fewest blocks of a duel show no smaller one.
const UNEVEN_ALPHA: f64 = 0.1;

/// Load threads of a level beside other programs.
pub struct Contention {
    /// By index of contender.
    pub contenders: Vec<Waits>,
    /// Processors in use by programs other than servers, load process and samplers, mean of the starved slices; `None`
    /// where that was not recorded.
    pub others_processors: Option<f64>,
    /// Error probability below which one contender is reported to have more starved slices.
    alpha: f64,
    /// True where clients wait for replies before they go on, so that waits lower throughput.
    is_closed_loop: bool,
}

/// Load threads of one contender at a level.
pub struct Waits {
    /// Slices with a reading.
    pub slices: u64,
    /// Slices that waited longer than usual.
    pub starved: u64,
    /// Share of the threads' time in which they waited for a processor.
    pub share: f64,
}

impl Contention {
    /// The waits in the complete blocks of a level; `None` where few slices are starved, or no other program used the
    /// processors in these.
    pub fn of(evidence: &Evidence<'_>, level: usize) -> Option<Self> {
        let plan = evidence.plan();
        let threads = f64::from(plan.load.threads.max(1));
        let of_contender = |contender| -> Vec<(&SliceRow, f64)> {
            let rows = evidence.levels[level].slices_of(contender);
            let waits = rows.filter_map(|row| {
                let wait_s = evidence.reading(row.slice(), "load", "cpu_wait_s")?;
                Some((row, wait_s / threads))
            });
            waits.collect()
        };
        let waits: Vec<Vec<(&SliceRow, f64)>> =
            (0..plan.contenders.len()).map(of_contender).collect();
        let share = |(row, wait_s): &(&SliceRow, f64)| wait_s / row.measured_s;
        let usual = lower_quartile(waits.iter().flatten().map(share).collect());
        let mut starved_slices = BTreeSet::new();
        let mut contenders = Vec::new();
        for waits in &waits {
            let starved = waits.iter().filter(|wait| share(wait) > usual + WAIT_SHARE);
            let starved: Vec<SliceId> = starved.map(|(row, _)| row.slice()).collect();
            let wait_s: f64 = waits.iter().map(|(_, wait_s)| wait_s).sum();
            let measured_s: f64 = waits.iter().map(|(row, _)| row.measured_s).sum();
            contenders.push(Waits {
                slices: waits.len() as u64,
                starved: starved.len() as u64,
                share: if measured_s > 0.0 {
                    wait_s / measured_s
                } else {
                    0.0
                },
            });
            starved_slices.extend(starved);
        }
        let found = Self {
            contenders,
            others_processors: others_processors(evidence, level, &starved_slices),
            alpha: 1.0 - plan.decision.confidence,
            is_closed_loop: matches!(plan.levels[level].arrival, Arrival::Closed { .. }),
        };
        let is_loaded = found.starved() as f64 > STARVED_SHARE * found.slices() as f64;
        let may_be_others =
            (found.others_processors).is_none_or(|processors| processors >= PROCESSORS_MIN);
        (is_loaded && may_be_others).then_some(found)
    }

    /// Starved slices of all contenders.
    pub fn starved(&self) -> u64 {
        self.contenders.iter().map(|one| one.starved).sum()
    }

    /// Slices of all contenders.
    pub fn slices(&self) -> u64 {
        self.contenders.iter().map(|one| one.slices).sum()
    }

    /// True when one of two contenders has more starved slices than chance explains.
    pub fn is_uneven(&self, pair: [usize; 2]) -> bool {
        self.same_rate_p(pair) < self.alpha
    }

    /// Probability of such different counts of starved slices by chance (Przyborowski and Wilenski 1940).
    fn same_rate_p(&self, [one, other]: [usize; 2]) -> f64 {
        let count = |contender: usize| StallCount {
            stalls: self.contenders[contender].starved,
            lost: 0.0,
            active: self.contenders[contender].slices,
        };
        compare_stalls(&count(one), &count(other)).map_or(1.0, |stalls| stalls.same_rate_p)
    }

    /// Factor by which the ratio of two contenders could be larger without waits, at most.
    fn factor(&self, [contender, reference]: [usize; 2]) -> f64 {
        let speed_up =
            |one: usize| 1.0 / (1.0 - self.contenders[one].share.clamp(0.0, WAIT_SHARE_MAX));
        speed_up(contender) / speed_up(reference)
    }

    /// Why the waits may be the cause of a verdict on two contenders; `None` where it would hold without them.
    fn doubt(
        &self,
        plan: &Plan,
        pair: [usize; 2],
        verdict: Verdict,
        ratio: &Figure,
    ) -> Option<String> {
        let (low, high) = ratio.interval()?;
        let factor = self.factor(pair);
        let without = (low * factor.min(1.0), high * factor.max(1.0));
        let may_be_chance = self.same_rate_p(pair) >= UNEVEN_ALPHA;
        if !self.is_closed_loop
            || may_be_chance
            || supports(without, verdict, plan.decision.horizon)
        {
            return None;
        }
        let waited = pair.map(|one| {
            let name = &plan.contenders[one].name;
            format!(
                "{} of the time of `{name}`",
                percent::of(self.contenders[one].share)
            )
        });
        let bound = match factor > 1.0 {
            true => format!("up to {:.2}", without.1),
            false => format!("down to {:.2}", without.0),
        };
        Some(format!(
            "load threads waited for CPU {}{}; without these waits the ratio could be {bound}, which does not support `{}`",
            waited.join(" and "),
            self.others(),
            verdict.word()
        ))
    }

    /// Who else used processors, as an appendix to a sentence.
    pub fn others(&self) -> String {
        self.others_processors
            .map_or_else(String::new, |processors| {
                format!(", while other programs used {processors:.1} processors")
            })
    }

    /// Verdicts for which these waits may be the cause become undecided.
    pub fn withhold(&self, plan: &Plan, comparisons: &mut [Comparison]) {
        for (contender, comparison) in plan.challengers().zip(comparisons) {
            let pair = [contender, plan.baseline];
            if let Some(why) = self.doubt(plan, pair, comparison.verdict, &comparison.ratio) {
                comparison.withhold(why);
            }
        }
    }

    /// As [`Contention::withhold`], of pairs without the baseline.
    pub fn withhold_pairs(&self, plan: &Plan, pairs: &mut [PairComparison]) {
        let index = |name: &str| plan.contenders.iter().position(|one| one.name == name);
        for pair in pairs {
            let Some(both) = index(&pair.contender).zip(index(&pair.against)) else {
                continue;
            };
            if let Some(why) = self.doubt(plan, both.into(), pair.verdict, &pair.ratio) {
                pair.verdict = Verdict::Undecided;
                pair.because = Some(why);
            }
        }
    }
}

/// Processors in use by programs outside of the contest in these slices: what the machine was busy with, stolen time
/// included, without the server under load, the load process and the samplers. Contenders that cannot be frozen count as other
/// programs. `None` where servers and load are on different machines.
fn others_processors(
    evidence: &Evidence<'_>,
    level: usize,
    slices: &BTreeSet<SliceId>,
) -> Option<f64> {
    let plan = evidence.plan();
    let has_host = plan
        .contenders
        .iter()
        .any(|contender| contender.host.is_some());
    if has_host || plan.hosts.is_some() {
        return None;
    }
    let rows = evidence.levels[level].complete.iter();
    let rows = rows.flat_map(|block| &block.rows);
    let (mut used_s, mut measured_s) = (0.0, 0.0);
    for row in rows.filter(|row| slices.contains(&row.slice())) {
        let slice = row.slice();
        let of = |source, metric| evidence.used(slice, source, metric);
        let cpu_s = |source| Some(of(source, "cpu_user_s")? + of(source, "cpu_system_s")?);
        let (Some(busy_s), Some(load_s)) = (of("host", "machine_busy_s"), cpu_s("load")) else {
            continue;
        };
        let own_s =
            cpu_s("server").unwrap_or(0.0) + load_s + of("observer", "cpu_s").unwrap_or(0.0);
        used_s += busy_s + of("host", "machine_stolen_s").unwrap_or(0.0) - own_s;
        measured_s += row.measured_s;
    }
    (measured_s > 0.0).then(|| (used_s / measured_s).max(0.0))
}

/// The lower quartile of the values; 0 without values.
fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use dbduel_audit::Finding;
    use dbduel_record::Record;
    use dbduel_record::event::Severity;
    use dbduel_record::rows::{ReadingRow, SliceRow};
    use dbduel_testkit::synthetic::{Scenario, Side};

    use super::*;
    use crate::summary::Duel;
    use crate::{doubts, summarise};

    const BASELINE: &str = "baseline";

    /// A duel at one level against a contender of that speed. Load threads wait for half of the time of the slices that
    /// `is_starved` picks, and other programs use that many processors in these slices; `None` records nothing about them.
    fn record(speed: f64, others: Option<f64>, is_starved: fn(&SliceRow) -> bool) -> Record {
        let sides = vec![Side::new(BASELINE, &[1.0]), Side::new("other", &[speed])];
        let clients = vec![16];
        let mut record = Scenario {
            sides,
            clients,
            ..Scenario::duel()
        }
        .record();
        let slices = record.slices.clone();
        for row in &slices {
            let reading = |source: &str, metric: &str, value| ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: source.to_owned(),
                metric: metric.to_owned(),
                value,
            };
            let wait_s = if is_starved(row) {
                0.5 * row.measured_s
            } else {
                0.001
            };
            let own = record.readings.iter().filter(|own| {
                (own.block, own.position) == (row.block, row.position)
                    && own.metric.starts_with("cpu_")
            });
            let own_s: f64 = own.map(|own| own.value).sum();
            record.readings.push(reading("load", "cpu_wait_s", wait_s));
            if let Some(others) = others {
                let others = if is_starved(row) { others } else { 0.0 };
                let busy_s = own_s + others * row.measured_s;
                record
                    .readings
                    .push(reading("host", "machine_busy_s", busy_s));
            }
        }
        record
    }

    fn judged(record: &Record) -> (Duel, Vec<Finding>) {
        let (mut summary, findings) = summarise(record);
        let starved = findings.into_iter().filter(|one| one.rule == "lab.starved");
        (summary.duels.swap_remove(0), starved.collect())
    }

    fn is_baseline(row: &SliceRow) -> bool {
        row.contender == BASELINE
    }

    fn is_other(row: &SliceRow) -> bool {
        row.contender != BASELINE
    }

    #[test]
    fn waits_of_one_side_are_a_doubt_and_those_of_both_a_note() {
        for others in [Some(1.5), None] {
            let (_, even) = judged(&record(1.1, others, |row| row.block % 4 == 0));
            assert_eq!((even.len(), even[0].severity), (1, Severity::Note));
            assert!(even[0].claim.contains("may be chance"), "{}", even[0].claim);

            let (_, uneven) = judged(&record(1.1, others, is_other));
            assert_eq!((uneven.len(), uneven[0].severity), (1, Severity::Doubt));
            let names_them = uneven[0]
                .claim
                .contains("other programs used 1.5 processors");
            assert_eq!(names_them, others.is_some(), "{}", uneven[0].claim);

            let (_, none) = judged(&record(1.1, others, |_| false));
            assert!(none.is_empty());
        }
    }

    #[test]
    fn a_contender_that_fills_the_processors_itself_is_not_the_machine_s_fault() {
        let record = record(0.8, Some(0.05), is_other);
        let (duel, findings) = judged(&record);
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(duel.comparisons[0].verdict, Verdict::Slower);
    }

    #[test]
    fn a_few_starved_slices_beside_a_program_are_reported() {
        let (_, findings) = judged(&record(1.1, Some(1.0), |row| {
            row.contender == BASELINE && row.block < 3
        }));
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn what_other_programs_used_is_unknown_where_the_load_is_elsewhere() {
        let mut record = record(0.8, Some(0.05), is_other);
        record.plan.contenders[0].host = Some("db1".to_owned());
        assert_eq!(judged(&record).1.len(), 1);
    }

    #[test]
    fn a_verdict_against_the_side_that_waited_holds_only_if_it_holds_without_the_waits() {
        // Waiting for half of the time halves throughput at most.
        for (speed, is_starved, verdict) in [
            (0.8, is_other as fn(&SliceRow) -> bool, Verdict::Undecided),
            (0.4, is_other, Verdict::Slower),
            (1.2, is_other, Verdict::Faster),
            (1.2, is_baseline, Verdict::Undecided),
            (2.4, is_baseline, Verdict::Faster),
            (0.8, is_baseline, Verdict::Slower),
            (1.001, is_other, Verdict::Undecided),
            (0.8, |row| row.block % 4 == 0, Verdict::Slower),
        ] {
            let record = record(speed, Some(1.5), is_starved);
            let (duel, _) = judged(&record);
            let comparison = &duel.comparisons[0];
            assert_eq!(comparison.verdict, verdict, "{speed}: {comparison:?}");
            let is_withheld = verdict == Verdict::Undecided;
            assert_eq!(comparison.because.is_some(), is_withheld, "{speed}");
            assert_eq!(!doubts(&record, 0).is_empty(), is_withheld, "{speed}");
        }
    }
}
