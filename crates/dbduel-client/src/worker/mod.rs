//! The clients of servers: one loop (`engine`), for the slices of a contest (`group`, `slice`) or a run in sysbench's
//! sense (`run`).

mod client;
mod engine;
mod group;
mod pacing;
mod preparations;
mod run;
mod run_events;
mod session_statistics;
mod slice;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use dbduel_driver::address::Address;
use dbduel_driver::executor::{Executor, Reactor, Task, Token};
use dbduel_driver::statement_examples::StatementExamples;
use dbduel_driver::{
    ClientConnection, Credentials, Dialect, ErrorClass, LostError, ServerError, StatementError, Tls,
};
use dbduel_record::plan::Parameters;

use crate::share::HostShare;
pub use client::{Begin, Client, Clients, Readiness, Shared, Trace};
pub use group::{Group, StatementClock};
pub use pacing::{ClientWaits, Pacing, RunClock};
pub use preparations::{PreparationCount, preparations};
pub use run::RunContext;
pub use run::WorkloadRun;
pub use run_events::RunEvents;
pub use slice::{Slice, SliceSpec};

/// Configuration that the clients of one server need to connect and to prepare their statements.
pub struct ClientConfig {
    /// The dialect.
    pub dialect: Dialect,
    /// The server's address.
    pub address: Address,
    /// Account.
    pub credentials: Credentials,
    /// TLS mode and certificates.
    pub tls: Arc<Tls>,
    /// Database with the tables.
    pub database: String,
    /// The workload.
    pub workload: &'static dyn Clients,
    /// Its resolved parameters.
    pub parameters: Parameters,
    /// Sequence of unique numbers shared by all clients of the contender or of the run.
    pub sequence: Arc<AtomicU32>,
    /// Share of the sequence for this load host: other hosts draw other numbers.
    pub host: HostShare,
    /// State shared by the workload's clients.
    pub shared: Shared,
    /// Store for examples of their statements, if they keep them.
    pub examples: Option<Arc<StatementExamples>>,
}

/// Assignment of a client.
pub enum Duty {
    /// The slices of a contest, begun by the group of its contender and thread.
    Slices(Rc<Group>),
    /// A run in sysbench's sense.
    Run(Arc<RunContext>),
    /// None: the client is opened to count what it prepares.
    Count(Rc<PreparationCount>),
}

/// Result of a client's task: in a contest, why its connection is unusable.
pub type ClientEnd = Result<(), LostError>;

/// A client as a task.
pub type ClientTask = Task<ClientEnd>;

/// A client before it is connected.
pub struct ClientContext {
    /// Number of the client, from 0, over all threads.
    pub client: u32,
    /// Its task.
    pub token: Token,
    /// The reactor of its thread.
    pub reactor: Rc<Reactor>,
    /// Its server and its workload.
    pub config: Arc<ClientConfig>,
    /// Slices or run.
    pub duty: Duty,
}

/// Creates a client's task, which is not polled yet.
pub fn start_client(
    client: u32,
    config: &Arc<ClientConfig>,
    duty: Duty,
    executor: &mut Executor<ClientEnd>,
) -> Token {
    let reactor = Rc::clone(executor.reactor());
    executor.insert(|token| {
        let context = ClientContext {
            client,
            token,
            reactor,
            config: Arc::clone(config),
            duty,
        };
        config.workload.client(&config.parameters, context)
    })
}

impl ClientContext {
    /// The client as a task of its thread's executor.
    pub fn boxed<C: Client>(self, options: C::Options) -> ClientTask {
        match &self.duty {
            Duty::Run(run) => {
                let run = Arc::clone(run);
                Box::pin(async move {
                    run::live::<C>(&run, &self, &options).await;
                    Ok(())
                })
            }
            Duty::Slices(group) => {
                let group = Rc::clone(group);
                Box::pin(async move { group::live::<C>(&group, &self, &options).await })
            }
            Duty::Count(count) => {
                let count = Rc::clone(count);
                Box::pin(async move { count.take::<C>(&self, &options).await })
            }
        }
    }

    /// The clock by which the client measures single statements.
    #[must_use]
    pub fn statement_clock(&self) -> StatementClock {
        StatementClock::new(match &self.duty {
            Duty::Slices(group) => Some(Rc::clone(group)),
            Duty::Run(_) | Duty::Count(_) => None,
        })
    }

    /// When the wait for the client's current work ends; `None` while unknown. It may be moved, so callers read it
    /// repeatedly.
    pub fn over_at(&self) -> Box<dyn Fn() -> Option<Instant>> {
        match &self.duty {
            Duty::Slices(group) => {
                let group = Rc::clone(group);
                Box::new(move || group.over_at())
            }
            Duty::Run(run) => {
                let gate = Arc::clone(&run.gate);
                Box::new(move || gate.over_at())
            }
            Duty::Count(count) => {
                let until = count.until;
                Box::new(move || Some(until))
            }
        }
    }

    /// Connects and prepares the client's statements.
    async fn open<C: Client>(
        &self,
        options: &C::Options,
    ) -> Result<(ClientConnection, C), LostError> {
        let config = &self.config;
        let mut conn = ClientConnection::open(
            Rc::clone(&self.reactor),
            self.token,
            config.dialect,
            &config.address,
            config.credentials.clone(),
            &config.database,
            &config.tls,
        )
        .await?;
        conn.start_session(C::SESSION_START).await?;
        if let Some(examples) = &config.examples {
            conn.keep_examples(examples);
        }
        match C::open(&mut conn, options, self).await {
            Ok(client) => Ok((conn, client)),
            Err(StatementError::Lost(lost)) => Err(lost),
            Err(StatementError::Server(error)) if error.class == ErrorClass::TooManyPrepared => {
                // In memory of its own, so that what a client keeps is small.
                Err(Box::pin(self.count_prepared::<C>(conn, options, error)).await)
            }
            Err(StatementError::Server(error)) => Err(LostError::Prepare(error)),
        }
    }

    /// The error of a server whose limit of prepared statements is reached. The client opens again with all statements as
    /// text, because only opening to the end shows how many it prepares.
    async fn count_prepared<C: Client>(
        &self,
        mut conn: ClientConnection,
        options: &C::Options,
        error: ServerError,
    ) -> LostError {
        let before = conn.preparations();
        conn.keep_examples(&Arc::default());
        match C::open(&mut conn, options, self).await {
            Ok(_) => LostError::TooManyPrepared {
                error,
                per_client: conn.preparations() - before,
            },
            Err(StatementError::Lost(lost)) => lost,
            Err(StatementError::Server(error)) => LostError::Prepare(error),
        }
    }
}
