//! The simulated world of a contest: its time, its machine, its servers and its load, and the faults that strike them.
//!
//! Everything that the contest asks of its servers and its load is a call, and calls are counted: a fault strikes at the n-th one.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dbduel_machine::clock::{Clocks, simulated};
use dbduel_machine::interrupt;
use dbduel_record::plan::Contender;
use dbduel_stats::random::RandomStream;
use dbduel_stats::simulate::{Machine, NASTY, QUIET, TYPICAL};
use dbduel_testkit::faulty_files::FaultyFiles;

use super::faults::Fault;

/// How long a call takes.
const CALL: Duration = Duration::from_millis(1);
/// Calls that a failure shows, at most.
const SHOWN_MAX: usize = 40;
/// Throughput of one client on a machine without noise, transactions per second.
const RATE_PER_S: f64 = 400.0;
/// Relative speeds: equal, nearly equal, and far apart.
const SPEEDS: [f64; 5] = [1.0, 1.0, 1.03, 1.2, 0.5];
/// How a server without warm caches is slower, and how fast that fades under load.
const COLD_SHARE: f64 = 0.4;
const WARM_S: f64 = 0.5;

/// Panic payload of a kill: nothing of a killed process runs after it.
#[derive(Debug)]
pub struct Killed;

/// Violations of rules that hold under every fault. Collected, because a contest would take an error for that of a
/// server.
#[derive(Debug, Default)]
pub struct Breaches(pub Vec<String>);

/// A simulated server.
#[derive(Debug, Default)]
pub struct ServerState {
    pub name: String,
    /// ln of its speed.
    pub level: f64,
    pub is_started: bool,
    pub is_frozen: bool,
    /// How it ended by itself.
    pub died: Option<String>,
    /// Connections to it stay, and answer nothing, although it has ended.
    pub leaves_connections: bool,
    /// A slice has ended that was driven on what it left behind.
    pub was_driven_dead: bool,
    /// How often it was started.
    pub starts: u32,
    /// It was running when its handle was dropped, which ends it: the contest did not stop it.
    pub was_dropped: bool,
    /// How often it will refuse to start.
    pub refusals: u32,
    /// How long it will answer nothing, seconds.
    pub stall_s: f64,
    /// Load since it was started, seconds.
    pub loaded_s: f64,
}

impl ServerState {
    pub fn runs(&self) -> bool {
        self.is_started && self.died.is_none()
    }
}

/// The load's side of a contender.
#[derive(Debug, Clone, Copy)]
pub struct Clients {
    /// The start of the server that they are connected to.
    pub of_start: u32,
    pub number: u32,
    /// They go on until they are halted.
    pub is_under_load: bool,
}

/// Faults that strike the load next.
#[derive(Debug, Default)]
pub struct LoadState {
    /// Load processes that run.
    pub running: u32,
    pub failure: Option<String>,
    pub clients: BTreeMap<String, Clients>,
    /// How long it will do nothing, seconds.
    pub stall_s: f64,
    /// Its next answer makes no sense.
    pub is_garbled: bool,
    /// Connections that will be refused.
    pub refusals: u32,
}

/// All of it.
#[derive(Debug)]
pub struct World {
    pub random: RandomStream,
    machine: Machine,
    /// ln of the machine's level now, and the second for which it holds.
    level: (f64, u64),
    pub servers: Vec<ServerState>,
    pub load: LoadState,
    /// Round trip to the load, seconds.
    pub round_trip_s: f64,
    pub breaches: Breaches,
    files: Arc<FaultyFiles>,
    is_killed: bool,
    calls: usize,
    faults: Vec<(usize, Fault)>,
    /// Faults that have struck.
    pub struck: Vec<Fault>,
    /// True when a fault on the next start, answer or connection has struck one.
    pub had_effect: bool,
    /// The last calls, and what struck.
    log: VecDeque<String>,
    /// Time of load that faults have added to what was planned, seconds.
    pub delayed_s: f64,
}

/// A handle of the world.
#[derive(Debug, Clone)]
pub struct Shared(pub Rc<RefCell<World>>);

