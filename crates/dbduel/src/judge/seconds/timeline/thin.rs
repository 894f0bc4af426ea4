//! Stretches made fewer and coarser, so that any run fits a page; work and time are kept.

use crate::judge::summary::Stretch;

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
