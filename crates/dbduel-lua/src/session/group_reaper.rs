//! Ends the processes started by shell commands when this process is gone, however it ended: no code of its own runs
//! after `kill -9`.
//!
//! A separate process, one for all commands: a shell that reads which process groups are running. The end of its input
//! means the end of this process, and then it kills the groups that have not ended. A process that moves to another
//! group escapes it. When the reaper is ended, another one is started for the next command; commands running at that
//! time are not watched.

use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};
use nix::unistd::{Pid, setsid};

use super::reaper::reap;

/// Its program, with shell built-ins only. It keeps pairs `serial:group`.
const SCRIPT: &str = r#"
running=
while read -r what serial group; do
    others=
    for pair in $running; do
        [ "${pair%:*}" = "$serial" ] || others="$others $pair"
    done
    running=$others
    [ "$what" = forget ] || running="$running $serial:$group"
done
for pair in $running; do
    kill -s KILL -- "-${pair#*:}"
done
"#;

/// Longest wait for it to take a message. It only reads, so only a stopped one needs that long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Room for a word, a serial number and the number of a group.
const LINE_BYTES: usize = 48;

static CURRENT: Mutex<Option<Arc<ProcessGroupReaper>>> = Mutex::new(None);

/// Identifies a command: process ids are reused, serials are not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serial(u64);

impl Serial {
    /// The next serial of this process.
    pub(super) fn draw() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Serial(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The reaper from the view of this process.
pub(super) struct ProcessGroupReaper {
    socket: UnixStream,
    process: Mutex<Child>,
    /// True when it did not take a message: its list is then outdated, and it was ended.
    is_given_up: AtomicBool,
}

impl ProcessGroupReaper {
    /// The reaper of this process; a new one when the last has ended.
    ///
    /// # Errors
    /// When the system gives no process or no socket.
    pub(super) fn current() -> io::Result<Arc<Self>> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group_reaper) = current
            .as_ref()
            .filter(|group_reaper| group_reaper.is_alive())
        {
            return Ok(Arc::clone(group_reaper));
        }
        let group_reaper = Arc::new(Self::start(SCRIPT)?);
        *current = Some(Arc::clone(&group_reaper));
        Ok(group_reaper)
    }

    /// Starts a shell that reads the messages.
    pub(super) fn start(script: &str) -> io::Result<Self> {
        let (socket, its_end) = UnixStream::pair()?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", script, "dbduel-reaper"])
            .current_dir("/")
            .stdin(OwnedFd::from(its_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What ends this process, such as an interrupt of a terminal, must not reach it.
        // SAFETY: between fork and exec only a system call is made, which is allowed there; nothing is allocated.
        unsafe {
            shell.pre_exec(|| Ok(setsid().map(drop)?));
        }
        Ok(ProcessGroupReaper {
            socket,
            process: Mutex::new(shell.spawn()?),
            is_given_up: AtomicBool::new(false),
        })
    }

    fn is_alive(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was given up is waited for elsewhere.
        !self.is_given_up.load(Ordering::Relaxed) && matches!(process.try_wait(), Ok(None))
    }

    /// Registers a group to be ended with this process. Called by the group's first process before it executes
    /// anything, so that there is no moment at which it is unknown. Allocates nothing and locks nothing, as is
    /// required there.
    ///
    /// # Errors
    /// When the message is not taken.
    pub(super) fn watch(&self, command: Serial, group: u32) -> io::Result<()> {
        Ok(self.send(format_args!("watch {} {group}\n", command.0))?)
    }

    /// Unregisters the command's group; its id may be reused soon. A reaper that misses this would end the wrong
    /// group, so it is then ended itself.
    pub(super) fn forget(&self, command: Serial) {
        if self.is_given_up.load(Ordering::Relaxed) {
            return;
        }
        match self.send(format_args!("forget {}\n", command.0)) {
            // One that is gone has nothing to forget.
            Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => {}
            Err(_) => self.give_up(),
        }
    }

    fn give_up(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_given_up.swap(true, Ordering::Relaxed) || !matches!(process.try_wait(), Ok(None))
        {
            return;
        }
        let _ = process.kill();
        if let Ok(process) = i32::try_from(process.id()) {
            reap(Pid::from_raw(process));
        }
    }

    fn send(&self, message: std::fmt::Arguments<'_>) -> Result<(), Errno> {
        let mut line = [0; LINE_BYTES];
        let mut room = &mut line[..];
        room.write_fmt(message).map_err(|_| Errno::EMSGSIZE)?;
        let left = room.len();
        let message = &line[..LINE_BYTES - left];
        loop {
            // A line of this size is sent as a whole. Without a signal, which would end this process instead.
            match send(self.socket.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL) {
                Err(Errno::EINTR) => {}
                sent => return sent.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use nix::sys::signal::{Signal, kill};

    use super::*;

    #[test]
    fn one_that_takes_no_messages_is_ended() {
        let group_reaper = ProcessGroupReaper::start(SCRIPT).unwrap();
        assert!(group_reaper.is_alive());
        let process = group_reaper.process.lock().unwrap().id();
        let process = Pid::from_raw(i32::try_from(process).unwrap());
        kill(process, Signal::SIGSTOP).unwrap();
        // Until what lies between is full.
        for _ in 0..100_000 {
            if !group_reaper.is_alive() {
                break;
            }
            group_reaper.forget(Serial::draw());
        }
        assert!(!group_reaper.is_alive());
        let began = Instant::now();
        while kill(process, None).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60), "it is left");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
