//! The file system in use by a server: one image, changed in order, with a recorder.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};

use crate::change::{Change, NewNode};
use crate::image::{Image, Ino, Inode, Node};
use crate::trace::{Entry, Event, Trace};

/// Overhead of an entry of a trace beside its data, bytes; counts towards the limit.
const ENTRY_BYTES: u64 = 160;

/// A file system in memory. All operations are in one order.
#[derive(Debug)]
pub struct Volume {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    image: Image,
    next_ino: Ino,
    /// Number of open handles of each inode.
    open: HashMap<Ino, u64>,
    recorder: Option<Recorder>,
}

#[derive(Debug)]
struct Recorder {
    base: Image,
    entries: Vec<Entry>,
    bytes: u64,
    limit: u64,
    is_full: bool,
}

/// Mode of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteMode {
    /// Bypasses the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Durable when it returns (`O_DSYNC`, `O_SYNC`).
    pub is_durable: bool,
}

impl Volume {
    /// A volume with this initial image.
    #[must_use]
    pub fn new(image: Image) -> Self {
        let next_ino = image.last_ino() + 1;
        Volume {
            state: Mutex::new(State {
                image,
                next_ino,
                open: HashMap::new(),
                recorder: None,
            }),
        }
    }

    /// Starts recording; the current content counts as durable. Recording ends by itself after about `limit` bytes.
    pub fn record(&self, limit: u64) {
        let mut state = self.lock();
        state.recorder = Some(Recorder {
            base: state.image.clone(),
            entries: Vec::new(),
            bytes: 0,
            limit,
            is_full: false,
        });
    }

    /// Ends the recording; `None` when there is none.
    #[must_use]
    pub fn take_trace(&self) -> Option<Trace> {
        let recorder = self.lock().recorder.take()?;
        Some(Trace {
            base: recorder.base,
            ended_ns: match recorder.is_full {
                // What came later was not recorded, so that a cut behind the last entry would be no cut at the end.
                true => recorder.entries.last().map_or(0, |entry| entry.at_ns),
                false => now_ns(),
            },
            entries: recorder.entries,
            is_full: recorder.is_full,
        })
    }

    /// Number of recorded entries, and whether recording has ended.
    #[must_use]
    pub fn recorded(&self) -> (usize, bool) {
        let state = self.lock();
        let recorder = state.recorder.as_ref();
        recorder.map_or((0, false), |recorder| {
            (recorder.entries.len(), recorder.is_full)
        })
    }

    /// The current image as programs see it.
    #[must_use]
    pub fn image(&self) -> Image {
        self.lock().image.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // An image is whole between two operations, and an operation panics only by a defect of ours.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with an inode.
    ///
    /// # Errors
    /// `ENOENT` when there is none.
    pub fn with<R>(&self, ino: Ino, look: impl FnOnce(&Inode) -> R) -> Result<R, Errno> {
        self.lock().image.get(ino).map(look).ok_or(Errno::ENOENT)
    }

    /// The inode of a name.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Ino, Errno> {
        let state = self.lock();
        state.directory(parent)?;
        state.image.lookup(parent, name).ok_or(Errno::ENOENT)
    }

