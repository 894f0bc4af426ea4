//! What several records say together: a sweep's cells, the steps of a bisection, the history of an experiment, one duel on several machines, series of
//! duels.

pub mod bisect;
mod copies;
pub mod history;
pub mod pool;
pub mod steadiness;
pub mod sweep;

use super::Summary;

/// A judged record and where it is.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its directory, as it was named.
    pub place: String,
    /// The judge's summary of it.
    pub summary: Summary,
}

impl AsRef<Judged> for Judged {
    fn as_ref(&self) -> &Judged {
        self
    }
}
