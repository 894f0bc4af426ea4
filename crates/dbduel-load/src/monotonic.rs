//! Instants that other processes of the same machine can interpret.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, which [`Instant`] reads too.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// An instant as nanoseconds of `CLOCK_MONOTONIC`; never too early, and too late by at most the time between two
/// readings of the clock.
#[must_use]
pub fn ns_of(instant: Instant) -> u64 {
    let (here, now) = (Instant::now(), now());
    let ns = match instant.checked_duration_since(here) {
        Some(ahead) => now + ahead,
        None => now.saturating_sub(here - instant),
    };
    u64::try_from(ns.as_nanos()).unwrap_or(u64::MAX)
}

/// The instant at which `CLOCK_MONOTONIC` shows this many nanoseconds.
#[must_use]
pub fn instant_of(ns: u64) -> Instant {
    let (now, here) = (now(), Instant::now());
    let at = Duration::from_nanos(ns);
    match at.checked_sub(now) {
        Some(ahead) => here + ahead,
        None => here.checked_sub(now - at).unwrap_or(here),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_comes_back_as_it_was() {
        let now = Instant::now();
        for instant in [
            now,
            now + Duration::from_secs(9),
            now - Duration::from_millis(20),
        ] {
            let began = Instant::now();
            let back = instant_of(ns_of(instant));
            // What passes between two readings of the clock is the error.
            let error = back.max(instant) - back.min(instant);
            assert!(error <= began.elapsed(), "{error:?}");
        }
    }
}
