//! A private PostgreSQL that the tests share, from the path or from Debian's packages.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectError, ConnectOptions, Connection, Credentials, Dialect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::suite::bare_server::free_port;
use crate::suite::harness::{restart_clock, skip};
use crate::suite::on_server::workload::WorkloadServer;

/// `nobody`: the server refuses to run as root.
const UNPRIVILEGED: u32 = 65_534;

/// Who may log in, and how.
const ACCOUNTS: &str = "local all trusting trust\nlocal all hashed md5\nlocal all clear password\nlocal all all scram-sha-256\n\
    hostssl all all 127.0.0.1/32 scram-sha-256\n";

/// A running server. Dropping it ends it.
pub struct Cluster {
    folder: tempfile::TempDir,
    postmaster: Child,
    /// Also in the socket's name.
    port: u16,
}

static SHARED: Mutex<Option<Arc<Cluster>>> = Mutex::new(None);

/// The server that tests share; none, and the test counts as ignored, when there is no PostgreSQL on this machine.
pub fn shared() -> Option<Arc<Cluster>> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.is_none() {
        let Some(binaries) = binaries() else {
            skip("no PostgreSQL here; `apt install postgresql` brings one");
            return None;
        };
        *shared = Some(Arc::new(Cluster::start(&binaries)));
        restart_clock();
    }
    shared.clone()
}

/// Ends the server that tests shared.
pub fn stop() {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// The folder with `initdb` and `postgres`: on the path, or the newest of Debian's.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut packaged: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    packaged.sort_by_key(|folder| {
        let major = folder.parent().and_then(Path::file_name);
        major.and_then(|name| name.to_str()?.parse::<u32>().ok())
    });
    let mut candidates = on_path.into_iter().chain(packaged.into_iter().rev());
    candidates.find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// A program of the server, as the user that it runs as.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if Uid::effective().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    command.stdin(Stdio::null()).current_dir("/");
    command
}

impl Cluster {
    fn start(binaries: &Path) -> Self {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let data = folder.path().join("data");
        let password = folder.path().join("password");
        fs::write(&password, "secret\n").unwrap();
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args(["-subj", "/CN=localhost", "-keyout"])
            .arg(folder.path().join("key.pem"))
            .arg("-out")
            .arg(folder.path().join("certificate.pem"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        if Uid::effective().is_root() {
            for file in ["", "password", "key.pem", "certificate.pem"] {
                let path = folder.path().join(file);
                chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
            }
        }
        let initialised = command(&binaries.join("initdb"))
            .args(["-U", "tester", "-A", "scram-sha-256", "-E", "UTF8"])
            .args(["--locale=C", "-N", "-D"])
            .arg(&data)
            .arg(format!("--pwfile={}", password.display()))
            .output()
            .unwrap();
        assert!(initialised.status.success(), "{initialised:?}");
        fs::write(data.join("pg_hba.conf"), ACCOUNTS).unwrap();
        let port = free_port();
        let log = File::create(folder.path().join("log")).unwrap();
        let setting = |name: &str, value: &str| format!("{name}={value}");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let settings = [
            setting("port", &port.to_string()),
            setting("listen_addresses", "127.0.0.1"),
            setting("unix_socket_directories", &file("")),
            setting("ssl", "on"),
            setting("ssl_cert_file", &file("certificate.pem")),
            setting("ssl_key_file", &file("key.pem")),
            setting("fsync", "off"),
            setting("deadlock_timeout", "100ms"),
            setting("max_connections", "200"),
        ];
        let mut postgres = command(&binaries.join("postgres"));
        postgres.arg("-D").arg(&data);
        for setting in &settings {
            postgres.args(["-c", setting]);
        }
        let postmaster = postgres
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut cluster = Cluster {
            folder,
            postmaster,
            port,
        };
        cluster.wait_until_ready();
        cluster
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.connect("postgres").is_err() {
            let has_ended = self.postmaster.try_wait().unwrap().is_some();
            if has_ended || Instant::now() > deadline {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
                panic!("PostgreSQL does not answer; it said:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn address(&self) -> Address {
        let name = format!(".s.PGSQL.{}", self.port);
        Address::Unix {
            path: self.folder.path().join(name),
        }
    }

    pub fn tcp(&self) -> Address {
        Address::Tcp {
            host: "127.0.0.1".to_owned(),
            port: self.port,
        }
    }

    /// The folder of its socket, and its port.
    pub fn folder_and_port(&self) -> (&Path, u16) {
        (self.folder.path(), self.port)
    }

    pub fn credentials(&self) -> Credentials {
        Credentials::new("tester", "secret")
    }

    /// As the tests' own account.
    pub fn connect(&self, database: &str) -> Result<Connection, ConnectError> {
        Connection::connect(&self.address(), &self.credentials(), &options(database))
    }

    /// A new, empty database, dropped first if there is one.
    pub fn create_database(&self, name: &str) {
        let mut connection = self.connect("postgres").unwrap();
        for verb in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
            connection.execute(&format!("{verb} {name}")).unwrap();
        }
    }
}

/// How tests connect.
pub fn options(database: &str) -> ConnectOptions {
    ConnectOptions {
        dialect: Dialect::PostgreSql,
        database: Some(database.to_owned()),
        ..ConnectOptions::default()
    }
}

impl WorkloadServer for Cluster {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn address(&self) -> Address {
        Cluster::address(self)
    }

    fn credentials(&self) -> Credentials {
        Cluster::credentials(self)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let postmaster = Pid::from_raw(self.postmaster.id().cast_signed());
        let _ = kill(postmaster, Signal::SIGQUIT);
        let _ = self.postmaster.wait();
    }
}
