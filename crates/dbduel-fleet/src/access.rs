//! Access to the other machines of a contest, over NATS.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use dbduel_lab::drive::HostAccess;
use dbduel_nats::{Nats, NatsAddress};

use crate::shared::servers;

/// Address of NATS, and the files for the login.
#[derive(Debug, Clone)]
pub struct NatsAccess {
    /// Address of nats-server.
    pub url: String,
    /// File of credentials.
    pub creds: Option<PathBuf>,
    /// PEM file of further CA certificates for TLS.
    pub ca: Option<PathBuf>,
}

impl NatsAccess {
    /// Connects; `name` is what the monitoring of nats-server shows.
    ///
    /// # Errors
    /// When the address is refused or nothing answers.
    pub fn connect(&self, name: &str) -> Result<Nats> {
        self.connect_within(name, Duration::ZERO)
    }

    /// As [`NatsAccess::connect`], retried for `timeout` while nothing answers.
    ///
    /// # Errors
    /// As [`NatsAccess::connect`].
    pub fn connect_within(&self, name: &str, timeout: Duration) -> Result<Nats> {
        let address = NatsAddress::new(&self.url, self.creds.clone(), self.ca.clone())?;
        Ok(Nats::connect_within(&address, name, timeout)?)
    }
}

impl HostAccess for NatsAccess {
    fn add_to(&self, command: &mut Command) {
        command.args(["--nats", &self.url]);
        for (option, file) in [("--creds", &self.creds), ("--ca", &self.ca)] {
            if let Some(file) = file {
                command.arg(option).arg(file);
            }
        }
    }

    fn store_server(&self, digest: &str, packed: &Path, about: &str) -> Result<()> {
        let nats = self.connect(servers::NAME)?;
        servers::store(&nats)?.put(digest, packed, about)?;
        Ok(())
    }
}
