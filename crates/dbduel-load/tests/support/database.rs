//! A database of its own on the server of the environment: a socket in `DBDUEL_TEST_SOCKET`, an account that may create
//! databases in `DBDUEL_TEST_USER` (root) and `DBDUEL_TEST_PASSWORD` (none).

use std::time::Duration;

use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::fill::Place;

/// Is dropped when it is not needed any more.
pub struct Database {
    pub address: Address,
    pub credentials: Credentials,
    pub name: String,
}

impl Database {
    /// A new, empty database; none when there is no server.
    pub fn create(purpose: &str) -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let address = Address::Unix {
            path: variable("DBDUEL_TEST_SOCKET")?.into(),
        };
        let user = variable("DBDUEL_TEST_USER").unwrap_or_else(|| "root".to_owned());
        let credentials =
            Credentials::new(user, variable("DBDUEL_TEST_PASSWORD").unwrap_or_default());
        let name = format!("dbduel_{purpose}_{}", std::process::id());
        let database = Database {
            address,
            credentials,
            name,
        };
        database.run(&format!("CREATE DATABASE {}", database.name));
        Some(database)
    }

    pub fn run(&self, sql: &str) {
        let options = ConnectOptions::default();
        Connection::connect(&self.address, &self.credentials, &options)
            .unwrap()
            .execute(sql)
            .unwrap();
    }

    pub fn place(&self, connections: u32) -> Place<'_> {
        Place {
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
