//! Comparison of answers to captured statements, and their plans, once per record: after all contenders hold equal data and before the
//! first load.
//!
//! No contest depends on this: the record has what was not compared, and why.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{ConnectOptions, Connection, SessionStart};
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_machine::random;
use dbduel_record::answers::Answers;
use dbduel_record::event::Event;
use dbduel_record::plan::Parameters;
use dbduel_record::statements::{ContenderStatements, ExplainedStatement, LevelStatements};
use dbduel_record::store::{ANSWERS, STATEMENTS};
use dbduel_record::{Plan, Record};
use dbduel_replay::answers;
use dbduel_text::counts;
use dbduel_workloads::OwnData;
use dbduel_workloads::captured;

use super::ContestConfig;
use super::arena::Arena;
use super::backend::ContenderServer;
use super::journal::Journal;

/// Asks every contender for answers, unless the plan skips that, and for plans, which it adds to `statements`; neither where the record
/// has them, or a load may have changed the data.
///
/// # Errors
/// When a server cannot be frozen or thawed, the record cannot be written, or the user interrupts.
pub(super) fn compare(
    config: &ContestConfig<'_>,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal<'_>,
    statements: &mut [ContenderStatements],
) -> Result<()> {
    let plan = &config.plan;
    let Some(planned) = plan.workloads().find(|one| one.name == captured::NAME) else {
        return Ok(());
    };
    let is_skipped = planned
        .parameters
        .get(captured::ANSWERS)
        .is_some_and(|word| word == "skip");
    let levels = explained_levels(plan);
    let has_plans = |own: &ContenderStatements| levels.iter().any(|&level| own.at(level).is_some());
    let wanted = Wanted {
        answers: !is_skipped && past.answers.is_none(),
        plans: !statements.iter().any(has_plans),
    };
    if !(wanted.answers || wanted.plans) || is_loaded(past) {
        return Ok(());
    }
    let asked = ask_all(config, &planned.parameters, arena, wanted);
    arena.freeze_active()?;
    interrupt::check()?;
    // Not a reason to measure nothing: the report says that answers were not compared, and has no plans.
    let (answers, plans) = asked.unwrap_or_else(|error| {
        let failed = Answers {
            because: Some(format!("{error:#}")),
            ..Answers::default()
        };
        (wanted.answers.then_some(failed), Vec::new())
    });
    let writer = journal.writer();
    if let Some(answers) = answers {
        let bytes = serde_json::to_vec_pretty(&answers)?;
        writer.replace(Path::new(ANSWERS), &bytes)?;
    }
    for ((contender, own), plans) in plan.contenders.iter().zip(statements).zip(plans) {
        own.levels
            .extend(levels.iter().map(|&level| LevelStatements {
                level,
                statements: plans.clone(),
                because: None,
            }));
        writer.contender_json(&contender.name, STATEMENTS, own)?;
    }
    Ok(())
}

/// The levels that have the plans of captured statements: those of a suite with such statements, and otherwise the first one.
fn explained_levels(plan: &Plan) -> Vec<usize> {
    let levels = 0..plan.levels.len();
    let captured = levels.filter(|&level| plan.workload_of_level(level).name == captured::NAME);
    match plan.suite {
        Some(_) => captured.collect(),
        None => captured.take(1).collect(),
    }
}

/// What contenders are asked for.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    answers: bool,
    plans: bool,
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
    wanted: Wanted,
) -> Result<(Option<Answers>, Vec<Vec<ExplainedStatement>>)> {
    let questions = answers::Questions::of(parameters).map_err(anyhow::Error::msg)?;
    let own_data = dbduel_workloads::find(captured::NAME)?.own_data();
    let own_data = own_data.context("the workload has no account of its own")?;
    let key = key()?;
    let (mut all, mut plans) = (Vec::new(), Vec::new());
    for (number, contender) in config.plan.contenders.iter().enumerate() {
        config.step(&format!(
            "{}: asking {} statements for a comparison of answers and plans",
            contender.name,
            counts::of(questions.count())
        ));
        arena.activate(number)?;
        let resident = arena.resident(number);
        let mut connect = || connect(resident, own_data).map_err(|error| format!("{error:#}"));
        if wanted.answers {
            let mut is_over = until(answers::CONTENDER_MAX);
            let mut access = answers::Access {
                connect: &mut connect,
                is_over: &mut is_over,
                key,
            };
            all.push(answers::ask(&questions, &mut access));
        }
        if wanted.plans {
            let mut is_over = until(answers::CONTENDER_MAX);
            let mut access = answers::Access {
                connect: &mut connect,
                is_over: &mut is_over,
                key,
            };
            plans.push(answers::explain(&questions, &mut access));
        }
        interrupt::check()?;
    }
    let found = wanted.answers.then(|| answers::together(&questions, all));
    Ok((found, answers::plans_of(&questions, &plans)))
}

/// True once a time has passed or the user interrupts.
fn until(limit: Duration) -> impl FnMut() -> bool {
    let end = clock::now() + limit;
    move || clock::now() >= end || interrupt::check().is_err()
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
