//! Runs the clients of a workload until the gate gives out no more tickets.
//!
//! What a client does is in [`crate::worker`]; here are its connections: which client goes where, and when one that was
//! lost is made again.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use dbduel_record::plan::{Parameters, Workload as PlannedWorkload};

use super::load_threads::{self, Clients, LoadThreads};
use crate::address::Address;
use crate::blocking::{Credentials, Tls, TlsError};
use crate::conn::LostError;
use crate::executor::{Executor, Token};
use crate::order::OpenOrder;
use crate::run::{Gate, IgnoredErrors, RunMetrics};
use crate::statement_watch::StatementWatch;
use crate::worker::{ClientContext, ClientExit, Group, Opening, Rules, RunContext};
use crate::workloads::Workload;

/// What the clients are to do. No debug output, because it holds a password.
pub struct WorkloadRun {
    /// What they do.
    pub workload: &'static dyn Workload,
    /// Its resolved parameters.
    pub parameters: Parameters,
    /// Where servers listen; client n goes to address n modulo their number.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    /// How much TLS.
    pub tls: Arc<Tls>,
    /// Database with the tables.
    pub database: String,
    /// Connections.
    pub clients: u32,
    /// Errors after which an event is begun again; any other ends the run.
    pub ignored: IgnoredErrors,
    /// Events of a client after which it connects anew; 0 for never.
    pub reconnect_every: u64,
    /// Time in which a connection must be made again.
    pub reconnecting: Duration,
    /// Ends statements that a server will never answer.
    pub statement_watch: Option<StatementWatch>,
    /// Root of the random streams.
    pub seed: u64,
}

/// Starts so many threads with the clients on them; they wait until the gate opens.
///
/// # Errors
/// When the system gives no thread or no event loop.
pub fn start(
    run: WorkloadRun,
    threads: u32,
    gate: &Arc<Gate>,
    metrics: &Arc<RunMetrics>,
) -> io::Result<LoadThreads> {
    let threads = threads.clamp(1, run.clients.max(1));
    let (run, sequence) = (Arc::new(run), Arc::new(AtomicU32::new(0)));
    let (own_gate, metrics) = (Arc::clone(gate), Arc::clone(metrics));
    load_threads::start(threads, gate, move |thread| {
        let rules = Rules {
            clients: run.clients,
            ignored: run.ignored.clone(),
            reconnect_every: run.reconnect_every,
            reconnecting: run.reconnecting,
            statement_watch: run.statement_watch.clone(),
            seed: run.seed,
        };
        let (gate, metrics) = (Arc::clone(&own_gate), Arc::clone(&metrics));
        WorkloadClients {
            run: Arc::clone(&run),
            context: RunContext::new(rules, gate, metrics, thread, threads),
            sequence: Arc::clone(&sequence),
        }
    })
}

/// The clients of one thread.
struct WorkloadClients {
    run: Arc<WorkloadRun>,
    context: Rc<RunContext>,
    sequence: Arc<AtomicU32>,
}

impl WorkloadClients {
    /// Makes a task of the client at `place`.
    fn start_client(&self, place: usize, executor: &mut Executor<LostError>) -> Token {
        let client = self.context.states.borrow()[place].client;
        let group = Group::for_run(Arc::new(self.opening(client)), Rc::clone(&self.context));
        let reactor = Rc::clone(executor.reactor());
        let WorkloadRun {
            workload,
            parameters,
            ..
        } = &*self.run;
        let token = executor.insert(|token| {
            workload.client(
                parameters,
                ClientContext {
                    client,
                    token,
                    reactor,
                    group,
                },
            )
        });
        self.context.states.borrow_mut()[place].token = Some(token);
        token
    }

    fn opening(&self, client: u32) -> Opening {
        let WorkloadRun {
            workload,
            parameters,
            addresses,
            credentials,
            tls,
            database,
            clients,
            ..
        } = &*self.run;
        Opening {
            order: OpenOrder {
                contender: String::new(),
                address: addresses[client as usize % addresses.len()].clone(),
                user: credentials.user.clone(),
                password: credentials.password.clone(),
                tls: tls.mode().clone(),
                database: database.clone(),
                workload: PlannedWorkload {
                    name: workload.name().to_owned(),
                    parameters: parameters.clone(),
                },
                clients: *clients,
                retries: 0,
                connect_s: 0.0,
            },
            sequence: Arc::clone(&self.sequence),
            tls: Arc::clone(tls),
        }
    }

    /// The place of the client whose task has ended, if it is to have another one.
    fn place_to_fill(&self, token: Token, why: &LostError) -> Option<usize> {
        let mut states = self.context.states.borrow_mut();
        let place = states.iter().position(|state| state.token == Some(token))?;
        let state = &mut states[place];
        state.token = None;
        match state.left.take() {
            Some(ClientExit::ForGood) => return None,
            Some(ClientExit::ToConnectAnew) => return Some(place),
            None => {}
        }
        let may_return = state.is_ready
            && self.run.ignored.reconnects()
            && matches!(
                why,
                LostError::Io(_)
                    | LostError::Wire(_)
                    | LostError::Login(_)
                    // A server that goes away may do so in the midst of a handshake.
                    | LostError::Tls(TlsError::Closed { .. })
            );
        let now = Instant::now();
        let lost_at = *state.lost_at.get_or_insert(now);
        if may_return && self.context.gate.is_over(now) {
            // As with every ignored error, the event is given up.
            return None;
        }
        if may_return && now - lost_at < self.run.reconnecting {
            return Some(place);
        }
        let address = &self.run.addresses[state.client as usize % self.run.addresses.len()];
        let text = explain(why, address, state.is_ready);
        self.context.gate.fail(text);
        None
    }
}

impl Clients for WorkloadClients {
    type End = LostError;

    fn count(&self) -> usize {
        self.context.states.borrow().len()
    }

    fn start(&mut self, executor: &mut Executor<LostError>) -> Vec<Token> {
        let places = 0..self.count();
        places
            .map(|place| self.start_client(place, executor))
            .collect()
    }

    fn ended(
        &mut self,
        token: Token,
        end: LostError,
        executor: &mut Executor<LostError>,
    ) -> Option<Token> {
        let place = self.place_to_fill(token, &end)?;
        Some(self.start_client(place, executor))
    }
}

/// What went wrong with a connection, in words that begin as sysbench's do; whether it was made before.
fn explain(why: &LostError, address: &Address, was_made: bool) -> String {
    let place = match address {
        Address::Unix { path } => format!("on socket '{}'", path.display()),
        Address::Tcp { host, port } => format!("on host '{host}', port {port}"),
    };
    match why {
        LostError::Prepare(_) | LostError::Data { .. } | LostError::Command(_) => why.to_string(),
        _ if was_made => format!("lost connection to MySQL server {place}: {why}"),
        _ => format!("unable to connect to MySQL server {place}, aborting: {why}"),
    }
}

#[cfg(test)]
mod tests;
