//! Options of the verbs that talk to NATS.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use dbduel_nats::{Nats, NatsAddress};

/// Where NATS is and who logs in.
#[derive(Debug, Args)]
pub struct NatsArguments {
    /// Address of nats-server, such as `nats://127.0.0.1:4222`. Other machines need `tls://` and --creds.
    #[arg(long, value_name = "URL", env = "DBDUEL_NATS")]
    nats: String,
    /// File of NATS credentials.
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// File of certificates (PEM) of authorities beside those of this machine, for `tls://`.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl NatsArguments {
    /// Connects; `name` is what the monitoring of nats-server shows.
    ///
    /// # Errors
    /// When the address is refused or nothing answers.
    pub fn connect(&self, name: &str) -> Result<Nats> {
        let address = NatsAddress::new(&self.nats, self.creds.clone(), self.ca.clone())?;
        Ok(Nats::connect(&address, name)?)
    }
}
