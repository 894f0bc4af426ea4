//! Reading files that may come from elsewhere: only regular files of bounded length, and of a record only files inside
//! it.
//!
//! A read of a pipe would block, a device has no end, and a link or a path with `..` leads out of the record.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use crate::store::RecordError;
use crate::whole::DEPTH_MAX;

/// Largest table, journal or log of a record that is read, bytes; days of a contest with every sampler make some hundred
/// megabytes.
pub const TABLE_BYTES_MAX: u64 = 1 << 30;
/// Largest other file of a record that is read, bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of files and folders of a record.
const ENTRIES_MAX: usize = 200_000;

/// Why an existing file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitFile {
    /// A folder, a pipe, a device or a socket.
    #[error("it is not a regular file")]
    NotRegular,
    /// It, or a folder on the way to it, is a symbolic link.
    #[error("its path has a symbolic link; a record must hold its files itself")]
    Linked,
    /// Its path has `..` or begins at the root.
    #[error("its path is outside the record")]
    Outside,
    /// It is longer than any such file of a record.
    #[error("it is larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
}

impl From<UnfitFile> for io::Error {
    fn from(unfit: UnfitFile) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, unfit)
    }
}

/// Whether a file was refused as an [`UnfitFile`].
#[must_use]
pub fn is_unfit(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<UnfitFile>)
}

/// The bytes of a regular file named by the user, at most `limit` of them. Links are followed.
///
/// # Errors
/// The system's, or one with [`UnfitFile`] inside.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    content(open(path)?, limit)
}

/// The text of a regular file named by the user, as [`read`].
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// The bytes of the file at `path` below the folder `dir`, at most `limit` of them; no link below `dir` is followed.
///
/// # Errors
/// The system's, or one with [`UnfitFile`] inside.
pub fn read_below(dir: &Path, path: &str, limit: u64) -> io::Result<Vec<u8>> {
    content(open_below(dir, path)?, limit)
}

/// The text of a file below a folder, as [`read_below`].
///
/// # Errors
/// As [`read_below`], and when it is not UTF-8.
pub fn read_text_below(dir: &Path, path: &str, limit: u64) -> io::Result<String> {
    text(read_below(dir, path, limit)?)
}

/// Opens the regular file at `path` below the folder `dir`; no link below `dir` is followed.
///
/// # Errors
/// The system's, or one with [`UnfitFile`] inside.
pub fn open_below(dir: &Path, path: &str) -> io::Result<File> {
    if !is_plain_path(path) {
        return Err(UnfitFile::Outside.into());
    }
    let mut place = PathBuf::from(dir);
    for component in Path::new(path).components() {
        place.push(component);
        if place.symlink_metadata()?.is_symlink() {
            return Err(UnfitFile::Linked.into());
        }
    }
    open(&place)
}

/// True for a path that leads to something below the folder that it is joined to: names between single slashes, none of
/// them `.` or `..`.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    let is_name = |component| matches!(component, Component::Normal(_));
    let names = Path::new(path).components();
    !path.is_empty()
        && names.clone().all(is_name)
        // Components leave out what a path says twice.
        && names.map(|name| name.as_os_str().len() + 1).sum::<usize>() == path.len() + 1
}

/// Checks that every entry of a record is a regular file or a folder.
///
/// # Errors
/// The first other entry, or a folder that cannot be listed.
pub(crate) fn check_entries(dir: &Path) -> Result<(), RecordError> {
    let mut left = ENTRIES_MAX;
    check_folder(dir, 0, &mut left)
}

fn check_folder(dir: &Path, depth: usize, left: &mut usize) -> Result<(), RecordError> {
    let failed = |action, path: &Path, source| RecordError::File {
        action,
        path: path.to_owned(),
        source,
    };
    let entries = fs::read_dir(dir).map_err(|error| failed("list", dir, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", dir, error))?;
        let path = entry.path();
        let kind = entry
            .file_type()
            .map_err(|error| failed("look at", &path, error))?;
        *left = left.checked_sub(1).ok_or_else(|| {
            let why = format!("it has more than {ENTRIES_MAX} files and folders");
            failed("list", dir, io::Error::other(why))
        })?;
        if kind.is_dir() {
            if depth < DEPTH_MAX {
                check_folder(&path, depth + 1, left)?;
            }
        } else if kind.is_symlink() {
            return Err(failed("read", &path, UnfitFile::Linked.into()));
        } else if !kind.is_file() {
            return Err(failed("read", &path, UnfitFile::NotRegular.into()));
        }
    }
    Ok(())
}

/// Opens a regular file named by the user; links are followed. The type is checked first: opening a pipe waits for its
/// writer.
///
/// # Errors
/// The system's, or one with [`UnfitFile`] inside.
pub fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(UnfitFile::NotRegular.into());
    }
    File::open(path)
}

fn content(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > limit {
        return Err(UnfitFile::TooLarge(limit).into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // It may grow meanwhile.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(UnfitFile::TooLarge(limit).into());
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[track_caller]
    fn check(found: io::Result<Vec<u8>>, expected: &UnfitFile) {
        let error = found.unwrap_err();
        let unfit = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<UnfitFile>());
        assert_eq!(unfit, Some(expected), "{error}");
    }

    #[test]
    fn only_regular_files_of_bounded_length_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        check(read(&path, 4), &UnfitFile::TooLarge(4));
        check(read(Path::new("/dev/zero"), 4), &UnfitFile::NotRegular);
        check(read(dir.path(), 4), &UnfitFile::NotRegular);
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        check(read(&socket, 4), &UnfitFile::NotRegular);
        let error = read(&dir.path().join("nowhere"), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_leads_out_of_a_folder() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "x").unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/file"), "y").unwrap();
        symlink(outside.path(), dir.path().join("linked")).unwrap();
        symlink(outside.path().join("file"), dir.path().join("link")).unwrap();
        assert_eq!(read_below(dir.path(), "a/file", 9).unwrap(), b"y");
        check(read_below(dir.path(), "linked/file", 9), &UnfitFile::Linked);
        check(read_below(dir.path(), "link", 9), &UnfitFile::Linked);
        let absolute = outside.path().join("file");
        for path in ["../x", "a/../a/file", absolute.to_str().unwrap(), "", "."] {
            check(read_below(dir.path(), path, 9), &UnfitFile::Outside);
        }
        let refused = check_entries(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("link"), "{refused}");
    }

    #[test]
    fn plain_paths_have_one_way_to_be_written() {
        for plain in ["a", "a/b", "contenders/x y/ä.json", "..."] {
            assert!(is_plain_path(plain), "{plain}");
        }
        for other in ["", "/", "/a", "a/", "a//b", "./a", "a/.", "a/..", "..", "."] {
            assert!(!is_plain_path(other), "{other}");
        }
    }
}
