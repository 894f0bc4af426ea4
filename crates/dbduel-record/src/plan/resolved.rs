//! Typed access to resolved parameters of a workload.

use serde_json::Value;

use super::Parameters;

/// Resolved parameters in their types. A parameter that is missing or of another type, which resolving rules out,
/// reads as zero, off or empty.
#[derive(Debug, Clone, Copy)]
pub struct Resolved<'a>(pub &'a Parameters);

impl<'a> Resolved<'a> {
    /// A whole number.
    #[must_use]
    pub fn integer(self, name: &str) -> i64 {
        self.0.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    /// A count, which is not negative.
    #[must_use]
    pub fn count(self, name: &str) -> u64 {
        self.integer(name).try_into().unwrap_or_default()
    }

    /// A number.
    #[must_use]
    pub fn number(self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    /// On or off.
    #[must_use]
    pub fn switch(self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// A word or text.
    #[must_use]
    pub fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}
