//! What a contest asks of its load: clients connected to each contender, which are driven in slices.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use dbduel_driver::session::Session;
use dbduel_load::order::{OpenOrder, SliceOrder, Tick};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::statements::StatementExample;

use crate::drive::SliceEnd;

/// The clients of all contenders. Dropped means ended.
pub trait Load {
    /// Connects a contender's clients; returns what the server says of the first one's session.
    ///
    /// # Errors
    /// When the clients cannot be connected.
    fn open(&mut self, order: OpenOrder) -> Result<Session>;

    /// Closes a contender's connections.
    ///
    /// # Errors
    /// When the load does not answer.
    fn close(&mut self, contender: &str) -> Result<()>;

    /// Drives one slice; `on_begin` is called with the instant at which its measured part begins, `on_tick` for every piece
    /// as it ends, which may end the slice. The slice is lost when the server or the load is gone or stuck.
    fn slice(
        &mut self,
        order: SliceOrder,
        on_begin: &mut dyn FnMut(Instant),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<()>,
    ) -> SliceEnd;

    /// Lets the contender's clients begin nothing more: their server has been frozen under their load.
    fn halt(&mut self, contender: &str);

    /// What the contender that was driven last acknowledged since the last call.
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

    /// True when a part of it has ended, did not answer in time or answered out of turn. All of it must then be started again.
    fn is_broken(&self) -> bool;

    /// How the part that drives servers failed, if it did.
    fn failure(&self) -> Option<&str>;

    /// The machines that load comes from; none when that is this one.
    fn hosts(&self) -> &[LoadHost];

    /// The number of the process that drives a contender's clients; none when it is on another machine.
    fn pid(&self, contender: &str) -> Option<u32>;
}
