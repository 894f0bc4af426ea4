//! One contender's server, restarted repeatedly on images of its disk.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_load::order::OpenOrder;
use dbduel_machine::host;
use dbduel_machine::interrupt;
use dbduel_powercut::mount::Mount;
use dbduel_powercut::{Image, Volume, read_tree};
use dbduel_record::plan::{self, Contender, Parameters};
use dbduel_server::{DATABASE, RunningServer, Sandbox, StartError, file_sizes};
use dbduel_workloads::Workload;

use super::traced_load::{Promised, TRACE_BYTES_MAX};
use super::verdict::{self, CutVerdict};
use crate::contest::ContestConfig;
use crate::contest::durability::weaker_promise;

/// A contender's sandbox whose data directory is a mount point for images.
pub struct Stand<'a> {
    pub contest: &'a ContestConfig<'a>,
    pub contender: &'a Contender,
    pub workload: &'static dyn Workload,
    /// The workload with this contender's parameters.
    pub planned: plan::Workload,
    pub sandbox: Sandbox,
    pub dialect: Dialect,
    loaded: Image,
}

/// A server on a mounted volume. The server is dropped, and killed, before its volume is unmounted.
pub struct OnVolume {
    pub server: RunningServer,
    mount: Mount,
}

/// A volume whose server was stopped.
pub struct StoppedVolume {
    /// True when it exited successfully on request.
    pub is_orderly: bool,
    mount: Mount,
}

impl StoppedVolume {
    /// Unmounts.
    ///
    /// # Errors
    /// When the volume cannot be unmounted.
    pub fn unmount(self) -> Result<()> {
        self.mount.unmount().context("could not unmount the volume")
    }
}

impl OnVolume {
    /// Kills the server and unmounts, as a power cut does.
    ///
    /// # Errors
    /// When the volume cannot be unmounted.
    pub fn cut(self) -> Result<()> {
        drop(self.server);
        self.mount.unmount().context("could not unmount the volume")
    }

    /// Shuts the server down; the volume stays mounted.
    ///
    /// # Errors
    /// When the server's process cannot be signalled or waited for.
    pub fn stop(self, deadline: Duration) -> Result<StoppedVolume> {
        let stopped = self.server.stop(deadline)?;
        Ok(StoppedVolume {
            is_orderly: !stopped.killed && stopped.status.success(),
            mount: self.mount,
        })
    }

    /// Address and login for clients.
    pub fn endpoint(&self) -> (Address, Credentials) {
        (self.server.address(), self.server.credentials())
    }
}

impl<'a> Stand<'a> {
    /// Takes the loaded data directory of a sandbox into memory.
    ///
    /// # Errors
    /// When it cannot be read or removed.
    pub fn new(
        contest: &'a ContestConfig<'a>,
        contender: &'a Contender,
        sandbox: Sandbox,
    ) -> Result<Self> {
        let data = sandbox.data();
        check_memory(contest, &contender.name, &data)?;
        let loaded = read_tree(&data)?;
        let empty = || {
            fs::remove_dir_all(&data)?;
            fs::create_dir(&data)
        };
        empty().with_context(|| format!("could not empty `{}`", data.display()))?;
        Ok(Stand {
            contest,
            contender,
            workload: dbduel_workloads::find(&contest.plan.workload.name)?,
            planned: contest.plan.workload_of(contender),
            dialect: sandbox.build().product()?.dialect(),
            sandbox,
            loaded,
        })
    }

    /// The contender's name.
    pub fn name(&self) -> &str {
        &self.contender.name
    }

    pub fn parameters(&self) -> &Parameters {
        &self.planned.parameters
    }

    /// The disk with the loaded tables, after a clean shutdown.
    pub fn loaded(&self) -> Image {
        self.loaded.clone()
    }

    /// Starts the server on a volume.
    ///
    /// # Errors
    /// When the volume cannot be mounted. The inner error is the server's: it did not start.
    pub fn start(&mut self, volume: Arc<Volume>) -> Result<Result<OnVolume, StartError>> {
        let data = self.sandbox.data();
        let mount = Mount::new(volume, &data)
            .with_context(|| format!("could not mount a volume at `{}`", data.display()))?;
        match self.sandbox.start(&self.contest.plan.limits) {
            Ok(server) => Ok(Ok(OnVolume { server, mount })),
            Err(error) => {
                interrupt::check()?;
                mount.unmount()?;
                Ok(Err(error))
            }
        }
    }