impl World {
    /// A world without faults, in which each of these contenders has a speed of its own.
    pub fn new(seed: u64, contenders: &[Contender]) -> Self {
        let mut random = RandomStream::new(seed, 7);
        let noise = [QUIET, TYPICAL, NASTY][random.below(3)];
        let servers = contenders.iter().map(|contender| ServerState {
            name: contender.name.clone(),
            level: SPEEDS[random.below(SPEEDS.len())].ln(),
            ..ServerState::default()
        });
        let servers = servers.collect();
        Self {
            machine: Machine::new(noise, seed),
            level: (0.0, 0),
            servers,
            load: LoadState::default(),
            round_trip_s: 0.0,
            breaches: Breaches::default(),
            files: Arc::new(FaultyFiles::none()),
            is_killed: false,
            calls: 0,
            faults: Vec::new(),
            struck: Vec::new(),
            had_effect: false,
            log: VecDeque::new(),
            delayed_s: 0.0,
            random,
        }
    }

    /// Begins a process that these faults strike at the calls with these numbers. Servers left behind by the one before
    /// have been ended.
    pub fn begin(&mut self, files: &Arc<FaultyFiles>, faults: Vec<(usize, Fault)>) {
        self.files = Arc::clone(files);
        self.faults = faults;
        self.calls = 0;
        self.is_killed = false;
        self.had_effect = false;
        self.load = LoadState::default();
        for server in &mut self.servers {
            server.is_started = false;
            server.is_frozen = false;
            server.died = None;
            server.leaves_connections = false;
            server.refusals = 0;
            server.was_dropped = false;
            server.stall_s = 0.0;
        }
    }

    /// How many calls were made since it began.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// True once the process was killed.
    pub fn is_killed(&self) -> bool {
        self.is_killed || self.files.is_over()
    }

    /// The last calls and faults.
    pub fn last(&self) -> String {
        Vec::from_iter(self.log.iter().cloned()).join("\n")
    }

    fn note(&mut self, what: &str) {
        if self.log.len() == SHOWN_MAX {
            self.log.pop_front();
        }
        let at_s = Clocks::now().awake.as_secs_f64();
        self.log
            .push_back(format!("{at_s:10.3} s {:6} {what}", self.calls));
    }

    pub fn breach(&mut self, what: String) {
        self.note(&format!("BREACH {what}"));
        self.breaches.0.push(what);
    }

    /// Speed of a server now, transactions per second of `clients` clients that are never idle.
    pub fn rate_per_s(&mut self, server: usize, clients: u32) -> f64 {
        let second = Clocks::now().awake.as_secs();
        if self.level.1 != second {
            self.level = (self.machine.step(), second);
        }
        let server = &self.servers[server];
        let cold = COLD_SHARE * (-server.loaded_s / WARM_S).exp();
        RATE_PER_S * f64::from(clients).sqrt() * (server.level + self.level.0).exp() * (1.0 - cold)
    }

    fn strike(&mut self, fault: Fault) {
        self.note(&format!("FAULT {fault:?}"));
        self.struck.push(fault);
        let all = self.servers.len();
        match fault {
            Fault::ServerDies {
                server,
                leaves_connections,
            } => {
                let server = &mut self.servers[server % all];
                if server.runs() {
                    server.died = Some("signal 9; its log ends: nothing".to_owned());
                    server.leaves_connections = leaves_connections;
                }
            }
            Fault::ServerStalls { server, seconds } => {
                self.servers[server % all].stall_s += seconds;
            }
            Fault::ServerDoesNotStart { server } => self.servers[server % all].refusals += 1,
            Fault::LoadDies => {
                self.load.failure = Some("the load process ended: signal 9".to_owned());
            }
            Fault::LoadStalls { seconds } => self.load.stall_s += seconds,
            Fault::LoadAnswersGarbage => self.load.is_garbled = true,
            Fault::ClientsRefused => self.load.refusals += 1,
            Fault::Interrupt => interrupt::request(),
            Fault::ClockStep { seconds } => simulated::step(seconds),
            Fault::Suspended { seconds } => simulated::suspend(Duration::from_secs_f64(seconds)),
            Fault::Killed => self.is_killed = true,
        }
    }
}

impl Shared {
    /// Notes a call, lets time pass, and lets strike what is due. A killed process gets no further.
    pub fn call(&self, what: impl FnOnce() -> String) {
        let is_killed = {
            let mut world = self.0.borrow_mut();
            world.calls += 1;
            let what = what();
            world.note(&what);
            simulated::pass(CALL);
            let calls = world.calls;
            while let Some(at) = world.faults.iter().position(|(at, _)| *at <= calls) {
                let (_, fault) = world.faults.remove(at);
                world.strike(fault);
            }
            world.is_killed()
        };
        if is_killed {
            self.0.borrow_mut().is_killed = true;
            // Without the hook that prints: it is no failure.
            std::panic::resume_unwind(Box::new(Killed));
        }
    }
}
