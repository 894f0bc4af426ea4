//! The shape behind the figures: all of the latency distribution, and how steady throughput was.
//!
//! Points for charts, without intervals; the figures with intervals are in [`super::measures`].

use dbduel_record::latency::new_histogram;
use dbduel_record::rows::SliceRow;
use serde::Serialize;

use crate::evidence::Evidence;

/// Quantiles that are drawn; spaced evenly on an axis that counts nines.
const QUANTILES: [f64; 22] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9975, 0.999,
    0.9995, 0.99975, 0.9999, 0.99995, 0.99999, 0.999_999,
];
/// Bins of the distribution of throughput.
const BINS: usize = 40;

/// The shape of one contender at one level, over complete blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Index into the plan's levels.
    pub level: usize,
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// Latency at quantiles, as far as the number of transactions supports them.
    pub latency: Vec<QuantilePoint>,
    /// How throughput was spread over time; absent without a series.
    pub steadiness: Option<Steadiness>,
}

/// One point of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantilePoint {
    /// Share of transactions at or below.
    pub quantile: f64,
    /// Latency, microseconds.
    pub latency_us: f64,
}

/// The distribution of throughput over the ticks of the slices.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// Ticks.
    pub ticks: usize,
    /// Length of a tick, seconds.
    pub tick_s: f64,
    /// 5, 25, 50, 75 and 95 % quantile of transactions per second.
    pub quantiles_per_s: [f64; 5],
    /// Lower edge of the first bin, transactions per second.
    pub from_per_s: f64,
    /// Width of a bin.
    pub bin_per_s: f64,
    /// Ticks per bin.
    pub counts: Vec<u32>,
}

/// The profiles of all contenders at all levels.
#[must_use]
pub fn profiles(evidence: &Evidence<'_>) -> Vec<Profile> {
    let plan = evidence.plan();
    let mut profiles = Vec::new();
    for level in 0..plan.levels.len() {
        for contender in 0..plan.contenders.len() {
            let rows: Vec<&SliceRow> = evidence.levels[level].slices_of(contender).collect();
            if !rows.is_empty() {
                profiles.push(Profile {
                    level,
                    contender,
                    latency: latency(evidence, &rows),
                    steadiness: steadiness(evidence, &rows, plan.tick_s(level)),
                });
            }
        }
    }
    profiles
}

fn latency(evidence: &Evidence<'_>, rows: &[&SliceRow]) -> Vec<QuantilePoint> {
    let mut merged = new_histogram();
    for row in rows {
        let Some(histogram) = evidence.latencies(row.slice()) else {
            return Vec::new();
        };
        if merged.add(&histogram).is_err() {
            return Vec::new();
        }
    }
    if merged.is_empty() {
        return Vec::new();
    }
    // A quantile with fewer than ten transactions beyond it is an anecdote.
    let is_supported = |quantile: &f64| (1.0 - quantile) * merged.len() as f64 >= 10.0;
    QUANTILES
        .into_iter()
        .filter(is_supported)
        .map(|quantile| QuantilePoint {
            quantile,
            latency_us: merged.value_at_quantile(quantile) as f64 / 1e3,
        })
        .collect()
}

fn steadiness(evidence: &Evidence<'_>, rows: &[&SliceRow], tick_s: f64) -> Option<Steadiness> {
    let mut rates: Vec<f64> = rows
        .iter()
        .flat_map(|row| evidence.ticks(row.slice()))
        // The last tick of a slice may be cut short; its rate is noise.
        .filter(|tick| tick.length_s >= 0.5 * tick_s)
        .map(|tick| tick.ok as f64 / tick.length_s)
        .collect();
    rates.sort_by(f64::total_cmp);
    let (first, last) = (*rates.first()?, *rates.last()?);
    let quantile = |q: f64| rates[((rates.len() - 1) as f64 * q).round() as usize];
    let bin_per_s = ((last - first) / BINS as f64).max(f64::MIN_POSITIVE);
    let mut counts = vec![0_u32; BINS];
    for rate in &rates {
        let bin = ((rate - first) / bin_per_s) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    Some(Steadiness {
        ticks: rates.len(),
        tick_s,
        quantiles_per_s: [0.05, 0.25, 0.5, 0.75, 0.95].map(quantile),
        from_per_s: first,
        bin_per_s,
        counts,
    })
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn curves_rise_and_bins_hold_every_tick() {
        let (summary, _) = summarise(&Scenario::four().record());
        assert_eq!(summary.profiles.len(), 12);
        for profile in &summary.profiles {
            assert!(profile.latency.len() > 8);
            assert!(
                profile
                    .latency
                    .windows(2)
                    .all(|pair| pair[0].latency_us <= pair[1].latency_us)
            );
            let steadiness = profile.steadiness.as_ref().unwrap();
            let held: u32 = steadiness.counts.iter().sum();
            assert_eq!(held as usize, steadiness.ticks);
            assert!(steadiness.quantiles_per_s.is_sorted());
        }
    }
}
