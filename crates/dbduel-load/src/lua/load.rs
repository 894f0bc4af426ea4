//! Many clients of a script under load, on a few threads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dbduel_record::latency::new_histogram;
use dbduel_record::plan::Arrival;
use dbduel_record::seed::named_seed;

use super::counts::{Counts, Meter};
use super::error::ScriptError;
use super::host::Shareable;
use super::pace::{Course, Latencies, Pace, ThreadPart};
use super::session::{Event, Resume, Session};
use super::state::Context;
use crate::executor::policy::become_load_thread;
use crate::executor::{Bell, Executor, Reactor, Token, turn};
use crate::schedule::{Schedule, Share};

/// How much load, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSettings {
    /// Clients; sysbench calls them threads.
    pub clients: u32,
    /// Threads of the system that carry them.
    pub threads: u32,
    /// Events of all clients together; 0 for no limit.
    pub events: u64,
    /// No new events after so long; none for no limit.
    pub time: Option<Duration>,
    /// Comes before `time`; its events are not limited in number. What it counts is in the counts all the same, see
    /// [`Counts::since`].
    pub warmup: Duration,
    /// Events per second of all clients together, at exponential distances; none for as many as they can.
    pub rate: Option<f64>,
    /// Time for all clients to be initialised.
    pub init_timeout: Duration,
}

/// A load that is ready or running. Dropping it stops it without waiting for events that are in flight.
pub struct Load {
    course: Arc<Course>,
    meters: Vec<Arc<Meter>>,
    latencies: Vec<Arc<Mutex<Latencies>>>,
    threads: Vec<JoinHandle<()>>,
    bells: Vec<Bell>,
    ended: Receiver<Result<(), ScriptError>>,
    running: usize,
    error: Option<ScriptError>,
}

/// What a load thread says.
enum Said {
    /// It has an event loop.
    Bell(Bell),
    /// All its clients wait for the beginning, or one of them failed.
    Ready(Result<(), ()>),
}

