//! The same duel on several machines, of which each has a ratio of its own: a random effect.
//!
//! The observation is the machine. Records of one machine are pooled first, in the same way, so that the scatter from run to run
//! is in the machine's error and a machine with many records weighs no more than one machine can.

mod document;
mod same_duel;
#[cfg(test)]
mod tests;

use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::facts::Host;
use dbduel_stats::pool::{Pooled, Stratum, pool as pool_strata};
use dbduel_stats::{Estimate, StatsError};
use dbduel_text::counts;

use super::Judged;
use super::copies::without_copies;
use crate::summarise;
use crate::summary::{Change, Comparison, Figure, How, Quantity};
pub use document::{MachineRatio, Pool, PooledComparison, PooledMachine, PooledQuantity};

/// Machines below which an interval exists and says little.
const MACHINES_ENOUGH: usize = 4;
/// Between the machines of one record.
pub const MACHINES_BETWEEN: &str = " + ";

/// A record that may be pooled.
#[derive(Debug, Clone)]
pub struct PoolRecord {
    judged: Judged,
    duel: serde_json::Value,
}

impl PoolRecord {
    /// Judges a record; `place` is its directory, as it was named.
    #[must_use]
    pub fn of(place: String, record: &Record) -> Self {
        Self {
            judged: Judged {
                place,
                summary: summarise(record).0,
            },
            duel: same_duel::duel_of(record),
        }
    }
}

impl AsRef<Judged> for PoolRecord {
    fn as_ref(&self) -> &Judged {
        &self.judged
    }
}

/// Two records that are not of the same duel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{one}` and `{other}` are not the same duel: {}; pool records of one experiment, such as the copies of `dbduel fleet submit`",
    differences.join("; ")
)]
pub struct NotOneDuel {
    one: String,
    other: String,
    differences: Vec<String>,
}

/// Pools records, in any order. A run counts once, however many copies of its record there are.
///
/// # Errors
/// When two of them are not the same duel.
pub fn pool(records: Vec<PoolRecord>) -> Result<Option<Pool>, NotOneDuel> {
    let (records, mut left_out) = without_copies(records);
    let Some(first) = records.first() else {
        return Ok(None);
    };
    for other in &records[1..] {
        let differences = same_duel::differences(&first.duel, &other.duel);
        if !differences.is_empty() {
            return Err(NotOneDuel {
                one: first.judged.place.clone(),
                other: other.judged.place.clone(),
                differences,
            });
        }
    }
    let machines = machines(&records);
    let summary = &first.judged.summary;
    let mut comparisons = Vec::new();
    for duel in &summary.duels {
        for comparison in &duel.comparisons {
            let key = ComparisonKey {
                contender: &comparison.contender,
                level: &duel.label,
            };
            left_out.extend(records.iter().filter_map(|record| key.why_void(record)));
            let quantities = std::iter::once(None).chain(Quantity::ALL.map(Some));
            comparisons.push(PooledComparison {
                contender: comparison.contender.clone(),
                level: duel.label.clone(),
                quantities: quantities
                    .map(|quantity| key.pool(&machines, quantity, summary.rule.horizon))
                    .collect(),
            });
        }
    }
    Ok(Some(Pool {
        question: summary.question.clone(),
        baseline: summary.baseline.clone(),
        horizon: summary.rule.horizon,
        too_few: too_few(machines.len()),
        machines: machines.iter().map(Machine::described).collect(),
        comparisons,
        left_out,
    }))
}

/// A machine and its records.
struct Machine<'r> {
    name: String,
    records: Vec<&'r PoolRecord>,
}

/// The machines of records, in the order of the records.
fn machines(records: &[PoolRecord]) -> Vec<Machine<'_>> {
    let mut machines: Vec<Machine<'_>> = Vec::new();
    for record in records {
        let name = identity(&record.judged.summary.host);
        match machines.iter_mut().find(|machine| machine.name == name) {
            Some(machine) => machine.records.push(record),
            None => machines.push(Machine {
                name,
                records: vec![record],
            }),
        }
    }
    machines
}

impl Machine<'_> {
    fn described(&self) -> PooledMachine {
        let host = &self.records[0].judged.summary.host;
        let records = self.records.iter();
        PooledMachine {
            name: self.name.clone(),
            processors: joined(host, Host::processors_label),
            memory_bytes: host.memory_bytes,
            records: records.map(|record| record.judged.place.clone()).collect(),
        }
    }
}

