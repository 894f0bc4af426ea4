//! A bisection made of arithmetic: five commits, of which the fourth made the server slower.

use std::path::Path;

use dbduel_record::Record;
use dbduel_record::bisect::{
    BISECT, BisectPlan, BisectStep, Commit, Repository, Revision, RevisionSource, Skipped,
    StepRole, step_dir,
};
use dbduel_record::plan::FormatVersion;

use super::{Scenario, Side};

/// Speeds of the revisions relative to the first.
const SPEEDS: [f64; 5] = [1.0, 1.0, 1.0, 0.8, 0.8];

/// The plan of the bisection with the steps that it takes, and their records; a skipped one has none.
pub fn bisection() -> (BisectPlan, Vec<Option<Record>>) {
    let plan = plan();
    let record = |step: &BisectStep| step.skipped.is_none().then(|| scenario(step).record());
    let records = plan.steps.iter().map(record).collect();
    (plan, records)
}

/// The same on disk: the directory of a bisection whose steps have no report yet.
pub fn write_bisection(dir: &Path) -> BisectPlan {
    let plan = plan();
    std::fs::write(dir.join(BISECT), serde_json::to_vec(&plan).unwrap()).unwrap();
    for step in plan.steps.iter().filter(|step| step.skipped.is_none()) {
        scenario(step).write(&step_dir(dir, step));
    }
    plan
}

fn scenario(step: &BisectStep) -> Scenario {
    let names = step.role.contenders().iter().zip(&step.revisions);
    let mut sides: Vec<Side> = names
        .map(|(name, &revision)| Side::new(name, &[SPEEDS[revision]]))
        .collect();
    // The first side is the baseline.
    sides.sort_by_key(|side| side.name != step.role.baseline());
    Scenario {
        question: "Which commit made it slower?".to_owned(),
        sides,
        clients: vec![16],
        seed: step.seed,
        ..Scenario::duel()
    }
}

fn plan() -> BisectPlan {
    let revision = |number: usize| Revision {
        name: format!("{number:07x}"),
        commit: Some(Commit {
            hash: format!("{number:040x}"),
            subject: format!("Change <number> {number}"),
            author_date: format!("2026-10-0{}T12:00:00+02:00", number + 1),
        }),
    };
    let steps = [
        (StepRole::Ends, vec![0, 4], None),
        (StepRole::Candidate, vec![0, 4, 2], None),
        (
            StepRole::Candidate,
            vec![0, 4, 3],
            Some("the build exited with 2"),
        ),
        // Of fewer than three contests it is not known what restarts do.
        (StepRole::Candidate, vec![0, 4, 2], None),
        (StepRole::Change, vec![2, 4], None),
    ];
    let steps = steps.into_iter().enumerate();
    let steps = steps.map(|(number, (role, revisions, why))| BisectStep {
        name: format!("{:02}", number + 1),
        role,
        skipped: why.map(|why| Skipped {
            revision: revisions[2],
            why: why.to_owned(),
        }),
        revisions,
        budget_s: 60.0,
        seed: 40 + number as u64,
    });
    BisectPlan {
        format: FormatVersion::CURRENT,
        dbduel: "0.0.0".to_owned(),
        created: "2026-11-20T14:30:00Z".to_owned(),
        experiment: "/lab/commits.toml".to_owned(),
        question: "Which commit made it slower?".to_owned(),
        seed: 1,
        confidence: 0.95,
        horizon: 0.02,
        budget_s: 600.0,
        changes_max: 1,
        cell: None,
        source: RevisionSource::Repository(Repository {
            path: "/lab/server".to_owned(),
            build: "make".to_owned(),
            server: "path:{build}/mariadbd".to_owned(),
            build_limit_s: 3600.0,
            cache_bytes_max: 1 << 30,
            builds_ahead: false,
            merges: 0,
        }),
        revisions: (0..SPEEDS.len()).map(revision).collect(),
        steps: steps.collect(),
    }
}
