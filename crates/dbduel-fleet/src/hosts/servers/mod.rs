//! Servers of a contest on other machines than the orchestrator's.
//!
//! The contest prepares, starts, freezes and stops such a server by orders ([`dbduel_lab::server_host::orders`]), one at a time. They go through a
//! link ([`link`]) to the agent of the host, which runs a process that obeys them ([`serve`]) with a sandbox as a contest on one
//! machine has. Questions in SQL go to the server itself.

pub mod link;
pub mod permitted;
pub mod serve;
