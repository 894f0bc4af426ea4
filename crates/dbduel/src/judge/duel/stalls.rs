//! The stall ledger of a level: how often each contender stood still, and what that allows to say.
//!
//! Counts over full ticks; the short rest at the end of a slice is left out because its rate is noise.

use dbduel_record::rows::SliceRow;
use dbduel_stats::stalls::{StallCount, count_stalls, unseen_rate_bound};

use crate::judge::evidence::{Evidence, slice_of};
use crate::judge::summary::Stalls;

/// Probability that the bound on unseen stalls is wrong.
const UNSEEN_ALPHA: f64 = 0.05;

/// A tick this much shorter than planned is a rest.
const FULL_TICK: f64 = 0.99;

/// The stalls in one contender's slices; `None` when the record has no ticks of them.
#[must_use]
pub fn stalls(rows: &[&SliceRow], evidence: &Evidence<'_>) -> Option<Stalls> {
    let tick_s = evidence.plan().schedule.tick_s;
    let count = count(rows, evidence)?;
    let rate = unseen_rate_bound(count.active, UNSEEN_ALPHA).ok()?;
    Some(Stalls {
        count: count.stalls,
        lost_s: count.lost * tick_s,
        active_ticks: count.active,
        unseen_if_rarer_than_s: tick_s / rate,
    })
}

fn count(rows: &[&SliceRow], evidence: &Evidence<'_>) -> Option<StallCount> {
    let shortest_s = FULL_TICK * evidence.plan().schedule.tick_s;
    let slices: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            let ticks = evidence
                .ticks(slice_of(row))
                .iter()
                .filter(|tick| tick.length_s >= shortest_s);
            ticks.map(|tick| tick.ok as f64 / tick.length_s).collect()
        })
        .collect();
    count_stalls(&slices).ok().filter(|count| count.active > 0)
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
