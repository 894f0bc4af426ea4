//! Numbers and verdicts as text, the same in every format.
//!
//! Pure functions from values to words; no layout, no colour.

mod continuity;
mod course;
mod figures;
mod headlines;
mod verdicts;

pub use continuity::{continuity, contradictions};
pub use course::{course, courses, is_unsettled};
pub use dbduel_text::counts::{of as count, things};
pub use dbduel_text::percent::of as share;
pub use dbduel_text::{
    FIRM_SPACE, bytes, bytes_of, bytes_tick, bytes_unit, duration, joined, joined_texts, large,
    latency, latency_tick, latency_unit, number, ratio, trimmed, trimmed_fine, units_kept,
};
pub use figures::{
    NOT_MEASURED, RatioUnit, doubt, latency_doubt, off_centre, rate_doubt, ratio_interval,
    ratio_value, ratio_values, starred, value,
};
pub use headlines::headlines;
pub use verdicts::{
    change_sign, identical, level, own_resolution, pairs_note, quantities_note, ranking, scope,
    sign, verdict, verdict_unit,
};

/// `1 client`, `16 clients`.
#[must_use]
pub fn clients(count: u32) -> String {
    things(u64::from(count), "client")
}

/// Time of an event, UTC to the second; empty when it is out of range.
#[must_use]
pub fn moment(at_ms: Option<u64>) -> String {
    let timestamp =
        at_ms.and_then(|at_ms| jiff::Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok());
    timestamp
        .map(|timestamp| timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// The text with a large first letter and a full stop.
#[must_use]
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", characters.as_str())
}
