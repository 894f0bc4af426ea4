//! Texts of statements: written one after the other, and once if a text recurs soon.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Write as _};
use std::path::Path;

use rustc_hash::FxHasher;

use super::columns::create;

/// Places of recent texts; a power of two. So few stay in a processor's cache.
const PLACES: usize = 1 << 14;
/// Bytes of texts that are kept for comparison, twice: those being written and those before them.
const WINDOW: usize = 8 << 20;
/// Longer texts are written without a comparison.
const COMPARED_MAX: usize = 256 << 10;

/// Where a text is in `texts.bin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPlace {
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

#[derive(Debug, Clone, Copy)]
struct Recent<T> {
    hash: u64,
    place: TextPlace,
    known: T,
}

/// The texts of a capture while they are written, with what is known of recent ones.
///
/// A table without chains: a text of another hash takes the place of the one before it, so that no log can make it slow.
#[derive(Debug)]
pub(super) struct TextWriter<T> {
    file: File,
    /// Parts of the hashes of `recent`, which stay in the processor's cache where `recent` does not.
    tags: Vec<u32>,
    recent: Vec<Option<Recent<T>>>,
    /// The last bytes of the file, in two halves; the second one is not yet written.
    before: Vec<u8>,
    now: Vec<u8>,
    /// Offset of the first byte of `now`.
    now_at: u64,
}

impl<T: Copy> TextWriter<T> {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(TextWriter {
            file: create(path)?,
            tags: vec![0; PLACES],
            recent: vec![None; PLACES],
            before: Vec::new(),
            now: Vec::with_capacity(WINDOW),
            now_at: 0,
        })
    }

    /// Keeps a text. What is known of it is `find`'s answer, which is not called where a recent text is equal.
    pub(super) fn keep(
        &mut self,
        text: &[u8],
        find: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<(TextPlace, T)> {
        let hash = hash(text);
        let slot = hash as usize % PLACES;
        let tag = (hash >> 32) as u32;
        if self.tags[slot] == tag
            && let Some(recent) = self.recent[slot]
            && recent.hash == hash
            && self.written(recent.place) == Some(text)
        {
            return Ok((recent.place, recent.known));
        }
        let known = find(text);
        let place = self.write(text)?;
        if text.len() <= COMPARED_MAX {
            self.tags[slot] = tag;
            self.recent[slot] = Some(Recent { hash, place, known });
        }
        Ok((place, known))
    }

    /// The bytes at a place that is still in the window.
    fn written(&self, place: TextPlace) -> Option<&[u8]> {
        let length = place.length as usize;
        let (half, start) = match place.offset.checked_sub(self.now_at) {
            Some(start) => (&self.now, start),
            None => {
                let before_at = self.now_at - self.before.len() as u64;
                (&self.before, place.offset.checked_sub(before_at)?)
            }
        };
        let start = usize::try_from(start).ok()?;
        half.get(start..start.checked_add(length)?)
    }

    /// Writes a text without looking for it.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<TextPlace> {
        let length = u32::try_from(text.len())
            .map_err(|_| io::Error::other("a statement is longer than 4 GiB"))?;
        if self.now.len() + text.len() > WINDOW {
            self.turn()?;
        }
        let offset = self.now_at + self.now.len() as u64;
        if text.len() > WINDOW {
            self.file.write_all(text)?;
            // The window begins behind it.
            self.before.clear();
            self.now_at += text.len() as u64;
        } else {
            self.now.extend_from_slice(text);
        }
        Ok(TextPlace { offset, length })
    }

    fn turn(&mut self) -> io::Result<()> {
        self.file.write_all(&self.now)?;
        self.now_at += self.now.len() as u64;
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.turn()
    }
}

/// A fast hash, for texts that are compared afterwards.
pub(crate) fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    // Lengths are no part of what the hasher mixes of zeros.
    hasher.write_usize(text.len());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_their_places_and_recent_ones_are_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("texts.bin");
        let mut writer: TextWriter<usize> = TextWriter::create(&path).unwrap();
        let long = vec![b'l'; COMPARED_MAX + 1];
        let longer = vec![b'm'; WINDOW + 1];
        let filler = vec![b'f'; WINDOW / 2 + 1];
        let texts: [&[u8]; 12] = [
            b"a", b"", b"b", b"a", &long, &long, &longer, b"a", &filler, b"b", &filler, b"a",
        ];
        let mut asked = 0;
        let mut places = Vec::new();
        for text in texts {
            let (place, known) = writer
                .keep(text, |text| {
                    asked += 1;
                    text.len()
                })
                .unwrap();
            assert_eq!(known, text.len());
            places.push(place);
        }
        writer.finish().unwrap();
        let file = std::fs::read(&path).unwrap();
        for (text, place) in texts.iter().zip(&places) {
            let start = usize::try_from(place.offset).unwrap();
            assert!(&file[start..][..place.length as usize] == *text);
        }
        // The fourth is the first; after the longest one the window is empty.
        assert_eq!(places[0], places[3]);
        assert_ne!(places[4], places[5]);
        assert_ne!(places[0], places[7]);
        assert_eq!(places[7], places[11]);
        assert_eq!(asked, 10);
    }
}
