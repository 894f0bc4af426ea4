//! What the load costs the machine that drives it, beside sysbench 1.0.20: prepared point selects at
//! several load levels and oltp-read-write at one, both programs in turns on the same server and tables.
//!
//! ```text
//! cargo bench -p dbduel-load --bench client_cost -- --server unix:/run/db.sock --server tcp://127.0.0.1:3306 \
//!     --server postgresql:/run/postgresql:5432 [--user root] [--seconds 5] [--rounds 5] [--clients 1,16,64,256,1024] [--threads N] \
//!     [--workload oltp-point-select] [--tables 4] [--ours native|script] [--contended 33]
//! ```
//!
//! With `--contended 33` all levels are measured once more while a third of every processor is taken by other work.
//! With `--ours script` our clients run sysbench's own installed scripts in place of native workloads.
//! One table for each server that is named. The password comes from `DBDUEL_PASSWORD`. Both programs
//! are measured alike, from outside: queries are those that the server counted (with
//! PostgreSQL transactions, which are all that it counts), processor time is that of the whole process, connecting included. The tables are filled into a database of their own, which is
//! dropped at the end. The server must allow more connections than the largest level has clients, and as
//! many prepared statements as all of them prepare (`max_prepared_stmt_count`).

#![expect(
    clippy::unwrap_used,
    reason = "orders and answers of our own always serialise"
)]

mod counters;
mod disturber;
#[path = "../peer/mod.rs"]
mod peer;
mod table;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use dbduel_driver::address::ServerAddress;
use dbduel_driver::executor::policy::{raise_open_files_limit, threads_among_others};
use dbduel_driver::{Connection, TlsMode};
use dbduel_load::order::{Answer, OpenOrder, Order, SliceOrder};
use dbduel_record::plan::{Arrival, Parameters, Workload};
use dbduel_workloads::fill::{FillWatch, Place, fill};
use dbduel_workloads::parameters;

use counters::{Run, counted};
use disturber::Disturber;
use peer::{Result, Server, Sysbench, positive, server_process};
use table::{Level, table};

const POINTS: &str = "oltp-point-select";
const READ_WRITE: &str = "oltp-read-write";
/// The only level with a target for oltp-read-write.
const READ_WRITE_CLIENTS: u32 = 64;
const DATABASE: &str = "dbduel_client_cost";
const TABLES: u32 = 4;
const TABLE_SIZE: u64 = 10_000;
/// First argument of this program when it is to be the load process.
const DRIVE: &str = "drive";

struct Options {
    addresses: Vec<ServerAddress>,
    user: String,
    password: String,
    seconds: u32,
    rounds: u32,
    clients: Vec<u32>,
    /// As many as `dbduel load` would take, unless named.
    threads: Option<u32>,
    workloads: Vec<&'static str>,
    tables: u32,
    /// Whether our clients run sysbench's scripts too.
    as_scripts: bool,
    /// Share of every processor that other work takes in a second table.
    contended: Option<f64>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [verb, threads] if verb == DRIVE => be_the_load_process(threads),
        _ => Options::read(&arguments).and_then(|options| measure(&options)),
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
    fn read(arguments: &[String]) -> Result<Self> {
        let mut options = Options {
            addresses: Vec::new(),
            user: "root".to_owned(),
            password: std::env::var("DBDUEL_PASSWORD").unwrap_or_default(),
            seconds: 5,
            rounds: 5,
            clients: vec![1, 16, 64, 256, 1024],
            threads: None,
            workloads: vec![POINTS, READ_WRITE],
            tables: TABLES,
            as_scripts: false,
            contended: None,
        };
        // Cargo adds this one.
        let mut rest = arguments.iter().filter(|argument| *argument != "--bench");
        while let Some(name) = rest.next() {
            let value = rest
                .next()
                .ok_or_else(|| format!("`{name}` needs a value"))?;
            match name.as_str() {
                "--server" => options.addresses.push(ServerAddress::parse(value)?),
                "--user" => options.user.clone_from(value),
                "--seconds" => options.seconds = positive(name, value)?,
                "--rounds" => options.rounds = positive(name, value)?,
                "--tables" => options.tables = positive(name, value)?,
                "--contended" => {
                    let percent: u32 = positive(name, value)?;
                    options.contended = Some(f64::from(percent.min(90)) / 100.0);
                }
                "--threads" => options.threads = Some(positive(name, value)?),
                "--clients" => {
                    let each = value.split(',').map(|one| positive(name, one));
                    options.clients = each.collect::<Result<_>>()?;
                }
                "--workload" => {
                    options.workloads = match value.as_str() {
                        POINTS => vec![POINTS],
                        READ_WRITE => vec![READ_WRITE],
                        _ => return Err(format!("`{name}` is {POINTS} or {READ_WRITE}").into()),
                    }
                }
                "--ours" => {
                    options.as_scripts = match value.as_str() {
                        "native" => false,
                        "script" => true,
                        _ => return Err(format!("`{name}` is native or script").into()),
                    }
                }
                _ => return Err(format!("there is no option `{name}`").into()),
            }
        }
        Ok(options)
    }

