//! Changes within a folder that a hostile archive or image layer cannot escape.
//!
//! The kernel resolves every path as for a process whose root is the folder: absolute links and `..` stay below it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// A folder that becomes the root of an image or of an archive's content.
pub struct Root {
    folder: OwnedFd,
    /// Path without symbolic links.
    path: PathBuf,
}

/// Position of an entry: an open folder below the root, and a name in it, which need not exist.
pub struct Entry {
    folder: OwnedFd,
    name: OsString,
}

impl Root {
    /// # Errors
    /// The folder cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let folder = openat(
            CWD,
            &path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Root { folder, path })
    }

    /// The position of an archive's path; creates the folders on the way to it. `None` for the root itself.
    ///
    /// # Errors
    /// The path has `..`, or leads through something that is no folder.
    pub fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        let path = below(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        Ok(Some(Entry {
            folder: self.made(parent)?,
            name: name.to_owned(),
        }))
    }

    /// As [`Root::entry`] for a path of lower layers; `None` when its folder does not exist.
    ///
    /// # Errors
    /// As [`Root::entry`].
    pub fn existing(&self, path: &Path) -> io::Result<Option<Entry>> {
        let path = below(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        match self.folder(parent) {
            Ok(folder) => Ok(Some(Entry {
                folder,
                name: name.to_owned(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(openat2(
            &self.folder,
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )?)
    }

    fn made(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.folder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        if let Some(entry) = self.entry(path)? {
            // A link that leads nowhere stays, and the path through it is an error.
            match fs::create_dir(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        self.folder(path)
    }

    /// The target of a link at `entry`, rewritten to resolve outside of a container as it did inside.
    ///
    /// # Errors
    /// The folder of the entry is gone.
    pub fn target(&self, entry: &Entry, target: &Path) -> io::Result<PathBuf> {
        let folder = fs::read_link(entry.folder_path())?;
        let depth = folder
            .strip_prefix(&self.path)
            .map_err(|_| io::Error::other("the folder of a link left the image"))?
            .components()
            .count();
        if !target.is_absolute() && climbs_at_most(target, depth) {
            return Ok(target.to_path_buf());
        }
        let mut below = match target.is_absolute() {
            true => Vec::new(),
            false => folder
                .strip_prefix(&self.path)
                .unwrap_or(Path::new(""))
                .components()
                .collect(),
        };
        for part in target.components() {
            match part {
                Component::ParentDir => {
                    // At the root `..` is the root.
                    below.pop();
                }
                Component::Normal(_) => below.push(part),
                _ => {}
            }
        }
        let mut inside: PathBuf = std::iter::repeat_n("..", depth).collect();
        inside.extend(below);
        if inside.as_os_str().is_empty() {
            inside.push(".");
        }
        Ok(inside)
    }
}

/// True when a relative path has `..` only at its beginning, at most `depth` times. A later `..` may follow a name that
/// is a link.
fn climbs_at_most(path: &Path, depth: usize) -> bool {
    let parts = path.components();
    let is_up = |part: &Component<'_>| matches!(part, Component::ParentDir);
    let up = parts.clone().take_while(is_up).count();
    up <= depth && !parts.skip(up).any(|part| is_up(&part))
}

/// Normalises an archive's path: below the root, without `..`.
///
/// # Errors
/// It has `..`.
pub fn below(path: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "it contains the path `{}`, which leads outside of it",
                        path.display()
                    ),
                ));
            }
            _ => {}
        }
    }
    Ok(plain)
}

impl Entry {
    fn folder_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// A path to it that follows no link in its last component.
    fn path(&self) -> PathBuf {
        self.folder_path().join(&self.name)
    }

    /// Removes the entry with all below it; a missing one is no error.
    pub fn remove(&self) -> io::Result<()> {
        let path = self.path();
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes the content of its folder.
    pub fn empty_folder(&self) -> io::Result<()> {
        for child in fs::read_dir(self.folder_path())? {
            let child = child?;
            if child.file_type()?.is_dir() {
                fs::remove_dir_all(child.path())?;
            } else {
                fs::remove_file(child.path())?;
            }
        }
        Ok(())
    }

    /// Creates a folder unless one exists. Its owner always gets access and write permission.
    pub fn make_folder(&self, mode: u32) -> io::Result<()> {
        let path = self.path();
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
            self.remove()?;
            fs::create_dir(&path)?;
        }
        fs::set_permissions(&path, Permissions::from_mode(mode & 0o777 | 0o700))
    }

    /// Creates an empty file in place of an existing entry, without set-user-id rights.
    pub fn make_file(&self, mode: u32) -> io::Result<File> {
        self.remove()?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode & 0o777 | 0o600)
            .open(self.path())
    }

    /// Creates a symbolic link in place of an existing entry.
    pub fn make_link(&self, target: &Path) -> io::Result<()> {
        self.remove()?;
        symlink(target, self.path())
    }

    /// Creates a hard link to `original` in place of an existing entry.
    pub fn make_hard_link(&self, original: &Entry) -> io::Result<()> {
        // Links to links are links, as in the layer.
        if fs::symlink_metadata(original.path())?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a hard link of the layer points to a folder",
            ));
        }
        self.remove()?;
        fs::hard_link(original.path(), self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_they_led_in_the_container() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let target = |at: &str, target: &str| {
            let entry = root.entry(Path::new(at)).unwrap().unwrap();
            root.target(&entry, Path::new(target)).unwrap()
        };
        for (at, to, expected) in [
            ("/lib64/ld.so", "/lib/x86/ld.so", "../lib/x86/ld.so"),
            ("lib", "usr/lib", "usr/lib"),
            ("usr/bin/sh", "../../bin/dash", "../../bin/dash"),
            ("usr/bin/x", "../../../../../etc/passwd", "../../etc/passwd"),
            ("x", "a/../../etc", "etc"),
            ("x", "/", "."),
            ("x", "..", "."),
            // `a` may be a link to the folder itself.
            ("usr/x", "a/a/../../../b", "../b"),
        ] {
            assert_eq!(target(at, to), Path::new(expected), "{at} -> {to}");
        }
    }

    #[test]
    fn a_folder_behind_an_absolute_link_is_inside() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let base = dir.path().join("root");
        fs::create_dir_all(&base).unwrap();
        symlink(outside.path(), base.join("out")).unwrap();
        let root = Root::open(&base).unwrap();
        // The link leads to a folder that the root does not have.
        assert!(root.entry(Path::new("out/file")).is_err());
        let hidden = base.join(outside.path().strip_prefix("/").unwrap());
        fs::create_dir_all(&hidden).unwrap();
        let entry = root.entry(Path::new("out/file")).unwrap().unwrap();
        drop(entry.make_file(0o644).unwrap());
        assert!(hidden.join("file").is_file());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let refused = root.entry(Path::new("a/../../x")).err().unwrap();
        assert!(refused.to_string().contains("leads outside of it"));
    }
}
