//! Measures of each contender at a level: throughput, latency, processor time, stalls.
//!
//! Only slices of complete blocks count, so that all contenders are described over the same time.

use dbduel_record::event::SliceId;
use dbduel_record::latency::new_histogram;
use dbduel_record::rows::{SliceRow, TickRow};
use dbduel_stats::stalls::{StallCount, count_stalls, unseen_rate_bound};

use super::steady::course;
use crate::evidence::Evidence;
use crate::evidence::figures::{latency_quantile, ratio_over_slices};
use crate::summary::{Figure, How, Measures, Outcomes, Stalls};

/// Why the largest value has no interval.
const GROWS: &str = "the maximum of a sample only grows with its length";

/// The measures of `contender` at `level`.
#[must_use]
pub fn measure(evidence: &Evidence<'_>, level: usize, contender: usize) -> Measures {
    let plan = evidence.plan();
    let alpha = 1.0 - plan.decision.confidence;
    let rows: Vec<&SliceRow> = evidence.levels[level].slices_of(contender).collect();
    let ticks: Vec<&TickRow> = rows
        .iter()
        .flat_map(|row| evidence.ticks(row.slice()))
        .copied()
        .collect();
    let active_s = rows.iter().map(|row| row.measured_s).sum();
    let [p50, p95, p99, p999] = quantiles(evidence, &rows, &ticks, alpha);
    Measures {
        contender: plan.contenders[contender].name.clone(),
        slices: rows.len() as u32,
        active_s,
        outcomes: outcomes(&rows),
        throughput_per_s: throughput(&rows, alpha),
        latency_us_mean: mean_latency(&rows, alpha),
        latency_us_p50: p50,
        latency_us_p95: p95,
        latency_us_p99: p99,
        latency_us_p999: p999,
        latency_us_max: largest(&rows),
        client_cpu_us_per_transaction: cpu(evidence, &rows, "load", alpha),
        server_cpu_us_per_transaction: cpu(evidence, &rows, "server", alpha),
        server_memory_bytes_max: memory(evidence, &rows, "server"),
        client_memory_bytes_max: memory(evidence, &rows, "load"),
        drained_share: drained_share(&rows),
        stalls: stalls(&rows, evidence, plan.tick_s(level)),
        course: course(evidence, level, contender),
    }
}

fn outcomes(rows: &[&SliceRow]) -> Outcomes {
    rows.iter().fold(Outcomes::default(), |sum, row| Outcomes {
        due: sum.due + row.due,
        ok: sum.ok + row.ok,
        failed: sum.failed + row.failed,
        skipped: sum.skipped + row.skipped,
        unfinished: sum.unfinished + row.unfinished,
        retries: sum.retries + row.retries,
    })
}

fn no_slices() -> Figure {
    Figure::NotMeasured {
        why: "no slice in a complete block".to_owned(),
    }
}

fn throughput(rows: &[&SliceRow], alpha: f64) -> Figure {
    if rows.is_empty() {
        return no_slices();
    }
    let ok: Vec<f64> = rows.iter().map(|row| row.ok as f64).collect();
    let measured_s: Vec<f64> = rows.iter().map(|row| row.measured_s).collect();
    ratio_over_slices(&ok, &measured_s, alpha, How::Throughput)
}

fn mean_latency(rows: &[&SliceRow], alpha: f64) -> Figure {
    if rows.is_empty() {
        return no_slices();
    }
    let sum_us: Vec<f64> = rows.iter().map(|row| row.latency_us_sum).collect();
    let ok: Vec<f64> = rows.iter().map(|row| row.ok as f64).collect();
    ratio_over_slices(&sum_us, &ok, alpha, How::LatencySum)
}

