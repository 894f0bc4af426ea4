//! Walks through blocks of memory, word by word.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use dbduel_client::distributions::{Distribution, Shape};
use dbduel_client::random::Random;
use dbduel_client::run::Counts;
use dbduel_record::seed::named_seed;
use memmap2::{MmapMut, MmapOptions};

use super::{Machine, Next, Worker};

/// Bytes of a word, the unit of access.
pub const WORD: u64 = size_of::<usize>() as u64;

/// Operation on each word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// Nothing; the cost of the walk itself.
    Nothing,
}

/// The test. Its words are atomics with relaxed ordering: plain loads and stores to the processor, which workers may
/// share.
#[derive(Debug)]
pub struct Memory {
    spec: MemorySpec,
    /// The block of all workers, unless each has its own.
    shared: Option<Block>,
}

/// Parameters of the test.
#[derive(Debug, Clone, Copy)]
pub struct MemorySpec {
    /// Bytes of a block, a multiple of [`WORD`]; an event walks through one.
    pub block_bytes: u64,
    /// Bytes that all workers walk through together.
    pub total_bytes: u64,
    /// Workers.
    pub workers: u32,
    /// Operation on each word.
    pub operation: Operation,
    /// Distribution of random words; none for sequential access.
    pub random: Option<Shape>,
    /// Whether all workers use one block.
    pub is_shared: bool,
    /// Whether the blocks come from the pool of huge pages.
    pub huge_pages: bool,
    /// Root of the random streams.
    pub seed: u64,
}

impl Memory {
    /// Creates the test and its shared block.
    ///
    /// # Errors
    /// When there is not enough memory, or no huge page is free.
    pub fn new(spec: MemorySpec) -> Result<Self, String> {
        let shared = match spec.is_shared {
            true => Some(Block::new(&spec)?),
            false => None,
        };
        Ok(Memory { spec, shared })
    }
}

impl Machine for Memory {
    fn worker(&self, number: u32) -> Result<Box<dyn Worker + '_>, String> {
        let own = match self.shared {
            Some(_) => None,
            None => Some(Block::new(&self.spec)?),
        };
        let MemorySpec {
            block_bytes,
            total_bytes,
            workers,
            seed,
            ..
        } = self.spec;
        let words = (block_bytes / WORD) as i64;
        Ok(Box::new(MemoryWorker {
            test: self,
            own,
            number: number as usize,
            events_left: total_bytes / block_bytes.max(1) / u64::from(workers.max(1)),
            places: Distribution::new(
                self.spec.random.unwrap_or(Shape::Uniform),
                0,
                (words - 1).max(0),
            ),
            random: Random::new(named_seed(seed, &format!("memory/{number}"))),
        }))
    }
}

struct MemoryWorker<'a> {
    test: &'a Memory,
    own: Option<Block>,
    number: usize,
    events_left: u64,
    places: Distribution,
    random: Random,
}

impl Worker for MemoryWorker<'_> {
    fn event(&mut self, _number: u64, counts: &mut Counts) -> Result<Next, String> {
        if self.events_left == 0 {
            return Ok(Next::NoMore);
        }
        self.events_left -= 1;
        let spec = &self.test.spec;
        let Some(block) = self.own.as_ref().or(self.test.shared.as_ref()) else {
            return Err("there is no block of memory".to_owned());
        };
        let words = block.words();
        match (spec.random, spec.operation) {
            (None, Operation::Write) => {
                for word in words {
                    word.store(self.number, Ordering::Relaxed);
                }
            }
            (None, Operation::Read) => {
                for word in words {
                    black_box(word.load(Ordering::Relaxed));
                }
            }
            (None, Operation::Nothing) => {
                for _ in words {
                    compiler_fence(Ordering::SeqCst);
                }
            }
            (Some(_), operation) => {
                for _ in words {
                    let word = &words[self.places.draw(&mut self.random) as usize];
                    match operation {
                        Operation::Write => word.store(self.number, Ordering::Relaxed),
                        Operation::Read => {
                            black_box(word.load(Ordering::Relaxed));
                        }
                        Operation::Nothing => {
                            black_box(word);
                        }
                    }
                }
            }
        }
        match spec.operation {
            Operation::Write => counts.bytes_written += spec.block_bytes,
            Operation::Read => counts.bytes_read += spec.block_bytes,
            Operation::Nothing => {}
        }
        Ok(Next::Done)
    }
}

