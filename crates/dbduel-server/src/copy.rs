//! Copies data directories and measures their size on disk.
//!
//! A copy shares blocks with the original where the file system can (FICLONE), and keeps holes where it cannot: page
//! compression punches holes, and a copy that filled them would not be the same data set.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use dbduel_machine::interrupt::{self, Interrupted};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

use super::progress::{Progress, ProgressUnit};

/// Result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Sum of the file lengths.
    pub apparent_bytes: u64,
    /// Files whose blocks are shared with the original until one of the two is written.
    pub cloned_files: u64,
}

/// Size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct TreeSize {
    /// Sum of the file lengths.
    pub apparent_bytes: u64,
    /// Sum of the blocks in use: less than the lengths where files have holes.
    pub allocated_bytes: u64,
    /// Regular files.
    pub files: u64,
}

/// Sizes of everything below `root`, symbolic links not followed.
///
/// # Errors
/// A folder cannot be read. A file that vanishes during the walk is left out.
pub fn tree_size(root: &Path) -> io::Result<TreeSize> {
    let mut size = TreeSize::default();
    visit_files(root, |_, metadata| {
        size.files += 1;
        size.apparent_bytes += metadata.len();
        size.allocated_bytes += allocated_bytes(metadata);
    })?;
    Ok(size)
}

/// Bytes of a file's blocks on the device.
pub(super) fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.blocks() * 512
}

/// Calls `visit` with the path and metadata of every regular file below `root`, symbolic links not followed.
///
/// # Errors
/// A folder cannot be read. A file that vanishes during the walk is left out.
pub(super) fn visit_files(root: &Path, mut visit: impl FnMut(&Path, &Metadata)) -> io::Result<()> {
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| named(&error, "read", &folder))? {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                visit(&entry.path(), &metadata);
            }
        }
    }
    Ok(())
}

/// Copies the tree `from` to `to`, which must not exist and appears only when complete: the copy is written to a
/// temporary folder and renamed. Symbolic links are copied as links; sockets are left out.
///
/// Syncs every file, so that its write-back does not disturb a later measurement. On failure the unfinished copy is
/// removed; one left by a killed process is replaced.
///
/// # Errors
/// `to` exists, or something cannot be read or written; the text names it.
pub fn copy_tree(from: &Path, to: &Path, progress: &dyn Progress) -> io::Result<Copied> {
    if to.exists() {
        let error = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(named(&error, "copy to", to));
    }
    let mut beside = to.as_os_str().to_owned();
    beside.push(".partial");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(|error| named(&error, "remove", &beside))?;
    }
    let total = tree_size(from)?.apparent_bytes;
    fs::create_dir(&beside).map_err(|error| named(&error, "create", &beside))?;
    let copied = copy_into(from, &beside, total, progress).and_then(|copied| {
        fs::rename(&beside, to).map_err(|error| named(&error, "create", to))?;
        Ok(copied)
    });
    if copied.is_err() {
        // The copy is useless; the error that is returned says why.
        let _ = fs::remove_dir_all(&beside);
    }
    copied
}

fn copy_into(from: &Path, to: &Path, total: u64, progress: &dyn Progress) -> io::Result<Copied> {
    let mut copied = Copied::default();
    let mut folders: Vec<(PathBuf, PathBuf)> = vec![(from.to_path_buf(), to.to_path_buf())];
    while let Some((source, target)) = folders.pop() {
        let mode = fs::metadata(&source)
            .map_err(|error| named(&error, "read", &source))?
            .permissions();
        fs::set_permissions(&target, mode)
            .map_err(|error| named(&error, "set the mode of", &target))?;
        for entry in fs::read_dir(&source).map_err(|error| named(&error, "read", &source))? {
            interrupt::check().map_err(io::Error::other)?;
            let entry = entry?;
            let (path, copy) = (entry.path(), target.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                fs::create_dir(&copy).map_err(|error| named(&error, "create", &copy))?;
                folders.push((path, copy));
            } else if kind.is_symlink() {
                symlink(fs::read_link(&path)?, &copy)
                    .map_err(|error| named(&error, "create", &copy))?;
            } else if kind.is_file() {
                let (bytes, cloned) =
                    copy_file(&path, &copy).map_err(|error| named(&error, "copy", &path))?;
                copied.files += 1;
                copied.apparent_bytes += bytes;
                copied.cloned_files += u64::from(cloned);
                progress.advance(copied.apparent_bytes, Some(total), ProgressUnit::Bytes);
            }
        }
        File::open(&target)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| named(&error, "sync", &target))?;
    }
    Ok(copied)
}

/// Copies one file; returns its length and whether its blocks are shared.
fn copy_file(from: &Path, to: &Path) -> io::Result<(u64, bool)> {
    let source = File::open(from)?;
    let metadata = source.metadata()?;
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(metadata.permissions().mode() & 0o7777)
        .open(to)?;
    // Many file systems cannot share blocks; then the data are copied.
    let cloned = rustix::fs::ioctl_ficlone(&target, &source).is_ok();
    if !cloned {
        copy_data(source, &target, metadata.len())?;
    }
    target.sync_all()?;
    Ok((metadata.len(), cloned))
}

