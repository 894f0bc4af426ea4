//! Everything that determines a script's run, apart from its text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dbduel_client::run::IgnoredErrors;
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::statement_watch::StatementWatch;
use dbduel_driver::{Credentials, Dialect, Protocol, Tls};

use super::options::OptionValue;
use super::random::Shapes;
use super::script::Script;

/// Settings of a script's run.
#[derive(Clone)]
pub struct Settings {
    /// The script.
    pub script: Script,
    /// The command line; the first word is the program.
    pub argv: Vec<String>,
    /// The command that will be run, which scripts read while they are loaded.
    pub command: Option<String>,
    /// Entries of `sysbench.opt` besides the script's own options, by names with underscores.
    pub options: BTreeMap<String, OptionValue>,
    /// Servers to connect to.
    pub servers: Servers,
    /// The distributions behind `sysbench.rand`.
    pub shapes: Shapes,
    /// Whether LuaJIT may compile the script; otherwise it is interpreted.
    pub is_compiled: bool,
    /// Root of the clients' random streams under load. Commands use a fixed one, so that data are the same every time.
    pub seed: u64,
    /// Errors after which an event is retried.
    pub ignored_errors: IgnoredErrors,
    /// How prepared statements are sent.
    pub protocol: Protocol,
    /// Ends statements that a server will never answer.
    pub statement_watch: Option<StatementWatch>,
    /// Nothing is sent; every statement counts as other.
    pub dry_run: bool,
    /// Bounds.
    pub limits: Limits,
    /// Cancels commands.
    pub cancel: Cancel,
    /// Destination of the script's prints and the messages about its statements.
    pub sink: Sink,
}

/// Servers to connect to: each new connection goes to the next address, round robin.
#[derive(Clone)]
pub struct Servers {
    /// The dialect.
    pub dialect: Dialect,
    /// At least one address.
    pub addresses: Vec<Address>,
    /// Account.
    pub credentials: Credentials,
    /// Default database.
    pub database: String,
    /// TLS mode and certificates.
    pub tls: Arc<Tls>,
}

/// Resource limits of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of one state, bytes; rows of a result count as well.
    pub memory_bytes: usize,
    /// Longest time that a script computes without a request, excluding times in which its thread had no processor.
    pub computing: Duration,
    /// Longest wait for one connection.
    pub connecting: Duration,
    /// Longest time to reconnect.
    pub reconnecting: Duration,
    /// The script is only inspected: it gets nothing that acts outside its state or waits, neither `os`, `io` nor
    /// `ffi`.
    pub confined: bool,
}

impl Default for Limits {
    /// 1 GiB, ten minutes of computing, thirty seconds for a connection, ten minutes to reconnect.
    fn default() -> Self {
        Limits {
            memory_bytes: 1 << 30,
            computing: Duration::from_secs(600),
            connecting: Duration::from_secs(30),
            reconnecting: Duration::from_secs(600),
            confined: false,
        }
    }
}

/// A message to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Output of the script, byte for byte.
    Print(&'a [u8]),
    /// An error that ends the run.
    Fatal(&'a str),
    /// Misuse of the API.
    Alert(&'a str),
    /// Details about an error, for the author of the script.
    Debug(&'a str),
}

/// Shows messages, from any thread.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(Message<'_>) + Send + Sync>);

impl Sink {
    /// A sink that calls `show`.
    pub fn new(show: impl Fn(Message<'_>) + Send + Sync + 'static) -> Self {
        Sink(Arc::new(show))
    }

    /// Shows a message.
    pub fn show(&self, message: Message<'_>) {
        (self.0)(message);
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sink")
    }
}
