//! The work of an agent: one cell at a time from the queue, run, delivered, acknowledged last.

mod deliver;
mod place;

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_lab::contest::now_ms;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_nats::{Delivery, NatsError};
use dbduel_record::whole::write_whole;
use dbduel_server::Home;
use dbduel_text::terminal;

use self::place::{FILE_MODE, Finished, read_finished, record_of, remove, results_of, wait_for};
use super::Fleet;
use super::agent::{Agent, CellAtHand};
use super::archive::RecordArchive;
use super::cell::{self, Cell, CellEntry, CellOutcome, CellResult, Failure, key};
use super::child::{self, ChildEnd};

/// Longest single wait for a cell.
const TAKE_WAIT: Duration = Duration::from_secs(2);
/// Pause before a call to NATS is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Failed attempts after which a cell has failed.
const FAILURES_MAX: u32 = 3;
/// Most times that a cell is given to a worker: killed workers report no failure.
const DELIVERIES_MAX: u64 = 10;
/// Pause before a cell that failed is tried again.
const FAILED_PAUSE: Duration = Duration::from_secs(5);
/// Exit codes of `dbduel run` that leave a complete record: decided, undecided, void.
const RECORD_CODES: [i32; 3] = [0, 3, 4];

/// The worker of an agent.
pub struct Worker<'w> {
    fleet: &'w Fleet<'w>,
    archive: RecordArchive<'w>,
    agent: &'w Agent,
    home: &'w Home,
    /// Folder with one folder per cell that is running or not delivered.
    folder: PathBuf,
    lock: File,
}

impl<'w> Worker<'w> {
    /// Prepares the place of a worker in the home: one worker per home.
    ///
    /// # Errors
    /// When another worker or its contest still uses it after three minutes, or it cannot be written.
    pub fn new(fleet: &'w Fleet<'w>, agent: &'w Agent, home: &'w Home) -> Result<Self> {
        let folder = home.root().join("fleet");
        fs::create_dir_all(&folder)
            .with_context(|| format!("could not create `{}`", folder.display()))?;
        let path = folder.join("lock");
        let lock = File::create(&path)
            .with_context(|| format!("could not create `{}`", path.display()))?;
        wait_for(&lock, home)?;
        Ok(Worker {
            archive: RecordArchive::open(fleet.nats)?,
            fleet,
            agent,
            home,
            folder,
            lock,
        })
    }

    /// Works until the user stops it, or with `until_empty` until the queue has nothing left.
    ///
    /// # Errors
    /// When a record cannot be delivered for an hour, or the home cannot be written.
    pub fn work(&self, until_empty: bool) -> Result<()> {
        self.deliver_leftovers()?;
        while interrupt::urgency() == Urgency::None {
            match self.fleet.queue.take(TAKE_WAIT) {
                Ok(Some(delivery)) => self.run_cell(delivery)?,
                Ok(None) if until_empty && self.is_queue_empty() => return Ok(()),
                Ok(None) => self.trouble(None),
                Err(error) => {
                    self.trouble(Some(error.to_string()));
                    std::thread::sleep(RETRY_PAUSE);
                }
            }
        }
        Ok(())
    }

    fn is_queue_empty(&self) -> bool {
        self.fleet
            .queue
            .counts()
            .is_ok_and(|counts| counts.messages == 0)
    }

    /// Prints the reason why it cannot work, once per reason.
    fn trouble(&self, why: Option<String>) {
        if self.agent.state().trouble != why {
            match &why {
                Some(why) => terminal::status_line(why),
                None => terminal::status_line("working again"),
            }
            self.agent.update(|state| state.trouble = why);
        }
    }

    /// Delivers cells that an earlier agent in this home had finished, and removes the unfinished ones.
    fn deliver_leftovers(&self) -> Result<()> {
        let entries = fs::read_dir(&self.folder)
            .with_context(|| format!("could not list `{}`", self.folder.display()))?;
        for entry in entries {
            let place = entry?.path();
            if !place.is_dir() {
                continue;
            }
            if let Some(finished) = read_finished(&place)? {
                terminal::status_line(&format!(
                    "{} was finished but not delivered; delivering it",
                    finished.entry.name()
                ));
                self.deliver(&place, &finished, None)?;
            } else {
                remove(&place)?;
            }
        }
        Ok(())
    }

    fn run_cell(&self, delivery: Delivery<'_>) -> Result<()> {
        let began = Instant::now();
        let cell = match Cell::read(delivery.payload()) {
            Ok(cell) => cell,
            Err(error) => {
                // It has no digest under which anything could be kept.
                terminal::status_line(&format!("removed a cell that is not understood: {error:#}"));
                acknowledged(delivery.done());
                return Ok(());
            }
        };
        let name = cell.entry.name();
        match self.result_of(&cell.entry) {
            Ok(None) => {}
            Ok(Some(result)) => {
                terminal::status_line(&format!("{name} was already done by {}", result.agent));
                acknowledged(delivery.done());
                return Ok(());
            }
            Err(error) => {
                terminal::status_line(&format!("{error:#}"));
                acknowledged(delivery.release(FAILED_PAUSE));
                return Ok(());
            }
        }
        if delivery.attempt() > DELIVERIES_MAX {
            let why = format!(
                "it was given to workers {DELIVERIES_MAX} times, and none reported a result"
            );
            terminal::status_line(&format!("{name} failed: {why}"));
            let value = serde_json::to_vec(&self.failed(began, why))?;
            let result_key = key::of(key::RESULT, &cell.entry.digest);
            match self.fleet.entries.create(&result_key, value) {
                Ok(_) => acknowledged(delivery.done()),
                Err(error) => acknowledged(Err(error)),
            }
            return Ok(());
        }
        terminal::status_line(&format!("{name} ({})", cell.entry.short()));
        self.at_hand(Some((&cell.entry, "running")));
        let outcome = self.conduct(&cell, delivery, began);
        self.at_hand(None);
        outcome
    }

