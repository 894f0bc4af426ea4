//! Checking a record against its manifest.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::{FileDigest, Kind, MANIFEST, Seal, digest, digest_of_file, kind};
use crate::event::{Event, Stamped};
use crate::foreign::{self, TABLE_BYTES_MAX, UnfitFile};
use crate::store::{EVENTS, HOST, RecordError};

/// Content of a record's manifest, and differences between it and the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Digest of the manifest; absent when there is none.
    pub digest: Option<String>,
    /// Its lines, as far as they can be parsed.
    pub seals: Vec<Seal>,
    /// True when a run continued after the last line and did not end in order, so the manifest does not cover what it
    /// wrote.
    pub is_open: bool,
    /// Differences from the manifest.
    pub differences: Vec<Difference>,
}

/// A file that differs from the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path below the record.
    pub file: String,
    /// The difference, a clause that follows the file's name.
    pub what: String,
}

impl Check {
    fn differs(&mut self, file: &str, what: String) {
        self.differences.push(Difference {
            file: file.to_owned(),
            what,
        });
    }
}

/// Compares the record in `dir` with its manifest.
///
/// # Errors
/// When a folder cannot be listed or a file cannot be read.
pub fn check(dir: &Path) -> Result<Check, RecordError> {
    let manifest = match foreign::read_below(dir, MANIFEST, TABLE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Check::default()),
        Err(source) => {
            return Err(RecordError::File {
                action: "read",
                path: dir.join(MANIFEST),
                source,
            });
        }
    };
    let mut check = Check {
        digest: Some(digest(&manifest)),
        ..Check::default()
    };
    read_lines(&manifest, &mut check);
    if leads_elsewhere(&mut check) {
        return Ok(check);
    }
    let Some(last) = check.seals.last().cloned() else {
        check.differs(MANIFEST, "has no line that can be parsed".to_owned());
        return Ok(check);
    };
    check.is_open = went_on(dir, &last)?;
    compare_with_last(dir, &last, &mut check)?;
    let earlier = check.seals.split_last().map_or(&[][..], |(_, rest)| rest);
    for (number, seal) in earlier.to_vec().iter().enumerate() {
        compare_with_earlier(dir, number + 1, seal, &last, &mut check)?;
    }
    Ok(check)
}

/// Whether a line names a path outside the record; nothing is then read for it.
fn leads_elsewhere(check: &mut Check) -> bool {
    let mut elsewhere: Vec<String> = check
        .seals
        .iter()
        .flat_map(|seal| seal.files.keys())
        .filter(|file| !foreign::is_plain_path(file))
        .cloned()
        .collect();
    elsewhere.sort();
    elsewhere.dedup();
    for file in &elsewhere {
        check.differs(
            MANIFEST,
            format!("names `{file}`, which is not a path inside the record"),
        );
    }
    !elsewhere.is_empty()
}

/// Reads the lines, each of which must follow from those before it.
fn read_lines(manifest: &[u8], check: &mut Check) {
    let mut start = 0;
    for (index, line) in manifest.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let number = index + 1;
        match serde_json::from_slice::<Seal>(line) {
            Ok(seal) => {
                let expected = (start > 0).then(|| digest(&manifest[..start]));
                if seal.previous != expected {
                    let what = format!(
                        "was edited: line {number} does not follow from the lines before it"
                    );
                    check.differs(MANIFEST, what);
                }
                check.seals.push(seal);
            }
            Err(error) => {
                check.differs(MANIFEST, format!("line {number} cannot be parsed: {error}"));
            }
        }
        start += line.len();
    }
}

