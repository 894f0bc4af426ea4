//! Tests of the machine itself, without a database: processor, memory, scheduler, mutexes, files.
//!
//! Their work per event is defined by sysbench to the last division, because their figures are only worth something
//! beside other people's figures. They are in this crate because they are load, driven by [`crate::bridge::threads`]
//! like any other; they are no [workloads](dbduel_workloads), because they have no tables, no statements and no server.

pub mod cpu;
pub mod file_io;
pub mod locks;
pub mod memory;

use dbduel_client::run::Counts;

/// A test, shared by its workers.
pub trait Machine: Send + Sync {
    /// Makes worker `number`, counted from 0, on its own thread.
    ///
    /// # Errors
    /// Says what is missing.
    fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String>;
}

/// What one thread does.
pub trait Worker {
    /// Does event `number`, counted from 0 over all workers.
    ///
    /// # Errors
    /// Says what failed; the run is over then.
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

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It was done.
    Done,
    /// There was nothing to do any more; it does not count, and the worker ends.
    NoMore,
}
