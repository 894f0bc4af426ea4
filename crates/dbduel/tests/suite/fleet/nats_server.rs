//! A private nats-server, and requests to its JetStream that no verb of the program makes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::network::Network;
use super::secured::Secured;
use crate::suite::harness::skip;

/// It answers within this time after its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub struct NatsServer {
    store: TempDir,
    port: u16,
    child: Child,
    /// What it demands of those who connect.
    secured: Option<Secured>,
}

impl NatsServer {
    /// Starts one on a free port of the loopback interface; `None` when it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_by(None, None)
    }

    /// As [`NatsServer::start`], on all addresses of a network of its own.
    pub fn start_in(network: &Network) -> Option<Self> {
        Self::start_by(Some(network), None)
    }

    /// As [`NatsServer::start_in`], for those with TLS and credentials only.
    pub fn start_secured(network: &Network, secured: Secured) -> Option<Self> {
        Self::start_by(Some(network), Some(secured))
    }

    fn start_by(network: Option<&Network>, secured: Option<Secured>) -> Option<Self> {
        let store = tempfile::tempdir().unwrap();
        let Some(child) = spawn(network, secured.as_ref(), &store, "-1") else {
            skip("nats-server is not installed");
            return None;
        };
        let mut server = NatsServer {
            port: 0,
            store,
            child,
            secured,
        };
        server.port = server.chosen_port();
        Some(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        self.url_at("127.0.0.1")
    }

    pub fn url_at(&self, address: &str) -> String {
        let scheme = match self.secured {
            None => "nats",
            Some(_) => "tls",
        };
        format!("{scheme}://{address}:{}", self.port)
    }

    /// What it demands of those who connect.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.as_ref()
    }

    /// Kills it and starts it again on the same files.
    pub fn kill_and_restart(&mut self) {
        self.kill_and_restart_in(None, Duration::ZERO);
    }

    /// As [`NatsServer::kill_and_restart`] for one that was started by [`NatsServer::start_in`]; it is away for a time.
    pub fn kill_and_restart_in(&mut self, network: Option<&Network>, away: Duration) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        sleep(away);
        let port = self.port.to_string();
        self.child = spawn(network, self.secured.as_ref(), &self.store, &port).unwrap();
        assert_eq!(self.chosen_port(), self.port);
    }

    /// The port that it listens on, from the file in which it says so.
    fn chosen_port(&self) -> u16 {
        let file = format!("nats-server_{}.ports", self.child.id());
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let text = std::fs::read(self.store.path().join(&file)).unwrap_or_default();
            let ports: Value = serde_json::from_slice(&text).unwrap_or_default();
            if let Some(port) = ports["nats"][0].as_str() {
                return port.rsplit(':').next().unwrap().parse().unwrap();
            }
            assert!(Instant::now() < deadline, "nats-server names no port");
            sleep(Duration::from_millis(20));
        }
    }

    /// Publishes a message and gives the reply that JetStream sends.
    pub fn request(&self, subject: &str, message: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(START_TIMEOUT)).unwrap();
        write!(
            stream,
            "CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply {}\r\n{message}\r\n",
            message.len()
        )
        .unwrap();
        let mut replies = BufReader::new(stream);
        loop {
            let mut line = String::new();
            replies.read_line(&mut line).unwrap();
            let Some(described) = line.strip_prefix("MSG ") else {
                assert!(!line.is_empty() && !line.starts_with("-ERR"), "{line}");
                continue;
            };
            let length = described.trim().rsplit(' ').next().unwrap();
            let mut reply = vec![0; length.parse().unwrap()];
            replies.read_exact(&mut reply).unwrap();
            return serde_json::from_slice(&reply).unwrap();
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(
    network: Option<&Network>,
    secured: Option<&Secured>,
    store: &TempDir,
    port: &str,
) -> Option<Child> {
    let (mut command, address) = match network {
        None => (Command::new("nats-server"), "127.0.0.1"),
        Some(network) => (network.command("nats-server"), "0.0.0.0"),
    };
    if let Some(secured) = secured {
        command.arg("-c").arg(secured.config());
    }
    command
        .args(["-js", "-a", address, "-p", port, "--ports_file_dir"])
        .arg(store.path())
        .arg("-sd")
        .arg(store.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}
