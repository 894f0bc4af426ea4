//! What the benches that run sysbench beside us have in common: the server both work on, and sysbench's
//! command line.

#![allow(dead_code, reason = "each bench uses its own part of this")]

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbduel_load::address::Address;
use dbduel_load::driver::{ConnectOptions, Connection, Credentials};

/// The version that the targets name.
pub const SYSBENCH: &str = "sysbench 1.0.20";

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A server and an account that may create databases.
pub struct Server {
    pub address: Address,
    pub user: String,
    pub password: String,
}

impl Server {
    pub fn credentials(&self) -> Credentials {
        Credentials::new(&self.user, &self.password)
    }

    pub fn connect(&self) -> Result<Connection> {
        let options = ConnectOptions::default();
        let (address, credentials) = (&self.address, self.credentials());
        Ok(Connection::connect(address, &credentials, &options)?)
    }

    /// Runs `work` with a database of this name, which is new and dropped at the end.
    pub fn with_database<T>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let mut connection = self.connect()?;
        connection.execute(&format!("CREATE DATABASE {name}"))?;
        let outcome = work(&mut connection);
        connection.execute(&format!("DROP DATABASE {name}"))?;
        outcome
    }

    /// How the bench names what it measured.
    pub fn transport(&self) -> &'static str {
        match self.address {
            Address::Unix { .. } => "unix socket",
            Address::Tcp { .. } => "TCP",
            Address::File { .. } => "in process",
        }
    }
}

/// Complains when sysbench is not the one that the targets name.
pub fn look_for_sysbench(bench: &str) -> Result<()> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.map_err(|error| {
        format!(
            "cannot run sysbench: {error}; install it (Debian: `apt install sysbench`) and have it on PATH"
        )
    })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !version.starts_with(SYSBENCH) {
        eprintln!("{bench}: the targets are about {SYSBENCH}, this is {version}");
    }
    Ok(())
}

/// Sysbench takes a password as an argument, which everybody could see, or from a file.
pub fn write_config(directory: &Path, password: &str) -> Result<PathBuf> {
    let path = directory.join("sysbench.cfg");
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    writeln!(file, "mysql-password={password}")?;
    Ok(path)
}

/// A sysbench that works on tables of this size.
pub struct Sysbench<'a> {
    pub server: &'a Server,
    pub config: &'a Path,
    pub database: &'a str,
    pub tables: u64,
    pub table_size: u64,
}

impl Sysbench<'_> {
    /// Runs one of its scripts, named as our workload is, to its end.
    pub fn run(&self, workload: &str, more: &[String], verb: &str) -> Result<()> {
        let mut command = Command::new("sysbench");
        command
            .arg(format!("--config-file={}", self.config.display()))
            .arg(workload.replace('-', "_"))
            .arg(format!("--tables={}", self.tables))
            .arg(format!("--table-size={}", self.table_size))
            .arg(format!("--mysql-user={}", self.server.user))
            .arg(format!("--mysql-db={}", self.database))
            .args(more);
        match &self.server.address {
            Address::Unix { path } => {
                command.arg(format!("--mysql-socket={}", path.display()));
            }
            Address::Tcp { host, port } => {
                command
                    .arg(format!("--mysql-host={host}"))
                    .arg(format!("--mysql-port={port}"));
            }
            // sysbench has no driver for SQLite.
            Address::File { path, .. } => {
                return Err(format!("`{}` is no server", path.display()).into());
            }
        }
        let output = command.arg(verb).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(format!("sysbench failed: {}", String::from_utf8_lossy(&said)).into())
    }
}

/// A number from 1 of the command line.
pub fn positive(name: &str, value: &str) -> Result<u32> {
    match value.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{name}` takes numbers from 1, not `{value}`").into()),
    }
}

/// Median, smallest and largest of figures of several rounds.
pub struct Spread {
    pub median: f64,
    pub smallest: f64,
    pub largest: f64,
}

impl Spread {
    /// Of at least one figure.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Spread {
            median,
            smallest: values[0],
            largest: values[values.len() - 1],
        }
    }
}

/// Microseconds of a tick of the processors' counters in /proc.
pub const TICK_US: f64 = 10_000.0;

/// The server's process, when it is on this machine.
pub fn server_process(connection: &mut Connection) -> Option<u32> {
    let answer = connection.query("SELECT @@pid_file, @@datadir").ok()?;
    let directory = PathBuf::from(answer.text(0, 1)?);
    // A relative path is below the data.
    let file = directory.join(answer.text(0, 0)?);
    let process = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    // Not its name, which is that of the dynamic loader when the server was started through one.
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).ok()?;
    let is_server = |word: &str| matches!(word.rsplit('/').next(), Some("mysqld" | "mariadbd"));
    line.split('\0').any(is_server).then_some(process)
}

/// Processor time of a process so far, microseconds.
pub fn cpu_us(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let mut next = || times.next()?.parse::<f64>().ok();
    Some((next()? + next()?) * TICK_US)
}
