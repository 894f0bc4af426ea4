//! Quanta of a trace: which one each contender runs next, and whether the trace holds another block.
//!
//! A contender runs the quanta in their order, one per slice, from the first after its tables were restored. In a mirrored block
//! A B B A both therefore run one quantum and then both the next one.

use anyhow::Result;
use dbduel_record::plan::{Block, Parameters};

use super::Contest;
use super::phases::Part;
use super::warm_up::workload_at;

impl Contest<'_, '_> {
    /// Number of the quantum that a contender runs next; `None` where the workload of the level is no trace.
    pub(super) fn next_quantum(&self, contender: usize, level: usize) -> Result<Option<u32>> {
        let run = self.progress.quanta_run[contender];
        Ok(self.quanta(contender, level)?.map(|_| run))
    }

    /// True where the workload is a trace, whose tables are restored for every pass.
    pub(super) fn restores_tables(&self) -> Result<bool> {
        Ok(self.quanta(0, 0)?.is_some())
    }

    /// True when no contender reaches the end of its trace in a block.
    pub(super) fn has_quanta_for(&self, block: &Block) -> Result<bool> {
        for &contender in &block.order {
            let slices = block.order.iter().filter(|other| **other == contender);
            let needed = slices.count() as u64 * u64::from(block.repeats);
            let run = u64::from(self.progress.quanta_run[contender]);
            let quanta = self.quanta(contender, block.level)?;
            if quanta.is_some_and(|quanta| run + needed > u64::from(quanta)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True when the budget has time for the warm-ups of another pass and for a block after them.
    pub(super) fn has_time_for_a_pass(&self, part: &Part, block: &Block) -> bool {
        let plan = self.plan();
        let left_s = plan.schedule.budget_s - part.reserved_s - self.progress.used_s;
        self.progress.warmed_s + self.expected_load_s(block) <= left_s
    }

    /// Quanta of a contender's trace.
    fn quanta(&self, contender: usize, level: usize) -> Result<Option<u32>> {
        let workload = workload_at(&self.config.plan, level)?;
        Ok(workload.quanta(&self.parameters_at(contender, level)))
    }

    /// Parameters of a contender's workload at a level.
    pub(super) fn parameters_at(&self, contender: usize, level: usize) -> Parameters {
        let plan = &self.config.plan;
        plan.workload_at(level, &plan.contenders[contender])
            .parameters
    }
}
