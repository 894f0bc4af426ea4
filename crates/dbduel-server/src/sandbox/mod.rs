//! A sandbox: a server's data, configuration, socket and process.
//!
//! A server reads and writes nothing outside of its sandbox, and nothing of another sandbox.

mod account;
mod check;
mod config;
#[cfg(test)]
mod crashes;
mod freeze;
mod owner;
#[cfg(test)]
mod postgresql;
pub(super) mod pristine;
mod read_back;
mod running;
mod start;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use dbduel_machine::random::secret;
use dbduel_record::files::{Change, FileSystem};
use dbduel_record::plan::IoLimit;

use super::build::Build;
use super::copy::copy_tree;
use super::home::{Home, create_private_dir};
use super::orphans;
use super::products::ServerProduct;
use super::progress::Progress;
use super::settings::Setting;
use super::throttle::Throttle;
use super::user_namespace;

pub use account::{Account, DATABASE, USER};
pub use config::{refused_by_lab, unwritable};
pub use owner::{Claim, Owner};
pub use running::RunningServer;
pub use start::StartError;

/// The kernel's limit of a socket's path, minus its final byte and one for a longer port in its name.
const SOCKET_PATH_MAX: usize = 106;

/// A contender's sandbox.
pub struct Sandbox {
    files: Arc<dyn FileSystem>,
    folder: PathBuf,
    socket: PathBuf,
    listen: Option<SocketAddr>,
    build: Build,
    product: &'static dyn ServerProduct,
    settings: Vec<Setting>,
    cores: Vec<u32>,
    throttle: Option<Throttle>,
    /// False where messages must not quote the server's log.
    quotes_log: bool,
    owner: Owner,
}

impl Sandbox {
    /// Creates the sandbox of a contender in a run, or takes it over from an earlier, ended process of the same run.
    ///
    /// # Errors
    /// A setting that the lab refuses ([`RefusedSetting`](super::RefusedSetting)); invalid folder names; a sandbox that
    /// a living process owns or in which a server still runs.
    pub fn create(
        home: &Home,
        run: &str,
        contender: &str,
        build: Build,
        settings: Vec<Setting>,
    ) -> Result<Self> {
        let product = build.product()?;
        config::check_settings(&settings, build.version, product)?;
        if product.refuses_root() {
            user_namespace::check()?;
        }
        let Claim {
            folder,
            earlier,
            mut owner,
        } = Owner::claim(home, run, contender, &build.id)?;
        let files = Arc::clone(home.files());
        create_private_dir(&*files, &folder.join("tmp"))?;
        if earlier.is_some() {
            check_unused(&folder)?;
        }
        let (socket, socket_folder) = place_socket(
            &*files,
            &folder,
            product.socket_name(),
            earlier.and_then(|owner| owner.socket_folder),
        )?;
        owner.socket_folder = socket_folder;
        owner.save(&*files, &folder)?;
        Ok(Sandbox {
            files,
            folder,
            socket,
            listen: None,
            build,
            product,
            settings,
            cores: Vec::new(),
            throttle: None,
            quotes_log: true,
            owner,
        })
    }

    /// Makes servers started later listen on a free port of an address of this machine, for clients on other machines.
    ///
    /// # Errors
    /// When this machine has no such address, or no free port.
    pub fn listen(&mut self, address: IpAddr) -> Result<()> {
        let free = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
        let at = free.with_context(|| {
            format!("no server can listen on {address}; `servers` in [hosts] takes an address of this machine")
        })?;
        self.socket
            .set_file_name(self.product.socket_name_at(at.port()));
        self.listen = Some(at);
        Ok(())
    }

    /// Confines servers started later to these processors; empty means no confinement.
    pub fn confine(&mut self, cores: &[u32]) {
        self.cores = cores.to_vec();
    }

    /// Limits reads and writes of servers started later.
    ///
    /// # Errors
    /// When this machine cannot limit them.
    pub fn limit_io(&mut self, limit: IoLimit) -> Result<()> {
        self.throttle = Some(Throttle::new(&self.folder, limit)?);
        Ok(())
    }

    /// Keeps the log of servers started later out of messages: it may hold values of captured statements.
    pub fn withhold_log(&mut self) {
        self.quotes_log = false;
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        data_of(&self.folder)
    }

