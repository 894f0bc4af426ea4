//! Simulated processes of server hosts: sandboxes, and servers that are started, frozen, watched and ended.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use dbduel_lab::observe::{Kind, Observed, Reading};
use dbduel_lab::server_host::HostObserved;
use dbduel_lab::server_host::orders::{ServerAnswer, ServerOrder, ServerTask, StartedServer};
use dbduel_server::{Build, Version};
use serde_json::json;

use super::super::servers::permitted;
use super::world::{Happening, Job, Process, Role, World};

/// How a server ends that ends by itself.
pub(super) const CRASH: &str = "killed by signal 11";
/// Name of the reading with the number of a watch.
const WATCH: &str = "watch";

/// The work of the process of a server host.
#[derive(Debug, Default)]
pub(super) struct ServersJob {
    /// Folders of the prepared sandboxes, by contender.
    prepared: BTreeMap<usize, String>,
    /// Orders that it has not yet executed; the first is being executed.
    queue: VecDeque<ServerOrder>,
}

/// What the servers of a simulation did.
#[derive(Default)]
pub(super) struct ServersLog {
    /// By number: watches that ended, and whether the server was awake all the time.
    pub(super) watches: BTreeMap<u64, bool>,
    begun_watches: u64,
    /// Frozen servers that a killed agent and its process left behind.
    pub(super) left_frozen: usize,
}

/// A running server.
#[derive(Debug)]
struct Server {
    /// The session whose process started it.
    session: String,
    is_frozen: bool,
    /// Number of the watch over it, and whether it was awake since the watch began.
    watch: Option<(u64, bool)>,
}

impl Server {
    fn freeze(&mut self, is_frozen: bool) {
        self.is_frozen = is_frozen;
        if let Some((_, was_awake)) = &mut self.watch {
            *was_awake &= !is_frozen;
        }
    }
}

/// A sandbox on a machine.
#[derive(Debug, Default)]
struct Sandbox {
    has_data: bool,
    /// True once a turn was taken on its data.
    is_measured: bool,
    server: Option<Server>,
    /// How its server ended, if it did.
    ended: String,
}

impl Sandbox {
    fn end_server(&mut self, how: &str) {
        if self.server.take().is_some() {
            self.ended = how.to_owned();
        }
    }
}

/// The machine of a server host.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// By folder and contender.
    sandboxes: BTreeMap<(String, usize), Sandbox>,
}

impl Machine {
    /// A process ends the servers that it started.
    pub(super) fn end_servers_of(&mut self, session: &str) {
        let own = |one: &&mut Sandbox| {
            let server = one.server.as_ref();
            server.is_some_and(|server| server.session == session)
        };
        for sandbox in self.sandboxes.values_mut().filter(own) {
            sandbox.end_server("ended with its process");
        }
    }

    /// An agent that is started ends servers that are left.
    pub(super) fn end_all_servers(&mut self) {
        for sandbox in self.sandboxes.values_mut() {
            sandbox.end_server("ended by the agent");
        }
    }

    /// A server ends by itself.
    pub(super) fn crash_one(&mut self) {
        let mut sandboxes = self.sandboxes.values_mut();
        if let Some(sandbox) = sandboxes.find(|one| one.server.is_some()) {
            sandbox.end_server(CRASH);
        }
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.sandboxes
            .values()
            .filter_map(|one| one.server.as_ref())
    }

    pub(super) fn frozen_servers(&self) -> usize {
        self.servers().filter(|server| server.is_frozen).count()
    }

    pub(super) fn has_servers(&self) -> bool {
        self.servers().next().is_some()
    }

    pub(super) fn has_sandboxes(&self) -> bool {
        !self.sandboxes.is_empty()
    }
}

/// The number of the watch that observed a turn.
pub(super) fn watch_of(seen: HostObserved) -> Option<u64> {
    let mut readings = seen.beside(Observed::default()).readings.into_iter();
    let reading = readings.find(|one| one.metric == WATCH);
    reading.map(|one| one.value as u64)
}

impl Process {
    fn servers(&mut self) -> &mut ServersJob {
        match &mut self.job {
            Job::Servers(job) => job,
            Job::Load(_) => panic!("an order of servers for load"),
        }
    }
}

impl World {
    /// An order reaches the process of a server host, which executes one after the other.
    pub(super) fn obey_servers(
        &mut self,
        host: usize,
        process: &Rc<RefCell<Process>>,
        line: &[u8],
    ) {
        if let Err(why) = permitted::check(line, false) {
            self.breaches.push(format!("an order was refused: {why}"));
            return;
        }
        let order = serde_json::from_slice(line).expect("it was checked");
        process.borrow_mut().servers().queue.push_back(order);
        if process.borrow_mut().servers().queue.len() == 1 {
            self.begin_task(host, process);
        }
    }

    /// Begins the next order, if there is one.
    fn begin_task(&mut self, host: usize, process: &Rc<RefCell<Process>>) {
        let mut process = process.borrow_mut();
        let Some(next) = process.servers().queue.front() else {
            return;
        };
        let longest_s = match next.what {
            ServerTask::Prepare { .. } => 20.0,
            ServerTask::Start { .. } | ServerTask::Restart => 10.0,
            ServerTask::Stop | ServerTask::Remove => 2.0,
            _ => 0.01,
        };
        let after = Duration::from_secs_f64(longest_s * self.random.uniform());
        self.add(host, &process.session, after, Happening::Task);
    }

