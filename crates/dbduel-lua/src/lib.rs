//! Clients that run a script written for sysbench.
//!
//! ```text
//! Script ─► Host (the global state: options, commands, hooks)
//!             └► ScriptClients ─► one Session per client ─► State (LuaJIT) ⇄ ClientConnection
//! ```
//!
//! Every client has its own state, like every thread of sysbench. The script's functions run in a coroutine on a separate
//! stack, which is left wherever it would wait, so a few threads carry all clients. The API of scripts is the prelude, in
//! Lua; Rust supplies connections, random numbers, clocks and counters.
//!
//! The driver of a session decides when its next event may begin. Output of a script goes to a [`Sink`].

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
