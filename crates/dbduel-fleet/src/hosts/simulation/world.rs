//! The simulated network and the agents at its ends, with frames, faults and what the processes of agents answer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dbduel_client::random::Random;
use dbduel_lab::outage::{BREAK_MAX, OUT_OF_REACH_MAX, SILENCE_MAX};
use dbduel_machine::clock;
use dbduel_nats::LinkEnd;
use dbduel_record::facts::{Host, ServerHost};
use serde::Serialize;

use super::super::desk::{Desk, Service, Work};
use super::super::service::last_answer;
use super::super::{
    AttachReply, AttachRequest, BYE, HostWork, PROTOCOL, attach_subject, clock_subject,
    session_subject,
};
use super::load_process::{LoadJob, LoadLog, SliceStep};
use super::server_process::{Machine, ServersJob, ServersLog};

/// Reading of this machine's monotonic clock when a simulation begins, nanoseconds.
const CLOCK_NS: u64 = 5_000_000_000_000;
/// Between two looks of an agent at its work.
const AGENT_POLL: Duration = Duration::from_millis(50);
/// Largest share of frames and questions that are lost.
const LOST_SHARE_MAX: f64 = 0.2;
/// Time for the last answer of a process that was killed.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Time in which agents are released on a network without faults.
pub(super) const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time for which a link may be busy with other hosts and not look at the silence of one.
const LINK_BUSY_MAX: Duration = Duration::from_secs(140);
/// A silence is noticed this much later than it begins.
const NOTICE_DELAY: Duration = Duration::from_millis(200);
/// The contest that is simulated, towards agents.
pub(super) const CONTEST: &str = "contest";

/// What the agents of a simulation do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Load,
    Servers,
}

impl Role {
    /// Names of the agents.
    pub(super) fn hosts(self) -> [&'static str; 2] {
        match self {
            Role::Load => ["load1", "load2"],
            Role::Servers => ["db1", "db2"],
        }
    }

    /// Time from the beginning in which faults begin, seconds: about as long as a contest without faults takes.
    fn faults_s(self) -> f64 {
        match self {
            Role::Load => 60.0,
            Role::Servers => 120.0,
        }
    }

    /// Work that another contest asks for.
    fn work(self) -> HostWork {
        match self {
            Role::Load => HostWork::Load {
                host: 0,
                hosts: 1,
                threads: 1,
                busy_poll_us: 0,
            },
            Role::Servers => HostWork::Servers,
        }
    }
}

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
    /// The process of server hosts has done a task.
    Task,
    /// An agent looks at its work.
    Poll,
    /// An agent is killed, and started again after `absent`. Its process ends its servers, unless it is killed too.
    Restart {
        absent: Duration,
        kills_process: bool,
    },
    /// An agent is started again, and ends servers that are left from before.
    Return,
    /// The process of an agent is killed.
    Kill,
    /// A server ends by itself.
    Crash,
    /// Another contest asks for the host.
    Stranger,
}

/// What a process works on.
#[derive(Debug)]
pub(super) enum Job {
    Load(LoadJob),
    Servers(ServersJob),
}

/// A process of an agent, with the agent's end of its link.
pub(super) struct Process {
    pub(super) session: String,
    pub(super) end: LinkEnd,
    pub(super) has_ended: bool,
    was_killed: bool,
    /// When its agent closes the link, once that is known.
    closes: Option<Instant>,
    pub(super) job: Job,
}

/// A process as its agent has it.
pub(super) struct ProcessHandle {
    process: Rc<RefCell<Process>>,
    machine: Rc<RefCell<Machine>>,
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
        let mut process = self.process.borrow_mut();
        process.has_ended = true;
        let last = if process.was_killed {
            LAST_ANSWER_TIMEOUT
        } else {
            Duration::ZERO
        };
        process.closes = Some(self.now.get() + last);
        self.machine.borrow_mut().end_servers_of(&process.session);
    }
}

/// What an agent starts processes with.
struct Offer {
    role: Role,
    now: Rc<Cell<Instant>>,
    machine: Rc<RefCell<Machine>>,
    started: RefCell<Option<Rc<RefCell<Process>>>>,
}

impl Service<ProcessHandle> for Offer {
    fn fits(&self, work: &HostWork) -> bool {
        match self.role {
            Role::Load => matches!(work, HostWork::Load { .. }),
            Role::Servers => matches!(work, HostWork::Servers),
        }
    }

