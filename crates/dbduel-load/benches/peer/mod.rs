//! What the benches that run sysbench beside us have in common: the server both work on, and sysbench's
//! command line.

#![allow(dead_code, reason = "each bench uses its own part of this")]

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect};

/// The version that the targets name.
pub const SYSBENCH: &str = "sysbench 1.0.20";

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A server and an account that may create databases.
pub struct Server {
    pub address: ServerAddress,
    /// Unless the address names one.
    pub user: String,
    pub password: String,
}

/// The database that every PostgreSQL has.
const POSTGRES: &str = "postgres";

impl Server {
    pub fn credentials(&self) -> Credentials {
        Credentials::new(&self.user, &self.password)
    }

    pub fn connect(&self) -> Result<Connection> {
        let dialect = self.address.dialect;
        let options = ConnectOptions {
            dialect,
            database: (dialect == Dialect::PostgreSql).then(|| POSTGRES.to_owned()),
            ..ConnectOptions::default()
        };
        let place = &self.address.place;
        Ok(Connection::connect(place, &self.credentials(), &options)?)
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
    pub fn transport(&self) -> String {
        let product = match self.address.dialect {
            Dialect::PostgreSql => "PostgreSQL by ",
            Dialect::MySql | Dialect::Sqlite => "",
        };
        let transport = match self.address.place {
            Address::Unix { .. } => "unix socket",
            Address::Tcp { .. } => "TCP",
            Address::File { .. } => "in process",
        };
        format!("{product}{transport}")
    }

    /// What sysbench calls the driver of this server, as the beginning of its options.
    fn driver(&self) -> &'static str {
        match self.address.dialect {
            Dialect::PostgreSql => "pgsql",
            Dialect::MySql | Dialect::Sqlite => "mysql",
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
pub fn write_config(directory: &Path, server: &Server) -> Result<PathBuf> {
    let path = directory.join("sysbench.cfg");
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    writeln!(file, "{}-password={}", server.driver(), server.password)?;
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
        let driver = self.server.driver();
        let mut command = Command::new("sysbench");
        command
            .arg(format!("--config-file={}", self.config.display()))
            .arg(workload.replace('-', "_"))
            .arg(format!("--tables={}", self.tables))
            .arg(format!("--table-size={}", self.table_size))
            .arg(format!("--db-driver={driver}"))
            .arg(format!("--{driver}-user={}", self.server.user))
            .arg(format!("--{driver}-db={}", self.database))
            .args(more);
        match &self.server.address.place {
            Address::Unix { path } if driver == "pgsql" => {
                // It wants the folder and the number in the socket's name.
                let port = path.extension().unwrap_or_default();
                command
                    .arg(format!(
                        "--pgsql-host={}",
                        path.parent().unwrap_or(path).display()
                    ))
                    .arg(format!("--pgsql-port={}", port.display()));
            }
            Address::Unix { path } => {
                command.arg(format!("--mysql-socket={}", path.display()));
            }
            Address::Tcp { host, port } => {
                command
                    .arg(format!("--{driver}-host={host}"))
                    .arg(format!("--{driver}-port={port}"));
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

/// The server's process, when it is on this machine; PostgreSQL's is the one that starts the others.
pub fn server_process(connection: &mut Connection) -> Option<u32> {
    let question = match connection.dialect() {
        Dialect::PostgreSql => {
            "SELECT 'postmaster.pid', setting FROM pg_settings WHERE name = 'data_directory'"
        }
        Dialect::MySql | Dialect::Sqlite => "SELECT @@pid_file, @@datadir",
    };
    let answer = connection.query(question).ok()?;
    let directory = PathBuf::from(answer.text(0, 1)?);
    // A relative path is below the data.
    let file = directory.join(answer.text(0, 0)?);
    let text = fs::read_to_string(file).ok()?;
    let process = text.lines().next()?.trim().parse().ok()?;
    // Not its name, which is that of the dynamic loader when the server was started through one.
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).ok()?;
    let is_server = |word: &str| {
        let name = word.rsplit('/').next();
        matches!(name, Some("mysqld" | "mariadbd" | "postgres"))
    };
    line.split('\0').any(is_server).then_some(process)
}

/// Processor time of a process and of its children that have ended, so far, microseconds.
pub fn cpu_us(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    // In user mode and in the kernel, then the same of children.
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    let ticks: Vec<f64> = times.filter_map(|time| time.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<f64>() * TICK_US)
}
