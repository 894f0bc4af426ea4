//! File operations that fail, stop half way, or are the last before a crash, at a change that a test chooses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use dbduel_record::files::{Change, FileSystem, LocalFiles};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What happens at the chosen change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and those after it do not.
    Error,
    /// It fails, and so do all after it that need room.
    Full,
    /// As [`Fault::Full`], and half of what it writes is written.
    FullTorn,
    /// The process is killed before it.
    Kill,
    /// The process is killed while it writes: half is written.
    KillTorn,
    /// The power fails before it. Nothing that was not synced is left.
    PowerLoss,
    /// The power fails while it writes. Names are left, and half of the bytes that were not synced.
    PowerLossTorn,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Error,
        Self::Full,
        Self::FullTorn,
        Self::Kill,
        Self::KillTorn,
        Self::PowerLoss,
        Self::PowerLossTorn,
    ];

    fn is_torn(self) -> bool {
        matches!(self, Self::FullTorn | Self::KillTorn | Self::PowerLossTorn)
    }
}

/// How a change that was not synced is undone when the power fails.
#[derive(Debug)]
enum Undo {
    /// A file had this length.
    Length(PathBuf, u64),
    /// A file had this content.
    Content(PathBuf, Vec<u8>),
    /// A file or folder was not there.
    Name(PathBuf),
    /// A file had another name, and another one of this content had its own.
    Renamed(PathBuf, PathBuf, Option<Vec<u8>>),
}

#[derive(Debug, Default)]
struct State {
    changes: usize,
    is_over: bool,
    is_full: bool,
    unsynced: Vec<Undo>,
}

/// The machine's files with a fault at one change. Nothing is really synced: only a failing power would show it.
#[derive(Debug)]
pub struct FaultyFiles {
    fault: Fault,
    at: usize,
    /// A kill ends this very process.
    is_real: bool,
    state: Mutex<State>,
}

impl FaultyFiles {
    /// The fault happens at the change with this number, from 0.
    pub fn new(fault: Fault, at: usize) -> Self {
        Self {
            fault,
            at,
            is_real: false,
            state: Mutex::default(),
        }
    }

    /// Nothing happens.
    pub fn none() -> Self {
        Self::new(Fault::Error, usize::MAX)
    }

    /// As [`FaultyFiles::new`], and [`Fault::Kill`] and [`Fault::KillTorn`] end the process that uses it.
    pub fn deadly(fault: Fault, at: usize) -> Self {
        Self {
            is_real: true,
            ..Self::new(fault, at)
        }
    }

    /// How many changes were asked for.
    pub fn changes(&self) -> usize {
        self.state().changes
    }

    /// True once the process is gone, or the power.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chosen change: what of it is done, and how it fails.
    fn strike(&self, state: &mut State, change: Change<'_>) -> io::Error {
        if self.fault.is_torn() {
            match change {
                Change::Append { path, bytes, mode } => {
                    let bytes = &bytes[..bytes.len() / 2];
                    let _ = perform(state, Change::Append { path, bytes, mode });
                }
                Change::Write { path, bytes, mode } => {
                    let bytes = &bytes[..bytes.len() / 2];
                    let _ = perform(state, Change::Write { path, bytes, mode });
                }
                _ => {}
            }
        }
        match self.fault {
            Fault::Error => return Errno::EIO.into(),
            Fault::Full | Fault::FullTorn => {
                state.is_full = true;
                return Errno::ENOSPC.into();
            }
            Fault::Kill | Fault::KillTorn => {
                if self.is_real {
                    let _ = kill(Pid::this(), Signal::SIGKILL);
                }
            }
            Fault::PowerLoss => {
                let undos = std::mem::take(&mut state.unsynced);
                undos.into_iter().rev().for_each(undo);
            }
            Fault::PowerLossTorn => {
                let undos = std::mem::take(&mut state.unsynced);
                undos.into_iter().rev().for_each(undo_half);
            }
        }
        state.is_over = true;
        gone()
    }
}

impl FileSystem for FaultyFiles {
    fn apply(&self, change: Change<'_>) -> io::Result<()> {
        let mut state = self.state();
        if state.is_over {
            return Err(gone());
        }
        let number = state.changes;
        state.changes += 1;
        if number == self.at {
            return Err(self.strike(&mut state, change));
        }
        let needs_room = match change {
            Change::Append { bytes, .. } | Change::Write { bytes, .. } => !bytes.is_empty(),
            Change::CreateDir { .. } => true,
            _ => false,
        };
        if state.is_full && needs_room {
            return Err(Errno::ENOSPC.into());
        }
        perform(&mut state, change)
    }
}

/// What a process that was killed would hear, if it heard anything.
fn gone() -> io::Error {
    io::Error::other("the process is gone")
}

/// Applies a change and notes how a failing power would undo it.
fn perform(state: &mut State, change: Change<'_>) -> io::Result<()> {
    let content = |path: &Path| fs::read(path).ok();
    match change {
        Change::Sync { path } => {
            path.metadata()?;
            state.unsynced.retain(|undo| match undo {
                Undo::Length(file, _) | Undo::Content(file, _) => file != path,
                Undo::Name(file) | Undo::Renamed(_, file, _) => file.parent() != Some(path),
            });
            return Ok(());
        }
        Change::Append { path, .. } => {
            let length = path.metadata().map_or(0, |facts| facts.len());
            note_name(state, path);
            state.unsynced.push(Undo::Length(path.to_owned(), length));
        }
        Change::Write { path, .. } | Change::Truncate { path, .. } => {
            note_name(state, path);
            let before = content(path).unwrap_or_default();
            state.unsynced.push(Undo::Content(path.to_owned(), before));
        }
        Change::CreateDir { path, .. } => note_name(state, path),
        Change::Rename { from, to } => {
            let renamed = Undo::Renamed(from.to_owned(), to.to_owned(), content(to));
            state.unsynced.push(renamed);
        }
        // That a removed file comes back after a failure of the power would do no harm.
        Change::Remove { .. } => {}
    }
    LocalFiles.apply(change)
}

fn note_name(state: &mut State, path: &Path) {
    if !path.exists() {
        state.unsynced.push(Undo::Name(path.to_owned()));
    }
}

fn undo(undo: Undo) {
    // What is gone already need not be undone.
    let _ = match undo {
        Undo::Length(path, length) => LocalFiles.apply(Change::Truncate {
            path: &path,
            length,
        }),
        Undo::Content(path, before) => fs::write(path, before),
        Undo::Name(path) => LocalFiles.apply(Change::Remove { path: &path }),
        Undo::Renamed(from, to, replaced) => {
            let back = fs::rename(&to, from);
            match replaced {
                Some(content) => fs::write(to, content),
                None => back,
            }
        }
    };
}

fn undo_half(undo: Undo) {
    if let Undo::Length(path, length) = undo {
        let now = path.metadata().map_or(length, |facts| facts.len());
        let length = length + now.saturating_sub(length) / 2;
        let _ = LocalFiles.apply(Change::Truncate {
            path: &path,
            length,
        });
    }
}
