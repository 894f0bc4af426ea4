//! `dbduel load`: drives one server that runs already, without a contest.
//!
//! The load goes through the load process exactly as in a contest. Results are shown but not judged: there is no record
//! and no verdict.

mod arguments;
mod outcome;
mod page;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::database;
use dbduel_driver::executor::policy::threads_among_others;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_experiment::expand::{DATASET_SEED, TRANSACTION_RETRIES};
use dbduel_inspect::login;
use dbduel_lab::busy_poll;
use dbduel_lab::contest::now_ms;
use dbduel_lab::dataset::watch_over;
use dbduel_lab::drive::{LoadProcess, SliceEnd};
use dbduel_lab::forecast::{self, Need};
use dbduel_load::order::{OpenOrder, SliceOrder, Tick};
use dbduel_lua::interpretation;
use dbduel_machine::host;
use dbduel_machine::interrupt::{self, Interrupted, Urgency};
use dbduel_machine::random::fresh_seed;
use dbduel_record::commits::{CommitRange, CommitRow, to_csv};
use dbduel_record::plan::{self, Arrival, LoadLevel, Parameters};
use dbduel_report::words::{count, duration};
use dbduel_workloads::fill::{self, Extent, FillError, FillWatch, Place, RESUME};
use dbduel_workloads::parameters::{self, ScriptAccess};
use dbduel_workloads::{UnusableData, VerifyError, Workload, completion};

use super::connection::{connect, endpoint, tls};
use crate::console::{self, Console};
use crate::exit::Exit;
pub use arguments::Arguments;
use arguments::LoadArrival;
use outcome::Outcome;

/// Name of the server in orders to the load process.
const NAME: &str = "server";
/// Parallel connections that fill tables.
const FILL_CONNECTIONS: u32 = 8;
/// Time for filling or dropping tables.
const FILL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
/// Time for all clients to connect, seconds.
const CONNECT_S: f64 = 60.0;
/// Longest wait for transactions in flight at the end, seconds.
const DRAIN_S: f64 = 30.0;
/// Load before the measured part, unless the user or the workload says otherwise.
const WARM_UP: Duration = Duration::from_secs(5);
/// Length of the interval that a live line covers, seconds.
const TICK_S: f64 = 1.0;

/// A load with every default resolved. No debug output, because it holds a password.
struct Job {
    address: ServerAddress,
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
    busy_poll: Duration,
    seed: u64,
    commits: Option<PathBuf>,
}

/// Drives the server and prints the results.
///
/// # Errors
/// When an argument is invalid, or the server cannot be reached, filled or driven.
pub fn load(arguments: &Arguments) -> Result<Exit> {
    let job = Job::of(arguments)?;
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    if arguments.prepare {
        job.create_file()?;
    }
    let version = job.version()?;
    if arguments.prepare {
        job.prepare()?;
    }
    job.recognise()?;
    interrupt::check()?;
    let measuring = interrupt::begin_measuring();
    let driven = job.drive(version);
    // What the user ended is cleaned up all the same, unless there is another request.
    let _measuring = (interrupt::urgency() != Urgency::None).then_some(measuring);
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
        console::print_json(&outcome.document)?;
    } else {
        console::print(&page::summary(&outcome.document))?;
    }
    if let Some(why) = outcome.document.lost {
        bail!(
            "the server was lost after {} of the measured part: {why}; the figures cover the time \
             before",
            duration(outcome.document.measured_s)
        );
    }
    cleaned?;
    if outcome.document.interrupted {
        return Ok(Exit::Interrupted);
    }
    if outcome.document.total.counts.ok == 0 {
        bail!("no transaction was committed; the errors above and the server's log say why");
    }
    if let [first, ..] = outcome.document.refused.as_slice() {
        let refused = outcome.document.refused.iter().map(|error| error.count);
        bail!(
            "the server refused {} statements of the workload, not because of conflicts between \
             clients ({}: {}); the figures cover the rest. Check that the tables are those of this \
             workload, and read the server's log.",
            count(refused.sum()),
            first.code,
            first.example
        );
    }
    if let Some(why) = outcome.document.too_many_failed() {
        bail!(why);
    }
    Ok(Exit::Done)
}

