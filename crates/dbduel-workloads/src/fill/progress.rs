//! Progress of a fill.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use dbduel_driver::cancel::Cancel;

/// Progress and cancellation of a fill. Shared with the caller, who may show it.
#[derive(Debug, Default)]
pub struct FillWatch {
    /// Rows that the server has taken, those of an earlier attempt included.
    pub rows_done: AtomicU64,
    /// Rows to fill in altogether; 0 until known.
    pub rows_total: AtomicU64,
    /// Bytes of a file that were loaded.
    pub bytes_done: AtomicU64,
    /// Size of the file; 0 where none is loaded, or its size says nothing.
    pub bytes_total: AtomicU64,
    /// Cancels the work, including statements that wait for the server.
    pub cancel: Cancel,
}

/// The rows of one batch, which are subtracted again when the batch is rolled back.
pub(super) struct BatchProgress<'a> {
    watch: &'a FillWatch,
    rows: Cell<u64>,
}

impl<'a> BatchProgress<'a> {
    pub(super) fn new(watch: &'a FillWatch) -> Self {
        BatchProgress {
            watch,
            rows: Cell::new(0),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.watch.cancel.is_set()
    }

    /// Counts rows that the server has taken.
    pub(super) fn add(&self, rows: u64) {
        self.rows.set(self.rows.get() + rows);
        self.watch.rows_done.fetch_add(rows, Ordering::Relaxed);
    }

    /// Subtracts the rows of the batch.
    pub(super) fn undo(&self) {
        let rows = self.rows.take();
        self.watch.rows_done.fetch_sub(rows, Ordering::Relaxed);
    }
}
