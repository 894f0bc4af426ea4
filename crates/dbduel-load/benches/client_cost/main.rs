//! What the load costs the machine that drives it, beside sysbench 1.0.20: prepared point selects over a
//! unix socket, both programs in turns on the same server and tables.
//!
//! ```text
//! cargo bench -p dbduel-load --bench client_cost -- --socket /run/db.sock --user root \
//!     [--seconds 5] [--rounds 5] [--clients 1,16,64,256] [--threads 1]
//! ```
//!
//! The password comes from `DBDUEL_PASSWORD`. Both are measured alike, from outside: queries are those that
//! the server counted, processor time is that of the whole process, connecting included. The tables are
//! filled into a database of their own, which is dropped at the end.

#![expect(
    clippy::unwrap_used,
    reason = "orders and answers of our own always serialise"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::fill::{FillWatch, Place, fill};
use dbduel_load::order::{Answer, OpenOrder, Order, SliceOrder};
use dbduel_load::workloads::{self, parameters};
use dbduel_record::plan::{Arrival, Parameters, Workload};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

const WORKLOAD: &str = "oltp-point-select";
const DATABASE: &str = "dbduel_client_cost";
const TABLES: u64 = 4;
const TABLE_SIZE: u64 = 10_000;
/// The version that the targets name.
const SYSBENCH: &str = "sysbench 1.0.20";
/// First argument of this program when it is to be the load process.
const DRIVE: &str = "drive";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Options {
    socket: PathBuf,
    user: String,
    password: String,
    seconds: u32,
    rounds: u32,
    clients: Vec<u32>,
    threads: u32,
}

