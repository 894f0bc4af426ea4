//! `dbduel run`: an experiment file, or a record to go on with.

mod new_record;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_record::event::{EndReason, Event};
use dbduel_record::store::{EXPERIMENT, PLAN};
use dbduel_record::sweep::SWEEP;
use dbduel_record::{Plan, Record, RecordWriter};

use super::fail_if::{self, FailIf};
use super::metrics;
use super::record_reports;
use super::{sweep, watch};
use crate::chance::fresh_seed;
use crate::cli;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;
use crate::interrupt;
use crate::judge::records::sweep::is_over;
use crate::judge::summary::RateBracket;
use crate::judge::{self, Summary, Verdict};
use crate::lab::contest::board::Board;
use crate::lab::contest::{self, Setting};
use crate::lab::expand::{Surroundings, expand, expand_cell, expand_sweep, more_blocks};
use crate::lab::experiment::Experiment;
use crate::lab::host;
use crate::lab::server::{Home, orphans};
pub use new_record::{create, create_at, new_place};

/// Time that a server left behind by a killed run gets to end by itself.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);

/// The page that people look at, in the record's directory.
const PAGE: &str = "report.html";

/// Runs or resumes.
///
/// # Errors
/// When the experiment is wrong or the contest cannot be conducted.
pub fn run(home: Option<PathBuf>, arguments: &cli::Run) -> Result<Exit> {
    let wishes = Wishes {
        keep: arguments.keep,
        stacks: arguments.stacks,
        fail_if: &arguments.fail_if,
        board: Arc::default(),
        live: arguments.live,
    };
    if let (Some(address), false) = (arguments.metrics_addr, arguments.plan) {
        let address = metrics::serve(address, Arc::clone(&wishes.board))?;
        console::complain(&format!("metrics: http://{address}{}", metrics::PATH));
    }
    if arguments.target.is_dir() {
        go_on(home, arguments, &wishes)
    } else {
        begin(home, arguments, &wishes)
    }
}

/// Goes on with what is in a directory: a record or a sweep.
fn go_on(home: Option<PathBuf>, arguments: &cli::Run, wishes: &Wishes<'_>) -> Result<Exit> {
    let target = &arguments.target;
    if sweep::is_sweep(target) {
        if arguments.plan || arguments.budget.is_some() {
            bail!(
                "`{}` is a sweep: its plan is `{}`, and more time is given to one of its cells, `dbduel run {} \
                 --budget …`",
                target.display(),
                target.join(SWEEP).display(),
                target.join("cells").join("CELL").display()
            );
        }
        return sweep::resume(&home::find(home)?, target, wishes);
    }
    if arguments.plan {
        bail!(
            "`{}` is a record; its plan is `{}`",
            target.display(),
            target.join(PLAN).display()
        );
    }
    resume(&home::find(home)?, target, arguments.budget, wishes)
}

/// Begins with the experiment in a file, or prints its plan.
fn begin(home: Option<PathBuf>, arguments: &cli::Run, wishes: &Wishes<'_>) -> Result<Exit> {
    let (path, results) = (&arguments.target, &arguments.results);
    if arguments.budget.is_some() {
        return Err(NotARecord(path.clone()).into());
    }
    let text = fs::read_to_string(path).map_err(|source| Unreadable {
        path: path.clone(),
        source,
    })?;
    let experiment = Experiment::parse(path, &text)?;
    if !experiment.sweep.is_empty() {
        if arguments.plan {
            console::print(&sweep::plan(path, &text, &experiment)?)?;
            return Ok(Exit::Done);
        }
        let home = home::find(home)?;
        return sweep::start(&home, results, path, &text, &experiment, wishes);
    }
    let plan = expand(path, &text, &experiment, &surroundings())?;
    if arguments.plan {
        console::print_json(&plan)?;
        return Ok(Exit::Done);
    }
    let home = home::find(home)?;
    start(&home, results, path, &text, &experiment, &plan, wishes)
}

