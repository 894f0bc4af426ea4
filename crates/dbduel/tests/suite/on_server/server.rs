//! Real servers that tests share: each is started by the first test that asks for it and runs until the last has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbduel_driver::Credentials;
use dbduel_driver::address::Address;

use super::super::bare_server::{BareServer, free_port};

pub const MARIADB: &str = "mariadb-10.11";
pub const MYSQL: &str = "mysql-9.7";
/// Those that every test runs on unless it has a reason to choose.
pub const ALL: &[&str] = &[MARIADB, MYSQL];

static RUNNING: Mutex<Vec<Arc<Server>>> = Mutex::new(Vec::new());

/// A running server, on a socket and on a port of this machine. Root needs no password on either.
pub struct Server {
    name: &'static str,
    port: u16,
    bare: BareServer,
    turn: Mutex<()>,
}

/// The shared server of this name, which must be in the home.
pub fn running(name: &'static str) -> Arc<Server> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = running.iter().find(|server| server.name == name) {
        return Arc::clone(server);
    }
    let server = Arc::new(Server::start(name));
    running.push(Arc::clone(&server));
    server
}

/// Stops all shared servers. The last test has ended.
pub fn stop_all() {
    RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

impl Server {
    fn start(name: &'static str) -> Self {
        let port = free_port();
        let bare = BareServer::start_with(
            name,
            &[
                format!("--port={port}"),
                "--bind-address=127.0.0.1".to_owned(),
                "--skip-name-resolve".to_owned(),
                // Packets of 16 MiB and more are split, and files come from clients.
                "--max-allowed-packet=128M".to_owned(),
                "--local-infile=1".to_owned(),
                // Tests of what clients do, not of how safely their data are stored.
                "--skip-log-bin".to_owned(),
            ],
        );
        bare.query("CREATE USER IF NOT EXISTS root@'127.0.0.1'");
        bare.query("GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION");
        Server {
            name,
            port,
            bare,
            turn: Mutex::new(()),
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Waits for the turn: tests change settings of the server and compare its counters.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn unix(&self) -> Address {
        Address::Unix {
            path: self.bare.socket(),
        }
    }

    pub fn tcp(&self) -> Address {
        Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.port,
        }
    }

    /// The account of root.
    pub fn credentials(&self) -> Credentials {
        Credentials::new("root", "")
    }
}