    fn start(&self, request: &AttachRequest) -> Result<ProcessHandle> {
        let process = Rc::new(RefCell::new(Process {
            session: request.session.clone(),
            end: LinkEnd::new(self.now.get()),
            has_ended: false,
            was_killed: false,
            closes: None,
            job: match self.role {
                Role::Load => Job::Load(LoadJob::default()),
                Role::Servers => Job::Servers(ServersJob::default()),
            },
        }));
        self.started.replace(Some(Rc::clone(&process)));
        Ok(ProcessHandle {
            process,
            machine: Rc::clone(&self.machine),
            now: Rc::clone(&self.now),
        })
    }
}

pub(super) struct Agent {
    pub(super) desk: Desk<ProcessHandle>,
    process: Option<Rc<RefCell<Process>>>,
    absent_until: Option<Instant>,
    /// Its monotonic clock minus the one here, nanoseconds.
    offset_ns: i64,
    /// Sandboxes and servers on its machine.
    pub(super) machine: Rc<RefCell<Machine>>,
}

/// The contest's end of a link.
pub(super) struct NearEnd {
    pub(super) host: usize,
    pub(super) end: LinkEnd,
    /// True once the agent was heard.
    pub(super) was_heard: bool,
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
    /// Agents that are killed.
    restarts: usize,
    /// Processes of agents that are killed.
    kills: usize,
    /// Servers that end by themselves.
    crashes: usize,
}

