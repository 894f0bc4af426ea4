//! The simulated network and the machines at its ends: agents, load processes, frames, and what befalls them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dbduel_client::random::Random;
use dbduel_driver::session::Session;
use dbduel_lab::outage::BREAK_MAX;
use dbduel_load::order::{Answer, ClassAnswer, Order, SliceAnswer, Tick};
use dbduel_machine::clock;
use dbduel_nats::LinkEnd;
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::{Host, ServerHost};
use dbduel_record::latency;
use dbduel_record::rows::TransactionCounts;

use super::super::desk::{Desk, Service, Work};
use super::super::load::permitted;
use super::super::{
    AttachReply, AttachRequest, BYE, HostWork, PROTOCOL, attach_subject, clock_subject,
    session_subject,
};
use super::HOSTS;

/// Reading of this machine's monotonic clock when a simulation begins, nanoseconds.
const CLOCK_NS: u64 = 5_000_000_000_000;
/// Between two looks of an agent at its work.
const AGENT_POLL: Duration = Duration::from_millis(50);
/// Largest share of frames and questions that are lost.
const LOST_SHARE_MAX: f64 = 0.2;

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Happening {
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
pub(super) enum SliceStep {
    Begun,
    Ticked,
    Ended,
}

/// A slice of a load process.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) seed: u64,
    pub(super) measured_s: f64,
}

/// A load process with the agent's end of its link.
pub(super) struct Process {
    pub(super) session: String,
    pub(super) end: LinkEnd,
    pub(super) has_ended: bool,
    pub(super) begin_ns: Option<u64>,
    pub(super) running: Option<Running>,
}

/// A load process as its agent has it.
pub(super) struct ProcessHandle {
    pub(super) process: Rc<RefCell<Process>>,
    pub(super) now: Rc<Cell<Instant>>,
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
pub(super) struct Offer {
    pub(super) now: Rc<Cell<Instant>>,
    pub(super) started: RefCell<Option<Rc<RefCell<Process>>>>,
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

pub(super) struct Agent {
    pub(super) desk: Desk<ProcessHandle>,
    pub(super) process: Option<Rc<RefCell<Process>>>,
    pub(super) absent_until: Option<Instant>,
    /// Its monotonic clock minus the one here, nanoseconds.
    pub(super) offset_ns: i64,
    /// Transactions acknowledged to it.
    pub(super) committed: u64,
    /// Those of them that it has reported.
    pub(super) reported: u64,
}

/// The contest's end of a link.
pub(super) struct NearEnd {
    pub(super) host: usize,
    pub(super) end: LinkEnd,
    pub(super) on_line: Box<dyn FnMut(Vec<u8>)>,
}

/// Lines of one direction of a session.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) sent: Vec<Vec<u8>>,
    pub(super) delivered: Vec<Vec<u8>>,
}

/// Properties of a network, drawn from the seed.
#[derive(Debug)]
pub(super) struct Weather {
    pub(super) lost_share: f64,
    pub(super) repeated_share: f64,
    pub(super) delay_s: f64,
    /// Additional delay of single frames, by which they overtake each other.
    pub(super) jitter_s: f64,
    /// Breaks, of one host or of all.
    pub(super) cuts: Vec<(Range<Instant>, Option<usize>)>,
    pub(super) restarts: usize,
}

pub(super) struct World {
    pub(super) began: Instant,
    pub(super) now: Rc<Cell<Instant>>,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) agenda: BTreeMap<(Instant, u64), (usize, String, Happening)>,
    pub(super) entries: u64,
    pub(super) agents: Vec<Agent>,
    pub(super) near: BTreeMap<String, NearEnd>,
    pub(super) lines: BTreeMap<(String, bool), Lines>,
    /// By the seed of a slice: transactions counted on each host.
    pub(super) counted: BTreeMap<u64, BTreeMap<usize, u64>>,
    /// By the seed of a slice: when each host began it.
    pub(super) begun: BTreeMap<u64, BTreeMap<usize, Instant>>,
    pub(super) strangers_refused: usize,
    pub(super) breaches: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
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

    pub(super) fn draw_host(&mut self) -> usize {
        self.random.below(HOSTS.len() as u64) as usize
    }

