//! Opens a log or a dump that is in one file, in rotated and compressed pieces, or on standard input.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{cell::Cell, fmt};

use flate2::bufread::MultiGzDecoder;

/// First bytes of a file that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Those of Zstandard, bzip2 and xz, and the programs that decompress them.
const OTHER_COMPRESSIONS: [(&[u8], &str); 3] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd -dc"),
    (b"BZh", "bzip2 -dc"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz -dc"),
];
/// Bytes of a file that are looked at to see how it is compressed.
const MAGIC_BYTES: usize = 6;
/// Read from a file at once, bytes.
const FILE_BUFFER: usize = 256 << 10;

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// Line of the whole log with which it begins, from 1.
    pub first_line: u64,
}

/// Called with the bytes that were read from files so far; its error stops the import.
pub type Observe<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;

/// The bytes of a log: all pieces one after the other, each decompressed, a line break added where a piece has none at its end.
pub struct LogInput<'a> {
    waiting: VecDeque<PathBuf>,
    current: Option<Box<dyn Read>>,
    pieces: Vec<Piece>,
    head: Vec<u8>,
    head_read: usize,
    lines: u64,
    bytes: u64,
    is_at_line_start: bool,
    file_bytes: Rc<Cell<u64>>,
    observe: &'a mut Observe<'a>,
}

impl fmt::Debug for LogInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogInput")
            .field("waiting", &self.waiting)
            .field("pieces", &self.pieces)
            .finish_non_exhaustive()
    }
}

impl<'a> LogInput<'a> {
    /// The log in these files, in this order. Nothing is opened yet.
    pub fn new(paths: &[PathBuf], observe: &'a mut Observe<'a>) -> Self {
        LogInput {
            waiting: paths.iter().cloned().collect(),
            current: None,
            pieces: Vec::new(),
            head: Vec::new(),
            head_read: 0,
            lines: 0,
            bytes: 0,
            is_at_line_start: true,
            file_bytes: Rc::new(Cell::new(0)),
            observe,
        }
    }

    /// The first `length` bytes, fewer where the log is shorter; they are read again afterwards.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        let mut buffer = vec![0; length];
        while self.head.len() < length {
            let left = length - self.head.len();
            match self.read_pieces(&mut buffer[..left])? {
                0 => break,
                read => self.head.extend_from_slice(&buffer[..read]),
            }
        }
        Ok(&self.head)
    }

    /// The pieces that were opened so far.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Bytes of the log that were read so far, decompressed.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Lines that were read so far.
    #[must_use]
    pub fn lines_read(&self) -> u64 {
        self.lines + u64::from(!self.is_at_line_start)
    }

    fn read_pieces(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        (self.observe)(self.file_bytes.get())?;
        loop {
            let Some(current) = &mut self.current else {
                let Some(path) = self.waiting.pop_front() else {
                    return Ok(0);
                };
                self.current = Some(open(&path, &self.file_bytes)?);
                let first_line = self.lines + 1;
                self.pieces.push(Piece { path, first_line });
                continue;
            };
            let read = match current.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(&error)),
                Ok(read) => read,
            };
            if read > 0 {
                self.take_note(&buffer[..read]);
                return Ok(read);
            }
            self.current = None;
            if !self.is_at_line_start && !self.waiting.is_empty() {
                buffer[0] = b'\n';
                self.take_note(b"\n");
                return Ok(1);
            }
        }
    }

    fn take_note(&mut self, bytes: &[u8]) {
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.bytes += bytes.len() as u64;
        self.is_at_line_start = bytes.last() == Some(&b'\n');
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        let name = self.pieces.last().map(|piece| piece.path.display());
        let name = name.map(|name| name.to_string()).unwrap_or_default();
        io::Error::new(error.kind(), format!("could not read `{name}`: {error}"))
    }
}

impl Read for LogInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let head = &self.head[self.head_read..];
        if head.is_empty() {
            return self.read_pieces(buffer);
        }
        let length = head.len().min(buffer.len());
        buffer[..length].copy_from_slice(&head[..length]);
        self.head_read += length;
        if self.head_read == self.head.len() {
            self.head = Vec::new();
            self.head_read = 0;
        }
        Ok(length)
    }
}

