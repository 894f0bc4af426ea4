//! Extras of single workloads: limits of their classes, figures of their own and rules about these.
//!
//! A workload of its own kind is a folder here and a row of [`WORKLOADS`]; one without such figures needs neither.

pub mod captured;
mod insert_benchmark;
pub mod order_entry;

use dbduel_record::order_entry::Constraint;
use dbduel_record::plan::Parameters;

use super::rules::Rule;

/// A workload with results beyond those of all workloads.
pub struct Workload {
    /// Its name in plans.
    pub name: &'static str,
    /// Its transaction classes in their order, with the requirements of its specification.
    pub classes: &'static [Constraint],
    /// Rules about its figures.
    pub rules: &'static [Rule],
    /// True when its clients do the same work in every slice, however long that takes.
    pub has_fixed_work: fn(&Parameters) -> bool,
}

/// Every such workload.
pub const WORKLOADS: &[Workload] = &[
    order_entry::WORKLOAD,
    insert_benchmark::WORKLOAD,
    captured::WORKLOAD,
];

/// Requirements of a workload's specification for its classes; empty without a specification.
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
