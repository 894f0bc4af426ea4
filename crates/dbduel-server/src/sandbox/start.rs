//! Starts the server of a sandbox and waits until it accepts a login.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use dbduel_driver::{ConnectError, Connection, Dialect};
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_record::plan::Limits;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;

use super::super::command::quote;
use super::super::home::write_whole;
use super::super::orphans;
use super::super::process::ProcessIdentity;
use super::super::products::Places;
use super::super::refusal::{self, RefusedSetting};
use super::super::throttle::Throttle;
use super::account::Account;
use super::running::RunningServer;
use super::{Owner, Sandbox, read_back};

/// Limit of open files, equal for every server. Higher limits, common in containers, make old servers reserve memory
/// for each of a billion files.
const OPEN_FILES_MAX: u64 = 65_536;
/// SQLSTATE of a PostgreSQL that starts, or recovers from a crash: `cannot_connect_now`.
const STARTING: &str = "57P03";
const POLL: Duration = Duration::from_millis(10);
/// Bytes of the error log's end that are read.
const LOG_TAIL_BYTES: u64 = 64 << 10;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It ended because of one of the contender's settings.
    #[error(transparent)]
    Refused(#[from] RefusedSetting),
    /// It ended for another reason.
    #[error("the server ended during startup with {status}{}; its log is `{}`", quote(.tail), .log.display())]
    Died {
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log; empty where they are withheld.
        tail: String,
        /// Path of its log.
        log: PathBuf,
    },
    /// It runs and does not answer.
    #[error("the server did not accept a login within {} s{}; its log is `{}`", .waited.as_secs(), quote(.tail), .log.display())]
    NeverReady {
        /// The time limit.
        waited: Duration,
        /// The last lines of its log; empty where they are withheld.
        tail: String,
        /// Path of its log.
        log: PathBuf,
    },
    /// It runs with another value of a reserved setting.
    #[error(transparent)]
    NotOurs(#[from] read_back::NotOurs),
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] anyhow::Error),
}

/// The set of processors; `None` when there is no confinement.
fn processors(cores: &[u32]) -> Result<Option<CpuSet>, StartError> {
    if cores.is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core as usize)
            .with_context(|| format!("there is no processor {core}"))?;
    }
    Ok(Some(set))
}

impl Sandbox {
    /// Starts the server and waits until a login succeeds, at most `server_start_s` of the limits. The data directory
    /// must exist.
    ///
    /// After a crash this is the restart: [`RunningServer::ready_after`] is then the time of recovery.
    ///
    /// # Errors
    /// [`StartError`]; no process remains then.
    pub fn start(&mut self, limits: &Limits) -> Result<RunningServer, StartError> {
        let account = &Account::of_data(&*self.files, &self.data())?;
        let data = self.data();
        let log = self.log();
        let pid_file = self.folder.join("pid");
        let places = Places {
            data: &data,
            tmp: &self.folder.join("tmp"),
            socket: &self.socket,
            listen: self.listen,
            pid_file: &pid_file,
            log: Some(&log),
        };
        let text = self
            .product
            .configuration(&self.build, &places, &self.settings);
        write_whole(&*self.files, &self.config(), text.as_bytes(), 0o600)
            .context("could not write the server's configuration")?;
        orphans::kill_leftovers(&self.folder);
        if orphans::servers_in(&self.folder).is_empty() {
            self.unlock()?;
        }
        if self.listen.is_some() {
            self.product.admit_clients(self.build.version, &data)?;
        }
        let log_start = fs::metadata(&log).map_or(0, |metadata| metadata.len());

        // Noted before it is done: should we be killed in between, the next start looks for a server without a note of it.
        self.note(None)?;
        let begun = clock::now();
        let child = self.spawn(&log)?;
        // From here on a guard: dropped means ended.
        let mut server = RunningServer::new(child, self, account.clone(), log_start)?;
        self.note(Some(&server))?;
        let mut connection =
            self.wait_until_ready(&mut server, account, begun, limits, log_start)?;
        server.set_ready(clock::since(begun));
        read_back::check(&mut connection, &self.product.read_back(&places))?;
        Ok(server)
    }