    /// The names of a directory.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn names(&self, ino: Ino) -> Result<Vec<(OsString, Ino)>, Errno> {
        let state = self.lock();
        state.directory(ino)?;
        let entries = state.image.entries(ino).into_iter().flatten();
        Ok(entries.map(|(name, &ino)| (name.clone(), ino)).collect())
    }

    /// Creates a file, directory or symbolic link.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`.
    pub fn create(
        &self,
        parent: Ino,
        name: &OsStr,
        node: NewNode,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<Ino, Errno> {
        let mut state = self.lock();
        state.directory(parent)?;
        if state.image.lookup(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let ino = state.next_ino;
        state.next_ino += 1;
        state.change(&Change::Create {
            ino,
            name: (parent, name.to_owned()),
            node,
            mode: mode & 0o7777,
            uid: owner.0,
            gid: owner.1,
        });
        Ok(ino)
    }

    /// Adds a name to a file.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`; `EPERM` for a directory.
    pub fn link(&self, ino: Ino, parent: Ino, name: &OsStr) -> Result<(), Errno> {
        let mut state = self.lock();
        state.directory(parent)?;
        if state.image.entries(ino).is_some() {
            return Err(Errno::EPERM);
        }
        if state.image.lookup(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        state.change(&Change::Link {
            ino,
            name: (parent, name.to_owned()),
        });
        Ok(())
    }

    /// Removes a name; that of a directory when `is_directory`, which must be empty.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`.
    pub fn unlink(&self, parent: Ino, name: &OsStr, is_directory: bool) -> Result<(), Errno> {
        let mut state = self.lock();
        state.directory(parent)?;
        let ino = state.image.lookup(parent, name).ok_or(Errno::ENOENT)?;
        match (state.image.entries(ino), is_directory) {
            (Some(entries), true) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
            (Some(_), false) => return Err(Errno::EISDIR),
            (None, true) => return Err(Errno::ENOTDIR),
            _ => {}
        }
        state.change(&Change::Unlink {
            ino,
            name: (parent, name.to_owned()),
        });
        state.drop_unused(ino);
        Ok(())
    }

    /// Moves a name; the inode that had the new one loses it.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`; `EEXIST` when there is one and `may_replace` is false; `EINVAL` for
    /// a directory that would be moved into itself.
    pub fn rename(
        &self,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        may_replace: bool,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        state.directory(from.0)?;
        state.directory(to.0)?;
        let ino = state.image.lookup(from.0, from.1).ok_or(Errno::ENOENT)?;
        let replaced = state.image.lookup(to.0, to.1);
        if let Some(replaced) = replaced {
            if !may_replace {
                return Err(Errno::EEXIST);
            }
            if replaced == ino {
                return Ok(());
            }
            match (state.image.entries(ino), state.image.entries(replaced)) {
                (_, Some(entries)) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
                (Some(_), None) => return Err(Errno::ENOTDIR),
                (None, Some(_)) => return Err(Errno::EISDIR),
                _ => {}
            }
        }
        if state.image.entries(ino).is_some() && state.is_within(to.0, ino) {
            return Err(Errno::EINVAL);
        }
        state.change(&Change::Rename {
            ino,
            from: (from.0, from.1.to_owned()),
            to: (to.0, to.1.to_owned()),
        });
        if let Some(replaced) = replaced {
            state.drop_unused(replaced);
        }
        Ok(())
    }

    /// Changes permissions and owners.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn set_attributes(
        &self,
        ino: Ino,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        state.image.get(ino).ok_or(Errno::ENOENT)?;
        let mode = mode.map(|mode| mode & 0o7777);
        state.change(&Change::SetAttributes {
            ino,
            mode,
            uid,
            gid,
        });
        Ok(())
    }

    /// Sets the modification time; not durable before the next change, and no server relies on it.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn set_modified(&self, ino: Ino, modified: SystemTime) -> Result<(), Errno> {
        let mut state = self.lock();
        state.image.get_mut(ino).ok_or(Errno::ENOENT)?.modified = modified;
        Ok(())
    }

    /// Truncates a file or extends it by zeros.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn set_size(&self, ino: Ino, size: u64) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.size(ino)? != size {
            state.change(&Change::SetSize { ino, size });
        }
        Ok(())
    }

    /// Extends a file to at least this size.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn extend(&self, ino: Ino, size: u64) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.size(ino)? < size {
            state.change(&Change::SetSize { ino, size });
        }
        Ok(())
    }

    /// Zeroes a range; the size stays.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn zero(&self, ino: Ino, range: Range<u64>) -> Result<(), Errno> {
        let mut state = self.lock();
        state.size(ino)?;
        state.change(&Change::Zero { ino, range });
        Ok(())
    }

    /// Reads bytes, fewer at the end of the file.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn read(&self, ino: Ino, offset: u64, length: u64) -> Result<Vec<u8>, Errno> {
        let state = self.lock();
        state.size(ino)?;
        let content = state.image.content(ino).ok_or(Errno::ENOENT)?;
        Ok(content.read(offset, length))
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn write(&self, ino: Ino, offset: u64, data: &[u8], mode: WriteMode) -> Result<(), Errno> {
        let mut state = self.lock();
        state.size(ino)?;
        let change = Change::Write {
            ino,
            offset,
            data: Bytes::copy_from_slice(data),
            is_direct: mode.is_direct,
        };
        let event = match mode.is_durable {
            true => Event::DurableWrite(change.clone()),
            false => Event::Change(change.clone()),
        };
        state.log(event, data.len() as u64);
        change.apply(&mut state.image);
        if let Some(inode) = state.image.get_mut(ino) {
            inode.modified = SystemTime::now();
        }
        Ok(())
    }

    /// Makes a file or directory durable; only the data when `data_only`.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn sync(&self, ino: Ino, data_only: bool) -> Result<(), Errno> {
        let mut state = self.lock();
        state.image.get(ino).ok_or(Errno::ENOENT)?;
        state.log(Event::Sync { ino, data_only }, 0);
        Ok(())
    }

    /// Called when a process opened the inode.
    pub fn opened(&self, ino: Ino) {
        *self.lock().open.entry(ino).or_default() += 1;
    }

    /// Called when a process closed the inode.
    pub fn closed(&self, ino: Ino) {
        let mut state = self.lock();
        if let Some(count) = state.open.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&ino);
                state.drop_unused(ino);
            }
        }
    }

    /// The inode with this path below the root.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn find(&self, path: &Path) -> Result<Ino, Errno> {
        path.iter()
            .try_fold(crate::image::ROOT, |at, name| self.lookup(at, name))
    }

    /// Target of a symbolic link.
    ///
    /// # Errors
    /// `ENOENT`, `EINVAL`.
    pub fn target(&self, ino: Ino) -> Result<PathBuf, Errno> {
        self.with(ino, |inode| match &inode.node {
            Node::Link(target) => Ok(target.clone()),
            _ => Err(Errno::EINVAL),
        })?
    }
}

