//! Wall-clock time with long pauses cut out.

use crate::judge::summary::Pause;

/// A gap is cut out when it is longer than this and than a twentieth of the time under load.
const PAUSE_S: f64 = 120.0;

/// Wall-clock time with the pauses cut out.
pub(super) struct Clock {
    /// Zero of the timeline, milliseconds since 1970-01-01 UTC.
    pub(super) origin_ms: u64,
    /// What is cut out.
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
