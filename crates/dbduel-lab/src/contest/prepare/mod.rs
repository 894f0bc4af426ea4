//! Preparation: every contender's server with its data in place, started, audited, and frozen.

mod check_settings;
mod data;
mod fairness;
mod prepared_statements;
mod print_plan;
mod read_settings;
mod session;

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use dbduel_audit::ServerEvidence;
use dbduel_experiment::EXPERIMENT_BYTES_MAX;
use dbduel_experiment::document::{Trouble, Troubles};
use dbduel_machine::interrupt;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::foreign::read_text;
use dbduel_record::{Record, RecordError};
use dbduel_server::{Meaning, ServerName, runs_in_process};
use dbduel_workloads::Workload;

use super::ContestConfig;
use super::arena::Arena;
use super::backend::{ContenderServer, in_process, running};
use super::durability;
use super::journal::Journal;
use crate::server_host::ServerHosts;

pub use check_settings::{check_settings, rehearse, rehearse_one};
pub use data::{Content, Origin, is_dataset_known, ready};
pub use fairness::{NotComparable, check as check_fairness};
pub use session::keep_sessions;

/// Prepares all contenders of the plan: first all checks that are quick, then the slow steps, one contender after the
/// other. Returns the servers' evidence in plan order.
/// # Errors
/// When a server cannot be fetched, refuses a setting, does not start, or its data cannot be loaded, or
/// when contenders hold different data.
pub fn prepare(
    config: &ContestConfig<'_>,
    hosts: &ServerHosts,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal<'_>,
) -> Result<Vec<ServerEvidence>> {
    let plan = &config.plan;
    let workload = dbduel_workloads::find(&plan.workload.name)?;
    let mut residents = Vec::new();
    let mut connections = Vec::new();
    for (number, contender) in plan.contenders.iter().enumerate() {
        interrupt::check()?;
        let name = ServerName::parse(&contender.server)?;
        if let Meaning::Running(address) = &name.meaning {
            let statement = Duration::from_secs_f64(plan.limits.statement_s);
            let (resident, connection) = running::visit(contender, address, statement)?;
            connections.push((contender, connection));
            residents.push(resident);
            continue;
        }
        let (resident, remarks) = config.provider.server(config, hosts, number)?;
        for remark in remarks {
            journal.notice(remark)?;
        }
        residents.push(resident);
    }
    let in_process: Vec<&str> = plan
        .contenders
        .iter()
        .filter(|contender| runs_in_process(&contender.server))
        .map(|contender| contender.name.as_str())
        .collect();
    in_process::announce(&in_process, journal)?;
    running::check_distinct(config, &mut connections)?;
    prepared_statements::check(config, &residents, &mut connections, journal)?;
    drop(connections);
    print_plan::announce(config, past, workload, &mut residents)?;
    let mut evidence = Vec::new();
    let mut restarts = 0;
    for (number, resident) in residents.into_iter().enumerate() {
        let placed = place(config, past, number, resident, workload, journal);
        let (resident, answers) = placed.or_else(|failure| {
            place_again(
                config,
                hosts,
                number,
                failure,
                workload,
                journal,
                &mut restarts,
            )
        })?;
        evidence.push(answers);
        arena.add(resident)?;
    }
    data::compare_digests(&Record::open(config.record)?)?;
    Ok(evidence)
}

/// Starts a contender's server on its data and queries it.
///
/// # Errors
/// [`ServerEnded`] when the server ended by itself meanwhile.
fn place(
    config: &ContestConfig<'_>,
    past: &Record,
    number: usize,
    mut resident: ContenderServer,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
) -> Result<(ContenderServer, ServerEvidence)> {
    interrupt::check()?;
    let contender = &config.plan.contenders[number];
    let content = resident.backend.start_on_data(config, past, contender)?;
    let is_fresh = matches!(content, Some(Content::Fresh { .. }));
    let settle = |resident: &mut ContenderServer| {
        match content {
            Some(content) => {
                data::settle(config, contender, resident, content, workload, journal)?;
            }
            None => running::settle(config, past, resident, workload, journal)?,
        }
        // Data that were put back lack all commits of the log.
        if !is_fresh && data::is_dataset_known(past, &contender.name) {
            // However the last start ended, its servers may have ended with it.
            let log = past.commits_of(&contender.name);
            durability::compare_quietly(config, resident, &log, journal)?;
        }
        read_settings::interview(config, past, resident, workload, journal)
    };
    match settle(&mut resident) {
        Ok(answers) => Ok((resident, answers)),
        Err(failure) => Err(match resident.ended_by_itself() {
            Some(how) => failure.context(ServerEnded { how }),
            None => failure,
        }),
    }
}

/// Retries a contender whose server ended during its preparation, from the beginning unless its data were complete.
///
/// # Errors
/// `failure` when the server did not end by itself, or the plan's restarts are used up.
fn place_again(
    config: &ContestConfig<'_>,
    hosts: &ServerHosts,
    number: usize,
    mut failure: anyhow::Error,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
    restarts: &mut u32,
) -> Result<(ContenderServer, ServerEvidence)> {
    let contender = &config.plan.contenders[number];
    while let Some(ServerEnded { how }) = failure.downcast_ref()
        && *restarts < config.plan.limits.server_restarts
        && !failure.is::<RecordError>()
    {
        interrupt::check()?;
        *restarts += 1;
        config.remark(&format!(
            "{}: its server ended by itself ({how}); preparing it again",
            contender.name
        ));
        journal.notice(Notice::new(
            "prepare.repeated",
            Severity::Note,
            &[&contender.name],
            format!(
                "The server of `{}` ended during preparation ({how}) and was prepared again",
                contender.name
            ),
            "find the cause in its log and in the kernel log, which names processes killed for lack of memory",
        ))?;
        let past = Record::open(config.record)?;
        let (resident, _) = config.provider.server(config, hosts, number)?;
        match place(config, &past, number, resident, workload, journal) {
            Ok(placed) => return Ok(placed),
            Err(again) => failure = again,
        }
    }
    Err(failure)
}

/// A contender's server ended by itself during preparation.
#[derive(Debug, thiserror::Error)]
#[error("the server ended by itself ({how})")]
struct ServerEnded {
    how: String,
}

/// An error at a place of the experiment; `None` without the place or the text.
pub fn trouble(
    config: &ContestConfig<'_>,
    span: Option<Range<usize>>,
    message: &str,
) -> Option<Troubles> {
    let text = read_text(config.experiment_path, EXPERIMENT_BYTES_MAX).unwrap_or_default();
    let span = span.filter(|span| span.end <= text.len() && !text.is_empty())?;
    Some(Troubles {
        path: config.experiment_path.to_owned(),
        list: vec![Trouble::at(&text, span.start, message.to_owned())],
    })
}
