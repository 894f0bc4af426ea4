//! A sweep made of arithmetic: one record per level of a single factor.

use std::path::Path;

use dbduel_record::Record;
use dbduel_record::plan::FormatVersion;
use dbduel_record::sweep::{
    Factor, FactorKind, FactorLevel, SWEEP, SweepCell, SweepPlan, cell_dir,
};

use super::{Scenario, Side};

/// A sweep over `table_size` with these sizes, in which the second contender has these speeds relative to
/// the first. Cells run from the last level to the first.
pub fn sweep(sizes: &[u32], speeds: &[f64]) -> (SweepPlan, Vec<Option<Record>>) {
    let plan = plan(sizes);
    let records = plan
        .cells
        .iter()
        .map(|cell| Some(scenario(cell, speeds).record()));
    let records = records.collect();
    (plan, records)
}

/// The same on disk: the directory of a sweep whose cells have no report yet.
pub fn write_sweep(dir: &Path, sizes: &[u32], speeds: &[f64]) -> SweepPlan {
    let plan = plan(sizes);
    std::fs::write(dir.join(SWEEP), serde_json::to_vec(&plan).unwrap()).unwrap();
    for cell in &plan.cells {
        scenario(cell, speeds).write(&cell_dir(dir, cell));
    }
    plan
}

fn scenario(cell: &SweepCell, speeds: &[f64]) -> Scenario {
    let level = cell.levels[0];
    Scenario {
        sides: vec![Side::new("a", &[1.0]), Side::new("b", &[speeds[level]])],
        clients: vec![16],
        seed: 100 + level as u64,
        ..Scenario::duel()
    }
}

fn plan(sizes: &[u32]) -> SweepPlan {
    let levels = sizes.iter().map(|size| FactorLevel {
        label: size.to_string(),
        value: (*size).into(),
        size: Some(f64::from(*size)),
    });
    let order = (0..sizes.len()).rev();
    SweepPlan {
        format: FormatVersion::CURRENT,
        dbduel: "0.0.0".to_owned(),
        created: "2026-11-20T14:30:00Z".to_owned(),
        experiment: "/lab/sizes.toml".to_owned(),
        question: "From which size on is <b> faster than a?".to_owned(),
        seed: 1,
        budget_s: 3600.0,
        factors: vec![Factor {
            name: "table_size".to_owned(),
            kind: FactorKind::Parameter,
            levels: levels.collect(),
        }],
        cells: order
            .enumerate()
            .map(|(place, level)| SweepCell {
                name: format!("{:03}-table_size-{}", place + 1, sizes[level]),
                levels: vec![level],
                seed: level as u64,
            })
            .collect(),
    }
}
