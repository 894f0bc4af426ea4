//! A running server in a sandbox: observed, frozen, thawed, stopped.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dbduel_driver::Credentials;
use dbduel_driver::address::Address;
use dbduel_machine::clock;
use dbduel_record::files::FileSystem;
use nix::sys::signal::Signal;

use super::super::orphans;
use super::super::process::{ProcessIdentity, poll_until, signal_one, signal_tree};
use super::account::Account;
use super::freeze::Stopper;
use super::start::{StartError, identify, tail};
use super::{Owner, Sandbox};

const POLL: Duration = Duration::from_millis(10);
/// Timeout of a freeze: a stopped process may first have to finish a disk read or write.
const FREEZE_DEADLINE: Duration = Duration::from_secs(10);
/// Timeout after each further stop signal; the caller sets that of the first.
const FURTHER_REQUEST: Duration = Duration::from_secs(10);
const KILL_DEADLINE: Duration = Duration::from_secs(30);
/// Lines of the log that a message about its end quotes.
const LAST_WORDS: usize = 3;

/// A server that accepted a login. Dropping it without [`RunningServer::stop`] kills it.
pub struct RunningServer {
    child: Child,
    identity: ProcessIdentity,
    files: Arc<dyn FileSystem>,
    folder: PathBuf,
    socket: PathBuf,
    listen: Option<SocketAddr>,
    log: PathBuf,
    log_start: u64,
    quotes_log: bool,
    account: Account,
    ready_after: Duration,
    /// Signals that ask it to exit, the gentlest first.
    stop_signals: &'static [Signal],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// True when it had to be killed: it did not exit before the deadline.
    pub killed: bool,
    /// How it ended.
    pub status: ExitStatus,
    /// Time from the request to its end.
    pub took: Duration,
}

impl RunningServer {
    pub(super) fn new(
        mut child: Child,
        sandbox: &Sandbox,
        account: Account,
        log_start: u64,
    ) -> Result<Self, StartError> {
        let Some(identity) = identify(&child) else {
            // It ended at once, or cannot be followed. Either way nothing may stay.
            let _ = child.kill();
            let status = child.wait().context("could not wait for the server")?;
            return Err(sandbox.ended(status, log_start));
        };
        Ok(RunningServer {
            child,
            identity,
            files: Arc::clone(&sandbox.files),
            folder: sandbox.folder.clone(),
            socket: sandbox.socket.clone(),
            listen: sandbox.listen,
            log: sandbox.log(),
            log_start,
            quotes_log: sandbox.quotes_log,
            account,
            ready_after: Duration::ZERO,
            stop_signals: sandbox.product.stop_signals(),
        })
    }

    pub(super) fn set_ready(&mut self, after: Duration) {
        self.ready_after = after;
    }

    /// Process ID of the daemon, or of its first process.
    pub fn pid(&self) -> i32 {
        self.identity.pid
    }

    /// Identity of the daemon's process, distinct from a later one with its pid.
    pub fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// Its process group, the only one of its session; processes that it forks may have others.
    pub fn group(&self) -> i32 {
        self.identity.pid
    }

    /// From the start of the process to the first login; after a crash, the time of recovery.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Its address for the clients of a contest: its TCP port where it has one, for other machines.
    pub fn client_address(&self) -> Address {
        match self.listen {
            Some(at) => Address::Tcp {
                host: at.ip().to_string(),
                port: at.port(),
            },
            None => self.address(),
        }
    }

    /// Its socket, for clients on this machine.
    pub fn address(&self) -> Address {
        Address::Unix {
            path: self.socket.clone(),
        }
    }

    /// Credentials for clients.
    pub fn credentials(&self) -> Credentials {
        self.account.credentials()
    }

    /// Its error log since this start, at most the last 64 KiB.
    pub fn log_since_start(&self) -> String {
        tail(&self.log, self.log_start)
    }

    /// The last lines of that log for a message that says how it ended, or that they are withheld.
    pub fn last_words(&self) -> String {
        if !self.quotes_log {
            return "its log may hold captured values and is not quoted".to_owned();
        }
        let log = self.log_since_start();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
        format!("its log ends: {}", last.join(" / "))
    }

