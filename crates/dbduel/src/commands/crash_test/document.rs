//! The document that programs read.

use dbduel_record::Plan;
use dbduel_record::plan::Workload;
use serde::Serialize;

use dbduel_lab::crash::{ContenderOutcome, CutOutcome};

/// Raised when a field changes its name or meaning.
const SCHEMA_VERSION: u32 = 1;

/// All that a crash test brought.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of this document's form.
    pub schema_version: u32,
    /// The program's version.
    pub dbduel: String,
    /// The experiment's question.
    pub question: String,
    /// Seed of the load and of the cuts.
    pub seed: u64,
    /// What the clients did.
    pub workload: Workload,
    /// In the order of the experiment, as far as they were cut.
    pub contenders: Vec<ContenderOutcome>,
}

impl Document {
    /// A document without contenders.
    pub fn new(plan: &Plan) -> Self {
        Document {
            schema_version: SCHEMA_VERSION,
            dbduel: env!("CARGO_PKG_VERSION").to_owned(),
            question: plan.question.clone(),
            seed: plan.seed,
            workload: plan.workload.clone(),
            contenders: Vec::new(),
        }
    }

    /// True when no cut of any contender lost or broke anything.
    pub fn is_all_intact(&self) -> bool {
        let mut cuts = self.contenders.iter().flat_map(|one| &one.cuts);
        cuts.all(CutOutcome::is_intact)
    }
}
