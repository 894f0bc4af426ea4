//! The link to load hosts and their agents in a simulated network, which loses, repeats, delays and reorders frames, is cut
//! for a time, and whose agents are restarted, all drawn from one seed.
//!
//! Simulated are the network, the load processes and the contest that gives the orders. The protocol of lines, the link of
//! the contest and the decisions of the agents are the real ones. A failure is replayed by its seed:
//! `DBDUEL_SIMULATE_FROM=<seed> DBDUEL_SIMULATE=1 cargo test -p dbduel-fleet --lib simulation`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use dbduel_client::random::Random;
use dbduel_driver::session::Session;
use dbduel_lab::outage::{ABSENT_TIMEOUT, BREAK_MAX, CUT_OFF_TIMEOUT, SILENCE_MAX};
use dbduel_load::order::{Answer, ClassAnswer, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_machine::clock;
use dbduel_machine::clock::simulated::{self, SimulatedTime};
use dbduel_nats::{Exchange, LinkEnd, NatsError};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::{Host, ServerHost};
use dbduel_record::latency;
use dbduel_record::plan::Arrival;
use dbduel_record::rows::TransactionCounts;
use serde_json::json;

use super::desk::{Desk, Service, Work};
use super::load::{LinkConfig, permitted, serve};
use super::network::{HostLink, Network};
use super::{
    Asker, AttachReply, AttachRequest, BYE, Event, HostWork, PROTOCOL, attach_subject,
    clock_subject, session_subject,
};

const HOSTS: [&str; 2] = ["load1", "load2"];
/// Reading of this machine's monotonic clock when a simulation begins, nanoseconds.
const CLOCK_NS: u64 = 5_000_000_000_000;
/// Between two looks of an agent at its work.
const AGENT_POLL: Duration = Duration::from_millis(50);
/// Between two questions to one agent.
const QUESTION_GAP: Duration = Duration::from_millis(2);
/// Timeout of a question.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Most links of one contest.
const LINKS_MAX: usize = 12;
/// Largest share of frames and questions that are lost.
const LOST_SHARE_MAX: f64 = 0.2;

/// Something that happens at an instant.
#[derive(Debug)]
enum Happening {
    Frame {
        to_agent: bool,
        bytes: Vec<u8>,
    },
    /// An end of a link is due to send.
    Beat {
        at_agent: bool,
    },
    /// A slice advances in a load process.
    Slice {
        seed: u64,
        step: SliceStep,
    },
    /// An agent looks at its work.
    Poll,
    /// An agent is killed with its work, and started again.
    Restart {
        absent: Duration,
    },
    /// Another contest asks for the host.
    Stranger,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SliceStep {
    Begun,
    Ticked,
    Ended,
}

/// A slice of a load process.
#[derive(Debug)]
struct Running {
    seed: u64,
    measured_s: f64,
}

/// A load process with the agent's end of its link.
struct Process {
    session: String,
    end: LinkEnd,
    has_ended: bool,
    begin_ns: Option<u64>,
    running: Option<Running>,
}

/// A load process as its agent has it.
struct ProcessHandle {
    process: Rc<RefCell<Process>>,
    now: Rc<Cell<Instant>>,
}

impl Work for ProcessHandle {
    fn has_ended(&mut self) -> bool {
        self.process.borrow().has_ended
    }

    fn is_broken(&self) -> bool {
        self.process.borrow().end.is_broken()
    }

    fn silent_for(&self) -> Duration {
        self.process.borrow().end.silent_for(self.now.get())
    }

    fn end(self) {
        self.process.borrow_mut().has_ended = true;
    }
}

/// What an agent starts load processes with.
struct Offer {
    now: Rc<Cell<Instant>>,
    started: RefCell<Option<Rc<RefCell<Process>>>>,
}

impl Service<ProcessHandle> for Offer {
    fn fits(&self, work: &HostWork) -> bool {
        matches!(work, HostWork::Load { .. })
    }

    fn start(&self, request: &AttachRequest) -> Result<ProcessHandle> {
        let process = Rc::new(RefCell::new(Process {
            session: request.session.clone(),
            end: LinkEnd::new(self.now.get()),
            has_ended: false,
            begin_ns: None,
            running: None,
        }));
        self.started.replace(Some(Rc::clone(&process)));
        Ok(ProcessHandle {
            process,
            now: Rc::clone(&self.now),
        })
    }
}

struct Agent {
    desk: Desk<ProcessHandle>,
    process: Option<Rc<RefCell<Process>>>,
    absent_until: Option<Instant>,
    /// Its monotonic clock minus the one here, nanoseconds.
    offset_ns: i64,
    /// Transactions acknowledged to it.
    committed: u64,
    /// Those of them that it has reported.
    reported: u64,
}

/// The contest's end of a link.
struct NearEnd {
    host: usize,
    end: LinkEnd,
    on_line: Box<dyn FnMut(Vec<u8>)>,
}

/// Lines of one direction of a session.
#[derive(Default)]
struct Lines {
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
}

/// Properties of a network, drawn from the seed.
#[derive(Debug)]
struct Weather {
    lost_share: f64,
    repeated_share: f64,
    delay_s: f64,
    /// Additional delay of single frames, by which they overtake each other.
    jitter_s: f64,
    /// Breaks, of one host or of all.
    cuts: Vec<(Range<Instant>, Option<usize>)>,
    restarts: usize,
}

struct World {
    began: Instant,
    now: Rc<Cell<Instant>>,
    random: Random,
    weather: Weather,
    agenda: BTreeMap<(Instant, u64), (usize, String, Happening)>,
    entries: u64,
    agents: Vec<Agent>,
    near: BTreeMap<String, NearEnd>,
    lines: BTreeMap<(String, bool), Lines>,
    /// By the seed of a slice: transactions counted on each host.
    counted: BTreeMap<u64, BTreeMap<usize, u64>>,
    /// By the seed of a slice: when each host began it.
    begun: BTreeMap<u64, BTreeMap<usize, Instant>>,
    strangers_refused: usize,
    breaches: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let began = clock::now();
        let now = Rc::new(Cell::new(began));
        let weather = Weather::draw(&mut random, began);
        let agents = HOSTS.iter().map(|name| Agent {
            desk: Desk::new(ServerHost {
                name: (*name).to_owned(),
                dbduel: String::new(),
                facts: Host::default(),
            }),
            process: None,
            absent_until: None,
            offset_ns: random.below(2_000_000_000_000).cast_signed() - 1_000_000_000_000,
            committed: 0,
            reported: 0,
        });
        let agents = agents.collect();
        let mut world = Self {
            began,
            now,
            weather,
            agenda: BTreeMap::new(),
            entries: 0,
            agents,
            near: BTreeMap::new(),
            lines: BTreeMap::new(),
            counted: BTreeMap::new(),
            begun: BTreeMap::new(),
            strangers_refused: 0,
            breaches: Vec::new(),
            random,
        };
        for host in 0..HOSTS.len() {
            world.add(host, "", AGENT_POLL, Happening::Poll);
        }
        for _ in 0..world.weather.restarts {
            let host = world.draw_host();
            let after = Duration::from_secs_f64(60.0 * world.random.uniform());
            let absent = Duration::from_secs([0, 5, 25, 200][world.random.below(4) as usize]);
            world.add(host, "", after, Happening::Restart { absent });
        }
        let (host, after) = (world.draw_host(), world.random.below(30));
        world.add(host, "", Duration::from_secs(after), Happening::Stranger);
        world
    }

    fn draw_host(&mut self) -> usize {
        self.random.below(HOSTS.len() as u64) as usize
    }

    fn add(&mut self, host: usize, session: &str, after: Duration, what: Happening) {
        self.entries += 1;
        let key = (self.now.get() + after, self.entries);
        self.agenda.insert(key, (host, session.to_owned(), what));
    }

    fn ns(&self) -> u64 {
        ns_since(self.began, self.now.get())
    }

    fn host_ns(&self, host: usize) -> u64 {
        self.ns().saturating_add_signed(self.agents[host].offset_ns)
    }

    fn is_cut(&self, host: usize) -> bool {
        let now = self.now.get();
        let mut cuts = self.weather.cuts.iter();
        cuts.any(|(range, only)| range.contains(&now) && only.is_none_or(|only| only == host))
    }

    fn is_absent(&self, host: usize) -> bool {
        let until = self.agents[host].absent_until;
        until.is_some_and(|until| self.now.get() < until)
    }

    /// Draws the time that a message takes; `None` for one that is lost.
    fn passage(&mut self, host: usize) -> Option<Duration> {
        let is_lost = self.is_cut(host) || self.random.uniform() < self.weather.lost_share;
        let delay_s = self.weather.delay_s + self.weather.jitter_s * self.random.uniform();
        (!is_lost).then(|| Duration::from_secs_f64(delay_s))
    }

    fn carry(&mut self, host: usize, session: &str, to_agent: bool, frames: Vec<Vec<u8>>) {
        for bytes in frames {
            let is_repeated = self.random.uniform() < self.weather.repeated_share;
            for _ in 0..=usize::from(is_repeated) {
                if let Some(after) = self.passage(host) {
                    let bytes = bytes.clone();
                    self.add(host, session, after, Happening::Frame { to_agent, bytes });
                }
            }
        }
    }

    /// Sends a line of the contest.
    fn send(&mut self, session: &str, line: Vec<u8>) {
        let now = self.now.get();
        let Some(near) = self.near.get_mut(session) else {
            return;
        };
        let (host, frames) = (near.host, near.end.send(&line, now));
        let lines = self.lines.entry((session.to_owned(), true)).or_default();
        lines.sent.push(line);
        self.carry(host, session, true, frames);
    }

    /// Sends an answer of a load process.
    fn answer(&mut self, host: usize, process: &Rc<RefCell<Process>>, answer: &Answer) {
        let line = serde_json::to_vec(answer).expect("an answer is JSON");
        let session = process.borrow().session.clone();
        let frames = process.borrow_mut().end.send(&line, self.now.get());
        let lines = self.lines.entry((session.clone(), false)).or_default();
        lines.sent.push(line);
        self.carry(host, &session, false, frames);
    }

    /// The load process of a session, while its agent works for it.
    fn process(&self, host: usize, session: &str) -> Option<Rc<RefCell<Process>>> {
        let process = self.agents[host].process.as_ref()?;
        let is_own = process.borrow().session == session && !process.borrow().has_ended;
        is_own.then(|| Rc::clone(process))
    }

    /// Lets everything happen that is due until `until`.
    fn advance(&mut self, until: Instant) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), (host, session, what)) = entry.remove_entry();
            self.now.set(at);
            self.happen(host, &session, what);
        }
        self.now.set(until);
    }

    fn happen(&mut self, host: usize, session: &str, what: Happening) {
        match what {
            Happening::Frame { to_agent, bytes } => {
                // What is on its way when the connection breaks is lost.
                if !self.is_cut(host) {
                    self.deliver(host, session, to_agent, &bytes);
                }
            }
            Happening::Beat { at_agent } => self.beat(host, session, at_agent),
            Happening::Slice { seed, step } => self.step(host, session, seed, step),
            Happening::Poll => {
                self.agents[host]
                    .desk
                    .take_over()
                    .into_iter()
                    .for_each(|(_, work): (AttachRequest, ProcessHandle)| work.end());
                self.add(host, "", AGENT_POLL, Happening::Poll);
            }
            Happening::Restart { absent } => {
                let agent = &mut self.agents[host];
                if let Some((_, work)) = agent.desk.take() {
                    work.end();
                }
                agent.process = None;
                agent.absent_until = Some(self.now.get() + absent);
            }
            Happening::Stranger => self.ask_as_stranger(host),
        }
    }

    fn deliver(&mut self, host: usize, session: &str, to_agent: bool, bytes: &[u8]) {
        let now = self.now.get();
        let line = match to_agent {
            true => {
                let process = self.process(host, session);
                process.and_then(|process| process.borrow_mut().end.receive(bytes, now))
            }
            false => {
                let near = self.near.get_mut(session);
                near.and_then(|near| near.end.receive(bytes, now))
            }
        };
        let Some(line) = line else {
            return;
        };
        let lines = self.lines.entry((session.to_owned(), to_agent));
        lines.or_default().delivered.push(line.clone());
        match to_agent {
            true => self.obey(host, session, &line),
            false => {
                if let Some(near) = self.near.get_mut(session) {
                    (near.on_line)(line);
                }
            }
        }
    }

    fn beat(&mut self, host: usize, session: &str, at_agent: bool) {
        let now = self.now.get();
        let frames = match at_agent {
            true => self
                .process(host, session)
                .map(|process| process.borrow_mut().end.beat(now)),
            false => self.near.get_mut(session).map(|near| near.end.beat(now)),
        };
        if let Some(frames) = frames {
            self.carry(host, session, !at_agent, frames);
            self.add(host, session, LinkEnd::BEAT, Happening::Beat { at_agent });
        }
    }

    /// An order reaches a load process.
    fn obey(&mut self, host: usize, session: &str, line: &[u8]) {
        let Some(process) = self.process(host, session) else {
            return;
        };
        if line == BYE {
            process.borrow_mut().has_ended = true;
            return;
        }
        if let Err(why) = permitted::check(line) {
            self.breaches.push(format!("an order was refused: {why}"));
            return;
        }
        match serde_json::from_slice(line).expect("it was checked") {
            Order::Open(order) => {
                let answer = Answer::Opened {
                    contender: order.contender,
                    seconds: 0.01,
                    session: Session::default(),
                };
                self.answer(host, &process, &answer);
            }
            Order::BeginAt { at_ns } => process.borrow_mut().begin_ns = Some(at_ns),
            Order::Slice(order) => {
                let begin_ns = process.borrow_mut().begin_ns.take().unwrap_or_default();
                let wait = begin_ns.saturating_sub(self.host_ns(host));
                let begun = self.begun.entry(order.seed).or_default();
                let begins = self.now.get() + Duration::from_nanos(wait);
                if begun.insert(host, begins).is_some() {
                    let breach = format!("slice {} was driven twice on one host", order.seed);
                    self.breaches.push(breach);
                }
                process.borrow_mut().running = Some(Running {
                    seed: order.seed,
                    measured_s: order.measured_s,
                });
                let opens = Duration::from_nanos(wait) + Duration::from_secs_f64(order.guard_s);
                let measured = Duration::from_secs_f64(order.measured_s);
                for (step, after) in [
                    (SliceStep::Begun, opens),
                    (SliceStep::Ticked, opens + measured / 2),
                    (SliceStep::Ticked, opens + measured),
                    (SliceStep::Ended, opens + measured),
                ] {
                    let seed = order.seed;
                    self.add(host, session, after, Happening::Slice { seed, step });
                }
            }
            Order::Stop => {
                let seed = process.borrow().running.as_ref().map(|one| one.seed);
                if let Some(seed) = seed {
                    self.step(host, session, seed, SliceStep::Ended);
                }
            }
            Order::Close { contender } => {
                let answer = Answer::Closed {
                    contender,
                    commits: self.commits(host),
                    examples: Vec::new(),
                };
                self.answer(host, &process, &answer);
            }
            Order::ReportCommitTimes | Order::KeepExamples | Order::Halt => {}
        }
    }

    /// Commits of a host since its last report.
    fn commits(&mut self, host: usize) -> Vec<CommitRange> {
        let agent = &mut self.agents[host];
        let range = CommitRange {
            series: HOSTS[host].to_owned(),
            first: agent.reported + 1,
            last: agent.committed,
        };
        agent.reported = agent.committed;
        (range.first <= range.last)
            .then_some(range)
            .into_iter()
            .collect()
    }

    fn step(&mut self, host: usize, session: &str, seed: u64, step: SliceStep) {
        let Some(process) = self.process(host, session) else {
            return;
        };
        let is_running = |one: &Running| one.seed == seed;
        let Some(measured_s) = process
            .borrow()
            .running
            .as_ref()
            .filter(|one| is_running(one))
            .map(|one| one.measured_s)
        else {
            return;
        };
        let answer = match step {
            SliceStep::Begun => Answer::Begun {
                open_ns: self.host_ns(host),
            },
            SliceStep::Ticked => Answer::Tick(Tick {
                length_s: measured_s / 2.0,
                ..Tick::default()
            }),
            SliceStep::Ended => {
                process.borrow_mut().running = None;
                let ok = 1 + self.random.below(1000);
                self.counted.entry(seed).or_default().insert(host, ok);
                self.agents[host].committed += ok;
                let commits = self.commits(host);
                Answer::Slice(Box::new(slice_answer(ok, measured_s, commits)))
            }
        };
        self.answer(host, &process, &answer);
    }

    /// The answer of an agent to a question, if it answers.
    fn answer_of_agent(&mut self, host: usize, subject: &str, question: &[u8]) -> Vec<u8> {
        let name = HOSTS[host];
        if subject == clock_subject(name) {
            return self.host_ns(host).to_string().into_bytes();
        }
        if subject == session_subject("load", name) {
            return self.agents[host].desk.session().into_bytes();
        }
        assert_eq!(subject, attach_subject("load", name));
        let offer = Offer {
            now: Rc::clone(&self.now),
            started: RefCell::new(None),
        };
        let reply = self.agents[host].desk.attach(&offer, question);
        if let Some(process) = offer.started.take() {
            let session = process.borrow().session.clone();
            self.agents[host].process = Some(process);
            self.add(
                host,
                &session,
                LinkEnd::BEAT,
                Happening::Beat { at_agent: true },
            );
        }
        serde_json::to_vec(&reply).expect("a reply is JSON")
    }

    /// Another contest asks for the host, and must not get it while a contest is heard there.
    fn ask_as_stranger(&mut self, host: usize) {
        let is_held = self.agents[host].desk.request().is_some();
        if self.is_absent(host) || !is_held {
            return;
        }
        let request = AttachRequest {
            protocol: PROTOCOL,
            dbduel: String::new(),
            orchestrator: "stranger".to_owned(),
            contest: "stranger".to_owned(),
            session: "stranger".to_owned(),
            work: HostWork::Load {
                host: 0,
                hosts: 1,
                threads: 1,
                busy_poll_us: 0,
            },
        };
        let question = serde_json::to_vec(&request).expect("a request is JSON");
        let reply = self.answer_of_agent(host, &attach_subject("load", HOSTS[host]), &question);
        match serde_json::from_slice(&reply).expect("its own reply") {
            AttachReply::Busy { contest, .. } if contest == "contest" => {
                self.strangers_refused += 1;
            }
            other => self.breaches.push(format!("a stranger got {other:?}")),
        }
    }
}

