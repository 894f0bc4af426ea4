//! Runs the clients of a workload until the gate gives out no more tickets. The clients are in [`dbduel_client`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use dbduel_client::run::{Gate, RunMetrics};
use dbduel_client::share::HostShare;
use dbduel_client::{ClientConfig, ClientEnd, Duty, RunContext, start_client};
use dbduel_driver::address::Address;
use dbduel_driver::executor::Executor;

use super::{LoadThreads, start_threads};
pub use dbduel_client::WorkloadRun;

/// Starts the threads with the clients on them; they wait until the gate opens.
///
/// # Errors
/// When a thread or an event loop cannot be created.
pub fn start(
    run: WorkloadRun,
    threads: u32,
    gate: &Arc<Gate>,
    metrics: &Arc<RunMetrics>,
) -> io::Result<LoadThreads> {
    let sequence = Arc::new(AtomicU32::new(0));
    let config = |address: &Address| {
        Arc::new(ClientConfig {
            dialect: run.dialect,
            address: address.clone(),
            credentials: run.credentials.clone(),
            tls: Arc::clone(&run.tls),
            database: run.database.clone(),
            workload: run.workload,
            parameters: run.parameters.clone(),
            sequence: Arc::clone(&sequence),
            host: HostShare::WHOLE,
            shared: run.workload.shared(&run.parameters),
            examples: None,
        })
    };
    let configs: Arc<[_]> = run.addresses.iter().map(config).collect();
    let clients = run.clients;
    let context = Arc::new(RunContext {
        run,
        gate: Arc::clone(gate),
        metrics: Arc::clone(metrics),
    });
    start_threads(clients, threads, gate, move || {
        let (configs, context) = (Arc::clone(&configs), Arc::clone(&context));
        move |client, executor: &mut Executor<ClientEnd>| {
            let config = &configs[client as usize % configs.len()];
            start_client(client, config, Duty::Run(Arc::clone(&context)), executor)
        }
    })
}

#[cfg(test)]
mod tests;