impl Job {
    fn of(arguments: &Arguments) -> Result<Self> {
        let (address, credentials) = endpoint(&arguments.server)?;
        let workload = dbduel_workloads::find(&arguments.workload)?;
        if workload.name() == dbduel_record::captured::NAME {
            bail!(
                "`{}` does not run on running servers, because its statements change data; run a contest with it (`dbduel run`)",
                workload.name()
            );
        }
        let mut given = Parameters::new();
        for (name, value) in &arguments.set {
            // A later one wins, as everywhere on a command line.
            given.insert(name.replace('-', "_"), value.as_str().into());
        }
        if workload.name() == dbduel_workloads::script::NAME {
            given
                .entry("threads".to_owned())
                .or_insert_with(|| arguments.clients.unwrap_or(1).into());
        }
        let completed = completion::complete(workload, &given, Path::new(""), ScriptAccess::Full)?;
        let parameters = completed.parameters;
        let exactly = workload.clients_exactly(&parameters);
        let exactly = exactly.and_then(|clients| u32::try_from(clients).ok());
        let clients = arguments.clients.or(exactly).unwrap_or(1);
        parameters::check_clients(workload, &parameters, clients)?;
        let warm_up = match arguments.warm_up {
            Some(warm_up) if !warm_up.is_zero() && workload.has_fixed_work(&parameters) => {
                bail!(
                    "this step measures all of its work, so it has no warm-up; leave out --warm-up \
                     {}",
                    duration(warm_up.as_secs_f64())
                )
            }
            Some(warm_up) => warm_up,
            None if workload.has_fixed_work(&parameters) => Duration::ZERO,
            None => WARM_UP,
        };
        let arrival = match (arguments.rate, arguments.arrival) {
            (None, _) => Arrival::Closed {
                think_ms: arguments.think_time.as_secs_f64() * 1e3,
            },
            (Some(per_second), LoadArrival::Constant) => Arrival::Constant { per_second },
            (Some(per_second), LoadArrival::Poisson) => Arrival::Poisson { per_second },
        };
        let busy_clients = match address.place.is_on_this_machine() {
            true => LoadLevel {
                clients,
                arrival,
                cell: None,
            }
            .busy_clients(),
            false => 0,
        };
        let threads = match (arguments.threads, address.dialect.is_in_process()) {
            (Some(threads), _) => threads,
            // A statement holds up its thread.
            (None, true) => clients,
            (None, false) => threads_among_others(host::cpus(), clients, busy_clients),
        };
        Ok(Job {
            address,
            credentials,
            tls: tls(&arguments.tls),
            database: arguments.database.clone(),
            workload,
            parameters,
            clients,
            arrival,
            warm_up_s: warm_up.as_secs_f64(),
            measured_s: arguments.duration.as_secs_f64(),
            threads,
            busy_poll: arguments.busy_poll,
            seed: arguments.seed.unwrap_or_else(fresh_seed),
            commits: arguments.commits.clone(),
        })
    }

    /// Refuses incomplete tables and those of another program, with the reason.
    fn recognise(&self) -> Result<()> {
        // The clients' own error says more about a database that does not exist.
        let Ok(mut connection) = self.connect_to(Some(&self.database)) else {
            return Ok(());
        };
        if fill::is_unfinished(&mut connection)? {
            bail!(
                "a fill of the tables in database `{}` was interrupted; with `--prepare`, {RESUME}",
                self.database
            );
        }
        match self.workload.recognise(&self.parameters, &mut connection) {
            Ok(()) => Ok(()),
            Err(VerifyError::Unusable(why))
                if matches!(why.downcast_ref(), Some(UnusableData::Absent)) =>
            {
                Ok(())
            }
            Err(error) => Err(error).with_context(|| {
                format!("the tables in database `{}` cannot be used", self.database)
            }),
        }
    }

    fn connect(&self) -> Result<Connection> {
        self.connect_to(None)
    }

