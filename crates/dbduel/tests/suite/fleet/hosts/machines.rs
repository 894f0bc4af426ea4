//! A machine with servers and nats-server, and load hosts beside it, each a network namespace on one bridge.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant, SystemTime};

use dbduel_record::Record;
use dbduel_record::rows::SliceRow;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::super::TIMEOUT;
use super::super::nats_server::NatsServer;
use super::super::network::Network;
use super::super::relay::Relay;
use super::super::secured::Secured;
use crate::suite::chaos::clock::Clock;
use crate::suite::harness::skip_always;
use crate::suite::lab::{home, published, servers_left, servers_of, signal};

/// Address of the servers' machine. All are of the loopback range, which every interface may have here, so that NATS needs no
/// TLS.
pub const SERVERS: &str = "127.77.0.1";
const PROGRAM: &str = env!("CARGO_BIN_EXE_dbduel");
/// Lets interfaces have loopback addresses; only 127.0.0.1 stays on `lo`.
const LOCAL: &str = "ip route del local 127.0.0.0/8 dev lo table local && sysctl -qw net.ipv4.conf.all.route_localnet=1";

pub struct Machines {
    folder: TempDir,
    nats: NatsServer,
    agents: Vec<(String, Child)>,
    servers: Network,
    hosts: Vec<(String, Network)>,
}

impl Machines {
    /// Makes them; `None`, and the test counts as ignored, where this user may not or nats-server is missing.
    pub fn start(hosts: &[&str], experiment: &str) -> Option<Self> {
        Self::start_by(hosts, experiment, NatsServer::start_in)
    }

    /// As [`Machines::start`], with a nats-server for those with TLS and credentials only.
    pub fn start_secured(hosts: &[&str], experiment: &str) -> Option<Self> {
        let secured = Secured::make(SERVERS)?;
        Self::start_by(hosts, experiment, |servers| {
            NatsServer::start_secured(servers, secured)
        })
    }

    fn start_by(
        hosts: &[&str],
        experiment: &str,
        nats: impl FnOnce(&Network) -> Option<NatsServer>,
    ) -> Option<Self> {
        match Self::networks(hosts) {
            Ok((servers, hosts)) => {
                let folder = tempfile::tempdir().unwrap();
                std::fs::write(folder.path().join("duel.toml"), experiment).unwrap();
                Some(Self {
                    nats: nats(&servers)?,
                    folder,
                    agents: Vec::new(),
                    servers,
                    hosts,
                })
            }
            Err(why) => {
                skip_always(&format!("no networks of their own here: {why}"));
                None
            }
        }
    }

