//! Other programs with a workload derived from the same specification, where they are installed.
//!
//! Each loads and drives with its own defaults; what it prints is parsed for the number of transactions,
//! and its processor time is what the kernel counts for child processes, start and end included.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use dbduel_driver::Connection;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// Where the server listens and who logs in, as the programs want it.
pub struct Access {
    pub port: u16,
    pub user: String,
    pub warehouses: u32,
    pub clients: u32,
    pub seconds: u32,
}

/// What a drive took.
pub struct Drive {
    pub transactions: u64,
    pub new_orders_per_minute: f64,
    pub cpu_s: f64,
}

/// A program that was found.
pub enum Peer {
    /// Directory with tpcc_load, tpcc_start and create_table.sql.
    TpccMysql(PathBuf),
    /// The program.
    GoTpc(PathBuf),
}

/// Tables of tpcc-mysql and the indexes that it needs, without its foreign keys: ours have none either.
const TPCC_MYSQL_INDEXES: [&str; 2] = [
    "CREATE INDEX idx_customer ON customer (c_w_id,c_d_id,c_last,c_first)",
    "CREATE INDEX idx_orders ON orders (o_w_id,o_d_id,o_c_id,o_id)",
];

/// The programs that `DBDUEL_BENCH_TPCC_MYSQL` and `DBDUEL_BENCH_GO_TPC` name.
pub fn found() -> Vec<Peer> {
    let path = |name: &str| env::var_os(name).map(PathBuf::from);
    let tpcc_mysql = path("DBDUEL_BENCH_TPCC_MYSQL").map(Peer::TpccMysql);
    let go_tpc = path("DBDUEL_BENCH_GO_TPC").map(Peer::GoTpc);
    tpcc_mysql.into_iter().chain(go_tpc).collect()
}

impl Peer {
    pub fn name(&self) -> &'static str {
        match self {
            Peer::TpccMysql(_) => "tpcc-mysql",
            Peer::GoTpc(_) => "go-tpc",
        }
    }

    /// Its own database, dropped and made anew.
    pub fn database(&self) -> String {
        format!("dbduel_bench_{}", self.name().replace('-', "_"))
    }

    /// Loads the tables, indexes included; returns the seconds.
    pub fn load(&self, access: &Access, server: &mut Connection) -> f64 {
        let database = self.database();
        let mut run = |sql: &str| server.execute(sql).unwrap();
        run(&format!("DROP DATABASE IF EXISTS {database}"));
        run(&format!("CREATE DATABASE {database}"));
        run(&format!("USE {database}"));
        let began = Instant::now();
        match self {
            Peer::TpccMysql(folder) => {
                let tables = std::fs::read_to_string(folder.join("create_table.sql")).unwrap();
                for statement in tables.split(';').filter(|text| !text.trim().is_empty()) {
                    run(statement);
                }
                let mut command = Command::new(folder.join("tpcc_load"));
                command.args(self.tpcc_mysql_access(access));
                output(command.args(["-w", &access.warehouses.to_string()]));
                for sql in TPCC_MYSQL_INDEXES {
                    run(sql);
                }
            }
            Peer::GoTpc(_) => {
                output(self.go_tpc(access).args(["prepare", "--no-check"]));
            }
        }
        began.elapsed().as_secs_f64()
    }

    /// Drives the tables for the time of `access`.
    pub fn drive(&self, access: &Access) -> Drive {
        let before = children_cpu_s();
        let text = match self {
            Peer::TpccMysql(folder) => {
                let seconds = access.seconds.to_string();
                let mut command = Command::new(folder.join("tpcc_start"));
                command.args(self.tpcc_mysql_access(access));
                command.args(["-w", &access.warehouses.to_string()]);
                command.args(["-c", &access.clients.to_string()]);
                output(command.args(["-r", "0", "-i", &seconds, "-l", &seconds]))
            }
            Peer::GoTpc(_) => {
                let time = format!("{}s", access.seconds);
                output(self.go_tpc(access).args(["--time", &time, "run"]))
            }
        };
        let cpu_s = children_cpu_s() - before;
        let counts = match self {
            Peer::TpccMysql(_) => tpcc_mysql_counts(&text),
            Peer::GoTpc(_) => go_tpc_counts(&text),
        };
        assert!(!counts.is_empty(), "no transaction counts in:\n{text}");
        Drive {
            transactions: counts.iter().sum(),
            new_orders_per_minute: counts[0] as f64 * 60.0 / f64::from(access.seconds),
            cpu_s,
        }
    }

    fn tpcc_mysql_access(&self, access: &Access) -> Vec<String> {
        let port = access.port.to_string();
        let words = ["-h", "127.0.0.1", "-P", &port, "-d", &self.database(), "-u"];
        let mut words: Vec<String> = words.map(str::to_owned).to_vec();
        // No password: it would stand in the command line.
        words.extend([access.user.clone(), "-p".to_owned(), String::new()]);
        words
    }

    fn go_tpc(&self, access: &Access) -> Command {
        let Peer::GoTpc(program) = self else {
            panic!("{} is not go-tpc", self.name());
        };
        let mut command = Command::new(program);
        command.args(["tpcc", "-H", "127.0.0.1", "-P", &access.port.to_string()]);
        command.args(["-D", &self.database(), "-U", &access.user]);
        command.args(["--warehouses", &access.warehouses.to_string()]);
        command.args(["-T", &access.clients.to_string()]);
        command
    }
}

/// Runs a program to its end; its standard output.
fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn children_cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let seconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    seconds as f64 / 1e6
}

/// `  [0] sc:12 lt:3  rt:0  fl:0 …`: what was done in time and what was late, New-Orders first.
fn tpcc_mysql_counts(text: &str) -> Vec<u64> {
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("<Raw Results>"));
    let counts = lines.filter_map(|line| {
        let number = |name: &str| -> Option<u64> {
            let rest = line.split(name).nth(1)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        Some(number("sc:")? + number("lt:")?)
    });
    counts.take(5).collect()
}

/// `[Summary] NEW_ORDER - Takes(s): 9.9, Count: 123, …`, New-Orders first.
fn go_tpc_counts(text: &str) -> Vec<u64> {
    let mut counts = vec![0];
    for line in text.lines().filter(|line| line.starts_with("[Summary]")) {
        let count = line
            .split("Count: ")
            .nth(1)
            .and_then(|rest| rest.split(',').next()?.trim().parse().ok());
        match count {
            Some(count) if line.contains("NEW_ORDER ") => counts[0] = count,
            Some(count) if !line.contains("_ERR") => counts.push(count),
            _ => {}
        }
    }
    counts
}