    pub(super) fn add(&mut self, host: usize, session: &str, after: Duration, what: Happening) {
        self.entries += 1;
        let key = (self.now.get() + after, self.entries);
        self.agenda.insert(key, (host, session.to_owned(), what));
    }

    pub(super) fn ns(&self) -> u64 {
        ns_since(self.began, self.now.get())
    }

    pub(super) fn host_ns(&self, host: usize) -> u64 {
        self.ns().saturating_add_signed(self.agents[host].offset_ns)
    }

    pub(super) fn is_cut(&self, host: usize) -> bool {
        let now = self.now.get();
        let mut cuts = self.weather.cuts.iter();
        cuts.any(|(range, only)| range.contains(&now) && only.is_none_or(|only| only == host))
    }

    pub(super) fn is_absent(&self, host: usize) -> bool {
        let until = self.agents[host].absent_until;
        until.is_some_and(|until| self.now.get() < until)
    }

    /// Draws the time that a message takes; `None` for one that is lost.
    pub(super) fn passage(&mut self, host: usize) -> Option<Duration> {
        let is_lost = self.is_cut(host) || self.random.uniform() < self.weather.lost_share;
        let delay_s = self.weather.delay_s + self.weather.jitter_s * self.random.uniform();
        (!is_lost).then(|| Duration::from_secs_f64(delay_s))
    }

    pub(super) fn carry(
        &mut self,
        host: usize,
        session: &str,
        to_agent: bool,
        frames: Vec<Vec<u8>>,
    ) {
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
    pub(super) fn send(&mut self, session: &str, line: Vec<u8>) {
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
    pub(super) fn answer(&mut self, host: usize, process: &Rc<RefCell<Process>>, answer: &Answer) {
        let line = serde_json::to_vec(answer).expect("an answer is JSON");
        let session = process.borrow().session.clone();
        let frames = process.borrow_mut().end.send(&line, self.now.get());
        let lines = self.lines.entry((session.clone(), false)).or_default();
        lines.sent.push(line);
        self.carry(host, &session, false, frames);
    }

    /// The load process of a session, while its agent works for it.
    pub(super) fn process(&self, host: usize, session: &str) -> Option<Rc<RefCell<Process>>> {
        let process = self.agents[host].process.as_ref()?;
        let is_own = process.borrow().session == session && !process.borrow().has_ended;
        is_own.then(|| Rc::clone(process))
    }

    /// Lets everything happen that is due until `until`.
    pub(super) fn advance(&mut self, until: Instant) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), (host, session, what)) = entry.remove_entry();
            self.now.set(at);
            self.happen(host, &session, what);
        }
        self.now.set(until);
    }

    pub(super) fn happen(&mut self, host: usize, session: &str, what: Happening) {
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

    pub(super) fn deliver(&mut self, host: usize, session: &str, to_agent: bool, bytes: &[u8]) {
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

    pub(super) fn beat(&mut self, host: usize, session: &str, at_agent: bool) {
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
    pub(super) fn obey(&mut self, host: usize, session: &str, line: &[u8]) {
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
    pub(super) fn commits(&mut self, host: usize) -> Vec<CommitRange> {
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

    pub(super) fn step(&mut self, host: usize, session: &str, seed: u64, step: SliceStep) {
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
    pub(super) fn answer_of_agent(
        &mut self,
        host: usize,
        subject: &str,
        question: &[u8],
    ) -> Vec<u8> {
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
    pub(super) fn ask_as_stranger(&mut self, host: usize) {
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
    pub(super) fn draw(random: &mut Random, began: Instant) -> Self {
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
    pub(super) fn is_mild(&self) -> bool {
        let total: Duration = self.cuts.iter().map(|(cut, _)| cut.end - cut.start).sum();
        total <= BREAK_MAX && self.restarts == 0
    }
}

pub(super) fn ns_since(began: Instant, now: Instant) -> u64 {
    CLOCK_NS + (now - began).as_nanos() as u64
}

pub(super) fn slice_answer(ok: u64, measured_s: f64, commits: Vec<CommitRange>) -> SliceAnswer {
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