    /// The process of a server host has executed an order.
    pub(super) fn end_task(&mut self, host: usize, session: &str) {
        let Some(process) = self.process(host, session) else {
            return;
        };
        let order = process.borrow_mut().servers().queue.pop_front();
        let order = order.expect("it was begun");
        let answer = self.execute(host, &process, order);
        self.answer(host, &process, &answer);
        self.begin_task(host, &process);
    }

    fn execute(
        &mut self,
        host: usize,
        process: &Rc<RefCell<Process>>,
        order: ServerOrder,
    ) -> ServerAnswer {
        let number = order.contender;
        let session = process.borrow().session.clone();
        let machine = Rc::clone(&self.agents[host].machine);
        let mut machine = machine.borrow_mut();
        if let ServerTask::Prepare { run, .. } = order.what {
            let mut process = process.borrow_mut();
            process.servers().prepared.insert(number, run.clone());
            let sandbox = machine.sandboxes.entry((run, number)).or_default();
            sandbox.end_server("prepared again");
            return ServerAnswer::Prepared {
                build: Box::new(build()),
                overcounts_writes: false,
                notices: Vec::new(),
            };
        }
        let run = process
            .borrow_mut()
            .servers()
            .prepared
            .get(&number)
            .cloned();
        let Some(run) = run else {
            let why = "its sandbox was not prepared".to_owned();
            return ServerAnswer::Failed { why };
        };
        let key = (run, number);
        if matches!(order.what, ServerTask::Watch) {
            self.check_awake(host, &machine, &key);
        }
        let sandbox = machine.sandboxes.entry(key.clone()).or_default();
        match order.what {
            ServerTask::Start { keeps_data } => {
                let kept_data = keeps_data && sandbox.has_data;
                if sandbox.is_measured && !kept_data {
                    let breach = format!("the data of contender {number} were replaced");
                    self.breaches.push(breach);
                }
                return self.start(host, sandbox, session, kept_data);
            }
            ServerTask::Restart => {
                sandbox.end_server("restarted");
                return self.start(host, sandbox, session, true);
            }
            ServerTask::Stop => sandbox.server = None,
            ServerTask::Remove => {
                machine.sandboxes.remove(&key);
                process.borrow_mut().servers().prepared.remove(&number);
            }
            what => {
                let Some(server) = &mut sandbox.server else {
                    let how = sandbox.ended.clone();
                    return ServerAnswer::Ended { how };
                };
                match what {
                    ServerTask::Freeze => server.freeze(true),
                    ServerTask::Thaw => server.freeze(false),
                    ServerTask::Watch => {
                        self.servers.begun_watches += 1;
                        server.watch = Some((self.servers.begun_watches, !server.is_frozen));
                    }
                    ServerTask::EndWatch => {
                        sandbox.is_measured = true;
                        let watch = server.watch.take();
                        return self.observed(watch);
                    }
                    ServerTask::Health | ServerTask::Measure { .. } => {}
                    other => panic!("an order that the contest does not give: {other:?}"),
                }
            }
        }
        ServerAnswer::Done
    }

    fn start(
        &mut self,
        host: usize,
        sandbox: &mut Sandbox,
        session: String,
        kept_data: bool,
    ) -> ServerAnswer {
        if sandbox.server.is_some() {
            let breach = "a server was started on the data of a running one".to_owned();
            self.breaches.push(breach);
        }
        sandbox.has_data = true;
        sandbox.server = Some(Server {
            session,
            is_frozen: false,
            watch: None,
        });
        ServerAnswer::Started {
            restored: None,
            kept_data,
            server: StartedServer {
                host: Role::Servers.hosts()[host].to_owned(),
                port: 3306,
                user: "dbduel".to_owned(),
                password: String::new(),
                ready_after_s: 0.5,
            },
        }
    }

    /// The observations of a turn; none where no watch was begun.
    fn observed(&mut self, watch: Option<(u64, bool)>) -> ServerAnswer {
        let mut observed = Observed::default();
        if let Some((number, was_awake)) = watch {
            self.servers.watches.insert(number, was_awake);
            observed.readings.push(Reading {
                source: "host",
                metric: WATCH.to_owned(),
                kind: Kind::Gauge,
                value: number as f64,
            });
        }
        ServerAnswer::Observed {
            seen: observed.into(),
        }
    }

    /// Checks that no other server of the contest is awake when a turn of one begins.
    fn check_awake(&mut self, host: usize, own: &Machine, key: &(String, usize)) {
        let awake_on = |machine: &Machine| {
            let mut others = machine.sandboxes.iter().filter(|(other, _)| *other != key);
            others.any(|(_, one)| one.server.as_ref().is_some_and(|one| !one.is_frozen))
        };
        let others = self.agents.iter().enumerate().filter(|(at, _)| *at != host);
        let mut others = others.map(|(_, agent)| agent.machine.borrow());
        if awake_on(own) || others.any(|machine| awake_on(&machine)) {
            self.breaches
                .push("two servers were awake in a turn".to_owned());
        }
    }
}

fn build() -> Build {
    let build = json!({
        "id": "mariadb-10.11", "source": "apt", "locator": "mariadb-10.11", "artifacts": [], "product": "mariadb",
        "version": Version::parse("10.11.5").expect("a version"), "version_text": "10.11.5-MariaDB", "daemon": "mariadbd",
        "daemon_digests": { "bytes": 0, "sha256": "", "blake3": "" }, "basedir": "", "share": "", "plugins": null,
        "library_path": [], "loader": null,
    });
    serde_json::from_value(build).expect("a build")
}