/// What the user wants of a contest beyond its verdict.
#[derive(Debug, Default)]
pub struct Wishes<'a> {
    /// Keep the sandboxes after the contest.
    pub keep: bool,
    /// Sample the servers' stacks after the last block.
    pub stacks: bool,
    /// Rules that decide the exit code.
    pub fail_if: &'a [FailIf],
    /// Where others read how the contest stands.
    pub board: Arc<Board>,
    /// Show the report in a browser on this machine while it grows.
    pub live: bool,
}

/// Parses and completes an experiment that may run elsewhere; of a sweep, its first cell with an equal share of the
/// budget.
///
/// # Errors
/// All that is wrong with it, with line and column.
pub fn plan_of(path: &Path, text: &str) -> Result<(Experiment, Plan)> {
    let experiment = Experiment::parse(path, text)?;
    let surroundings = Surroundings {
        runs_here: false,
        ..surroundings()
    };
    if experiment.sweep.is_empty() {
        let plan = expand(path, text, &experiment, &surroundings)?;
        return Ok((experiment, plan));
    }
    let sweep = expand_sweep(path, text, &experiment, &surroundings)?;
    let first = sweep.cells.first().context("a sweep has cells")?;
    let share_s = sweep.budget_s / sweep.cells.len() as f64;
    Ok(expand_cell(
        path,
        text,
        &experiment,
        &sweep,
        first,
        share_s,
        &surroundings,
    )?)
}

/// What a plan needs to know beside the experiment.
#[must_use]
pub fn surroundings() -> Surroundings {
    Surroundings {
        created: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
        fresh_seed: fresh_seed(),
        cpus: host::cpus(),
        processors: host::processors(),
        runs_here: true,
    }
}

/// Starts a new record below `results`, conducts its contest and shows its report.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn start(
    home: &Home,
    results: &Path,
    path: &Path,
    text: &str,
    experiment: &Experiment,
    plan: &Plan,
    wishes: &Wishes<'_>,
) -> Result<Exit> {
    let record = create(home, results, path, text, plan)?;
    show_live(&record, wishes)?;
    let ended = conduct(home, &record, path, experiment, plan, wishes);
    finish(&record, ended, wishes)
}

/// The experiment file that was named is not there, or is no text.
#[derive(Debug, thiserror::Error)]
#[error("could not read the experiment file `{}`", .path.display())]
pub struct Unreadable {
    path: PathBuf,
    source: std::io::Error,
}

/// More time was asked for something that is no record.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{}` is no record, and `--budget` gives more time to one; an experiment has its `budget` in the file", .0.display()
)]
pub struct NotARecord(PathBuf);

fn resume(
    home: &Home,
    record: &Path,
    budget: Option<Duration>,
    wishes: &Wishes<'_>,
) -> Result<Exit> {
    let mut past = Record::open(record)?;
    let is_undecided = exit_of(&judge::summarise(&past).0) == Exit::Undecided;
    if let Some(budget) = budget.filter(|_| is_undecided) {
        extend(record, &past, budget)?;
        past = Record::open(record)?;
    } else if is_over(&past) {
        console::complain("this contest is over; here is its report");
        return show(record, wishes);
    }
    let path = record.join(EXPERIMENT);
    let text = fs::read_to_string(&path)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    let experiment = Experiment::parse(&path, &text)?;
    show_live(record, wishes)?;
    let ended = conduct(home, record, &path, &experiment, &past.plan, wishes);
    finish(record, ended, wishes)
}

/// Serves the report of the record or the sweep in `dir` while it grows, where that is wished.
///
/// # Errors
/// When the address cannot be listened on.
pub fn show_live(dir: &Path, wishes: &Wishes<'_>) -> Result<()> {
    if wishes.live {
        console::complain(&format!("live report: {}", watch::serve(dir, 0)?));
    }
    Ok(())
}

/// True when a record of this plan may be given more time. The number of starts that a verdict on servers
/// rests on is fixed beforehand.
#[must_use]
pub fn may_be_extended(plan: &Plan) -> bool {
    plan.schedule.epochs.is_none()
}