/// Bytes that are copied and synced at a time; interrupts are checked in between.
const PART_BYTES: u64 = 16 << 20;

/// Copies the data ranges and keeps the holes between them.
fn copy_data(mut source: File, mut target: &File, length: u64) -> io::Result<()> {
    target.set_len(length)?;
    let mut position = 0i64;
    let end = i64::try_from(length)
        .map_err(|_| io::Error::other("file is longer than an offset can say"))?;
    while position < end {
        let begin = match lseek(&source, position, Whence::SeekData) {
            Ok(begin) => begin,
            // Nothing but a hole up to the end.
            Err(Errno::ENXIO) => break,
            // The file system does not know about holes: everything is data.
            Err(Errno::EINVAL) => position,
            Err(error) => return Err(error.into()),
        };
        let stop = match lseek(&source, begin, Whence::SeekHole) {
            Ok(stop) => stop.min(end),
            Err(Errno::EINVAL) => end,
            Err(error) => return Err(error.into()),
        };
        let stop = stop.min(begin + PART_BYTES.cast_signed());
        // A file that is cut short while it is copied must not make this loop run on the spot.
        if stop <= position || begin >= end {
            break;
        }
        source.seek(SeekFrom::Start(begin.unsigned_abs()))?;
        target.seek(SeekFrom::Start(begin.unsigned_abs()))?;
        io::copy(
            &mut io::Read::take(&mut source, (stop - begin).unsigned_abs()),
            &mut target,
        )?;
        target.sync_data()?;
        interrupt::check().map_err(io::Error::other)?;
        position = stop;
    }
    Ok(())
}

fn named(error: &io::Error, what: &str, path: &Path) -> io::Error {
    if error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<Interrupted>)
    {
        return io::Error::other(Interrupted);
    }
    io::Error::new(
        error.kind(),
        format!("could not {what} `{}`: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::super::progress::Silent;
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_request_to_end_is_noticed_within_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("data");
        let length = 3 * PART_BYTES / 2;
        fs::write(&from, vec![7u8; length as usize]).unwrap();
        let to = dir.path().join("to");
        let target = File::create(&to).unwrap();
        let user = interrupt::simulated::begin();
        interrupt::request();
        let copied = copy_data(File::open(&from).unwrap(), &target, length).unwrap_err();
        drop(user);
        assert!(copied.get_ref().unwrap().is::<Interrupted>());
        // The second part was not copied any more.
        let blocks = fs::metadata(&to).unwrap().blocks();
        assert!(blocks * 512 < PART_BYTES + (1 << 20), "{blocks}");
    }

    #[test]
    fn a_copy_has_the_same_bytes_modes_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::write(from.join("deep/er/page"), [7u8; 70_000]).unwrap();
        fs::write(from.join("key"), "secret").unwrap();
        fs::set_permissions(from.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(from.join("deep"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("key", from.join("link")).unwrap();

        let to = dir.path().join("to");
        fs::create_dir(dir.path().join("to.partial")).unwrap();
        fs::write(
            dir.path().join("to.partial/torn"),
            "left by a killed process",
        )
        .unwrap();
        let copied = copy_tree(&from, &to, &Silent).unwrap();
        assert!(!to.join("torn").exists() && !dir.path().join("to.partial").exists());
        assert_eq!((copied.files, copied.apparent_bytes), (2, 70_006));
        assert_eq!(fs::read(to.join("deep/er/page")).unwrap(), [7u8; 70_000]);
        assert_eq!(fs::metadata(to.join("key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(to.join("deep")).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("key"));
    }

    #[test]
    fn holes_stay_holes() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir(&from).unwrap();
        let file = File::create(from.join("sparse")).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(&[1u8; 4096], 0).unwrap();
        file.write_all_at(&[2u8; 4096], 32 << 20).unwrap();
        drop(file);

        let to = dir.path().join("to");
        copy_tree(&from, &to, &Silent).unwrap();
        let (original, copy) = (tree_size(&from).unwrap(), tree_size(&to).unwrap());
        assert_eq!(copy.apparent_bytes, 64 << 20);
        assert!(
            copy.allocated_bytes <= original.allocated_bytes.max(1 << 20),
            "{copy:?} against {original:?}"
        );
        let mut bytes = [0u8; 4096];
        File::open(to.join("sparse"))
            .unwrap()
            .read_exact_at(&mut bytes, 32 << 20)
            .unwrap();
        assert_eq!(bytes, [2u8; 4096]);
    }

    #[test]
    fn an_existing_target_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(to.join("precious"), "x").unwrap();
        assert!(copy_tree(&from, &to, &Silent).is_err());
        assert!(to.join("precious").exists());
    }
}
