//! Recovery after a lost slice: restarts the load process and the server, and reconnects clients.

use std::time::Duration;

use anyhow::{Result, bail};
use dbduel_driver::address::Address;
use dbduel_driver::session::Session;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::event::{Event, Notice, Severity};
use dbduel_record::{Record, RecordError};

use super::Contest;
use super::backend::Health;
use super::board::Phase;
use super::durability;
use super::events::ContestEvent;
use crate::drive::LoadHostMissing;
use crate::server_host::ServerHostMissing;
use dbduel_inspect::facts::{Moment, keep};

/// The pause before the second attempt; each further one is twice as long. A server that shuts down cleanly, as
/// PostgreSQL does when one of its processes died, refuses clients meanwhile, and its remaining processes may block the
/// next start.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Interval at which a pause checks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

impl Contest<'_, '_> {
    /// Recovers a contender: starts a load process and a server that have ended, connects the clients, and warms the
    /// server up when it has lost its caches or `is_cold`. Retries failures: starts as often as the plan allows;
    /// connections to a running server within its start timeout.
    ///
    /// # Errors
    /// When these attempts fail, the record cannot be written, or the user interrupts.
    pub(super) fn recover(&mut self, contender: usize, mut is_cold: bool) -> Result<()> {
        if let Some(damage) = self.arena.resident(contender).backend.damage() {
            bail!(
                "the database file of `{}` was damaged outside of the contest: {damage}; a resumed contest replaces it by its \
                 snapshot, or loads it again where there is none",
                self.config.plan.contenders[contender].name
            );
        }
        let patience = Duration::from_secs_f64(self.config.plan.limits.server_start_s);
        let (mut since, mut pause) = (clock::now(), PAUSE);
        self.count_restart(contender)?;
        let mut starts = self.progress.starts;
        loop {
            let error = match self.try_to_recover(contender, &mut is_cold) {
                Ok(()) => return self.arena.freeze_active().map(drop),
                Err(error) => self.allow_failure(contender, error)?,
            };
            let end = clock::now() + pause;
            while clock::now() < end && interrupt::check().is_ok() {
                clock::sleep(LOOK);
            }
            pause = (pause * 2).min(PAUSE_MAX);
            if self.progress.starts > starts {
                // It was started, and that did not help.
                self.count_restart(contender)?;
                starts = self.progress.starts;
                since = clock::now();
            }
            if clock::since(since) > patience {
                let name = &self.config.plan.contenders[contender].name;
                bail!(
                    "could not recover `{name}` within {}: {error}{}",
                    dbduel_text::duration(patience.as_secs_f64()),
                    self.arena.log_hint(contender)
                );
            }
        }
    }

    fn count_restart(&mut self, contender: usize) -> Result<()> {
        let plan = self.plan();
        self.progress.restarts += 1;
        if self.progress.restarts > plan.limits.server_restarts {
            bail!(
                "`{}` failed again after {} restarts in this run{}",
                plan.contenders[contender].name,
                plan.limits.server_restarts,
                self.arena.log_hint(contender)
            );
        }
        Ok(())
    }

    /// Connects the clients of all contenders for the first time. Restarts a load process or servers that have ended
    /// since their preparation.
    ///
    /// # Errors
    /// When clients cannot be connected for another reason, or the plan's restarts are used up.
    pub(super) fn connect_clients(&mut self) -> Result<Vec<(Address, Session)>> {
        let plan = self.plan();
        loop {
            let failure = match self.arena.connect_clients(&plan, &mut *self.load) {
                Ok(sessions) => return Ok(sessions),
                Err(failure) => failure,
            };
            let mut died = Vec::new();
            for contender in 0..plan.contenders.len() {
                if let Some(how) = self.arena.resident(contender).ended_by_itself() {
                    died.push((contender, how));
                }
            }
            let is_over = self.progress.restarts >= plan.limits.server_restarts;
            if is_over || (died.is_empty() && !self.load.is_broken()) {
                return Err(failure);
            }
            self.progress.restarts += 1;
            for (contender, how) in died {
                self.restart_server(contender, how)?;
            }
            self.replace_load()?;
        }
    }

