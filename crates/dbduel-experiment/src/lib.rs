//! Experiments: the file as written, every value with its position, and the plan that it becomes.
//!
//! [`Experiment::parse`] reads a file and applies no default; [`expand`] applies all of them.

pub mod expand;
mod experiment;
mod power_cuts;

pub use experiment::*;
pub use power_cuts::{NotCuttable, check_cuttable};
