//! Restarts, planned or for another pass through a capture: all servers are restarted, their clients connected, and warmed up again.
//!
//! A restart alone can move a server by a percent, so a verdict about servers needs several.

use anyhow::Result;
use dbduel_machine::interrupt;
use dbduel_record::event::Event;

use super::Contest;

impl Contest<'_, '_> {
    /// True when this epoch has all its blocks of `level`; never without planned epochs.
    pub(super) fn is_epoch_full(&self, level: usize) -> bool {
        let begun = self.progress.in_epoch.get(&level).copied().unwrap_or(0);
        let epochs = self.config.plan.schedule.epochs;
        epochs.is_some_and(|epochs| begun >= epochs.blocks)
    }

    /// True when another epoch is planned and the budget has room for its warm-ups and a block.
    pub(super) fn has_time_for_an_epoch(&self) -> bool {
        let plan = self.plan();
        let Some(epochs) = plan.schedule.epochs else {
            return false;
        };
        let warm_ups_s = plan.schedule.warm_up_cap_s * plan.contenders.len() as f64;
        let is_begun = !self.progress.in_epoch.is_empty();
        let needed_s = self.progress.used_s + warm_ups_s;
        is_begun && self.progress.epoch + 1 < epochs.count && needed_s < plan.schedule.budget_s
    }

    /// Restarts all servers; for another pass through a capture on restored tables.
    ///
    /// # Errors
    /// When a contender cannot be recovered, or the user interrupts.
    pub(super) fn begin_epoch(&mut self, restores: bool) -> Result<()> {
        let plan = self.plan();
        for contender in 0..plan.contenders.len() {
            interrupt::check()?;
            let name = &plan.contenders[contender].name;
            if restores {
                self.config
                    .step(&format!("{name}: restoring its tables for the next pass"));
                self.arena.start_on_snapshot(contender, &self.config)?;
                continue;
            }
            self.config.step(&format!("{name}: restarting"));
            if let Err(error) = self.arena.start_anew(contender, &plan) {
                self.allow_failure(contender, error)?;
            }
        }
        if restores {
            self.note_restored();
        }
        self.progress.epoch += 1;
        self.progress.in_epoch.clear();
        self.progress.warmed_s = 0.0;
        let epoch = self.progress.epoch;
        self.journal.event(Event::EpochStarted { epoch })?;
        for contender in 0..plan.contenders.len() {
            self.arena.activate(contender)?;
            if let Err(error) = self
                .arena
                .reconnect_clients(&plan, &mut *self.load, contender)
            {
                self.allow_failure(contender, error)?;
                self.recover(contender, false)?;
            }
        }
        self.warm_up()
    }
}
