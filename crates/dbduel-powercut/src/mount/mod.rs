//! Mounting of a volume, by FUSE.

#[cfg(feature = "mount")]
mod filesystem;
#[cfg(feature = "mount")]
mod mounted;

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, umount2};

#[cfg(feature = "mount")]
pub use mounted::Mount;

/// The device of the kernel's FUSE.
pub const DEVICE: &str = "/dev/fuse";
/// The source under which the kernel lists these mounts.
const FILE_SYSTEM: &str = "dbduel-powercut";

/// Why this machine cannot mount a volume.
#[derive(Debug, thiserror::Error)]
#[error(
    "power cuts need a FUSE file system, but {DEVICE} cannot be opened here ({0}); load the kernel module `fuse`, \
         and in a container pass the device in (`--device {DEVICE} --cap-add SYS_ADMIN`)"
)]
pub struct NoFuse(io::Error);

/// Refuses a machine without FUSE.
///
/// # Errors
/// [`NoFuse`] with the system's error.
pub fn check() -> Result<(), NoFuse> {
    let device = fs::File::options().read(true).write(true).open(DEVICE);
    device.map(drop).map_err(NoFuse)
}

/// Removes dbduel's mounts from a folder, including those of dead processes; returns whether there was one.
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
            "could not unmount `{0}`; run `fusermount3 -u -z {0}`",
            folder.display()
        ))),
    }
}

/// Number of dbduel's mounts at a folder.
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
