//! Runs the clients of a script until the gate gives out no more tickets.
//!
//! What the script does between two questions about events is in [`crate::lua`]; here are the answers.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dbduel_record::seed::named_seed;

use super::load_threads::{self, Clients, LoadThreads};
use crate::executor::{Executor, Reactor, Token};
use crate::lua::{
    Context, Event, Resume, RetryDeadline, ScriptClients, ScriptError, Session, gather_states,
};
use crate::run::{Counts, Entry, Gate, RunMetrics};

/// What a connection may take that is being made when the run is over: far more than one to a server that is well, so that
/// the event which needs it ends and counts.
const GRACE: Duration = Duration::from_secs(1);

/// Starts so many threads with so many clients on them; they wait until the gate opens.
///
/// # Errors
/// When the system gives no thread or no event loop.
pub fn start(
    script: ScriptClients,
    clients: u32,
    threads: u32,
    gate: &Arc<Gate>,
    metrics: &Arc<RunMetrics>,
) -> io::Result<LoadThreads> {
    let threads = threads.clamp(1, clients.max(1));
    let (own_gate, metrics) = (Arc::clone(gate), Arc::clone(metrics));
    let unready = Arc::new(AtomicU32::new(clients));
    load_threads::start(threads, gate, move |thread| OneThread {
        context: Rc::new(script.context()),
        unready: Arc::clone(&unready),
        numbers: (thread..clients).step_by(threads as usize).collect(),
        gate: Arc::clone(&own_gate),
        metrics: Arc::clone(&metrics),
    })
}

/// The clients of one thread.
struct OneThread {
    context: Rc<Context>,
    /// Clients of all threads that have not said yet that they are ready.
    unready: Arc<AtomicU32>,
    numbers: Vec<u32>,
    gate: Arc<Gate>,
    metrics: Arc<RunMetrics>,
}

impl Clients for OneThread {
    type End = Result<(), ScriptError>;

    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn start(&mut self, executor: &mut Executor<Self::End>) -> Vec<Token> {
        let start = |&number: &u32| {
            let unready = Arc::clone(&self.unready);
            let (context, reactor) = (Rc::clone(&self.context), Rc::clone(executor.reactor()));
            let (gate, metrics) = (Arc::clone(&self.gate), Arc::clone(&self.metrics));
            executor.insert(|token| {
                Box::pin(async move {
                    let place = Place {
                        number,
                        unready: &unready,
                        gate: &gate,
                        metrics: &metrics,
                        reactor: &reactor,
                        token,
                    };
                    live(context, place).await
                })
            })
        };
        self.numbers.iter().map(start).collect()
    }

    fn ended(
        &mut self,
        _token: Token,
        end: Self::End,
        _executor: &mut Executor<Self::End>,
    ) -> Option<Token> {
        if let Err(error) = end {
            self.context.explain(&error);
            self.gate.fail(error.line());
        }
        None
    }
}

/// Where one client is.
struct Place<'a> {
    number: u32,
    unready: &'a AtomicU32,
    gate: &'a Arc<Gate>,
    metrics: &'a RunMetrics,
    reactor: &'a Rc<Reactor>,
    token: Token,
}

/// The life of one client.
async fn live(context: Rc<Context>, place: Place<'_>) -> Result<(), ScriptError> {
    let number = place.number;
    let seed = named_seed(context.seed(), &format!("client/{number}"));
    let meter = place.metrics.meter(number);
    let gate = Arc::clone(place.gate);
    let retry_deadline = RetryDeadline::until(move || gate.over_at(), GRACE);
    let reactor = Rc::clone(place.reactor);
    let mut session = Session::new(
        context,
        number,
        Some(meter),
        retry_deadline,
        reactor,
        place.token,
    )?;
    session.seed(seed);
    session.load(&mut None).await?;
    let mut events = Events {
        number,
        metrics: place.metrics,
        entry: Entry::new(place.gate, place.reactor, place.token),
        due: None,
        running_since: None,
    };
    let mut resume = session.begin(number)?;
    loop {
        let event = match session.go_on(resume, &mut None).await {
            // As after an ignored error, the event is given up.
            Err(ScriptError::Over { .. }) if events.abandon() => return Ok(()),
            went_on => went_on?,
        };
        let flag = match event {
            Event::Ready => {
                // Before it says so the gate does not open, so nobody is held up.
                if place.unready.fetch_sub(1, Ordering::AcqRel) == 1 {
                    gather_states();
                }
                place.gate.ready();
                if !events.entry.opened().await {
                    return Ok(());
                }
                true
            }
            Event::Next => events.next().await,
            Event::More => events.more(Instant::now()).await,
            Event::Start => {
                events.start(Instant::now());
                true
            }
            Event::Stop => {
                events.stop(Instant::now());
                true
            }
            Event::Abandon => {
                events.abandon();
                true
            }
            // An event that meets ignored errors until the time is over is given up.
            Event::Restart(_) => !place.gate.is_over(Instant::now()),
            Event::Failed(error) => return Err(*error),
            Event::Finished | Event::Class(_) => true,
            Event::Done(_) => return Ok(()),
        };
        resume = Resume::with(flag);
    }
}

/// The events of one client: when the next may begin, and how long the last one took.
struct Events<'a> {
    number: u32,
    metrics: &'a RunMetrics,
    entry: Entry<'a>,
    /// When the event that is allowed next is due.
    due: Option<Instant>,
    /// When the running event was due.
    running_since: Option<Instant>,
}

impl Events<'_> {
    /// The running event is done, and the next one begins if there may be one. Both at the same instant, so a client
    /// that is never idle reads the clock once per event.
    async fn next(&mut self) -> bool {
        let now = Instant::now();
        self.stop(now);
        let more = self.more(now).await;
        if more {
            self.start(now);
        }
        more
    }

    /// May there be another event? Waits until it is due.
    async fn more(&mut self, mut now: Instant) -> bool {
        self.due = self.entry.next_due(&mut now).await;
        self.due.is_some()
    }

    fn start(&mut self, now: Instant) {
        if self.running_since.is_none() {
            self.entry.gate().begin();
        }
        self.running_since = Some(self.due.take().unwrap_or(now));
    }

    fn stop(&mut self, now: Instant) {
        let Some(since) = self.running_since.take() else {
            return;
        };
        self.entry.gate().done();
        let latency = now.saturating_duration_since(since).as_nanos();
        let latency = u64::try_from(latency).unwrap_or(u64::MAX);
        // Its statements have been counted one by one.
        self.metrics.event(self.number, Counts::NONE, latency);
    }

    /// The running event is not counted; false when there is none.
    fn abandon(&mut self) -> bool {
        let is_running = self.running_since.take().is_some();
        if is_running {
            self.entry.gate().done();
        }
        is_running
    }
}
