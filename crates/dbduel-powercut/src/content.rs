//! The content of a file: sparse pages that copies share until they are written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

type Page = [u8; PAGE as usize];

/// The bytes of a file. Unwritten ranges read as zeros.
#[derive(Debug, Clone, Default)]
pub struct Content {
    size: u64,
    pages: BTreeMap<u64, Arc<Page>>,
}

impl Content {
    /// Length, bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of allocated pages.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Up to `length` bytes from `offset`, fewer at the end of the file.
    #[must_use]
    pub fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = offset.saturating_add(length).min(self.size);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (number, within, at) in pieces(offset..end.max(offset)) {
            if let Some(page) = self.pages.get(&number) {
                let length = within.len();
                bytes[at..at + length].copy_from_slice(&page[within]);
            }
        }
        bytes
    }

    /// Writes; the file grows to the end of the data if needed.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        for (number, within, at) in pieces(offset..end) {
            let page = self.page(number);
            let length = within.len();
            page[within].copy_from_slice(&data[at..at + length]);
        }
        self.size = self.size.max(end);
    }

    /// Truncates the file, or extends it by zeros.
    pub fn set_size(&mut self, size: u64) {
        if size < self.size {
            let size_before = self.size;
            self.zero(size..size_before);
        }
        self.size = size;
    }

    /// Makes a hole; the size stays.
    pub fn zero(&mut self, range: Range<u64>) {
        let range = range.start..range.end.min(self.size.div_ceil(PAGE) * PAGE);
        let first = range.start / PAGE;
        let last = range.end.div_ceil(PAGE);
        let there: Vec<u64> = match first < last {
            true => self.pages.range(first..last).map(|(&n, _)| n).collect(),
            false => Vec::new(),
        };
        for number in there {
            let begin = range.start.max(number * PAGE) - number * PAGE;
            let end = range.end.min((number + 1) * PAGE) - number * PAGE;
            if end - begin == PAGE {
                self.pages.remove(&number);
            } else {
                self.page(number)[begin as usize..end as usize].fill(0);
            }
        }
    }

    /// The next range with data at or after `offset`; `None` when there is none.
    #[must_use]
    pub fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        let mut pages = self.pages.range(offset / PAGE..).map(|(&number, _)| number);
        let first = pages.next()?;
        let mut last = first;
        for number in pages {
            if number != last + 1 {
                break;
            }
            last = number;
        }
        let begin = offset.max(first * PAGE);
        let end = ((last + 1) * PAGE).min(self.size);
        (begin < end).then_some(begin..end)
    }

    fn page(&mut self, number: u64) -> &mut Page {
        let page = self.pages.entry(number);
        Arc::make_mut(page.or_insert_with(|| Arc::new([0; PAGE as usize])))
    }
}

/// The pages of a range: number, part of the page, offset in the range.
fn pieces(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>, usize)> {
    let Range { start, end } = range;
    let numbers = match start < end {
        true => start / PAGE..(end - 1) / PAGE + 1,
        false => 0..0,
    };
    numbers.map(move |number| {
        let begin = start.max(number * PAGE);
        let stop = end.min((number + 1) * PAGE);
        let within = (begin - number * PAGE) as usize..(stop - number * PAGE) as usize;
        (number, within, (begin - start) as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64, u8, usize),
        Size(u64),
        Zero(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..20_000, any::<u8>(), 1usize..9_000).prop_map(|(o, b, l)| Step::Write(o, b, l)),
            (0u64..30_000).prop_map(Step::Size),
            (0u64..20_000, 0u64..9_000).prop_map(|(o, l)| Step::Zero(o, l)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_vector_of_bytes(steps in prop::collection::vec(step(), 1..30)) {
            let (mut content, mut bytes) = (Content::default(), Vec::<u8>::new());
            for step in steps {
                match step {
                    Step::Write(offset, byte, length) => {
                        content.write(offset, &vec![byte; length]);
                        let end = offset as usize + length;
                        bytes.resize(bytes.len().max(end), 0);
                        bytes[offset as usize..end].fill(byte);
                    }
                    Step::Size(size) => {
                        content.set_size(size);
                        bytes.resize(size as usize, 0);
                    }
                    Step::Zero(offset, length) => {
                        content.zero(offset..offset + length);
                        let end = (offset + length).min(bytes.len() as u64);
                        if offset < end {
                            bytes[offset as usize..end as usize].fill(0);
                        }
                    }
                }
                prop_assert_eq!(content.size(), bytes.len() as u64);
                prop_assert_eq!(&content.read(0, u64::MAX), &bytes);
                prop_assert_eq!(content.read(5000, 100), bytes.iter().skip(5000).take(100).copied().collect::<Vec<_>>());
                let mut at = 0;
                while let Some(data) = content.next_data(at) {
                    prop_assert!(bytes[at as usize..data.start as usize].iter().all(|&b| b == 0));
                    at = data.end;
                }
                prop_assert!(bytes[(at as usize).min(bytes.len())..].iter().all(|&b| b == 0));
            }
        }
    }
}
