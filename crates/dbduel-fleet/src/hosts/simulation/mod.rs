//! The link to load hosts and their agents in a simulated network, which loses, repeats, delays and reorders frames, is cut
//! for a time, and whose agents are restarted, all drawn from one seed.
//!
//! Simulated are the network, the load processes and the contest that gives the orders. The protocol of lines, the link of
//! the contest and the decisions of the agents are the real ones. A failure is replayed by its seed:
//! `DBDUEL_SIMULATE_FROM=<seed> DBDUEL_SIMULATE=1 cargo test -p dbduel-fleet --lib simulation`.

mod world;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use dbduel_client::random::Random;
use dbduel_lab::outage::{ABSENT_TIMEOUT, CUT_OFF_TIMEOUT, SILENCE_MAX};
use dbduel_load::order::{Answer, Order, SliceAnswer, SliceOrder};
use dbduel_machine::clock;
use dbduel_machine::clock::simulated::{self, SimulatedTime};
use dbduel_nats::{Exchange, LinkEnd, NatsError};
use dbduel_record::commits::CommitRange;
use dbduel_record::plan::Arrival;
use serde_json::json;

use super::load::{LinkConfig, serve};
use super::network::{HostLink, Network};
use super::{Asker, Event};
use world::{Happening, NearEnd, World, ns_since};

const HOSTS: [&str; 2] = ["load1", "load2"];
/// Between two questions to one agent.
const QUESTION_GAP: Duration = Duration::from_millis(2);
/// Timeout of a question.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Most links of one contest.
const LINKS_MAX: usize = 12;

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
