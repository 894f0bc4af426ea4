//! Identity of a process, whether it still lives, and how to signal it.
//!
//! A pid identifies a process only until the kernel reuses it. Together with its start time it is unique while the
//! machine is up.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dbduel_machine::clock;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process, distinct from every other one with its pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: i32,
    /// Start time: clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// The present process with `pid`; `None` when there is none, or only a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (state, start_ticks) = state_and_start(&stat)?;
        (state != 'Z' && state != 'X').then_some(ProcessIdentity { pid, start_ticks })
    }

    /// This process.
    pub fn current() -> Option<Self> {
        ProcessIdentity::of(i32::try_from(std::process::id()).ok()?)
    }

    /// True while exactly this process runs, is stopped or sleeps.
    pub fn is_alive(&self) -> bool {
        ProcessIdentity::of(self.pid) == Some(*self)
    }

    /// Its parent's pid; `None` when it is gone.
    pub fn parent(&self) -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let after_name = &stat[stat.rfind(')')? + 1..];
        after_name.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Its program; `None` when it is gone or not visible.
    pub fn program(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.pid)).ok()
    }

    /// Its working directory; `None` when it is gone or not visible.
    pub fn folder(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// Its command line arguments; empty when it is gone.
    pub fn arguments(&self) -> Vec<String> {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        bytes
            .split(|byte| *byte == 0)
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    }
}

/// The state letter and field 22 of a line of `/proc/PID/stat`. The name in field 2 may hold spaces and brackets.
fn state_and_start(stat: &str) -> Option<(char, u64)> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3, so field 22 is the nineteenth after it.
    let start = fields.nth(18)?.parse().ok()?;
    Some((state, start))
}

/// All visible processes of this machine.
pub fn all() -> Vec<ProcessIdentity> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| ProcessIdentity::of(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Sends a signal to every process of a group. A group that is gone already is no error.
///
/// # Errors
/// The group belongs to another user.
pub fn signal_group(group: i32, signal: Signal) -> nix::Result<()> {
    match killpg(Pid::from_raw(group), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A process and its descendants, itself first, as far as first threads forked them: those of a server with a process
/// per session. Processes that begin or end meanwhile may be missing.
pub fn tree(root: i32) -> Vec<ProcessIdentity> {
    let mut found: Vec<ProcessIdentity> = ProcessIdentity::of(root).into_iter().collect();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let pid = u32::try_from(process.pid).unwrap_or_default();
        next += 1;
        let below = forked_by(pid).into_iter();
        found.extend(below.filter_map(|child| ProcessIdentity::of(i32::try_from(child).ok()?)));
    }
    found
}

/// Processes that the first thread of a process forked; none when it is gone or the kernel does not say.
pub fn forked_by(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let numbers = children.split_ascii_whitespace();
    numbers.filter_map(|child| child.parse().ok()).collect()
}

/// Sends a signal to a process, to its process group if it leads one, and to all its descendants in any group.
/// Processes that are gone are no error.
///
/// # Errors
/// One of them belongs to another user.
pub fn signal_tree(root: i32, signal: Signal) -> nix::Result<()> {
    let processes = tree(root);
    signal_group(root, signal)?;
    processes
        .into_iter()
        .try_for_each(|process| signal_one(process, signal))
}

/// Sends a signal to one process. A process that is gone already is no error.
///
/// # Errors
/// The process belongs to another user.
pub fn signal_one(process: ProcessIdentity, signal: Signal) -> nix::Result<()> {
    if !process.is_alive() {
        return Ok(());
    }
    match kill(Pid::from_raw(process.pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Calls until there is an answer or the time is up.
pub fn poll_until<T>(
    deadline: Instant,
    pause: Duration,
    mut ask: impl FnMut() -> Option<T>,
) -> Option<T> {
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if clock::now() + pause > deadline {
            return None;
        }
        clock::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat =
            "42 (my (odd) name) S 1 42 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 14 0 987654 1 2 3";
        assert_eq!(state_and_start(stat), Some(('S', 987_654)));
        assert_eq!(state_and_start("42 (short) R 1"), None);
        assert_eq!(state_and_start(""), None);
    }

    #[test]
    fn we_are_alive_and_a_later_process_with_our_pid_is_not_us() {
        let me = ProcessIdentity::current().unwrap();
        assert!(me.is_alive());
        assert!(
            !ProcessIdentity {
                start_ticks: me.start_ticks + 1,
                ..me
            }
            .is_alive()
        );
        assert!(!me.arguments().is_empty());
        assert_eq!(me.folder(), std::env::current_dir().ok());
        assert_eq!(me.parent(), Some(nix::unistd::getppid().as_raw()));
        assert!(all().contains(&me));
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let gone = poll_until(
            clock::now() + Duration::from_secs(60),
            Duration::from_millis(5),
            || ProcessIdentity::of(pid).is_none().then_some(()),
        );
        assert!(gone.is_some(), "it is a zombie until it is waited for");
        child.wait().unwrap();
    }
}
