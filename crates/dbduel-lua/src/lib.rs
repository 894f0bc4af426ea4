//! Clients that run a script written for sysbench.
//!
//! ```text
//! Script ─► Host (the global state: options, commands, hooks)
//!             └► ScriptClients ─► one Session per client ─► State (LuaJIT) ⇄ ClientConnection
//! ```
//!
//! Every client has a state of its own, as every thread of sysbench has. What the script defines runs in a coroutine on a
//! stack of its own, which is left wherever it would wait, so a few threads carry all clients. The API that scripts see is the prelude, in
//! Lua; Rust supplies what it cannot do: connections, random numbers, clocks, counters.
//!
//! Knows no command line and no load: the driver of a session says when its next event may begin. Prints nothing
//! itself: what a script prints goes to a [`Sink`].

use dbduel_luajit as _;

mod answer;
mod chunks;
mod client_library;
mod compiled;
mod connections;
mod coroutine;
mod error;
mod execution;
mod fiber;
mod host;
mod natives;
mod options;
mod random;
mod retry_deadline;
mod rows;
mod script;
mod session;
mod settings;
mod solo;
mod state;
mod watchdog;

pub use client_library::driver_name;
pub use compiled::interpretation;
pub use error::{Place, ScriptError};
pub use host::{CommandKind, Host, ScriptClients};
pub use options::{DeclaredOption, OptionError, OptionKind, OptionValue, options_text};
pub use random::Shapes;
pub use retry_deadline::{GRACE, RetryDeadline};
pub use script::{Script, ScriptFile};
pub use session::{Event, Resume, Session};
pub use settings::{Limits, Message, Servers, Settings, Sink};
pub use state::{Context, gather_states};
