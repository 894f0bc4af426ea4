//! Latencies as bars of stars.

use std::fmt::Write as _;

use dbduel_client::run::IntervalStats;

use super::NS_PER_MS;

/// Bins of a histogram.
const BINS: usize = 1024;
/// The lowest and the highest bin, milliseconds.
const BIN_RANGE_MS: (f64, f64) = (0.001, 100_000.0);
/// Stars of the longest bar.
const BAR: u64 = 40;

/// The latencies in logarithmic bins, those that are empty left out.
pub fn histogram(interval_stats: &IntervalStats) -> String {
    let (low, high) = (BIN_RANGE_MS.0.ln(), BIN_RANGE_MS.1.ln());
    let per_bin = (BINS - 1) as f64 / (high - low);
    let mut bins = vec![0_u64; BINS];
    for step in interval_stats.latencies.iter_recorded() {
        let ms = step.value_iterated_to() as f64 / NS_PER_MS;
        let bin = ((ms.ln() - low) * per_bin + 0.5).floor();
        bins[bin.clamp(0.0, (BINS - 1) as f64) as usize] += step.count_at_value();
    }
    let most = bins.iter().copied().max().unwrap_or_default().max(1);
    let mut text = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n".to_owned();
    for (number, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let ms = (number as f64 / per_bin + low).exp();
        let stars = "*".repeat(((*count as f64 / most as f64) * BAR as f64 + 0.5) as usize);
        let _ = writeln!(text, "{ms:12.3} |{stars:<40} {count}");
    }
    text.push_str(" \n");
    text
}
