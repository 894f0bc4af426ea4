//! A server's counters, stint by stint: between two looks at one process, never across a restart.

use std::collections::BTreeMap;

use dbduel_audit::evidence::{ServerEvidence, Texts};
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::store::ContenderFiles;
use dbduel_record::{Event, Record};

use super::lower;

/// Fills in counters, the time that they are about, and how many stints have none.
pub(super) fn read(record: &Record, files: &ContenderFiles, evidence: &mut ServerEvidence) {
    let worked_s = worked_s(record, &evidence.name);
    let first = (&files.status_before, &files.status_after);
    let later = files
        .later_stints
        .iter()
        .map(|stint| (&stint.status_before, &stint.status_after));
    let mut stints: Vec<[Texts; 2]> = std::iter::once(first)
        .chain(later)
        .map(|(before, after)| [lower(before), lower(after)])
        .collect();
    if stints.len() < worked_s.len() {
        // Written when counters were not kept by stint: these two looks are at different processes.
        for [before, _] in &mut stints {
            before.clear();
        }
    }
    let is_whole = |[before, after]: &[Texts; 2]| !before.is_empty() && !after.is_empty();
    let whole: Vec<usize> = (0..stints.len())
        .filter(|&stint| is_whole(&stints[stint]))
        .collect();
    if stints.len() > 1 || worked_s.len() > 1 {
        let all = stints.len().max(worked_s.len());
        evidence.stints_lost = (all - whole.len()) as u32;
    }
    let Some((&last, earlier)) = whole.split_last() else {
        let [before, after] = stints.pop().unwrap_or_default();
        (evidence.status_before, evidence.status_after) = (before, after);
        return;
    };
    let seconds: f64 = whole.iter().filter_map(|stint| worked_s.get(*stint)).sum();
    evidence.active_s = (seconds > 0.0).then_some(seconds);
    evidence.earlier_stints = earlier
        .iter()
        .map(|&stint| std::mem::take(&mut stints[stint]))
        .collect();
    [evidence.status_before, evidence.status_after] = std::mem::take(&mut stints[last]);
}

/// Seconds of load in each stint of the contender's server: warm-up, guards and slices.
fn worked_s(record: &Record, contender: &str) -> Vec<f64> {
    let rows = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
    let lengths: BTreeMap<(u32, u32), (&str, f64)> = rows
        .map(|row| {
            let seconds = row.guard_s + row.measured_s;
            ((row.block, row.position), (row.contender.as_str(), seconds))
        })
        .collect();
    let mut worked = Vec::new();
    let mut has_begun = false;
    for event in &record.events {
        match &event.what {
            // Until a slice begins, each start takes the place of the one before it.
            Event::ServerReady {
                contender: name, ..
            } if name == contender => {
                if !has_begun {
                    worked.clear();
                }
                worked.push(0.0);
            }
            Event::ServerRecovered {
                contender: name, ..
            } if name == contender => worked.push(0.0),
            Event::SliceStarted { .. } => has_begun = true,
            Event::WarmedUp {
                contender: name,
                seconds,
                ..
            } if name == contender => add(&mut worked, *seconds),
            Event::SliceFinished { slice, .. } => match lengths.get(&(slice.block, slice.position))
            {
                Some((name, seconds)) if *name == contender => add(&mut worked, *seconds),
                _ => {}
            },
            _ => {}
        }
    }
    worked
}

fn add(worked: &mut Vec<f64>, seconds: f64) {
    match worked.last_mut() {
        Some(last) => *last += seconds,
        // A journal that does not say when the server came up; there was one all the same.
        None => worked.push(seconds),
    }
}
