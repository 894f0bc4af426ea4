//! Options of the verbs that talk to NATS.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use dbduel_fleet::{Nats, NatsAccess, NatsAddress};
use dbduel_lab::outage::ABSENT_TIMEOUT;

/// Time for a killed nats-server to come back during a contest.
pub const NATS_TIMEOUT: Duration = ABSENT_TIMEOUT;

/// Address of NATS, and the login.
#[derive(Debug, Args)]
pub struct NatsArguments {
    /// Address of nats-server, such as `nats://127.0.0.1:4222`. Other machines need `tls://` and --creds.
    #[arg(long, value_name = "URL", env = "DBDUEL_NATS", hide_env_values = true)]
    nats: String,
    #[command(flatten)]
    login: NatsLogin,
}

/// As [`NatsArguments`], for a verb that needs NATS for some contests only.
#[derive(Debug, Clone, Args)]
pub struct OptionalNatsArguments {
    /// Address of nats-server, for an experiment with `[hosts]` or `host`.
    #[arg(long, value_name = "URL", env = "DBDUEL_NATS", hide_env_values = true)]
    nats: Option<String>,
    #[command(flatten)]
    login: NatsLogin,
}

/// Credentials and trusted CAs.
#[derive(Debug, Clone, Args)]
struct NatsLogin {
    /// NATS credentials file.
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// PEM file of CA certificates to trust in addition to those of this machine, for `tls://`.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl NatsArguments {
    /// Connects; `name` is what the monitoring of nats-server shows.
    ///
    /// # Errors
    /// When the address is refused or nothing answers.
    pub fn connect(&self, name: &str) -> Result<Nats> {
        self.connect_within(name, Duration::ZERO)
    }

    /// As [`NatsArguments::connect`], retried for `timeout` while nothing answers.
    ///
    /// # Errors
    /// As [`NatsArguments::connect`].
    pub fn connect_within(&self, name: &str, timeout: Duration) -> Result<Nats> {
        self.access().connect_within(name, timeout)
    }

    /// Where NATS is.
    pub fn access(&self) -> NatsAccess {
        let NatsLogin { creds, ca } = self.login.clone();
        let url = self.nats.clone();
        NatsAccess { url, creds, ca }
    }
}

impl OptionalNatsArguments {
    /// Access to NATS, if an address was given.
    ///
    /// # Errors
    /// When the address is refused.
    pub fn access(&self) -> Result<Option<NatsAccess>> {
        let Some(url) = self.nats.clone() else {
            return Ok(None);
        };
        let NatsLogin { creds, ca } = self.login.clone();
        NatsAddress::new(&url, creds.clone(), ca.clone())?;
        Ok(Some(NatsAccess { url, creds, ca }))
    }
}
