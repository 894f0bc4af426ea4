//! Dumps as data: reads what mysqldump, mariadb-dump and pg_dump write, fits each statement to a server by the rules of a
//! table, and runs it over one connection.
//!
//! A dump is foreign text. Only kinds of statements that dumps contain are run ([`rules`] has the list); the account that runs
//! them has no privilege beyond its own database ([`account`]).

pub mod account;
pub mod anonymise;
mod error;
mod format;
pub mod from_server;
mod input;
mod load;
mod programs;
mod reader;
pub mod rules;
mod target;
mod tokens;

pub use error::DumpError;
pub use format::Format;
pub use load::{Destination, Loaded, Progress, Refusal, define, load, load_into};
pub use rules::{Action, Applied, Rule};
pub use target::{Product, Target};

#[cfg(test)]
mod tests;