impl State {
    fn directory(&self, ino: Ino) -> Result<(), Errno> {
        match self.image.get(ino).map(|inode| &inode.node) {
            Some(Node::Directory(_)) => Ok(()),
            Some(_) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn size(&self, ino: Ino) -> Result<u64, Errno> {
        match self.image.get(ino).map(|inode| &inode.node) {
            Some(Node::File(content)) => Ok(content.size()),
            Some(Node::Directory(_)) => Err(Errno::EISDIR),
            Some(Node::Link(_)) => Err(Errno::EINVAL),
            None => Err(Errno::ENOENT),
        }
    }

    /// Whether a directory is below another one, or the same.
    fn is_within(&self, directory: Ino, ancestor: Ino) -> bool {
        let mut folders = vec![ancestor];
        while let Some(folder) = folders.pop() {
            if folder == directory {
                return true;
            }
            let entries = self.image.entries(folder).into_iter().flatten();
            folders.extend(
                entries
                    .map(|(_, &ino)| ino)
                    .filter(|&ino| self.image.entries(ino).is_some()),
            );
        }
        false
    }

    fn change(&mut self, change: &Change) {
        self.log(Event::Change(change.clone()), 0);
        change.apply(&mut self.image);
    }

    /// Records an event that is about to be applied.
    fn log(&mut self, event: Event, bytes: u64) {
        if let Some(recorder) = &mut self.recorder
            && !recorder.is_full
        {
            recorder.bytes += ENTRY_BYTES + bytes;
            if recorder.bytes > recorder.limit {
                recorder.is_full = true;
                return;
            }
            let at_ns = now_ns();
            recorder.entries.push(Entry { at_ns, event });
        }
    }

    /// Drops an inode that has no name and is not open.
    fn drop_unused(&mut self, ino: Ino) {
        if !self.open.contains_key(&ino) {
            self.image.drop_unnamed(ino);
        }
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