impl Weather {
    fn draw(random: &mut Random, began: Instant) -> Self {
        let mut share = |most: f64| match random.below(3) {
            0 => 0.0,
            _ => most * random.uniform(),
        };
        let (lost_share, repeated_share) = (share(LOST_SHARE_MAX), share(0.3));
        let jitter_s = share(0.05);
        let mut weather = Weather {
            lost_share,
            repeated_share,
            delay_s: [0.000_1, 0.01, 0.1][random.below(3) as usize],
            jitter_s,
            cuts: Vec::new(),
            restarts: usize::from(random.below(3) == 0),
        };
        for _ in 0..random.below(3) {
            let begins = began + Duration::from_secs_f64(60.0 * random.uniform());
            let longest_s = [3.0, BREAK_MAX.as_secs_f64(), 90.0, 300.0][random.below(4) as usize];
            let length = Duration::from_secs_f64(longest_s * random.uniform());
            let only = match random.below(3) {
                0 => None,
                host => Some(host as usize - 1),
            };
            weather.cuts.push((begins..begins + length, only));
        }
        weather
    }

    /// True when the contest must survive it with all its sessions.
    fn is_mild(&self) -> bool {
        let total: Duration = self.cuts.iter().map(|(cut, _)| cut.end - cut.start).sum();
        total <= BREAK_MAX && self.restarts == 0
    }
}

