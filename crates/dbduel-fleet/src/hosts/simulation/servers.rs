//! Contests with servers on two hosts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use dbduel_client::random::Random;
use dbduel_lab::contest::Backend as _;
use dbduel_lab::contest::backend::Health;
use dbduel_lab::drive::HostAccess;
use dbduel_lab::outage::{CUT_OFF_TIMEOUT, SILENCE_MAX};
use dbduel_lab::server_host::orders::{ServerAnswer, ServerOrder};
use dbduel_lab::server_host::{
    RemoteServer, RemoteWatch, ServerHostMissing, ServerHosts, ServerLink,
};
use dbduel_machine::clock;
use dbduel_machine::clock::simulated::SimulatedTime;
use dbduel_record::Plan;
use dbduel_server::{Home, Silent};
use dbduel_testkit::synthetic::Scenario;

use super::super::servers::link::{self, refuse};
use super::super::{Asker, Event, Stop};
use super::server_process::{CRASH, watch_of};
use super::world::{CONTEST, RELEASE_TIMEOUT, Role, World};
use super::{Actor, Kinds, Simulated, SimulatedLink, simulate_all};

/// Turns of a contest.
const TURNS: usize = 30;
/// Most processes of one orchestrator after the other.
const LIVES_MAX: usize = 12;
/// Attempts to recover a server.
const RECOVERIES_MAX: usize = 20;
/// Folder of the sandboxes.
const RUN: &str = "run";
/// Time for a link to end when its input has ended, as for any process with orders.
const END_TIMEOUT: Duration = Duration::from_secs(2);

thread_local! {
    /// The links of the simulation that runs on this thread.
    static CURRENT: RefCell<Option<Rc<Links>>> = const { RefCell::new(None) };
}

/// The link processes of an orchestrator.
struct Links {
    network: RefCell<Option<Simulated>>,
    /// Identity of the orchestrator.
    orchestrator: RefCell<String>,
    processes: RefCell<BTreeMap<u64, LinkProcess>>,
    begun: Cell<u64>,
    is_acting: Cell<bool>,
    /// When the orchestrator is killed, and whether its links are killed too.
    killed: Cell<Option<(Instant, bool)>>,
}

/// A link process.
struct LinkProcess {
    /// `None` once it has ended, and while it acts.
    link: Option<link::ServerLink<SimulatedLink>>,
    has_ended: bool,
    orders: Sender<Event<ServerOrder>>,
    output: Output,
}

/// The output of a link process.
#[derive(Clone, Default)]
struct Output(Rc<RefCell<(Vec<u8>, VecDeque<ServerAnswer>)>>);

