//! Interface to the load: clients connected to each contender, driven in slices.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use dbduel_driver::session::Session;
use dbduel_load::order::{OpenOrder, SliceOrder, Tick};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::statements::StatementExample;

use crate::drive::SliceEnd;

/// The clients of all contenders. Dropping it ends them.
pub trait Load {
    /// Connects a contender's clients; returns the session facts that the server reports for the first one.
    ///
    /// # Errors
    /// When the clients cannot be connected.
    fn open(&mut self, order: OpenOrder) -> Result<Session>;

    /// Closes a contender's connections.
    ///
    /// # Errors
    /// When the load does not answer.
    fn close(&mut self, contender: &str) -> Result<()>;

    /// Drives one slice. Calls `on_begin` with the instant at which the measured part begins, and `on_tick` after every
    /// tick, which may end the slice. The slice is lost when the server or the load is gone or stuck.
    fn slice(
        &mut self,
        order: SliceOrder,
        on_begin: &mut dyn FnMut(Instant),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<()>,
    ) -> SliceEnd;

    /// Stops the contender's clients from beginning anything: their server was frozen under load.
    fn halt(&mut self, contender: &str);

    /// Commits that the last driven contender acknowledged since the last call.
    #[must_use]
    fn take_commits(&mut self) -> Vec<CommitRange>;

    /// One statement of each class that a contender's clients send in a slice, as text. The contender is closed before and after.
    ///
    /// # Errors
    /// When its clients cannot be connected, or the slice is lost.
    fn sample_statements(
        &mut self,
        order: OpenOrder,
        slice: SliceOrder,
    ) -> Result<Vec<StatementExample>>;

    /// True when a part of it has ended, timed out or answered out of order. All of it must then be started again.
    fn is_broken(&self) -> bool;

    /// Failure of the load process that drives servers, if any.
    fn failure(&self) -> Option<&str>;

    /// Load hosts; empty when this machine drives the load.
    fn hosts(&self) -> &[LoadHost];

    /// Round trip to the farthest load host, seconds; 0 where this machine drives the load.
    fn round_trip_s(&self) -> f64;

    /// Process ID of a contender's load process; `None` when it is on another machine.
    fn pid(&self, contender: &str) -> Option<u32>;
}