/// A block of memory that is touched before it is used.
#[derive(Debug)]
enum Block {
    Ordinary(Vec<AtomicUsize>),
    Huge(HugePages),
}

impl Block {
    fn new(spec: &MemorySpec) -> Result<Self, String> {
        let words = (spec.block_bytes / WORD) as usize;
        if spec.huge_pages {
            return HugePages::new(words).map(Block::Huge);
        }
        let mut block = Vec::new();
        block.try_reserve_exact(words).map_err(|error| {
            format!(
                "cannot allocate {} bytes of memory: {error}",
                spec.block_bytes
            )
        })?;
        block.resize_with(words, || AtomicUsize::new(1));
        Ok(Block::Ordinary(block))
    }

    fn words(&self) -> &[AtomicUsize] {
        match self {
            Block::Ordinary(words) => words,
            Block::Huge(pages) => pages.words(),
        }
    }
}

/// Memory from the pool of huge pages.
#[derive(Debug)]
struct HugePages {
    mapping: MmapMut,
    words: usize,
}

impl HugePages {
    /// The default size of a huge page.
    const PAGE: usize = 2 << 20;

    fn new(words: usize) -> Result<Self, String> {
        let bytes = (words * size_of::<usize>()).next_multiple_of(Self::PAGE);
        let mapping = MmapOptions::new().len(bytes).huge(None).map_anon();
        let mapping = mapping.map_err(|error| {
            format!(
                "cannot allocate {bytes} bytes of huge pages: {error}; does vm.nr_hugepages \
                 reserve any?"
            )
        })?;
        Ok(HugePages { mapping, words })
    }

    fn words(&self) -> &[AtomicUsize] {
        // SAFETY: the mapping is page-aligned, zeroed, at least so long, lives as long as `self`, and is reached only as a
        // slice of atomics.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().cast(), self.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> MemorySpec {
        MemorySpec {
            block_bytes: 4096,
            total_bytes: 10 * 4096 + 1,
            workers: 2,
            operation: Operation::Write,
            random: None,
            is_shared: true,
            huge_pages: false,
            seed: 1,
        }
    }

    fn walk(spec: MemorySpec, number: u32) -> (Counts, Memory) {
        let test = Memory::new(spec).unwrap();
        let mut counts = Counts::default();
        let mut worker = test.worker(number).unwrap();
        let mut events = 0;
        while worker.event(0, &mut counts) == Ok(Next::Done) {
            events += 1;
        }
        assert_eq!(events, 5);
        drop(worker);
        (counts, test)
    }

    #[test]
    fn a_worker_walks_through_its_share_of_the_bytes() {
        for random in [None, Some(Shape::Uniform)] {
            for is_shared in [true, false] {
                let spec = MemorySpec {
                    random,
                    is_shared,
                    ..spec()
                };
                let (counts, _) = walk(spec, 0);
                assert_eq!((counts.bytes_written, counts.bytes_read), (5 * 4096, 0));
                let read = MemorySpec {
                    operation: Operation::Read,
                    ..spec
                };
                assert_eq!(walk(read, 1).0.bytes_read, 5 * 4096);
                let nothing = MemorySpec {
                    operation: Operation::Nothing,
                    ..spec
                };
                assert_eq!(walk(nothing, 1).0, Counts::default());
            }
        }
    }

    #[test]
    fn every_word_is_written() {
        let (_, test) = walk(spec(), 7);
        let words = test.shared.as_ref().unwrap().words();
        assert_eq!(words.len(), 512);
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 7));
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        let spec = MemorySpec {
            block_bytes: 1 << 60,
            ..spec()
        };
        assert!(Memory::new(spec).unwrap_err().contains("bytes of memory"));
    }
}
