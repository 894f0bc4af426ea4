//! Audits the servers of a plan: starts them on empty data, queries them and stops them. No dataset, no clients, no
//! load; leaves no files.

use std::time::Duration;

use anyhow::{Result, bail};
use dbduel_audit::ServerEvidence;
use dbduel_driver::Dialect;
use dbduel_machine::interrupt;
use dbduel_record::plan::Contender;
use dbduel_server::{Meaning, ServerName, orphans};

use super::read_settings;
use crate::contest::ContestConfig;
use crate::contest::arena::run_name;
use crate::contest::backend::{ContenderServer, in_process, sandboxed};
use dbduel_inspect::live;

/// Queries every contender's server, one at a time. `config.record` names the sandboxes and need not exist.
///
/// # Errors
/// When a server cannot be fetched, refuses a setting, does not start or does not answer.
pub fn rehearse(config: &ContestConfig<'_>) -> Result<Vec<ServerEvidence>> {
    let record = std::path::absolute(config.record)?;
    // Sandboxes of a record that is not there are removed at the next start, should this one be killed.
    orphans::note_record(config.home, &run_name(config), &record)?;
    let contenders = config.plan.contenders.iter().enumerate();
    let evidence = contenders
        .map(|(number, contender)| {
            interrupt::check()?;
            ask(config, number, contender)
        })
        .collect();
    let _ = orphans::remove_leftovers(config.home);
    evidence
}

/// Queries one contender's server as [`rehearse`] does, to check that it starts with its settings.
///
/// # Errors
/// As [`rehearse`].
pub fn rehearse_one(config: &ContestConfig<'_>, number: usize) -> Result<ServerEvidence> {
    let record = std::path::absolute(config.record)?;
    orphans::note_record(config.home, &run_name(config), &record)?;
    let evidence = ask(config, number, &config.plan.contenders[number]);
    let _ = orphans::remove_leftovers(config.home);
    evidence
}

/// Lets one contender's server check its settings without starting it, where it is ours. `config.record` need not
/// exist.
///
/// # Errors
/// When the server cannot be fetched or refuses a setting.
pub fn check_settings(config: &ContestConfig<'_>, number: usize) -> Result<()> {
    let contender = &config.plan.contenders[number];
    let name = ServerName::parse(&contender.server)?;
    let is_asked_later = matches!(name.meaning, Meaning::Running(_) | Meaning::InProcess)
        || contender.host.is_some();
    if is_asked_later {
        return Ok(());
    }
    let record = std::path::absolute(config.record)?;
    orphans::note_record(config.home, &run_name(config), &record)?;
    let checked = sandboxed::create(config, number, contender, &name);
    let _ = orphans::remove_leftovers(config.home);
    checked.map(|_| ())
}

fn ask(config: &ContestConfig<'_>, number: usize, contender: &Contender) -> Result<ServerEvidence> {
    let name = ServerName::parse(&contender.server)?;
    if let Meaning::Running(address) = &name.meaning {
        return live::of_contender(contender, address, &config.plan);
    }
    if let Some(host) = &contender.host {
        bail!(
            "the server of `{}` is on another machine ({host}) and is audited when its contest begins; remove `host` to audit it here",
            contender.name
        );
    }
    if matches!(name.meaning, Meaning::InProcess) {
        let file = in_process::create(config, number, contender)?;
        file.make()?;
        let mut resident = ContenderServer::of_ours(contender, Dialect::Sqlite, Box::new(file));
        let evidence = answers(config, &mut resident);
        leave(config, resident)?;
        let mut evidence = evidence?;
        evidence.source = format!("{}, opened for the audit", contender.server);
        return Ok(evidence);
    }
    // What the server remarks on its settings shows in what it made of them.
    let (sandbox, _) = sandboxed::create(config, number, contender, &name)?;
    let mut resident = sandboxed::start_empty(config, contender, sandbox)?;
    let evidence = answers(config, &mut resident);
    leave(config, resident)?;
    let mut evidence = evidence?;
    evidence.source = format!("{}, started for the audit", contender.server);
    Ok(evidence)
}

fn answers(config: &ContestConfig<'_>, resident: &mut ContenderServer) -> Result<ServerEvidence> {
    let deadline = Duration::from_secs_f64(config.plan.limits.statement_s);
    let mut connection = resident.connect(deadline)?;
    let (address, _) = resident.backend.endpoint()?;
    let mut evidence = live::evidence(&resident.name, &mut connection)?;
    evidence.connection.transport = Some(live::transport(&address));
    evidence.build = Some(read_settings::describe(resident, &mut connection));
    if let Some(texts) = resident.backend.texts()? {
        evidence.error_log = Some(String::from_utf8_lossy(&texts.log).into_owned());
    }
    Ok(evidence)
}

/// Stops the server and removes its files.
fn leave(config: &ContestConfig<'_>, mut resident: ContenderServer) -> Result<()> {
    let stage = format!("{}: stopping", resident.name);
    config.step(&stage);
    resident.backend.stop(&config.plan.limits)?;
    resident.backend.remove()
}
