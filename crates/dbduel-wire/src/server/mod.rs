//! The protocol's other side, for servers that stand in for a database: one that answers at once, to measure the
//! lab itself, and one that answers after a script, to prove clocks and error paths.
//!
//! TLS is not offered and every login is let in.
//! Delays are data that a driver obeys; the driver also describes statements (placeholders, columns, rows).

mod command;
mod handshake;
mod null;
mod reply;
mod script;
mod session;

pub use command::{Command, ExecuteBody};
pub use handshake::{
    ClientLogin, ClientPacket, append_auth_switch, append_greeting, append_more_auth_data,
};
pub use null::{NullServer, Shape};
pub use reply::{ReplyWriter, Terms};
pub use script::{Act, Action, Answer, Effect, ScriptedServer};
pub use session::{Session, Turn};
