//! Replaces the values of a capture, each one by the same value everywhere.
//!
//! ```text
//! chain      keyed pseudo-random shifts that depend on what precedes
//! text       characters → characters of the same class
//! numbers    a keyed map that keeps order and sign
//! dates      one keyed offset for all dates
//! values     which of these a value gets, by its content alone
//! literals   literals of SQL ↔ their values
//! context    where in a statement a literal is, and whether it is data
//! statement  statements: literals replaced, comments removed, or a reason why the statement is dropped
//! hints      hints for optimisers, which stay
//! vocabulary names and listed values of definitions, which stay
//! capture    a capture → an anonymous one
//! ```
//!
//! What a value becomes depends on the key and its content, never on its column: a log does not say which column a literal belongs to, and
//! keys must still meet their rows in a dump that is anonymised with the same key.

mod capture;
mod chain;
mod context;
mod dates;
mod hints;
mod literals;
mod numbers;
mod statement;
mod text;
mod values;
mod vocabulary;

pub use capture::{Destination, anonymise};
pub use statement::{Dropped, Rewriter};
pub use values::{Notes, Replacer};
pub use vocabulary::learn;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