    fn networks(names: &[&str]) -> Result<(Network, Vec<(String, Network)>), String> {
        let servers = Network::prepared(&format!(
            "{LOCAL} && ip link add bridge0 type bridge && ip addr add {SERVERS}/24 dev bridge0 && ip link set bridge0 up"
        ))?;
        let mut hosts = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let host = Network::prepared(&format!("{LOCAL} && nft list tables"))?;
            servers.run(&format!(
                "ip link add port{number} type veth peer name eth0 netns {} && ip link set port{number} master bridge0 up",
                host.holder()
            ));
            let address = address_of(number);
            host.run(&format!(
                "ip addr add {address}/24 dev eth0 && ip link set eth0 up"
            ));
            hosts.push(((*name).to_owned(), host));
        }
        Ok((servers, hosts))
    }

    /// Starts the agent of a load host.
    pub fn start_agent(&mut self, name: &str) {
        self.start_agent_by(&self.nats.url_at(SERVERS), name);
    }

    /// As [`Machines::start_agent`], by the address of a relay.
    pub fn start_agent_by(&mut self, url: &str, name: &str) {
        let command = self.network_of(name).command(PROGRAM);
        self.start_agent_as(command, url, name);
    }

    /// As [`Machines::start_agent`], by a wall clock of its own.
    pub fn start_agent_with_clock(&mut self, name: &str, clock: &Clock) {
        let mut command = self.network_of(name).command(PROGRAM);
        clock.set_in(&mut command);
        self.start_agent_as(command, &self.nats.url_at(SERVERS), name);
    }

    /// As [`Machines::start_agent`], with its monotonic clock so many seconds ahead; false, and the test counts as ignored, where
    /// that is not possible.
    pub fn start_agent_ahead(&mut self, name: &str, seconds: u32) -> bool {
        let in_namespace = |program: &str| {
            let mut command = self.network_of(name).command("unshare");
            command.args(["--time", "--monotonic", &seconds.to_string(), program]);
            command
        };
        let probed = in_namespace("true").output().unwrap();
        if !probed.status.success() {
            let why = String::from_utf8_lossy(&probed.stderr).into_owned();
            skip_always(&format!("no monotonic clock of its own here: {why}"));
            return false;
        }
        let command = in_namespace(PROGRAM);
        self.start_agent_as(command, &self.nats.url_at(SERVERS), name);
        let clock_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/time"));
        let (_, agent) = self.agents.last().unwrap();
        let agents = clock_of(&agent.id().to_string()).unwrap();
        if agents == clock_of("self").unwrap() {
            skip_always(
                "this kernel gives another monotonic clock only to processes that are forked",
            );
            return false;
        }
        true
    }

    /// Starts the agent of a machine that runs servers, in a home with the server builds that tests have.
    pub fn start_server_agent(&mut self, name: &str) {
        let builds = self.home_of(name).join("servers");
        if !builds.exists() {
            std::fs::create_dir_all(&builds).unwrap();
            for build in std::fs::read_dir(home().join("servers")).unwrap() {
                let build = build.unwrap();
                let link = builds.join(build.file_name());
                std::os::unix::fs::symlink(build.path(), link).unwrap();
            }
        }
        let command = self.network_of(name).command(PROGRAM);
        let address = self.address_of(name);
        let work = ["--servers", &address, "--share"];
        self.spawn_agent(command, &self.nats.url_at(SERVERS), name, &work);
    }

    /// Folders of the servers that were sent to a machine, and when they were made.
    pub fn received_by(&self, name: &str) -> Vec<(PathBuf, SystemTime)> {
        let builds = std::fs::read_dir(self.home_of(name).join("servers")).unwrap();
        let folders = builds.map(|build| build.unwrap().path());
        let is_received = |folder: &PathBuf| {
            let name = folder.file_name().unwrap().to_string_lossy();
            name.starts_with("received-")
        };
        folders
            .filter(is_received)
            .map(|folder| {
                let made = folder.metadata().unwrap().modified().unwrap();
                (folder, made)
            })
            .collect()
    }

    fn home_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_agent_as(&mut self, command: Command, url: &str, name: &str) {
        self.spawn_agent(command, url, name, &["--load"]);
    }

    fn spawn_agent(&mut self, mut command: Command, url: &str, name: &str, work: &[&str]) {
        let log = std::fs::File::create(self.log_of(name)).unwrap();
        command
            .arg("--home")
            .arg(self.home_of(name))
            .args(["agent", "--name", name, "--nats", url])
            .args(work)
            .args(self.login())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = command.spawn().unwrap();
        self.agents.push((name.to_owned(), child));
        let deadline = Instant::now() + TIMEOUT;
        while !self.said_by(name).contains(&format!("agent {name} at")) {
            assert!(Instant::now() < deadline, "{}", self.said_by(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Address of a machine beside that of the contest.
    pub fn address_of(&self, name: &str) -> String {
        let place = self.hosts.iter().position(|(known, _)| known == name);
        address_of(place.unwrap())
    }

    /// Servers that run on a machine beside that of the contest.
    pub fn servers_on(&self, name: &str) -> Vec<(i32, String)> {
        servers_of(&self.home_of(name))
    }

    /// Waits until no server runs there.
    #[track_caller]
    pub fn wait_for_no_servers_on(&self, name: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.servers_on(name).is_empty() {
            assert!(Instant::now() < deadline, "{:?}", self.servers_on(name));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills an agent and the process that works for a contest, neither of which notices the end of the other.
    pub fn kill_agent_with_its_work(&mut self, name: &str) {
        let (_, agent) = self.agents.iter().find(|(known, _)| known == name).unwrap();
        signal(agent, Signal::SIGSTOP);
        self.kill_work_of(name);
        self.stop_agent(name, Signal::SIGKILL);
    }

    /// Kills what works for a contest below an agent.
    pub fn kill_work_of(&self, name: &str) {
        let (_, agent) = self.agents.iter().find(|(known, _)| known == name).unwrap();
        for worker in children_of(agent.id()) {
            kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
        }
    }

    /// Sends a signal to an agent and waits for its end.
    #[track_caller]
    pub fn stop_agent(&mut self, name: &str, with: Signal) -> Option<i32> {
        let place = self.agents.iter().position(|(known, _)| known == name);
        let (_, mut child) = self.agents.remove(place.unwrap());
        signal(&child, with);
        child.wait().unwrap().code()
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    pub fn said_by(&self, name: &str) -> String {
        std::fs::read_to_string(self.log_of(name)).unwrap_or_default()
    }

    fn network_of(&self, name: &str) -> &Network {
        let found = self.hosts.iter().find(|(known, _)| known == name);
        &found.unwrap().1
    }

    /// Cuts a host off from everything.
    pub fn cut(&self, name: &str) {
        self.network_of(name).cut(SERVERS);
    }

    pub fn heal(&self, name: &str) {
        self.network_of(name).heal();
    }

    /// Limits the rate at which a host sends; false, and the test counts as ignored, where that is not possible.
    pub fn narrow(&self, name: &str, rate: &str) -> bool {
        let mut shaped = self.network_of(name).command("tc");
        let shaped = shaped
            .args(["qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate])
            .args(["burst", "16kb", "latency", "400ms"])
            .output();
        let why = match shaped {
            Ok(shaped) if shaped.status.success() => return true,
            Ok(shaped) => String::from_utf8_lossy(&shaped.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        skip_always(&format!("no limit of rates (tbf) here: {why}"));
        false
    }

    /// A relay before nats-server that delays bytes each way, with its address for load hosts; `None`, and the test counts as ignored, where this user may
    /// not have one.
    pub fn relay(&self, delay: Duration) -> Option<(Relay, String)> {
        match Relay::start_in(&self.servers, self.nats.port(), delay) {
            Ok(relay) => {
                let url = relay.url_at(SERVERS);
                Some((relay, url))
            }
            Err(why) => {
                skip_always(&format!("no relay in a network of its own here: {why}"));
                None
            }
        }
    }

    /// Kills nats-server and starts it again after a time.
    pub fn restart_nats(&mut self, away: Duration) {
        self.nats.kill_and_restart_in(Some(&self.servers), away);
    }

    /// The options with which programs log in to nats-server.
    fn login(&self) -> Vec<PathBuf> {
        let login = self.nats.secured().map(|secured| {
            [
                "--ca".into(),
                secured.certificate(),
                "--creds".into(),
                secured.credentials(),
            ]
        });
        login.into_iter().flatten().collect()
    }

    /// A verb on the servers' machine.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.command_without_login(words);
        command.args(self.login());
        command
    }

    fn command_without_login(&self, words: &[&str]) -> Command {
        let mut command = self.servers.command(PROGRAM);
        command
            .arg("--home")
            .arg(home())
            .args(words)
            .args(["--nats", &self.nats.url_at(SERVERS)])
            .current_dir(self.folder.path());
        command
    }

    /// Starts the contest of `duel.toml` and waits until so many slices are finished.
    #[track_caller]
    pub fn begin(&self, results: &str, slices: usize) -> Child {
        let mut run = self.spawn("duel.toml", results);
        self.wait_for_slices(&mut run, results, slices);
        run
    }

    /// Starts the contest of `duel.toml` and waits until a server of it runs on a machine.
    #[track_caller]
    pub fn begin_to_prepare(&self, results: &str, name: &str) -> Child {
        let mut run = self.spawn("duel.toml", results);
        let deadline = Instant::now() + TIMEOUT;
        while self.servers_on(name).is_empty() {
            let ended = run.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{}",
                self.said_by(results)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        run
    }

    /// Starts a contest; its record is below `results`.
    fn spawn(&self, target: &str, results: &str) -> Child {
        let said = std::fs::File::create(self.log_of(results)).unwrap();
        self.command(&["run", target, "--results", results])
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap()
    }

    /// The exit code of a contest, and what it said.
    #[track_caller]
    pub fn finish(&self, mut run: Child, results: &str) -> (Option<i32>, String) {
        let deadline = Instant::now() + 2 * TIMEOUT;
        while run.try_wait().unwrap().is_none() {
            if Instant::now() >= deadline {
                run.kill().unwrap();
                run.wait().unwrap();
                panic!("the run does not end: {}", self.said_by(results));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let code = run.wait().unwrap().code();
        assert_eq!(servers_left(), [], "{}", self.said_by(results));
        (code, self.said_by(results))
    }

    /// What a contest said, which must end with a verdict or with none for want of time.
    #[track_caller]
    pub fn complete(&self, run: Child, results: &str) -> String {
        let (code, said) = self.finish(run, results);
        assert!(matches!(code, Some(0 | 3)), "{code:?}: {said}");
        for (name, _) in &self.hosts {
            assert_eq!(self.servers_on(name), [], "{said}");
        }
        said
    }

    /// Runs a contest to its end, as [`Machines::complete`].
    #[track_caller]
    pub fn run(&self, target: &str, results: &str) -> String {
        self.complete(self.spawn(target, results), results)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Where the record of a contest is, when it has begun.
    pub fn record_dir(&self, results: &str) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join(results)).ok()?;
        entries.flatten().next().map(|entry| entry.path())
    }

    #[track_caller]
    pub fn record(&self, results: &str) -> Record {
        Record::open(&self.record_dir(results).unwrap()).unwrap()
    }

    /// All rows of the slices that the journal of a contest says are finished.
    #[track_caller]
    pub fn finished(&self, results: &str) -> Vec<SliceRow> {
        let record = self.record(results);
        let finished: Vec<(u32, u32)> = record
            .finished_slices()
            .map(|slice| (slice.block, slice.position))
            .collect();
        let rows = record.slices.iter();
        rows.filter(|row| finished.contains(&(row.block, row.position)))
            .cloned()
            .collect()
    }

    #[track_caller]
    pub fn published(&self, results: &str) -> Value {
        published(&self.record_dir(results).unwrap())
    }

    /// Waits until so many slices of a contest are finished.
    #[track_caller]
    pub fn wait_for_slices(&self, run: &mut Child, results: &str, count: usize) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let record = self.record_dir(results).map(|dir| Record::open(&dir));
            let finished = record
                .and_then(Result::ok)
                .map_or(0, |one| one.slices.len());
            if finished >= count {
                return;
            }
            let ended = run.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "{finished} slices: {}",
                self.said_by(results)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Processes with which agents drive load and run servers.
    pub fn processes_of_agents(&self) -> usize {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let drives = entries.filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            let parent = parent_of(&entry.path());
            ["\0drive\0", "\0serve\0"]
                .iter()
                .any(|verb| line.contains(verb))
                && self
                    .agents
                    .iter()
                    .any(|(_, child)| Some(child.id()) == parent)
        });
        drives.count()
    }

    /// Waits until agents work for no contest.
    #[track_caller]
    pub fn wait_for_idle_agents(&self) {
        let deadline = Instant::now() + TIMEOUT;
        while self.processes_of_agents() > 0 {
            assert!(
                Instant::now() < deadline,
                "a process of an agent stayed behind"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a verb prints on the servers' machine.
    pub fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// As [`Machines::output`], without the options of [`Machines::start_secured`].
    pub fn output_without_login(&self, words: &[&str]) -> Output {
        self.command_without_login(words).output().unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for (_, child) in &mut self.agents {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn address_of(number: usize) -> String {
    format!("127.77.0.{}", number + 2)
}

fn children_of(parent: u32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let own = entries.filter(|entry| parent_of(&entry.path()) == Some(parent));
    own.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent_of(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}
