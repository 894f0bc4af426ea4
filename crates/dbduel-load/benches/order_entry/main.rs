//! What the order-entry workload costs: filling, checking, and client CPU per transaction.
//!
//! `DBDUEL_TEST_SOCKET=/path cargo bench -p dbduel-load --bench order_entry` against a server whose account
//! is `DBDUEL_TEST_USER` (root) with password `DBDUEL_TEST_PASSWORD` (none). `DBDUEL_BENCH_WAREHOUSES` (4),
//! `DBDUEL_BENCH_CLIENTS` (16) and `DBDUEL_BENCH_SECONDS` (30) change the size, `DBDUEL_BENCH_PARAMETERS`
//! (`protocol=text foreign_keys=on`) any other parameter of the workload. The program works in the
//! database `dbduel_bench_order_entry`. Results are unaudited and not comparable with published TPC-C
//! results.
//!
//! `DBDUEL_BENCH_TPCC_MYSQL` (the directory with tpcc_load and tpcc_start) and `DBDUEL_BENCH_GO_TPC` (the
//! program) name others to compare with. Then everybody goes over TCP, loads in turn and drives in turn,
//! `DBDUEL_BENCH_ROUNDS` (3) times; the account needs an empty password, since theirs are command lines.

#![expect(clippy::unwrap_used, reason = "a bench may panic")]

mod peers;

use std::env;
use std::io::{BufRead, BufReader, Write, pipe};
use std::time::Duration;

use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::drive::drive;
use dbduel_load::fill::{FillWatch, Place, digest, fill};
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder};
use dbduel_load::workloads::{Moment, Workload, find, parameters::resolve};
use dbduel_record::latency;
use dbduel_record::plan::{Arrival, Parameters, Workload as PlannedWorkload};

use peers::{Access, Peer};

const DATABASE: &str = "dbduel_bench_order_entry";
const DEADLINE: Duration = Duration::from_secs(3600);

