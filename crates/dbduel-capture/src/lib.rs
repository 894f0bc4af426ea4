//! Captured SQL: what the clients of a server sent, read from its logs and kept for analysis and replay.
//!
//! ```text
//! logs/       one reader per format of a log: bytes → entries
//! entry       what all readers produce
//! import      entries → a capture: classes, kinds, transactions, what a replay leaves out
//! anonymise/  a capture → one with other values
//! store/      the capture: a directory with a manifest and memory-mapped columns
//! show        a capture in figures
//! ```
//!
//! Logs and captures are untrusted: a statement's text can forge entries of most formats, and text is bytes in a character set
//! that no log names. Nothing is decoded to be understood.

pub mod anonymise;
pub mod effect;
pub mod entry;
pub mod import;
pub mod logs;
pub mod show;
pub mod store;