/// True when the journal, unchanged as far as it was sealed, continues with a run's first event, even a torn one.
fn went_on(dir: &Path, last: &Seal) -> Result<bool, RecordError> {
    let Some(sealed) = last.files.get(EVENTS) else {
        return Ok(false);
    };
    if !is_regular(dir, EVENTS) || bounded_digest(dir, EVENTS, Some(sealed.bytes))? != sealed.blake3
    {
        return Ok(false);
    }
    let rest = foreign::open_below(dir, EVENTS).and_then(|mut file| {
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(sealed.bytes))?;
        file.take(TABLE_BYTES_MAX)
            .read_to_end(&mut rest)
            .map(|_| rest)
    });
    let rest = rest.unwrap_or_default();
    let mut lines = rest
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    Ok(lines.next().is_some_and(|line| {
        let event = serde_json::from_slice::<Stamped>(line).map(|event| event.what);
        !line.ends_with(b"\n")
            || matches!(
                event,
                Ok(Event::Started { .. } | Event::Extended { .. } | Event::TailRemoved { .. })
            )
    }))
}

fn compare_with_last(dir: &Path, last: &Seal, check: &mut Check) -> Result<(), RecordError> {
    let found = super::files(dir)?;
    for (file, sealed) in &last.files {
        let Ok(facts) = dir.join(file).symlink_metadata() else {
            check.differs(file, "is missing".to_owned());
            continue;
        };
        if !is_regular(dir, file) {
            check.differs(file, "is not a plain file".to_owned());
        } else if check.is_open && kind(file) == Kind::Growing && facts.len() >= sealed.bytes {
            prefix(dir, file, sealed, "when it was last sealed", check)?;
        } else if check.is_open && kind(file) == Kind::Renewed {
            // The run that went on may have written it.
        } else if facts.len() != sealed.bytes {
            let what = format!(
                "has {} bytes, the manifest says {}",
                facts.len(),
                sealed.bytes
            );
            check.differs(file, what);
        } else {
            let now = bounded_digest(dir, file, None)?;
            if now != sealed.blake3 {
                check.differs(file, other_content(&now, &sealed.blake3));
            }
        }
    }
    if !check.is_open {
        for file in found.iter().filter(|file| !last.files.contains_key(*file)) {
            check.differs(file, "was added after the manifest was written".to_owned());
        }
    }
    Ok(())
}

/// Checks that data sealed at the end of an earlier run are unchanged.
fn compare_with_earlier(
    dir: &Path,
    number: usize,
    seal: &Seal,
    last: &Seal,
    check: &mut Check,
) -> Result<(), RecordError> {
    for (file, sealed) in &seal.files {
        let now = last.files.get(file);
        match kind(file) {
            Kind::Growing if is_regular(dir, file) => {
                prefix(dir, file, sealed, &format!("in line {number}"), check)?;
            }
            // The hosts of a contest are known when their agents obey.
            Kind::Fixed if !seal.has_begun && (file.contains(".before.") || file == HOST) => {}
            Kind::Fixed if now.is_none_or(|now| now != sealed) => {
                let what = format!(
                    "differs from line {number} of the manifest, although no run may change it"
                );
                check.differs(file, what);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the path is a regular file without a link on the way.
fn is_regular(dir: &Path, file: &str) -> bool {
    foreign::open_below(dir, file).is_ok()
}

/// The digest of a file, or of its first `bytes`; a file larger than the limit for records is an error.
fn bounded_digest(dir: &Path, file: &str, bytes: Option<u64>) -> Result<String, RecordError> {
    let path = dir.join(file);
    let length = path.metadata().map_or(0, |facts| facts.len());
    if length > TABLE_BYTES_MAX {
        return Err(RecordError::File {
            action: "read",
            path,
            source: UnfitFile::TooLarge(TABLE_BYTES_MAX).into(),
        });
    }
    digest_of_file(dir, file, bytes)
}

fn prefix(
    dir: &Path,
    file: &str,
    sealed: &FileDigest,
    when: &str,
    check: &mut Check,
) -> Result<(), RecordError> {
    let now = bounded_digest(dir, file, Some(sealed.bytes))?;
    if now != sealed.blake3 {
        let bytes = sealed.bytes;
        check.differs(file, format!("was not only appended to: its first {bytes} bytes differ from those in the manifest {when}"));
    }
    Ok(())
}

fn other_content(now: &str, sealed: &str) -> String {
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    format!(
        "has the right length but different content (digest {}, the manifest says {})",
        short(now),
        short(sealed)
    )
}
