//! A record as one file: a compressed tar of its files, the same bytes for the same record.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_record::foreign::{self, is_plain_path, open_below};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, EntryType, Header};

use dbduel_server::tar_extensions::BoundedExtensions;

/// Largest record that is unpacked, bytes.
const BYTES_MAX: u64 = 16 << 30;
/// Most files of a record.
const FILES_MAX: usize = 200_000;
/// Deepest folder of a record.
const DEPTH_MAX: usize = 16;
const FILE_MODE: u32 = 0o644;

/// Packs the record in `dir` into a new file and returns the digest of that file.
///
/// # Errors
/// When a file cannot be read or written, or is not a regular file.
pub fn pack(dir: &Path, into: &Path) -> Result<String> {
    let failed = || format!("could not pack `{}`", dir.display());
    let file =
        File::create(into).with_context(|| format!("could not create `{}`", into.display()))?;
    let compressed = GzEncoder::new(BufWriter::new(file), Compression::default());
    let mut builder = Builder::new(compressed);
    let mut paths = Vec::new();
    walk(dir, Path::new(""), 0, &mut paths).with_context(failed)?;
    paths.sort();
    for path in paths {
        let named = path.to_str().with_context(failed)?;
        let source = open_below(dir, named).with_context(failed)?;
        let mut header = Header::new_gnu();
        // Neither times nor owners, so that equal records are equal objects.
        header.set_size(source.metadata()?.len());
        header.set_mode(FILE_MODE);
        header.set_mtime(0);
        builder
            .append_data(&mut header, &path, BufReader::new(source))
            .with_context(failed)?;
    }
    let buffered = builder.into_inner()?.finish()?;
    buffered
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    digest_of(into)
}

fn walk(dir: &Path, below: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    ensure!(depth <= DEPTH_MAX, "its folders are nested too deep");
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            walk(dir, &path, depth + 1, found)?;
        } else {
            found.push(path);
        }
        ensure!(found.len() <= FILES_MAX, "it has too many files");
    }
    Ok(())
}

/// The digest of a packed record.
///
/// # Errors
/// When it cannot be read.
pub fn digest_of(file: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let failed = || format!("could not read `{}`", file.display());
    hasher
        .update_reader(foreign::open(file).with_context(failed)?)
        .with_context(failed)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Unpacks a record of unknown origin into a new folder. Accepts only files, and only below that folder.
///
/// # Errors
/// When it holds anything else, is too large, or cannot be written.
pub fn unpack(packed: &Path, into: &Path) -> Result<()> {
    let file =
        foreign::open(packed).with_context(|| format!("could not read `{}`", packed.display()))?;
    let plain = GzDecoder::new(BufReader::new(file)).take(BYTES_MAX);
    let mut archive = Archive::new(BoundedExtensions::new(plain));
    fs::create_dir(into).with_context(|| format!("could not create `{}`", into.display()))?;
    let mut files = 0;
    for entry in archive.entries()? {
        let mut entry = entry.context("the packed record is damaged")?;
        let path = entry.path()?.into_owned();
        let named = path.to_str().unwrap_or_default();
        if entry.header().entry_type() != EntryType::Regular || !is_plain_path(named) {
            bail!(
                "the packed record holds `{}`, which is not a file below it",
                path.display()
            );
        }
        files += 1;
        ensure!(files <= FILES_MAX, "the packed record has too many files");
        let place = into.join(&path);
        let failed = || format!("could not write `{}`", place.display());
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut out = BufWriter::new(File::create_new(&place).with_context(failed)?);
        io::copy(&mut entry, &mut out).with_context(failed)?;
        out.flush().with_context(failed)?;
    }
    ensure!(files > 0, "the packed record is empty");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_record_is_the_same_file_each_time_and_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let long = format!("contenders/{}/variables.before.tsv", "x".repeat(120));
        for name in ["plan.json", "events.jsonl", long.as_str()] {
            let path = place("record").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name.repeat(1000)).unwrap();
        }
        let first = pack(&place("record"), &place("1.tar.gz")).unwrap();
        assert_eq!(first, pack(&place("record"), &place("2.tar.gz")).unwrap());
        unpack(&place("1.tar.gz"), &place("again")).unwrap();
        for name in ["plan.json", "events.jsonl", long.as_str()] {
            let text = fs::read_to_string(place("again").join(name)).unwrap();
            assert_eq!(text, name.repeat(1000));
        }
        symlink("/etc/passwd", place("record/link")).unwrap();
        assert!(pack(&place("record"), &place("3.tar.gz")).is_err());
    }

    #[test]
    fn nothing_is_unpacked_outside_of_its_folder_and_nothing_but_files() {
        let folder = tempfile::tempdir().unwrap();
        let packed = |number: usize, name: &str, kind: EntryType| {
            let path = folder.path().join(format!("{number}.tar.gz"));
            let encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
            let mut builder = Builder::new(encoder);
            let mut header = Header::new_gnu();
            // The library's own functions refuse such names.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
            builder.into_inner().unwrap().finish().unwrap();
            path
        };
        for (number, (name, kind)) in [
            ("../evil", EntryType::Regular),
            ("/tmp/evil", EntryType::Regular),
            ("a/../../evil", EntryType::Regular),
            ("link", EntryType::Symlink),
            ("pipe", EntryType::Fifo),
        ]
        .into_iter()
        .enumerate()
        {
            let into = folder.path().join(format!("{number}"));
            let said = unpack(&packed(number, name, kind), &into).unwrap_err();
            assert!(said.to_string().contains("not a file below it"), "{said:#}");
        }
        let text = folder.path().join("text");
        fs::write(&text, "no tar").unwrap();
        assert!(unpack(&text, &folder.path().join("x")).is_err());
    }
}
