//! Comparison of answers to captured statements, once per record: after all contenders hold equal data and before the first load.
//!
//! No contest depends on this: the record has what was not compared, and why.

use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, SessionStart};
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_machine::random;
use dbduel_record::Record;
use dbduel_record::answers::Answers;
use dbduel_record::event::Event;
use dbduel_record::plan::Parameters;
use dbduel_record::store::ANSWERS;
use dbduel_text::counts;
use dbduel_workloads::OwnData;
use dbduel_workloads::captured::{self, answers};

use super::ContestConfig;
use super::arena::Arena;
use super::backend::ContenderServer;
use super::journal::Journal;

/// Asks every contender, unless the plan skips that, the record has answers, or a load may have changed the data.
///
/// # Errors
/// When a server cannot be frozen or thawed, the record cannot be written, or the user interrupts.
pub(super) fn compare(
    config: &ContestConfig<'_>,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal<'_>,
) -> Result<()> {
    let plan = &config.plan;
    let Some(planned) = plan.workloads().find(|one| one.name == captured::NAME) else {
        return Ok(());
    };
    let is_skipped = planned
        .parameters
        .get(captured::ANSWERS)
        .is_some_and(|word| word == "skip");
    if is_skipped || past.answers.is_some() || is_loaded(past) {
        return Ok(());
    }
    let asked = ask_all(config, &planned.parameters, arena);
    arena.freeze_active()?;
    interrupt::check()?;
    // Not a reason to measure nothing: the report says that answers were not compared.
    let found = asked.unwrap_or_else(|error| Answers {
        because: Some(format!("{error:#}")),
        ..Answers::default()
    });
    let bytes = serde_json::to_vec_pretty(&found)?;
    journal.writer().replace(Path::new(ANSWERS), &bytes)?;
    Ok(())
}

/// True where clients of an earlier start may have changed the data.
fn is_loaded(past: &Record) -> bool {
    let mut events = past.events.iter();
    events.any(|event| {
        matches!(
            event.what,
            Event::WarmedUp { .. } | Event::SliceStarted { .. }
        )
    })
}

fn ask_all(
    config: &ContestConfig<'_>,
    parameters: &Parameters,
    arena: &mut Arena,
) -> Result<Answers> {
    let questions = answers::Questions::of(parameters).map_err(anyhow::Error::msg)?;
    let own_data = dbduel_workloads::find(captured::NAME)?.own_data();
    let own_data = own_data.context("the workload has no account of its own")?;
    let key = key()?;
    let mut all = Vec::new();
    for (number, contender) in config.plan.contenders.iter().enumerate() {
        config.step(&format!(
            "{}: asking {} statements for a comparison of answers",
            contender.name,
            counts::of(questions.count())
        ));
        arena.activate(number)?;
        let resident = arena.resident(number);
        let end = clock::now() + answers::CONTENDER_MAX;
        let mut access = answers::Access {
            connect: &mut || connect(resident, own_data).map_err(|error| format!("{error:#}")),
            is_over: &mut || clock::now() >= end || interrupt::check().is_err(),
            key,
        };
        all.push(answers::ask(&questions, &mut access));
        interrupt::check()?;
    }
    Ok(answers::together(&questions, all))
}

/// A connection of the account that runs the load.
fn connect(resident: &mut ContenderServer, own_data: &dyn OwnData) -> Result<Connection> {
    let (address, credentials) = resident.backend.endpoint()?;
    let options = ConnectOptions {
        dialect: resident.dialect,
        database: Some(resident.database.clone()),
        statement_deadline: answers::STATEMENT_MAX,
        cancel: Cancel::when(interrupt::gives_up),
        session: SessionStart::Captured,
        ..ConnectOptions::default()
    };
    Ok(Connection::connect(
        &address,
        &own_data.account(&credentials),
        &options,
    )?)
}

/// A key that no record has: digests of short values could be guessed with it.
fn key() -> Result<[u8; 32]> {
    let secret = random::secret(32).context("no random key for digests of answers")?;
    Ok(*blake3::hash(secret.as_bytes()).as_bytes())
}
