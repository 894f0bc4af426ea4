//! The MySQL client/server protocol as a pure codec: bytes in, packets out, for MySQL 5.5 to 9 and MariaDB 10.1 to 11. The
//! client's side of PostgreSQL's is in [`postgresql`].
//!
//! This crate uses no sockets, files, clocks or SQL, and starts nothing. A driver moves the bytes: it passes
//! received bytes to [`Login`], [`PrepareParser`] or [`ReplyParser`] and sends the bytes that [`command`] appended to
//! its buffer. Bytes from outside can neither panic nor hang the codec, and its memory use is bounded by the bytes
//! received, up to a limit.
//!
//! A session against the null server, so that it needs no socket; with one, the bytes go through it instead:
//!
//! ```
//! use dbduel_wire::server::{NullServer, Shape};
//! use dbduel_wire::{
//!     Credentials, Login, LoginOptions, LoginStep, ReplyParser, Row, RowFormat, Sink, Step, Transport, Value,
//!     command,
//! };
//!
//! /// Collects the first column of every row.
//! #[derive(Default)]
//! struct First(Vec<String>);
//!
//! impl Sink for First {
//!     fn row(&mut self, row: &Row<'_>) {
//!         if let Some(Ok(Value::Bytes(text))) = row.values().next() {
//!             self.0.push(String::from_utf8_lossy(text).into_owned());
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The other side: whatever is asked, its answer has one column and two rows.
//! let mut shape = |_sql: &[u8]| Shape { columns: 1, rows: 2, ..Shape::default() };
//! let mut arrived = Vec::new();
//! let mut server = NullServer::begin(1, &mut arrived);
//!
//! // Login: what arrives is fed, what comes back is sent, until the server has decided.
//! let mut login = Login::new(LoginOptions::new(Credentials::new("anna", "secret"), Transport::UnixSocket));
//! let logged_in = loop {
//!     match login.feed(&std::mem::take(&mut arrived))?.1 {
//!         LoginStep::Send(bytes) => server.feed(&bytes, &mut shape, &mut arrived)?,
//!         LoginStep::Done(logged_in) => break logged_in,
//!         other => return Err(format!("the null server asks for {other:?}").into()),
//!     };
//! };
//!
//! let mut request = Vec::new();
//! command::query(&mut request, b"SELECT n FROM numbers");
//! server.feed(&request, &mut shape, &mut arrived)?;
//! let mut parser = ReplyParser::new(logged_in.capabilities);
//! parser.begin(RowFormat::Text);
//! let mut rows = First::default();
//! let fed = parser.feed(&arrived, &mut rows)?;
//! assert_eq!((fed.step, fed.consumed), (Step::Done, arrived.len()));
//! assert_eq!(rows.0, ["1", "1"]);
//! assert_eq!(parser.outcome().map_err(Clone::clone)?.rows, 2);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

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
pub mod postgresql;
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