fn ns_since(began: Instant, now: Instant) -> u64 {
    CLOCK_NS + (now - began).as_nanos() as u64
}

fn slice_answer(ok: u64, measured_s: f64, commits: Vec<CommitRange>) -> SliceAnswer {
    let class = ClassAnswer {
        class: "transaction".to_owned(),
        counts: TransactionCounts {
            due: ok,
            ok,
            statements: ok,
            ..TransactionCounts::default()
        },
        latency_us_sum: ok as f64,
        histogram: latency::encode(&latency::new_histogram()),
    };
    SliceAnswer {
        open_ns: 0,
        measured_s,
        is_finished: false,
        classes: vec![class],
        statements: Vec::new(),
        ticks: Vec::new(),
        errors: Vec::new(),
        cpu_user_s: 0.0,
        cpu_system_s: 0.0,
        cpu_wait_s: 0.0,
        polled_s: 0.0,
        lag_us_p99: 0.0,
        service_times: None,
        stalled_s: 0.0,
        gaps_s: Vec::new(),
        drained_s: 0.0,
        client_drained_s: 0.0,
        reported: None,
        rolled_back: 0,
        commits,
        orchestration: None,
    }
}

/// How a slice ended for the contest.
#[derive(Debug)]
enum SliceResult {
    Finished(Box<SliceAnswer>),
    Lost,
}

