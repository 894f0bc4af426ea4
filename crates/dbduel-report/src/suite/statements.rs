//! Plans of the statements of a suite's workloads.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, StatementPlan};
use serde::Serialize;

use super::number_of;

/// The statements of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadPlans {
    pub workload: String,
    pub classes: Vec<ClassPlans>,
}

/// A class of statements; contenders with the same plan share a row.
#[derive(Debug, Clone, Serialize)]
pub struct ClassPlans {
    pub class: String,
    /// A statement of the class; empty where it is too long.
    pub example: String,
    pub rows: Vec<PlanRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PlanRow {
    pub contenders: Vec<ContenderMark>,
    /// Steps, or why there is no plan.
    pub steps: Vec<String>,
    pub is_changed: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct ContenderMark {
    pub name: String,
    pub number: usize,
}

/// Workloads whose statements contenders were asked to explain, with the plans.
pub(super) fn plans(summary: &Summary) -> Vec<WorkloadPlans> {
    let asked = summary
        .duels
        .iter()
        .filter(|duel| !duel.statements.is_empty());
    let of_duel = |duel: &Duel| WorkloadPlans {
        workload: duel.label.clone(),
        classes: duel
            .statements
            .iter()
            .map(|statement| {
                let mut rows: Vec<(&StatementPlan, PlanRow)> = Vec::new();
                for plan in &statement.plans {
                    let mark = ContenderMark {
                        name: plan.contender.clone(),
                        number: number_of(summary, &plan.contender),
                    };
                    let is_same = |known: &StatementPlan| {
                        (known.number, &known.because) == (plan.number, &plan.because)
                    };
                    if let Some((_, row)) = rows.iter_mut().find(|(known, _)| is_same(known)) {
                        row.contenders.push(mark);
                        continue;
                    }
                    let why = plan.because.iter().map(|why| format!("no plan: {why}"));
                    let row = PlanRow {
                        contenders: vec![mark],
                        steps: plan.steps.iter().cloned().chain(why).collect(),
                        is_changed: statement
                            .changed(&plan.contender, &summary.baseline)
                            .is_some(),
                    };
                    rows.push((plan, row));
                }
                ClassPlans {
                    class: statement.class.clone(),
                    example: statement.example.clone().unwrap_or_default(),
                    rows: rows.into_iter().map(|(_, row)| row).collect(),
                }
            })
            .collect(),
    };
    asked.map(of_duel).collect()
}

/// How many classes of a workload's statements have different plans on two contenders; `None` where there is none.
pub(super) fn changed(duel: &Duel, contender: &str, against: &str) -> Option<String> {
    let classes = duel.statements.iter();
    let changed = classes.filter(|one| one.changed(contender, against).is_some());
    let changed = changed.count();
    (changed > 0).then(|| {
        let all = duel.statements.len();
        format!("plan differs in {changed} of {all} classes of statements")
    })
}
