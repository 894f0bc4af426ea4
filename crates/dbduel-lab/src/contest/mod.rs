//! The contest: resident servers, one active at a time, slices in blocks.
//!
//! [`run_contest`] shows the steps: prove durability where requested, prepare the arena, warm up, measure block by
//! block until every duel is decided or the budget is spent, close. Every event is journalled before it is acted on.

mod answers;
mod arena;
pub mod backend;
pub mod board;
mod client_connections;
mod close;
mod conditions;
mod continuity;
mod drains;
pub mod durability;
mod epoch;
pub mod events;
mod injector;
mod journal;
mod load;
mod measure;
mod observers;
mod phases;
mod pilot;
pub mod prepare;
#[cfg(feature = "crash-test")]
mod prove;
mod provider;
mod quanta;
mod questions;
mod recover;
mod referee;
mod round_trip;
mod script_failure;
mod search;
mod slice;
mod stacks;
mod statements;
mod turn;
mod warm_up;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use dbduel_experiment::document::Troubles;
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_machine::host;
use dbduel_machine::interrupt;
use dbduel_record::event::{EndReason, Event, Notice, Severity};
use dbduel_record::facts::Host;
use dbduel_record::record_set::ResumeCommand;
use dbduel_record::statements::ContenderStatements;
use dbduel_record::store::HOST;
use dbduel_record::{Plan, Record};
use dbduel_server::{Home, orphans};

use super::busy_poll;
use super::coverage;
use super::drive::HostAccess;
use super::interpreted;
use super::server_host::ServerHosts;
use crate::StatusOutput;
use arena::Arena;
pub use arena::run_name;
pub use backend::sandboxed::loaded;
pub use backend::{Backend, ContenderServer, Sandboxed, sandboxed};
use board::Phase;
pub use conditions::facts as condition_facts;
use events::{ContestEvent, Follower, StatusLines};
pub use injector::InjectedTime;
use journal::Journal;
pub use journal::now_ms;
pub use load::Load;
use measure::Progress;
use observers::Observers;
use pilot::SteadySeries;
pub use prepare::{NotComparable, check_settings, rehearse, rehearse_one};
pub use provider::{Machines, Provider};
pub use referee::{ComparisonStanding, DepartureStanding, LevelStanding, Referee};
pub use script_failure::ScriptFails;

/// Inputs of a contest.
#[derive(Debug, Clone)]
pub struct ContestConfig<'a> {
    /// What to do. That of a running contest grows: its pilot chooses turns, its search adds rates.
    pub plan: Arc<Plan>,
    /// The experiment behind the plan, for places in messages and for passwords.
    pub experiment: &'a Experiment,
    /// The experiment file.
    pub experiment_path: &'a Path,
    /// The record's directory; it exists and holds the plan.
    pub record: &'a Path,
    /// Directory of servers, datasets and sandboxes.
    pub home: &'a Home,
    /// Progress of operations that take a while: fetching servers, loading data.
    pub console: &'a dyn StatusOutput,
    /// Followers of the events, in the order in which they are called.
    pub followers: Vec<&'a dyn Follower>,
    /// Keep the sandboxes after the contest.
    pub keep: bool,
    /// Sample the servers' stacks after the last block.
    pub stacks: bool,
    /// Access to the agents of hosts.
    pub host_access: Option<&'a Arc<dyn HostAccess>>,
    /// Source of the load and the servers.
    pub provider: &'a dyn Provider,
}

impl ContestConfig<'_> {
    /// Shows an event to the followers.
    fn emit(&self, event: &ContestEvent<'_>) {
        for follower in &self.followers {
            follower.follow(event);
        }
    }

    /// States something that the journal does not keep.
    fn remark(&self, text: &str) {
        self.emit(&ContestEvent::Remark(text));
    }

    /// A step without measured load begins: a short phrase.
    pub(crate) fn step(&self, what: &str) {
        self.emit(&ContestEvent::StepBegun(what));
    }

    /// The contest's name towards agents.
    fn contest(&self) -> String {
        let contest = self.record.file_name().unwrap_or_default();
        contest.to_string_lossy().into_owned()
    }
}