    /// Reports the current cell, its phase, and since when.
    fn at_hand(&self, cell: Option<(&CellEntry, &str)>) {
        self.agent.update(|state| {
            let since_ms = state
                .cell
                .as_ref()
                .map_or_else(now_ms, |cell| cell.since_ms);
            state.cell = cell.map(|(entry, phase)| CellAtHand {
                entry: entry.clone(),
                phase: phase.to_owned(),
                since_ms,
                for_s: 0.0,
            });
        });
    }

    /// Runs a cell and delivers its record or its failure.
    fn conduct(&self, cell: &Cell, delivery: Delivery<'_>, began: Instant) -> Result<()> {
        let place = self.folder.join(&cell.entry.digest);
        let experiment = place.join(format!("{}.toml", cell.entry.experiment));
        let plan = match cell::plan_here(&experiment, &cell.text) {
            Ok(plan) => plan,
            // Another attempt would end alike, at least here; what agents refuse all of them refuse.
            Err(error) => return self.fail(delivery, &cell.entry, began, format!("{error:#}")),
        };
        remove(&place)?;
        fs::create_dir(&place)
            .with_context(|| format!("could not create `{}`", place.display()))?;
        write_whole(&experiment, cell.text.as_bytes(), FILE_MODE)
            .with_context(|| format!("could not write `{}`", experiment.display()))?;
        let (results, output) = (results_of(&place), place.join("output.txt"));
        let ended = child::run(&child::Run {
            home: self.home.root(),
            experiment: &experiment,
            results: &results,
            output: &output,
            lock: &self.lock,
            limit: child::limit(&plan),
        })?;
        let why = match ended {
            ChildEnd::Interrupted => {
                terminal::status_line(&format!("gave {} back", cell.entry.name()));
                acknowledged(delivery.release(Duration::ZERO));
                return remove(&place);
            }
            ChildEnd::Code(code) if RECORD_CODES.contains(&code) && record_of(&place).is_ok() => {
                let finished = Finished {
                    entry: cell.entry.clone(),
                    took_s: began.elapsed().as_secs_f64(),
                    ended_ms: now_ms(),
                };
                finished.write(&place)?;
                self.at_hand(Some((&cell.entry, "delivering")));
                return self.deliver(&place, &finished, Some(delivery));
            }
            ChildEnd::Code(code) => format!(
                "`dbduel run` ended with exit code {code}: {}",
                child::end_of_output(&output)
            ),
            ChildEnd::Failed(why) => format!("{why}: {}", child::end_of_output(&output)),
        };
        remove(&place)?;
        self.fail(delivery, &cell.entry, began, why)
    }

    /// Notes a failed attempt; the cell is tried again, here or elsewhere, until it has failed `FAILURES_MAX` times.
    fn fail(
        &self,
        delivery: Delivery<'_>,
        entry: &CellEntry,
        began: Instant,
        why: String,
    ) -> Result<()> {
        terminal::status_line(&format!("{} failed: {why}", entry.name()));
        let noted = || -> Result<bool> {
            let failure_key = key::of(key::FAILURE, &entry.digest);
            let before = self.fleet.entries.get(&failure_key)?;
            let before = before.and_then(|before| serde_json::from_slice::<Failure>(&before).ok());
            let failure = Failure {
                count: before.map_or(0, |before| before.count) + 1,
                last: self.failed(began, why),
            };
            let value = serde_json::to_vec(&failure)?;
            self.fleet.entries.put(&failure_key, value)?;
            if failure.count >= FAILURES_MAX {
                let value = serde_json::to_vec(&failure.last)?;
                let result_key = key::of(key::RESULT, &entry.digest);
                self.fleet.entries.create(&result_key, value)?;
            }
            Ok(failure.count >= FAILURES_MAX)
        };
        acknowledged(match noted() {
            Ok(true) => delivery.done(),
            Ok(false) => delivery.release(FAILED_PAUSE),
            Err(error) => {
                terminal::status_line(&format!("{error:#}"));
                delivery.release(FAILED_PAUSE)
            }
        });
        Ok(())
    }

    fn failed(&self, began: Instant, why: String) -> CellResult {
        CellResult {
            agent: self.agent.state().name,
            ended_ms: now_ms(),
            took_s: began.elapsed().as_secs_f64(),
            outcome: CellOutcome::Failed { why },
        }
    }

    fn result_of(&self, entry: &CellEntry) -> Result<Option<CellResult>> {
        let found = self
            .fleet
            .entries
            .get(&key::of(key::RESULT, &entry.digest))?;
        let result = found
            .map(|found| serde_json::from_slice(&found))
            .transpose();
        result.with_context(|| {
            format!(
                "the result of {} on NATS cannot be parsed; submit it again to replace it",
                entry.name()
            )
        })
    }
}

/// Prints an error of NATS. The agent continues: an unacknowledged cell comes back when its lease ends, to an agent
/// that finds its result or runs it again.
fn acknowledged(answer: Result<(), NatsError>) {
    if let Err(error) = answer {
        terminal::status_line(&error.to_string());
    }
}
