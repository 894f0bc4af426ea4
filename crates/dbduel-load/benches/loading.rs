//! How long filling takes, beside sysbench 1.0.20's own prepare: the same tables over the same number of
//! connections, indexes included, each way that the server allows in turns with sysbench.
//!
//! ```text
//! cargo bench -p dbduel-load --bench loading -- --socket /run/db.sock [--user root] [--rounds 5] \
//!     [--tables 4] [--table-size 250000] [--connections 4]
//! ```
//!
//! The password comes from `DBDUEL_PASSWORD`. The account must be one that may set `local_infile`, which
//! is set for each way and put back at the end. Nobody else should use the server meanwhile: the database
//! of the bench is made and dropped for every filling.

mod peer;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use dbduel_load::address::Address;
use dbduel_load::blocking::{Connection, TlsMode};
use dbduel_load::fill::{FillWatch, Place, Way, digest, fill};
use dbduel_load::workloads::{self, parameters};
use dbduel_record::plan::Parameters;

use peer::{Result, Server, Spread, Sysbench, cpu_us, positive, server_process};

const WORKLOAD: &str = "oltp-read-write";
const DATABASE: &str = "dbduel_loading";
/// What is claimed: our time as a share of sysbench's.
const TARGET: f64 = 0.6;

struct Options {
    rounds: u32,
    tables: u32,
    table_size: u32,
    connections: u32,
}

/// What one filling took.
#[derive(Clone, Copy, Default)]
struct Filling {
    seconds: f64,
    /// Processor time of the server, seconds; 0 for one on another machine.
    server_s: f64,
}

/// Chooses one of the fillings of a round.
type OfRound = fn(&Round) -> Filling;

/// One round.
#[derive(Default)]
struct Round {
    sysbench: Filling,
    insert: Filling,
    load_data: Filling,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loading: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut server = Server {
        address: Address::Unix { path: "".into() },
        user: "root".to_owned(),
        password: std::env::var("DBDUEL_PASSWORD").unwrap_or_default(),
    };
    let mut options = Options {
        rounds: 5,
        tables: 4,
        table_size: 250_000,
        connections: 4,
    };
    let mut is_named = false;
    // Cargo adds `--bench`.
    let mut rest = std::env::args().skip(1).filter(|name| name != "--bench");
    while let Some(name) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| format!("`{name}` needs a value"))?;
        match name.as_str() {
            "--socket" => {
                server.address = Address::Unix { path: value.into() };
                is_named = true;
            }
            "--user" => server.user = value,
            "--rounds" => options.rounds = positive(&name, &value)?,
            "--tables" => options.tables = positive(&name, &value)?,
            "--table-size" => options.table_size = positive(&name, &value)?,
            "--connections" => options.connections = positive(&name, &value)?,
            _ => return Err(format!("there is no option `{name}`").into()),
        }
    }
    if !is_named {
        println!("loading: nothing was measured; name a server: --socket PATH");
        return Ok(());
    }
    peer::look_for_sysbench("loading")?;
    let mut connection = server.connect()?;
    let answer = connection.query("SELECT VERSION(), @@local_infile")?;
    let version = answer.text(0, 0).unwrap_or_default();
    let allowed = answer.text(0, 1).unwrap_or_default();
    let rounds = measure(&options, &server, &mut connection);
    connection.execute(&format!("SET GLOBAL local_infile = {allowed}"))?;
    print(&options, &version, &rounds?);
    Ok(())
}

fn measure(options: &Options, server: &Server, connection: &mut Connection) -> Result<Vec<Round>> {
    let secrets = tempfile::tempdir()?;
    let config = peer::write_config(secrets.path(), &server.password)?;
    let sysbench = Sysbench {
        server,
        config: &config,
        database: DATABASE,
        tables: options.tables.into(),
        table_size: options.table_size.into(),
    };
    let process = server_process(connection);
    let mut digests = std::collections::BTreeSet::new();
    let mut rounds = Vec::new();
    for number in 0..options.rounds {
        let mut round = Round::default();
        let mut order = [0, 1, 2];
        // Everyone comes first as often as last.
        order.rotate_left(number as usize % 3);
        for who in order {
            match who {
                0 => {
                    let threads = [format!("--threads={}", options.connections)];
                    round.sysbench = server.with_database(DATABASE, |_| {
                        timed(process, || sysbench.run(WORKLOAD, &threads, "prepare"))
                            .map(|(filling, ())| filling)
                    })?;
                }
                way => {
                    connection.execute(&format!("SET GLOBAL local_infile = {}", way - 1))?;
                    let (filling, found, digest) =
                        server.with_database(DATABASE, |_| filled(options, server, process))?;
                    digests.insert(digest);
                    match found {
                        Way::Insert { .. } => round.insert = filling,
                        Way::LoadData { .. } => round.load_data = filling,
                    }
                }
            }
        }
        eprintln!(
            "round {number}: sysbench {}, INSERT {}, LOAD DATA {}",
            round.sysbench.words(),
            round.insert.words(),
            round.load_data.words()
        );
        rounds.push(round);
    }
    match digests.len() {
        1 => Ok(rounds),
        _ => Err("the ways of filling gave different data".into()),
    }
}