    /// Workloads with the clients that they are measured at.
    fn levels(&self) -> Vec<(&'static str, u32)> {
        let clients = |workload| match workload {
            READ_WRITE => vec![READ_WRITE_CLIENTS],
            _ => self.clients.clone(),
        };
        let workloads = self.workloads.iter();
        workloads
            .flat_map(|&workload| clients(workload).into_iter().map(move |c| (workload, c)))
            .collect()
    }
}

/// This program as the load process, as `dbduel drive` is.
fn be_the_load_process(threads: &str) -> Result<()> {
    let input = BufReader::new(io::stdin());
    let threads = positive("threads", threads)?;
    let drive = dbduel_load::drive::drive(input, io::stdout(), threads, &[]);
    Ok(drive?)
}

fn measure(options: &Options) -> Result<()> {
    if options.addresses.is_empty() {
        println!(
            "client_cost: nothing was measured; name one: --server unix:/PATH, tcp://HOST:PORT or postgresql:/FOLDER"
        );
        return Ok(());
    }
    peer::look_for_sysbench("client_cost")?;
    // Sysbench does not raise it itself.
    raise_open_files_limit()?;
    for address in &options.addresses {
        let server = Server {
            address: address.clone(),
            user: address.user.as_ref().unwrap_or(&options.user).clone(),
            password: options.password.clone(),
        };
        server.with_database(DATABASE, |connection| {
            on_filled_tables(options, &server, connection)
        })?;
    }
    Ok(())
}

/// Fills the tables, runs both programs in turns and prints the tables of ratios.
fn on_filled_tables(options: &Options, server: &Server, connection: &mut Connection) -> Result<()> {
    // All workloads of sysbench have the same tables and parameters.
    let workload = dbduel_workloads::find(READ_WRITE)?;
    let given = Parameters::from([
        ("tables".to_owned(), options.tables.into()),
        ("table_size".to_owned(), TABLE_SIZE.into()),
    ]);
    let parameters = parameters::resolve(workload, &given)?;
    let place = Place {
        dialect: server.address.dialect,
        address: &server.address.place,
        credentials: &server.credentials(),
        tls: &TlsMode::Off,
        database: DATABASE,
        connections: 4,
        deadline: Duration::from_secs(600),
    };
    fill(workload, &parameters, &place, 1, &FillWatch::default())?;

    let secrets = tempfile::tempdir()?;
    let config = peer::write_config(secrets.path(), server)?;
    let sysbench = Sysbench {
        server,
        config: &config,
        database: DATABASE,
        tables: options.tables.into(),
        table_size: TABLE_SIZE,
    };
    for contended in std::iter::once(None).chain(options.contended.map(Some)) {
        let _disturber = contended.map(Disturber::start).transpose()?;
        let levels = in_turns(options, &sysbench, &parameters, connection)?;
        println!("{}", table(options, server, contended, &levels));
    }
    Ok(())
}

