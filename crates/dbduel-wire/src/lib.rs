//! The MySQL client/server protocol as a pure codec: bytes in, packets out, for MySQL 5.5 to 9 and MariaDB 10.1 to 11.
//!
//! This crate knows no sockets, files, clocks or SQL, and starts nothing. A driver moves the bytes: it hands
//! whatever arrived to [`Login`], [`PrepareParser`] or [`ReplyParser`] and sends whatever [`command`] appended to
//! its buffer. Bytes from outside can neither panic nor hang the codec, and make it hold no more memory than what
//! really arrived, up to a limit.

pub mod auth;
pub mod bulk;
mod bytes;
pub mod capability;
pub mod command;
mod credentials;
pub mod error;
pub mod greeting;
pub mod local_infile;
pub mod login;
pub mod packet;
pub mod prepare;
pub mod reply;
pub mod server;
pub mod value;

pub use bulk::bulk_execute;
pub use capability::{Capabilities, Status};
pub use command::{CommandError, SentTypes, Types};
pub use credentials::Credentials;
pub use error::{ServerError, WireError};
pub use greeting::Greeting;
pub use login::{LoggedIn, Login, LoginError, LoginOptions, LoginStep, TlsWish, Transport};
pub use prepare::{PrepareParser, Prepared, Statement};
pub use reply::{
    Column, Completion, Fed, LocalInfile, ReplyParser, Row, RowFormat, Sink, Skip, Step, Summary,
};
pub use value::{ColumnKind, ColumnType, Date, DateTime, Time, Value};