    /// How the process ended; `None` while it has not.
    ///
    /// # Errors
    /// The process cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .context("could not check the server's process")
    }

    /// Stops every thread of every process of the server until [`RunningServer::thaw`]. When this returns, none of them runs.
    ///
    /// # Errors
    /// The server ended, or its threads did not all stop.
    pub fn freeze(&mut self) -> Result<()> {
        self.check_alive("freeze")?;
        signal_tree(self.group(), Signal::SIGSTOP).context("could not freeze the server")?;
        self.wait_until_stopped()
    }

    fn wait_until_stopped(&mut self) -> Result<()> {
        let pid = self.pid();
        let mut stopper = Stopper::new(pid);
        let stopped = poll_until(
            clock::now() + FREEZE_DEADLINE,
            Duration::from_millis(1),
            // A server that ended meanwhile has no thread that could stop.
            || match (self.check_alive("freeze"), stopper.round()) {
                (Ok(()), Ok(is_done)) => is_done.then_some(Ok(())),
                (Ok(()), Err(error)) => Some(Err(error).context("could not freeze the server")),
                (ended, _) => Some(ended),
            },
        );
        stopped.unwrap_or_else(|| {
            bail!(
                "the threads of process {pid} and of those that it forked did not all stop within {} s",
                FREEZE_DEADLINE.as_secs()
            )
        })
    }

    /// Refuses an action on a server that has ended.
    fn check_alive(&mut self, verb: &str) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!(
                "cannot {verb} the server: it ended with {status}; its log is `{}`",
                self.log.display()
            );
        }
        Ok(())
    }

    /// Lets a frozen server run again. Has no effect on one that is not frozen.
    ///
    /// # Errors
    /// The server ended.
    pub fn thaw(&mut self) -> Result<()> {
        self.check_alive("thaw")?;
        signal_tree(self.group(), Signal::SIGCONT).context("could not thaw the server")
    }

    /// Asks the server to exit, and kills it at the deadline. A frozen server is thawed first.
    ///
    /// # Errors
    /// The process cannot be signalled or waited for.
    pub fn stop(mut self, deadline: Duration) -> Result<Stopped> {
        let begun = clock::now();
        signal_tree(self.group(), Signal::SIGCONT).context("could not thaw the server")?;
        let mut requests = 0;
        let mut ended = None;
        for &signal in self.stop_signals {
            requests += 1;
            self.signal(signal)?;
            let end = match requests {
                1 => begun + deadline,
                _ => clock::now() + FURTHER_REQUEST,
            };
            ended = self.wait(end)?;
            if ended.is_some() {
                break;
            }
        }
        let killed = ended.is_none() || requests > 1;
        if ended.is_none() {
            signal_tree(self.group(), Signal::SIGKILL).context("could not kill the server")?;
            ended = self.wait(clock::now() + KILL_DEADLINE)?;
        }
        match ended {
            Some(status) => {
                self.note_end();
                Ok(Stopped {
                    killed,
                    status,
                    took: clock::since(begun),
                })
            }
            None => bail!(
                "the server (process {}) could not be killed; it waits for an unresponsive device",
                self.pid()
            ),
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        signal_one(self.identity, signal)
            .with_context(|| format!("could not send {signal} to the server"))
    }

    fn wait(&mut self, end: Instant) -> Result<Option<ExitStatus>> {
        let mut failure = None;
        let status = poll_until(end, POLL, || match self.child.try_wait() {
            Ok(status) => status.map(Some),
            Err(error) => {
                failure = Some(error);
                Some(None)
            }
        });
        match failure {
            Some(error) => Err(error).context("could not wait for the server"),
            None => Ok(status.flatten()),
        }
    }

    /// Notes in the sandbox that no server runs. A stale note is harmless: its process is gone.
    fn note_end(&self) {
        if let Some(owner) = Owner::load(&self.folder) {
            let _ = Owner {
                server: None,
                group: None,
                ..owner
            }
            .save(&*self.files, &self.folder);
        }
    }
}

impl Drop for RunningServer {
    /// Last resort, also on panic. `stop()` shuts down cleanly and reports the result.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = signal_tree(self.group(), Signal::SIGKILL);
            let _ = self.child.wait();
            self.note_end();
        }
        // Processes that a dead server forked stay when they are frozen.
        orphans::kill_leftovers(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::files::LocalFiles;
    use std::path::Path;
    use std::process::Command;

    /// A killed process, in the place of a server.
    fn killed(folder: &Path) -> RunningServer {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = identify(&child).unwrap();
        child.kill().unwrap();
        RunningServer {
            child,
            identity,
            files: Arc::new(LocalFiles),
            folder: folder.to_owned(),
            socket: folder.join("s.sock"),
            listen: None,
            log: folder.join("error.log"),
            log_start: 0,
            quotes_log: true,
            account: Account::of_data(&LocalFiles, folder).unwrap(),
            ready_after: Duration::ZERO,
            stop_signals: &[Signal::SIGTERM],
        }
    }

    #[test]
    fn a_withheld_log_is_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = killed(dir.path());
        std::fs::write(&server.log, "one\ntwo\nthree\nVALUES ('secret')\n").unwrap();
        let words = server.last_words();
        assert_eq!(words, "its log ends: two / three / VALUES ('secret')");
        server.quotes_log = false;
        assert!(!server.last_words().contains("secret"));
    }

    #[test]
    fn a_server_that_ends_while_it_is_frozen_is_noticed_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = killed(dir.path());
        // And not that its threads did not stop in time.
        let error = server.wait_until_stopped().unwrap_err().to_string();
        assert!(error.contains("it ended with signal: 9"), "{error}");
    }
}
