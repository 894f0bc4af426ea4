//! A connection to NATS, and the rules for its address.

use std::any::Any;
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};
use tokio::runtime::{EnterGuard, Runtime};
use tokio::task::JoinHandle;
use url::Host;

use crate::{NatsError, failed};

/// Timeout of an attempt to connect. The kernel repeats the first packet after one and after three seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts at the first connection.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Timeout of a request to JetStream.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of pings. After two without an answer the client reconnects. A connection that was cut off for half a minute is
/// replaced before TCP, whose pauses double, would repeat its packets.
const PING_INTERVAL: Duration = Duration::from_secs(3);
/// Longest pause between two attempts to reconnect.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Address of nats-server, and the login.
#[derive(Debug, Clone)]
pub struct NatsAddress {
    server: ServerAddr,
    credentials: Option<PathBuf>,
    ca: Option<PathBuf>,
}

/// An address that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not an address.
    #[error(
        "`{url}` is not an address of NATS: {why}; write `nats://127.0.0.1:4222` or \
         `tls://nats.example:4222`"
    )]
    Malformed {
        /// The text as written.
        url: String,
        /// The reason.
        why: String,
    },
    /// It contains a user or a password, so it is not quoted.
    #[error(
        "the address of NATS contains a user or a password, which process lists show; put them \
         into a credentials file and name it with `--creds`"
    )]
    Login,
    /// It is another machine, without encryption or without credentials.
    #[error(
        "`{url}` is another machine, and its work queue decides what runs here: it needs `tls://` and `--creds FILE`"
    )]
    Unprotected {
        /// The text as written.
        url: String,
    },
}

impl NatsAddress {
    /// Reads an address. Other machines are accepted only with TLS and credentials. `ca` is a PEM file with further CA
    /// certificates for TLS.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn new(
        url: &str,
        credentials: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Self, AddressError> {
        let server: ServerAddr = url.parse().map_err(|error: std::io::Error| {
            // A malformed address may hold a password too.
            match url.contains('@') {
                true => AddressError::Login,
                false => AddressError::Malformed {
                    url: url.to_owned(),
                    why: error.to_string(),
                },
            }
        })?;
        if server.username().is_some() || server.password().is_some() {
            return Err(AddressError::Login);
        }
        let is_protected = server.tls_required() && credentials.is_some();
        if !is_loopback(&server) && !is_protected {
            return Err(AddressError::Unprotected {
                url: url.to_owned(),
            });
        }
        Ok(NatsAddress {
            server,
            credentials,
            ca,
        })
    }

    /// The address in its written form.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.as_url_str().to_owned()
    }
}

fn is_loopback(server: &ServerAddr) -> bool {
    match Host::parse(server.host()) {
        Ok(Host::Domain(name)) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        Ok(Host::Ipv4(ip)) => ip.is_loopback(),
        Ok(Host::Ipv6(ip)) => ip.is_loopback(),
        Err(_) => server
            .host()
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback()),
    }
}

/// A connection to NATS. A lost one is restored in the background; calls fail meanwhile, each at its deadline.
#[derive(Debug)]
pub struct Nats {
    runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    url: String,
}

