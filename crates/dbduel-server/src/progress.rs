//! Progress reports of long operations.

/// Receives the progress of a long operation.
pub trait Progress: Sync {
    /// A new stage begins: a short phrase such as "unpacking mysql-8.0.33".
    fn stage(&self, what: &str);

    /// `done` of `total` of the stage; `None` when the total is not known.
    fn advance(&self, done: u64, total: Option<u64>, unit: ProgressUnit);
}

/// Unit of a stage's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressUnit {
    /// Bytes fetched, unpacked or copied.
    Bytes,
    /// Rows of tables.
    Rows,
}

/// Discards all progress.
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _what: &str) {}
    fn advance(&self, _done: u64, _total: Option<u64>, _unit: ProgressUnit) {}
}
