//! Contests on several agents, with a nats-server of the test's own.

mod faults;
mod hosts;
mod nats_server;
mod network;
mod refusals;
mod relay;
mod secured;

use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use self::nats_server::NatsServer;
use self::network::Network;
use super::lab::{SQLITE_DUEL, program_in, signal};

/// How long anything may take that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A contest that nothing decides before its budget is used up.
fn undecided(budget: &str) -> String {
    SQLITE_DUEL
        .replace("\"6 s\"", &format!("\"{budget}\""))
        .replace("\"25 %\"", "\"0.1 %\"")
        .replace("about = [\"journal_mode\"]\n", "")
        .replace("\"wal\"", "\"delete\"")
}

/// A nats-server, agents and a folder for an experiment and its records.
struct Fleet {
    folder: TempDir,
    nats: NatsServer,
    agents: Vec<Agent>,
    /// Where all of it runs, when that is not the network of this machine.
    network: Option<Network>,
}

struct Agent {
    name: String,
    child: Child,
}

impl Fleet {
    /// Starts nats-server; `None`, and the test counts as ignored, when there is none on this machine.
    fn start(experiment: &str) -> Option<Self> {
        Some(Self::of(experiment, NatsServer::start()?, None))
    }

    /// As [`Fleet::start`], in a network of its own.
    fn start_in(experiment: &str, network: Network) -> Option<Self> {
        let nats = NatsServer::start_in(&network)?;
        Some(Self::of(experiment, nats, Some(network)))
    }

    fn of(experiment: &str, nats: NatsServer, network: Option<Network>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("duel.toml"), experiment).unwrap();
        Fleet {
            folder,
            nats,
            agents: Vec::new(),
            network,
        }
    }

    /// The program in the home of an agent.
    fn program(&self, name: &str) -> Command {
        let home = self.home_of(name);
        match &self.network {
            None => program_in(&home),
            Some(network) => {
                let mut command = network.command(env!("CARGO_BIN_EXE_dbduel"));
                command.arg("--home").arg(home);
                command
            }
        }
    }

    fn experiment(&self) -> PathBuf {
        self.folder.path().join("duel.toml")
    }

    fn home_of(&self, agent: &str) -> PathBuf {
        self.folder.path().join(agent)
    }

    /// Runs a verb to its end.
    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.program("caller");
        command
            .args(words)
            .args(["--nats", &self.nats.url()])
            .current_dir(self.folder.path());
        command.output().unwrap()
    }

    /// As [`Fleet::run`], which must be done; gives what was printed.
    #[track_caller]
    fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[words, &["--json"]].concat())).unwrap()
    }

    #[track_caller]
    fn submit(&self, copies: u32) -> String {
        let copies = copies.to_string();
        let file = self.experiment();
        self.done(&[
            "fleet",
            "submit",
            file.to_str().unwrap(),
            "--copies",
            &copies,
        ])
    }

    /// Starts an agent in a home of its own.
    fn start_agent(&mut self, name: &str, words: &[&str]) {
        self.start_agent_at("127.0.0.1", name, words);
    }

    /// As [`Fleet::start_agent`], by another address of nats-server.
    fn start_agent_at(&mut self, address: &str, name: &str, words: &[&str]) {
        self.start_agent_by(&self.nats.url_at(address), name, words);
    }

    /// As [`Fleet::start_agent`], by the address of a relay.
    fn start_agent_by(&mut self, url: &str, name: &str, words: &[&str]) {
        let log = std::fs::File::create(self.log_of(name)).unwrap();
        let mut command = self.program(name);
        command
            .args(["agent", "--name", name, "--nats", url])
            .args(words)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.agents.push(Agent {
            name: name.to_owned(),
            child: command.spawn().unwrap(),
        });
    }

    fn said_by(&self, agent: &str) -> String {
        std::fs::read_to_string(self.log_of(agent)).unwrap()
    }

    fn log_of(&self, agent: &str) -> PathBuf {
        self.folder.path().join(format!("{agent}.log"))
    }

    fn agent(&mut self, name: &str) -> &mut Agent {
        let mut agents = self.agents.iter_mut();
        agents.rfind(|agent| agent.name == name).unwrap()
    }

    /// Asks an agent to end, and gives its exit code and what it said.
    #[track_caller]
    fn stop(&mut self, name: &str) -> (Option<i32>, String) {
        let agent = self.agent(name);
        signal(&agent.child, Signal::SIGTERM);
        let deadline = Instant::now() + TIMEOUT;
        while agent.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "{name} does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let code = agent.child.wait().unwrap().code();
        (code, self.said_by(name))
    }

    /// Waits until the status says what is expected.
    #[track_caller]
    fn wait_until(&self, what: &str, mut is_there: impl FnMut(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let output = self.run(&["fleet", "status", "--json"]);
            let status = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if is_there(&status) {
                return status;
            }
            if Instant::now() >= deadline {
                let logs: Vec<String> = self
                    .agents
                    .iter()
                    .map(|agent| self.said_by(&agent.name))
                    .collect();
                panic!("not {what}:\n{status:#}\n{}", logs.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    fn wait_until_done(&self, cells: u64) -> Value {
        self.wait_until(&format!("{cells} cells done"), |status| {
            status["campaigns"][0]["done"] == cells
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            // Its child is asked to end by the system, and holds no server.
            let _ = agent.child.kill();
            let _ = agent.child.wait();
        }
    }
}

/// What an agent that answers is doing.
fn phase_of<'s>(status: &'s Value, name: &str) -> Option<&'s str> {
    let agents = status["agents"].as_array()?;
    let agent = agents.iter().find(|agent| agent["name"] == name)?;
    agent["cell"]["phase"].as_str()
}
