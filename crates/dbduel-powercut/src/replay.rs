//! Replay of a trace: what is certainly on the disk at a moment, and what may be in addition.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::change::Change;
use crate::content::Content;
use crate::cut::Selection;
use crate::image::{Image, Ino};
use crate::trace::{Event, Trace};

/// The smallest unit that a disk writes atomically, bytes.
pub const SECTOR: u64 = 512;
/// The unit that the page cache writes atomically unless it is torn, bytes.
pub const PAGE: u64 = 4096;

/// A write that no sync covers.
#[derive(Debug, Clone)]
pub struct PendingWrite {
    /// Its position in the trace.
    pub seq: usize,
    /// The file.
    pub ino: Ino,
    /// The written bytes of the file.
    pub range: Range<u64>,
    /// Bypasses the page cache.
    pub is_direct: bool,
    /// The parts that no later change has made irrelevant.
    pieces: Vec<(u64, Bytes)>,
}

/// A part of a pending write that reaches the disk as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment {
    /// Position of the write in the trace.
    pub seq: usize,
    /// First byte in the file, a multiple of the 512 bytes of a sector.
    pub start: u64,
    /// After the last byte, a multiple of the 512 bytes of a sector.
    pub end: u64,
}

#[derive(Debug, Clone)]
enum Pending {
    Write(PendingWrite),
    Metadata(usize, Change),
}

/// A trace up to a position.
#[derive(Debug, Clone)]
pub struct Replay<'t> {
    trace: &'t Trace,
    position: usize,
    disk: Image,
    pending: Vec<Pending>,
}

impl<'t> Replay<'t> {
    /// The trace before its first entry.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        Replay {
            trace,
            position: 0,
            disk: trace.base.clone(),
            pending: Vec::new(),
        }
    }

    /// Number of entries applied.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The durable image.
    #[must_use]
    pub fn disk(&self) -> &Image {
        &self.disk
    }

    /// Replays the entries before `position`. Never goes back.
    pub fn advance(&mut self, position: usize) {
        let end = position.min(self.trace.entries.len());
        for seq in self.position..end {
            match &self.trace.entries[seq].event {
                Event::Change(change) => self.pend(seq, change),
                Event::DurableWrite(change) => self.write_through(seq, change),
                Event::Sync { ino, data_only } => self.sync(*ino, *data_only),
            }
        }
        self.position = self.position.max(end);
    }

    /// The writes that no sync covers, in order.
    pub fn writes(&self) -> impl Iterator<Item = &PendingWrite> {
        self.pending.iter().filter_map(|pending| match pending {
            Pending::Write(write) => Some(write),
            Pending::Metadata(..) => None,
        })
    }

    /// The changes of names, sizes and holes that are not durable, with their positions in the trace.
    pub fn metadata(&self) -> impl Iterator<Item = (usize, &Change)> {
        self.pending.iter().filter_map(|pending| match pending {
            Pending::Write(_) => None,
            Pending::Metadata(seq, change) => Some((*seq, change)),
        })
    }

    /// The disk after a power cut here, with the changes of the selection.
    #[must_use]
    pub fn image(&self, selection: &Selection) -> Image {
        let mut image = self.disk.clone();
        let newest = self.newest_kept(selection);
        for pending in &self.pending {
            match pending {
                Pending::Metadata(seq, change) if *seq < selection.metadata_until => {
                    commit_change(&mut image, change);
                }
                Pending::Metadata(..) => {}
                Pending::Write(write) => {
                    let may_grow = write.seq < selection.metadata_until;
                    write.leave_on(&mut image, may_grow, &newest);
                }
            }
        }
        image
    }

    /// For each sector the last kept write that reaches it. A page goes to the disk as it is in the cache, so earlier
    /// writes to the same unit are written along.
    fn newest_kept(&self, selection: &Selection) -> HashMap<(Ino, u64), usize> {
        let inos: HashMap<usize, Ino> = self.writes().map(|write| (write.seq, write.ino)).collect();
        let mut newest = HashMap::new();
        for fragment in &selection.kept {
            let Some(&ino) = inos.get(&fragment.seq) else {
                continue;
            };
            for sector in fragment.start / SECTOR..fragment.end / SECTOR {
                let seq = newest.entry((ino, sector)).or_insert(fragment.seq);
                *seq = fragment.seq.max(*seq);
            }
        }
        newest
    }

    fn pend(&mut self, seq: usize, change: &Change) {
        self.pending
            .push(match PendingWrite::of(seq, change.clone()) {
                Ok(write) => Pending::Write(write),
                Err(change) => Pending::Metadata(seq, change),
            });
    }

    /// The end of the journal that syncing `ino` makes durable: all positions in the trace below it.
    fn journal_end(&self, ino: Ino, data_only: bool) -> usize {
        let size = self.disk.content(ino).map_or(0, Content::size);
        let ends = self.pending.iter().map(|pending| match pending {
            Pending::Metadata(seq, change) if change.concerns(ino, data_only) => seq + 1,
            // Its length is needed to read it, and is in the journal too.
            Pending::Write(write) if write.ino == ino && write.range.end > size => write.seq + 1,
            _ => 0,
        });
        ends.max().unwrap_or(0)
    }

    fn sync(&mut self, ino: Ino, data_only: bool) {
        let journal_end = self.journal_end(ino, data_only);
        self.commit(journal_end, |write| write.ino == ino);
    }

    /// Makes the journal durable up to `journal_end`, and the writes for which `is_synced` is true.
    fn commit(&mut self, journal_end: usize, is_synced: impl Fn(&PendingWrite) -> bool) {
        let mut left: Vec<Pending> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            match pending {
                Pending::Metadata(seq, change) if seq < journal_end => {
                    commit_change(&mut self.disk, &change);
                    // What is in the cache for bytes that are cut off is never written.
                    if let Some((ino, gone)) = removed_bytes(&change) {
                        for earlier in &mut left {
                            if let Pending::Write(write) = earlier
                                && write.ino == ino
                            {
                                let taken = write.take(&gone);
                                let end =
                                    taken.iter().map(|(at, data)| at + data.len() as u64).max();
                                // A hole does not shorten the file that the write made longer.
                                if let (Change::Zero { .. }, Some(end)) = (&change, end)
                                    && let Some(content) = self.disk.content_mut(ino)
                                {
                                    content.set_size(content.size().max(end));
                                }
                            }
                        }
                    }
                }
                Pending::Write(write) if is_synced(&write) => {
                    for (offset, data) in &write.pieces {
                        if let Some(content) = self.disk.content_mut(write.ino) {
                            content.write(*offset, data);
                        }
                    }
                }
                other => left.push(other),
            }
        }
        left.retain(|pending| match pending {
            Pending::Write(write) => !write.pieces.is_empty(),
            Pending::Metadata(..) => true,
        });
        self.pending = left;
    }

    fn write_through(&mut self, seq: usize, change: &Change) {
        let Ok(write) = PendingWrite::of(seq, change.clone()) else {
            return;
        };
        let size = self.disk.content(write.ino).map_or(0, Content::size);
        let journal_end = match write.range.end > size {
            true => seq,
            false => self.journal_end_of_names(write.ino),
        };
        self.commit(journal_end, |_| false);
        // What is beside it in the cache goes along.
        let unit = if write.is_direct { SECTOR } else { PAGE };
        let touched = align(&write.range, unit);
        for pending in &mut self.pending {
            if let Pending::Write(earlier) = pending
                && earlier.ino == write.ino
            {
                for (offset, data) in earlier.take(&touched) {
                    if let Some(content) = self.disk.content_mut(write.ino) {
                        content.write(offset, &data);
                    }
                }
            }
        }
        self.pending
            .retain(|pending| !matches!(pending, Pending::Write(write) if write.pieces.is_empty()));
        change.apply(&mut self.disk);
    }

    fn journal_end_of_names(&self, ino: Ino) -> usize {
        let concerning = self.metadata().filter(|(_, c)| c.concerns(ino, true));
        concerning.map(|(seq, _)| seq + 1).max().unwrap_or(0)
    }
}