/// Identity of a machine, or its hardware in records without one. The server hosts of a contest count as one machine.
fn identity(host: &Host) -> String {
    joined(host, |machine| {
        machine.machine.clone().unwrap_or_else(|| {
            let memory = machine.memory_bytes.unwrap_or_default() >> 20;
            format!("{}, {memory} MiB", machine.processors_label())
        })
    })
}

/// A text about the machine of the servers, or about each of their hosts.
fn joined(host: &Host, text: impl Fn(&Host) -> String) -> String {
    if host.server_hosts.is_empty() {
        return text(host);
    }
    let each = host.server_hosts.iter().map(|one| text(&one.facts));
    each.collect::<Vec<String>>().join(MACHINES_BETWEEN)
}

fn too_few(machines: usize) -> Option<String> {
    match machines {
        1 => Some(
            "One machine: no conclusion about other machines. All its records together are one observation."
                .to_owned(),
        ),
        2..MACHINES_ENOUGH => Some(format!(
            "{machines} machines are too few to estimate how much machines differ, so the interval is wide ({} of \
             freedom) and assumes a normal distribution between machines. Add machines; intervals become useful from \
             {MACHINES_ENOUGH} on.",
            counts::things(machines as u64 - 1, "degree")
        )),
        _ => None,
    }
}

/// Which comparison of a record.
struct ComparisonKey<'a> {
    contender: &'a str,
    level: &'a str,
}

/// A ratio that a record has.
struct RecordRatio<'r> {
    ratio: &'r Figure,
    block_sd: Option<f64>,
    alpha: f64,
}

impl ComparisonKey<'_> {
    fn of<'r>(&self, record: &'r PoolRecord) -> Option<&'r Comparison> {
        let mut duels = record.judged.summary.duels.iter();
        let duel = duels.find(|duel| duel.label == self.level)?;
        let mut comparisons = duel.comparisons.iter();
        comparisons.find(|one| one.contender == self.contender)
    }

    /// Why a record's comparison does not count.
    fn why_void(&self, record: &PoolRecord) -> Option<String> {
        let void = self.of(record).filter(|one| one.verdict == Verdict::Void)?;
        let why = void.because.as_deref().unwrap_or("without a reason");
        let (place, Self { contender, level }) = (&record.judged.place, self);
        Some(format!("{place}: {contender} at {level} is void: {why}"))
    }

    /// Throughput, or another quantity; `None` where the comparison is void or absent.
    fn ratio<'r>(
        &self,
        record: &'r PoolRecord,
        quantity: Option<Quantity>,
    ) -> Option<RecordRatio<'r>> {
        let comparison = self.of(record).filter(|one| one.verdict != Verdict::Void)?;
        let Some(quantity) = quantity else {
            return Some(RecordRatio {
                ratio: &comparison.ratio,
                block_sd: comparison.block_sd,
                alpha: comparison.alpha,
            });
        };
        let mut quantities = comparison.quantities.iter();
        let one = quantities.find(|one| one.quantity == quantity)?;
        Some(RecordRatio {
            ratio: &one.ratio,
            block_sd: one.block_sd,
            alpha: one.alpha,
        })
    }

    /// One quantity on all machines.
    fn pool(
        &self,
        machines: &[Machine<'_>],
        quantity: Option<Quantity>,
        horizon: f64,
    ) -> PooledQuantity {
        let (mut strata, mut ratios, mut alpha) = (Vec::new(), Vec::new(), None);
        for (number, machine) in machines.iter().enumerate() {
            let own = machine.records.iter();
            let own = own.filter_map(|record| self.ratio(record, quantity));
            let runs: Vec<(RecordRatio<'_>, Stratum)> = own
                .filter_map(|own| {
                    let stratum = own.stratum()?;
                    Some((own, stratum))
                })
                .collect();
            let Some((first, only)) = runs.first() else {
                continue;
            };
            let alpha = *alpha.get_or_insert(first.alpha);
            let strata_of_runs: Vec<Stratum> = runs.iter().map(|(_, stratum)| *stratum).collect();
            let (ratio, stratum) = match pool_strata(&strata_of_runs, alpha) {
                Ok(of_runs) => (
                    figure(&of_runs.mean, alpha),
                    Stratum {
                        effect: of_runs.mean.value,
                        error: of_runs.error,
                    },
                ),
                Err(_) => (first.ratio.clone(), *only),
            };
            strata.push(stratum);
            ratios.push(MachineRatio {
                machine: number,
                ratio,
                records: runs.len(),
            });
        }
        let label = quantity.map_or("throughput", Quantity::label);
        let mut pooled = PooledQuantity {
            quantity: label.to_owned(),
            answer: Change::NotCompared.word(),
            ratio: Figure::NotMeasured {
                why: match strata.len() {
                    0 => "no record has an interval for it",
                    _ => "on one machine only",
                }
                .to_owned(),
            },
            between_sd: None,
            between_share: None,
            next_machine: None,
            disagreement: disagreement(machines, &ratios, quantity),
            machines: ratios,
        };
        if let (2.., Some(alpha)) = (strata.len(), alpha) {
            fill(&mut pooled, pool_strata(&strata, alpha), alpha);
            pooled.answer = answer(&pooled.ratio, horizon, quantity);
        }
        pooled
    }
}

impl RecordRatio<'_> {
    /// The log ratio with the error that its blocks scatter by, or its starts of the servers where there were several. `None`
    /// where it has too few for an interval of its own.
    fn stratum(&self) -> Option<Stratum> {
        let Figure::Estimated { value, n, .. } = self.ratio else {
            return None;
        };
        let error = self.block_sd? / (*n as f64).sqrt();
        (*value > 0.0 && error > 0.0).then(|| Stratum {
            effect: value.ln(),
            error,
        })
    }
}

