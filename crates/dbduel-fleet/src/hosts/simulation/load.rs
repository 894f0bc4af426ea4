//! Contests with load from two hosts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use dbduel_client::random::Random;
use dbduel_lab::outage::{ABSENT_TIMEOUT, CUT_OFF_TIMEOUT, SILENCE_MAX};
use dbduel_load::order::{Answer, Order, SliceAnswer, SliceOrder};
use dbduel_machine::clock;
use dbduel_machine::clock::simulated::SimulatedTime;
use dbduel_record::commits::CommitRange;
use dbduel_record::plan::Arrival;
use serde_json::json;

use super::super::load::{LinkConfig, serve};
use super::super::{Asker, Event};
use super::world::{CONTEST, RELEASE_TIMEOUT, Role, World};
use super::{Actor, Kinds, Simulated, simulate_all};

/// Most links of one contest.
const LINKS_MAX: usize = 12;
/// Slices of a contest.
const SLICES: usize = 30;

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
    slices_left: usize,
    seed: u64,
    is_slice_open: bool,
    /// When the slice was ordered.
    ordered: Instant,
    was_stopped: bool,
    is_attached: bool,
    is_closed: bool,
    /// With the time from the order of the slice to its result.
    results: BTreeMap<u64, (SliceResult, Range<Instant>)>,
    closed_commits: Vec<CommitRange>,
    /// Why links ended, and whether they had been attached.
    ends: Vec<(bool, String)>,
}

impl Script {
    fn new(now: Rc<Cell<Instant>>, seed: u64) -> Self {
        Self {
            ordered: now.get(),
            now,
            random: Random::new(!seed),
            sender: None,
            due: None,
            slices_left: SLICES,
            seed: 0,
            is_slice_open: false,
            was_stopped: false,
            is_attached: false,
            is_closed: false,
            results: BTreeMap::new(),
            closed_commits: Vec::new(),
            ends: Vec::new(),
        }
    }

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
            if matches!(event, Event::Order(Order::Slice(_))) {
                self.ordered = self.now.get();
            }
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
        let took = self.ordered..self.now.get();
        let before = self.results.insert(self.seed, (result, took));
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

impl Actor for RefCell<Script> {
    fn due(&self) -> Option<Instant> {
        self.borrow().due.as_ref().map(|(at, _)| *at)
    }

    fn act(&self, _network: &Simulated) {
        self.borrow_mut().advance();
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

/// Runs one contest; the error says which property does not hold.
fn simulate(seed: u64) -> Result<Kinds, String> {
    let time = SimulatedTime::begin();
    let world = World::new(seed, Role::Load);
    let script = Rc::new(RefCell::new(Script::new(Rc::clone(&world.now), seed)));
    let simulated = Simulated {
        world: Rc::new(RefCell::new(world)),
        actor: Rc::clone(&script) as Rc<dyn Actor>,
    };
    let config = LinkConfig {
        hosts: Role::Load.hosts().map(str::to_owned).to_vec(),
        asker: Asker {
            contest: CONTEST.to_owned(),
            orchestrator: "orchestrator".to_owned(),
        },
        threads: 1,
        busy_poll_us: 0,
    };
    let began = clock::now();
    for _ in 0..LINKS_MAX {
        let (sender, inbox) = channel();
        script.borrow_mut().begin(sender.clone());
        let output = Output(Rc::clone(&script), Vec::new());
        serve(&simulated, &config, (inbox, &sender), output).map_err(|error| error.to_string())?;
        let script = script.borrow();
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
    let ended = clock::now();
    simulated.pass_until(ended + RELEASE_TIMEOUT);
    let released = match script.borrow().is_closed {
        true => simulated
            .world
            .borrow()
            .check_released(ended - RELEASE_TIMEOUT),
        false => Ok(()),
    };
    simulated.pass_until(ended + SILENCE_MAX + Duration::from_secs(1));
    let (world, script) = (simulated.world.borrow(), script.borrow());
    let checked = released.and_then(|()| check(&world, &script, ended - began));
    drop(time);
    let weather = &world.weather;
    checked.map_err(|why| format!("seed {seed}: {why}\n{weather:?}"))
}

/// Checks what must hold at the end.
fn check(world: &World, script: &Script, took: Duration) -> Result<Kinds, String> {
    world.check()?;
    let hosts = Role::Load.hosts();
    let mut kinds = Kinds::new();
    let mut count = |kind| *kinds.entry(kind).or_default() += 1;
    let mut commits: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut all_commits = script.closed_commits.clone();
    for (slice, (result, took)) in &script.results {
        let SliceResult::Finished(answer) = result else {
            count("slice lost");
            continue;
        };
        let counted = world.load.counted.get(slice).cloned().unwrap_or_default();
        let sum: u64 = counted.values().sum();
        if counted.len() != hosts.len() || answer.classes[0].counts.ok != sum {
            return Err(format!("slice {slice} has not the sum of {counted:?}"));
        }
        all_commits.extend(answer.commits.iter().cloned());
        let costs = answer.orchestration.as_ref().ok_or("no costs")?;
        if let Some(why) = &costs.trouble {
            if !hosts.iter().any(|host| why.contains(host)) {
                return Err(format!("slice {slice} names no host: {why}"));
            }
            count("slice lost by name");
            continue;
        }
        count("slice finished");
        for host in 0..hosts.len() {
            world.check_in_reach(host, took)?;
        }
        let begun = world.load.begun[slice].values();
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
    let committed: u64 = world.load.committed.iter().sum();
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
        if !hosts.iter().any(|host| why.contains(host)) {
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
        if !script.ends.is_empty() || script.results.len() != SLICES {
            return Err(format!("a short break cost a session: {:?}", script.ends));
        }
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

#[test]
fn no_turn_is_lost_or_repeated_by_a_network_that_loses_repeats_and_reorders() {
    simulate_all(100, 7, simulate);
}
