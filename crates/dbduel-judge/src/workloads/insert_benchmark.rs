//! Rules for the Insert Benchmark: rates of inserts and deletes that must be kept during queries.
//!
//! Only slices of complete blocks count, as everywhere.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_record::insert_benchmark::{
    BACKGROUND, KEPT_SHARE, NAME, has_fixed_work, required_per_s, step,
};
use dbduel_record::rows::SliceRow;
use dbduel_text::percent;

use super::Workload;
use crate::classes::ClassRows;
use crate::rules::Rule;
use crate::rules::run::RunEvidence;
use crate::rules::table::run;

/// The Insert Benchmark, as the judge sees it.
pub const WORKLOAD: Workload = Workload {
    name: NAME,
    classes: &[],
    rules: RULES,
    has_fixed_work,
};

#[rustfmt::skip]
const RULES: &[Rule] = &[
    run("insert-benchmark.rate", "Queries with fewer concurrent changes than requested are a different, easier load.", rate),
];

fn rate(run: &RunEvidence<'_>) -> Vec<Finding> {
    let plan = run.evidence.plan();
    let parameters = &plan.workload.parameters;
    let required = required_per_s(parameters).filter(|_| plan.workload.name == NAME);
    let Some(required) = required else {
        return Vec::new();
    };
    let by_class = ClassRows::of(run.evidence);
    let mut found = Vec::new();
    let mut least: Option<f64> = None;
    for level in 0..plan.levels.len() {
        for (number, contender) in plan.contenders.iter().enumerate() {
            let totals: Vec<&SliceRow> = run.evidence.levels[level].slices_of(number).collect();
            let measured_s: f64 = totals.iter().map(|row| row.measured_s).sum();
            if measured_s <= 0.0 {
                continue;
            }
            for class in BACKGROUND {
                let rows = by_class.in_slices(&totals, class);
                let done: u64 = rows.iter().map(|row| row.ok).sum();
                let share = done as f64 / (required * measured_s);
                least = Some(least.map_or(share, |least| least.min(share)));
                if share >= KEPT_SHARE {
                    continue;
                }
                let claim = format!(
                    "`{}` failed the rate of `{}`: {} of the requested {class} statements were done, at least {} are required.",
                    contender.name,
                    step(parameters),
                    percent::of(share),
                    percent::of(KEPT_SHARE)
                );
                let remedy =
                    "Take the failed rate as the result; its queries ran under less write load.";
                let about = [contender.name.as_str()];
                found.push(Finding::new(Severity::Doubt, &about, claim, remedy).at(level));
            }
        }
    }
    if let Some(least) = least.filter(|_| found.is_empty()) {
        let claim = format!(
            "All contenders kept the rate of `{}`: at least {} of the requested statements were done.",
            step(parameters),
            percent::of(least)
        );
        found.push(Finding::new(Severity::Note, &[], claim, "Nothing to do."));
    }
    found
}

#[cfg(test)]
mod tests {
    use dbduel_record::event::Event;
    use dbduel_record::rows::{ALL_CLASSES, SliceRow};

    use super::*;
    use crate::summarise;
    use dbduel_testkit::synthetic::Scenario;

    /// What the rule says of a duel at `qr100` in whose slices so many inserts and deletes were done per second.
    fn found(per_s: [f64; 2]) -> Vec<Finding> {
        let mut record = Scenario::duel().record();
        NAME.clone_into(&mut record.plan.workload.name);
        record.plan.workload.parameters = [
            ("step".to_owned(), "qr100".into()),
            ("tables".to_owned(), 1.into()),
        ]
        .into();
        let baseline = record.plan.contenders[0].name.clone();
        let totals = record.slices.clone();
        for row in totals.iter().filter(|row| row.class == ALL_CLASSES) {
            let per_s = per_s[usize::from(row.contender != baseline)];
            for class in BACKGROUND {
                record.slices.push(SliceRow {
                    class: class.to_owned(),
                    ok: (per_s * row.measured_s).round() as u64,
                    ..row.clone()
                });
            }
        }
        let (_, findings) = summarise(&record);
        findings
            .into_iter()
            .filter(|finding| finding.rule == "insert-benchmark.rate")
            .collect()
    }

    #[test]
    fn a_warm_up_that_ends_with_its_work_is_not_doubted() {
        let found = |rows_per_slice: u64| {
            let mut record = Scenario::duel().record();
            NAME.clone_into(&mut record.plan.workload.name);
            record.plan.workload.parameters = [
                ("step".to_owned(), "l.i1".into()),
                ("rows_per_slice".to_owned(), rows_per_slice.into()),
            ]
            .into();
            for event in &mut record.events {
                if let Event::WarmedUp { steady, .. } = &mut event.what {
                    *steady = false;
                }
            }
            for row in &mut record.slices {
                let is_cold = record.plan.blocks[row.block as usize].round < 4;
                row.ok /= 1 + u64::from(is_cold);
            }
            let (_, findings) = summarise(&record);
            findings.iter().any(|one| one.rule == "warm-up.not-steady")
        };
        assert!(found(0), "by time");
        assert!(!found(1_000), "by work");
    }

    #[test]
    fn a_kept_rate_is_a_note() {
        let found = found([2.0, 2.0]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Note);
        assert!(found[0].claim.contains("kept the rate"), "{found:?}");
    }

    #[test]
    fn a_failed_rate_names_who_failed_it() {
        let found = found([2.0, 1.0]);
        // Of each level, inserts and deletes.
        assert!(!found.is_empty() && found.len().is_multiple_of(BACKGROUND.len()));
        for finding in &found {
            assert_eq!(finding.severity, Severity::Doubt);
            assert_eq!(finding.about.len(), 1);
            assert!(finding.claim.contains("failed the rate of `qr100`"));
        }
    }
}
