//! Opens a dump: plain or gzip as a file, an archive of pg_dump through an installed `pg_restore`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use dbduel_capture::logs::pieces::{LogInput, Observe};
use dbduel_text::Version;

use crate::DumpError;
use crate::format::{Format, HEAD_BYTES, recognise};
use crate::programs::{Errors, VERSIONS, candidates, exit_of, version_text};

/// What to install, for an archive that no program here can read.
const INSTALL: &str = "install the client of the server that was dumped or a newer one (Debian: `postgresql-client-N`), or write a plain dump with `pg_dump -Fp`";

/// The error for a file that cannot be read.
pub fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> DumpError {
    |source| DumpError::Read {
        path: path.to_owned(),
        source,
    }
}

/// Opens a dump. `observe` is called with the bytes that were read from the file; its error ends the reading.
///
/// # Errors
/// When the file cannot be read, is no dump, or is an archive that no installed program reads.
pub fn open<'a>(
    path: &Path,
    observe: &'a mut Observe<'a>,
) -> Result<(Format, Box<dyn Read + 'a>), DumpError> {
    let refused = |why: String| DumpError::Format {
        path: path.to_owned(),
        why,
    };
    // A log of this name would be standard input.
    let file = match path.as_os_str() == OsStr::new("-") {
        true => Path::new("./-"),
        false => path,
    };
    if file.join("toc.dat").is_file() {
        let why = "it is a directory of `pg_dump -Fd`; write one file with `pg_dump -Fc`";
        return Err(refused(why.to_owned()));
    }
    let mut input = LogInput::new(&[file.to_owned()], observe);
    let head = input.peek(HEAD_BYTES).map_err(unreadable(path))?;
    let format = recognise(head).map_err(|why| refused(why.to_owned()))?;
    if format != Format::PostgreSqlArchive {
        return Ok((format, Box::new(input)));
    }
    let is_compressed = {
        let mut first = Vec::new();
        let opened = File::open(file).map_err(unreadable(path))?;
        let mut opened = opened.take(HEAD_BYTES as u64);
        opened.read_to_end(&mut first).map_err(unreadable(path))?;
        recognise(&first) != Ok(format)
    };
    if is_compressed {
        let why = "it is an archive of pg_dump that was compressed once more; decompress it with `gunzip` first";
        return Err(refused(why.to_owned()));
    }
    let Some(program) = newest(candidates("pg_restore"), version_of) else {
        return Err(refused(format!(
            "it is an archive of pg_dump, and no `pg_restore` was found on PATH or in {VERSIONS}; {INSTALL}"
        )));
    };
    let restoring = Restoring::start(&program, file).map_err(unreadable(path))?;
    Ok((format, Box::new(restoring)))
}

/// The program of the highest version; programs that do not say theirs are left out.
fn newest(
    programs: Vec<PathBuf>,
    version_of: impl Fn(&Path) -> Option<Version>,
) -> Option<PathBuf> {
    let versions = programs
        .into_iter()
        .filter_map(|program| Some((version_of(&program)?, program)));
    versions
        .max_by_key(|(version, _)| *version)
        .map(|(_, program)| program)
}

/// The version that `pg_restore --version` prints: `pg_restore (PostgreSQL) 15.18 (Debian …)`.
fn version_of(program: &Path) -> Option<Version> {
    let text = version_text(program)?;
    Version::parse(text.split_whitespace().nth(2)?)
}

/// A `pg_restore` whose output is the dump. It reads a local file, so it neither waits for a server nor for a person.
struct Restoring {
    child: Child,
    output: ChildStdout,
    errors: Option<Errors>,
    program: PathBuf,
    is_ended: bool,
}

impl Restoring {
    fn start(program: &Path, path: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["-f", "-", "--"])
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other(
                "the output of pg_restore is not connected",
            ));
        };
        Ok(Self {
            child,
            output,
            errors: Some(Errors::read(errors)),
            program: program.to_owned(),
            is_ended: false,
        })
    }

    /// Checks how the process ended.
    fn end(&mut self) -> io::Result<()> {
        let is_well = exit_of(&mut self.child) == Some(true);
        let said = self.errors.take().map(Errors::text).unwrap_or_default();
        match is_well {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "`{}` failed ({said}); {INSTALL}",
                self.program.display()
            ))),
        }
    }
}

impl Read for Restoring {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_ended || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.output.read(buffer)?;
        if read == 0 {
            self.is_ended = true;
            self.end()?;
        }
        Ok(read)
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        // Has ended by itself unless the load was given up.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Result<String, String> {
        let mut observe = |_| Ok(());
        let (_, mut input) = open(path, &mut observe).map_err(|error| error.to_string())?;
        let mut text = String::new();
        let read = input.read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_newest_program_is_taken() {
        let programs = ["9", "15", "12", "broken"].map(PathBuf::from).to_vec();
        let version_of = |path: &Path| Version::parse(&format!("{}.0", path.display()));
        assert_eq!(newest(programs, version_of), Some(PathBuf::from("15")));
        assert_eq!(newest(Vec::new(), version_of), None);
    }

    #[test]
    fn an_archive_that_cannot_be_read_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.dump");
        std::fs::write(&path, b"PGDMP\x01\x63\x00 no archive").unwrap();
        let why = opened(&path).unwrap_err();
        assert!(why.contains("postgresql-client-N"), "{why}");
    }

    #[test]
    fn a_compressed_archive_and_a_directory_are_refused() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.dump.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"PGDMP\x01\x0e\x00").unwrap();
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        assert!(opened(&path).unwrap_err().contains("gunzip"));
        std::fs::write(folder.path().join("toc.dat"), "PGDMP").unwrap();
        assert!(opened(folder.path()).unwrap_err().contains("pg_dump -Fd"));
    }
}