impl PendingWrite {
    fn of(seq: usize, change: Change) -> Result<Self, Change> {
        match change {
            Change::Write {
                ino,
                offset,
                data,
                is_direct,
            } => Ok(PendingWrite {
                seq,
                ino,
                range: offset..offset + data.len() as u64,
                is_direct,
                pieces: vec![(offset, data)],
            }),
            other => Err(other),
        }
    }

    /// Removes the bytes of a range from the pending data.
    fn take(&mut self, range: &Range<u64>) -> Vec<(u64, Bytes)> {
        let mut taken = Vec::new();
        let mut left = Vec::new();
        for (offset, data) in std::mem::take(&mut self.pieces) {
            let end = offset + data.len() as u64;
            let (from, to) = (range.start.clamp(offset, end), range.end.clamp(offset, end));
            if from >= to {
                left.push((offset, data));
                continue;
            }
            let part =
                |a: u64, b: u64| (a, data.slice((a - offset) as usize..(b - offset) as usize));
            taken.push(part(from, to));
            left.extend((offset < from).then(|| part(offset, from)));
            left.extend((to < end).then(|| part(to, end)));
        }
        self.pieces = left;
        taken
    }

    /// Writes to the disk those sectors that a kept write, this one or a later one, includes.
    fn leave_on(&self, image: &mut Image, may_grow: bool, newest: &HashMap<(Ino, u64), usize>) {
        let Some(content) = image.content_mut(self.ino) else {
            return;
        };
        for (offset, data) in &self.pieces {
            let end = offset + data.len() as u64;
            for sector in offset / SECTOR..end.div_ceil(SECTOR) {
                if !matches!(newest.get(&(self.ino, sector)), Some(&seq) if seq >= self.seq) {
                    continue;
                }
                let from = (*offset).max(sector * SECTOR);
                let mut to = end.min((sector + 1) * SECTOR);
                if !may_grow {
                    to = to.min(content.size());
                }
                if from < to {
                    let bytes = (from - offset) as usize..(to - offset) as usize;
                    content.write(from, &data[bytes]);
                }
            }
        }
    }
}

/// The units that a range touches, as a range of bytes.
pub fn align(range: &Range<u64>, unit: u64) -> Range<u64> {
    range.start / unit * unit..range.end.div_ceil(unit) * unit
}

/// Applies a change, and drops inodes that lost their last name: no process has them open after a cut.
fn commit_change(image: &mut Image, change: &Change) {
    let unnamed = match change {
        Change::Unlink { ino, .. } => Some(*ino),
        Change::Rename { to, .. } => image.lookup(to.0, &to.1),
        _ => None,
    };
    change.apply(image);
    if let Some(ino) = unnamed {
        image.drop_unnamed(ino);
    }
}

/// The bytes of a file that a change zeroes or truncates.
fn removed_bytes(change: &Change) -> Option<(Ino, Range<u64>)> {
    match change {
        Change::SetSize { ino, size } => Some((*ino, *size..u64::MAX)),
        Change::Zero { ino, range } => Some((*ino, range.clone())),
        _ => None,
    }
}