/// The contest: gives orders, one after the other.
struct Script {
    now: Rc<Cell<Instant>>,
    random: Random,
    sender: Option<Sender<Event<Order>>>,
    due: Option<(Instant, Event<Order>)>,
    slices_left: u32,
    seed: u64,
    is_slice_open: bool,
    was_stopped: bool,
    is_attached: bool,
    is_closed: bool,
    results: BTreeMap<u64, SliceResult>,
    closed_commits: Vec<CommitRange>,
    /// Why links ended, and whether they had been attached.
    ends: Vec<(bool, String)>,
}

impl Script {
    fn begin(&mut self, sender: Sender<Event<Order>>) {
        self.sender = Some(sender);
        self.due = None;
        self.is_attached = false;
    }

    /// Gives the order that is due.
    fn advance(&mut self) {
        if let Some((_, event)) = self.due.take_if(|(at, _)| *at <= self.now.get())
            && let Some(sender) = &self.sender
        {
            // The link may have ended meanwhile.
            let _ = sender.send(event);
        }
    }

    fn order(&mut self, order: Order) {
        let pause = Duration::from_secs_f64(0.5 * self.random.uniform());
        self.due = Some((self.now.get() + pause, Event::Order(order)));
    }

    fn next_order(&mut self) {
        let contender = "a".to_owned();
        if self.slices_left == 0 {
            return self.order(Order::Close { contender });
        }
        self.slices_left -= 1;
        self.seed += 1;
        self.is_slice_open = true;
        self.was_stopped = false;
        let measured_s = 0.2 + self.random.uniform();
        self.order(Order::Slice(SliceOrder {
            contender,
            clients: 2,
            arrival: Arrival::Closed { think_ms: 0.0 },
            guard_s: 0.05,
            measured_s,
            tick_s: 0.1,
            drain_s: 1.0,
            until_halted: true,
            quantum: None,
            seed: self.seed,
        }));
    }

