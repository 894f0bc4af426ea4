//! Reads, writes and syncs in one of three ways.

use std::io;
use std::os::unix::fs::FileExt as _;

use dbduel_client::random::Random;
use dbduel_record::seed::named_seed;
use memmap2::{MmapOptions, MmapRaw};

use super::aio::Queue;
use super::files::{FileError, Files};
use super::{FileIoSpec, Method, proof};

/// `O_DIRECT` asks for memory that begins at a multiple of the device's block.
const ALIGNMENT: usize = 4096;

/// Memory for one access.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    random: Random,
}

impl Buffer {
    /// Buffer of a worker.
    pub(super) fn new(spec: &FileIoSpec, worker: u32) -> Self {
        let bytes = spec.files.block_bytes * spec.merged_blocks.max(1);
        let mut buffer = Self::of_bytes(bytes);
        buffer.random = Random::new(named_seed(spec.seed, &format!("content/{worker}")));
        let Buffer { memory, random } = &mut buffer;
        // Devices and file systems that compress or compare must not gain from zeros.
        random.fill_digits(memory);
        buffer
    }

    /// Buffer of a given size.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Buffer {
            memory: vec![0; bytes as usize + ALIGNMENT],
            random: Random::new(0),
        }
    }

    /// The first so many bytes.
    pub(super) fn bytes(&mut self, bytes: u64) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(ALIGNMENT);
        &mut self.memory[start..start + bytes as usize]
    }

    /// The content of a write.
    pub(super) fn content(&mut self, offset: u64, bytes: u64, proved: Option<u64>) -> &mut [u8] {
        // Another number in each block; drawing all of it would measure the generator.
        let number = self.random.bits().to_le_bytes();
        let content = self.bytes(bytes);
        let length = content.len().min(number.len());
        content[..length].copy_from_slice(&number[..length]);
        if let Some(block_bytes) = proved {
            proof::put(content, offset, block_bytes);
        }
        content
    }
}

/// One worker's access to the files.
pub(super) struct Access<'a> {
    files: &'a Files,
    /// Size of a block, when blocks are proved.
    proved: Option<u64>,
    access: FileAccess,
}

enum FileAccess {
    Plain,
    Queued(Queue),
    Mapped(Vec<Map>),
}

impl<'a> Access<'a> {
    pub(super) fn new(spec: &FileIoSpec, files: &'a Files) -> Result<Self, FileError> {
        let access = match spec.method {
            Method::Plain => FileAccess::Plain,
            Method::Queued { backlog } => {
                let bytes = spec.files.block_bytes * spec.merged_blocks.max(1);
                FileAccess::Queued(Queue::new(backlog, bytes)?)
            }
            Method::Mapped => {
                let maps = (0..spec.files.count).map(|number| {
                    let (path, file) = files.get(number);
                    Map::new(file, spec.files.file_bytes())
                        .map_err(|source| FileError::access("map", path, 0, source))
                });
                FileAccess::Mapped(maps.collect::<Result<_, _>>()?)
            }
        };
        Ok(Access {
            files,
            proved: spec.files.is_proved.then_some(spec.files.block_bytes),
            access,
        })
    }

    pub(super) fn read(
        &mut self,
        file: u32,
        offset: u64,
        bytes: u64,
        buffer: &mut Buffer,
    ) -> Result<(), FileError> {
        let (path, handle) = self.files.get(file);
        let failed = |source| FileError::access("read from", path, offset, source);
        let block = match &mut self.access {
            FileAccess::Plain => {
                let block = buffer.bytes(bytes);
                handle.read_exact_at(block, offset).map_err(failed)?;
                block
            }
            // A proof can only be looked at when the block is there.
            FileAccess::Queued(queue) => match self.proved {
                None => return queue.read(handle, offset, bytes).map_err(failed),
                Some(_) => {
                    let block = buffer.bytes(bytes);
                    queue.settle().map_err(failed)?;
                    handle.read_exact_at(block, offset).map_err(failed)?;
                    block
                }
            },
            FileAccess::Mapped(maps) => {
                let block = buffer.bytes(bytes);
                maps[file as usize].read(offset, block);
                block
            }
        };
        let wrong = self
            .proved
            .and_then(|block_bytes| proof::first_wrong(block, offset, block_bytes));
        match wrong {
            Some(offset) => Err(FileError::Proof { file, offset }),
            None => Ok(()),
        }
    }

    pub(super) fn write(
        &mut self,
        file: u32,
        offset: u64,
        bytes: u64,
        buffer: &mut Buffer,
    ) -> Result<(), FileError> {
        let (path, handle) = self.files.get(file);
        let failed = |source| FileError::access("write to", path, offset, source);
        let block = buffer.content(offset, bytes, self.proved);
        match &mut self.access {
            FileAccess::Plain => handle.write_all_at(block, offset).map_err(failed),
            FileAccess::Queued(queue) => queue.write(handle, offset, block).map_err(failed),
            FileAccess::Mapped(maps) => {
                maps[file as usize].write(offset, block);
                Ok(())
            }
        }
    }

    /// Syncs a file, after waiting for the queued requests of this worker.
    pub(super) fn sync(&mut self, file: u32, is_data_only: bool) -> Result<(), FileError> {
        let (path, handle) = self.files.get(file);
        let failed = |source| FileError::access("sync", path, 0, source);
        match &mut self.access {
            FileAccess::Plain => {}
            FileAccess::Queued(queue) => queue.settle().map_err(failed)?,
            FileAccess::Mapped(maps) => return maps[file as usize].sync().map_err(failed),
        }
        if is_data_only {
            handle.sync_data().map_err(failed)
        } else {
            handle.sync_all().map_err(failed)
        }
    }

    /// Waits for all queued requests.
    pub(super) fn settle(&mut self) -> Result<(), FileError> {
        let FileAccess::Queued(queue) = &mut self.access else {
            return Ok(());
        };
        let (path, _) = self.files.get(0);
        queue
            .settle()
            .map_err(|source| FileError::access("wait for requests to", path, 0, source))
    }
}

/// A file as memory. Other workers may change its content at any time, so it is only copied from and to, never borrowed.
struct Map(MmapRaw);

impl Map {
    fn new(file: &std::fs::File, bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        MmapOptions::new().len(length).map_raw(file).map(Map)
    }

    /// The address of an interval inside of the map.
    fn at(&self, offset: u64, length: usize) -> *mut u8 {
        let offset = offset as usize;
        assert!(
            offset + length <= self.0.len(),
            "a request reaches beyond the end of its file"
        );
        self.0.as_mut_ptr().wrapping_add(offset)
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: the interval lies in the mapping and does not overlap memory of ours.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    fn write(&self, offset: u64, from: &[u8]) {
        let into = self.at(offset, from.len());
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
    }

    fn sync(&self) -> io::Result<()> {
        self.0.flush()
    }
}
