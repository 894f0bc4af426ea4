//! What several load levels say together: curves, crossings, and the highest rate that meets an objective.

pub mod crossing;
pub mod objective;
pub mod scaling;
pub mod search;