    fn end_slice(&mut self, result: SliceResult) {
        assert!(self.is_slice_open, "an answer to no slice: {result:?}");
        self.is_slice_open = false;
        let before = self.results.insert(self.seed, result);
        assert!(before.is_none(), "a slice ended twice: {before:?}");
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Attached { .. } => {
                self.is_attached = true;
                let order = json!({
                    "order": "open", "contender": "a", "user": "dbduel", "password": "", "database": "dbduel", "clients": 2,
                    "address": { "transport": "tcp", "host": "10.0.0.1", "port": 3306 }, "retries": 3, "connect_s": 5.0,
                    "workload": { "name": "oltp-point-select", "parameters": {} },
                });
                self.order(serde_json::from_value(order).expect("an order"));
            }
            Answer::Opened { .. } => self.next_order(),
            Answer::Slice(answer) => {
                self.end_slice(SliceResult::Finished(answer));
                self.next_order();
            }
            Answer::Lost { .. } => {
                self.end_slice(SliceResult::Lost);
                self.next_order();
            }
            Answer::Tick(_) if !self.was_stopped && self.random.below(10) == 0 => {
                self.was_stopped = true;
                self.due = Some((self.now.get(), Event::Order(Order::Stop)));
            }
            Answer::Begun { .. } | Answer::Tick(_) => {}
            Answer::Closed { commits, .. } => {
                self.is_closed = true;
                self.closed_commits = commits;
                self.due = Some((self.now.get(), Event::End));
            }
            Answer::Unreachable { why } => {
                if self.is_slice_open {
                    self.end_slice(SliceResult::Lost);
                }
                self.ends.push((self.is_attached, why));
                self.sender = None;
            }
            other => panic!("an answer that no order explains: {other:?}"),
        }
    }
}