    /// Starts the server on the disk after a cut, compares it with its acknowledged commits, and stops it.
    ///
    /// # Errors
    /// When the lab fails or the user interrupts; failures of the server are in the verdict.
    pub fn restart(&mut self, image: Image, promised: &Promised) -> Result<CutVerdict> {
        let volume = Arc::new(Volume::new(image));
        let started = match self.start(volume)? {
            Ok(started) => started,
            Err(StartError::Lab(error)) if interrupt::check().is_err() => return Err(error),
            Err(error) => return Ok(verdict::refused(&error)),
        };
        verdict::judge(self, started, promised)
    }

    /// The setting that weakens commit durability, read from the started server; `None` when it promises that each commit is on disk, or cannot be read.
    ///
    /// # Errors
    /// When it does not start or refuses the connection.
    pub fn weaker_promise(&mut self) -> Result<Option<String>> {
        let started = self
            .start(Arc::new(Volume::new(self.loaded())))?
            .with_context(|| format!("contender `{}` did not start", self.name()))?;
        let weaker = weaker_promise(&mut self.connect(&started)?);
        started.cut()?;
        Ok(weaker)
    }

    /// A connection to a started server.
    ///
    /// # Errors
    /// When it refuses the connection.
    pub fn connect(&self, started: &OnVolume) -> Result<Connection> {
        let (address, credentials) = started.endpoint();
        let options = ConnectOptions {
            dialect: self.dialect,
            database: Some(DATABASE.to_owned()),
            statement_deadline: Duration::from_secs_f64(self.contest.plan.limits.statement_s),
            cancel: Cancel::when(interrupt::gives_up),
            ..ConnectOptions::default()
        };
        Ok(Connection::connect(&address, &credentials, &options)?)
    }

    /// The order by which the load process connects its clients to a started server.
    pub fn open_order(&self, started: &OnVolume, clients: u32) -> OpenOrder {
        let (address, credentials) = started.endpoint();
        let limits = &self.contest.plan.limits;
        OpenOrder {
            contender: self.name().to_owned(),
            dialect: self.dialect,
            address,
            user: credentials.user.clone(),
            password: credentials.password.clone(),
            tls: TlsMode::Off,
            database: DATABASE.to_owned(),
            workload: self.planned.clone(),
            clients,
            retries: limits.transaction_retries,
            connect_s: limits.server_start_s,
        }
    }

    /// The data directory, where volumes are mounted.
    pub fn data(&self) -> std::path::PathBuf {
        self.sandbox.data()
    }

    /// A program of the contender's server, if its build has it.
    pub fn program(&self, name: &str) -> Option<std::path::PathBuf> {
        let base = &self.sandbox.build().basedir;
        let daemon = self.sandbox.build().daemon.parent().map(Path::to_path_buf);
        let folders = [Some(base.join("bin")), Some(base.join("usr/bin")), daemon];
        let mut programs = folders
            .into_iter()
            .flatten()
            .map(|folder| folder.join(name));
        programs.find(|program| program.is_file())
    }

    /// Removes the sandbox.
    ///
    /// # Errors
    /// When something in it cannot be removed.
    pub fn remove(self) -> Result<()> {
        self.sandbox.remove()
    }
}

/// Refuses data that do not fit in memory together with the record of writes.
fn check_memory(contest: &ContestConfig<'_>, contender: &str, data: &Path) -> Result<()> {
    let host = host::read(contest.home.root());
    let limits = [host.memory_bytes, host.cgroup_memory_bytes];
    let needed = file_sizes(data)?.total().allocated_bytes + TRACE_BYTES_MAX;
    match limits.into_iter().flatten().min() {
        Some(memory) if needed > memory => bail!(
            "power cuts keep the data directory of `{contender}` and its writes in memory: up to {}, but this machine has {}; \
             use smaller tables",
            dbduel_text::bytes(needed),
            dbduel_text::bytes(memory)
        ),
        _ => Ok(()),
    }
}
