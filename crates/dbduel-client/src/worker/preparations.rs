//! Number of statements that a client prepares, before there is a server with its tables.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use dbduel_driver::executor::Executor;
use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_driver::{Credentials, Dialect, LostError, Tls, TlsMode};
use dbduel_record::plan::Parameters;

use super::{Client, ClientConfig, ClientContext, ClientEnd, Clients, Duty, start_client};
use crate::share::HostShare;

/// Longest time to open the client.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The count of a client that is opened to be counted.
#[derive(Debug)]
pub struct PreparationCount {
    count: Cell<Option<u64>>,
    /// When the client is given up.
    pub(super) until: Instant,
}

/// Number of statements that one client of the workload prepares with a server of MySQL's dialect before its first transaction.
/// It is opened on a mock server that listens on `socket`, which must not exist. `None` where it cannot be opened there: it needs
/// rows, or is a script that needs more than a confined one gets.
///
/// # Errors
/// When the socket or an event loop cannot be made.
pub fn preparations(
    workload: &'static dyn Clients,
    parameters: &Parameters,
    socket: &Path,
) -> io::Result<Option<u64>> {
    let server = MockServer::start(socket, Role::Null)?;
    let config = Arc::new(ClientConfig {
        dialect: Dialect::MySql,
        address: server.address(),
        credentials: Credentials::default(),
        tls: Arc::new(Tls::new(TlsMode::Off)),
        database: "none".to_owned(),
        workload,
        parameters: parameters.clone(),
        sequence: Arc::new(AtomicU32::new(0)),
        host: HostShare::WHOLE,
        shared: workload.shared(parameters),
        examples: None,
    });
    let until = Instant::now() + TIMEOUT;
    let counted = Rc::new(PreparationCount {
        count: Cell::new(None),
        until,
    });
    let mut executor: Executor<ClientEnd> = Executor::new()?;
    let duty = Duty::Count(Rc::clone(&counted));
    let client = start_client(0, &config, duty, &mut executor);
    executor.reactor().wake_owner_at(Some(until));
    let mut ended = Vec::new();
    executor.poll_all(&[client], &mut ended);
    while ended.is_empty() && Instant::now() < until {
        executor.turn(&mut ended)?;
    }
    Ok(counted.count.get())
}

impl PreparationCount {
    /// Opens the client and counts.
    pub(super) async fn take<C: Client>(
        &self,
        context: &ClientContext,
        options: &C::Options,
    ) -> ClientEnd {
        let count = match context.open::<C>(options).await {
            Ok((conn, _)) => conn.preparations(),
            Err(LostError::TooManyPrepared { per_client, .. }) => per_client,
            Err(error) => return Err(error),
        };
        self.count.set(Some(count));
        Ok(())
    }
}