/// Takes the answers of the link.
struct Output(Rc<RefCell<Script>>, Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.extend(bytes);
        while let Some(end) = self.1.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.1.drain(..=end).collect();
            let answer = serde_json::from_slice(&line).expect("an answer");
            self.0.borrow_mut().answered(answer);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Simulated {
    world: Rc<RefCell<World>>,
    script: Rc<RefCell<Script>>,
}

/// A session of the simulated network.
struct SimulatedLink {
    session: String,
    simulated: Simulated,
}

impl Simulated {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let script = Script {
            now: Rc::clone(&world.now),
            random: Random::new(!seed),
            sender: None,
            due: None,
            slices_left: 30,
            seed: 0,
            is_slice_open: false,
            was_stopped: false,
            is_attached: false,
            is_closed: false,
            results: BTreeMap::new(),
            closed_commits: Vec::new(),
            ends: Vec::new(),
        };
        Self {
            world: Rc::new(RefCell::new(world)),
            script: Rc::new(RefCell::new(script)),
        }
    }

    fn handle(&self) -> Self {
        Self {
            world: Rc::clone(&self.world),
            script: Rc::clone(&self.script),
        }
    }

    /// Lets everything happen that is due now.
    fn catch_up(&self) {
        self.world.borrow_mut().advance(clock::now());
        self.script.borrow_mut().advance();
    }

    /// Lets time pass until the next event, at most until `deadline`.
    fn step_until(&self, deadline: Instant) {
        let next = self.world.borrow().agenda.keys().next().map(|(at, _)| *at);
        let due = self.script.borrow().due.as_ref().map(|(at, _)| *at);
        let next = next.into_iter().chain(due).min().unwrap_or(deadline);
        simulated::pass(next.min(deadline).saturating_duration_since(clock::now()));
        self.catch_up();
    }

    fn pass_until(&self, deadline: Instant) {
        while clock::now() < deadline {
            self.step_until(deadline);
        }
    }

    /// Questions to agents at the same time, with the time that they take. Returns the answers to each subject that arrive
    /// within `wait`.
    fn exchanges(
        &self,
        subjects: &[String],
        question: &[u8],
        times: u32,
        wait: Duration,
    ) -> Vec<Vec<Exchange>> {
        self.catch_up();
        let began = clock::now();
        let deadline = began + wait;
        let mut on_their_way = Vec::new();
        for (place, subject) in subjects.iter().enumerate() {
            for number in 0..times {
                let asked_at = began + number * QUESTION_GAP;
                let there = self.world.borrow_mut().passage(host_of(subject));
                on_their_way.extend(there.map(|there| (asked_at + there, asked_at, place)));
            }
        }
        on_their_way.sort_by_key(|(arrives, ..)| *arrives);
        let mut answers: Vec<Vec<Exchange>> = subjects.iter().map(|_| Vec::new()).collect();
        let mut last = began;
        for (arrives, asked_at, place) in on_their_way {
            if arrives > deadline {
                break;
            }
            self.pass_until(arrives);
            let host = host_of(&subjects[place]);
            let mut world = self.world.borrow_mut();
            if world.is_cut(host) || world.is_absent(host) {
                continue;
            }
            let answer = world.answer_of_agent(host, &subjects[place], question);
            let Some(back) = world
                .passage(host)
                .filter(|back| arrives + *back <= deadline)
            else {
                continue;
            };
            last = last.max(arrives + back);
            answers[place].push(Exchange {
                asked: SystemTime::UNIX_EPOCH,
                asked_at,
                round_trip: arrives + back - asked_at,
                answer,
            });
        }
        let is_complete = answers.iter().all(|own| own.len() == times as usize);
        self.pass_until(if is_complete { last } else { deadline });
        answers
    }
}

fn host_of(subject: &str) -> usize {
    let host = HOSTS.iter().position(|name| subject.contains(name));
    host.expect("a subject of a host")
}

