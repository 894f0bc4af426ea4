//! Results over several load levels: curves, crossings, the highest rate that meets an objective, and suites.

pub mod crossing;
pub mod objective;
pub mod scaling;
pub mod search;
pub mod statements;
pub mod suite;
