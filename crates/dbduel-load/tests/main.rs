//! Tests of the load process in one program, so that the crate is linked once for them. Those that count allocations or
//! memory of their process are programs of their own.

mod clocks;
mod drive;
mod faults;
mod script_workload;
mod support;
mod turns;
