//! One client in a run: events until the gate issues no more tickets, on one connection after another.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::executor::sleep_until;
use dbduel_driver::statement_watch::StatementWatch;
use dbduel_driver::{
    ClientConnection, Credentials, Dialect, Effects, LostError, ServerError, StatementError, Tls,
    unless_over, within,
};
use dbduel_record::plan::Parameters;
use dbduel_record::seed::named_seed;

use super::engine::{Recording, work};
use super::pacing::ClientWaits;
use super::run_events::RunEvents;
use super::{Begin, Client, ClientConfig, ClientContext, Clients, Trace};
use crate::run::{Counts, Gate, IgnoredErrors, RunMetrics, advice};
use crate::tally::{Class, Ended, Outcome};

/// Pause between two attempts to reconnect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);

/// Configuration of the clients of a run. No debug output, because it holds a password.
pub struct WorkloadRun {
    /// The workload.
    pub workload: &'static dyn Clients,
    /// Its resolved parameters.
    pub parameters: Parameters,
    /// The dialect.
    pub dialect: Dialect,
    /// Addresses of the servers; client n connects to address n modulo their number.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    /// TLS mode and certificates.
    pub tls: Arc<Tls>,
    /// Database with the tables.
    pub database: String,
    /// Connections.
    pub clients: u32,
    /// Errors after which an event is retried; any other ends the run.
    pub ignored: IgnoredErrors,
    /// Events of a client after which it reconnects; 0 for never.
    pub reconnect_every: u64,
    /// Longest time to reconnect.
    pub reconnecting: Duration,
    /// Ends statements that a server will never answer.
    pub statement_watch: Option<StatementWatch>,
    /// Root of the random streams.
    pub seed: u64,
}

/// A run from its clients' view.
pub struct RunContext {
    /// Workload and server.
    pub run: WorkloadRun,
    /// Gate of the events.
    pub gate: Arc<Gate>,
    /// Metrics.
    pub metrics: Arc<RunMetrics>,
}

/// One client from its first connection to the end of the run. The gate gets the reason when it cannot continue.
pub(super) async fn live<C: Client>(
    context: &RunContext,
    client_context: &ClientContext,
    options: &C::Options,
) {
    let mut client = RunClient {
        run: &context.run,
        client_context,
        events: RunEvents::new(client_context.client, &context.gate, &context.metrics),
        events_of_connection: Cell::new(0),
        connections: 0,
        lost_at: None,
    };
    while match client.live_on_one_connection::<C>(options).await {
        Ok(connects_again) => connects_again,
        Err(lost) => client.returns_after(&lost),
    } {}
}

/// One client, over all its connections.
struct RunClient<'a> {
    run: &'a WorkloadRun,
    client_context: &'a ClientContext,
    events: RunEvents<'a>,
    events_of_connection: Cell<u64>,
    /// Number of connections so far. Each has its own random stream, so that the client does not draw the same values
    /// again.
    connections: u64,
    /// When the connection was lost; `None` while there is one.
    lost_at: Option<Instant>,
}

impl RunClient<'_> {
    /// Connects and runs until the end of the run, or until the connection has had its number of events; true in the
    /// latter case.
    async fn live_on_one_connection<C: Client>(
        &mut self,
        options: &C::Options,
    ) -> Result<bool, LostError> {
        let Some((mut conn, mut client)) = self.open::<C>(options).await? else {
            return Ok(false);
        };
        let ClientContext {
            client: number,
            token,
            reactor,
            config,
            ..
        } = self.client_context;
        if let Some(watch) = &self.run.statement_watch {
            conn.watch(watch, &config.address);
        }
        if self.lost_at.take().is_some() {
            self.events.count(RECONNECTED);
        }
        if self.connections == 0 {
            self.events.gate().ready();
        }
        self.connections += 1;
        let stream = format!("client/{number}/{}", self.connections);
        client.begin(Begin {
            quantum: None,
            seed: named_seed(self.run.seed, &stream),
            slice_seed: self.run.seed,
            client: *number,
            clients: self.run.clients,
        });
        if !self.events.opened().await {
            return Ok(false);
        }
        self.events_of_connection.set(0);
        let waits = ClientWaits::new(reactor, *token, config.dialect.is_in_process());
        work(&*self, waits, &mut conn, &mut client).await?;
        if self.has_had_enough() {
            self.events.count(RECONNECTED);
            return Ok(true);
        }
        let before = conn.effects();
        match client.finish(&mut conn).await {
            Ok(()) => {}
            Err(StatementError::Lost(lost)) => return Err(lost),
            Err(StatementError::Server(error)) => {
                self.events.gate().fail(refusal(self.run.dialect, &error));
            }
        }
        self.attempted(conn.effects() - before);
        Ok(false)
    }

    /// True when the connection has had its number of events, so that the client must reconnect.
    fn has_had_enough(&self) -> bool {
        let most = self.run.reconnect_every;
        most > 0 && self.events_of_connection.get() >= most
    }

    /// Connects and prepares the client's statements. A reconnect has a deadline, and returns `None` when the run ends
    /// before; for first connections the caller that waits for the clients to be ready has a deadline.
    async fn open<C: Client>(
        &self,
        options: &C::Options,
    ) -> Result<Option<(ClientConnection, C)>, LostError> {
        let ClientContext { reactor, token, .. } = self.client_context;
        if self.lost_at.is_some() {
            sleep_until(reactor, *token, Instant::now() + RECONNECT_PAUSE).await;
        }
        let opening = self.client_context.open::<C>(options);
        if self.connections == 0 {
            return opening.await.map(Some);
        }
        let since = self.lost_at.unwrap_or_else(Instant::now);
        let opening = within(reactor, *token, since, self.run.reconnecting, opening);
        let over_at = || self.events.gate().over_at();
        let opened = unless_over(reactor, *token, over_at, opening).await;
        opened.transpose()
    }

    /// Whether the client reconnects after its connection was lost. If not, the run has failed, unless it is over:
    /// then the event is abandoned, as after every ignored error.
    fn returns_after(&mut self, why: &LostError) -> bool {
        let was_made = self.connections > 0;
        let may_return = was_made && self.run.ignored.reconnects() && why.may_pass();
        let now = Instant::now();
        let lost_at = *self.lost_at.get_or_insert(now);
        let gate = self.events.gate();
        if may_return && gate.is_over(now) {
            return false;
        }
        if may_return && now - lost_at < self.run.reconnecting {
            return true;
        }
        gate.fail(explain(
            why,
            self.run,
            &self.client_context.config,
            was_made,
        ));
        false
    }
}