    fn connect_to(&self, database: Option<&str>) -> Result<Connection> {
        let options = ConnectOptions {
            dialect: self.address.dialect,
            database: database
                .map(str::to_owned)
                .or_else(|| login::any_database(self.address.dialect)),
            tls: self.tls.clone(),
            cancel: Cancel::when(interrupt::gives_up),
            ..ConnectOptions::default()
        };
        connect(&self.address.place, &self.credentials, &options)
    }

    /// Version that the server reports; empty when it reports none.
    fn version(&self) -> Result<String> {
        let mut connection = self.connect()?;
        let product = self.address.dialect.product();
        if self.address.dialect != Dialect::MySql {
            return Ok(format!("{product} {}", connection.server_version()));
        }
        let answer = connection.query("SELECT VERSION()")?;
        Ok(answer.text(0, 0).unwrap_or_default())
    }

    fn place(&self) -> Place<'_> {
        Place {
            dialect: self.address.dialect,
            address: &self.address.place,
            credentials: &self.credentials,
            tls: &self.tls,
            database: &self.database,
            connections: self
                .workload
                .loaders(&self.parameters)
                .unwrap_or(FILL_CONNECTIONS),
            deadline: FILL_DEADLINE,
        }
    }

    /// Creates the file of a SQLite database if it is missing; nothing for servers.
    fn create_file(&self) -> Result<()> {
        let place = &self.address.place;
        database::create_file(place)
            .with_context(|| format!("could not create the file of `{place}`"))
    }

    /// Creates the database and fills the workload's tables.
    fn prepare(&self) -> Result<()> {
        database::create_database(&mut self.connect()?, &self.database)?;
        self.announce()?;
        let console = Console::new();
        let result = watch_over(&console, "filling the tables", |watch| {
            let (place, parameters) = (self.place(), &self.parameters);
            fill::fill(self.workload, parameters, &place, DATASET_SEED, watch)
        });
        console.finish();
        let database = &self.database;
        match result {
            Ok(report) => {
                console::status_line(&page::filled(&report));
                Ok(())
            }
            Err(FillError::Cancelled) => {
                console::status_line(&format!(
                    "the fill of database `{database}` was interrupted; {RESUME}"
                ));
                Err(Interrupted.into())
            }
            Err(error @ FillError::Exists { .. }) => {
                // Tables of another program are no better without --prepare.
                self.recognise()?;
                Err(error).context(
                    "could not fill the tables; without --prepare they are used as they are",
                )
            }
            Err(error) if !error.is_resumable() => Err(error).context("could not fill the tables"),
            Err(error) => Err(error).with_context(|| {
                format!("could not fill the tables of database `{database}`; {RESUME}")
            }),
        }
    }

    /// Prints what filling will take, and refuses it when the disk of a server on this machine is too small.
    fn announce(&self) -> Result<()> {
        let (workload, parameters) = (self.workload, &self.parameters);
        let Some(extent) = Extent::of(workload, parameters) else {
            return Ok(());
        };
        let mut connection = self.connect_to(Some(&self.database))?;
        fill::refuse_if_in_progress(&mut connection, &self.database)?;
        console::status_line(&format!(
            "filling in {}",
            forecast::sentence(extent, parameters)
        ));
        // What an earlier attempt has filled in takes room already.
        if matches!(self.address.place, Address::Tcp { .. })
            || fill::is_unfinished(&mut connection)?
        {
            return Ok(());
        }
        match database::data_directory(&mut connection) {
            Some(data) if data.is_dir() => {
                Need::to_load(extent, parameters, 1).check(&data, workload)
            }
            _ => Ok(()),
        }
    }

    /// Drops the workload's tables; the database stays.
    fn cleanup(&self) -> Result<()> {
        let watch = FillWatch {
            cancel: Cancel::when(interrupt::gives_up),
            ..FillWatch::default()
        };
        fill::clear(self.workload, &self.parameters, &self.place(), &watch)
            .with_context(|| format!("could not drop the tables in database `{}`", self.database))
    }

    /// Connects the clients and drives warm-up and measured part, a line per second.
    fn drive(&self, version: String) -> Result<Outcome> {
        let load = plan::LoadProcess {
            threads: self.threads,
            // Bounded where it is read, far below what overflows.
            busy_poll_us: self.busy_poll.as_micros() as u32,
            cores: Vec::new(),
            server_cores: Vec::new(),
            server_io: None,
        };
        if self.address.place.is_on_this_machine()
            && let Some(claim) = busy_poll::claim(&load, self.clients, &host::processors())
        {
            console::status_line(&format!("{claim} Give fewer --threads."));
        }
        let is_script = self.workload.name() == dbduel_workloads::script::NAME;
        if let Some(claim) = is_script.then(interpretation).flatten() {
            console::status_line(claim);
        }
        let mut process = LoadProcess::start(&load)?;
        let workload = plan::Workload {
            name: self.workload.name().to_owned(),
            parameters: self.parameters.clone(),
        };
        let session = process.open(OpenOrder {
            dialect: self.address.dialect,
            contender: NAME.to_owned(),
            address: self.address.place.clone(),
            user: self.credentials.user.clone(),
            password: self.credentials.password.clone(),
            tls: self.tls.clone(),
            database: self.database.clone(),
            workload: workload.clone(),
            clients: self.clients,
            retries: TRANSACTION_RETRIES,
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
            until_halted: false,
            quantum: None,
            seed: self.seed,
        };
        console::status_line(&page::live_header(self.arrival));
        let mut opens: Option<Instant> = None;
        let ended = process.slice(
            order,
            |at| opens = Some(at),
            |tick: &Tick| {
                console::status_line(&page::live(tick, self.arrival));
                match interrupt::urgency() {
                    Urgency::None => ControlFlow::Continue(()),
                    Urgency::Finish | Urgency::Stop => ControlFlow::Break(()),
                }
            },
        );
        // Most of all when the server crashed.
        if let Some(path) = &self.commits {
            keep_commits(path, process.take_commits())?;
        }
        let (answer, lost) = match ended {
            SliceEnd::Finished(answer) => {
                process.close(NAME)?;
                (answer, None)
            }
            SliceEnd::Lost { .. } if interrupt::urgency() == Urgency::Stop => {
                return Err(Interrupted.into());
            }
            SliceEnd::Lost {
                why,
                counted: Some(answer),
            } => (answer, Some(why)),
            SliceEnd::Lost { why, counted: None } => {
                bail!(
                    "the server was lost {}: {why}",
                    uncounted(opens, Instant::now())
                )
            }
        };
        let setup = outcome::Setup {
            server: self.address.to_string(),
            version,
            tls: session.tls,
            tls_cipher: session.tls_cipher.filter(|cipher| !cipher.is_empty()),
            database: self.database.clone(),
            workload,
            clients: self.clients,
            arrival: self.arrival,
            threads: self.threads,
            busy_poll_us: load.busy_poll_us,
            warm_up_s: self.warm_up_s,
            seed: self.seed,
            disclaimer: self.workload.disclaimer(),
        };
        let interrupted = interrupt::urgency() != Urgency::None;
        Outcome::of(setup, *answer, interrupted, lost)
    }
}

/// When a load without counts was lost, given the instant at which the measured part begins.
fn uncounted(opens: Option<Instant>, now: Instant) -> String {
    let measured = opens.and_then(|opens| now.checked_duration_since(opens));
    match measured {
        Some(measured) => format!(
            "{} into the measured part, and its counts with it",
            duration(measured.as_secs_f64())
        ),
        None => "before the measured part began".to_owned(),
    }
}

/// Writes the durability log.
fn keep_commits(path: &Path, ranges: Vec<CommitRange>) -> Result<()> {
    let at_ms = now_ms();
    let rows: Vec<CommitRow> = ranges
        .into_iter()
        .map(|range| CommitRow::of(at_ms, NAME, range))
        .collect();
    fs::write(path, to_csv(&rows)?)
        .with_context(|| format!("could not write the durability log `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_placed_before_or_within_the_measured_part() {
        let opens = Instant::now();
        let before = "before the measured part began";
        assert_eq!(uncounted(None, opens), before);
        let later = opens + Duration::from_secs(1);
        assert_eq!(uncounted(Some(later), opens), before);
        let said = uncounted(Some(opens), later);
        assert!(said.starts_with("1 s into the measured part"), "{said}");
    }
}