fn number(name: &str, default: u32) -> u32 {
    env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn main() {
    let Ok(path) = env::var("DBDUEL_TEST_SOCKET") else {
        eprintln!("SKIPPED: DBDUEL_TEST_SOCKET names no server");
        return;
    };
    let address = Address::Unix { path: path.into() };
    let user = env::var("DBDUEL_TEST_USER").unwrap_or_else(|_| "root".to_owned());
    let credentials = Credentials::new(user, env::var("DBDUEL_TEST_PASSWORD").unwrap_or_default());
    let workload = find("order-entry").unwrap();
    let more = env::var("DBDUEL_BENCH_PARAMETERS").unwrap_or_default();
    let mut given: Parameters = more
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    given.insert(
        "warehouses".to_owned(),
        number("DBDUEL_BENCH_WAREHOUSES", 4).into(),
    );
    let parameters = resolve(workload, &given).unwrap();
    let connect = |database: Option<&str>| {
        let options = ConnectOptions {
            statement_deadline: DEADLINE,
            database: database.map(str::to_owned),
            ..ConnectOptions::default()
        };
        Connection::connect(&address, &credentials, &options).unwrap()
    };
    let mut server = connect(None);
    println!(
        "server {}, {} warehouses",
        server
            .query("SELECT VERSION()")
            .unwrap()
            .text(0, 0)
            .unwrap(),
        parameters["warehouses"]
    );
    server
        .execute(&format!("DROP DATABASE IF EXISTS {DATABASE}"))
        .unwrap();
    server
        .execute(&format!("CREATE DATABASE {DATABASE}"))
        .unwrap();

    let place = Place {
        address: &address,
        credentials: &credentials,
        database: DATABASE,
        connections: 4,
        deadline: DEADLINE,
    };
    let report = fill(workload, &parameters, &place, 1, &FillWatch::default()).unwrap();
    let sum = digest(workload, &parameters, &place, &FillWatch::default()).unwrap();
    println!(
        "filled in {:.1} s: {} rows, digest {}",
        report.seconds, sum.rows, sum.hex
    );

    verify(
        workload,
        &parameters,
        &mut connect(Some(DATABASE)),
        Moment::Fresh,
    );
    let open = OpenOrder {
        contender: "only".to_owned(),
        address: address.clone(),
        user: credentials.user.clone(),
        password: env::var("DBDUEL_TEST_PASSWORD").unwrap_or_default(),
        database: DATABASE.to_owned(),
        workload: PlannedWorkload {
            name: workload.name().to_owned(),
            parameters: parameters.clone(),
        },
        clients: number("DBDUEL_BENCH_CLIENTS", 16),
        retries: 10,
        tls: TlsMode::Off,
        connect_s: 60.0,
    };
    let seconds = number("DBDUEL_BENCH_SECONDS", 30);
    print(&run(open.clone(), f64::from(seconds)));
    let found = peers::found();
    if !found.is_empty() {
        assert!(
            open.password.is_empty(),
            "other programs take passwords in the command line only; use an account without"
        );
        let port = server.query("SELECT @@port").unwrap().text(0, 0).unwrap();
        let access = Access {
            port: port.parse().unwrap(),
            user: open.user.clone(),
            warehouses: number("DBDUEL_BENCH_WAREHOUSES", 4),
            clients: open.clients,
            seconds,
        };
        compare(&open, report.seconds, &found, &access, &mut server);
    }
    verify(
        workload,
        &parameters,
        &mut connect(Some(DATABASE)),
        Moment::AfterLoad,
    );
    server
        .execute(&format!("DROP DATABASE {DATABASE}"))
        .unwrap();
}

/// Everybody in turn: loading once, driving several times.
fn compare(
    open: &OpenOrder,
    filled_s: f64,
    found: &[Peer],
    access: &Access,
    server: &mut Connection,
) {
    for peer in found {
        let seconds = peer.load(access, server);
        println!(
            "{}: loaded in {seconds:.1} s, {:.1} times ours",
            peer.name(),
            seconds / filled_s
        );
    }
    let open = OpenOrder {
        address: Address::parse_with_user(&format!("tcp://127.0.0.1:{}", access.port))
            .unwrap()
            .0,
        ..open.clone()
    };
    for round in 1..=number("DBDUEL_BENCH_ROUNDS", 3) {
        let ours = run(open.clone(), f64::from(access.seconds));
        let ended: u64 = ours.classes.iter().map(|class| class.ok).sum();
        let own_us = 1e6 * (ours.cpu_user_s + ours.cpu_system_s) / ended as f64;
        println!(
            "round {round}: dbduel {own_us:.0} µs of client CPU per transaction, NOPM {:.0}",
            ours.classes[0].ok as f64 * 60.0 / ours.measured_s
        );
        for peer in found {
            let drive = peer.drive(access);
            let us = 1e6 * drive.cpu_s / drive.transactions as f64;
            println!(
                "round {round}: {} {us:.0} µs, NOPM {:.0}; ours is {:.2} of it",
                peer.name(),
                drive.new_orders_per_minute,
                own_us / us
            );
        }
    }
    for peer in found {
        server
            .execute(&format!("DROP DATABASE {}", peer.database()))
            .unwrap();
    }
}

fn verify(
    workload: &dyn Workload,
    parameters: &Parameters,
    connection: &mut Connection,
    moment: Moment,
) {
    let verification = workload.verify(parameters, connection, moment).unwrap();
    let seconds: f64 = verification
        .conditions
        .iter()
        .map(|condition| condition.seconds)
        .sum();
    println!(
        "{moment:?}: {} conditions in {seconds:.1} s",
        verification.conditions.len()
    );
    for condition in &verification.conditions {
        let verdict = if condition.holds() {
            "holds"
        } else {
            "VIOLATED"
        };
        let example = condition.example.as_deref().unwrap_or_default();
        println!(
            "  {:<13} {verdict} {:>6.2} s  {} {example}",
            condition.name, condition.seconds, condition.about
        );
    }
    println!("  {:?}", verification.counts);
}

fn run(open: OpenOrder, measured_s: f64) -> SliceAnswer {
    let slice = SliceOrder {
        contender: open.contender.clone(),
        clients: open.clients,
        arrival: Arrival::Closed { think_ms: 0.0 },
        guard_s: 3.0,
        measured_s,
        tick_s: 1.0,
        drain_s: 30.0,
        seed: 1,
    };
    let (order_reader, mut orders) = pipe().unwrap();
    let (answer_reader, answer_writer) = pipe().unwrap();
    let process =
        std::thread::spawn(move || drive(BufReader::new(order_reader), answer_writer, 1, &[]));
    let mut answers = BufReader::new(answer_reader).lines();
    let mut obey = |order: &Order| loop {
        match serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() {
            Answer::Tick(_) => {}
            Answer::Opened { .. } if matches!(order, Order::Open(_)) => return None,
            Answer::Slice(slice) => return Some(slice),
            other => panic!("{other:?}"),
        }
    };
    let mut last = None;
    for order in [Order::Open(open), Order::Slice(slice)] {
        writeln!(orders, "{}", serde_json::to_string(&order).unwrap()).unwrap();
        last = obey(&order);
    }
    drop(orders);
    process.join().unwrap().unwrap();
    last.unwrap()
}

fn print(slice: &SliceAnswer) {
    let ended: u64 = slice
        .classes
        .iter()
        .map(|class| class.ok + class.failed)
        .sum();
    let statements: u64 = slice.classes.iter().map(|class| class.statements).sum();
    for class in &slice.classes {
        let histogram = latency::decode(&class.histogram).unwrap();
        println!(
            "  {:<13} {:>6.2} %  ok {:>7}  failed {}  retries {:>4}  statements {:>5.1}  p50 {:>7.2} ms  p90 {:>7.2} ms  p99 {:>7.2} ms",
            class.class,
            100.0 * class.ok as f64 / ended as f64,
            class.ok,
            class.failed,
            class.retries,
            class.statements as f64 / class.ok.max(1) as f64,
            histogram.value_at_quantile(0.5) as f64 / 1e6,
            histogram.value_at_quantile(0.9) as f64 / 1e6,
            histogram.value_at_quantile(0.99) as f64 / 1e6,
        );
    }
    let (user, system) = (slice.cpu_user_s, slice.cpu_system_s);
    println!(
        "NOPM {:.0} (derived from TPC-C, unaudited, not comparable with published TPC-C results)",
        slice.classes[0].ok as f64 * 60.0 / slice.measured_s
    );
    println!(
        "client CPU per transaction {:.1} µs ({:.1} user), per statement {:.2} µs; {:.1} statements per transaction; errors {:?}",
        1e6 * (user + system) / ended as f64,
        1e6 * user / ended as f64,
        1e6 * (user + system) / statements as f64,
        statements as f64 / ended as f64,
        slice.errors,
    );
}
