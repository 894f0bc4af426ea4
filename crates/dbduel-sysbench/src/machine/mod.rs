//! Tests of the machine itself, without a database: processor, memory, scheduler, mutexes, files.
//!
//! Their work per event is exactly that of sysbench, so that their figures can be compared with other people's. They
//! are driven by [`crate::bridge::threads`] and are not [workloads](dbduel_workloads), because they have no tables, no
//! statements and no server.

pub mod cpu;
pub mod file_io;
pub mod locks;
pub mod memory;

use dbduel_client::run::Counts;

/// A test, shared by its workers.
pub trait Machine: Send + Sync {
    /// Creates worker `number`, counted from 0, on its own thread.
    ///
    /// # Errors
    /// The resource that is missing.
    fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String>;
}

/// The work of one thread.
pub trait Worker {
    /// Does event `number`, counted from 0 over all workers.
    ///
    /// # Errors
    /// The operation that failed; the run is over then.
    fn event(&mut self, number: u64, counts: &mut Counts) -> Result<Next, String>;

    /// Ends the worker's work, outside of any event.
    ///
    /// # Errors
    /// As [`Worker::event`].
    fn finish(&mut self, counts: &mut Counts) -> Result<(), String> {
        let _ = counts;
        Ok(())
    }
}

/// Result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It was done.
    Done,
    /// Nothing was left to do; it does not count, and the worker ends.
    NoMore,
}
