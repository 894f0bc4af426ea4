//! A test's own database on a shared server.

use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_workloads::fill::Place;

use super::server::Server;

/// Is dropped when it is not needed any more.
pub struct Database {
    pub address: Address,
    pub credentials: Credentials,
    pub name: String,
}

impl Database {
    /// A new, empty database.
    pub fn create(server: &Server, purpose: &str) -> Self {
        let name = format!("dbduel_{purpose}_{}", std::process::id());
        let database = Database {
            address: server.unix(),
            credentials: server.credentials(),
            name,
        };
        database.run(&format!("CREATE DATABASE {}", database.name));
        database
    }

    pub fn connect(&self) -> Connection {
        let options = ConnectOptions::default();
        Connection::connect(&self.address, &self.credentials, &options).unwrap()
    }

    pub fn run(&self, sql: &str) {
        self.connect().execute(sql).unwrap();
    }

    pub fn place(&self, connections: u32) -> Place<'_> {
        Place {
            dialect: dbduel_driver::Dialect::MySql,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: &self.name,
            connections,
            deadline: Duration::from_secs(60),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.run(&format!("DROP DATABASE {}", self.name));
    }
}
