//! What a look at a workload's data brings. Knows no workload.

/// When the data are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing has changed since the tables were filled.
    Fresh,
    /// Transactions have run.
    AfterLoad,
}

/// One statement about the data that must be true.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Its name, unique in its workload.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub about: &'static str,
    /// How often it does not hold, as far as they were counted.
    pub violations: u64,
    /// The first violation: columns and values.
    pub example: Option<String>,
    /// Time that the queries took, seconds.
    pub seconds: f64,
}

impl Condition {
    /// True when no violation was found.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}

/// What became of acknowledged commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recall {
    /// Numbers in the log, each counted once.
    pub acknowledged: u64,
    /// How many of them are not in the data.
    pub lost: u64,
    /// The first that is lost, in words.
    pub example: Option<String>,
    /// Numbers in the data that are not in the log. A commit whose acknowledgement did not arrive is
    /// among them, so after a crash there may be as many as there were clients.
    pub beyond: u64,
}

/// What a look at the data brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verification {
    /// Every condition that must hold at this moment.
    pub conditions: Vec<Condition>,
    /// Counts that are neither right nor wrong by themselves, by name.
    pub counts: Vec<(&'static str, u64)>,
}

impl Verification {
    /// True when all conditions hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.conditions.iter().all(Condition::holds)
    }
}