fn quantiles(
    evidence: &Evidence<'_>,
    rows: &[&SliceRow],
    ticks: &[&TickRow],
    alpha: f64,
) -> [Figure; 4] {
    let none = |why: &str| {
        [(); 4].map(|()| Figure::NotMeasured {
            why: why.to_owned(),
        })
    };
    if rows.is_empty() {
        return [(); 4].map(|()| no_slices());
    }
    let histograms: Vec<_> = rows
        .iter()
        .filter_map(|row| evidence.latencies(row.slice()))
        .collect();
    if histograms.len() < rows.len() {
        return none("the latency log lacks some of the slices");
    }
    let mut merged = new_histogram();
    for histogram in &histograms {
        if merged.add(histogram).is_err() {
            return none("the latency log holds histograms with other bounds");
        }
    }
    if merged.is_empty() {
        return none("nothing was committed");
    }
    let maxima: Vec<f64> = ticks.iter().map(|tick| largest_of(tick)).collect();
    [0.5, 0.95, 0.99, 0.999].map(|q| latency_quantile(q, alpha, &histograms, &merged, &maxima))
}

fn drained_share(rows: &[&SliceRow]) -> Option<f64> {
    let drained = rows
        .iter()
        .filter_map(|row| Some((row.drained_s?, row.measured_s)));
    let (drained_s, measured_s) =
        drained.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (measured_s > 0.0).then(|| drained_s / measured_s)
}

fn largest_of(tick: &TickRow) -> f64 {
    match tick.ok {
        0 => f64::NAN,
        _ => tick.latency_us_max,
    }
}

fn largest(rows: &[&SliceRow]) -> Figure {
    if rows.iter().all(|row| row.ok == 0) {
        return no_slices();
    }
    Figure::Bare {
        value: rows
            .iter()
            .map(|row| row.latency_us_max)
            .fold(0.0, f64::max),
        n: rows.len(),
        how: How::Largest,
        why: GROWS.to_owned(),
    }
}

fn cpu(evidence: &Evidence<'_>, rows: &[&SliceRow], source: &str, alpha: f64) -> Figure {
    let seconds = |row: &&&SliceRow| -> Option<(f64, f64)> {
        let slice: SliceId = row.slice();
        Some((evidence.cpu_s(slice, source)? * 1e6, row.ok as f64))
    };
    let (cpu_us, ok): (Vec<f64>, Vec<f64>) = rows.iter().filter_map(|row| seconds(&row)).unzip();
    if cpu_us.is_empty() {
        return Figure::NotMeasured {
            why: format!("the record has no processor readings of the {source}"),
        };
    }
    ratio_over_slices(&cpu_us, &ok, alpha, How::Readings)
}

/// Largest resident memory of `source` in the slices.
fn memory(evidence: &Evidence<'_>, rows: &[&SliceRow], source: &str) -> Figure {
    const METRIC: &str = "resident_bytes";
    let read = |row: &&SliceRow| {
        let slice = row.slice();
        let seconds = evidence.seconds(slice).iter();
        let own = seconds.filter(|second| second.source == source && second.metric == METRIC);
        own.map(|second| second.value)
            .chain(evidence.reading(slice, source, METRIC))
            .reduce(f64::max)
    };
    let read: Vec<f64> = rows.iter().filter_map(read).collect();
    match read.iter().copied().reduce(f64::max) {
        None => Figure::NotMeasured {
            why: format!("the record has no memory readings of the {source}"),
        },
        Some(value) => Figure::Bare {
            value,
            n: read.len(),
            how: How::LargestReading,
            why: GROWS.to_owned(),
        },
    }
}

/// Probability that the bound on unseen stalls is wrong.
const UNSEEN_ALPHA: f64 = 0.05;

/// A tick shorter than this share of the planned length is a remainder.
const FULL_TICK: f64 = 0.99;

/// Mean number of transactions in the intervals that are searched for stalls. With fewer, an interval often has less
/// than half of the median by chance: of Poisson counts with this mean 3 % are below it.
const STALL_MEAN_MIN: f64 = 10.0;

/// Fewest intervals of a slice with which one of them can be below the median.
const STALL_INTERVALS_MIN: usize = 3;

