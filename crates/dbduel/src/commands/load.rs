//! `dbduel load`: drives one server that runs already, without a contest.
//!
//! The load goes through the load process exactly as in a contest. What it brings is shown, not judged:
//! there is no record and no verdict.

mod outcome;
mod page;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials, TlsMode};
use dbduel_load::fill::{self, FillError, FillWatch, Place};
use dbduel_load::order::{OpenOrder, SliceOrder, Tick};
use dbduel_load::workloads::{self, Workload, parameters};
use dbduel_record::plan::{self, Arrival, Parameters};

use crate::cli;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::interrupt::{self, Interrupted, Urgency};
use crate::lab::drive::{LoadProcess, SliceEnd};
use crate::lab::server::Progress as _;
use outcome::Outcome;

/// Environment variable with the password.
const PASSWORD: &str = "DBDUEL_PASSWORD";
/// What the load process calls the server.
const NAME: &str = "server";
/// Seed of the content of tables: the one of contests, so that both work on the same rows.
const DATASET_SEED: u64 = 1;
/// Parallel connections that fill tables.
const FILL_CONNECTIONS: u32 = 8;
/// Time for filling or dropping tables.
const FILL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// Time for all clients to connect, seconds.
const CONNECT_S: f64 = 60.0;
/// Longest wait for transactions in flight at the end, seconds.
const DRAIN_S: f64 = 30.0;
/// Attempts after the first for a transaction that met a deadlock or a lock timeout.
const RETRIES: u32 = 10;
/// Length of what a live line tells about, seconds.
const TICK_S: f64 = 1.0;
/// How often the filling of tables is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// What is to be done, with nothing left to default. No debug output, because it holds a password.
struct Job {
    address: Address,
    credentials: Credentials,
    tls: TlsMode,
    database: String,
    workload: &'static dyn Workload,
    parameters: Parameters,
    clients: u32,
    arrival: Arrival,
    warm_up_s: f64,
    measured_s: f64,
    threads: u32,
    seed: u64,
}

/// Drives the server and prints what came of it.
///
/// # Errors
/// When an argument makes no sense, or the server cannot be reached, filled or driven.
pub fn load(arguments: &cli::Load) -> Result<Exit> {
    let job = Job::of(arguments)?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let version = job.version()?;
    if arguments.prepare {
        job.prepare()?;
    }
    let driven = job.drive(version);
    // Whatever came of the load; but its own error is the one to report first.
    let cleaned = if arguments.cleanup {
        job.cleanup()
    } else {
        Ok(())
    };
    let outcome = driven?;
    if let Some(path) = &arguments.hlog {
        fs::write(path, outcome.interval_log())
            .with_context(|| format!("could not write the histogram log `{}`", path.display()))?;
    }
    if arguments.json {
        console::print(&(serde_json::to_string_pretty(&outcome.document)? + "\n"))?;
    } else {
        console::print(&page::summary(&outcome.document))?;
    }
    cleaned?;
    if outcome.document.interrupted {
        return Ok(Exit::Interrupted);
    }
    if outcome.document.total.counts.ok == 0 {
        bail!("no transaction was committed; the errors above and the server's log say why");
    }
    Ok(Exit::Done)
}

impl Job {
    fn of(arguments: &cli::Load) -> Result<Self> {
        let (address, user) = Address::parse_with_user(&arguments.server)?;
        let workload = workloads::find(&arguments.workload)?;
        let mut given = Parameters::new();
        for (name, value) in &arguments.set {
            // A later one wins, as everywhere on a command line.
            given.insert(name.replace('-', "_"), value.as_str().into());
        }
        if workload.name() == workloads::script::NAME {
            given
                .entry("threads".to_owned())
                .or_insert_with(|| arguments.clients.into());
        }
        let parameters = parameters::resolve(workload, &given)?;
        let arrival = match (arguments.rate, arguments.arrival) {
            (None, _) => Arrival::Closed {
                think_ms: arguments.think_time.as_secs_f64() * 1e3,
            },
            (Some(per_second), cli::LoadArrival::Constant) => Arrival::Constant { per_second },
            (Some(per_second), cli::LoadArrival::Poisson) => Arrival::Poisson { per_second },
        };
        let user = user.unwrap_or_else(|| "root".to_owned());
        let password = password(arguments.password_file.as_deref())?;
        Ok(Job {
            address,
            credentials: Credentials::new(user, password),
            tls: tls(arguments),
            database: arguments.database.clone(),
            workload,
            parameters,
            clients: arguments.clients,
            arrival,
            warm_up_s: arguments.warm_up.as_secs_f64(),
            measured_s: arguments.duration.as_secs_f64(),
            threads: arguments.threads.unwrap_or_else(default_threads),
            seed: arguments.seed.unwrap_or_else(fresh_seed),
        })
    }

    fn connect(&self) -> Result<Connection> {
        let options = ConnectOptions {
            tls: self.tls.clone(),
            ..ConnectOptions::default()
        };
        Connection::connect(&self.address, &self.credentials, &options).map_err(|error| {
            let is_refused = error.refused().is_some();
            let error = anyhow::Error::from(error);
            if is_refused {
                error.context(format!(
                    "the password is read from --password-file or {PASSWORD}"
                ))
            } else {
                error
            }
        })
    }

    /// What the server says of itself; empty when it does not say.
    fn version(&self) -> Result<String> {
        let answer = self.connect()?.query("SELECT VERSION()")?;
        Ok(answer.text(0, 0).unwrap_or_default())
    }

