//! Waits for killed processes, so that the kernel can release them; no other code does.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How long after the last kill processes that the kernel delays are polled; again after the next kill.
const LONGEST: Duration = Duration::from_secs(60);

/// Pauses between two polls: the first, and the longest that they grow to.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(100)];

struct Killed {
    processes: Vec<Pid>,
    /// When the polling thread ends; `None` without such a thread.
    until: Option<Instant>,
}

static KILLED: Mutex<Killed> = Mutex::new(Killed {
    processes: Vec::new(),
    until: None,
});

fn killed() -> MutexGuard<'static, Killed> {
    KILLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a thread wait for a killed child process; one thread for all of them.
pub(super) fn reap(process: Pid) {
    let mut killed = killed();
    killed.processes.push(process);
    let has_thread = killed.until.is_some();
    killed.until = Some(Instant::now() + LONGEST);
    if has_thread {
        return;
    }
    let thread = std::thread::Builder::new().name("reaper".to_owned());
    if thread.spawn(reap_all).is_err() {
        // They are dead all the same, and looked at after the next kill.
        killed.until = None;
    }
}

fn reap_all() {
    let [mut pause, longest_pause] = PAUSES;
    loop {
        std::thread::sleep(pause);
        pause = (pause * 2).min(longest_pause);
        let mut killed = killed();
        killed.processes.retain(|&process| {
            waitpid(process, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
        });
        let is_late = killed.until.is_none_or(|until| Instant::now() >= until);
        if is_late || killed.processes.is_empty() {
            killed.until = None;
            return;
        }
    }
}
