//! What several records say together: a sweep's cells, the history of an experiment, series of duels.

pub mod history;
pub mod steadiness;
pub mod sweep;