impl HostLink for SimulatedLink {
    fn send(&self, line: Vec<u8>) {
        self.simulated.catch_up();
        self.simulated.world.borrow_mut().send(&self.session, line);
    }

    fn silent_for(&self) -> Duration {
        self.simulated.catch_up();
        let world = self.simulated.world.borrow();
        world.near[&self.session].end.silent_for(world.now.get())
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn is_broken(&self) -> bool {
        self.simulated.world.borrow().near[&self.session]
            .end
            .is_broken()
    }

    fn finish(&self, limit: Duration) {
        let deadline = clock::now() + limit;
        let is_open = || {
            self.simulated.world.borrow().near[&self.session]
                .end
                .open_lines()
                > 0
        };
        while is_open() && clock::now() < deadline {
            self.simulated.step_until(deadline);
        }
    }
}

impl Drop for SimulatedLink {
    fn drop(&mut self) {
        self.simulated.world.borrow_mut().near.remove(&self.session);
    }
}

impl Network for Simulated {
    type Link = SimulatedLink;

    fn link(
        &self,
        sends_on: &str,
        _hears_on: &str,
        on_line: impl FnMut(Vec<u8>) + Send + Sync + 'static,
    ) -> Result<SimulatedLink, NatsError> {
        self.catch_up();
        let session = sends_on.rsplit('.').next().unwrap_or_default().to_owned();
        let near = NearEnd {
            host: host_of(sends_on),
            end: LinkEnd::new(clock::now()),
            on_line: Box::new(on_line),
        };
        let mut world = self.world.borrow_mut();
        let at_agent = false;
        world.add(
            near.host,
            &session,
            LinkEnd::BEAT,
            Happening::Beat { at_agent },
        );
        world.near.insert(session.clone(), near);
        Ok(SimulatedLink {
            session,
            simulated: self.handle(),
        })
    }

    fn ask(&self, subject: &str, question: Vec<u8>) -> Result<Exchange, NatsError> {
        self.catch_up();
        let failed = |why: &str| NatsError::Call {
            action: "ask".to_owned(),
            why: why.to_owned(),
        };
        let host = host_of(subject);
        if self.world.borrow().is_absent(host) && !self.world.borrow().is_cut(host) {
            return Err(failed("no responders"));
        }
        let subjects = [subject.to_owned()];
        let answers = self.exchanges(&subjects, &question, 1, ASK_TIMEOUT);
        let answer = answers.into_iter().flatten().next();
        answer.ok_or_else(|| failed("no answer in time"))
    }