/// Bytes that are to be read in all, where every piece is a regular file.
#[must_use]
pub fn total_bytes(paths: &[PathBuf]) -> Option<u64> {
    let lengths = paths.iter().map(|path| {
        let metadata = path.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    });
    lengths.sum()
}

struct Counted<R> {
    inner: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

fn open(path: &Path, bytes: &Rc<Cell<u64>>) -> io::Result<Box<dyn Read>> {
    let said = |error: io::Error| {
        let text = format!("could not open `{}`: {error}", path.display());
        io::Error::new(error.kind(), text)
    };
    let source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(said)?;
        if file.metadata().map_err(said)?.is_dir() {
            return Err(said(io::ErrorKind::IsADirectory.into()));
        }
        Box::new(file)
    };
    let mut source = Counted {
        inner: source,
        bytes: Rc::clone(bytes),
    };
    let mut magic = Vec::with_capacity(MAGIC_BYTES);
    let limit = MAGIC_BYTES as u64;
    Read::by_ref(&mut source)
        .take(limit)
        .read_to_end(&mut magic)
        .map_err(said)?;
    let is_gzip = magic.starts_with(&GZIP);
    let foreign = OTHER_COMPRESSIONS
        .iter()
        .find(|(first, _)| magic.starts_with(first));
    if let Some((_, program)) = foreign {
        let text = format!(
            "it is compressed and not with gzip; decompress it with `{program} {}`",
            path.display()
        );
        return Err(said(io::Error::new(io::ErrorKind::Unsupported, text)));
    }
    let whole = io::Cursor::new(magic).chain(source);
    Ok(match is_gzip {
        true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(
            FILE_BUFFER,
            whole,
        ))),
        false => Box::new(whole),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn write(dir: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn pieces_are_one_log_and_keep_their_first_lines() {
        let dir = tempfile::tempdir().unwrap();
        // Two members, as `cat a.gz b.gz` makes them.
        let mut compressed = gzipped(b"one\n");
        compressed.extend(gzipped(b"two\nthree"));
        let paths = [
            write(&dir, "log.2.gz", &compressed),
            write(&dir, "log.1", b""),
            write(&dir, "log", b"four\nfive"),
        ];
        let mut seen = 0;
        let mut observe = |bytes| {
            seen = bytes;
            Ok(())
        };
        let mut input = LogInput::new(&paths, &mut observe);
        assert_eq!(input.peek(7).unwrap(), b"one\ntwo");
        let mut text = Vec::new();
        input.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"one\ntwo\nthree\nfour\nfive");
        assert_eq!((input.bytes_read(), input.lines_read()), (23, 5));
        let lines: Vec<u64> = input
            .pieces()
            .iter()
            .map(|piece| piece.first_line)
            .collect();
        assert_eq!(lines, [1, 4, 4]);
        assert_eq!(Some(seen), total_bytes(&paths));
    }

    #[test]
    fn a_piece_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut cut = gzipped(&[b'x'; 5000]);
        cut.truncate(20);
        for (name, bytes, expected) in [
            ("a.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0][..], "zstd -dc"),
            ("b.gz", &cut[..], "b.gz"),
        ] {
            let paths = [write(&dir, name, bytes)];
            let mut observe = |_| Ok(());
            let mut input = LogInput::new(&paths, &mut observe);
            let error = input.read_to_end(&mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let mut observe = |_| Ok(());
        let paths = [dir.path().to_owned()];
        let error = LogInput::new(&paths, &mut observe).peek(1).unwrap_err();
        assert!(error.to_string().contains("directory"), "{error}");
    }

    #[test]
    fn the_observer_stops_the_import() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [write(&dir, "log", b"x")];
        let mut observe = |_| Err(io::Error::other("stop"));
        let mut input = LogInput::new(&paths, &mut observe);
        assert_eq!(input.peek(1).unwrap_err().to_string(), "stop");
    }
}
