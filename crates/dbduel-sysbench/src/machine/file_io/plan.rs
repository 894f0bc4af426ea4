//! Decides which block comes next, for all workers together. Accesses no file.

use dbduel_client::distributions::Distribution;
use dbduel_client::random::Random;
use dbduel_record::seed::named_seed;

use super::{FileIoSpec, Mode};

/// Work of a worker in one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Read so many bytes.
    Read { file: u32, offset: u64, bytes: u64 },
    /// Write so many bytes.
    Write { file: u32, offset: u64, bytes: u64 },
    /// Sync a file.
    Sync { file: u32 },
}

#[derive(Debug)]
pub(super) struct Plan {
    mode: Mode,
    files: u32,
    block_bytes: u64,
    blocks_per_file: u64,
    merged_blocks: u64,
    /// 0 for never.
    sync_every: u64,
    reads_per_write: f64,
    blocks: Distribution,
    random: Random,
    /// The next block of a sequential mode, over all files.
    position: u64,
    reads: u64,
    writes: u64,
    /// True when something was written since the last sync of all files.
    is_dirty: bool,
    /// The next file of a sync of all files that is under way.
    syncing: Option<u32>,
}

impl Plan {
    pub(super) fn new(spec: &FileIoSpec) -> Self {
        let blocks_per_file = (spec.files.file_bytes() / spec.files.block_bytes.max(1)).max(1);
        let files = spec.files.count.max(1);
        let blocks = blocks_per_file * u64::from(files);
        Plan {
            mode: spec.mode,
            files,
            block_bytes: spec.files.block_bytes,
            blocks_per_file,
            merged_blocks: spec.merged_blocks.max(1),
            // A sync after each write makes the others needless.
            sync_every: if spec.sync_each_write {
                0
            } else {
                spec.sync_every
            },
            reads_per_write: spec.reads_per_write,
            blocks: Distribution::new(spec.shape, 0, i64::try_from(blocks - 1).unwrap_or(i64::MAX)),
            random: Random::new(named_seed(spec.seed, "blocks")),
            position: 0,
            reads: 0,
            writes: 0,
            is_dirty: false,
            syncing: None,
        }
    }

    /// The work of the next event.
    pub(super) fn next(&mut self) -> Order {
        if let Some(file) = self.syncing {
            self.syncing = Some(file + 1).filter(|next| *next < self.files);
            return Order::Sync { file };
        }
        let order = self.access();
        match order {
            Order::Read { .. } => self.reads += 1,
            _ => {
                self.writes += 1;
                self.is_dirty = true;
            }
        }
        let is_due =
            self.sync_every > 0 && (self.reads + self.writes).is_multiple_of(self.sync_every);
        if is_due && self.is_dirty {
            self.is_dirty = false;
            self.syncing = Some(0);
        }
        order
    }

    /// True when a write was ordered at any time.
    pub(super) fn was_written(&self) -> bool {
        self.writes > 0
    }

    fn access(&mut self) -> Order {
        let is_read = match self.mode {
            Mode::SequentialRead | Mode::RandomRead => true,
            Mode::SequentialWrite | Mode::SequentialRewrite | Mode::RandomWrite => false,
            Mode::RandomMix => {
                let ratio = (self.reads + 1) as f64 / (self.writes + 1) as f64;
                ratio < self.reads_per_write
            }
        };
        let (block, blocks) = if self.mode.is_random() {
            (self.blocks.draw(&mut self.random).unsigned_abs(), 1)
        } else {
            let block = self.position;
            let in_file = self.blocks_per_file - block % self.blocks_per_file;
            let blocks = self.merged_blocks.min(in_file);
            // After the last block of the last file it begins again.
            self.position = (block + blocks) % (self.blocks_per_file * u64::from(self.files));
            (block, blocks)
        };
        let file = (block / self.blocks_per_file).min(u64::from(self.files) - 1) as u32;
        let offset = block % self.blocks_per_file * self.block_bytes;
        let bytes = blocks * self.block_bytes;
        if is_read {
            Order::Read {
                file,
                offset,
                bytes,
            }
        } else {
            Order::Write {
                file,
                offset,
                bytes,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;

    fn first(spec: &FileIoSpec, count: usize) -> Vec<Order> {
        let mut plan = Plan::new(spec);
        std::iter::repeat_with(|| plan.next()).take(count).collect()
    }

    #[test]
    fn a_sequence_passes_all_files_and_begins_again() {
        let mut spec = spec(Mode::SequentialRead);
        spec.files.count = 2;
        spec.files.total_bytes = 6 * 4096;
        let at = |file, block: u64| Order::Read {
            file,
            offset: block * 4096,
            bytes: 4096,
        };
        let expected = [
            at(0, 0),
            at(0, 1),
            at(0, 2),
            at(1, 0),
            at(1, 1),
            at(1, 2),
            at(0, 0),
        ];
        assert_eq!(first(&spec, 7), expected);
        spec.merged_blocks = 2;
        let bytes: Vec<u64> = first(&spec, 5)
            .iter()
            .map(|order| match order {
                Order::Read { bytes, .. } => bytes / 4096,
                _ => 0,
            })
            .collect();
        assert_eq!(
            bytes,
            [2, 1, 2, 1, 2],
            "no access goes over the end of a file"
        );
    }

    #[test]
    fn all_files_are_synced_after_so_many_requests() {
        let mut spec = spec(Mode::RandomWrite);
        spec.sync_every = 10;
        let orders = first(&spec, 28);
        let syncs: Vec<usize> = (0..orders.len())
            .filter(|at| matches!(orders[*at], Order::Sync { .. }))
            .collect();
        assert_eq!(syncs, [10, 11, 12, 13, 24, 25, 26, 27]);
        spec.mode = Mode::RandomRead;
        assert!(
            first(&spec, 100)
                .iter()
                .all(|order| matches!(order, Order::Read { .. }))
        );
    }

    #[test]
    fn the_mix_keeps_its_ratio() {
        let mut spec = spec(Mode::RandomMix);
        spec.sync_every = 0;
        let reads = first(&spec, 1_000)
            .iter()
            .filter(|order| matches!(order, Order::Read { .. }))
            .count();
        assert!((598..=602).contains(&reads), "{reads}");
    }
}