    /// Journals a contender's failure before a retry; returns the failure.
    ///
    /// # Errors
    /// The failure itself when a retry cannot help; [`ScriptFails`](super::ScriptFails) when a script fails again.
    pub(super) fn allow_failure(
        &mut self,
        contender: usize,
        failure: anyhow::Error,
    ) -> Result<String> {
        let is_final = failure.is::<RecordError>()
            || failure.is::<LoadHostMissing>()
            || failure.is::<ServerHostMissing>();
        if is_final || interrupt::check().is_err() {
            return Err(failure);
        }
        let why = format!("{failure:#}");
        self.note_failure(contender, &why)?;
        let name = &self.config.plan.contenders[contender].name;
        self.config.remark(&format!("{name}: {why}"));
        Ok(why)
    }

    fn try_to_recover(&mut self, contender: usize, is_cold: &mut bool) -> Result<()> {
        let plan = self.plan();
        let is_restarted = self.load.is_broken();
        if is_restarted {
            self.restart_load(contender)?;
        }
        if let Health::Dead { how } = self.arena.health(contender) {
            *is_cold = true;
            self.restart_server(contender, how)?;
        }
        self.arena.activate(contender)?;
        if is_restarted {
            self.end_remote_clients(contender)?;
        }
        self.arena
            .reconnect_clients(&plan, &mut *self.load, contender)?;
        if *is_cold {
            self.warm_up_one(contender)?;
            *is_cold = false;
            self.config
                .emit(&ContestEvent::PhaseBegun(Phase::Measuring));
        }
        Ok(())
    }

    /// Starts the load process again and connects the clients of all contenders but `but`, which is connected next.
    fn restart_load(&mut self, but: usize) -> Result<()> {
        let plan = self.plan();
        self.replace_load()?;
        for other in (0..plan.contenders.len()).filter(|&other| other != but) {
            self.arena.activate(other)?;
            let connected = self
                .end_remote_clients(other)
                .and_then(|()| self.arena.reconnect_clients(&plan, &mut *self.load, other));
            if let Err(error) = connected {
                if self.load.is_broken() {
                    return Err(error);
                }
                // Its next slice is lost, and then it is its turn to be brought back.
                self.allow_failure(other, error)?;
            }
        }
        Ok(())
    }

    /// Starts the load process again, without clients; journals that where the previous one had failed.
    fn replace_load(&mut self) -> Result<()> {
        let failure = self.load.failure().map(str::to_owned);
        match failure.filter(|_| self.config.plan.hosts.is_some()) {
            Some(why) => self.journal.notice(Notice::new(
                "load.host-lost",
                Severity::Note,
                &[],
                format!("the load process was lost and started again on all load hosts: {why}"),
                "check the host, its agent, nats-server, and the network between them",
            ))?,
            None if self.load.is_broken() => self.journal.notice(Notice::new(
                "load.restarted",
                Severity::Note,
                &[],
                "the load process ended or stopped answering; it was started again".to_owned(),
                "find the cause: the kernel log names processes killed for lack of memory",
            ))?,
            None => {}
        }
        self.progress.starts += 1;
        self.load = self.config.provider.load(&self.config)?;
        Ok(())
    }

    fn restart_server(&mut self, contender: usize, how: String) -> Result<()> {
        let plan = self.plan();
        let name = plan.contenders[contender].name.clone();
        self.journal.event(Event::ServerDied {
            contender: name.clone(),
            how,
        })?;
        self.config
            .step(&format!("{name}: starting again after it ended"));
        self.progress.starts += 1;
        let seconds = self.arena.restart(contender, &plan)?;
        self.journal.event(Event::ServerRecovered {
            contender: name.clone(),
            seconds,
        })?;
        // Before new work can take the place of what was lost.
        let log = Record::open(self.config.record)?.commits_of(&name);
        let resident = self.arena.resident(contender);
        durability::compare(&self.config, resident, &log, self.journal)?;
        let statement = Duration::from_secs_f64(plan.limits.statement_s);
        let mut connection = self.arena.connect(contender, statement)?;
        keep(self.journal.writer(), &name, &mut connection, Moment::Again)
    }
}
