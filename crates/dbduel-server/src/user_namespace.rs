//! Runs a program without root's rights although the lab has them: in its own user namespace.
//!
//! Inside, the only user is an unprivileged one; outside it is still root, so files need no other owner and may be
//! where only root has access, and the kernel still shows root the process's reads and writes.

use std::io;
use std::process::{Command, Stdio};

use std::os::unix::process::CommandExt as _;

use anyhow::{Result, bail};
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, write};

/// Drops root's rights from a command that has not started, if the lab has them.
pub fn drop_root(command: &mut Command) {
    if !geteuid().is_root() {
        return;
    }
    // SAFETY: between fork and exec only system calls are made, all allowed there; nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from)?;
            // The kernel wants it before a map of groups.
            put(c"/proc/self/setgroups", b"deny")?;
            // The account `nobody`, which every system names; servers want their account to have a name.
            put(c"/proc/self/uid_map", b"65534 0 1")?;
            put(c"/proc/self/gid_map", b"65534 0 1")
        });
    }
}

fn put(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    write(&file, text)?;
    Ok(())
}

/// Checks that a program can run without root's rights.
///
/// # Errors
/// The lab runs as root and this system does not permit a user namespace.
pub fn check() -> Result<()> {
    let mut command = Command::new("/proc/self/exe");
    drop_root(&mut command);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.status() {
        Ok(_) => Ok(()),
        Err(error) => bail!(
            "this server refuses to run as root, and dbduel could not create a user namespace for it \
             ({error}); run dbduel as an ordinary user, or allow user namespaces (`sysctl user.max_user_namespaces`, \
             the container's seccomp profile)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ordinary user stays who he is; where root may make no user namespace, that is told.
    #[test]
    fn a_program_is_not_root_in_its_namespace_and_reads_what_only_root_may() {
        if let Err(error) = check() {
            let said = error.to_string();
            assert!(said.contains("sysctl user.max_user_namespaces"), "{said}");
            return;
        }
        let user = if geteuid().is_root() {
            65534
        } else {
            geteuid().as_raw()
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("private");
        std::fs::write(&file, "text").unwrap();
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("id -u; cat {}", file.display()));
        drop_root(&mut command);
        let said = command.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            format!("{user}\ntext")
        );
    }
}
