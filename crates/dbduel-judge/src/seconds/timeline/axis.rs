//! The time axis of a chart: long pauses are cut out, and stretches made fewer and coarser, so that any run fits a page. Work
//! and time are kept.

use crate::summary::{Pause, Stretch};

/// A gap is cut out when it is longer than this and than a twentieth of the time under load.
const PAUSE_S: f64 = 120.0;

/// Wall-clock time with the pauses cut out.
pub(super) struct Clock {
    /// Zero of the timeline, milliseconds since 1970-01-01 UTC.
    pub(super) origin_ms: u64,
    /// The pauses that are cut out.
    pub(super) pauses: Vec<Pause>,
    /// Real seconds since the origin at which each pause ends.
    ends_s: Vec<f64>,
}

impl Clock {
    /// A clock over stretches under load, which are sorted.
    pub(super) fn new(busy: &[(u64, u64)]) -> Self {
        let origin_ms = busy.first().map_or(0, |(start_ms, _)| *start_ms);
        let since = |at_ms: u64| at_ms.saturating_sub(origin_ms) as f64 / 1e3;
        let lengths = busy.iter().map(|(start_ms, end_ms)| end_ms - start_ms);
        let longest_kept = PAUSE_S.max(lengths.sum::<u64>() as f64 / 1e3 / 20.0);
        let mut clock = Self {
            origin_ms,
            pauses: Vec::new(),
            ends_s: Vec::new(),
        };
        let (mut cut, mut end_ms) = (0.0, origin_ms);
        for (start_ms, until_ms) in busy {
            let length_s = since(*start_ms) - since(end_ms);
            if length_s > longest_kept {
                clock.pauses.push(Pause {
                    at_s: since(end_ms) - cut,
                    length_s,
                });
                clock.ends_s.push(since(*start_ms));
                cut += length_s;
            }
            end_ms = end_ms.max(*until_ms);
        }
        clock
    }

    /// Seconds of the timeline at a moment in milliseconds since 1970-01-01 UTC.
    pub(super) fn at_s(&self, at_ms: u64) -> f64 {
        let since = at_ms.saturating_sub(self.origin_ms) as f64 / 1e3;
        let passed = self
            .pauses
            .iter()
            .zip(&self.ends_s)
            .filter(|(_, end)| **end <= since + 1e-9);
        since - passed.map(|(pause, _)| pause.length_s).sum::<f64>()
    }
}

/// Steps per series at most; neighbouring ticks are merged to get there.
const STEPS_MAX: usize = 900;
/// Stretches per series at most; neighbouring slices are merged to get there.
const STRETCHES_MAX: usize = 600;

/// The stretches of one series within both bounds.
pub(super) fn thin(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let steps: usize = stretches
        .iter()
        .map(|stretch| stretch.steps_per_s.len())
        .sum();
    if steps <= STEPS_MAX {
        return stretches;
    }
    if stretches.len() * 3 <= STEPS_MAX {
        let merged = steps.div_ceil(STEPS_MAX);
        return stretches
            .into_iter()
            .map(|stretch| merge_steps(stretch, merged))
            .collect();
    }
    let merged = stretches.len().div_ceil(STRETCHES_MAX);
    stretches.chunks(merged).map(merge_stretches).collect()
}

fn merge_steps(mut stretch: Stretch, merged: usize) -> Stretch {
    let mean = |chunk: &[f64]| chunk.iter().sum::<f64>() / chunk.len() as f64;
    stretch.steps_per_s = stretch.steps_per_s.chunks(merged).map(mean).collect();
    stretch
}

fn merge_stretches(stretches: &[Stretch]) -> Stretch {
    let (first, last) = (&stretches[0], &stretches[stretches.len() - 1]);
    let active_s: f64 = stretches.iter().map(|stretch| stretch.length_s).sum();
    let ok: f64 = stretches
        .iter()
        .map(|stretch| stretch.throughput_per_s * stretch.length_s)
        .sum();
    Stretch {
        start_s: first.start_s,
        length_s: last.start_s + last.length_s - first.start_s,
        slices: stretches.iter().map(|stretch| stretch.slices).sum(),
        throughput_per_s: ok / active_s.max(f64::MIN_POSITIVE),
        steps_per_s: Vec::new(),
    }
}
