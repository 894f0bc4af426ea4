//! A file system of a few kilobytes that can really be full: a tmpfs in a mount namespace of its own.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::namespace::Namespace;

/// The file that takes the room.
const FILLER: &str = "filler";

/// A mounted tmpfs. The kernel removes it with the process that holds its namespace, which ends with this.
pub struct SmallDisk {
    namespace: Namespace,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts one of `kib` KiB.
    ///
    /// # Errors
    /// When this user may not mount anything, with what was said about it.
    pub fn mount(kib: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("mount -t tmpfs -o size={kib}k dbduel-test \"$0\"");
        match Namespace::prepare('m', &script, folder.path()) {
            Ok(namespace) => Ok(Self { namespace, folder }),
            Err(why) => Err(format!("no tmpfs can be mounted here: {why}")),
        }
    }

    /// Its root, as processes outside of the namespace see it.
    pub fn path(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.namespace.holder()));
        root.join(self.folder.path().strip_prefix("/").unwrap())
    }

    /// A command that runs `program` inside of the namespace, where the root is [`SmallDisk::inside`].
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// Its root, as processes inside of the namespace see it.
    pub fn inside(&self) -> &Path {
        self.folder.path()
    }

    /// Takes all room that is left.
    pub fn fill(&self) {
        let mut filler = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path().join(FILLER))
            .unwrap();
        for bytes in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![0; bytes]).is_ok() {}
        }
    }

    /// Gives the room back.
    pub fn empty(&self) {
        std::fs::remove_file(self.path().join(FILLER)).unwrap();
    }
}
