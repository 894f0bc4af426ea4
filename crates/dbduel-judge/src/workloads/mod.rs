//! What only single workloads have: limits of their classes, figures of their own and rules about these.
//!
//! A workload of its own kind is a folder here and a row of [`WORKLOADS`]; one without such figures needs neither.

mod insert_benchmark;
pub mod order_entry;

use dbduel_record::order_entry::Constraint;
use dbduel_record::plan::Parameters;

use super::rules::Rule;

/// A workload about which the judge has more to say than about others.
pub struct Workload {
    /// Its name in plans.
    pub name: &'static str,
    /// Its transaction classes in their order, with what its specification demands of each.
    pub classes: &'static [Constraint],
    /// Rules about its figures.
    pub rules: &'static [Rule],
    /// True when its clients do the same work in every slice, however long that takes.
    pub has_fixed_work: fn(&Parameters) -> bool,
}

/// Every such workload.
pub const WORKLOADS: &[Workload] = &[order_entry::WORKLOAD, insert_benchmark::WORKLOAD];

/// What the specification of a workload demands of its classes; nothing where there is none.
#[must_use]
pub fn classes(workload: &str) -> &'static [Constraint] {
    let found = WORKLOADS.iter().find(|known| known.name == workload);
    found.map_or(&[], |found| found.classes)
}

/// True when slices of a workload end with their work, so that their throughput follows the data as they grow.
#[must_use]
pub fn has_fixed_work(workload: &str, parameters: &Parameters) -> bool {
    let mut known = WORKLOADS.iter();
    known.any(|known| known.name == workload && (known.has_fixed_work)(parameters))
}
