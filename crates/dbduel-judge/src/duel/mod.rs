//! One level: what each contender did there, and the verdict between them.

pub mod attribution;
pub mod decide;
pub mod epochs;
mod few_stalls;
pub mod limit;
pub mod log_ratios;
pub mod measures;
pub mod overturn;
pub mod pairs;
mod paths;
pub mod profile;
pub mod quantities;
pub mod steady;
