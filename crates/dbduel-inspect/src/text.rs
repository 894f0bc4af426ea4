//! Foreign text files, read with limits.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use dbduel_record::foreign::read_text;

/// Size limit of a file, bytes. A dump of all variables has some 30 KiB, a status text some 100.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Length limit of a line, bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Line limit of a file.
pub const LINES_MAX: usize = 200_000;

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system returned an error.
    #[error("could not read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A device, a pipe or a directory.
    #[error("`{0}` is not a regular file")]
    NotAFile(PathBuf),
    /// A line is invalid.
    #[error("`{path}`, line {line}: {why}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault and the fix.
        why: String,
    },
}

impl TextError {
    /// An error in a line, counted from 1.
    pub fn at(path: &Path, line: usize, why: impl Into<String>) -> Self {
        TextError::Line {
            path: path.to_owned(),
            line,
            why: why.into(),
        }
    }
}

/// The whole text of a file, read with the same limits.
///
/// # Errors
/// As [`lines`].
pub fn whole(path: &Path) -> Result<String, TextError> {
    lines(path)?;
    // Read again for its own ends of lines.
    read_text(path, FILE_BYTES_MAX).map_err(|source| TextError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The lines of a file, without their ends.
///
/// # Errors
/// When it is not text, has another encoding than UTF-8, or exceeds the limits.
pub fn lines(path: &Path) -> Result<Vec<String>, TextError> {
    let refused = |source| TextError::Read {
        path: path.to_owned(),
        source,
    };
    // Opening a pipe would wait for its writer.
    let facts = std::fs::metadata(path).map_err(refused)?;
    if !facts.is_file() {
        return Err(TextError::NotAFile(path.to_owned()));
    }
    let mut reader = BufReader::new(File::open(path).map_err(refused)?.take(FILE_BYTES_MAX + 1));
    let mut lines: Vec<String> = Vec::new();
    let mut bytes_read = 0;
    loop {
        let number = lines.len() + 1;
        let mut line = Vec::new();
        let length = reader
            .by_ref()
            .take(LINE_BYTES_MAX as u64 + 1)
            .read_until(b'\n', &mut line)
            .map_err(refused)?;
        if length == 0 {
            return Ok(lines);
        }
        bytes_read += length as u64;
        if bytes_read > FILE_BYTES_MAX {
            return Err(TextError::at(
                path,
                number,
                format!("the file is larger than {} MiB", FILE_BYTES_MAX >> 20),
            ));
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(TextError::at(
                path,
                number,
                format!("the line is longer than {LINE_BYTES_MAX} bytes"),
            ));
        }
        if number > LINES_MAX {
            return Err(TextError::at(
                path,
                number,
                format!("the file has more than {LINES_MAX} lines"),
            ));
        }
        if number == 1 {
            line = without_mark(path, line)?;
        }
        lines.push(decode(path, number, line)?);
    }
}

/// The first line without its byte-order mark.
fn without_mark(path: &Path, line: Vec<u8>) -> Result<Vec<u8>, TextError> {
    let other = match line.as_slice() {
        [0xff, 0xfe, ..] => "UTF-16LE",
        [0xfe, 0xff, ..] => "UTF-16BE",
        [0xef, 0xbb, 0xbf, rest @ ..] => return Ok(rest.to_vec()),
        _ => return Ok(line),
    };
    Err(TextError::at(
        path,
        1,
        format!("the text is in {other}; convert it with `iconv -f {other} -t UTF-8`"),
    ))
}

/// True for a file that begins with UTF-8's byte-order mark, which servers read as part of the first line.
pub fn has_mark(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(3).read_to_end(&mut first));
    read.is_ok() && first == [0xef, 0xbb, 0xbf]
}

/// Why a server rejects the first line of such a file.
pub const MARK: &str = "begins with a byte-order mark, which the server reads as part of the line; save the file without it";

fn decode(path: &Path, number: usize, mut line: Vec<u8>) -> Result<String, TextError> {
    while line
        .last()
        .is_some_and(|last| matches!(last, b'\n' | b'\r'))
    {
        line.pop();
    }
    if line.contains(&0) {
        return Err(TextError::at(
            path,
            number,
            "not a text file: it contains a zero byte",
        ));
    }
    String::from_utf8(line).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        TextError::at(
            path,
            number,
            format!("byte {at} is not UTF-8; convert the file with `iconv -f ENCODING -t UTF-8`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &[u8], expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        let error = lines(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn hostile_files_are_errors_with_a_line() {
        check(b"a\nb\0c\n", "line 2: not a text file");
        check(b"a\nb\xe4\n", "line 2: byte 2 is not UTF-8");
        check(b"\xff\xfea\0", "line 1: the text is in UTF-16LE");
        check(&vec![b'x'; 10 << 20], "line 1: the line is longer");
        check(
            &b"x\n".repeat(1_000_000),
            "line 200001: the file has more than",
        );
        check(
            &[[b'x'; 99].as_slice(), b"\n"].concat().repeat(170_000),
            "larger than 16 MiB",
        );
    }

    #[test]
    fn devices_are_not_waited_for() {
        assert!(matches!(
            lines(Path::new("/dev/zero")),
            Err(TextError::NotAFile(_))
        ));
        assert!(matches!(
            lines(Path::new("/nowhere")),
            Err(TextError::Read { .. })
        ));
    }

    #[test]
    fn ends_of_lines_and_the_mark_of_utf_8_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"\xef\xbb\xbfa\r\nb\n\nc").unwrap();
        assert_eq!(lines(&path).unwrap(), ["a", "b", "", "c"]);
        assert!(has_mark(&path));
        std::fs::write(&path, "a").unwrap();
        assert!(!has_mark(&path));
    }
}
