//! Runs the clients of a script until the gate gives out no more tickets.
//!
//! [`dbduel_lua`] runs the script and asks for events; this module answers.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use dbduel_client::run::{Gate, RunMetrics};
use dbduel_client::{ClientWaits, Pacing as _, RunClock as _, RunEvents};
use dbduel_driver::executor::{Executor, Reactor, Token};
use dbduel_lua::{
    Context, Event, GRACE, Resume, RetryDeadline, ScriptClients, ScriptError, Session,
    gather_states,
};
use dbduel_record::seed::named_seed;

use super::{LoadThreads, start_threads};

/// Starts the threads with the clients on them; they wait until the gate opens.
///
/// # Errors
/// When a thread or an event loop cannot be created.
pub fn start(
    script: ScriptClients,
    clients: u32,
    threads: u32,
    gate: &Arc<Gate>,
    metrics: &Arc<RunMetrics>,
) -> io::Result<LoadThreads> {
    let run = Arc::new(ScriptRun {
        unready: AtomicU32::new(clients),
        gate: Arc::clone(gate),
        metrics: Arc::clone(metrics),
    });
    start_threads(clients, threads, gate, move || {
        let (context, run) = (Rc::new(script.context()), Arc::clone(&run));
        move |number, executor: &mut Executor<()>| {
            let (context, run) = (Rc::clone(&context), Arc::clone(&run));
            let reactor = Rc::clone(executor.reactor());
            executor.insert(|token| {
                Box::pin(async move {
                    let lived = live(Rc::clone(&context), number, &run, &reactor, token).await;
                    if let Err(error) = lived {
                        context.explain(&error);
                        run.gate.fail(error.line());
                    }
                })
            })
        }
    })
}

/// State of a run that its clients share.
struct ScriptRun {
    /// Clients of all threads that are not ready yet.
    unready: AtomicU32,
    gate: Arc<Gate>,
    metrics: Arc<RunMetrics>,
}

/// The life of one client.
async fn live(
    context: Rc<Context>,
    number: u32,
    run: &ScriptRun,
    reactor: &Rc<Reactor>,
    token: Token,
) -> Result<(), ScriptError> {
    let seed = named_seed(context.seed(), &format!("client/{number}"));
    let gate = Arc::clone(&run.gate);
    let retry_deadline = RetryDeadline::until(move || gate.over_at(), GRACE);
    let mut session = Session::new(
        context,
        number,
        Some(run.metrics.meter(number)),
        retry_deadline,
        Rc::clone(reactor),
        token,
    )?;
    session.seed(seed);
    session.load(&mut None).await?;
    let mut events = ScriptEvents {
        events: RunEvents::new(number, &run.gate, &run.metrics),
        waits: ClientWaits::new(reactor, token, false),
        due_ns: None,
        running_since_ns: None,
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
                // Before it says so the gate does not open, so no client is delayed.
                if run.unready.fetch_sub(1, Ordering::AcqRel) == 1 {
                    gather_states();
                }
                run.gate.ready();
                if !events.events.opened().await {
                    return Ok(());
                }
                true
            }
            Event::Next => events.next().await,
            Event::More => events.more(events.events.now_ns()).await,
            Event::Start => {
                events.start(events.events.now_ns());
                true
            }
            Event::Stop => {
                events.stop(events.events.now_ns());
                true
            }
            Event::Abandon => {
                events.abandon();
                true
            }
            // An event that meets ignored errors until the time is over is given up.
            Event::Restart(_) => !run.gate.is_over(Instant::now()),
            Event::Failed(error) => return Err(*error),
            Event::Finished | Event::Class(_) => true,
            Event::Done(_) => return Ok(()),
        };
        resume = Resume::with(flag);
    }
}

/// The events of one client, which the script begins and ends.
struct ScriptEvents<'a> {
    events: RunEvents<'a>,
    waits: ClientWaits<'a>,
    /// Time at which the next allowed event is due.
    due_ns: Option<u64>,
    /// Time at which the running event was due.
    running_since_ns: Option<u64>,
}

impl ScriptEvents<'_> {
    /// Ends the running event and begins the next one if there may be one, both at the same instant, so that a client
    /// that is never idle reads the clock once per event.
    async fn next(&mut self) -> bool {
        let now_ns = self.events.now_ns();
        self.stop(now_ns);
        let more = self.more(now_ns).await;
        if more {
            self.start(now_ns);
        }
        more
    }

    /// True when another event may begin; waits until it is due.
    async fn more(&mut self, mut now_ns: u64) -> bool {
        let ScriptEvents { events, waits, .. } = self;
        if waits.has_had_its_turn(events, now_ns) {
            now_ns = waits.end_turn(events).await;
        }
        self.due_ns = match events.take(now_ns) {
            Some(due_ns) if due_ns > now_ns => {
                let due_now = waits.until_due(events, due_ns).await;
                due_now.map(|_| due_ns)
            }
            due_ns => due_ns,
        };
        self.due_ns.is_some()
    }

    fn start(&mut self, now_ns: u64) {
        if self.running_since_ns.is_none() {
            self.events.begin();
        }
        self.running_since_ns = Some(self.due_ns.take().unwrap_or(now_ns));
    }

    fn stop(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.running_since_ns.take() {
            self.events.done(now_ns.saturating_sub(since_ns));
        }
    }

    /// Drops the running event without counting it; false when there is none.
    fn abandon(&mut self) -> bool {
        let is_running = self.running_since_ns.take().is_some();
        if is_running {
            self.events.give_up();
        }
        is_running
    }
}