    /// The server's error log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("error.log")
    }

    /// The configuration, rewritten before every start.
    pub fn config(&self) -> PathBuf {
        self.folder.join(self.product.configuration_name())
    }

    /// The server.
    pub fn build(&self) -> &Build {
        &self.build
    }

    /// Provides an initialised, unused data directory. Does nothing when there is one: an existing one is complete.
    ///
    /// # Errors
    /// The server cannot be initialised, or the copy cannot be made.
    pub fn initialise(&self, home: &Home, progress: &dyn Progress) -> Result<()> {
        if self.data().is_dir() {
            return Ok(());
        }
        let pristine = pristine::ensure(home, &self.build, &self.settings, progress)?;
        progress.stage(&format!("copying the data directory of {}", self.build.id));
        copy_tree(&pristine, &self.data(), progress)?;
        Ok(())
    }

    /// Removes the sandbox with everything in it.
    ///
    /// # Errors
    /// A server still runs in it, or something cannot be removed.
    pub fn remove(self) -> Result<()> {
        check_unused(&self.folder)?;
        for path in self.owner.socket_folder.iter().chain([&self.folder]) {
            self.files
                .apply(Change::Remove { path })
                .with_context(|| format!("could not remove `{}`", path.display()))?;
        }
        // The run's own folder goes with its last sandbox; with others in it, it stays.
        if let Some(run) = self.folder.parent() {
            orphans::remove_empty_run(&*self.files, run);
        }
        Ok(())
    }

    /// Adapts another contender's data directory: removes the files that identify one instance.
    ///
    /// # Errors
    /// Such a file cannot be removed.
    pub fn forget_identity(&self) -> Result<()> {
        self.remove_from_data(self.product.identity_files())
    }

    fn remove_from_data(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let path = self.data().join(name);
            if path.exists() {
                self.files
                    .apply(Change::Remove { path: &path })
                    .with_context(|| format!("could not remove `{}`", path.display()))?;
            }
        }
        Ok(())
    }
}

/// The data directory of a sandbox.
pub(super) fn data_of(sandbox: &Path) -> PathBuf {
    sandbox.join("data")
}

/// Refuses a sandbox in which a server runs.
fn check_unused(sandbox: &Path) -> Result<()> {
    if let Some(server) = orphans::servers_in(sandbox).first() {
        bail!(
            "a server (process {}) still runs in the sandbox `{}`",
            server.pid,
            sandbox.display()
        );
    }
    Ok(())
}

/// The socket's path, and its folder outside of the sandbox when the sandbox's path is too long.
fn place_socket(
    files: &dyn FileSystem,
    folder: &Path,
    name: &str,
    earlier: Option<PathBuf>,
) -> Result<(PathBuf, Option<PathBuf>)> {
    let inside = folder.join(name);
    if inside.as_os_str().len() <= SOCKET_PATH_MAX {
        return Ok((inside, None));
    }
    let outside = match earlier.filter(|folder| folder.is_dir()) {
        Some(folder) => folder,
        None => {
            let runtime = std::env::var_os("XDG_RUNTIME_DIR")
                .map(PathBuf::from)
                .filter(|folder| folder.is_dir());
            runtime
                .unwrap_or_else(std::env::temp_dir)
                .join(format!("dbduel-{}", secret(6)?))
        }
    };
    let socket = outside.join(name);
    if socket.as_os_str().len() > SOCKET_PATH_MAX {
        bail!(
            "`{}` is too long for a socket (at most {SOCKET_PATH_MAX} bytes); set TMPDIR to a shorter folder",
            socket.display()
        );
    }
    create_private_dir(files, &outside)?;
    Ok((socket, Some(outside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::files::LocalFiles;
    use std::fs;

    #[test]
    fn a_long_path_gets_a_short_socket_that_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let (near, none) = place_socket(&LocalFiles, dir.path(), "s.sock", None).unwrap();
        assert_eq!((near, none), (dir.path().join("s.sock"), None));
        let deep = dir.path().join("x".repeat(120));
        let (socket, outside) = place_socket(&LocalFiles, &deep, "s.sock", None).unwrap();
        let outside = outside.unwrap();
        assert!(socket.as_os_str().len() <= SOCKET_PATH_MAX && socket.starts_with(&outside));
        let again = place_socket(&LocalFiles, &deep, "s.sock", Some(outside.clone())).unwrap();
        assert_eq!(again, (socket, Some(outside.clone())));
        fs::remove_dir(outside).unwrap();
    }
}