/// What one run of either program took.
#[derive(Clone, Copy)]
struct Run {
    queries_per_s: f64,
    cpu_us: f64,
    user_us: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [verb, threads] if verb == DRIVE => be_the_load_process(threads),
        _ => Options::read(&arguments).and_then(|options| match options {
            Some(options) => measure(&options),
            None => {
                println!(
                    "client_cost: nothing was measured; name a server: --socket PATH --user NAME"
                );
                Ok(())
            }
        }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    /// `None` when no server is named.
    fn read(arguments: &[String]) -> Result<Option<Self>> {
        let mut options = Options {
            socket: PathBuf::new(),
            user: "root".to_owned(),
            password: std::env::var("DBDUEL_PASSWORD").unwrap_or_default(),
            seconds: 5,
            rounds: 5,
            clients: vec![1, 16, 64, 256],
            threads: 1,
        };
        // Cargo adds this one.
        let mut rest = arguments.iter().filter(|argument| *argument != "--bench");
        while let Some(name) = rest.next() {
            let value = rest
                .next()
                .ok_or_else(|| format!("`{name}` needs a value"))?;
            match name.as_str() {
                "--socket" => options.socket = value.into(),
                "--user" => options.user.clone_from(value),
                "--seconds" => options.seconds = positive(name, value)?,
                "--rounds" => options.rounds = positive(name, value)?,
                "--threads" => options.threads = positive(name, value)?,
                "--clients" => {
                    let each = value.split(',').map(|one| positive(name, one));
                    options.clients = each.collect::<Result<_>>()?;
                }
                _ => return Err(format!("there is no option `{name}`").into()),
            }
        }
        Ok((!options.socket.as_os_str().is_empty()).then_some(options))
    }

    fn address(&self) -> Address {
        Address::Unix {
            path: self.socket.clone(),
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(&self.user, &self.password)
    }

    fn connect(&self) -> Result<Connection> {
        let options = ConnectOptions::default();
        Ok(Connection::connect(
            &self.address(),
            &self.credentials(),
            &options,
        )?)
    }
}

fn positive(name: &str, value: &str) -> Result<u32> {
    match value.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{name}` takes numbers from 1, not `{value}`").into()),
    }
}

/// This program as the load process, as `dbduel drive` is.
fn be_the_load_process(threads: &str) -> Result<()> {
    let input = BufReader::new(io::stdin());
    let threads = positive("threads", threads)?;
    Ok(dbduel_load::drive::drive(
        input,
        io::stdout(),
        threads,
        &[],
    )?)
}

fn measure(options: &Options) -> Result<()> {
    let version = sysbench_version()?;
    if !version.starts_with(SYSBENCH) {
        eprintln!("client_cost: the targets are about {SYSBENCH}, this is {version}");
    }
    let mut connection = options.connect()?;
    connection.execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let outcome = on_filled_tables(options, &mut connection);
    connection.execute(&format!("DROP DATABASE {DATABASE}"))?;
    print!("{}", outcome?);
    Ok(())
}

fn sysbench_version() -> Result<String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.map_err(|error| {
        format!(
            "cannot run sysbench: {error}; install it (Debian: `apt install sysbench`) and have it on PATH"
        )
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Fills the tables, runs both programs in turns and returns the table of ratios.
fn on_filled_tables(options: &Options, connection: &mut Connection) -> Result<String> {
    let workload = workloads::find(WORKLOAD)?;
    let given = Parameters::from([
        ("tables".to_owned(), TABLES.into()),
        ("table_size".to_owned(), TABLE_SIZE.into()),
    ]);
    let parameters = parameters::resolve(workload, &given)?;
    let (address, credentials) = (options.address(), options.credentials());
    let place = Place {
        address: &address,
        credentials: &credentials,
        database: DATABASE,
        connections: 4,
        deadline: Duration::from_secs(600),
    };
    fill(workload, &parameters, &place, 1, &FillWatch::default())?;

    let secrets = tempfile::tempdir()?;
    let config = write_config(secrets.path(), &options.password)?;
    let mut table = format!(
        "Ours as a ratio to {SYSBENCH}: median, smallest and largest; rounds: {} of {} s\n\n\
         | clients | client CPU per query | of which user | throughput |\n| --- | --- | --- | --- |\n",
        options.rounds, options.seconds
    );
    for &clients in &options.clients {
        let mut rounds = Vec::new();
        for round in 0..options.rounds {
            let mut run = |is_ours: bool| {
                counted(options, connection, || match is_ours {
                    true => run_ours(options, &parameters, clients),
                    false => run_sysbench(options, &config, clients),
                })
            };
            // The first in one round is the second in the next.
            let ours_first = round % 2 == 1;
            let (first, second) = (run(ours_first)?, run(!ours_first)?);
            let (ours, theirs) = if ours_first {
                (first, second)
            } else {
                (second, first)
            };
            eprintln!(
                "{clients} clients, round {round}: sysbench {}, ours {}",
                theirs.words(),
                ours.words()
            );
            rounds.push((ours, theirs));
        }
        let ratios = |figure: fn(&Run) -> f64| {
            spread(
                rounds
                    .iter()
                    .map(|(ours, theirs)| figure(ours) / figure(theirs))
                    .collect(),
            )
        };
        writeln!(
            table,
            "| {clients} | {} | {} | {} |",
            ratios(|run| run.cpu_us),
            ratios(|run| run.user_us),
            ratios(|run| run.queries_per_s)
        )?;
    }
    Ok(table)
}

/// Sysbench takes a password as an argument, which everybody could see, or from a file.
fn write_config(directory: &Path, password: &str) -> Result<PathBuf> {
    let path = directory.join("sysbench.cfg");
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    writeln!(file, "mysql-password={password}")?;
    Ok(path)
}

/// Lets one of the two run; its cost as the server and the kernel count.
fn counted(
    options: &Options,
    connection: &mut Connection,
    run: impl FnOnce() -> Result<()>,
) -> Result<Run> {
    let (executed_before, cpu_before) = (executed(connection)?, children_cpu_us()?);
    run()?;
    let queries = executed(connection)? - executed_before;
    let (user, system) = children_cpu_us()?;
    let (user_us, system_us) = (user - cpu_before.0, system - cpu_before.1);
    if queries < 1.0 {
        return Err("the server counted no query; do its prepared statements work?".into());
    }
    Ok(Run {
        queries_per_s: queries / f64::from(options.seconds),
        cpu_us: (user_us + system_us) / queries,
        user_us: user_us / queries,
    })
}

/// Prepared statements that the server has executed since it was started.
fn executed(connection: &mut Connection) -> Result<f64> {
    let answer = connection.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")?;
    let text = answer.text(0, 1);
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| "the server does not count prepared executions".into())
}

/// Processor time of all child processes that have ended, user and system, microseconds.
fn children_cpu_us() -> Result<(f64, f64)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((
        usage.user_time().num_microseconds() as f64,
        usage.system_time().num_microseconds() as f64,
    ))
}

fn run_sysbench(options: &Options, config: &Path, clients: u32) -> Result<()> {
    let output = Command::new("sysbench")
        .arg(format!("--config-file={}", config.display()))
        .arg(WORKLOAD.replace('-', "_"))
        .arg(format!("--threads={clients}"))
        .arg(format!("--time={}", options.seconds))
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={TABLE_SIZE}"))
        .arg(format!("--mysql-socket={}", options.socket.display()))
        .arg(format!("--mysql-user={}", options.user))
        .arg(format!("--mysql-db={DATABASE}"))
        .arg("run")
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("sysbench failed: {}", String::from_utf8_lossy(&said)).into())
}

fn run_ours(options: &Options, parameters: &Parameters, clients: u32) -> Result<()> {
    let mut process = Command::new(std::env::current_exe()?)
        .args([DRIVE, &options.threads.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let outcome = give_orders(&mut process, options, parameters, clients);
    // The end of its input, which the orders have left, is its end.
    let status = process.wait()?;
    outcome?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the load process failed: {status}").into()),
    }
}

fn give_orders(
    process: &mut std::process::Child,
    options: &Options,
    parameters: &Parameters,
    clients: u32,
) -> Result<()> {
    let mut orders = process.stdin.take().unwrap();
    let answers = BufReader::new(process.stdout.take().unwrap());
    let contender = "only".to_owned();
    let open = OpenOrder {
        contender: contender.clone(),
        address: options.address(),
        user: options.user.clone(),
        password: options.password.clone(),
        tls: TlsMode::Off,
        database: DATABASE.to_owned(),
        workload: Workload {
            name: WORKLOAD.to_owned(),
            parameters: parameters.clone(),
        },
        clients,
        retries: 0,
        connect_s: 60.0,
    };
    let slice = SliceOrder {
        contender,
        clients,
        arrival: Arrival::Closed { think_ms: 0.0 },
        guard_s: 0.0,
        measured_s: f64::from(options.seconds),
        tick_s: 1.0,
        drain_s: 10.0,
        seed: 1,
    };
    for order in [Order::Open(open), Order::Slice(slice)] {
        writeln!(orders, "{}", serde_json::to_string(&order)?)?;
    }
    for line in answers.lines() {
        match serde_json::from_str(&line?)? {
            Answer::Slice(_) => return Ok(()),
            Answer::Refused { why } | Answer::Lost { why } => return Err(why.into()),
            Answer::Opened { .. } | Answer::Tick(_) | Answer::Closed { .. } => {}
        }
    }
    Err("the load process ended without an answer".into())
}

impl Run {
    fn words(&self) -> String {
        let Run {
            queries_per_s,
            cpu_us,
            user_us,
        } = self;
        format!("{queries_per_s:.0}/s at {cpu_us:.2} µs ({user_us:.2} user)")
    }
}

/// Median, smallest and largest.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    };
    match values.as_slice() {
        [smallest, .., largest] => format!("{median:.2} ({smallest:.2} to {largest:.2})"),
        _ => format!("{median:.2}"),
    }
}
