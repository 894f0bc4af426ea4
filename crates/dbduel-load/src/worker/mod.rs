//! One client: it takes what is due, sends it, tries again what may be tried again, and says when it
//! was done.
//!
//! Here are the clock reads, the retries and the accounting, so that a workload needs none of them. A
//! transaction costs one clock read: the instant at which it was done is also the instant at which the
//! next one of a closed loop is due and sent.

mod client;
mod group;
mod run;
mod slice;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use dbduel_record::plan::Parameters;
use dbduel_record::seed::named_seed;

use crate::address::Address;
use crate::driver::{ClientConnection, Credentials, ErrorClass, LostError, StatementError, Tls};
use crate::executor::{Executor, Reactor, Task, Token, turn};
use crate::session::Session;
use crate::tally::{Class, Ended, Outcome};
use crate::workloads::Workload;
pub use client::{Begin, Client, Trace};
pub use group::Group;
pub(crate) use run::RunContext;
pub use run::WorkloadRun;
pub use slice::{Slice, SliceSpec};

/// What the clients of one server need to connect and to prepare their statements.
pub struct ClientConfig {
    /// Where the server listens.
    pub address: Address,
    /// Account.
    pub credentials: Credentials,
    /// How much TLS.
    pub tls: Arc<Tls>,
    /// Database with the tables.
    pub database: String,
    /// What the clients do.
    pub workload: &'static dyn Workload,
    /// Its resolved parameters.
    pub parameters: Parameters,
    /// Numbers that all clients of the contender or of the run draw from, each once.
    pub sequence: Arc<AtomicU32>,
}

/// Why a client's task has ended.
#[derive(Debug)]
pub enum ClientExit {
    /// Its connection is of no use any more.
    Lost(LostError),
    /// It wants another connection.
    ToConnectAnew,
    /// It has no more events.
    ForGood,
}

/// What a client takes part in.
pub(crate) enum Duty {
    /// The slices of a contest, which the group of its contender and thread begins.
    Slices(Rc<Group>),
    /// A run as sysbench understands it.
    Run(Rc<RunContext>),
}

/// A client before it is connected.
pub struct ClientContext {
    /// Number of the client, from 0, over all threads.
    pub client: u32,
    /// Its task.
    pub token: Token,
    /// The waits of its thread.
    pub reactor: Rc<Reactor>,
    /// Its server and its workload.
    pub config: Arc<ClientConfig>,
    pub(crate) duty: Duty,
}

