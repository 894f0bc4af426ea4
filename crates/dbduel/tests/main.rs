//! Tests of the program as a user meets it, in one binary.
//!
//! Some need nothing but the program; others run real servers, which they fetch once and keep below the build directory.
//! Where that is not possible they count as ignored.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
extern crate dbduel_test_attribute;

/// A load process inside the test.
#[path = "../../dbduel-load/tests/support/mod.rs"]
mod support;

/// Scripts, and what runs them.
#[path = "../../dbduel-sysbench/tests/support/mod.rs"]
mod script_support;

mod suite {
    pub mod attribution;
    pub mod audit;
    pub mod bare_server;
    pub mod bisection;
    pub mod captured_contests;
    pub mod chaos;
    pub mod conditions;
    pub mod crash_test;
    pub mod duels;
    pub mod durability;
    pub mod examples;
    pub mod explanations;
    pub mod fairness;
    pub mod faults;
    pub mod fill;
    pub mod finished;
    pub mod fleet;
    pub mod gallery;
    pub mod git_bisect;
    pub mod harness;
    pub mod hostile;
    pub mod house;
    pub mod images;
    pub mod insert_benchmark;
    pub mod lab;
    pub mod load;
    pub mod logins;
    pub mod mutated;
    pub mod names;
    pub mod namespace;
    pub mod observe;
    pub mod on_postgresql;
    pub mod on_server;
    pub mod on_sqlite;
    pub mod own_workload;
    pub mod packaging;
    pub mod pilot;
    pub mod plans;
    pub mod powercut;
    pub mod prepare;
    pub mod reserved;
    pub mod search;
    pub mod sessions;
    pub mod small_contests;
    pub mod small_disk;
    pub mod stalls;
    pub mod statistics;
    pub mod storage;
    pub mod suites;
    pub mod sweep;
    pub mod sysbench;
    pub mod variants;
    pub mod words;
}

fn main() -> std::process::ExitCode {
    suite::harness::main()
}
