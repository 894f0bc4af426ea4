//! Numbers, counts and foreign text as messages, findings and reports show them.

pub mod counts;
mod lists;
mod numbers;
pub mod percent;
pub mod terminal;
mod visible;

pub use lists::{joined, joined_texts};
pub use numbers::{
    FIRM_SPACE, NEAR_ONE, bytes, bytes_of, bytes_tick, bytes_unit, duration, large, latency,
    latency_tick, latency_unit, multiple, number, ratio, trimmed, trimmed_fine, units_kept,
};
pub use visible::{ORNAMENTS, escaped_json, visible, visible_inked};