impl Filling {
    fn words(&self) -> String {
        format!("{:.2} s (server {:.2} s)", self.seconds, self.server_s)
    }
}

/// Times some work, on the clock and as the server's processor time.
fn timed<T>(process: Option<u32>, work: impl FnOnce() -> Result<T>) -> Result<(Filling, T)> {
    let used = || process.and_then(cpu_us).unwrap_or_default() / 1e6;
    let (began, used_before) = (Instant::now(), used());
    let outcome = work()?;
    let filling = Filling {
        seconds: began.elapsed().as_secs_f64(),
        server_s: used() - used_before,
    };
    Ok((filling, outcome))
}

/// Fills the tables; returns what that took, the way and what is in them.
fn filled(
    options: &Options,
    server: &Server,
    process: Option<u32>,
) -> Result<(Filling, Way, String)> {
    let workload = workloads::find(WORKLOAD)?;
    let given = Parameters::from([
        ("tables".to_owned(), options.tables.into()),
        ("table_size".to_owned(), options.table_size.into()),
    ]);
    let parameters = parameters::resolve(workload, &given)?;
    let place = Place {
        address: &server.address,
        credentials: &server.credentials(),
        tls: &TlsMode::Off,
        database: DATABASE,
        connections: options.connections,
        deadline: Duration::from_secs(3600),
    };
    let watch = FillWatch::default();
    let (filling, report) = timed(process, || {
        Ok(fill(workload, &parameters, &place, 1, &watch)?)
    })?;
    let digest = digest(workload, &parameters, &place, &watch)?;
    let way = report
        .way
        .ok_or("the workload brought its rows in itself")?;
    Ok((filling, way, digest.hex))
}

fn print(options: &Options, version: &str, rounds: &[Round]) {
    let Options {
        tables,
        table_size,
        connections,
        ..
    } = options;
    println!(
        "{tables} tables of {table_size} rows over {connections} connections on {version}: median \
         (smallest to largest) of {} rounds in turns\n\n\
         | way | seconds | rows/s | server CPU, seconds | of the time of {} |\n\
         | --- | --- | --- | --- | --- |",
        rounds.len(),
        peer::SYSBENCH
    );
    let rows = f64::from(*tables) * f64::from(*table_size);
    let ways: [(&str, OfRound); 3] = [
        ("sysbench prepare", |round| round.sysbench),
        ("multi-row INSERT", |round| round.insert),
        ("LOAD DATA LOCAL INFILE", |round| round.load_data),
    ];
    for (name, filling) in ways {
        let took = Spread::of(rounds.iter().map(|round| filling(round).seconds).collect());
        let ratios = rounds
            .iter()
            .map(|round| filling(round).seconds / round.sysbench.seconds);
        let ratio = Spread::of(ratios.collect());
        let server = Spread::of(rounds.iter().map(|round| filling(round).server_s).collect());
        let verdict = match (name.starts_with("sysbench"), ratio.median <= TARGET) {
            (true, _) => String::new(),
            (false, true) => format!(" [≤ {TARGET:.2}: met]"),
            (false, false) => format!(" [≤ {TARGET:.2}: missed]"),
        };
        println!(
            "| {name} | {:.2} ({:.2} to {:.2}) | {:.0} | {:.2} ({:.2} to {:.2}) | {:.2} ({:.2} to {:.2}){verdict} |",
            took.median,
            took.smallest,
            took.largest,
            rows / took.median,
            server.median,
            server.smallest,
            server.largest,
            ratio.median,
            ratio.smallest,
            ratio.largest
        );
    }
}
