//! The folder of a worker in its home: one worker at a time, and a folder per cell that is running or not delivered.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dbduel_machine::interrupt;
use dbduel_record::foreign::{DOCUMENT_BYTES_MAX, read_text};
use dbduel_record::whole::write_whole;
use dbduel_server::Home;
use dbduel_text::terminal;
use serde::{Deserialize, Serialize};

use crate::cell::CellEntry;

/// Time for the contest of a killed agent to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(180);
pub(super) const FILE_MODE: u32 = 0o600;
/// File in the folder of a cell whose record is complete, with what is to be delivered.
const FINISHED: &str = "finished.json";

/// A cell that was run and is to be delivered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) entry: CellEntry,
    pub(super) took_s: f64,
    pub(super) ended_ms: u64,
}

impl Finished {
    /// Notes in the folder of a cell that its record is complete.
    pub(super) fn write(&self, place: &Path) -> Result<()> {
        let path = place.join(FINISHED);
        write_whole(&path, &serde_json::to_vec(self)?, FILE_MODE)
            .with_context(|| format!("could not write `{}`", path.display()))
    }
}

/// Waits until no other worker, and no contest of one that was killed, uses the home.
pub(super) fn wait_for(lock: &File, home: &Home) -> Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let mut is_reported = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(error).context("could not lock the home for this worker");
            }
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => bail!(
                "another worker uses the home `{}`; stop it, or name another home with `--home`",
                home.root().display()
            ),
            Err(TryLockError::WouldBlock) => {
                if !is_reported {
                    terminal::status_line(
                        "waiting for another worker in this home, or its contest, to end",
                    );
                    is_reported = true;
                }
                interrupt::check()?;
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
}

pub(super) fn results_of(place: &Path) -> PathBuf {
    place.join("results")
}

/// The one record in the folder of a cell.
pub(super) fn record_of(place: &Path) -> Result<PathBuf> {
    let results = results_of(place);
    let mut entries = fs::read_dir(&results)
        .with_context(|| format!("could not list `{}`", results.display()))?;
    let first = entries.next().transpose()?;
    first
        .map(|entry| entry.path())
        .with_context(|| format!("`{}` has no record", results.display()))
}

/// The finished cell of a folder; `None` when its contest was not over.
pub(super) fn read_finished(place: &Path) -> Result<Option<Finished>> {
    let path = place.join(FINISHED);
    if !path.is_file() {
        return Ok(None);
    }
    let text = read_text(&path, DOCUMENT_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("`{}` is not understood", path.display()))
}

pub(super) fn remove(place: &Path) -> Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove `{}`", place.display()))
        }
        _ => Ok(()),
    }
}
