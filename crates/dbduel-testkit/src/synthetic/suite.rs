//! A record of a suite.

use dbduel_record::Record;
use dbduel_record::plan::{BlockForm, Suite, SuitePhase, SuiteWorkload};

use super::Scenario;

/// Four contenders on three workloads of two groups.
pub fn suite_record() -> Record {
    let mut record = Scenario::four().record();
    let cells = [
        ("point-query", "point", SuitePhase::Read),
        ("random-points-100", "point", SuitePhase::Read),
        ("update-index", "write", SuitePhase::Write),
    ];
    for (level, (name, group, phase)) in record.plan.levels.iter_mut().zip(cells) {
        level.clients = 16;
        level.cell = Some(SuiteWorkload {
            name: name.to_owned(),
            group: group.to_owned(),
            phase,
            slice_s: None,
            workload: record.plan.workload.clone(),
        });
    }
    record.plan.suite = Some(Suite {
        block_form: BlockForm::Affordable,
        settle_s: 5.0,
    });
    record
}