/// Calls `attempt` with a configuration for starting servers of a plan without a contest. There is no record; its path
/// contains `purpose`, which keeps the sandboxes apart from those of another command.
pub fn without_record<T>(
    purpose: &str,
    home: &Home,
    file: &ExperimentFile<'_>,
    plan: &Plan,
    console: &dyn StatusOutput,
    attempt: impl FnOnce(&ContestConfig<'_>) -> T,
) -> T {
    let name = format!("{purpose}-{}-{}", plan.seed, std::process::id());
    let plan = Arc::new(plan.clone());
    let record = home.root().join(name);
    let lines = StatusLines::new(console, &plan, &record);
    attempt(&ContestConfig {
        plan,
        experiment: file.experiment,
        experiment_path: file.path,
        record: &record,
        home,
        console,
        followers: vec![&lines],
        keep: false,
        stacks: false,
        host_access: None,
        provider: &Machines,
    })
}

/// Runs the contest, or the remainder of a resumed one, until `referee` has enough or the budget is spent.
///
/// # Errors
/// When it cannot be run; the journal then says so too, and the record can be resumed.
pub fn run_contest(config: &ContestConfig<'_>, referee: &dyn Referee) -> Result<EndReason> {
    config.emit(&ContestEvent::Begun { plan: &config.plan });
    let past = Record::open(config.record)?;
    let epoch = past
        .events
        .iter()
        .filter(|event| {
            matches!(
                event.what,
                Event::Started { .. } | Event::EpochStarted { .. }
            )
        })
        .count() as u32;
    let mut journal = Journal::open(config.home.files(), config.record, &config.followers)?;
    journal.event(Event::Started {
        pid: std::process::id(),
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        epoch,
    })?;
    match stage(config, referee, &past, epoch, &mut journal) {
        Ok(reason) => {
            journal.event(Event::Ended { reason })?;
            journal.seal()?;
            Ok(reason)
        }
        // After an interrupt, later failures are its consequence.
        Err(_) if interrupt::check().is_err() => {
            journal.event(Event::Ended {
                reason: EndReason::Interrupted,
            })?;
            journal.seal()?;
            Ok(EndReason::Interrupted)
        }
        Err(error) => {
            // The first error is the one to report, also when the record cannot be written any more.
            let _ = journal.event(Event::Noticed {
                notice: failure(config.record, &error),
            });
            let _ = journal.event(Event::Ended {
                reason: EndReason::Failed,
            });
            let _ = journal.seal();
            // A mistake in the experiment is corrected there, and then makes a new record.
            if error.is::<Troubles>() || error.is::<ScriptFails>() {
                return Err(error);
            }
            let command = ResumeCommand::of(config.record);
            Err(error.context(Stopped(command)))
        }
    }
}

/// The contest could not continue; measured data are safe.
#[derive(Debug, thiserror::Error)]
#[error("the contest stopped; the record keeps all measured slices; resume with `{0}`")]
struct Stopped(ResumeCommand);

/// The contest itself. Dropping the arena stops its servers on every return path.
fn stage<'c>(
    config: &ContestConfig<'c>,
    referee: &'c dyn Referee,
    past: &Record,
    epoch: u32,
    journal: &mut Journal<'c>,
) -> Result<EndReason> {
    #[cfg(feature = "crash-test")]
    prove::prove(config, past, journal)?;
    #[cfg(not(feature = "crash-test"))]
    anyhow::ensure!(
        config.plan.limits.prove.is_none(),
        "`prove` needs power cuts, but this program was built without the feature `crash-test`"
    );
    let record = std::path::absolute(config.record)?;
    orphans::note_record(config.home, &arena::run_name(config), &record)?;
    // A record may have come from another machine.
    for cores in [&config.plan.load.cores, &config.plan.load.server_cores] {
        host::find_processors(cores, &host::processors())
            .context("the plan confines processes to processors that this machine does not have")?;
    }
    let notices = [
        busy_poll::doubt(&config.plan),
        interpreted::doubt(&config.plan),
        coverage::note(&config.plan)?,
    ];
    for notice in notices.into_iter().flatten() {
        journal.notice(notice)?;
    }
    if let Some(classes) = coverage::statement_classes(&config.plan)? {
        journal.writer().statement_classes(&classes)?;
    }
    let observers = Observers::new(config);
    let is_remote = config.plan.has_server_hosts();
    if let Some(caveat) = observers.caveat().filter(|_| !is_remote) {
        journal.notice(caveat)?;
    }
    // Before what takes long: a host may be missing.
    let load = config.provider.load(config)?;
    if let Some(caveat) = observers::load_is_elsewhere(load.hosts()) {
        journal.notice(caveat)?;
    }
    let hosts = ServerHosts::attach(&config.plan, config.host_access, &config.contest())?;
    hosts.check_machines(&past.host.server_hosts)?;
    let round_trip_s = load.round_trip_s().max(hosts.round_trip_s());
    round_trip::refuse_short_turns(&config.plan, round_trip_s)?;
    let facts = match is_remote {
        true if past.host.server_hosts.is_empty() => Host::of_server_hosts(hosts.facts()),
        true => past.host.clone(),
        false => host::read(config.home.root()),
    };
    if config.plan.hosts.is_some() || is_remote {
        let kept = if is_remote { &facts } else { &past.host };
        let host = Host {
            load_hosts: load.hosts().to_vec(),
            ..kept.clone()
        };
        let host = serde_json::to_vec_pretty(&host)?;
        journal.writer().replace(Path::new(HOST), &host)?;
    }
    let mut arena = Arena::empty();
    let mut evidence = prepare::prepare(config, &hosts, past, &mut arena, journal)?;
    answers::compare(config, past, &mut arena, journal)?;
    let mut contest = Contest {
        config: config.clone(),
        referee,
        arena,
        load,
        journal: &mut *journal,
        progress: Progress::resume(referee, past, epoch),
        observers,
        warm: Vec::new(),
        round_trip_s,
        statements: kept_statements(past),
    };
    let sessions = contest.connect_clients()?;
    prepare::keep_sessions(sessions, &mut evidence, contest.journal)?;
    let path = config.experiment_path;
    prepare::check_fairness(&config.plan, path, facts, evidence, contest.journal)?;
    let measuring = interrupt::begin_measuring();
    let result = contest.run();
    let Contest {
        config,
        arena,
        load,
        observers,
        journal,
        ..
    } = contest;
    // Their sessions would be among the final counters, and open when the servers stop.
    drop((observers, load));
    config.emit(&ContestEvent::PhaseBegun(Phase::Closing));
    close::close(&config, arena, journal, result.as_ref().ok().copied())?;
    drop(measuring);
    result
}

