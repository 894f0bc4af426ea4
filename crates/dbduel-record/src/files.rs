//! The operations that change records and sandboxes on disk, behind one interface, so that a test can make any of them
//! fail, stop half way or be the last before a crash. Reading needs no interface: it changes nothing.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// One change of a file or a folder. `mode` is the permission of a created file or folder, before the process's umask.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Creates a folder whose parent exists. An existing folder is not an error.
    CreateDir {
        /// The folder.
        path: &'a Path,
        /// Its permission.
        mode: u32,
    },
    /// Appends to a file, which is created when it is missing.
    Append {
        /// The file.
        path: &'a Path,
        /// The bytes to append.
        bytes: &'a [u8],
        /// Permission of a new file.
        mode: u32,
    },
    /// Replaces the content of a file, which is created when it is missing.
    Write {
        /// The file.
        path: &'a Path,
        /// Its new content.
        bytes: &'a [u8],
        /// Permission of a new file.
        mode: u32,
    },
    /// Truncates a file.
    Truncate {
        /// The file.
        path: &'a Path,
        /// Its new length, bytes.
        length: u64,
    },
    /// Syncs the content of a file, or the names in a folder, to the device.
    Sync {
        /// The file or folder.
        path: &'a Path,
    },
    /// Gives a file or folder another name on the same file system. A file of that name is replaced.
    Rename {
        /// The old name.
        from: &'a Path,
        /// The new name.
        to: &'a Path,
    },
    /// Removes a file, or a folder with everything in it.
    Remove {
        /// The file or folder.
        path: &'a Path,
    },
}

/// Where changes are applied.
pub trait FileSystem: Debug + Send + Sync {
    /// Applies one change.
    ///
    /// # Errors
    /// The system's answer. A failed [`Change::Append`] or [`Change::Write`] may have written a part.
    fn apply(&self, change: Change<'_>) -> io::Result<()>;
}

/// The file systems of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl FileSystem for LocalFiles {
    fn apply(&self, change: Change<'_>) -> io::Result<()> {
        match change {
            Change::CreateDir { path, mode } => {
                match fs::DirBuilder::new().mode(mode).create(path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
                        Ok(())
                    }
                    outcome => outcome,
                }
            }
            Change::Append { path, bytes, mode } => OpenOptions::new()
                .create(true)
                .append(true)
                .mode(mode)
                .open(path)?
                .write_all(bytes),
            Change::Write { path, bytes, mode } => {
                // What a link leads to is not the file that is meant.
                if path.is_symlink() {
                    fs::remove_file(path)?;
                }
                OpenOptions::new()
                    .create(true)
                    .write(true)
                    .truncate(true)
                    .mode(mode)
                    .open(path)?
                    .write_all(bytes)
            }
            Change::Truncate { path, length } => {
                OpenOptions::new().write(true).open(path)?.set_len(length)
            }
            Change::Sync { path } => match File::open(path)?.sync_all() {
                // Some file systems sync the names in a folder with the files and say so in this way.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput && path.is_dir() => {
                    Ok(())
                }
                outcome => outcome,
            },
            Change::Rename { from, to } => fs::rename(from, to),
            Change::Remove { path } => {
                if path.symlink_metadata()?.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                }
            }
        }
    }
}

/// Creates a folder and its missing parents, each synced so that a crash does not lose it.
///
/// # Errors
/// When a folder cannot be created or synced.
pub fn create_dir_all(files: &dyn FileSystem, path: &Path, mode: u32) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for path in missing.into_iter().rev() {
        files.apply(Change::CreateDir { path, mode })?;
        sync_parent(files, path)?;
    }
    Ok(())
}

/// Syncs the name of a file or folder to the device.
///
/// # Errors
/// When the folder that holds it cannot be synced.
pub fn sync_parent(files: &dyn FileSystem, path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    files.apply(Change::Sync {
        path: parent.unwrap_or(Path::new(".")),
    })
}
