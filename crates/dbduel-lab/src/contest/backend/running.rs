//! A contender whose server runs already. It gets the workload's data when it has none.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use dbduel_driver::address::{Address, ServerAddress};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::database::create_database;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect};
use dbduel_experiment::expand::same_server;
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_machine::random::secret;
use dbduel_record::Record;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Limits, Plan};
use dbduel_server::{Build, DATABASE};
use dbduel_workloads::Workload;

use super::super::journal::Journal;
use super::super::prepare::{Content, Origin, is_dataset_known, ready, trouble};
use super::{Backend, ContenderServer, ServerTexts};
use crate::contest::ContestConfig;
use crate::dataset;
use dbduel_inspect::facts::scalar;
use dbduel_inspect::login::{self, PasswordSource};

/// A running server that we do not start, freeze or stop.
pub struct Running {
    address: Address,
    /// Login.
    credentials: Credentials,
}

impl Backend for Running {
    fn start_on_data(
        &mut self,
        _config: &ContestConfig<'_>,
        _past: &Record,
        _contender: &Contender,
    ) -> Result<Option<Content>> {
        Ok(None)
    }

    fn snapshot_key(&self, _contender: &Contender, _plan: &Plan) -> Option<String> {
        None
    }

    fn keep_data(
        &mut self,
        _config: &ContestConfig<'_>,
        _contender: &Contender,
        _load: LoadTime,
    ) -> Result<()> {
        Ok(())
    }

    fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        Ok((self.address.clone(), self.credentials.clone()))
    }

    fn is_ours(&self) -> bool {
        false
    }

    fn build(&self) -> Option<&Build> {
        None
    }

    fn origin(&self) -> String {
        self.address.to_string()
    }

    fn ready_after_s(&self) -> Option<f64> {
        None
    }

    fn texts(&mut self) -> Result<Option<ServerTexts>> {
        Ok(None)
    }

    fn sizes(&mut self) -> Result<Option<FileSizes>> {
        Ok(None)
    }

    fn log_place(&self) -> Option<String> {
        let is_file = matches!(self.address, Address::File { .. });
        (!is_file).then(|| format!("on the machine of `{}`", self.address))
    }

    fn stop(&mut self, _limits: &Limits) -> Result<()> {
        Ok(())
    }

    fn restart(&mut self, _limits: &Limits) -> Result<f64> {
        bail!("dbduel did not start this server and cannot restart it")
    }

    fn remove(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Logs in and checks that our database exists. `statement` limits each statement. Also returns the connection.
///
/// # Errors
/// When the server does not answer or refuses the connection.
pub fn visit(
    contender: &Contender,
    address: &ServerAddress,
    statement: Duration,
) -> Result<(ContenderServer, Connection)> {
    let about = || format!("contender `{}`", contender.name);
    let file = contender.password_file.as_deref().map(Path::new);
    let credentials =
        login::credentials(address, file, Some(&contender.name)).with_context(about)?;
    let options = ConnectOptions {
        dialect: address.dialect,
        database: login::any_database(address.dialect),
        statement_deadline: statement,
        cancel: Cancel::when(interrupt::gives_up),
        ..ConnectOptions::default()
    };
    let mut connection = login::connect(
        &address.place,
        &credentials,
        &options,
        PasswordSource::Experiment,
    )
    .with_context(about)?;
    create_database(&mut connection, DATABASE).with_context(about)?;
    let backend = Box::new(Running {
        address: address.place.clone(),
        credentials,
    });
    let resident = ContenderServer::of_ours(contender, address.dialect, backend);
    Ok((resident, connection))
}

/// Refuses two addresses of the same running server: each contender would work on the other's data. The second of two
/// connections to one server sees the user-level lock of the first. A server that does not permit such locks counts as
/// distinct.
///
/// # Errors
/// At the experiment's line of the second address.
pub fn check_distinct(
    config: &ContestConfig<'_>,
    connections: &mut [(&Contender, Connection)],
) -> Result<()> {
    for first in 0..connections.len() {
        let Some((one, others)) = connections[first..].split_first_mut() else {
            break;
        };
        let dialect = one.1.dialect();
        // A file has one path.
        let Some(Lock {
            take,
            owner: asked,
            taken,
        }) = Lock::new(dialect)?
        else {
            continue;
        };
        if scalar(&mut one.1, &take).as_deref() != Some(taken) {
            continue;
        }
        let owner = one.1.id().to_string();
        let same = others.iter_mut().position(|(_, other)| {
            other.dialect() == dialect && scalar(other, &asked).as_ref() == Some(&owner)
        });
        if let Some(same) = same {
            let other = others[same].0;
            let message = same_server(&one.0.name, &other.name);
            let written = config.experiment.contenders.iter();
            let written = written
                .clone()
                .find(|written| written.name.value == other.name);
            let span = written.map(dbduel_experiment::Contender::server_span);
            return Err(match trouble(config, span, &message) {
                Some(trouble) => trouble.into(),
                None => anyhow!(message),
            });
        }
    }
    Ok(())
}

/// A lock that all connections to one server see.
struct Lock {
    /// The statement that takes it.
    take: String,
    /// Its answer when the lock is taken.
    taken: &'static str,
    /// The query that finds the connection that holds it.
    owner: String,
}

impl Lock {
    /// A lock with a unique name; `None` where there is no server.
    fn new(dialect: Dialect) -> Result<Option<Self>> {
        Ok(Some(match dialect {
            Dialect::Sqlite => return Ok(None),
            Dialect::MySql => {
                let name = format!("dbduel-{}", secret(12)?);
                Lock {
                    take: format!("SELECT GET_LOCK('{name}', 0)"),
                    taken: "1",
                    owner: format!("SELECT IS_USED_LOCK('{name}')"),
                }
            }
            Dialect::PostgreSql => {
                // Seven bytes, so that the number has no sign.
                let number = u64::from_str_radix(&secret(7)?, 16)?;
                Lock {
                    take: format!("SELECT pg_try_advisory_lock({number})"),
                    taken: "t",
                    owner: format!(
                        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = {} AND objid::bigint = {}",
                        number >> 32,
                        number & 0xffff_ffff
                    ),
                }
            }
        }))
    }
}

/// Loads the workload's tables when there are none. Existing tables are taken as they are; their digest shows whether
/// they are the right ones.
///
/// # Errors
/// When the data cannot be loaded; a partial load is removed.
pub fn settle(
    config: &ContestConfig<'_>,
    past: &Record,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
) -> Result<()> {
    if is_dataset_known(past, &resident.name) {
        return Ok(());
    }
    let begun = clock::now();
    let is_ours = dataset::is_absent(&config.plan, workload, resident)?;
    let mut load = None;
    if is_ours {
        match dataset::fill(&config.plan, workload, resident, config.console) {
            Ok(taken) => load = Some(taken),
            Err(error) => {
                // Half a dataset would be taken for a whole one the next time.
                let _ = dataset::clear(&config.plan, workload, resident, config.console);
                return Err(error);
            }
        }
    }
    let origin = Origin {
        is_restored: !is_ours,
        remarks: load
            .iter()
            .flat_map(|load: &LoadTime| load.remarks.clone())
            .collect(),
        load,
    };
    ready(config, resident, workload, origin, begun, journal)
}
