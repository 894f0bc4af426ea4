//! A workload with a database of its own on a server.

use std::io::{BufRead, BufReader, Write, pipe};
use std::time::Duration;

use dbduel_record::plan::{Arrival, Parameters, Workload as PlannedWorkload};
use serde_json::Value;

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_load::drive::drive;
use dbduel_load::order::{Answer, OpenOrder, Order, SliceAnswer, SliceOrder};
use dbduel_workloads::fill::{Digest, FillError, FillWatch, Place, digest, fill};
use dbduel_workloads::{Moment, Verification, VerifyError, Workload, find, parameters::resolve};

use super::server::Server;

const DEADLINE: Duration = Duration::from_secs(600);

/// A server that tests of workloads run on, whatever it speaks.
pub trait WorkloadServer {
    fn dialect(&self) -> Dialect;
    fn address(&self) -> Address;
    fn credentials(&self) -> Credentials;
}

impl WorkloadServer for Server {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn address(&self) -> Address {
        self.unix()
    }

    fn credentials(&self) -> Credentials {
        Server::credentials(self)
    }
}

/// A database, empty at first and dropped at the end.
pub struct Lab {
    dialect: Dialect,
    address: Address,
    credentials: Credentials,
    pub database: String,
    pub workload: &'static dyn Workload,
    pub parameters: Parameters,
}

impl Lab {
    pub fn new(
        server: &impl WorkloadServer,
        workload: &str,
        database: &str,
        given: &[(&str, Value)],
    ) -> Self {
        let workload = find(workload).unwrap();
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let lab = Lab {
            dialect: server.dialect(),
            address: server.address(),
            credentials: server.credentials(),
            database: database.to_owned(),
            workload,
            parameters: resolve(workload, &given).unwrap(),
        };
        lab.drop_database();
        lab.connect(None)
            .execute(&format!("CREATE DATABASE {database}"))
            .unwrap();
        lab
    }

    pub fn connect(&self, database: Option<&str>) -> Connection {
        let general = match self.dialect {
            Dialect::MySql | Dialect::Sqlite => None,
            Dialect::PostgreSql => Some("postgres"),
        };
        let options = ConnectOptions {
            dialect: self.dialect,
            statement_deadline: DEADLINE,
            database: database.or(general).map(str::to_owned),
            ..ConnectOptions::default()
        };
        Connection::connect(&self.address, &self.credentials, &options).unwrap()
    }

    fn drop_database(&self) {
        self.connect(None)
            .execute(&format!("DROP DATABASE IF EXISTS {}", self.database))
            .unwrap();
    }

    pub fn query(&self, sql: &str) -> Connection {
        let mut connection = self.connect(Some(&self.database));
        connection.execute(sql).unwrap();
        connection
    }

    pub fn place(&self) -> Place<'_> {
        Place {
            dialect: self.dialect,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: &self.database,
            connections: 4,
            deadline: DEADLINE,
        }
    }

    pub fn fill(&self) -> Result<(), FillError> {
        fill(
            self.workload,
            &self.parameters,
            &self.place(),
            42,
            &FillWatch::default(),
        )
        .map(|_| ())
    }

    pub fn digest(&self) -> Digest {
        let watch = FillWatch::default();
        digest(self.workload, &self.parameters, &self.place(), &watch).unwrap()
    }

    pub fn verify(&self, moment: Moment) -> Result<Verification, VerifyError> {
        self.workload.verify(
            &self.parameters,
            &mut self.connect(Some(&self.database)),
            moment,
        )
    }

    #[track_caller]
    pub fn verify_all(&self, moment: Moment, conditions: usize) -> Verification {
        let verification = self.verify(moment).unwrap();
        assert_eq!(verification.conditions.len(), conditions);
        assert!(verification.holds(), "{:#?}", verification.conditions);
        verification
    }

    /// Drives one slice after half a second of load; the answer is the last one.
    pub fn slice(&self, clients: u32, measured_s: f64) -> Answer {
        self.slice_after(0.5, clients, measured_s)
    }

    /// Drives one slice, without load before it.
    pub fn run_at_once(&self, clients: u32, measured_s: f64) -> SliceAnswer {
        match self.slice_after(0.0, clients, measured_s) {
            Answer::Slice(slice) => *slice,
            other => panic!("{other:?}"),
        }
    }

    /// Drives slices until their sum holds what is wanted, however busy the machine is.
    #[track_caller]
    pub fn run_until(
        &self,
        clients: u32,
        measured_s: f64,
        what: &str,
        is_enough: impl Fn(&SliceAnswer) -> bool,
    ) -> SliceAnswer {
        let mut sum = self.run(clients, measured_s);
        for _ in 0..30 {
            if is_enough(&sum) {
                return sum;
            }
            sum.append(self.run(clients, measured_s)).unwrap();
        }
        panic!("no {what}: {sum:?}");
    }

    /// Drives short slices until one has committed something, however busy the machine is.
    pub fn run_until_committed(&self, clients: u32) -> SliceAnswer {
        let mut slice = self.run_at_once(clients, 0.1);
        for _ in 0..100 {
            if slice.classes[0].counts.ok > 0 {
                break;
            }
            slice = self.run_at_once(clients, 0.5);
        }
        assert!(slice.classes[0].counts.ok > 0, "{slice:?}");
        assert!(slice.errors.is_empty(), "{:?}", slice.errors);
        slice
    }

    fn slice_after(&self, guard_s: f64, clients: u32, measured_s: f64) -> Answer {
        let (order_reader, mut orders) = pipe().unwrap();
        let (answer_reader, answer_writer) = pipe().unwrap();
        let process =
            std::thread::spawn(move || drive(BufReader::new(order_reader), answer_writer, 1, &[]));
        let mut answers = BufReader::new(answer_reader).lines();
        let open = Order::Open(OpenOrder {
            dialect: self.dialect,
            contender: "only".to_owned(),
            address: self.address.clone(),
            user: self.credentials.user.clone(),
            password: self.credentials.password.clone(),
            database: self.database.clone(),
            workload: PlannedWorkload {
                name: self.workload.name().to_owned(),
                parameters: self.parameters.clone(),
            },
            clients,
            retries: 10,
            tls: TlsMode::Off,
            connect_s: 30.0,
        });
        let slice = Order::Slice(SliceOrder {
            contender: "only".to_owned(),
            clients,
            arrival: Arrival::Closed { think_ms: 0.0 },
            guard_s,
            measured_s,
            tick_s: 0.5,
            drain_s: 10.0,
            until_halted: false,
            quantum: None,
            seed: 7,
        });
        let mut last = None;
        for order in [open, slice] {
            writeln!(orders, "{}", serde_json::to_string(&order).unwrap()).unwrap();
            let answer = answers
                .by_ref()
                .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
                .find(|answer| !matches!(answer, Answer::Begun { .. } | Answer::Tick(_)));
            let opened = matches!(answer, Some(Answer::Opened { .. }));
            last = answer;
            if !opened {
                break;
            }
        }
        drop(orders);
        process.join().unwrap().unwrap();
        last.unwrap()
    }

    pub fn run(&self, clients: u32, measured_s: f64) -> SliceAnswer {
        match self.slice(clients, measured_s) {
            Answer::Slice(slice) => *slice,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drop_database();
        }
    }
}
