//! Ends what shell commands have started when this process is gone, however it went: nobody runs after `kill -9`.
//!
//! A process of its own, one for all commands: a shell that reads which groups of processes are running. The end of what it
//! reads is the end of this process, and then it kills the groups that have not ended. Whatever moves to another group
//! escapes it.

use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, send};
use nix::unistd::setsid;

/// What it does, with nothing but what a shell has built in.
const DUTY: &str = r#"
running=
while read -r what group; do
    others=
    for other in $running; do
        [ "$other" = "$group" ] || others="$others $other"
    done
    running=$others
    [ "$what" = forget ] || running="$running $group"
done
for group in $running; do
    kill -s KILL -- "-$group"
done
"#;

/// Longest wait for it to take a word. It does nothing but read, so only one that somebody has stopped needs so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Room for a word and a number.
const LINE_BYTES: usize = 32;

static ON_DUTY: Mutex<Option<Arc<Warden>>> = Mutex::new(None);

/// The process, as this one sees it.
pub(super) struct Warden {
    words: UnixStream,
    process: Mutex<Child>,
}

impl Warden {
    /// The one of this process; another one when somebody has ended it.
    ///
    /// # Errors
    /// When the system gives no process or no socket.
    pub(super) fn on_duty() -> io::Result<Arc<Self>> {
        let mut on_duty = ON_DUTY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(warden) = on_duty.as_ref().filter(|warden| warden.is_alive()) {
            return Ok(Arc::clone(warden));
        }
        let warden = Arc::new(Self::start()?);
        *on_duty = Some(Arc::clone(&warden));
        Ok(warden)
    }

    fn start() -> io::Result<Self> {
        let (words, its_end) = UnixStream::pair()?;
        words.set_write_timeout(Some(PATIENCE))?;
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", DUTY, "dbduel-warden"])
            .current_dir("/")
            .stdin(OwnedFd::from(its_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What ends this process, such as an interrupt of a terminal, must not reach it.
        // SAFETY: between fork and exec only a system call is made, which is allowed there; nothing is allocated.
        unsafe {
            shell.pre_exec(|| Ok(setsid().map(drop)?));
        }
        let process = Mutex::new(shell.spawn()?);
        Ok(Warden { words, process })
    }

    fn is_alive(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(process.try_wait(), Ok(None))
    }

    /// The group is to be ended with this process. Said by its first process before it turns into anything, so that there
    /// is no moment at which nobody knows of it. Allocates nothing, as is required there.
    ///
    /// # Errors
    /// When the word is not taken.
    pub(super) fn watch(&self, group: u32) -> io::Result<()> {
        self.say("watch", group)
    }

    /// The group is nobody's business any more; its number may be that of another one soon.
    pub(super) fn forget(&self, group: u32) {
        // One that is gone has nothing to forget.
        let _ = self.say("forget", group);
    }

    fn say(&self, word: &str, group: u32) -> io::Result<()> {
        let mut line = [0; LINE_BYTES];
        let mut room = &mut line[..];
        writeln!(room, "{word} {group}")?;
        let left = room.len();
        let words = &line[..LINE_BYTES - left];
        // A line of this size is sent as a whole. Without a signal, which would end this process instead.
        send(self.words.as_raw_fd(), words, MsgFlags::MSG_NOSIGNAL)?;
        Ok(())
    }
}
