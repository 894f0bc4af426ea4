//! A shell command as a child process: what it prints, how it ends, and its end when nobody waits for it any more.
//!
//! It stays in the process group of dbduel, so that a terminal's signals reach it. Knows no script.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest wait for a killed process to be gone; one that the kernel holds up is left to it.
const ENDING: Duration = Duration::from_secs(2);

/// Pause between two looks at a killed process.
const ENDING_PAUSE: Duration = Duration::from_millis(1);

/// Bytes that one read can bring: as much as a pipe holds by default.
const READ_BYTES: usize = 64 << 10;

/// Bytes that one look takes at most, so that a command which prints as fast as it is read does not keep the thread.
const LOOK_BYTES: usize = 16 * READ_BYTES;

/// A running command. Dropping it ends it, with all that it has started and still waits for.
pub(super) struct ShellCommand(Child);

impl ShellCommand {
    /// The kernel ends it with the thread that starts it, because nobody drops what a load thread holds when the process
    /// exits. That reaches the shell and what it turns into, but no processes that it has started and waits for.
    pub(super) fn start(command: &str) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        // SAFETY: between fork and exec only a system call is made, which is allowed there; nothing is allocated.
        unsafe {
            shell.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
        }
        let started = ShellCommand(shell.stdout(Stdio::piped()).spawn()?);
        if let Some(output) = &started.0.stdout {
            fcntl(output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(started)
    }

    /// Appends what was printed since the last look, or a part of it when that is much; returns how the command ended when
    /// it has, and then there is no more. What it leaves running in the background is not waited for, and what that prints
    /// from then on is not read.
    pub(super) fn look(&mut self, printed: &mut Vec<u8>) -> io::Result<Option<ExitStatus>> {
        // Asked before the last of the output is read, so that nothing is missed.
        let status = self.0.try_wait()?;
        let Some(output) = &mut self.0.stdout else {
            return Ok(status);
        };
        let mut left = match status {
            None => LOOK_BYTES,
            // All that a command had printed when it ended is in the pipe.
            Some(_) => {
                usize::try_from(fcntl(&*output, FcntlArg::F_GETPIPE_SZ)?).unwrap_or_default()
            }
        };
        let mut bytes = [0; READ_BYTES];
        while left > 0 {
            let room = left.min(READ_BYTES);
            match output.read(&mut bytes[..room]) {
                Ok(0) => break,
                Ok(length) => {
                    printed.extend_from_slice(&bytes[..length]);
                    left -= length;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(status)
    }
}

impl Drop for ShellCommand {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        if let Ok(process) = i32::try_from(self.0.id()) {
            end(Pid::from_raw(process));
        }
        let deadline = Instant::now() + ENDING;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(ENDING_PAUSE);
        }
    }
}

/// Ends a process that its parent has not waited for, and its children before it. Stopped first, it starts no more of
/// them and takes none of their numbers out of use.
fn end(process: Pid) {
    let _ = kill(process, Signal::SIGSTOP);
    for child in children(process) {
        end(child);
    }
    let _ = kill(process, Signal::SIGKILL);
}

/// Those whose parent it is. Without `/proc` nobody is found, and the children are left to themselves.
fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent_of = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The second field is a name in parentheses, which may hold spaces; two fields on is the parent.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    numbers
        .filter(|process| parent_of(process) == Some(parent.as_raw()))
        .map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// Looks until the command has ended.
    fn run(command: &str) -> (Vec<u8>, ExitStatus) {
        let mut child = ShellCommand::start(command).unwrap();
        let (began, mut printed) = (Instant::now(), Vec::new());
        loop {
            if let Some(status) = child.look(&mut printed).unwrap() {
                return (printed, status);
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn all_that_is_printed_and_how_it_ended_is_told() {
        let (printed, status) = run("head -c 300000 /dev/zero; exit 3");
        assert_eq!((printed.len(), status.code()), (300_000, Some(3)));
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let start = || ShellCommand::start("exec sleep 60").unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        let (began, mut printed) = (Instant::now(), Vec::new());
        let status = loop {
            if let Some(status) = child.look(&mut printed).unwrap() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(50), "it goes on");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    }

    #[test]
    fn a_look_at_what_prints_without_end_has_an_end() {
        let mut child = ShellCommand::start("exec cat /dev/zero").unwrap();
        let (began, mut printed) = (Instant::now(), Vec::new());
        while printed.len() < 2 * LOOK_BYTES {
            let before = printed.len();
            assert_eq!(child.look(&mut printed).unwrap(), None);
            assert!(printed.len() - before <= LOOK_BYTES);
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }

    #[test]
    fn what_prints_on_in_the_background_is_left_alone() {
        // It ends when nobody reads any more.
        let (_, status) = run("cat /dev/zero & exit 4");
        assert_eq!(status.code(), Some(4));
    }

    #[test]
    fn what_goes_on_in_the_background_is_not_waited_for() {
        let began = Instant::now();
        let (printed, status) = run("echo before; sleep 30 & echo $!");
        assert!(status.success() && began.elapsed() < Duration::from_secs(25));
        let printed = String::from_utf8(printed).unwrap();
        let sleeper: i32 = printed
            .strip_prefix("before\n")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // It is still there: nobody has ended it.
        kill(Pid::from_raw(sleeper), Signal::SIGKILL).unwrap();
    }
}
