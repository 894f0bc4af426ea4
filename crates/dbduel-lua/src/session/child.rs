//! A shell command as a child process: its output, its exit, and its termination when it is no longer waited for.
//!
//! It has its own session, so that no terminal can stop it, and all processes that stay in its group can be ended with
//! it.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid};

use super::group_reaper::{ProcessGroupReaper, Serial};
use super::reaper::reap;

/// Maximum number of bytes of one read: the default capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of bytes of one look, so that a command which prints as fast as it is read does not keep the thread.
const LOOK_BYTES: usize = 16 * READ_BYTES;

/// A running command. Dropping it ends it and all processes in its group. So does the end of this process, for any
/// reason, unless the reaper was ended since the command began.
pub(super) struct ShellCommand {
    shell: Child,
    has_ended: bool,
    serial: Serial,
    group_reaper: Arc<ProcessGroupReaper>,
}

impl ShellCommand {
    /// Starts a command, which ends before its first zero byte, as in C.
    ///
    /// # Errors
    /// When the shell or its watcher cannot be started.
    pub(super) fn start(command: &[u8]) -> io::Result<Self> {
        Self::start_watched(command, ProcessGroupReaper::current()?)
    }

    fn start_watched(command: &[u8], group_reaper: Arc<ProcessGroupReaper>) -> io::Result<Self> {
        let command = command.split(|&byte| byte == 0).next().unwrap_or_default();
        let serial = Serial::draw();
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(OsStr::from_bytes(command));
        shell.stdin(Stdio::null());
        let watched_by = Arc::clone(&group_reaper);
        // SAFETY: between fork and exec only system calls are made, which is allowed there; nothing is allocated.
        unsafe {
            shell.pre_exec(move || {
                // The session and its first group have the number of this process.
                setsid()?;
                watched_by.watch(serial, std::process::id())
            });
        }
        let shell = match shell.stdout(Stdio::piped()).spawn() {
            Ok(shell) => shell,
            Err(error) => {
                // The reaper may have been notified before the shell could not be executed.
                group_reaper.forget(serial);
                return Err(error);
            }
        };
        let started = ShellCommand {
            shell,
            has_ended: false,
            serial,
            group_reaper,
        };
        if let Some(output) = &started.shell.stdout {
            fcntl(output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(started)
    }

    /// Appends the output since the last look, or a part of it when that is much; returns the exit status when the
    /// command has ended, and then there is no more. Background processes are not waited for, and their output from
    /// then on is not read.
    pub(super) fn look(&mut self, printed: &mut Vec<u8>) -> io::Result<Option<ExitStatus>> {
        // Asked before the last of the output is read, so that nothing is missed.
        let status = self.shell.try_wait()?;
        if status.is_some() {
            self.end();
        }
        let Some(output) = &mut self.shell.stdout else {
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

    /// From now on its remaining processes are not ended.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.group_reaper.forget(self.serial);
        }
    }
}

impl Drop for ShellCommand {
    /// Does not wait for the end, because other clients of the thread may be about to be dropped as well.
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Ok(group) = i32::try_from(self.shell.id()).map(Pid::from_raw) {
            let _ = killpg(group, Signal::SIGKILL);
            self.end();
            reap(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use nix::sys::signal::kill;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Gives the process in [`a_process_that_is_killed`] the file to write to.
    const FOLDER: &str = "DBDUEL_TEST_CHILD_FOLDER";

    /// Commands of which a part is a process that the shell does not turn into; `PLACE` is a file that gets the part's
    /// process id.
    const COMPOUND: [&str; 3] = [
        "sleep 300 & echo $! > 'PLACE.new'; mv 'PLACE.new' 'PLACE'; wait; true",
        r#"sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 300' part 'PLACE'; true"#,
        r#"sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 300' part 'PLACE' | cat; true"#,
    ];

    /// Starts the compound commands, and returns them; their parts write their process ids to files in `folder`.
    fn start_compound(folder: &Path) -> Vec<ShellCommand> {
        let start = |(number, command): (usize, &&str)| {
            let place = folder.join(number.to_string());
            let command = command.replace("PLACE", place.to_str().unwrap());
            ShellCommand::start(command.as_bytes()).unwrap()
        };
        COMPOUND.iter().enumerate().map(start).collect()
    }

    /// The process ids of their parts, once all are known.
    fn parts(folder: &Path) -> Vec<i32> {
        let began = Instant::now();
        let read = |number: usize| loop {
            if let Ok(text) = fs::read_to_string(folder.join(number.to_string())) {
                return text.trim().parse().unwrap();
            }
            assert!(began.elapsed() < TIMEOUT, "command {number} does not begin");
            std::thread::sleep(Duration::from_millis(2));
        };
        (0..COMPOUND.len()).map(read).collect()
    }

    /// Waits until these processes have ended; their parent may not have waited for them yet.
    fn wait_until_dead(processes: &[i32]) {
        let is_alive = |process: &i32| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
            state.is_some_and(|state| !state.starts_with(['Z', 'X']))
        };
        let began = Instant::now();
        while let Some(alive) = processes.iter().find(|process| is_alive(process)) {
            assert!(
                began.elapsed() < TIMEOUT,
                "{alive} of {processes:?} is left"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Also when the test fails before.
    struct KilledWhenDropped(Child);

    impl Drop for KilledWhenDropped {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Looks until the command has ended.
    fn run(command: &str) -> (Vec<u8>, ExitStatus) {
        let mut child = ShellCommand::start(command.as_bytes()).unwrap();
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
    #[ignore = "not for itself: the next test runs it and kills it"]
    fn a_process_that_is_killed() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            let _commands = start_compound(Path::new(&folder));
            std::thread::sleep(TIMEOUT);
        }
    }

    #[test]
    fn nothing_is_left_of_the_commands_of_a_killed_process() {
        let folder = tempfile::tempdir().unwrap();
        let (_, module) = module_path!().split_once("::").unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact"])
            .arg(format!("{module}::a_process_that_is_killed"))
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let process = KilledWhenDropped(process);
        let parts = parts(folder.path());
        drop(process);
        wait_until_dead(&parts);
    }

    #[test]
    fn commands_that_are_given_up_end_with_all_that_they_have_started() {
        let folder = tempfile::tempdir().unwrap();
        let commands = start_compound(folder.path());
        let shells: Vec<Pid> = commands
            .iter()
            .map(|command| Pid::from_raw(i32::try_from(command.shell.id()).unwrap()))
            .collect();
        let parts = parts(folder.path());
        drop(commands);
        wait_until_dead(&parts);
        // The shells have been waited for, so they are not even known any more.
        let began = Instant::now();
        while shells.iter().any(|shell| kill(*shell, None).is_ok()) {
            assert!(began.elapsed() < TIMEOUT, "of {shells:?} some are left");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_command_that_cannot_be_executed_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        let group_reaper =
            ProcessGroupReaper::start(&format!("exec cat > '{}'", messages.display())).unwrap();
        // Longer than one argument can be.
        let error = ShellCommand::start_watched(&[b' '; 1 << 20], Arc::new(group_reaper)).err();
        assert_eq!(error.unwrap().kind(), ErrorKind::ArgumentListTooLong);
        let began = Instant::now();
        let (watched, forgotten) = loop {
            let text = fs::read_to_string(&messages).unwrap_or_default();
            let mut lines = text.split_inclusive('\n').map(str::trim_end);
            if let (Some(watched), Some(forgotten)) = (lines.next(), lines.next()) {
                break (watched.to_owned(), forgotten.to_owned());
            }
            assert!(began.elapsed() < TIMEOUT, "only {text:?} was written");
            std::thread::sleep(Duration::from_millis(2));
        };
        let serial = watched.strip_prefix("watch ").unwrap().split(' ').next();
        assert_eq!(forgotten.strip_prefix("forget "), serial);
    }

    #[test]
    fn a_look_at_what_prints_without_end_has_an_end() {
        let mut child = ShellCommand::start(b"exec cat /dev/zero").unwrap();
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
        // It ends when its reader is gone.
        let (_, status) = run("cat /dev/zero & exit 4");
        assert_eq!(status.code(), Some(4));
    }

    #[test]
    fn what_goes_on_in_the_background_is_not_waited_for() {
        let began = Instant::now();
        let (printed, status) = run("echo before; sleep 600 & echo $!");
        assert!(status.success() && began.elapsed() < Duration::from_secs(300));
        let printed = String::from_utf8(printed).unwrap();
        let sleeper: i32 = printed
            .strip_prefix("before\n")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // It is still there: it was not ended.
        kill(Pid::from_raw(sleeper), Signal::SIGKILL).unwrap();
    }
}