    /// Removes lock files of a killed server that would block the next start. Servers trust the process ID in them as
    /// long as the process exists, even as a zombie.
    fn unlock(&self) -> anyhow::Result<()> {
        self.remove_from_data(self.product.lock_files())?;
        let mut lock = self.socket.as_os_str().to_owned();
        lock.push(".lock");
        match fs::remove_file(&lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error)
                .with_context(|| format!("could not remove `{}`", Path::new(&lock).display())),
            _ => Ok(()),
        }
    }

    /// Notes the running server, for a later start that finds the sandbox.
    fn note(&self, server: Option<&RunningServer>) -> anyhow::Result<()> {
        let owner = Owner {
            server: server.map(RunningServer::identity),
            group: server.map(RunningServer::group),
            ..self.owner.clone()
        };
        owner
            .save(&*self.files, &self.folder)
            .context("could not note the server's process")
    }

    fn spawn(&self, log: &Path) -> Result<Child, StartError> {
        let messages = File::options()
            .create(true)
            .append(true)
            .open(log)
            .context("could not open the server's log")?;
        let mut command = self.build.command();
        // Must come first, or the machine's own option files would be read.
        command.arg(self.product.configuration_argument(&self.config()));
        command
            .args(self.product.more_arguments(&self.data()))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(
                messages
                    .try_clone()
                    .context("could not open the server's log")?,
            )
            .stdout(messages);
        let (_, hard) =
            getrlimit(Resource::RLIMIT_NOFILE).context("could not read the limit of open files")?;
        let limit = hard.min(OPEN_FILES_MAX);
        let cores = processors(&self.cores)?;
        let group = self.throttle.as_ref().map(Throttle::entrance).transpose();
        let group = group.context("could not open the server's control group")?;
        // SAFETY: between fork and exec only system calls are made, all allowed there; nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                if let Some(group) = &group {
                    nix::unistd::write(group, b"0").map_err(io::Error::from)?;
                }
                if let Some(cores) = &cores {
                    sched_setaffinity(Pid::this(), cores).map_err(io::Error::from)?;
                }
                // A session of its own: signals of our terminal do not reach it, its group can be stopped as a whole,
                // and the kernel does not wake a stopped group when we die, as it does within one session.
                nix::unistd::setsid().map_err(io::Error::from)?;
                setrlimit(Resource::RLIMIT_NOFILE, limit, limit).map_err(io::Error::from)
            });
        }
        let child = command
            .spawn()
            .with_context(|| format!("could not start `{}`", self.build.daemon.display()))?;
        Ok(child)
    }

    /// Why a server ended during startup, by its log from `log_start` on.
    pub(super) fn ended(&self, status: ExitStatus, log_start: u64) -> StartError {
        let tail = tail(&self.log(), log_start);
        match refusal::refused(&tail, &self.settings, self.product.name()) {
            Some(refused) => StartError::Refused(refused),
            None => StartError::Died {
                status,
                tail: self.quotable(tail),
                log: self.log(),
            },
        }
    }

    /// What a message may quote of the end of the log.
    fn quotable(&self, tail: String) -> String {
        match self.quotes_log {
            true => tail,
            false => String::new(),
        }
    }

    fn wait_until_ready(
        &self,
        server: &mut RunningServer,
        account: &Account,
        begun: Instant,
        limits: &Limits,
        log_start: u64,
    ) -> Result<Connection, StartError> {
        let deadline = Duration::from_secs_f64(limits.server_start_s);
        let statement = Duration::from_secs_f64(limits.statement_s);
        let dialect = self.product.dialect();
        loop {
            if let Some(status) = server.ended()? {
                return Err(self.ended(status, log_start));
            }
            match account.log_in(dialect, &self.socket, statement) {
                Ok(connection) => return Ok(connection),
                // The server is there and does not know us. It need not say so: for accounts that do not exist MySQL 8
                // makes up a login method, to tell nothing about which accounts exist.
                Err(ConnectError::Login { .. }) if dialect == Dialect::MySql => {
                    account.set_up(&self.socket, statement)?;
                }
                // The account was made with the data directory.
                Err(error @ ConnectError::Login { .. }) if !is_starting(&error) => {
                    return Err(anyhow::Error::new(error).into());
                }
                Err(ConnectError::Login { .. }) => {}
                // Not there yet.
                Err(
                    ConnectError::Unreachable { .. }
                    | ConnectError::File { .. }
                    | ConnectError::Tls { .. },
                ) => {}
            }
            interrupt::check().map_err(anyhow::Error::from)?;
            if clock::since(begun) > deadline {
                return Err(StartError::NeverReady {
                    waited: deadline,
                    tail: self.quotable(tail(&self.log(), log_start)),
                    log: self.log(),
                });
            }
            clock::sleep(POLL);
        }
    }
}

/// True when a server refused a login because it is still starting.
fn is_starting(error: &ConnectError) -> bool {
    error
        .refused()
        .is_some_and(|error| error.sqlstate() == STARTING)
}

/// The end of the log, without text before `from`.
pub(super) fn tail(log: &Path, from: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            from.max(length.saturating_sub(LOG_TAIL_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// Identity of a child process, for a note that outlives this process.
pub(super) fn identify(child: &Child) -> Option<ProcessIdentity> {
    ProcessIdentity::of(i32::try_from(child.id()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_where_this_start_began() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("error.log");
        fs::write(&log, "old start\nnew start\n").unwrap();
        assert_eq!(tail(&log, 10), "new start\n");
        assert_eq!(tail(&log, 1000), "");
        assert_eq!(tail(&dir.path().join("missing"), 0), "");
    }
}