    fn ask_each(&self, subjects: &[String], times: usize, wait: Duration) -> Vec<Vec<Exchange>> {
        self.exchanges(subjects, b"", times as u32, wait)
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn url(&self) -> &str {
        "nats://simulated"
    }

    fn next<E>(&self, inbox: &Receiver<E>, limit: Duration) -> Result<E, RecvTimeoutError> {
        let deadline = clock::now() + limit;
        loop {
            self.catch_up();
            match inbox.try_recv() {
                Ok(event) => return Ok(event),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if clock::now() >= deadline => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => self.step_until(deadline),
            }
        }
    }

    fn ns_of(&self, instant: Instant) -> u64 {
        ns_since(self.world.borrow().began, instant)
    }
}

/// What occurred in a simulation, by kind.
type Kinds = BTreeMap<&'static str, usize>;

/// Runs one contest; the error says which property does not hold.
fn simulate(seed: u64) -> Result<Kinds, String> {
    let time = SimulatedTime::begin();
    let simulated = Simulated::new(seed);
    let config = LinkConfig {
        hosts: HOSTS.map(str::to_owned).to_vec(),
        asker: Asker {
            contest: "contest".to_owned(),
            orchestrator: "orchestrator".to_owned(),
        },
        threads: 1,
        busy_poll_us: 0,
    };
    let began = clock::now();
    for _ in 0..LINKS_MAX {
        let (sender, inbox) = channel();
        simulated.script.borrow_mut().begin(sender.clone());
        let output = Output(Rc::clone(&simulated.script), Vec::new());
        serve(&simulated, &config, (inbox, &sender), output).map_err(|error| error.to_string())?;
        let script = simulated.script.borrow();
        // A host that cannot be attached ends the contest, which can be resumed.
        if script.is_closed
            || script
                .ends
                .last()
                .is_some_and(|(was_attached, _)| !was_attached)
        {
            break;
        }
    }
    let took = clock::since(began);
    simulated.pass_until(clock::now() + SILENCE_MAX + Duration::from_secs(1));
    let checked = check(&simulated, took);
    drop(time);
    let weather = &simulated.world.borrow().weather;
    checked.map_err(|why| format!("seed {seed}: {why}\n{weather:?}"))
}

/// Checks what must hold at the end.
fn check(simulated: &Simulated, took: Duration) -> Result<Kinds, String> {
    let (world, script) = (simulated.world.borrow(), simulated.script.borrow());
    if let Some(breach) = world.breaches.first() {
        return Err(breach.clone());
    }
    for ((session, to_agent), lines) in &world.lines {
        if !lines.sent.starts_with(&lines.delivered) {
            return Err(format!(
                "lines of {session} (to the agent: {to_agent}) were lost, repeated or reordered"
            ));
        }
    }
    let mut kinds = Kinds::new();
    let mut count = |kind| *kinds.entry(kind).or_default() += 1;
    let mut commits: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut all_commits = script.closed_commits.clone();
    for (slice, result) in &script.results {
        let SliceResult::Finished(answer) = result else {
            count("slice lost");
            continue;
        };
        let counted = world.counted.get(slice).cloned().unwrap_or_default();
        let sum: u64 = counted.values().sum();
        if counted.len() != HOSTS.len() || answer.classes[0].counts.ok != sum {
            return Err(format!("slice {slice} has not the sum of {counted:?}"));
        }
        all_commits.extend(answer.commits.iter().cloned());
        let costs = answer.orchestration.as_ref().ok_or("no costs")?;
        if let Some(why) = &costs.trouble {
            if !HOSTS.iter().any(|host| why.contains(host)) {
                return Err(format!("slice {slice} names no host: {why}"));
            }
            count("slice lost by name");
            continue;
        }
        count("slice finished");
        let begun = world.begun[slice].values();
        let apart = *begun.clone().max().ok_or("none")? - *begun.min().ok_or("none")?;
        // Each host is off by its uncertainty at most, and late by a millisecond.
        let most_us = 2.0 * costs.clock_uncertainty_us + 1010.0;
        if apart.as_secs_f64() * 1e6 > most_us {
            return Err(format!(
                "slice {slice} began {apart:?} apart, {most_us} µs at most"
            ));
        }
    }
    for range in all_commits {
        for number in range.first..=range.last {
            if !commits.insert((range.series.clone(), number)) {
                return Err(format!(
                    "commit {number} of {} was reported twice",
                    range.series
                ));
            }
        }
    }
    let is_lost_with_session = !script.ends.is_empty();
    let committed: u64 = world.agents.iter().map(|agent| agent.committed).sum();
    if script.is_closed && !is_lost_with_session && commits.len() as u64 != committed {
        return Err(format!(
            "{} of {committed} commits were reported",
            commits.len()
        ));
    }
    for (was_attached, why) in &script.ends {
        count(match was_attached {
            true => "session lost",
            false => "contest ended by name",
        });
        if !HOSTS.iter().any(|host| why.contains(host)) {
            return Err(format!("an end names no host: {why}"));
        }
    }
    if !script.is_closed
        && script
            .ends
            .last()
            .is_none_or(|(was_attached, _)| *was_attached)
    {
        return Err(format!("the contest did not end: {:?}", script.ends));
    }
    if world.weather.is_mild() {
        count("mild weather");
        if !script.ends.is_empty() || script.results.len() != 30 {
            return Err(format!("a short break cost a session: {:?}", script.ends));
        }
    }
    if world
        .agents
        .iter()
        .any(|agent| agent.desk.request().is_some())
    {
        return Err("an agent works for a contest that is over".to_owned());
    }
    let each_link = SILENCE_MAX * 3 + CUT_OFF_TIMEOUT * 2 + ABSENT_TIMEOUT;
    let longest = Duration::from_secs(600) + each_link * script.ends.len() as u32;
    if took > longest {
        return Err(format!("it took {took:?}, {longest:?} at most"));
    }
    for _ in 0..world.strangers_refused {
        count("stranger refused");
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that every commit runs.
    const SEEDS: u64 = 100;
    /// Kinds of [`Kinds`] that so many seeds contain.
    const KINDS: usize = 7;

    fn number_of(variable: &str) -> Option<u64> {
        std::env::var(variable).ok()?.parse().ok()
    }

    #[test]
    fn no_turn_is_lost_or_repeated_by_a_network_that_loses_repeats_and_reorders() {
        let from = number_of("DBDUEL_SIMULATE_FROM").unwrap_or(0);
        let seeds = number_of("DBDUEL_SIMULATE").unwrap_or(SEEDS);
        let mut kinds = Kinds::new();
        let mut failures = Vec::new();
        for seed in from..from.saturating_add(seeds) {
            match simulate(seed) {
                Ok(own) => {
                    for (kind, count) in own {
                        *kinds.entry(kind).or_default() += count;
                    }
                }
                Err(why) => failures.push(why),
            }
        }
        println!("{seeds} contests: {kinds:?}");
        let (count, first) = (failures.len(), failures.first());
        assert_eq!(
            count,
            0,
            "of {seeds}; the first: {}",
            first.map_or("", |why| why)
        );
        if seeds >= SEEDS {
            assert_eq!(kinds.len(), KINDS, "{kinds:?}");
        }
    }
}
