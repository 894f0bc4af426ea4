//! Numbers, counts and foreign text as messages, findings and reports show them.

pub mod counts;
pub mod percent;
mod visible;

pub use visible::{ORNAMENTS, escaped_json, visible, visible_inked};
