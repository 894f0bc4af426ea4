//! Cost of the observation, to be weighed against the differences.

use serde::Serialize;

use crate::evidence::Evidence;

/// The cost of the samplers over all counted slices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watched {
    /// Processor time of the samplers per second of slice, as a share of one processor.
    pub cpu_share: f64,
    /// Share of the time in which the server was answering our status queries.
    pub asked_share: f64,
    /// Samples of the server's threads per second.
    pub looks_per_s: f64,
}

/// The cost of the samplers; `None` when the record does not have it.
#[must_use]
pub fn watched(evidence: &Evidence<'_>) -> Option<Watched> {
    let (mut window_s, mut cpu_s, mut asked_s, mut looks) = (0.0, 0.0, 0.0, 0.0);
    let contenders = 0..evidence.plan().contenders.len();
    let rows = contenders.flat_map(|contender| {
        evidence
            .levels
            .iter()
            .flat_map(move |level| level.slices_of(contender))
    });
    for row in rows {
        let reading = |source, metric| evidence.reading(row.slice(), source, metric);
        let Some(length_s) = reading("observer", "window_s") else {
            continue;
        };
        window_s += length_s;
        cpu_s += reading("observer", "cpu_s").unwrap_or(0.0);
        asked_s += reading("observer", "asked_s").unwrap_or(0.0);
        looks += reading("server", "state_looks_count").unwrap_or(0.0);
    }
    (window_s > 0.0).then(|| Watched {
        cpu_share: cpu_s / window_s,
        asked_share: asked_s / window_s,
        looks_per_s: looks / window_s,
    })
}