/// Which machines contradict each other, each by its own interval.
fn disagreement(
    machines: &[Machine<'_>],
    ratios: &[MachineRatio],
    quantity: Option<Quantity>,
) -> Option<String> {
    let named = |is_meant: fn((f64, f64)) -> bool| {
        let own = ratios
            .iter()
            .filter(|one| one.ratio.interval().is_some_and(is_meant));
        let names: Vec<&str> = own.map(|one| machines[one.machine].name.as_str()).collect();
        names.join(", ")
    };
    let above = named(|(low, _)| low > 1.0);
    let below = named(|(_, high)| high < 1.0);
    let [up, down] = [Direction::Above, Direction::Below].map(|one| one.word(quantity));
    (!above.is_empty() && !below.is_empty()).then(|| format!("{up} on {above}; {down} on {below}"))
}

fn fill(pooled: &mut PooledQuantity, found: Result<Pooled, StatsError>, alpha: f64) {
    match found {
        Ok(found) => {
            pooled.ratio = figure(&found.mean, alpha);
            pooled.between_sd = Some(found.deviation);
            pooled.between_share = Some(found.between_share);
            pooled.next_machine = found.prediction.map(|(low, high)| [low.exp(), high.exp()]);
        }
        Err(error) => {
            pooled.ratio = Figure::NotMeasured {
                why: error.to_string(),
            };
        }
    }
}

/// Where a ratio lies.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Above,
    Below,
}

impl Direction {
    fn word(self, quantity: Option<Quantity>) -> &'static str {
        match (self, quantity) {
            (Self::Above, None) => Verdict::Faster.word(),
            (Self::Below, None) => Verdict::Slower.word(),
            (Self::Above, Some(_)) => Change::Higher.word(),
            (Self::Below, Some(_)) => Change::Lower.word(),
        }
    }
}

/// Verdict from the interval of a mean ratio.
fn answer(ratio: &Figure, horizon: f64, quantity: Option<Quantity>) -> &'static str {
    let Some((low, high)) = ratio.interval() else {
        return Change::NotCompared.word();
    };
    let margin = 1.0 + horizon;
    match () {
        () if low > 1.0 => Direction::Above.word(quantity),
        () if high < 1.0 => Direction::Below.word(quantity),
        () if low >= margin.recip() && high <= margin => Change::Equivalent.word(),
        () => Change::Undecided.word(),
    }
}

fn figure(estimate: &Estimate, alpha: f64) -> Figure {
    Figure::of_log_ratio(*estimate, alpha, How::RandomEffect)
}
