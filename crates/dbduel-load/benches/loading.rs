//! How long filling takes, beside sysbench 1.0.20's own prepare: the same tables over the same number of
//! connections, indexes included, each method that the server allows in turns with sysbench.
//!
//! ```text
//! cargo bench -p dbduel-load --bench loading -- --server unix:/run/db.sock [--user root] [--rounds 5] \
//!     [--tables 4] [--table-size 250000] [--connections 4]
//! ```
//!
//! The password comes from `DBDUEL_PASSWORD`. With MySQL the account must be one that may set `local_infile`, which
//! is set and put back at the end. No other program should use the server meanwhile: the database
//! of the bench is made and dropped for every filling.

mod peer;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::{Connection, Dialect, TlsMode};
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{FillError, FillWatch, LoadMethodChoice, Place, digest, fill_by};
use dbduel_workloads::parameters;

use peer::{Result, Server, Spread, Sysbench, cpu_us, positive, server_process};

const WORKLOAD: &str = "oltp-read-write";
const DATABASE: &str = "dbduel_loading";
/// What is claimed: our time as a share of sysbench's.
fn target(dialect: Dialect) -> f64 {
    match dialect {
        Dialect::PostgreSql => 0.5,
        Dialect::MySql | Dialect::Sqlite => 0.6,
    }
}

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

/// Sysbench's own filling, and each method of ours.
const WAYS: [Option<LoadMethodChoice>; 5] = [
    None,
    Some(LoadMethodChoice::Insert),
    Some(LoadMethodChoice::LoadData),
    Some(LoadMethodChoice::Bulk),
    Some(LoadMethodChoice::Copy),
];

/// One round: what each of [`WAYS`] took; none for a method that the server does not know.
type Round = [Option<Filling>; WAYS.len()];

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
        address: ServerAddress {
            dialect: Dialect::MySql,
            place: Address::Unix { path: "".into() },
            user: None,
        },
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
            "--server" => {
                server.address = ServerAddress::parse(&value)?;
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
        println!(
            "loading: nothing was measured; name one: --server unix:/PATH or postgresql:/FOLDER"
        );
        return Ok(());
    }
    peer::look_for_sysbench("loading")?;
    let mut connection = server.connect()?;
    let dialect = server.address.dialect;
    let answer = connection.query("SELECT VERSION()")?;
    let version = answer.text(0, 0).unwrap_or_default();
    let rounds = match dialect {
        Dialect::MySql => {
            let answer = connection.query("SELECT @@local_infile")?;
            let allowed = answer.text(0, 0).unwrap_or_default();
            connection.execute("SET GLOBAL local_infile = 1")?;
            let rounds = measure(&options, &server, &mut connection);
            connection.execute(&format!("SET GLOBAL local_infile = {allowed}"))?;
            rounds
        }
        Dialect::PostgreSql | Dialect::Sqlite => measure(&options, &server, &mut connection),
    };
    print(&options, &version, target(dialect), &rounds?);
    Ok(())
}

fn measure(options: &Options, server: &Server, connection: &mut Connection) -> Result<Vec<Round>> {
    let secrets = tempfile::tempdir()?;
    let config = peer::write_config(secrets.path(), server)?;
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
        let mut order: Vec<usize> = (0..WAYS.len()).collect();
        // Everyone comes first as often as last.
        order.rotate_left(number as usize % WAYS.len());
        for who in order {
            round[who] = match WAYS[who] {
                None => {
                    let threads = [format!("--threads={}", options.connections)];
                    let (filling, ()) = server.with_database(DATABASE, |_| {
                        timed(process, || sysbench.run(WORKLOAD, &threads, "prepare"))
                    })?;
                    Some(filling)
                }
                Some(wish) => {
                    let filled = server
                        .with_database(DATABASE, |_| filled(options, server, process, wish))?;
                    filled.map(|(filling, digest)| {
                        digests.insert(digest);
                        filling
                    })
                }
            };
        }
        let words = WAYS.iter().zip(&round).filter_map(|(method, filling)| {
            let Filling { seconds, server_s } = (*filling)?;
            Some(format!(
                "{} {seconds:.2} s (server {server_s:.2} s)",
                name(*method)
            ))
        });
        eprintln!("round {number}: {}", words.collect::<Vec<_>>().join(", "));
        rounds.push(round);
    }
    match digests.len() {
        1 => Ok(rounds),
        _ => Err("the methods of filling gave different data".into()),
    }
}

fn name(method: Option<LoadMethodChoice>) -> String {
    method.map_or_else(|| "sysbench prepare".to_owned(), |wish| wish.to_string())
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

/// Fills the tables; returns what that took and what is in them. None when the server does not know the method.
fn filled(
    options: &Options,
    server: &Server,
    process: Option<u32>,
    wish: LoadMethodChoice,
) -> Result<Option<(Filling, String)>> {
    let workload = dbduel_workloads::find(WORKLOAD)?;
    let given = Parameters::from([
        ("tables".to_owned(), options.tables.into()),
        ("table_size".to_owned(), options.table_size.into()),
    ]);
    let parameters = parameters::resolve(workload, &given)?;
    let place = Place {
        dialect: server.address.dialect,
        address: &server.address.place,
        credentials: &server.credentials(),
        tls: &TlsMode::Off,
        database: DATABASE,
        connections: options.connections,
        deadline: Duration::from_secs(3600),
    };
    let watch = FillWatch::default();
    let (filling, outcome) = timed(process, || {
        Ok(fill_by(wish, workload, &parameters, &place, 1, &watch))
    })?;
    if let Err(FillError::NoMethod { .. }) = outcome {
        return Ok(None);
    }
    outcome?;
    let digest = digest(workload, &parameters, &place, &watch)?;
    Ok(Some((filling, digest.hex)))
}

fn print(options: &Options, version: &str, target: f64, rounds: &[Round]) {
    let Options {
        tables,
        table_size,
        connections,
        ..
    } = options;
    println!(
        "{tables} tables of {table_size} rows over {connections} connections on {version}: median \
         (smallest to largest) of {} rounds in turns\n\n\
         | method | seconds | rows/s | server CPU, seconds | of the time of {} |\n\
         | --- | --- | --- | --- | --- |",
        rounds.len(),
        peer::SYSBENCH
    );
    let rows = f64::from(*tables) * f64::from(*table_size);
    for (place, method) in WAYS.iter().enumerate() {
        let figures: Vec<(Filling, f64)> = rounds
            .iter()
            .filter_map(|round| {
                let filling = round[place]?;
                Some((filling, filling.seconds / round[0]?.seconds))
            })
            .collect();
        if figures.is_empty() {
            println!("| {} | not on this server | | | |", name(*method));
            continue;
        }
        let took = Spread::of(figures.iter().map(|(filling, _)| filling.seconds).collect());
        let server = Spread::of(
            figures
                .iter()
                .map(|(filling, _)| filling.server_s)
                .collect(),
        );
        let ratio = Spread::of(figures.iter().map(|(_, ratio)| *ratio).collect());
        let verdict = match (method, ratio.median <= target) {
            (None, _) => String::new(),
            (Some(_), true) => format!(" [≤ {target:.2}: met]"),
            (Some(_), false) => format!(" [≤ {target:.2}: missed]"),
        };
        println!(
            "| {} | {:.2} ({:.2} to {:.2}) | {:.0} | {:.2} ({:.2} to {:.2}) | {:.2} ({:.2} to {:.2}){verdict} |",
            name(*method),
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
