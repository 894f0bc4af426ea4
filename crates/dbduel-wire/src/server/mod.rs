//! The server's side of the protocol, for mock servers: one that answers at once, to measure the lab itself, and one
//! that answers by a script, to test clocks and error paths.
//!
//! TLS is not offered and every login is accepted. Delays are data that a driver obeys; the driver also describes
//! statements (placeholders, columns, rows).

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