/// A contest with everything in place. What it does is in the modules `warm_up`, `pilot`, `measure`, `search` and
/// `slice`.
struct Contest<'c, 'j> {
    config: ContestConfig<'c>,
    /// Decides when enough is measured.
    referee: &'c dyn Referee,
    arena: Arena,
    load: Box<dyn Load>,
    journal: &'j mut Journal<'c>,
    progress: Progress,
    observers: Observers,
    /// Steady load of each contender at the heaviest level, from its warm-up.
    warm: Vec<SteadySeries>,
    /// Round trip to the farthest host, seconds; 0 without hosts.
    round_trip_s: f64,
    /// Statements that the record holds of each contender.
    statements: Vec<ContenderStatements>,
}

impl Contest<'_, '_> {
    /// The plan as it is now. Levels, turns and blocks that are added later are in the next one.
    fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.config.plan)
    }

    /// Adds to the plan what the journal has by now.
    fn grow_plan(&mut self, grow: impl FnOnce(&mut Plan)) {
        grow(Arc::make_mut(&mut self.config.plan));
        let plan = self.plan();
        self.config.emit(&ContestEvent::PlanGrown { plan: &plan });
    }

    /// Warms up, measures and, where the plan searches for a rate, adds one after the other, until there is a reason to end.
    ///
    /// # Errors
    /// When the contest cannot go on, or the user interrupts.
    fn run(&mut self) -> Result<EndReason> {
        if let Some(reason) = self.is_over_before_warm_up()? {
            return Ok(reason);
        }
        self.warm_up()?;
        self.choose_turns()?;
        let reason = self.measure_and_search()?;
        if self.config.stacks && matches!(reason, EndReason::Decided | EndReason::BudgetSpent) {
            self.sample_stacks()?;
        }
        Ok(reason)
    }
}

fn kept_statements(past: &Record) -> Vec<ContenderStatements> {
    let files = past.contenders.iter();
    files
        .map(|files| files.statements.clone().unwrap_or_default())
        .collect()
}

fn failure(record: &Path, error: &anyhow::Error) -> Notice {
    let remedy = match error.is::<ScriptFails>() {
        true => "correct the script, then run the experiment again".to_owned(),
        false => format!(
            "fix the cause, then resume with {}",
            ResumeCommand::of(record).without_path(record)
        ),
    };
    Notice::new(
        "run.failed",
        Severity::Doubt,
        &[],
        format!("the run ended early: {error:#}"),
        &remedy,
    )
}
