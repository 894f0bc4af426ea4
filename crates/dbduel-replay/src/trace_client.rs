//! Clients of a trace: each takes a session's part of the quantum, runs its transactions in their order, and takes the next part.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dbduel_client::tally::{Class, StatementDone};
use dbduel_client::{Begin, Client, ClientContext, Readiness};
use dbduel_driver::{ClientConnection, SessionStart, StatementError};

use super::client::{Replayer, SharedByClients};
use super::trace::{SessionPart, Trace};

/// Pause of a client whose next session has to wait for others before it asks again.
const WAIT: Duration = Duration::from_micros(50);

/// A trace, and how far the clients of one server are with its present quantum.
#[derive(Clone)]
pub(crate) struct TraceOfServer {
    trace: Arc<Trace>,
    running: Arc<Mutex<RunningQuantum>>,
}

impl TraceOfServer {
    /// A trace of which a server has run nothing; reads the capture into memory.
    pub(crate) fn new(trace: Arc<Trace>) -> Self {
        trace.mix().read_ahead();
        TraceOfServer {
            trace,
            running: Arc::default(),
        }
    }

    /// What is done of the present quantum.
    fn running(&self) -> MutexGuard<'_, RunningQuantum> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is done of a quantum.
#[derive(Debug, Default)]
pub(crate) struct RunningQuantum {
    /// `None` before the first one.
    number: Option<u32>,
    /// The next part to begin.
    next: usize,
    /// Parts that have ended.
    ended: Vec<bool>,
    /// The parts by the ends of their sessions.
    by_end: Vec<u32>,
    /// Parts at the front of `by_end` that have all ended.
    ended_first: usize,
}

/// What a client without a part does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextPart {
    /// It runs this one.
    Begin(usize),
    /// The next one waits for a session that ended before it.
    Wait,
    /// Every part has begun.
    None,
}

impl RunningQuantum {
    /// Begins a quantum, unless another client has begun it.
    pub(crate) fn begin(&mut self, number: u32, parts: &[SessionPart]) {
        if self.number == Some(number) {
            return;
        }
        self.number = Some(number);
        (self.next, self.ended_first) = (0, 0);
        self.ended.clear();
        self.ended.resize(parts.len(), false);
        self.by_end.clear();
        self.by_end.extend(0..parts.len() as u32);
        self.by_end
            .sort_unstable_by_key(|part| (parts[*part as usize].end, *part));
    }

    /// The next part of the quantum, which the caller runs.
    pub(crate) fn take(&mut self, parts: &[SessionPart]) -> NextPart {
        let Some(part) = parts.get(self.next) else {
            return NextPart::None;
        };
        let open = self.by_end.get(self.ended_first);
        let open = open.and_then(|part| parts.get(*part as usize));
        // All parts that ended before this one began are before it in their order, so each of them has begun.
        if open.is_some_and(|open| open.end <= part.begin) {
            return NextPart::Wait;
        }
        self.next += 1;
        NextPart::Begin(self.next - 1)
    }

    /// Ends a part.
    pub(crate) fn end(&mut self, part: usize) {
        if let Some(ended) = self.ended.get_mut(part) {
            *ended = true;
        }
        let is_ended = |part: &u32| self.ended.get(*part as usize) == Some(&true);
        let rest = self.by_end.iter().skip(self.ended_first);
        self.ended_first += rest.take_while(|part| is_ended(part)).count();
    }
}

/// Options of the clients of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceOptions {
    /// Lock timeout, seconds.
    pub(crate) lock_timeout_s: f64,
    /// Transactions are due at their captured times divided by this; `None` in a closed loop.
    pub(crate) speed: Option<f64>,
}

/// The transactions of one client.
pub(crate) struct TraceClient {
    replayer: Replayer,
    of_server: TraceOfServer,
    speed: Option<f64>,
    quantum: u32,
    /// Its part of the quantum, and the next transaction of it.
    part: Option<(usize, u32)>,
}

impl Client for TraceClient {
    type Options = TraceOptions;

    const SESSION_START: SessionStart = SessionStart::Captured;

    async fn open(
        conn: &mut ClientConnection,
        options: &TraceOptions,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let of_server: TraceOfServer = SharedByClients::of(context)?;
        let mix = Arc::clone(of_server.trace.mix());
        Ok(TraceClient {
            replayer: Replayer::open(mix, options.lock_timeout_s, context, conn).await?,
            of_server,
            speed: options.speed,
            quantum: 0,
            part: None,
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.quantum = begin.quantum.unwrap_or(0);
        self.part = None;
        let parts = self.of_server.trace.parts(self.quantum);
        self.of_server.running().begin(self.quantum, parts);
    }

    fn readiness(&mut self) -> Readiness {
        let parts = self.of_server.trace.parts(self.quantum);
        let is_over = |(part, next): (usize, u32)| {
            let part = parts.get(part);
            part.is_none_or(|part| next >= part.transactions.end)
        };
        if let Some((_, next)) = self.part.filter(|part| !is_over(*part)) {
            return self.due(next);
        }
        let next = {
            let mut running = self.of_server.running();
            if let Some((part, _)) = self.part.take() {
                running.end(part);
            }
            running.take(parts)
        };
        match next {
            NextPart::Begin(place) => {
                let first = parts.get(place).map_or(0, |part| part.transactions.start);
                self.part = Some((place, first));
                self.due(first)
            }
            NextPart::Wait => Readiness::AskAgain(WAIT),
            NextPart::None => Readiness::Finished,
        }
    }

    fn draw(&mut self) -> Class {
        let next = self.part.as_mut().map_or(0, |(_, next)| {
            *next += 1;
            *next - 1
        });
        self.replayer.choose(next..next + 1)
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

impl TraceClient {
    /// When a transaction may begin.
    fn due(&self, transaction: u32) -> Readiness {
        match self.speed {
            None => Readiness::READY,
            Some(speed) => {
                let trace = &self.of_server.trace;
                let captured_ns = trace.since_begin_ns(self.quantum, transaction);
                Readiness::Due(Duration::from_nanos((captured_ns as f64 / speed) as u64))
            }
        }
    }
}
