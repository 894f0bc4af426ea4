//! Delivery of a finished cell: its record to the archive, its result to the fleet, the acknowledgement last.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_nats::Delivery;
use dbduel_text::terminal;

use super::place::{Finished, record_of, remove};
use super::{Worker, acknowledged};
use crate::archive::Packed;
use crate::cell::{CellOutcome, CellResult, key};

/// Time for a delivery; after it, the record is kept for the next start of the agent.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(3600);
/// Pause before a delivery is tried again.
const DELIVERY_PAUSE: Duration = Duration::from_secs(5);

impl Worker<'_> {
    /// Stores the record of a cell, then its result, then acknowledges. Tried again for an hour; a record that could not be
    /// delivered stays for the next start.
    pub(super) fn deliver(
        &self,
        place: &Path,
        finished: &Finished,
        delivery: Option<Delivery<'_>>,
    ) -> Result<()> {
        let name = finished.entry.name();
        let deadline = Instant::now() + DELIVERY_TIMEOUT;
        while let Err(error) = self.try_to_deliver(place, finished) {
            self.trouble(Some(format!("could not deliver {name}: {error:#}")));
            let next = Instant::now() + DELIVERY_PAUSE;
            while Instant::now() < next {
                if interrupt::urgency() > Urgency::None || Instant::now() > deadline {
                    bail!(
                        "{name} was run but not delivered: {error:#}; its record is kept in `{}` \
                         and delivered when an agent starts in this home",
                        place.display()
                    );
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        self.trouble(None);
        self.agent.update(|state| state.delivered += 1);
        if let Some(delivery) = delivery {
            acknowledged(delivery.done());
        }
        remove(place)
    }

    fn try_to_deliver(&self, place: &Path, finished: &Finished) -> Result<()> {
        let packed = Packed::of(&record_of(place)?, &place.join("record.tar.gz"))?;
        self.archive.store(&packed)?;
        let digest = &finished.entry.digest;
        let result = CellResult {
            agent: self.agent.state().name,
            ended_ms: finished.ended_ms,
            took_s: finished.took_s,
            outcome: CellOutcome::Record {
                digest: packed.digest.clone(),
                verdicts: packed.index.verdicts.clone(),
            },
        };
        let value = serde_json::to_vec(&result)?;
        let entries = &self.fleet.entries;
        if !entries.create(&key::of(key::RESULT, digest), value.clone())? {
            let first = self.result_of(&finished.entry)?;
            // Not the answer to an attempt of this agent that was lost on its way.
            if first.as_ref() != Some(&result) {
                entries.put(&key::of(key::REPEATED, digest), value)?;
                let by = first.map_or_else(|| "another agent".to_owned(), |first| first.agent);
                terminal::status_line(&format!(
                    "{} was meanwhile done by {by}; that result counts",
                    finished.entry.name()
                ));
            }
        }
        Ok(())
    }
}
