//! Gaps in a loop that should turn every few milliseconds: time in which its thread did not run.
//!
//! A process that is stopped, frozen or without a processor sends nothing and, because it reads no clock meanwhile,
//! counts no delay either. Its loop notices afterwards: it turned long after the intended instant.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Longest sleep of a watched loop. A check costs less than a microsecond.
const BEAT: Duration = Duration::from_millis(50);

/// Delay from which it is a gap: above scheduling delays on a busy machine, and large enough to report in any slice.
const GAP_MIN: Duration = Duration::from_millis(250);

/// Maximum number of gaps that are kept of one slice. Further ones are still counted.
const GAPS_MAX: usize = 64;

/// Intervals of time, in order and disjoint.
pub(crate) type Gaps = Vec<Range<Instant>>;

/// The beats of one loop in one slice.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    next: Instant,
    stalled: Duration,
    gaps: Gaps,
}

impl Heartbeat {
    /// A heartbeat whose loop turns at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Heartbeat {
            next: now + BEAT,
            stalled: Duration::ZERO,
            gaps: Vec::new(),
        }
    }

    /// Latest time of the loop's next turn.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Records a turn of the loop at `now`, the latest instant so far. Returns the gap before it, zero if there was
    /// none.
    pub(crate) fn beat(&mut self, now: Instant, measured: Range<Instant>) -> Duration {
        let due = std::mem::replace(&mut self.next, now + BEAT);
        let gap = now.saturating_duration_since(due);
        if gap < GAP_MIN {
            return Duration::ZERO;
        }
        let (from, until) = (due.max(measured.start), now.min(measured.end));
        self.stalled += until.saturating_duration_since(from);
        if from < until && self.gaps.len() < GAPS_MAX {
            self.gaps.push(from..until);
        }
        gap
    }

    /// Total of the gaps in the measured part.
    pub(crate) fn stalled(&self) -> Duration {
        self.stalled
    }

    /// The gaps in the measured part.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }
}

/// The intersection of the gaps of both loops: a stop of the process stops them all.
pub(crate) fn common_gaps(one: &Gaps, other: &Gaps) -> Gaps {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    let common = pairs.map(|(a, b)| a.start.max(b.start)..a.end.min(b.end));
    common.filter(|gap| gap.start < gap.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stopped_one_loop_alone_is_no_gap_of_the_process() {
        let start = Instant::now();
        let gaps = |all: &[(u64, u64)]| -> Gaps {
            let each = all.iter();
            each.map(|(from, until)| start + ms(*from)..start + ms(*until))
                .collect()
        };
        let (one, other) = (
            gaps(&[(0, 500), (900, 1600)]),
            gaps(&[(400, 1000), (1500, 1700)]),
        );
        assert_eq!(
            common_gaps(&one, &other),
            gaps(&[(400, 500), (900, 1000), (1500, 1600)])
        );
        assert_eq!(common_gaps(&one, &gaps(&[(500, 900)])), gaps(&[]));
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn only_what_exceeds_the_sleep_by_far_is_a_gap_and_only_the_measured_part_counts() {
        let start = Instant::now();
        let measured = start + ms(1000)..start + ms(6000);
        // When the loop turned, the gap before, and what of all gaps was measured by then; milliseconds.
        let turns = [
            (50, 0, 0),
            (340, 0, 0),       // 240 late: a busy machine
            (1500, 1110, 500), // due at 390, so 500 of it after the guard
            (1520, 0, 500),
            (3520, 1950, 2450),
            (3560, 0, 2450),
            (9000, 5390, 4840), // ends after the slice, of which 2390 were left
            (9900, 850, 4840),
        ];
        let mut heartbeat = Heartbeat::new(start);
        for (at, gap, stalled) in turns {
            assert_eq!(
                heartbeat.beat(start + ms(at), measured.clone()),
                ms(gap),
                "{at}"
            );
            assert_eq!(heartbeat.stalled(), ms(stalled), "{at}");
            assert_eq!(heartbeat.next(), start + ms(at) + BEAT);
        }
    }
}
