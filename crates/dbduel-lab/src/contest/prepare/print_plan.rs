//! Reports the data to be loaded beforehand, and stops when the disk has too little room.

use std::collections::BTreeSet;

use anyhow::Result;
use dbduel_record::Record;
use dbduel_record::plan::Contender;
use dbduel_workloads::Workload;
use dbduel_workloads::fill::Extent;

use super::data::is_dataset_known;
use crate::contest::ContestConfig;
use crate::contest::backend::ContenderServer;
use crate::dataset;
use crate::forecast::{Need, copies_with_snapshot, sentence};
use crate::snapshots::Snapshots;

/// Checks all contenders; data in a snapshot or on a running server are not loaded.
///
/// # Errors
/// When the disk of the home clearly has too little room, or a running server does not answer.
pub fn announce(
    config: &ContestConfig<'_>,
    past: &Record,
    workload: &'static dyn Workload,
    residents: &mut [ContenderServer],
) -> Result<()> {
    let plan = &config.plan;
    let Some(extent) = Extent::of(workload, &plan.workload.parameters) else {
        return Ok(());
    };
    let snapshots = Snapshots::new(config.home);
    let copies = copies_with_snapshot(config.home.root());
    let mut need = Need::default();
    let mut to_load: Vec<&Contender> = Vec::new();
    let mut keys = BTreeSet::new();
    for (contender, resident) in plan.contenders.iter().zip(residents) {
        if is_dataset_known(past, &contender.name) {
            continue;
        }
        let parameters = plan.workload_of(contender).parameters;
        if !resident.backend.is_ours() {
            if dataset::is_absent(plan, workload, resident)? {
                to_load.push(contender);
            }
            continue;
        }
        // Whether another machine has a snapshot and room is not known here.
        let Some(key) = resident.backend.snapshot_key(contender, plan) else {
            continue;
        };
        let known = snapshots.description(&key).map(|snapshot| snapshot.bytes);
        // Equal contenders take the snapshot that the first of them leaves.
        let is_shared = !keys.insert(key);
        need = need.and(match known {
            // Where copies share their blocks, it takes no room.
            Some(bytes) => Need::to_copy(bytes * u64::from(copies - 1)),
            None if is_shared => Need::to_copy(extent.disk_bytes * u64::from(copies - 1)),
            None => {
                to_load.push(contender);
                Need::to_load(extent, &parameters, copies)
            }
        });
    }
    if let [first, others @ ..] = to_load.as_slice() {
        let each = if others.is_empty() { "" } else { ", for each" };
        let names: Vec<&str> = to_load.iter().map(|one| one.name.as_str()).collect();
        // Contenders may store the same rows differently; the first one stands for all.
        let sentence = sentence(extent, &plan.workload_of(first).parameters);
        config.remark(&format!(
            "to load into `{}`: {sentence}{each}",
            names.join("`, `")
        ));
    }
    need.check(config.home.root(), workload)
}