/// The stalls in one contender's slices; `None` when the record has no ticks of them, or when transactions take so
/// long that a slice has too few to distinguish a stall from chance.
fn stalls(rows: &[&SliceRow], evidence: &Evidence<'_>, tick_s: f64) -> Option<Stalls> {
    let slices: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            let ticks = evidence.ticks(row.slice()).iter();
            let full = ticks.filter(|tick| tick.length_s >= FULL_TICK * tick_s);
            full.map(|tick| tick.ok as f64 / tick.length_s * tick_s)
                .collect()
        })
        .collect();
    let ticks: usize = slices.iter().map(Vec::len).sum();
    let mean = slices.iter().flatten().sum::<f64>() / ticks.max(1) as f64;
    // Of a contender that committed nothing at all, each slice is a stall.
    let together = match mean > 0.0 {
        true => (STALL_MEAN_MIN / mean).ceil().max(1.0) as usize,
        false => 1,
    };
    let merged: Vec<Vec<f64>> = slices
        .iter()
        .map(|slice| slice.chunks_exact(together))
        .filter(|intervals| together == 1 || intervals.len() >= STALL_INTERVALS_MIN)
        .map(|intervals| intervals.map(|ticks| ticks.iter().sum()).collect())
        .collect();
    let count = count_stalls(&merged)
        .ok()
        .filter(|count| count.active > 0)?;
    let interval_s = together as f64 * tick_s;
    let rate = unseen_rate_bound(count.active, UNSEEN_ALPHA).ok()?;
    Some(Stalls {
        count: count.stalls,
        lost_s: count.lost * interval_s,
        active_ticks: count.active * together as u64,
        unseen_if_rarer_than_s: interval_s / rate,
    })
}

impl Stalls {
    /// The ledger's entry as `dbduel-stats` compares it.
    #[must_use]
    pub fn to_count(self) -> StallCount {
        StallCount {
            stalls: self.count,
            lost: self.lost_s,
            active: self.active_ticks,
        }
    }
}

#[cfg(test)]
mod tests {
    use dbduel_record::rows::{ReadingRow, SecondRow};

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn the_largest_memory_is_that_of_any_reading_within_slices_and_at_their_ends() {
        let mut record = Scenario::duel().record();
        let own: Vec<SliceRow> = record.slices.iter().take(2).cloned().collect();
        let reading = |row: &SliceRow, source: &str, metric: &str, value| ReadingRow {
            block: row.block,
            position: row.position,
            contender: row.contender.clone(),
            source: source.to_owned(),
            metric: metric.to_owned(),
            value,
        };
        record.readings.extend([
            reading(&own[0], "server", "resident_bytes", 5e8),
            reading(&own[0], "server", "resident_peak_bytes", 9e8),
            reading(&own[0], "load", "resident_bytes", 3e7),
            reading(&own[1], "load", "resident_bytes", 4e7),
        ]);
        record.seconds.push(SecondRow {
            block: own[0].block,
            position: own[0].position,
            offset_s: 1.0,
            length_s: 1.0,
            source: "server".to_owned(),
            metric: "resident_bytes".to_owned(),
            value: 6e8,
        });
        let evidence = Evidence::of(&record);
        let level = evidence
            .plan()
            .blocks
            .iter()
            .find(|block| block.id == own[0].block)
            .map_or(0, |block| block.level);
        let of = |row: &SliceRow| {
            let mut names = evidence.plan().contenders.iter();
            let contender = names.position(|one| one.name == row.contender).unwrap();
            measure(&evidence, level, contender)
        };
        assert_ne!(own[0].contender, own[1].contender);
        let (first, second) = (of(&own[0]), of(&own[1]));
        assert_eq!(first.server_memory_bytes_max.value(), Some(6e8));
        assert_eq!(first.client_memory_bytes_max.value(), Some(3e7));
        assert_eq!(second.client_memory_bytes_max.value(), Some(4e7));
        assert_eq!(second.server_memory_bytes_max.value(), None);
    }
}
