//! A workload on a real server for benches: filled, checked, driven, checked again, with what each step costs.

use std::env;
use std::io::{BufRead, BufReader, Write, pipe};
use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::drive::drive;
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder};
use dbduel_record::latency;
use dbduel_record::plan::{Arrival, Parameters, Workload as PlannedWorkload};
use dbduel_workloads::fill::{FillReport, FillWatch, Place, digest, fill};
use dbduel_workloads::{Moment, Workload, find, parameters::resolve};

const DEADLINE: Duration = Duration::from_secs(3600);

/// A number from the environment.
pub fn number(name: &str, default: u32) -> u32 {
    env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Clients that drive the load.
pub fn clients() -> u32 {
    number("DBDUEL_BENCH_CLIENTS", 16)
}

/// Seconds that are measured.
pub fn seconds() -> u32 {
    number("DBDUEL_BENCH_SECONDS", 30)
}

/// A database of its own on the server that the environment names.
pub struct Bench {
    address: Address,
    credentials: Credentials,
    database: String,
    workload: &'static dyn Workload,
    parameters: Parameters,
}

impl Bench {
    /// None, with a word on standard error, when no server is named. `given` is what the bench wants;
    /// `DBDUEL_BENCH_PARAMETERS` may add other parameters.
    pub fn new(workload: &str, given: &[(&str, u32)]) -> Option<Self> {
        let Ok(path) = env::var("DBDUEL_BENCH_SOCKET") else {
            eprintln!("SKIPPED: DBDUEL_BENCH_SOCKET names no server");
            return None;
        };
        let user = env::var("DBDUEL_BENCH_USER").unwrap_or_else(|_| "root".to_owned());
        let more = env::var("DBDUEL_BENCH_PARAMETERS").unwrap_or_default();
        let mut parameters: Parameters = more
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        for &(name, value) in given {
            parameters.insert(name.to_owned(), value.into());
        }
        let workload = find(workload).unwrap();
        let bench = Bench {
            address: Address::Unix { path: path.into() },
            credentials: Credentials::new(
                user,
                env::var("DBDUEL_BENCH_PASSWORD").unwrap_or_default(),
            ),
            database: format!("dbduel_bench_{}", workload.name().replace('-', "_")),
            workload,
            parameters: resolve(workload, &parameters).unwrap(),
        };
        let mut server = bench.connect(None);
        let version = server
            .query("SELECT VERSION()")
            .unwrap()
            .text(0, 0)
            .unwrap();
        println!("server {version}, parameters {given:?} {more}");
        let database = &bench.database;
        server
            .execute(&format!("DROP DATABASE IF EXISTS {database}"))
            .unwrap();
        server
            .execute(&format!("CREATE DATABASE {database}"))
            .unwrap();
        Some(bench)
    }

    /// A connection, to a database or to none.
    pub fn connect(&self, database: Option<&str>) -> Connection {
        let options = ConnectOptions {
            statement_deadline: DEADLINE,
            database: database.map(str::to_owned),
            ..ConnectOptions::default()
        };
        Connection::connect(&self.address, &self.credentials, &options).unwrap()
    }

    /// Fills the tables over so many connections.
    pub fn fill(&self, connections: u32) -> FillReport {
        let place = Place {
            dialect: dbduel_driver::Dialect::MySql,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: &self.database,
            connections,
            deadline: DEADLINE,
        };
        let report = fill(
            self.workload,
            &self.parameters,
            &place,
            1,
            &FillWatch::default(),
        )
        .unwrap();
        let sum = digest(
            self.workload,
            &self.parameters,
            &place,
            &FillWatch::default(),
        )
        .unwrap();
        println!(
            "filled in {:.1} s over {connections} connections: {} rows in {:.1} s, then indexes and statistics in {:.1} s; \
             client CPU {:.2} µs per row; digest {}",
            report.seconds,
            sum.rows,
            report.rows_s,
            report.finish_s,
            1e6 * report.cpu_s / sum.rows as f64,
            sum.hex
        );
        report
    }

    /// Rows of a table.
    #[allow(dead_code, reason = "not every bench counts")]
    pub fn count(&self, table: &str) -> u64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let answer = self.connect(Some(&self.database)).query(&sql).unwrap();
        answer.text(0, 0).unwrap().parse().unwrap()
    }

    /// Looks at the workload's conditions and prints what they say.
    pub fn verify(&self, moment: Moment) {
        let mut connection = self.connect(Some(&self.database));
        let verification = self
            .workload
            .verify(&self.parameters, &mut connection, moment)
            .unwrap();
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

    /// Who logs in.
    #[allow(dead_code, reason = "not every bench compares with other programs")]
    pub fn user(&self) -> &str {
        &self.credentials.user
    }

    /// The password.
    #[allow(dead_code, reason = "not every bench compares with other programs")]
    pub fn password(&self) -> &str {
        &self.credentials.password
    }

    /// Drives the workload from one load thread and prints what came of it.
    pub fn run(&self) -> SliceAnswer {
        let slice = self.drive(&self.address);
        print(&slice);
        slice
    }

    /// Drives the workload from one load thread over this way to the server.
    pub fn drive(&self, address: &Address) -> SliceAnswer {
        self.drive_as(address, self.workload.name(), &self.parameters)
    }

    /// Drives another workload on the tables that are there.
    #[allow(dead_code, reason = "not every bench compares workloads")]
    pub fn drive_on_tables(&self, workload: &str, parameters: &Parameters) -> SliceAnswer {
        self.drive_as(&self.address, workload, parameters)
    }

    fn drive_as(&self, address: &Address, workload: &str, parameters: &Parameters) -> SliceAnswer {
        let open = OpenOrder {
            dialect: dbduel_driver::Dialect::MySql,
            contender: "only".to_owned(),
            address: address.clone(),
            user: self.credentials.user.clone(),
            password: self.credentials.password.clone(),
            database: self.database.clone(),
            workload: PlannedWorkload {
                name: workload.to_owned(),
                parameters: parameters.clone(),
            },
            clients: clients(),
            retries: 10,
            tls: TlsMode::Off,
            connect_s: 60.0,
        };
        drive_slice(open, f64::from(seconds()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let sql = format!("DROP DATABASE {}", self.database);
            self.connect(None).execute(&sql).unwrap();
        }
    }
}

fn drive_slice(open: OpenOrder, measured_s: f64) -> SliceAnswer {
    let slice = SliceOrder {
        contender: open.contender.clone(),
        clients: open.clients,
        arrival: Arrival::Closed { think_ms: 0.0 },
        guard_s: 3.0,
        measured_s,
        tick_s: 1.0,
        drain_s: 30.0,
        until_halted: false,
        quantum: None,
        seed: 1,
    };
    let (order_reader, mut orders) = pipe().unwrap();
    let (answer_reader, answer_writer) = pipe().unwrap();
    let process =
        std::thread::spawn(move || drive(BufReader::new(order_reader), answer_writer, 1, &[]));
    let mut answers = BufReader::new(answer_reader).lines();
    let mut obey = |order: &Order| loop {
        match serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() {
            Answer::Begun { .. } | Answer::Tick(_) => {}
            Answer::Opened { .. } if matches!(order, Order::Open(_)) => return None,
            Answer::Slice(slice) => return Some(*slice),
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
        .map(|class| class.counts.ok + class.counts.failed)
        .sum();
    let statements: u64 = slice
        .classes
        .iter()
        .map(|class| class.counts.statements)
        .sum();
    for class in &slice.classes {
        let histogram = latency::decode(&class.histogram).unwrap();
        println!(
            "  {:<13} {:>6.2} %  ok {:>7}  failed {}  retries {:>4}  statements {:>5.1}  p50 {:>7.2} ms  p90 {:>7.2} ms  p99 {:>7.2} ms",
            class.class,
            100.0 * class.counts.ok as f64 / ended as f64,
            class.counts.ok,
            class.counts.failed,
            class.counts.retries,
            class.counts.statements as f64 / class.counts.ok.max(1) as f64,
            histogram.value_at_quantile(0.5) as f64 / 1e6,
            histogram.value_at_quantile(0.9) as f64 / 1e6,
            histogram.value_at_quantile(0.99) as f64 / 1e6,
        );
    }
    let (user, system) = (slice.cpu_user_s, slice.cpu_system_s);
    println!(
        "client CPU per transaction {:.1} µs ({:.1} user), per statement {:.2} µs; {:.1} statements per transaction; errors {:?}",
        1e6 * (user + system) / ended as f64,
        1e6 * user / ended as f64,
        1e6 * (user + system) / statements as f64,
        statements as f64 / ended as f64,
        slice.errors,
    );
}