pub(super) struct World {
    role: Role,
    pub(super) began: Instant,
    pub(super) now: Rc<Cell<Instant>>,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) agenda: BTreeMap<(Instant, u64), (usize, String, Happening)>,
    pub(super) entries: u64,
    pub(super) agents: Vec<Agent>,
    pub(super) near: BTreeMap<String, NearEnd>,
    pub(super) lines: BTreeMap<(String, bool), Lines>,
    pub(super) load: LoadLog,
    pub(super) servers: ServersLog,
    pub(super) strangers_refused: usize,
    pub(super) breaches: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, role: Role) -> Self {
        let mut random = Random::new(seed);
        let began = clock::now();
        let now = Rc::new(Cell::new(began));
        let weather = Weather::draw(&mut random, began, role);
        let agents = role.hosts().into_iter().map(|name| Agent {
            desk: Desk::new(ServerHost {
                name: name.to_owned(),
                dbduel: String::new(),
                facts: Host::default(),
            }),
            process: None,
            absent_until: None,
            offset_ns: random.below(2_000_000_000_000).cast_signed() - 1_000_000_000_000,
            machine: Rc::default(),
        });
        let agents = agents.collect();
        let mut world = Self {
            role,
            began,
            now,
            weather,
            agenda: BTreeMap::new(),
            entries: 0,
            agents,
            near: BTreeMap::new(),
            lines: BTreeMap::new(),
            load: LoadLog::default(),
            servers: ServersLog::default(),
            strangers_refused: 0,
            breaches: Vec::new(),
            random,
        };
        for host in 0..world.agents.len() {
            world.add(host, "", AGENT_POLL, Happening::Poll);
        }
        for _ in 0..world.weather.restarts {
            let absent = Duration::from_secs([0, 5, 25, 200][world.random.below(4) as usize]);
            let kills_process = world.random.below(2) == 0;
            world.add_soon(Happening::Restart {
                absent,
                kills_process,
            });
        }
        for _ in 0..world.weather.kills {
            world.add_soon(Happening::Kill);
        }
        for _ in 0..world.weather.crashes {
            world.add_soon(Happening::Crash);
        }
        let (host, after) = (world.draw_host(), world.random.below(30));
        world.add(host, "", Duration::from_secs(after), Happening::Stranger);
        world
    }

    /// Adds something that happens to a host at a drawn time.
    fn add_soon(&mut self, what: Happening) {
        let host = self.draw_host();
        let after = Duration::from_secs_f64(self.role.faults_s() * self.random.uniform());
        self.add(host, "", after, what);
    }

    /// Number of the host that a subject names.
    pub(super) fn host_of(&self, subject: &str) -> usize {
        let mut hosts = self.role.hosts().into_iter();
        // Identities of sessions are random, and may contain a name.
        let host = hosts.position(|name| subject.split('.').any(|part| part == name));
        host.expect("a subject of a host")
    }

    pub(super) fn draw_host(&mut self) -> usize {
        self.random.below(self.agents.len() as u64) as usize
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

    /// Checks that a host was not cut off for long in the time of a finished turn.
    pub(super) fn check_in_reach(&self, host: usize, turn: &Range<Instant>) -> Result<(), String> {
        for (cut, only) in &self.weather.cuts {
            let (from, to) = (cut.start.max(turn.start), cut.end.min(turn.end));
            let part = to.saturating_duration_since(from);
            let is_own = only.is_none_or(|only| only == host);
            if is_own && part > OUT_OF_REACH_MAX + NOTICE_DELAY {
                return Err(format!(
                    "a turn was finished although its host was cut off for {part:?} of it"
                ));
            }
        }
        Ok(())
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

    /// Sends an answer of a process.
    pub(super) fn answer(
        &mut self,
        host: usize,
        process: &Rc<RefCell<Process>>,
        answer: &impl Serialize,
    ) {
        let line = serde_json::to_vec(answer).expect("an answer is JSON");
        self.send_back(host, process, line);
    }

    fn send_back(&mut self, host: usize, process: &Rc<RefCell<Process>>, line: Vec<u8>) {
        let session = process.borrow().session.clone();
        let frames = process.borrow_mut().end.send(&line, self.now.get());
        let lines = self.lines.entry((session.clone(), false)).or_default();
        lines.sent.push(line);
        self.carry(host, &session, false, frames);
    }

    /// The process of a session, while its agent works for it.
    pub(super) fn process(&self, host: usize, session: &str) -> Option<Rc<RefCell<Process>>> {
        let process = self.linked_process(host, session)?;
        let is_at_work = !process.borrow().has_ended;
        is_at_work.then_some(process)
    }

    /// The process of a session, while its link is open.
    fn linked_process(&self, host: usize, session: &str) -> Option<Rc<RefCell<Process>>> {
        let process = self.agents[host].process.as_ref()?;
        let is_own = process.borrow().session == session;
        let closes = process.borrow().closes;
        let is_open = closes.is_none_or(|closes| self.now.get() < closes);
        (is_own && is_open).then(|| Rc::clone(process))
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
            Happening::Task => self.end_task(host, session),
            Happening::Poll => self.poll(host),
            Happening::Restart {
                absent,
                kills_process,
            } => self.restart(host, absent, kills_process),
            Happening::Return => self.agents[host].machine.borrow_mut().end_all_servers(),
            Happening::Kill => {
                if let Some(process) = &self.agents[host].process {
                    let mut process = process.borrow_mut();
                    process.was_killed = !process.has_ended;
                    process.has_ended = true;
                }
            }
            Happening::Crash => self.agents[host].machine.borrow_mut().crash_one(),
            Happening::Stranger => self.ask_as_stranger(host),
        }
    }

    /// An agent looks at its work.
    fn poll(&mut self, host: usize) {
        if let Some((request, work)) = self.agents[host].desk.take_over() {
            let process = Rc::clone(&work.process);
            work.end();
            if process.borrow().was_killed {
                let why = "its process ended: signal: 9 (SIGKILL)";
                let line = last_answer(&request.work, self.role.hosts()[host], why);
                self.send_back(host, &process, line);
            }
        }
        let agent = &self.agents[host];
        let has_ended = agent
            .process
            .as_ref()
            .is_some_and(|one| one.borrow().has_ended);
        if has_ended && agent.desk.request().is_some() {
            self.breaches
                .push("a host is held by work that has ended".to_owned());
        }
        self.add(host, "", AGENT_POLL, Happening::Poll);
    }

    fn restart(&mut self, host: usize, absent: Duration, kills_process: bool) {
        let agent = &mut self.agents[host];
        // With its process, the servers are left as they are.
        if let Some((_, work)) = agent.desk.take()
            && !kills_process
        {
            work.end();
        }
        agent.process = None;
        agent.absent_until = Some(self.now.get() + absent);
        self.servers.left_frozen += agent.machine.borrow().frozen_servers();
        self.add(host, "", absent, Happening::Return);
    }

    pub(super) fn deliver(&mut self, host: usize, session: &str, to_agent: bool, bytes: &[u8]) {
        let now = self.now.get();
        let line = match to_agent {
            true => {
                let process = self.linked_process(host, session);
                process.and_then(|process| process.borrow_mut().end.receive(bytes, now))
            }
            false => {
                let near = self.near.get_mut(session);
                near.and_then(|near| {
                    near.was_heard = true;
                    near.end.receive(bytes, now)
                })
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
                .linked_process(host, session)
                .map(|process| process.borrow_mut().end.beat(now)),
            false => self.near.get_mut(session).map(|near| {
                let silent = near.end.silent_for(now);
                if near.was_heard && silent > SILENCE_MAX + LINK_BUSY_MAX {
                    let breach = format!("a link was kept after {silent:?} of silence");
                    self.breaches.push(breach);
                }
                near.end.beat(now)
            }),
        };
        if let Some(frames) = frames {
            self.carry(host, session, !at_agent, frames);
            self.add(host, session, LinkEnd::BEAT, Happening::Beat { at_agent });
        }
    }

    /// An order reaches a process.
    fn obey(&mut self, host: usize, session: &str, line: &[u8]) {
        let Some(process) = self.process(host, session) else {
            return;
        };
        if line == BYE {
            process.borrow_mut().has_ended = true;
            return;
        }
        match self.role {
            Role::Load => self.obey_load(host, &process, line),
            Role::Servers => self.obey_servers(host, &process, line),
        }
    }

    /// The answer of an agent to a question, if it answers.
    pub(super) fn answer_of_agent(
        &mut self,
        host: usize,
        subject: &str,
        question: &[u8],
    ) -> Vec<u8> {
        let (name, work) = (self.role.hosts()[host], self.role.work().word());
        if subject == clock_subject(name) {
            return self.host_ns(host).to_string().into_bytes();
        }
        if subject == session_subject(work, name) {
            return self.agents[host].desk.session().into_bytes();
        }
        assert_eq!(subject, attach_subject(work, name));
        let agent = &mut self.agents[host];
        let offer = Offer {
            role: self.role,
            now: Rc::clone(&self.now),
            machine: Rc::clone(&agent.machine),
            started: RefCell::new(None),
        };
        let held_for = agent.desk.request().map(|one| one.orchestrator.clone());
        let reply = agent.desk.attach(&offer, question);
        let holds = agent.desk.request().map(|one| &one.orchestrator);
        if held_for.is_some() && held_for.as_ref() != holds {
            let breach = format!("a host of {held_for:?} was given to {holds:?}");
            self.breaches.push(breach);
        }
        if let Some(process) = offer.started.take() {
            let session = process.borrow().session.clone();
            agent.process = Some(process);
            let at_agent = true;
            self.add(host, &session, LinkEnd::BEAT, Happening::Beat { at_agent });
        }
        serde_json::to_vec(&reply).expect("a reply is JSON")
    }

    /// Another contest asks for the host, and must not get it while it is held.
    fn ask_as_stranger(&mut self, host: usize) {
        let holder = self.agents[host].desk.request();
        let Some(holder) = holder.map(|request| request.contest.clone()) else {
            return;
        };
        if self.is_absent(host) {
            return;
        }
        let work = self.role.work();
        let subject = attach_subject(work.word(), self.role.hosts()[host]);
        let request = AttachRequest {
            protocol: PROTOCOL,
            dbduel: String::new(),
            orchestrator: "stranger".to_owned(),
            contest: "stranger".to_owned(),
            session: "stranger".to_owned(),
            work,
        };
        let question = serde_json::to_vec(&request).expect("a request is JSON");
        let reply = self.answer_of_agent(host, &subject, &question);
        match serde_json::from_slice(&reply).expect("its own reply") {
            AttachReply::Busy { contest, .. } if contest == holder => {
                self.strangers_refused += 1;
            }
            other => self.breaches.push(format!("a stranger got {other:?}")),
        }
    }

    /// Checks what must hold of every link and agent when a contest is over for long.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(breach) = self.breaches.first() {
            return Err(breach.clone());
        }
        for ((session, to_agent), lines) in &self.lines {
            if !lines.sent.starts_with(&lines.delivered) {
                return Err(format!(
                    "lines of {session} (to the agent: {to_agent}) were lost, repeated or reordered"
                ));
            }
        }
        let mut agents = self.agents.iter();
        if agents.any(|agent| agent.desk.request().is_some()) {
            return Err("an agent works for a contest that is over".to_owned());
        }
        Ok(())
    }

    /// Checks that hosts are free soon after an orderly end on a network without faults.
    pub(super) fn check_released(&self, since: Instant) -> Result<(), String> {
        let now = self.now.get();
        let overlaps = |cut: &Range<Instant>| cut.start <= now && since <= cut.end;
        let mut cuts = self.weather.cuts.iter();
        let is_calm = self.weather.lost_share == 0.0 && !cuts.any(|(cut, _)| overlaps(cut));
        let is_held = |agent: &Agent| agent.desk.request().is_some();
        match is_calm && self.agents.iter().any(is_held) {
            true => Err("a host was not released at the end of its contest".to_owned()),
            false => Ok(()),
        }
    }
}

impl Weather {
    fn draw(random: &mut Random, began: Instant, role: Role) -> Self {
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
            kills: usize::from(random.below(4) == 0),
            crashes: usize::from(role == Role::Servers && random.below(3) == 0),
        };
        for _ in 0..random.below(3) {
            let begins = began + Duration::from_secs_f64(role.faults_s() * random.uniform());
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
        total <= BREAK_MAX && self.restarts + self.kills + self.crashes == 0
    }
}

pub(super) fn ns_since(began: Instant, now: Instant) -> u64 {
    CLOCK_NS + (now - began).as_nanos() as u64
}
