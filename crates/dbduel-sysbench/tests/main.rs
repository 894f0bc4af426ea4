//! Tests of scripts in runs, in one program, so that the crate is linked once for them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod script_connections;
mod script_end;
mod script_library;
mod script_rules;
mod script_stack;
mod support;
