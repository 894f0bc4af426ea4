//! JSON document of a crash test.

use dbduel_record::Plan;
use dbduel_record::plan::Workload;
use serde::Serialize;

use dbduel_lab::crash::{ContenderOutcome, CutOutcome};

/// Raised when a field changes its name or meaning.
const SCHEMA_VERSION: u32 = 1;

/// Results of a crash test.
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
    /// Workload of the clients.
    pub workload: Workload,
    /// Contenders tested so far, in the order of the experiment.
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
