//! Limits the headers of a tar archive: readers of archives keep long names and other extensions in memory.

use std::io::{self, Read};

use tar::{EntryType, Header, PaxExtensions};

/// Size limit far above the longest path and other metadata of a file.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;
const BLOCK: usize = 512;
/// Offsets at which the header of a sparse file, and a continuation block, say that another block follows.
const SPARSE_GOES_ON: usize = 482;
const SPARSE_BLOCK_GOES_ON: usize = 504;

/// An uncompressed tar archive; reading fails at an extension larger than any that is needed.
#[derive(Debug)]
pub struct BoundedExtensions<R> {
    inner: R,
    /// The header block being read, and its number of bytes so far.
    block: [u8; BLOCK],
    filled: usize,
    /// State after the last complete header block.
    state: State,
    /// Content of an extended header, which may override the next entry's size.
    extension: Vec<u8>,
    is_extended: bool,
    /// The overriding size.
    next_size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    /// Remaining blocks that may continue the header of a sparse file, and bytes of its content.
    Sparse {
        content: u64,
        left: u64,
    },
    /// Bytes until the next header, and how many of them are kept.
    Content {
        left: u64,
        kept: u64,
    },
}

impl<R> BoundedExtensions<R> {
    /// Wraps the reader of an archive.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            block: [0; BLOCK],
            filled: 0,
            state: State::Header,
            extension: Vec::new(),
            is_extended: false,
            next_size: None,
        }
    }

    /// Follows the archive's structure through its next bytes.
    fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.state {
                State::Content { left, kept } => {
                    let here = (bytes.len() as u64).min(left);
                    let (content, rest) = bytes.split_at(here as usize);
                    let kept_here = here.min(kept);
                    self.extension
                        .extend_from_slice(&content[..kept_here as usize]);
                    bytes = rest;
                    self.state = match left - here {
                        0 => self.content_ended(),
                        left => State::Content {
                            left,
                            kept: kept - kept_here,
                        },
                    };
                }
                State::Header | State::Sparse { .. } => {
                    let (begin, rest) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
                    self.block[self.filled..self.filled + begin.len()].copy_from_slice(begin);
                    self.filled += begin.len();
                    bytes = rest;
                    if self.filled == BLOCK {
                        self.filled = 0;
                        self.state = self.block_ended()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn block_ended(&mut self) -> io::Result<State> {
        if let State::Sparse { content, left } = self.state {
            return match self.block[SPARSE_BLOCK_GOES_ON] {
                1 if left == 0 => Err(too_large("a list of the holes of a sparse file")),
                1 => Ok(State::Sparse {
                    content,
                    left: left - 1,
                }),
                _ => Ok(content_of(content, 0)),
            };
        }
        // The end of the archive.
        if self.block.iter().all(|byte| *byte == 0) {
            return Ok(State::Header);
        }
        let header = Header::from_byte_slice(&self.block);
        let (kind, size) = (header.entry_type(), header.entry_size()?);
        let is_kept =
            kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions();
        let is_recognised = header.as_gnu().is_some() || header.as_ustar().is_some();
        if is_kept && is_recognised {
            if size > EXTENSION_BYTES_MAX {
                return Err(too_large(&format!(
                    "a name or an extended header of {size} bytes"
                )));
            }
            self.extension.clear();
            self.is_extended = kind.is_pax_local_extensions();
            return Ok(content_of(size, if self.is_extended { size } else { 0 }));
        }
        let next_size = self.next_size.take();
        if is_kept || kind.is_pax_global_extensions() {
            // An entry of its own, whose size no other gives.
            return Ok(content_of(size, 0));
        }
        let size = next_size.unwrap_or(size);
        let goes_on = kind == EntryType::GNUSparse && self.block[SPARSE_GOES_ON] == 1;
        Ok(match goes_on {
            true => State::Sparse {
                content: size,
                left: EXTENSION_BYTES_MAX / BLOCK as u64,
            },
            false => content_of(size, 0),
        })
    }

    /// Handles the end of an entry's content. For an extended header the reader's rule applies: the first size counts,
    /// and none after a damaged record.
    fn content_ended(&mut self) -> State {
        if std::mem::take(&mut self.is_extended) {
            let mut records = PaxExtensions::new(&self.extension).map_while(Result::ok);
            let size = records.find(|record| record.key() == Ok("size"));
            self.next_size = size.and_then(|size| size.value().ok()?.parse().ok());
            self.extension.clear();
        }
        State::Header
    }
}

fn too_large(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the archive has {what}, at most {EXTENSION_BYTES_MAX} bytes are read"),
    )
}

/// Content of so many bytes, which ends with its last block.
fn content_of(bytes: u64, kept: u64) -> State {
    match bytes.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64) {
        0 => State::Header,
        left => State::Content { left, kept },
    }
}

