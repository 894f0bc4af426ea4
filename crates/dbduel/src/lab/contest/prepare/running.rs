//! A contender whose server runs already: visited, and given its data when it has none.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_load::address::Address;
use dbduel_load::blocking::ConnectOptions;
use dbduel_load::workloads::Workload;
use dbduel_record::Record;
use dbduel_record::plan::Contender;

use super::{Origin, is_dataset_known, ready};
use crate::lab::contest::Setting;
use crate::lab::contest::arena::{Place, Resident};
use crate::lab::contest::journal::Journal;
use crate::lab::dataset;
use crate::lab::login::{self, Told};
use crate::lab::server::DATABASE;

/// Logs in and sees that our database is there; a statement may take as long as `statement`.
///
/// # Errors
/// When the server does not answer or does not let us in.
pub fn visit(
    contender: &Contender,
    address: &Address,
    user: Option<&str>,
    statement: Duration,
) -> Result<Resident> {
    let about = || format!("contender `{}`", contender.name);
    let file = contender.password_file.as_deref().map(Path::new);
    let credentials = login::credentials(user, file, Some(&contender.name)).with_context(about)?;
    let options = ConnectOptions {
        statement_deadline: statement,
        ..ConnectOptions::default()
    };
    let mut connection =
        login::connect(address, &credentials, &options, Told::Experiment).with_context(about)?;
    connection.execute(&format!("CREATE DATABASE IF NOT EXISTS `{DATABASE}`"))?;
    let place = Place::Running {
        address: address.clone(),
        credentials,
    };
    Ok(Resident {
        name: contender.name.clone(),
        database: DATABASE.to_owned(),
        place,
    })
}

/// Loads the workload's tables when there are none. Tables that are there are taken as they are; their
/// digest tells whether they are the right ones.
///
/// # Errors
/// When the data cannot be loaded; what was begun is taken away again.
pub fn settle(
    setting: &Setting<'_>,
    past: &Record,
    mut resident: Resident,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<Resident> {
    if is_dataset_known(past, &resident.name) {
        return Ok(resident);
    }
    let begun = Instant::now();
    let is_ours = dataset::is_absent(setting.plan, workload, &mut resident)?;
    let mut load = None;
    if is_ours {
        match dataset::fill(setting.plan, workload, &mut resident, setting.console) {
            Ok(taken) => load = Some(taken),
            Err(error) => {
                // Half a dataset would be taken for a whole one the next time.
                let _ = dataset::clear(setting.plan, workload, &mut resident, setting.console);
                return Err(error);
            }
        }
    }
    let origin = Origin {
        is_restored: !is_ours,
        load,
    };
    ready(setting, &mut resident, workload, origin, begun, journal)?;
    Ok(resident)
}
