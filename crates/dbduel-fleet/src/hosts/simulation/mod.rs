//! Links to hosts and their agents in a simulated network, which loses, repeats, delays and reorders frames, is cut for a
//! time, and whose agents, processes and servers are killed, all drawn from one seed.
//!
//! [`load`]: a contest with load hosts. [`servers`]: a contest with server hosts. Simulated are the network, the processes
//! of the agents and the contest that gives the orders. The protocol of lines, the links and the decisions of the agents
//! are the real ones; of server hosts also the contest's side of sessions and servers. A failure is replayed by its seed:
//! `DBDUEL_SIMULATE_FROM=<seed> DBDUEL_SIMULATE=1 cargo test -p dbduel-fleet --lib simulation`. [`mutants`] has defects
//! that the simulations must find.

mod load;
mod load_process;
mod mutants;
mod server_process;
mod servers;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant, SystemTime};

use dbduel_machine::clock;
use dbduel_machine::clock::simulated;
use dbduel_nats::{Exchange, LinkEnd, NatsError};

use super::network::{HostLink, Network};
use tests::simulate_all;
use world::{Happening, NearEnd, World, ns_since};

/// Between two questions to one agent.
const QUESTION_GAP: Duration = Duration::from_millis(2);
/// Timeout of a question.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// What acts in a simulation beside its world and its caller.
trait Actor {
    /// When it acts next, where that is known.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does what is due now.
    fn act(&self, network: &Simulated);
}

/// The simulated network.
#[derive(Clone)]
struct Simulated {
    world: Rc<RefCell<World>>,
    actor: Rc<dyn Actor>,
}

/// A session of the simulated network.
struct SimulatedLink {
    session: String,
    simulated: Simulated,
}

impl Simulated {
    /// Lets everything happen that is due now.
    fn catch_up(&self) {
        self.world.borrow_mut().advance(clock::now());
        self.actor.act(self);
    }

    /// Lets time pass until the next event, at most until `deadline`.
    fn step_until(&self, deadline: Instant) {
        let next = self.world.borrow().agenda.keys().next().map(|(at, _)| *at);
        let next = next
            .into_iter()
            .chain(self.actor.due())
            .min()
            .unwrap_or(deadline);
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
                let mut world = self.world.borrow_mut();
                let host = world.host_of(subject);
                let there = world.passage(host);
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
            let mut world = self.world.borrow_mut();
            let host = world.host_of(&subjects[place]);
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
        // After a panic the world may be in use.
        if let Ok(mut world) = self.simulated.world.try_borrow_mut() {
            world.near.remove(&self.session);
        }
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
        let mut world = self.world.borrow_mut();
        let near = NearEnd {
            host: world.host_of(sends_on),
            end: LinkEnd::new(clock::now()),
            was_heard: false,
            on_line: Box::new(on_line),
        };
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
            simulated: self.clone(),
        })
    }

    fn ask(&self, subject: &str, question: Vec<u8>) -> Result<Exchange, NatsError> {
        self.catch_up();
        let failed = |why: &str| NatsError::Call {
            action: "ask".to_owned(),
            why: why.to_owned(),
        };
        let host = self.world.borrow().host_of(subject);
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

/// What occurred in simulations, by kind.
type Kinds = BTreeMap<&'static str, usize>;

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of(variable: &str) -> Option<u64> {
        std::env::var(variable).ok()?.parse().ok()
    }

    /// Simulates contests of `seeds` seeds, or of as many as the environment says. They must contain `kinds` kinds of
    /// occurrences.
    #[track_caller]
    pub(super) fn simulate_all(
        seeds: u64,
        kinds: usize,
        simulate: fn(u64) -> Result<Kinds, String>,
    ) {
        let from = number_of("DBDUEL_SIMULATE_FROM").unwrap_or(0);
        let chosen = number_of("DBDUEL_SIMULATE").unwrap_or(seeds);
        let mut seen = Kinds::new();
        let mut failures = Vec::new();
        for seed in from..from.saturating_add(chosen) {
            match simulate(seed) {
                Ok(own) => {
                    for (kind, count) in own {
                        *seen.entry(kind).or_default() += count;
                    }
                }
                Err(why) => failures.push(why),
            }
        }
        println!("{chosen} contests: {seen:?}");
        let (count, first) = (failures.len(), failures.first());
        assert_eq!(
            count,
            0,
            "of {chosen}; the first: {}",
            first.map_or("", |why| why)
        );
        if chosen >= seeds {
            assert_eq!(seen.len(), kinds, "{seen:?}");
        }
    }
}