/// Gives a record more time and the blocks that fit into it. The journal says so before anything runs.
///
/// # Errors
/// When its plan allows no extension, or the record cannot be written.
pub fn extend(record: &Path, past: &Record, budget: Duration) -> Result<()> {
    if !may_be_extended(&past.plan) {
        bail!(
            "`{}` compares servers over a number of starts that was fixed beforehand, so it cannot be extended; make a \
             new record with more `epochs`",
            record.display()
        );
    }
    let budget_s = budget.as_secs_f64();
    let blocks = more_blocks(&past.plan, budget_s);
    let mut writer = RecordWriter::open(record)?;
    writer.event(contest::now_ms(), Event::Extended { budget_s, blocks })?;
    Ok(())
}

/// Conducts the contest of a record, or what is left of it.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn conduct(
    home: &Home,
    record: &Path,
    path: &Path,
    experiment: &Experiment,
    plan: &Plan,
    wishes: &Wishes<'_>,
) -> Result<EndReason> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    clear_leftovers(home, &console);
    console.say(&format!("record: {}", record.display()));
    let setting = Setting {
        plan,
        experiment,
        experiment_path: path,
        record,
        home,
        console: &console,
        board: &wishes.board,
        keep: wishes.keep,
        stacks: wishes.stacks,
    };
    let result = contest::conduct(&setting);
    console.finish();
    result
}

/// Shows what came of a contest and turns it into an exit code.
fn finish(record: &Path, ended: Result<EndReason>, wishes: &Wishes<'_>) -> Result<Exit> {
    match ended {
        Ok(EndReason::Interrupted) => {
            show(record, wishes)?;
            console::complain(&format!(
                "interrupted; go on with `dbduel run {}`",
                record.display()
            ));
            Ok(Exit::Interrupted)
        }
        Ok(_) => show(record, wishes),
        Err(error) => {
            // What was measured can be looked at; the error is the one to report, not a second one.
            let _ = show(record, wishes);
            Err(error)
        }
    }
}

/// Ends servers that killed runs left behind, and removes what nobody can go on with.
pub fn clear_leftovers(home: &Home, console: &Console) {
    for orphan in orphans::sweep(home, ORPHAN_PATIENCE) {
        let (sandbox, pid) = (orphan.sandbox.display(), orphan.process.pid);
        let how = match orphan.end {
            orphans::End::Terminated => "ended",
            orphans::End::Killed => "killed",
            orphans::End::StillThere => "could not end",
        };
        console.say(&format!(
            "{how} a server that an earlier run had left behind (process {pid} in {sandbox})"
        ));
    }
    for run in orphans::remove_leftovers(home) {
        console.say(&format!(
            "removed the sandboxes of a run whose record is gone ({})",
            run.display()
        ));
    }
}

/// Writes the record's reports, prints the terminal one and turns the verdicts into an exit code.
fn show(record: &Path, wishes: &Wishes<'_>) -> Result<Exit> {
    let summary = record_reports::write(record, true)?;
    console::print(&format!("\nreport: {}\n", record.join(PAGE).display()))?;
    fail_if::explain(&summary, wishes.fail_if);
    Ok(fail_if::exit(&summary, wishes.fail_if))
}

/// What the verdicts mean for a script.
#[must_use]
pub fn exit_of(summary: &Summary) -> Exit {
    let has = |verdict| {
        summary
            .duels
            .iter()
            .flat_map(|duel| &duel.comparisons)
            .any(|c| c.verdict == verdict)
    };
    if has(Verdict::Void) {
        Exit::Void
    } else if summary.search.is_some() {
        // What was asked is the highest rate, not who is faster at one of them.
        let mut found = summary.objectives.iter().map(|one| one.highest_rate);
        let is_bracketed = |bracket: Option<RateBracket>| {
            bracket.is_some_and(|one| one.met_up_to.is_some() && one.missed_from.is_some())
        };
        match found.all(is_bracketed) {
            true => Exit::Done,
            false => Exit::Undecided,
        }
    } else if has(Verdict::Undecided) {
        Exit::Undecided
    } else {
        Exit::Done
    }
}