    fn place(&self) -> Place<'_> {
        Place {
            address: &self.address,
            credentials: &self.credentials,
            database: &self.database,
            connections: FILL_CONNECTIONS,
            deadline: FILL_DEADLINE,
        }
    }

    /// Creates the database and fills the workload's tables.
    fn prepare(&self) -> Result<()> {
        let quoted = self.database.replace('`', "``");
        self.connect()?
            .execute(&format!("CREATE DATABASE IF NOT EXISTS `{quoted}`"))?;
        let console = Console::new();
        console.stage("filling the tables");
        let watch = FillWatch::default();
        let result = std::thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let (place, parameters) = (self.place(), &self.parameters);
                fill::fill(self.workload, parameters, &place, DATASET_SEED, &watch)
            });
            while !filling.is_finished() {
                std::thread::sleep(PAUSE);
                match watch.rows_total.load(Ordering::Relaxed) {
                    0 => {}
                    total => console.advance(watch.rows_done.load(Ordering::Relaxed), Some(total)),
                }
                if interrupt::check().is_err() {
                    watch.cancelled.store(true, Ordering::Relaxed);
                }
            }
            filling.join()
        });
        console.finish();
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let database = &self.database;
        match result {
            Ok(report) => {
                console::complain(&page::filled(&report));
                Ok(())
            }
            Err(FillError::Cancelled) => {
                console::complain(&format!(
                    "filling was interrupted; database `{database}` holds a part of the tables, drop them before the next attempt"
                ));
                Err(Interrupted.into())
            }
            Err(error @ FillError::Exists { .. }) => Err(error)
                .context("could not fill the tables; without --prepare they are used as they are"),
            Err(error) => Err(error).with_context(|| {
                format!("could not fill the tables; database `{database}` may hold a part of them")
            }),
        }
    }

    /// Drops the workload's tables; the database stays.
    fn cleanup(&self) -> Result<()> {
        fill::clear(self.workload, &self.parameters, &self.place())
            .with_context(|| format!("could not drop the tables in database `{}`", self.database))
    }

    /// Connects the clients and drives warm-up and measured part, a line per second.
    fn drive(&self, version: String) -> Result<Outcome> {
        interrupt::check()?;
        let mut process = LoadProcess::start(&plan::LoadProcess {
            threads: self.threads,
            cores: Vec::new(),
            server_cores: Vec::new(),
        })?;
        let workload = plan::Workload {
            name: self.workload.name().to_owned(),
            parameters: self.parameters.clone(),
        };
        process.open(OpenOrder {
            contender: NAME.to_owned(),
            address: self.address.clone(),
            user: self.credentials.user.clone(),
            password: self.credentials.password.clone(),
            tls: self.tls.clone(),
            database: self.database.clone(),
            workload: workload.clone(),
            clients: self.clients,
            retries: RETRIES,
            connect_s: CONNECT_S,
        })?;
        let order = SliceOrder {
            contender: NAME.to_owned(),
            clients: self.clients,
            arrival: self.arrival,
            guard_s: self.warm_up_s,
            measured_s: self.measured_s,
            tick_s: TICK_S,
            drain_s: DRAIN_S,
            seed: self.seed,
        };
        let end = process.slice(order, |tick: &Tick| {
            console::complain(&page::live(tick));
            match interrupt::urgency() {
                Urgency::None => ControlFlow::Continue(()),
                Urgency::Finish | Urgency::Stop => ControlFlow::Break(()),
            }
        })?;
        let answer = match end {
            SliceEnd::Finished(answer) => answer,
            SliceEnd::Lost(_) if interrupt::urgency() == Urgency::Stop => {
                return Err(Interrupted.into());
            }
            SliceEnd::Lost(why) => bail!("the load broke off: {why}"),
        };
        process.close(NAME)?;
        let setup = outcome::Setup {
            server: self.address.to_string(),
            version,
            database: self.database.clone(),
            workload,
            clients: self.clients,
            arrival: self.arrival,
            threads: self.threads,
            warm_up_s: self.warm_up_s,
            seed: self.seed,
        };
        Outcome::of(setup, *answer, interrupt::urgency() != Urgency::None)
    }
}

/// The password: the first line of the file, or else from the environment, or else none.
fn password(file: Option<&Path>) -> Result<String> {
    let Some(file) = file else {
        return Ok(std::env::var(PASSWORD).unwrap_or_default());
    };
    let text = fs::read_to_string(file)
        .with_context(|| format!("could not read the password file `{}`", file.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// How much TLS; the command line sees to it that a mode which needs an authority has one.
fn tls(arguments: &cli::Load) -> TlsMode {
    let ca = arguments.tls_ca.clone().unwrap_or_default();
    match arguments.tls {
        cli::LoadTls::Off => TlsMode::Off,
        cli::LoadTls::Preferred => TlsMode::Preferred,
        cli::LoadTls::Required => TlsMode::Required,
        cli::LoadTls::VerifyCa => TlsMode::VerifyCa { ca },
        cli::LoadTls::VerifyIdentity => TlsMode::VerifyIdentity { ca },
    }
}

/// A quarter of the machine, as in contests: the server may be on it too.
fn default_threads() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(processors / 4).unwrap_or(u32::MAX).max(1)
}

/// A seed that nobody chose. Below 2^53, so that every JSON reader keeps all its digits.
fn fresh_seed() -> u64 {
    let now_us = jiff::Timestamp::now().as_microsecond();
    now_us.unsigned_abs() & ((1 << 53) - 1)
}
