//! Numbers, counts, versions and foreign text as shown in messages, findings and reports.

pub mod counts;
mod lists;
mod nearest;
mod numbers;
pub mod percent;
pub mod table;
pub mod terminal;
mod version;
mod visible;

pub use lists::{joined, joined_texts};
pub use nearest::nearest;
pub use numbers::{
    FIRM_SPACE, NEAR_ONE, bytes, bytes_of, bytes_tick, bytes_unit, duration, from_to, large,
    latency, latency_tick, latency_unit, multiple, number, ratio, trimmed, trimmed_fine,
    units_kept,
};
pub use version::Version;
pub use visible::{ORNAMENTS, escaped_json, shortened, visible, visible_inked};
