//! Clients of a mix: each draws transactions, or sessions, and runs them.

use std::sync::Arc;

use dbduel_client::tally::{Class, StatementDone};
use dbduel_client::{Begin, Client, ClientContext};
use dbduel_driver::{ClientConnection, SessionStart, StatementError};

use super::client::{Replayer, SharedByClients};
use super::draws::ServerDraws;
use super::mix::Mix;

/// A mix, and how far the clients of one server are in its order.
#[derive(Clone)]
pub(crate) struct MixOfServer {
    mix: Arc<Mix>,
    draws: Arc<ServerDraws>,
}

impl MixOfServer {
    /// A mix of which a server has drawn nothing; reads the capture into memory.
    pub(crate) fn new(mix: Arc<Mix>) -> Self {
        mix.read_ahead();
        MixOfServer {
            mix,
            draws: Arc::default(),
        }
    }
}

/// The transactions of one client.
pub(crate) struct MixClient {
    replayer: Replayer,
    of_server: MixOfServer,
}

impl Client for MixClient {
    /// The lock timeout, seconds.
    type Options = f64;

    const SESSION_START: SessionStart = SessionStart::Captured;

    async fn open(
        conn: &mut ClientConnection,
        lock_timeout_s: &f64,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let of_server: MixOfServer = SharedByClients::of(context)?;
        let mix = Arc::clone(&of_server.mix);
        Ok(MixClient {
            replayer: Replayer::open(mix, *lock_timeout_s, context, conn).await?,
            of_server,
        })
    }

    fn begin(&mut self, begin: Begin) {
        let MixOfServer { mix, draws } = &self.of_server;
        draws.begin(mix.draws(), begin.slice_seed);
    }

    fn draw(&mut self) -> Class {
        let MixOfServer { mix, draws } = &self.of_server;
        self.replayer.choose(mix.drawn(draws.next(mix.draws())))
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        self.replayer.run_chosen(conn).await
    }

    fn statements(&self) -> &[StatementDone] {
        self.replayer.statements()
    }
}
