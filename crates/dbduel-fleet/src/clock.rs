//! Offset of another machine's clock, measured by round trips over NATS.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use dbduel_nats::{Exchange, Nats};
use serde::Serialize;

/// Questions per measurement. The quickest one counts.
const QUESTIONS: usize = 40;

/// Offset of another clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockOffset {
    /// The other clock minus the one here, microseconds.
    pub offset_us: f64,
    /// Largest error of the offset, microseconds: half of the quickest round trip.
    pub uncertainty_us: f64,
}

/// Subject on which an agent reports its time.
#[must_use]
pub fn subject(name: &str) -> String {
    format!("dbduel.clock.{name}")
}

/// Nanoseconds since 1970-01-01 UTC, as text.
#[must_use]
pub fn answer() -> Vec<u8> {
    nanoseconds(SystemTime::now()).to_string().into_bytes()
}

fn nanoseconds(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos().cast_signed(),
        Err(before) => -before.duration().as_nanos().cast_signed(),
    }
}

/// Measures the clock of an agent: of several round trips the quickest has the least room for asymmetry, so it alone is
/// used (the minimum filter of NTP's clock filter, Mills 1991).
///
/// # Errors
/// Without an answer, or when no answer is a time.
pub fn measure(nats: &Nats, name: &str) -> Result<ClockOffset> {
    let subject = subject(name);
    let mut best: Option<ClockOffset> = None;
    for _ in 0..QUESTIONS {
        let found = offset(&nats.ask(&subject, Vec::new())?)?;
        if best.is_none_or(|best| found.uncertainty_us < best.uncertainty_us) {
            best = Some(found);
        }
    }
    best.context("no round trip was measured")
}

fn offset(exchange: &Exchange) -> Result<ClockOffset> {
    let there: i128 = std::str::from_utf8(&exchange.answer)?
        .parse()
        .context("the agent's answer is not a time")?;
    let half = exchange.round_trip / 2;
    let here = nanoseconds(exchange.asked) + half.as_nanos().cast_signed();
    Ok(ClockOffset {
        offset_us: (there - here) as f64 / 1000.0,
        uncertainty_us: half.as_nanos() as f64 / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_offset_is_within_half_of_a_round_trip() {
        // Asked at 100 s, answered after 10 ms; the other clock is 5 ms ahead and answered after 8 ms of the way.
        let exchange = Exchange {
            asked: UNIX_EPOCH + Duration::from_secs(100),
            asked_at: Instant::now(),
            round_trip: Duration::from_millis(10),
            answer: b"100013000000".to_vec(),
        };
        let found = offset(&exchange).unwrap();
        assert_eq!((found.offset_us, found.uncertainty_us), (8000.0, 5000.0));
        assert!((found.offset_us - 5000.0).abs() <= found.uncertainty_us);
    }
}
