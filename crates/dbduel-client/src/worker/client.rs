//! Interface of a workload to the load: one client's stream of transactions.
//!
//! Schedules and times are kept elsewhere.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use dbduel_driver::{ClientConnection, SessionStart, StatementError};

use dbduel_record::plan::Parameters;

use super::{ClientContext, ClientTask};
use crate::commit_log::Commitment;
use crate::tally::{Class, StatementDone};

/// The clients of a workload, each of which is a [`Client`].
pub trait Clients: Sync {
    /// Whether a transaction may block its load thread on purpose, so that the thread's delay is the workload's own.
    fn blocks_threads(&self) -> bool {
        false
    }

    /// State shared by the clients of one server.
    fn shared(&self, parameters: &Parameters) -> Shared {
        let _ = parameters;
        Arc::new(())
    }

    /// One client as a [task](ClientContext::boxed), for resolved parameters.
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask;
}

/// State shared by the clients of one server; only their workload knows its type.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// The stream of transactions of one client. A workload implements it; it neither times nor retries.
pub trait Client: Sized + 'static {
    /// Options common to all clients of the workload.
    type Options: 'static;

    /// How its sessions begin.
    const SESSION_START: SessionStart = SessionStart::Measured;

    /// Prepares the client's statements. Called for every connection that the client makes.
    fn open(
        conn: &mut ClientConnection,
        options: &Self::Options,
        context: &ClientContext,
    ) -> impl Future<Output = Result<Self, StatementError>>;

    /// Begins a slice. From here on all random draws of the client follow from the seed.
    fn begin(&mut self, begin: Begin);

    /// Whether and when the client may begin its next transaction. Asked in closed loops before each transaction.
    fn readiness(&mut self) -> Readiness {
        Readiness::READY
    }

    /// Draws the next transaction, without sending anything; the first class where there is only one.
    fn draw(&mut self) -> Class {
        Class(0)
    }

    /// Runs a transaction of this class once. It is called again when the server rolled it back, and may draw new
    /// values or keep its values.
    fn transaction(
        &mut self,
        class: Class,
        conn: &mut ClientConnection,
    ) -> impl Future<Output = Result<(), StatementError>>;

    /// Lasting effect of the transaction that just succeeded. Asked once after each of them.
    fn trace(&mut self) -> Trace {
        Trace::Plain
    }

    /// The statements of the transaction that just ended, of all its attempts, for a workload that measures single ones. Asked once
    /// after each.
    fn statements(&self) -> &[StatementDone] {
        &[]
    }

    /// Sends the work that the client has deferred, after its last transaction of a run.
    fn finish(
        &mut self,
        conn: &mut ClientConnection,
    ) -> impl Future<Output = Result<(), StatementError>> {
        let _ = conn;
        async { Ok(()) }
    }
}

/// Whether and when a client may begin its next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// After this time from now, in addition to the ordered think time.
    After(Duration),
    /// At this time since the slice or the run began. Its latency counts from then, also where the client is late.
    Due(Duration),
    /// Not before another client has done something: asked again after this time, which counts towards no latency.
    AskAgain(Duration),
    /// Not in this slice: the client has done all its work in it. When all clients have, the slice ends.
    Finished,
}

impl Readiness {
    /// Ready at once.
    pub const READY: Self = Readiness::After(Duration::ZERO);
}

/// Lasting effect of a transaction that succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing to keep.
    #[default]
    Plain,
    /// A number that must exist even after a crash.
    Committed(Commitment),
    /// None: it was rolled back on purpose.
    RolledBack,
}

/// Parameters of a slice for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Number of the quantum that the clients run, where the workload is a trace.
    pub quantum: Option<u32>,
    /// Root of the client's random stream.
    pub seed: u64,
    /// Root of the random streams of all clients in the slice: contenders that get the same work have the same.
    pub slice_seed: u64,
    /// Number of the client, from 0.
    pub client: u32,
    /// Number of clients that take part.
    pub clients: u32,
}
