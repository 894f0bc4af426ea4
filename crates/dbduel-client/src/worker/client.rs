//! What a workload implements to be driven: one client's stream of transactions.
//!
//! Knows neither when a transaction is due nor how long it took.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use dbduel_driver::{ClientConnection, StatementError};

use dbduel_record::plan::Parameters;

use super::{ClientContext, ClientTask};
use crate::commit_log::Commitment;
use crate::tally::Class;

/// The clients of a workload, each of which is a [`Client`].
pub trait Clients: Sync {
    /// Whether a transaction may hold up its load thread on purpose, so that the thread's delay is the workload's own.
    fn blocks_threads(&self) -> bool {
        false
    }

    /// What the clients of one server share.
    fn shared(&self, parameters: &Parameters) -> Shared {
        let _ = parameters;
        Arc::new(())
    }

    /// One client as a [task](ClientContext::boxed), for resolved parameters.
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask;
}

/// What the clients of one server share; only their workload knows its type.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// The stream of transactions of one client. A workload implements it; it neither times nor retries.
pub trait Client: Sized + 'static {
    /// What all clients of the workload have in common.
    type Options: 'static;

    /// Prepares the client's statements. Called for every connection that the client makes.
    fn open(
        conn: &mut ClientConnection,
        options: &Self::Options,
        context: &ClientContext,
    ) -> impl Future<Output = Result<Self, StatementError>>;

    /// A slice begins. From here on everything that the client draws follows from the seed.
    fn begin(&mut self, begin: Begin);

    /// Whether and when the client may begin its next transaction. Asked in closed loops before each transaction.
    fn readiness(&mut self) -> Readiness {
        Readiness::READY
    }

    /// Decides what the next transaction is, without sending anything.
    fn draw(&mut self) -> Class;

    /// Runs a transaction of this class once. It is called again when the server rolled it back, and
    /// may draw new values or keep its values.
    fn transaction(
        &mut self,
        class: Class,
        conn: &mut ClientConnection,
    ) -> impl Future<Output = Result<(), StatementError>>;

    /// What the transaction that just ended well left behind. Asked once after each of them.
    fn trace(&mut self) -> Trace {
        Trace::Plain
    }

    /// Sends what the client has kept back, after its last transaction of a run.
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
    /// So long after now, on top of the ordered think time.
    After(Duration),
    /// Not before another client has done something: it is to be asked again after this time, which counts towards no latency.
    AskAgain(Duration),
    /// Not in this slice: the client has done all that it has to do in one. When all clients have, the slice ends.
    Finished,
}

impl Readiness {
    /// At once.
    pub const READY: Self = Readiness::After(Duration::ZERO);
}

/// What a transaction that ended well left behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nothing that is kept.
    #[default]
    Plain,
    /// A number that must still be there after a crash.
    Committed(Commitment),
    /// Nothing: it was rolled back on purpose.
    RolledBack,
}

/// What a client gets at the beginning of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Root of the client's random stream.
    pub seed: u64,
    /// Number of the client, from 0.
    pub client: u32,
    /// Clients that take part.
    pub clients: u32,
}