/// Makes a client a task, which is not polled yet.
pub(crate) fn start_client(
    client: u32,
    config: &Arc<ClientConfig>,
    duty: Duty,
    executor: &mut Executor<ClientExit>,
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
    pub fn boxed<C: Client>(self, options: C::Options) -> Task<ClientExit> {
        match &self.duty {
            Duty::Run(run) => {
                let run = Rc::clone(run);
                Box::pin(async move {
                    let exit = run::live::<C>(&run, &self, options).await;
                    exit.unwrap_or_else(ClientExit::Lost)
                })
            }
            Duty::Slices(group) => {
                let group = Rc::clone(group);
                Box::pin(async move {
                    let Err(lost) = self.live::<C>(&group, options).await;
                    ClientExit::Lost(lost)
                })
            }
        }
    }

    /// The end of the wait for what the client has begun; none while that is not known. It may be moved, so
    /// callers read it again and again.
    pub(crate) fn over_at(&self) -> Box<dyn Fn() -> Option<Instant>> {
        match &self.duty {
            Duty::Slices(group) => {
                let group = Rc::clone(group);
                Box::new(move || group.over_at())
            }
            Duty::Run(run) => {
                let gate = Arc::clone(&run.gate);
                Box::new(move || gate.over_at())
            }
        }
    }

    async fn live<C: Client>(
        self,
        group: &Group,
        options: C::Options,
    ) -> Result<std::convert::Infallible, LostError> {
        let (mut conn, mut client) = self.open::<C>(options).await?;
        let session = match self.client {
            0 => Some(Session::ask(&mut conn).await?),
            _ => None,
        };
        group.admit(session);
        let mut round = 0;
        loop {
            let slice = self.next_slice(group, &mut round).await;
            group.enter();
            let SliceSpec { seed, share, .. } = *slice.spec();
            let seed = named_seed(seed, &format!("client/{}", self.client));
            client.begin(Begin {
                seed,
                client: self.client,
                clients: share.clients,
            });
            self.work(group, &slice, &mut conn, &mut client).await?;
            group.leave();
        }
    }

    /// Connects and prepares the client's statements.
    pub(crate) async fn open<C: Client>(
        &self,
        options: C::Options,
    ) -> Result<(ClientConnection, C), LostError> {
        let config = &self.config;
        let mut conn = ClientConnection::open(
            Rc::clone(&self.reactor),
            self.token,
            &config.address,
            config.credentials.clone(),
            &config.database,
            &config.tls,
        )
        .await?;
        match C::open(&mut conn, options, Arc::clone(&config.sequence)).await {
            Ok(client) => Ok((conn, client)),
            Err(StatementError::Lost(lost)) => Err(lost),
            Err(StatementError::Server(error)) => Err(LostError::Prepare(error)),
        }
    }

    /// Parks until a slice begins in which this client takes part.
    async fn next_slice(&self, group: &Group, round: &mut u64) -> Rc<Slice> {
        loop {
            if let Some(slice) = group.next_slice(self.client, round) {
                return slice;
            }
            turn().await;
        }
    }

    /// The client's whole work in one slice.
    async fn work<C: Client>(
        &self,
        group: &Group,
        slice: &Slice,
        conn: &mut ClientConnection,
        client: &mut C,
    ) -> Result<(), LostError> {
        let mut now_ns = self.wait_for_start(slice).await;
        while let Some(due_ns) = slice.take(now_ns.saturating_add(client.pause().as_nanos() as u64))
        {
            if due_ns > now_ns {
                now_ns = self.wait_until(slice, due_ns).await;
                if slice.is_over(now_ns) {
                    slice.give_back(due_ns);
                    break;
                }
                // It was free in time, so the delay is ours.
                slice.lagged(now_ns - due_ns);
            }
            let class = client.draw();
            let statements_before = conn.statements();
            let sent_ns = now_ns;
            slice.began(class, sent_ns);
            let (outcome, retries) = try_until_done(slice, class, conn, client).await?;
            let trace = match outcome {
                Outcome::Ok => client.trace(),
                Outcome::Failed => Trace::Plain,
            };
            if let Trace::Committed(commitment) = trace {
                group.keep(commitment);
            }
            let statements = conn.statements() - statements_before;
            now_ns = slice.now_ns();
            slice.ended(Ended {
                class,
                outcome,
                due_ns,
                done_ns: now_ns,
                retries,
                statements,
            });
            if outcome == Outcome::Ok {
                slice.served(now_ns - sent_ns);
            }
            if trace == Trace::RolledBack {
                slice.rolled_back();
            }
            slice.lagged(now_ns.saturating_sub(slice.ns_of(self.reactor.turn_began())));
        }
        Ok(())
    }

    /// Waits until the slice starts; returns when it was seen to have started. What is sent before has no place on the
    /// slice's clock, and its latency would come out too small.
    async fn wait_for_start(&self, slice: &Slice) -> u64 {
        let start = slice.spec().start;
        if Instant::now() < start {
            self.reactor.wake_at(self.token, start);
        }
        while Instant::now() < start {
            turn().await;
        }
        slice.now_ns()
    }

    /// Waits for an instant or the end of the slice; returns when that was.
    async fn wait_until(&self, slice: &Slice, due_ns: u64) -> u64 {
        self.reactor.wake_at(self.token, slice.instant(due_ns));
        loop {
            turn().await;
            let now_ns = slice.now_ns();
            if now_ns >= due_ns || slice.is_over(now_ns) {
                return now_ns;
            }
        }
    }
}

/// Runs a transaction until it is committed or given up; returns how it ended and the attempts after
/// the first. After every error a rollback is sent: a lock wait timeout leaves the transaction open, and
/// what it did before would be committed by the next one.
async fn try_until_done<C: Client>(
    slice: &Slice,
    class: Class,
    conn: &mut ClientConnection,
    client: &mut C,
) -> Result<(Outcome, u64), LostError> {
    let mut retries = 0;
    loop {
        let error = match client.transaction(class, conn).await {
            Ok(()) => return Ok((Outcome::Ok, retries)),
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => error,
        };
        slice.erred(&error);
        match conn.query(b"ROLLBACK").await {
            Ok(_) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => slice.erred(&error),
        }
        if error.class != ErrorClass::Conflict || retries >= u64::from(slice.spec().retries) {
            return Ok((Outcome::Failed, retries));
        }
        retries += 1;
    }
}
