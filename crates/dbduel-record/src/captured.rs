//! How a capture is replayed, as far as both halves need it: the clients do the work, and the judge reads slices of it.

use serde_json::Value;

use crate::plan::Parameters;

/// Name of the workload.
pub const NAME: &str = "captured";
/// The parameter that says how a capture is replayed.
pub const MODE: &str = "mode";
/// The mode in which clients draw transactions.
pub const MIX: &str = "mix";
/// The mode that keeps the order of each session.
pub const TRACE: &str = "trace";

/// True for resolved parameters of a capture that is replayed as a trace: each slice runs a quantum of it, however long that takes.
#[must_use]
pub fn is_trace(parameters: &Parameters) -> bool {
    parameters.get(MODE).and_then(Value::as_str) == Some(TRACE)
}