impl Load {
    /// Starts the threads and initialises the clients.
    pub(super) fn start(context: &Shareable, settings: LoadSettings) -> Result<Self, ScriptError> {
        let course = Arc::new(Course::new(settings));
        let threads = settings.threads.clamp(1, settings.clients.max(1));
        let meters: Vec<Arc<Meter>> = (0..settings.clients).map(|_| Arc::default()).collect();
        let (ended_sender, ended) = channel();
        let (said_sender, said) = channel();
        let mut load = Load {
            course: Arc::clone(&course),
            meters,
            latencies: Vec::new(),
            threads: Vec::new(),
            bells: Vec::new(),
            ended,
            running: threads as usize,
            error: None,
        };
        for thread in 0..threads {
            let latencies = Arc::new(Mutex::new(Latencies {
                histogram: new_histogram(),
                ns_sum: 0,
            }));
            load.latencies.push(Arc::clone(&latencies));
            let clients = (thread..settings.clients).step_by(threads as usize);
            let clients = clients
                .map(|client| (client, Arc::clone(&load.meters[client as usize])))
                .collect();
            let work = Work {
                share: Share {
                    thread,
                    threads,
                    clients: settings.clients,
                },
                clients,
                latencies,
                context: context.clone(),
                course: Arc::clone(&course),
                said: said_sender.clone(),
            };
            let ended = ended_sender.clone();
            let handle = std::thread::Builder::new()
                .name(format!("script-{thread}"))
                .spawn(move || {
                    let outcome =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.run()));
                    let broke = |_| {
                        Err(std::io::Error::other(
                            "a load thread panicked; this is a fault of dbduel",
                        )
                        .into())
                    };
                    // Nobody listens when the load was dropped.
                    let _ = ended.send(outcome.unwrap_or_else(broke));
                })?;
            load.threads.push(handle);
        }
        drop(said_sender);
        load.wait_until_ready(&said)?;
        Ok(load)
    }

    fn wait_until_ready(&mut self, said: &Receiver<Said>) -> Result<(), ScriptError> {
        let within = self.course.settings.init_timeout;
        let deadline = Instant::now() + within;
        let mut waiting = self.running;
        while waiting > 0 {
            match said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Said::Bell(bell)) => self.bells.push(bell),
                Ok(Said::Ready(Ok(()))) => waiting -= 1,
                Err(RecvTimeoutError::Timeout) => return Err(ScriptError::NotReady { within }),
                Ok(Said::Ready(Err(()))) | Err(RecvTimeoutError::Disconnected) => {
                    self.stop();
                    self.wait(Instant::now() + within);
                    let gone = || std::io::Error::other("a load thread ended early").into();
                    return Err(self.error.take().unwrap_or_else(gone));
                }
            }
        }
        Ok(())
    }

    /// Lets all clients begin at once.
    pub fn begin(&self) {
        let _ = self.course.start.set(Instant::now());
        self.ring();
    }

    fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }

    /// Waits until all clients are done or `until`; true when they are done.
    pub fn wait(&mut self, until: Instant) -> bool {
        while self.running > 0 {
            match self
                .ended
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(outcome) => {
                    self.running -= 1;
                    if let Err(error) = outcome {
                        // The others end after their current event.
                        self.stop();
                        self.error.get_or_insert(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.running = 0,
            }
        }
        true
    }

    /// No client begins another event.
    pub fn stop(&self) {
        self.course.stopped.store(true, Relaxed);
        // Those that wait for the beginning learn that it will not come.
        self.ring();
    }

    /// What was done since the beginning.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let elapsed = self
            .course
            .start
            .get()
            .map(Instant::elapsed)
            .unwrap_or_default();
        let mut counts = Counts::of(elapsed, self.meters.iter().map(AsRef::as_ref));
        for one in &self.latencies {
            let one = one.lock().unwrap_or_else(PoisonError::into_inner);
            counts.latency_ns_sum += one.ns_sum;
            counts
                .latencies
                .add(&one.histogram)
                .expect("all histograms of the project have the same bounds");
        }
        if let Some(rate) = self.course.settings.rate {
            let until = elapsed.as_secs_f64().min(self.course.end_ns() as f64 / 1e9);
            let begun = counts.events + u64::from(counts.concurrency);
            counts.queue_length = ((rate * until) as u64).saturating_sub(begun);
        }
        counts
    }

    /// Waits for all clients, and returns all that they did.
    ///
    /// # Errors
    /// What went wrong first.
    pub fn finish(mut self) -> Result<Counts, ScriptError> {
        while !self.wait(Instant::now() + Duration::from_secs(3600)) {}
        for thread in self.threads.drain(..) {
            // A panic has been reported.
            let _ = thread.join();
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.counts()),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What one thread has to do.
struct Work {
    share: Share,
    clients: Vec<(u32, Arc<Meter>)>,
    latencies: Arc<Mutex<Latencies>>,
    context: Shareable,
    course: Arc<Course>,
    said: Sender<Said>,
}

impl Work {
    fn run(self) -> Result<(), ScriptError> {
        let mut executor: Executor<Result<(), ScriptError>> = Executor::new()?;
        // Without the policy the load still runs, only dearer.
        let _ = become_load_thread();
        let _ = self.said.send(Said::Bell(executor.reactor().bell()));
        let part = Rc::new(ThreadPart {
            latencies: Arc::clone(&self.latencies),
            schedule: RefCell::new(None),
        });
        let context = Rc::new(self.context.context());
        let ready = Rc::new(std::cell::Cell::new(0_usize));
        let mut tokens = Vec::new();
        for (number, meter) in &self.clients {
            let reactor = Rc::clone(executor.reactor());
            let (context, part, ready) = (Rc::clone(&context), Rc::clone(&part), Rc::clone(&ready));
            let (course, meter, number) = (Arc::clone(&self.course), Arc::clone(meter), *number);
            tokens.push(executor.insert(|token| {
                Box::pin(async move {
                    let pace = Pace {
                        course,
                        part,
                        meter,
                        reactor,
                        token,
                        due_ns: None,
                        running_since_ns: None,
                    };
                    live(context, number, pace, &ready).await
                })
            }));
        }
        let outcome = self.drive(&mut executor, &tokens, &part, &ready);
        if outcome.is_err() {
            let _ = self.said.send(Said::Ready(Err(())));
        }
        outcome
    }

    /// Runs the clients to their ends; the first error ends all, after the events that are in flight.
    fn drive(
        &self,
        executor: &mut Executor<Result<(), ScriptError>>,
        tokens: &[Token],
        part: &ThreadPart,
        ready: &std::cell::Cell<usize>,
    ) -> Result<(), ScriptError> {
        let mut ended = Vec::new();
        let (mut living, mut error, mut said_ready) = (tokens.len(), None, false);
        poll_all(executor, tokens, &mut ended);
        while living > 0 {
            for (_, outcome) in ended.drain(..) {
                living -= 1;
                if let Err(why) = outcome {
                    self.course.stopped.store(true, Relaxed);
                    error.get_or_insert(why);
                }
            }
            if error.is_some() && self.course.start.get().is_none() {
                // Nothing is in flight that anybody waits for.
                break;
            }
            if !said_ready && ready.get() == tokens.len() {
                said_ready = true;
                let _ = self.said.send(Said::Ready(Ok(())));
            }
            if living == 0 {
                break;
            }
            if executor.turn(&mut ended)?.rung {
                self.make_schedule(part);
                poll_all(executor, tokens, &mut ended);
            }
        }
        error.map_or(Ok(()), Err)
    }

    fn make_schedule(&self, part: &ThreadPart) {
        let mut schedule = part.schedule.borrow_mut();
        if let (Some(per_second), None) = (self.course.settings.rate, &*schedule) {
            let arrival = Arrival::Poisson { per_second };
            let seed = self.context.seed();
            *schedule = Some(Schedule::new(
                arrival,
                self.share,
                self.course.end_ns(),
                seed,
            ));
        }
    }
}

fn poll_all(
    executor: &mut Executor<Result<(), ScriptError>>,
    tokens: &[Token],
    ended: &mut Vec<(Token, Result<(), ScriptError>)>,
) {
    for &token in tokens {
        if let Some(outcome) = executor.poll(token) {
            ended.push((token, outcome));
        }
    }
}

/// The life of one client.
async fn live(
    context: Rc<Context>,
    number: u32,
    mut pace: Pace,
    ready: &std::cell::Cell<usize>,
) -> Result<(), ScriptError> {
    let seed = named_seed(context.settings.seed, &format!("client/{number}"));
    let (meter, reactor): (Arc<Meter>, Rc<Reactor>) =
        (Arc::clone(&pace.meter), Rc::clone(&pace.reactor));
    let mut session = Session::new(context, number, Arc::clone(&meter), reactor, pace.token)?;
    session.seed(seed);
    session.load(&mut None).await?;
    let mut resume = session.begin(number)?;
    loop {
        let flag = match session.go_on(resume, &mut None).await? {
            Event::Ready => {
                ready.set(ready.get() + 1);
                while pace.course.start.get().is_none() {
                    if pace.course.stopped.load(Relaxed) {
                        return Ok(());
                    }
                    turn().await;
                }
                meter.working.store(true, Relaxed);
                true
            }
            Event::Next => pace.next().await,
            Event::More => pace.more().await,
            Event::Start => {
                pace.start();
                true
            }
            Event::Stop => {
                pace.stop();
                true
            }
            Event::Abandon => {
                pace.abandon();
                true
            }
            Event::Restart(_) => true,
            Event::Failed(error) => {
                meter.working.store(false, Relaxed);
                return Err(*error);
            }
            Event::Finished => {
                meter.working.store(false, Relaxed);
                true
            }
            Event::Done(_) => return Ok(()),
        };
        resume = Resume::with(flag);
    }
}
