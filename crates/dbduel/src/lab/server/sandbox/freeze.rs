//! Stops every thread of every process of a server.
//!
//! A server that serves each session by a process forks these from its first one, each with a session and a group of its
//! own, so that no signal to one group reaches them all; and it may fork while it is being stopped.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use nix::sys::signal::Signal;

use super::super::process::{signal_one, tree};

/// Stops the processes of one server, those that begin meanwhile too.
pub struct Stopper {
    /// The first process, which forks the others.
    root: i32,
    asked: BTreeSet<i32>,
    /// Whether the last round found all of them stopped: then none of them forks any more.
    were_stopped: bool,
}

impl Stopper {
    /// Stops the processes below `root`, which was asked to stop already.
    pub fn new(root: i32) -> Self {
        Stopper {
            root,
            asked: BTreeSet::from([root]),
            were_stopped: false,
        }
    }

    /// Asks processes that are new to stop. True when all were stopped in the round before, too, and nobody is new.
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
        }
        let are_stopped = are_stopped && !is_new;
        let is_done = are_stopped && self.were_stopped;
        self.were_stopped = are_stopped;
        Ok(is_done)
    }
}

/// Whether each thread of a process is stopped.
fn all_threads_stopped(pid: i32) -> bool {
    let look = || -> io::Result<bool> {
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            let state = stat
                .rfind(") ")
                .and_then(|at| stat[at + 2..].chars().next());
            if state != Some('T') {
                return Ok(false);
            }
        }
        Ok(true)
    };
    // A thread that ends while we look makes this look fail, and the next one succeed.
    look().unwrap_or(false)
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
        Instant::now() + Duration::from_secs(10)
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
        // Every round starts a process in a session of its own, which works until it is ended.
        let script = "while :; do setsid sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' & sleep 0.02; done";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let grown = || (tree(pid).len() > 3).then_some(());
        assert!(poll_until(soon(), POLL, grown).is_some());
        signal_group(pid, Signal::SIGSTOP).unwrap();
        let mut stopper = Stopper::new(pid);
        let stopped = poll_until(soon(), Duration::from_millis(1), || {
            stopper.round().unwrap().then_some(())
        });
        let frozen = tree(pid);
        let ticks = || -> Vec<String> {
            let stat = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            frozen.iter().map(|process| stat(process.pid)).collect()
        };
        let before = ticks();
        std::thread::sleep(Duration::from_millis(200));
        let (after, same) = (ticks(), tree(pid) == frozen);
        signal_tree(pid, Signal::SIGCONT).unwrap();
        let awake = frozen.iter().all(|process| {
            let woken = || (!all_threads_stopped(process.pid)).then_some(());
            poll_until(soon(), POLL, woken).is_some()
        });
        signal_tree(pid, Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(stopped.is_some() && frozen.len() > 3 && same);
        assert_eq!(before, after, "a frozen process did something");
        assert!(awake, "not all were woken");
    }
}