impl Nats {
    /// Connects; the server's monitoring shows `name`.
    ///
    /// # Errors
    /// Without an answer within 5 s, or with credentials that cannot be read or are refused.
    pub fn connect(address: &NatsAddress, name: &str) -> Result<Self, NatsError> {
        let url = address.url();
        let refused = |why: String| NatsError::Connect {
            url: url.clone(),
            why,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_TIMEOUT)
            .request_timeout(Some(REQUEST_TIMEOUT))
            .ping_interval(PING_INTERVAL)
            .reconnect_delay_callback(|attempts| {
                let pause = Duration::from_millis(50 << attempts.min(6));
                pause.min(RECONNECT_PAUSE_MAX)
            });
        if let Some(path) = &address.credentials {
            let unfit = |why: String| NatsError::Credentials {
                path: path.display().to_string(),
                why,
            };
            let text = std::fs::read_to_string(path).map_err(|error| unfit(error.to_string()))?;
            options = options
                .credentials(&text)
                .map_err(|error| unfit(error.to_string()))?;
        }
        if let Some(ca) = &address.ca {
            options = options.add_root_certificates(ca.clone());
        }
        let connected = runtime.block_on(async {
            tokio::time::timeout(CONNECT_TIMEOUT, options.connect(address.server.clone())).await
        });
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                let NatsError::Call { why, .. } = failed("connect", &error) else {
                    return Err(refused(error.to_string()));
                };
                return Err(refused(why));
            }
            Err(_) => return Err(refused(format!("no answer within {CONNECT_TIMEOUT:?}"))),
        };
        // The context starts a task of its own.
        let entered = runtime.enter();
        let mut jetstream = jetstream::new(client.clone());
        drop(entered);
        jetstream.set_timeout(REQUEST_TIMEOUT);
        Ok(Nats {
            runtime,
            client,
            jetstream,
            url,
        })
    }

    /// As [`Nats::connect`], retried while no nats-server answers; the last attempt begins within `timeout`.
    ///
    /// # Errors
    /// As [`Nats::connect`].
    pub fn connect_within(
        address: &NatsAddress,
        name: &str,
        timeout: Duration,
    ) -> Result<Self, NatsError> {
        let deadline = Instant::now() + timeout;
        loop {
            match Self::connect(address, name) {
                Err(error) if error.is_absence() && Instant::now() + CONNECT_PAUSE < deadline => {
                    std::thread::sleep(CONNECT_PAUSE);
                }
                result => return result,
            }
        }
    }

    /// False from when a lost connection is noticed until it is restored.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The address that it is connected to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Version of the server.
    #[must_use]
    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// Waits for a call of the client, at most for `limit`.
    pub(crate) fn wait<T, E: std::error::Error + 'static>(
        &self,
        action: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, NatsError> {
        let timed = async { tokio::time::timeout(limit, call).await };
        match self.runtime.block_on(timed) {
            Ok(answer) => answer.map_err(|error| match (&error as &dyn Any).downcast_ref() {
                // One step of several that has said already what it could not do.
                Some(NatsError::Call { why, .. }) => NatsError::Call {
                    action: action.to_owned(),
                    why: why.clone(),
                },
                _ => failed(action, &error),
            }),
            Err(_) => Err(NatsError::Call {
                action: action.to_owned(),
                why: format!("no answer within {} s", limit.as_secs()),
            }),
        }
    }

    /// As [`Nats::wait`], for as long as a request may take.
    pub(crate) fn call<T, E: std::error::Error + 'static>(
        &self,
        action: &str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, NatsError> {
        self.wait(action, 2 * REQUEST_TIMEOUT, call)
    }

    /// Runs a future that has a deadline of its own.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// For parts of the client that start tasks when they are dropped.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Leaves a task running until the connection is dropped, or it is aborted.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(task)
    }

    /// Refuses a message that the server would refuse.
    pub(crate) fn check_length(&self, bytes: usize) -> Result<(), NatsError> {
        let limit = self.client.server_info().max_payload;
        match bytes > limit {
            true => Err(NatsError::TooLong { bytes, limit }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(url: &str, credentials: bool, part: &str) {
        let credentials = credentials.then(|| PathBuf::from("x.creds"));
        let error = NatsAddress::new(url, credentials, None).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(part), "{url}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn only_this_machine_needs_neither_tls_nor_credentials() {
        for url in [
            "nats://127.0.0.1:4222",
            "localhost",
            "nats://[::1]:4222",
            "127.0.0.2:1",
        ] {
            assert!(NatsAddress::new(url, None, None).is_ok(), "{url}");
        }
        refused("nats://db1:4222", false, "another machine");
        refused("nats://db1:4222", true, "needs `tls://`");
        refused("tls://10.0.0.1:4222", false, "--creds");
        let protected = NatsAddress::new("tls://db1:4222", Some("x.creds".into()), None);
        assert!(protected.is_ok());
    }

    #[test]
    fn logins_in_addresses_are_refused_and_not_repeated() {
        refused("nats://u:secret@127.0.0.1:4222", false, "--creds");
        refused("nats://secret@127.0.0.1:4222", false, "--creds");
        refused("http://u:secret@h", false, "--creds");
        refused("http://127.0.0.1", false, "not an address of NATS");
    }
}
