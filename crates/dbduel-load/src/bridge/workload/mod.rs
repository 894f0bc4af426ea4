//! Runs the clients of a workload until the gate gives out no more tickets.
//!
//! What a client does is in [`crate::worker`]; here are its connections: which client goes where, and when one that was
//! lost is made again.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::load_threads::{self, Clients, LoadThreads};
use crate::address::Address;
use crate::driver::LostError;
use crate::executor::{Executor, Token};
use crate::run::{Gate, RunMetrics};
pub use crate::worker::WorkloadRun;
use crate::worker::{ClientConfig, ClientExit, Duty, RunContext, start_client};

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
    let sequence = Arc::new(AtomicU32::new(0));
    let config = |address: &Address| {
        Arc::new(ClientConfig {
            address: address.clone(),
            credentials: run.credentials.clone(),
            tls: Arc::clone(&run.tls),
            database: run.database.clone(),
            workload: run.workload,
            parameters: run.parameters.clone(),
            sequence: Arc::clone(&sequence),
        })
    };
    let configs: Arc<[_]> = run.addresses.iter().map(config).collect();
    let run = Arc::new(run);
    let (own_gate, metrics) = (Arc::clone(gate), Arc::clone(metrics));
    load_threads::start(threads, gate, move |thread| {
        let (gate, metrics) = (Arc::clone(&own_gate), Arc::clone(&metrics));
        WorkloadClients {
            configs: Arc::clone(&configs),
            context: RunContext::new(Arc::clone(&run), gate, metrics, thread, threads),
        }
    })
}

/// The clients of one thread.
struct WorkloadClients {
    /// One for each address.
    configs: Arc<[Arc<ClientConfig>]>,
    context: Rc<RunContext>,
}

impl WorkloadClients {
    fn config(&self, client: u32) -> &Arc<ClientConfig> {
        &self.configs[client as usize % self.configs.len()]
    }

    /// Makes a task of the client at `place`.
    fn start_client(&self, place: usize, executor: &mut Executor<ClientExit>) -> Token {
        let client = self.context.states.borrow()[place].client;
        let duty = Duty::Run(Rc::clone(&self.context));
        let token = start_client(client, self.config(client), duty, executor);
        self.context.states.borrow_mut()[place].token = Some(token);
        token
    }

    /// The place of the client whose task has ended, if it is to have another one.
    fn place_to_fill(&self, token: Token, end: ClientExit) -> Option<usize> {
        let mut states = self.context.states.borrow_mut();
        let place = states.iter().position(|state| state.token == Some(token))?;
        let state = &mut states[place];
        state.token = None;
        let why = match end {
            ClientExit::ForGood => return None,
            ClientExit::ToConnectAnew => return Some(place),
            ClientExit::Lost(why) => why,
        };
        let may_return = state.is_ready && self.context.run.ignored.reconnects() && why.may_pass();
        let now = Instant::now();
        let lost_at = *state.lost_at.get_or_insert(now);
        if may_return && self.context.gate.is_over(now) {
            // As with every ignored error, the event is given up.
            return None;
        }
        if may_return && now - lost_at < self.context.run.reconnecting {
            return Some(place);
        }
        let address = &self.config(state.client).address;
        let text = explain(&why, address, state.is_ready);
        self.context.gate.fail(text);
        None
    }
}

impl Clients for WorkloadClients {
    type End = ClientExit;

    fn count(&self) -> usize {
        self.context.states.borrow().len()
    }

    fn start(&mut self, executor: &mut Executor<ClientExit>) -> Vec<Token> {
        let places = 0..self.count();
        places
            .map(|place| self.start_client(place, executor))
            .collect()
    }

    fn ended(
        &mut self,
        token: Token,
        end: ClientExit,
        executor: &mut Executor<ClientExit>,
    ) -> Option<Token> {
        let place = self.place_to_fill(token, end)?;
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
        LostError::Prepare(_) | LostError::Data { .. } | LostError::Values(_) => why.to_string(),
        _ if was_made => format!("lost connection to MySQL server {place}: {why}"),
        _ => format!("unable to connect to MySQL server {place}, aborting: {why}"),
    }
}

#[cfg(test)]
mod tests;