impl Output {
    fn next(&self) -> Option<ServerAnswer> {
        self.0.borrow_mut().1.pop_front()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (line, answers) = &mut *self.0.borrow_mut();
        for &byte in bytes {
            if byte == b'\n' {
                let answer = serde_json::from_slice(&std::mem::take(line));
                answers.push_back(answer.expect("an answer"));
            } else {
                line.push(byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Links {
    fn current() -> Rc<Self> {
        let current = CURRENT.with_borrow(Clone::clone);
        current.expect("a simulation runs on this thread")
    }

    fn network(&self) -> Simulated {
        let network = self.network.borrow().clone();
        network.expect("a simulation has a network")
    }

    fn is_killed(&self) -> bool {
        let killed = self.killed.get();
        killed.is_some_and(|(at, _)| at <= clock::now())
    }

    fn check_killed(&self) -> Result<()> {
        ensure!(!self.is_killed(), "the orchestrator was killed");
        Ok(())
    }

    /// Begins a process of the orchestrator.
    fn begin(&self, orchestrator: String, killed: Option<(Instant, bool)>) {
        self.orchestrator.replace(orchestrator);
        self.killed.set(killed);
    }

    /// Attaches a host. The second answer is the reason where it is not attached.
    fn attach(
        &self,
        host: &str,
        contest: &str,
        orchestrator: &str,
    ) -> (LinkProcess, Option<String>) {
        let (orders, inbox) = channel();
        let asker = Asker {
            contest: contest.to_owned(),
            orchestrator: orchestrator.to_owned(),
        };
        let mut output = Output::default();
        let events = (inbox, &orders);
        let attached = link::ServerLink::attach(&self.network(), host, &asker, events, &mut output);
        let (link, why) = match attached {
            Ok(link) => (Some(link), None),
            Err(Stop::Unreachable(why)) => (None, Some(why)),
            Err(Stop::End | Stop::Output(_)) => panic!("its input and output are open"),
        };
        let process = LinkProcess {
            has_ended: link.is_none(),
            link,
            orders,
            output,
        };
        (process, why)
    }

    /// Lets each link pass on an event, if it has one.
    fn act_each(&self, network: &Simulated) {
        let numbers: Vec<u64> = self.processes.borrow().keys().copied().collect();
        for number in numbers {
            let taken = self
                .processes
                .borrow_mut()
                .get_mut(&number)
                .and_then(|one| {
                    let link = one.link.take()?;
                    Some((link, one.output.clone()))
                });
            let Some((mut link, mut output)) = taken else {
                continue;
            };
            let passed = link.pass_event(network, Duration::ZERO, &mut output);
            let link = match passed {
                Ok(()) => Some(link),
                Err(stop) => {
                    link.end();
                    if let Stop::Unreachable(why) = stop {
                        refuse(output, why).expect("an output in memory");
                    }
                    None
                }
            };
            if let Some(process) = self.processes.borrow_mut().get_mut(&number) {
                process.has_ended = link.is_none();
                process.link = link;
            }
        }
    }

    /// The orchestrator is killed: the input of its links ends, or they are killed too.
    fn kill(&self, with_links: bool) {
        match with_links {
            true => drop(self.processes.take()),
            false => self.processes.borrow().values().for_each(end_input),
        }
    }
}

fn end_input(process: &LinkProcess) {
    // One that has ended takes no orders.
    let _ = process.orders.send(Event::End);
}

impl Actor for Links {
    fn act(&self, network: &Simulated) {
        // While a link waits for its network, the others wait too.
        if self.is_acting.replace(true) {
            return;
        }
        if let Some((_, with_links)) = self.killed.get().filter(|_| self.is_killed()) {
            self.kill(with_links);
        }
        self.act_each(network);
        self.is_acting.set(false);
    }
}

/// Access of a contest to the simulation that runs on its thread.
#[derive(Debug)]
struct SimulatedAccess;

impl HostAccess for SimulatedAccess {
    fn add_to(&self, _command: &mut Command) {}

    fn store_server(&self, digest: &str, _packed: &Path, _about: &str) -> Result<()> {
        bail!("{digest}: a simulated contest sends no server")
    }

    fn server_link(&self, host: &str, contest: &str) -> Result<Box<dyn ServerLink>> {
        let links = Links::current();
        links.check_killed()?;
        let orchestrator = links.orchestrator.borrow().clone();
        let (process, why) = links.attach(host, contest, &orchestrator);
        if let Some(why) = why {
            refuse(process.output.clone(), why)?;
        }
        let number = links.begun.get();
        links.begun.set(number + 1);
        links.processes.borrow_mut().insert(number, process);
        Ok(Box::new(ContestEnd {
            host: host.to_owned(),
            number,
        }))
    }
}

/// The contest's end of a link process.
#[derive(Debug)]
struct ContestEnd {
    host: String,
    number: u64,
}

impl ServerLink for ContestEnd {
    fn send(&mut self, order: &ServerOrder) -> Result<(), String> {
        let order = serde_json::to_vec(order).expect("an order is JSON");
        let order = serde_json::from_slice(&order).expect("its own text");
        let links = Links::current();
        let processes = links.processes.borrow();
        let process = processes.get(&self.number);
        let sent = process.map(|process| process.orders.send(Event::Order(order)));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("it accepts no more orders")),
        }
    }

    fn answer_within(
        &mut self,
        pause: Duration,
        deadline: Instant,
    ) -> Result<Option<ServerAnswer>, String> {
        let links = Links::current();
        let until = clock::now() + pause;
        loop {
            links.check_killed().map_err(|error| error.to_string())?;
            let next = links.processes.borrow().get(&self.number).map(|process| {
                let answer = process.output.next();
                let is_last = answer.is_none() && process.has_ended;
                (answer, is_last)
            });
            match next {
                Some((Some(answer), _)) => return Ok(Some(answer)),
                Some((None, false)) if clock::now() < until => {
                    links.network().step_until(until);
                }
                Some((None, false)) if clock::now() < deadline => return Ok(None),
                Some((None, false)) => return Err(self.failed("it did not answer in time")),
                Some((None, true)) | None => return Err(self.failed("it closed its output")),
            }
        }
    }

    fn failed(&mut self, what: &str) -> String {
        format!("the link to server host `{}` failed: {what}", self.host)
    }
}

impl Drop for ContestEnd {
    /// As a link process is ended: its input ends, and it has a time to end.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let links = Links::current();
        if links.is_killed() {
            return;
        }
        let is_running = || {
            let processes = links.processes.borrow();
            let process = processes.get(&self.number);
            process.is_some_and(|process| !process.has_ended)
        };
        if let Some(process) = links.processes.borrow().get(&self.number) {
            end_input(process);
        }
        let deadline = clock::now() + END_TIMEOUT;
        while is_running() && clock::now() < deadline {
            links.network().step_until(deadline);
        }
        let ended = links.processes.borrow_mut().remove(&self.number);
        drop(ended);
    }
}

/// A turn that counts.
struct FinishedTurn {
    contender: usize,
    watch: u64,
    host: usize,
    took: Range<Instant>,
}

/// A contest: its orders, in the sequence of those of a real one.
struct Contest {
    links: Rc<Links>,
    plan: Plan,
    random: Random,
    turns_left: usize,
    /// True once its servers are being removed.
    is_closing: bool,
    has_data: Vec<bool>,
    finished: Vec<FinishedTurn>,
    /// Why turns were lost.
    lost: Vec<String>,
    recoveries: usize,
    /// What other contests that asked for a host were answered.
    refusals: Vec<String>,
}

impl Contest {
    fn new(links: Rc<Links>, seed: u64) -> Self {
        let mut plan = Scenario::duel().plan();
        // Two servers on one host, and one on the other.
        let mut third = plan.contenders[0].clone();
        third.name = "third".to_owned();
        plan.contenders.push(third);
        let [first, second] = Role::Servers.hosts();
        for (contender, host) in plan.contenders.iter_mut().zip([first, second, first]) {
            contender.host = Some(host.to_owned());
        }
        Self {
            links,
            has_data: vec![false; plan.contenders.len()],
            plan,
            random: Random::new(!seed),
            turns_left: TURNS,
            is_closing: false,
            finished: Vec::new(),
            lost: Vec::new(),
            recoveries: 0,
            refusals: Vec::new(),
        }
    }

    fn pass(&self, time: Duration) {
        self.links.network().pass_until(clock::now() + time);
    }

    /// Conducts the contest until it is over, fails or is killed.
    fn conduct(&mut self) -> Result<()> {
        let access: Arc<dyn HostAccess> = Arc::new(SimulatedAccess);
        let home = Home::new("");
        let hosts = ServerHosts::attach(&self.plan, Some(&access), CONTEST)?;
        let mut servers = Vec::new();
        for number in 0..self.plan.contenders.len() {
            let mut server =
                RemoteServer::prepare(&hosts, &self.plan, number, RUN, &home, &Silent)?;
            let (_, has_kept) = server.start(self.has_data[number])?;
            ensure!(
                has_kept || !self.has_data[number],
                "the data of contender {number} are gone"
            );
            self.has_data[number] = true;
            server.freeze()?;
            servers.push(server);
        }
        for server in &mut servers {
            self.connect(server)?;
        }
        while self.turns_left > 0 {
            self.links.check_killed()?;
            self.turns_left -= 1;
            let contender = self.random.below(servers.len() as u64) as usize;
            self.take_turn(&mut servers[contender], contender)?;
            if self.random.below(20) == 0 {
                self.ask_as_other_contest();
            }
        }
        self.is_closing = true;
        for mut server in servers {
            server.thaw()?;
            server.stop(&self.plan.limits)?;
            Box::new(server).remove()?;
        }
        self.links.check_killed()
    }

    /// Connects the clients of a server; one that has ended is recovered.
    fn connect(&mut self, server: &mut RemoteServer) -> Result<()> {
        match server.thaw()? {
            Health::Alive => {
                server.forget_silence();
                server.freeze().map(drop)
            }
            Health::Dead { how } => {
                self.links.check_killed()?;
                self.lost.push(how);
                self.recover(server)
            }
        }
    }

    fn take_turn(&mut self, server: &mut RemoteServer, contender: usize) -> Result<()> {
        let began = clock::now();
        let outcome = match server.thaw()? {
            Health::Alive => self.run_turn(server),
            Health::Dead { how } => Err(how),
        };
        let ended = clock::now();
        let outcome = match (server.freeze()?, outcome) {
            (Health::Dead { how }, Ok(_)) => Err(how),
            (_, outcome) => outcome,
        };
        self.links.check_killed()?;
        match outcome {
            Ok(watch) => {
                let host = server.host_name();
                let host = self.links.network().world.borrow().host_of(&host);
                let took = began..ended;
                self.finished.push(FinishedTurn {
                    contender,
                    watch,
                    host,
                    took,
                });
                Ok(())
            }
            Err(why) => {
                self.lost.push(why);
                self.recover(server)
            }
        }
    }

    /// Loads an awake server for a turn; returns the number of the watch over it, or why the turn is lost.
    fn run_turn(&mut self, server: &mut RemoteServer) -> Result<u64, String> {
        let watch = server.watch();
        let length = Duration::from_secs_f64(0.2 + 2.0 * self.random.uniform());
        if let Some(Ok(watch)) = &watch {
            let opens = clock::now();
            watch.measure(&(opens..opens + length));
        }
        self.pass(length);
        let asks_host = matches!(watch, Some(Ok(_)));
        let seen = watch.map(|watch| watch.and_then(RemoteWatch::finish));
        if let Some(silence) = server.silence(!asks_host) {
            return Err(silence);
        }
        let seen = seen.unwrap_or_else(|| Err("its host does not watch".to_owned()))?;
        watch_of(seen).ok_or_else(|| "its host did not watch".to_owned())
    }

    /// Starts a server again that has ended, and connects its clients.
    fn recover(&mut self, server: &mut RemoteServer) -> Result<()> {
        for _ in 0..RECOVERIES_MAX {
            self.links.check_killed()?;
            match self.try_to_recover(server) {
                Ok(()) => return server.freeze().map(drop),
                Err(error) if error.is::<ServerHostMissing>() => return Err(error),
                Err(_) => self.pass(Duration::from_secs(1)),
            }
        }
        bail!("a server was not recovered")
    }

    fn try_to_recover(&mut self, server: &mut RemoteServer) -> Result<()> {
        if let Health::Dead { .. } = server.health() {
            server.restart(&self.plan.limits)?;
            self.recoveries += 1;
        }
        if let Health::Dead { how } = server.thaw()? {
            return Err(anyhow!(how));
        }
        server.forget_silence();
        Ok(())
    }

    /// Another contest asks for a host of this one.
    fn ask_as_other_contest(&mut self) {
        let hosts = Role::Servers.hosts();
        let host = hosts[self.random.below(hosts.len() as u64) as usize];
        let (process, why) = self.links.attach(host, "other", "other");
        match (process.link, why) {
            // The world checks that it was free.
            (Some(link), _) => link.end(),
            (None, why) => self.refusals.extend(why),
        }
    }
}

/// Simulates a contest; the error says which property does not hold.
fn simulate(seed: u64) -> Result<Kinds, String> {
    let time = SimulatedTime::begin();
    let links = Rc::new(Links {
        network: RefCell::new(None),
        orchestrator: RefCell::default(),
        processes: RefCell::default(),
        begun: Cell::default(),
        is_acting: Cell::default(),
        killed: Cell::default(),
    });
    let simulated = Simulated {
        world: Rc::new(RefCell::new(World::new(seed, Role::Servers))),
        actor: Rc::clone(&links) as Rc<dyn Actor>,
    };
    links.network.replace(Some(simulated.clone()));
    CURRENT.set(Some(Rc::clone(&links)));
    let mut contest = Contest::new(Rc::clone(&links), seed);
    let mut kill = (contest.random.below(3) == 0).then(|| {
        let after = Duration::from_secs_f64(90.0 * contest.random.uniform());
        (clock::now() + after, contest.random.below(2) == 0)
    });
    let is_killed = kill.is_some();
    let began = clock::now();
    // Why processes of the orchestrator ended; nothing for one that was killed.
    let mut ends: Vec<Option<String>> = Vec::new();
    let mut failure = None;
    let mut is_closed = false;
    while !contest.is_closing && failure.is_none() && ends.len() < LIVES_MAX {
        links.begin(format!("orchestrator-{}", ends.len()), kill);
        match contest.conduct() {
            Ok(()) => is_closed = true,
            Err(_) if links.is_killed() => {
                kill = None;
                ends.push(None);
            }
            Err(error) if error.is::<ServerHostMissing>() => ends.push(Some(format!("{error:#}"))),
            Err(error) => failure = Some(format!("the contest ended: {error:#}")),
        }
        if !contest.is_closing {
            let after = Duration::from_secs_f64(60.0 * contest.random.uniform());
            contest.pass(after);
        }
    }
    let ended = clock::now();
    simulated.pass_until(ended + RELEASE_TIMEOUT);
    let released = match is_closed {
        true => simulated.world.borrow().check_released(ended - END_TIMEOUT),
        false => Ok(()),
    };
    // Until agents that were killed have been started again.
    simulated.pass_until(ended + SILENCE_MAX + Duration::from_secs(220));
    let world = simulated.world.borrow();
    let checked = match failure {
        Some(failure) => Err(failure),
        None => released
            .and_then(|()| world.check())
            .and_then(|()| check(&world, &contest, &ends, is_closed)),
    };
    let longest =
        Duration::from_secs(900) + (CUT_OFF_TIMEOUT + SILENCE_MAX) * ends.len() as u32 * 2;
    let checked = checked.and_then(|kinds| match ended - began <= longest {
        true => Ok(kinds),
        false => Err(format!("it took {:?}, {longest:?} at most", ended - began)),
    });
    links.network.replace(None);
    CURRENT.set(None);
    drop(time);
    checked.map_err(|why| {
        format!(
            "seed {seed}: {why}\n{:?}\nkilled: {is_killed}",
            world.weather
        )
    })
}

/// Checks what must hold at the end.
fn check(
    world: &World,
    contest: &Contest,
    ends: &[Option<String>],
    is_closed: bool,
) -> Result<Kinds, String> {
    let hosts = Role::Servers.hosts();
    let names_host = |why: &str| hosts.iter().any(|host| why.contains(host));
    let mut kinds = Kinds::new();
    let mut count = |kind| *kinds.entry(kind).or_default() += 1;
    let mut watches = BTreeSet::new();
    for turn in &contest.finished {
        count("turn finished");
        let contender = turn.contender;
        if !watches.insert(turn.watch) {
            return Err(format!("a turn of contender {contender} was repeated"));
        }
        if world.servers.watches.get(&turn.watch) != Some(&true) {
            return Err(format!(
                "a server was not awake in a finished turn of contender {contender}"
            ));
        }
        world.check_in_reach(turn.host, &turn.took)?;
    }
    for why in &contest.lost {
        count(match why.contains(CRASH) {
            true => "server ended by itself",
            false => "turn lost by name",
        });
        if !names_host(why) && !why.contains(CRASH) {
            return Err(format!("a lost turn names no host: {why}"));
        }
    }
    for why in ends {
        let Some(why) = why else {
            count("orchestrator killed");
            continue;
        };
        count("contest ended by name");
        if !names_host(why) {
            return Err(format!("an end names no host: {why}"));
        }
    }
    for why in &contest.refusals {
        if !names_host(why) {
            return Err(format!("another contest was refused without a host: {why}"));
        }
        if why.contains(&format!("for another contest ({CONTEST})")) {
            count("second contest refused");
        }
    }
    for _ in 0..contest.recoveries {
        count("server started again");
    }
    for _ in 0..world.strangers_refused {
        count("stranger refused");
    }
    for _ in 0..world.servers.left_frozen {
        count("frozen server left by its agent");
    }
    if !contest.is_closing {
        return Err(format!("the contest did not end: {ends:?}"));
    }
    if contest.finished.len() + contest.lost.len() < TURNS - ends.len() {
        return Err(format!(
            "{} turns were finished and {} lost",
            contest.finished.len(),
            contest.lost.len()
        ));
    }
    if world.weather.is_mild() {
        count("mild weather");
        let ended = ends.iter().flatten().next();
        if let Some(why) = ended {
            return Err(format!("a short break cost a session: {why}"));
        }
        if contest.recoveries > 0 && ends.is_empty() {
            return Err("a short break cost a server".to_owned());
        }
    }
    for agent in &world.agents {
        let machine = agent.machine.borrow();
        if machine.has_servers() {
            return Err("a server is left".to_owned());
        }
        if is_closed && machine.has_sandboxes() {
            return Err("a sandbox is left".to_owned());
        }
    }
    Ok(kinds)
}

#[test]
fn no_server_or_turn_is_lost_by_a_network_with_faults_and_killed_agents() {
    simulate_all(100, 10, simulate);
}
