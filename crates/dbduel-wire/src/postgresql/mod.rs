//! The PostgreSQL protocol, version 3.0, as a pure codec: the client's side, for PostgreSQL 9.6 and newer.
//!
//! The rules of the crate apply: no sockets, and bytes from outside can neither panic nor hang the codec. Values, rows
//! and sinks are those of the rest of the crate. A driver feeds received bytes to [`Login`], [`PrepareParser`] or
//! [`ReplyParser`] and sends the bytes that [`command`] appended to its buffer. Nothing is allocated per statement.

pub mod command;
mod error;
mod login;
mod message;
mod prepare;
mod reply;
mod scram;
mod types;

pub use error::ServerError;
pub use login::{LoggedIn, Login, LoginError, LoginOptions, LoginStep};
pub use message::MESSAGE_LIMIT;
pub use prepare::{PrepareParser, Statement};
pub use reply::{ReplyParser, Step};