impl<'a> Recording for RunClient<'a> {
    type Pacing = RunEvents<'a>;

    #[inline]
    fn pacing(&self) -> &RunEvents<'a> {
        &self.events
    }

    #[inline]
    fn began(&self, _class: Class, _now_ns: u64) {
        self.events.begin();
    }

    #[inline]
    fn attempted(&self, effects: Effects) {
        let Effects {
            reads,
            writes,
            others,
        } = effects;
        self.events.count(Counts {
            reads,
            writes,
            others,
            ..Counts::NONE
        });
    }

    /// An event is retried after ignored errors; any other ends the run.
    fn erred(&self, error: &ServerError) -> bool {
        let is_ignored = self.run.ignored.contains(error.code);
        match is_ignored {
            true => self.events.count(IGNORED),
            false => self.events.gate().fail(refusal(self.run.dialect, error)),
        }
        is_ignored
    }

    /// Retries until the time is over.
    fn tries_again(&self, _error: &ServerError, _retries: u64) -> bool {
        !self.events.gate().is_over(Instant::now())
    }

    fn interrupted(&self, due_ns: u64) {
        self.events.interrupt(due_ns);
    }

    #[inline]
    fn ended(&self, _sent_ns: u64, ended: Ended, _trace: Trace) -> bool {
        match ended.outcome {
            Outcome::Ok => self.events.done(ended.latency_ns),
            Outcome::Failed => {
                self.events.give_up();
                return true;
            }
        }
        self.events_of_connection
            .set(self.events_of_connection.get() + 1);
        !self.has_had_enough()
    }
}

const RECONNECTED: Counts = Counts {
    reconnects: 1,
    ..Counts::NONE
};

const IGNORED: Counts = Counts {
    errors: 1,
    ..Counts::NONE
};

/// Error in sysbench's words, which have no number for PostgreSQL's errors.
fn refusal(dialect: Dialect, error: &ServerError) -> String {
    let (code, ignored) = match dialect {
        Dialect::MySql | Dialect::Sqlite => (error.code, "--mysql-ignore-errors"),
        Dialect::PostgreSql => (0, "40P01, 23505 and 40001, after which an event is retried"),
    };
    let (sqlstate, message) = (error.sqlstate(), &error.message);
    format!("SQL error, errno = {code}, state = '{sqlstate}': {message}; it is not among {ignored}")
}

/// A connection error in words that begin as sysbench's do; `was_made` tells a lost connection from one that could not
/// be made.
fn explain(why: &LostError, run: &WorkloadRun, config: &ClientConfig, was_made: bool) -> String {
    let product = config.dialect.product();
    let place = match &config.address {
        Address::Unix { path } => format!("on socket '{}'", path.display()),
        Address::Tcp { host, port } => format!("on host '{host}', port {port}"),
        Address::File { path, .. } => format!("in file '{}'", path.display()),
    };
    match why {
        LostError::Prepare(_)
        | LostError::Session(_)
        | LostError::Data { .. }
        | LostError::Values(_) => why.to_string(),
        LostError::TooManyPrepared { error, per_client } => {
            let needed = format!("up to {}", per_client * u64::from(run.clients));
            let advice = advice::on_prepared_statements(needed);
            format!("the workload's statements cannot be prepared: {error}; {advice}")
        }
        _ if was_made => format!("lost connection to {product} server {place}: {why}"),
        _ => {
            let advice = match why {
                LostError::Refused(refusal) => {
                    advice::on_login(config.dialect, config.tls.mode(), refusal)
                }
                _ => "",
            };
            format!("unable to connect to {product} server {place}, aborting: {why}{advice}")
        }
    }
}
