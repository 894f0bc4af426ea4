//! Changes in a folder that a hostile archive or layer of an image cannot lead out of.
//!
//! The kernel resolves every path as for a process whose root the folder is: absolute links and `..` begin and end there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

/// A folder that becomes the root of an image, or of what an archive holds.
pub struct Root {
    folder: OwnedFd,
    /// Without links.
    path: PathBuf,
}

/// An entry's place: a folder of the root that is open, and a name in it, which need not exist.
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

    /// The place of a path of an archive; folders on the way to it are made. `None` for the root itself.
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

    /// As [`Root::entry`] for a path that lower layers must have; `None` when its folder is not there.
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

    /// The target that a link at `entry` must have, so that it leads outside of a container where it led inside.
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

/// Whether a relative path goes up at its beginning alone, and at most `depth` folders. Behind a name `..` may be anywhere: the name may
/// be a link.
fn climbs_at_most(path: &Path, depth: usize) -> bool {
    let parts = path.components();
    let is_up = |part: &Component<'_>| matches!(part, Component::ParentDir);
    let up = parts.clone().take_while(is_up).count();
    up <= depth && !parts.skip(up).any(|part| is_up(&part))
}

/// A path as archives should have it: below the root, without `..`.
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
                        "it has the path `{}`, which leads out of it",
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

    /// A path to it that follows no link before the last name.
    fn path(&self) -> PathBuf {
        self.folder_path().join(&self.name)
    }

    /// Removes what is there, with all below it; nothing is no error.
    pub fn remove(&self) -> io::Result<()> {
        let path = self.path();
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what its folder holds.
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

    /// Makes a folder, unless one is there. Its owner may always enter and change it.
    pub fn make_folder(&self, mode: u32) -> io::Result<()> {
        let path = self.path();
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
            self.remove()?;
            fs::create_dir(&path)?;
        }
        fs::set_permissions(&path, Permissions::from_mode(mode & 0o777 | 0o700))
    }

    /// Makes an empty file in the place of what is there, without the rights of another user.
    pub fn make_file(&self, mode: u32) -> io::Result<File> {
        self.remove()?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode & 0o777 | 0o600)
            .open(self.path())
    }

    /// Makes a symbolic link in the place of what is there.
    pub fn make_link(&self, target: &Path) -> io::Result<()> {
        self.remove()?;
        symlink(target, self.path())
    }

    /// Makes a second name of the file `original` in the place of what is there.
    pub fn make_hard_link(&self, original: &Entry) -> io::Result<()> {
        // Links to links are links, as in the layer.
        if fs::symlink_metadata(original.path())?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a hard link of the layer leads to a folder",
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
        assert!(refused.to_string().contains("leads out of it"));
    }
}
