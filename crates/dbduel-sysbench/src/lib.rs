//! Runs as sysbench understands them: its workloads, its scripts, and its tests of the machine.

pub mod bridge;
pub mod machine;
