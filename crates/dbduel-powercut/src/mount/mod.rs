//! A volume in the tree of files, by FUSE.

mod filesystem;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption};
use nix::mount::{MntFlags, umount2};

use crate::volume::Volume;
use filesystem::Server;

/// The device of the kernel's FUSE.
pub const DEVICE: &str = "/dev/fuse";
/// The source that the kernel lists our mounts with.
const FILE_SYSTEM: &str = "dbduel-powercut";

/// A mounted volume; dropped means unmounted.
#[derive(Debug)]
pub struct Mount {
    folder: PathBuf,
    session: Option<BackgroundSession>,
}

/// Why this machine cannot mount a volume.
#[derive(Debug, thiserror::Error)]
#[error(
    "a power cut needs a file system of its own, and {DEVICE} cannot be opened here ({0}); load the kernel module `fuse`, \
         and in a container pass the device in (`--device {DEVICE} --cap-add SYS_ADMIN`)"
)]
pub struct NoFuse(io::Error);

/// Refuses a machine without FUSE.
///
/// # Errors
/// [`NoFuse`] with what the system said.
pub fn check() -> Result<(), NoFuse> {
    let device = fs::File::options().read(true).write(true).open(DEVICE);
    device.map(drop).map_err(NoFuse)
}

impl Mount {
    /// Mounts a volume at a folder that exists.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(volume: Arc<Volume>, folder: &Path) -> io::Result<Self> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(FILE_SYSTEM.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
        ];
        let session = fuser::spawn_mount(Server::new(volume), folder, &config)?;
        Ok(Mount {
            folder: folder.to_owned(),
            session: Some(session),
        })
    }

    /// Unmounts. Processes that still have files open there get errors from now on.
    ///
    /// # Errors
    /// When the folder is still a mount of ours afterwards.
    pub fn unmount(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let detached = detach(&self.folder);
        // Ends the thread that serves the volume, which waits for the kernel's connection to end.
        drop(session);
        detached.map(drop)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The next start detaches what could not be detached.
        let _ = self.end();
    }
}

/// Takes mounts of ours away from a folder, those of dead processes too; returns whether there was one.
///
/// # Errors
/// When one is still there afterwards.
pub fn detach(folder: &Path) -> io::Result<bool> {
    let before = mounts_at(folder)?;
    for _ in 0..before {
        if umount2(folder, MntFlags::MNT_DETACH).is_err() {
            // Without the rights of root only FUSE's own program may.
            let _ = Command::new("fusermount3")
                .args(["-u", "-z", "-q", "--"])
                .arg(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
    match mounts_at(folder)? {
        0 => Ok(before > 0),
        _ => Err(io::Error::other(format!(
            "could not unmount `{0}`; `fusermount3 -u -z {0}` does",
            folder.display()
        ))),
    }
}

/// Mounts of ours at a folder.
fn mounts_at(folder: &Path) -> io::Result<usize> {
    // Not canonicalised: that would ask a file system whose process may be dead.
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let is_ours = |line: &&str| {
        let mut fields = line.split(' ');
        let place = fields.nth(4).map(unescaped);
        let kind = line.split_once(" - ").map(|(_, kind)| kind);
        let mut kind = kind.unwrap_or_default().split(' ');
        place.as_deref() == folder.to_str()
            && kind.next().is_some_and(|kind| kind.starts_with("fuse"))
            && kind.next() == Some(FILE_SYSTEM)
    };
    Ok(mounts.lines().filter(is_ours).count())
}

/// A path of `mountinfo`, where blanks and backslashes are octal.
fn unescaped(field: &str) -> String {
    let field = field.replace("\\040", " ").replace("\\011", "\t");
    field.replace("\\012", "\n").replace("\\134", "\\")
}