impl<R: Read> Read for BoundedExtensions<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.follow(&buffer[..read])?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use tar::{Archive, Builder};

    use super::*;

    /// An entry without content whose header says that it has so much of it.
    fn header(kind: EntryType, size: u64) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn names(archive: &[u8]) -> io::Result<Vec<String>> {
        let mut archive = Archive::new(BoundedExtensions::new(archive));
        let entries = archive.entries()?;
        entries
            .map(|entry| Ok(entry?.path()?.display().to_string()))
            .collect()
    }

    #[test]
    fn names_of_any_use_are_read() {
        let long = "x/".repeat(500) + "end";
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(700);
        builder
            .append_data(&mut header, &long, [1; 700].as_slice())
            .unwrap();
        let mut sized = Header::new_ustar();
        sized.set_size(5);
        builder
            .append_pax_extensions([("size", b"5".as_slice()), ("path", b"named")])
            .unwrap();
        sized.set_cksum();
        builder.append(&sized, b"12345".as_slice()).unwrap();
        let archive = builder.into_inner().unwrap();
        assert_eq!(names(&archive).unwrap(), [long.as_str(), "named"]);
    }

    #[test]
    fn a_name_of_gigabytes_is_an_error_before_it_is_read() {
        let kinds = [
            EntryType::GNULongName,
            EntryType::GNULongLink,
            EntryType::XHeader,
        ];
        for kind in kinds {
            let mut archive = header(EntryType::Regular, 700);
            archive.extend([0; 1024]);
            archive.extend(header(kind, 3 << 30));
            // As much content as is asked for, and no end.
            let endless = archive.as_slice().chain(io::repeat(b'x'));
            let mut archive = Archive::new(BoundedExtensions::new(endless));
            let mut entries = archive.entries().unwrap();
            assert!(entries.next().unwrap().is_ok());
            let error = entries.next().unwrap().map(drop).unwrap_err();
            assert!(error.to_string().contains("3221225472 bytes"), "{error}");
        }
    }

    /// The error that a reader gets of an archive that goes on for ever.
    fn error_of(begin: &[u8]) -> String {
        let endless = begin.chain(io::repeat(1));
        let mut archive = Archive::new(BoundedExtensions::new(endless));
        let ended = archive.entries().unwrap().find_map(Result::err);
        ended.unwrap().to_string()
    }

    fn extended(records: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        builder
            .append_pax_extensions(records.iter().copied())
            .unwrap();
        let mut archive = builder.into_inner().unwrap();
        archive.truncate(1024);
        archive
    }

    #[test]
    fn no_size_of_another_entry_hides_a_header() {
        let hidden = header(EntryType::GNULongName, 3 << 30);
        let file = |size| header(EntryType::Regular, size);
        let huge = (1_u64 << 40).to_string();
        let huge: (&str, &[u8]) = ("size", huge.as_bytes());
        // By its header the file has content, by the one before none.
        let none = [extended(&[("size", b"0")]), file(512), hidden.clone()].concat();
        // The first size counts.
        let first = [extended(&[("size", b"0"), huge]), file(0), hidden.clone()].concat();
        // A global header is an entry, which ends what was said of the next one.
        let global = [
            extended(&[huge]),
            header(EntryType::XGlobalHeader, 0),
            file(0),
            hidden,
        ]
        .concat();
        for begin in [none, first, global] {
            assert!(error_of(&begin).contains("3221225472 bytes"));
        }
    }

    #[test]
    fn a_list_of_holes_without_end_is_an_error() {
        let mut sparse = header(EntryType::GNUSparse, 0);
        sparse[SPARSE_GOES_ON] = 1;
        let sum: u32 = sparse[..148]
            .iter()
            .chain(&sparse[156..])
            .map(|byte| u32::from(*byte))
            .sum::<u32>()
            + 8 * 32;
        sparse[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        // Every byte of what follows is 1, also those that say that the list goes on.
        let error = error_of(&sparse);
        assert!(
            error.contains("holes") || error.contains("sparse"),
            "{error}"
        );
    }
}
