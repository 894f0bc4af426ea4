//! Tests of the program as a user meets it, in one binary.
//!
//! `house` and `plans` need nothing but the program; `duels`, `durability`, `faults`, `logins` and `storage` run real
//! servers, which they fetch once and keep below the build directory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod suite {
    pub mod audit;
    pub mod bare_server;
    pub mod conditions;
    pub mod duels;
    pub mod durability;
    pub mod fairness;
    pub mod faults;
    pub mod house;
    pub mod lab;
    pub mod load;
    pub mod logins;
    pub mod observe;
    pub mod plans;
    pub mod search;
    pub mod statistics;
    pub mod storage;
    pub mod sweep;
    pub mod sysbench;
}