/// Runs both programs in turns at every level.
fn in_turns(
    options: &Options,
    sysbench: &Sysbench<'_>,
    parameters: &Parameters,
    connection: &mut Connection,
) -> Result<Vec<Level>> {
    let server = sysbench.server;
    let process = server_process(connection);
    let mut levels = Vec::new();
    for (workload, clients) in options.levels() {
        let mut rounds = Vec::new();
        for round in 0..options.rounds {
            let mut run = |is_ours: bool| -> Result<Run> {
                counted(
                    connection,
                    process,
                    f64::from(options.seconds),
                    || match is_ours {
                        true => run_ours(options, server, workload, parameters, clients),
                        false => {
                            let size = [
                                format!("--threads={clients}"),
                                format!("--time={}", options.seconds),
                            ];
                            sysbench.run(workload, &size, "run")
                        }
                    },
                )
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
                "{}, {workload}, {clients} clients, round {round}: sysbench {}, ours {}",
                server.transport(),
                theirs.words(),
                ours.words()
            );
            rounds.push((ours, theirs));
        }
        levels.push(Level {
            workload,
            clients,
            rounds,
        });
    }
    Ok(levels)
}

fn run_ours(
    options: &Options,
    server: &Server,
    workload: &str,
    parameters: &Parameters,
    clients: u32,
) -> Result<()> {
    let processors = std::thread::available_parallelism()?.get() as u32;
    let threads = options
        .threads
        .unwrap_or_else(|| threads_among_others(processors, clients, clients));
    let mut process = Command::new(std::env::current_exe()?)
        .args([DRIVE, &threads.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let workload = match options.as_scripts {
        true => script_of(workload, options.tables, clients)?,
        false => Workload {
            name: workload.to_owned(),
            parameters: parameters.clone(),
        },
    };
    let outcome = give_orders(&mut process, options, server, workload, clients);
    // The end of its input, which the orders have left, is its end.
    let status = process.wait()?;
    outcome?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the load process failed: {status}").into()),
    }
}

/// Sysbench's own script of the workload, as a workload of ours on the tables that are there.
fn script_of(workload: &str, tables: u32, clients: u32) -> Result<Workload> {
    let given = Parameters::from([
        ("script".to_owned(), workload.replace('-', "_").into()),
        ("threads".to_owned(), clients.into()),
        ("options.tables".to_owned(), tables.into()),
        ("options.table_size".to_owned(), TABLE_SIZE.into()),
    ]);
    let workload = dbduel_workloads::find("script")?;
    Ok(Workload {
        name: workload.name().to_owned(),
        parameters: parameters::resolve(workload, &given)?,
    })
}

fn give_orders(
    process: &mut std::process::Child,
    options: &Options,
    server: &Server,
    workload: Workload,
    clients: u32,
) -> Result<()> {
    let mut orders = process.stdin.take().unwrap();
    let answers = BufReader::new(process.stdout.take().unwrap());
    let contender = "only".to_owned();
    let open = OpenOrder {
        dialect: server.address.dialect,
        contender: contender.clone(),
        address: server.address.place.clone(),
        user: server.user.clone(),
        password: server.password.clone(),
        tls: TlsMode::Off,
        database: DATABASE.to_owned(),
        workload,
        clients,
        // Sysbench tries deadlocks again until they are gone.
        retries: 100,
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
        until_halted: false,
        quantum: None,
        seed: 1,
    };
    for order in [Order::Open(open), Order::Slice(slice)] {
        writeln!(orders, "{}", serde_json::to_string(&order)?)?;
    }
    for line in answers.lines() {
        match serde_json::from_str(&line?)? {
            Answer::Slice(_) => return Ok(()),
            Answer::Refused { why } | Answer::Lost { why, .. } | Answer::Unreachable { why } => {
                return Err(why.into());
            }
            Answer::Attached { .. }
            | Answer::Opened { .. }
            | Answer::Begun { .. }
            | Answer::Tick(_)
            | Answer::Acknowledged { .. }
            | Answer::Closed { .. } => {}
        }
    }
    Err("the load process ended without an answer".into())
}
