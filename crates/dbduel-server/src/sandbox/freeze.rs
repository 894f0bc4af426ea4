//! Stops every thread of every process of a server.
//!
//! A server with a process per session forks these from its first one, each with its own session and group, so no
//! signal to one group reaches them all; and it may fork while it is being stopped. A thread that starts a program by
//! `vfork` cannot be stopped before that program has begun, so its child must not be stopped earlier.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::sys::signal::Signal;

use super::super::process::{ProcessIdentity, forked_by, signal_one, tree};

/// Stops the processes of one server, including new ones.
pub struct Stopper {
    /// The first process, the parent of the others.
    root: i32,
    asked: BTreeSet<i32>,
    /// True when the last round found all of them stopped: then none of them forks any more.
    were_stopped: bool,
}

impl Stopper {
    /// Stops the processes below `root`, which was signalled already.
    pub fn new(root: i32) -> Self {
        Stopper {
            root,
            asked: BTreeSet::from([root]),
            were_stopped: false,
        }
    }

    /// Signals new processes to stop. Returns true when all were stopped in the previous round, too, and none is new.
    ///
    /// # Errors
    /// A process belongs to another user.
    pub fn round(&mut self) -> nix::Result<bool> {
        let mut is_new = false;
        let mut are_stopped = true;
        for process in tree(self.root) {
            if self.asked.insert(process.pid) {
                is_new = true;
                signal_one(process, Signal::SIGSTOP)?;
            }
            are_stopped &= all_threads_stopped(process.pid);
            if waits_uninterruptibly(process.pid) {
                self.let_children_begin(process.pid)?;
            }
        }
        let are_stopped = are_stopped && !is_new;
        let is_done = are_stopped && self.were_stopped;
        self.were_stopped = are_stopped;
        Ok(is_done)
    }

    /// Wakes the stopped children of a process that may wait for them; the next round stops them again.
    fn let_children_begin(&mut self, parent: i32) -> nix::Result<()> {
        let children = forked_by(parent.unsigned_abs()).into_iter();
        for child in children.filter_map(|child| ProcessIdentity::of(child.try_into().ok()?)) {
            if all_threads_stopped(child.pid) && self.asked.remove(&child.pid) {
                signal_one(child, Signal::SIGCONT)?;
            }
        }
        Ok(())
    }
}

/// True when every thread of a process is stopped.
fn all_threads_stopped(pid: i32) -> bool {
    // A thread that ends while we look makes this look fail, and the next one succeed.
    thread_states(pid).is_ok_and(|states| states.into_iter().all(|state| state == 'T'))
}

/// True when a thread of a process is in an uninterruptible wait: for a disk, or for a child of `vfork`.
fn waits_uninterruptibly(pid: i32) -> bool {
    thread_states(pid).is_ok_and(|states| states.contains(&'D'))
}

/// The state letter of each thread of a process (proc(5), `/proc/PID/stat`, field 3).
fn thread_states(pid: i32) -> io::Result<Vec<char>> {
    let state = |thread: io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(thread?.path().join("stat"))?;
        let after_name = stat.rfind(") ").map_or("", |at| &stat[at + 2..]);
        after_name
            .chars()
            .next()
            .ok_or(io::ErrorKind::InvalidData.into())
    };
    fs::read_dir(format!("/proc/{pid}/task"))?
        .map(state)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::process::{poll_until, signal_group, signal_tree};
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    const POLL: Duration = Duration::from_millis(10);

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_stopped_process_is_seen_as_stopped() {
        let mut child = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(!all_threads_stopped(pid));
        signal_group(pid, Signal::SIGSTOP).unwrap();
        assert!(poll_until(soon(), POLL, || all_threads_stopped(pid).then_some(())).is_some());
        signal_group(pid, Signal::SIGCONT).unwrap();
        assert!(poll_until(soon(), POLL, || (!all_threads_stopped(pid)).then_some(())).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            !all_threads_stopped(pid),
            "a process that is gone is not stopped"
        );
    }

    #[test]
    fn processes_with_sessions_of_their_own_that_begin_all_the_time_are_all_stopped_and_woken() {
        // Every round starts a process in a session of its own, which works until it is ended; at most 100 of them.
        let script = "n=0; while [ $n -lt 100 ]; do n=$((n+1)); \
                      setsid sh -c 'while :; do i=$((i+1)); done' & sleep 0.02; done; wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let grown = || (tree(pid).len() > 3).then_some(());
        assert!(poll_until(soon(), POLL, grown).is_some());
        let frozen = freeze(pid);
        let ticks = || -> Vec<String> {
            let stat = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            frozen.iter().map(|process| stat(process.pid)).collect()
        };
        let before = ticks();
        std::thread::sleep(Duration::from_millis(200));
        let (after, then) = (ticks(), tree(pid));
        signal_tree(pid, Signal::SIGCONT).unwrap();
        let awake = frozen.iter().all(|process| {
            let woken = || (!all_threads_stopped(process.pid)).then_some(());
            poll_until(soon(), POLL, woken).is_some()
        });
        signal_tree(pid, Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(frozen.len() > 3, "{frozen:?}");
        assert_eq!(frozen, then, "a process began or ended");
        assert_eq!(before, after, "a frozen process did something");
        assert!(awake, "not all were woken");
    }

    #[test]
    fn a_process_that_waits_for_a_child_to_begin_its_program_is_stopped_too() {
        // A shell starts these by vfork, hundreds a second, so that some stop falls between a fork and its program.
        let mut child = Command::new("sh")
            .args(["-c", "while :; do /bin/true; done"])
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let all_stopped = (0..100).all(|_| {
            let stopped = !freeze(pid).is_empty();
            signal_tree(pid, Signal::SIGCONT).unwrap();
            stopped
        });
        signal_tree(pid, Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(all_stopped);
    }

    /// Stops a tree of processes; empty when some of them do not stop.
    fn freeze(root: i32) -> Vec<ProcessIdentity> {
        signal_tree(root, Signal::SIGSTOP).unwrap();
        let mut stopper = Stopper::new(root);
        let stopped = poll_until(soon(), Duration::from_millis(1), || {
            stopper.round().unwrap().then_some(())
        });
        stopped.map(|()| tree(root)).unwrap_or_default()
    }
}
