//! `dbduel bisect-step`: says to `git bisect run` which end of its search the commit under test is like.
//!
//! Each call is a contest of the good, the bad and the tested revision: a bisection of three that ends with its first
//! candidate, in a directory of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use dbduel_experiment::expand::Surroundings;
use dbduel_experiment::{EXPERIMENT_BYTES_MAX, Experiment, ExperimentFile};
use dbduel_judge::records::bisect::{StepAnswer, error_of_answer};
use dbduel_record::bisect::{BisectPlan, BisectStep, Revision, RevisionSource, StepRole};
use dbduel_record::foreign::read_text;
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;

use super::builds::BuildLimits;
use super::steps;
use super::{UnfitBisection, begin, planned, repository, repository_source, versions};
use crate::commands::run::{self, RunOptions, Unreadable};
use crate::exit::{Exit, GitBisectExit};
use crate::home;

/// Options of `dbduel bisect-step`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An experiment file with one contender, whose server is replaced by each revision.
    pub experiment: PathBuf,
    /// The good server; with --build the good commit.
    #[arg(long, value_name = "REV")]
    pub good: String,
    /// The bad server; with --build the bad commit.
    #[arg(long, value_name = "REV")]
    pub bad: String,
    /// The server under test, such as `path:/home/me/b/bin/mariadbd`; with --build that of each build, in which `{build}` stands
    /// for `$DBDUEL_BUILD`.
    #[arg(long, value_name = "SERVER")]
    pub server: String,
    /// Shell command that builds a commit, as for `bisect --build`. The commit under test is the one that --repo has checked
    /// out; like the good and the bad one it is built in a private clone, once.
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// The repository that is searched, with --build.
    #[arg(long, value_name = "DIR", default_value = ".", requires = "build")]
    pub repo: PathBuf,
    #[command(flatten)]
    pub limits: BuildLimits,
    /// Number of revisions that are searched: each answer gets its part of the error probability. With --build they are counted.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        conflicts_with = "build"
    )]
    pub revisions: u32,
    /// Directory in which the step's directory is created [default: `results` beside the experiment].
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

/// Conducts one step of `git bisect run`.
///
/// # Errors
/// When the experiment or the command line is wrong, or the contest or a build of the good or the bad one cannot be conducted.
pub fn bisect_step(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let path = &arguments.experiment;
    let text = read_text(path, EXPERIMENT_BYTES_MAX)
        .map_err(|source| Unreadable::new(path.clone(), source))?;
    let file = ExperimentFile {
        path,
        text: &text,
        experiment: &Experiment::parse_single(path, &text)?,
    };
    let (revisions, source, count) = revisions_of(arguments)?;
    let surroundings = run::surroundings(ScriptAccess::Full);
    let plan = step_plan(&file, &surroundings, revisions, source, count);
    let beside = || path.parent().unwrap_or(Path::new("")).join("results");
    let results = arguments.results.clone().unwrap_or_else(beside);
    conduct(
        &home::find(home)?,
        &results,
        &file,
        plan,
        &RunOptions::default(),
    )
}

/// The good, the tested and the bad revision, their origin, and the number of revisions that git searches.
fn revisions_of(arguments: &Arguments) -> Result<(Vec<Revision>, RevisionSource, u32)> {
    let Some(build) = &arguments.build else {
        let names = [&arguments.good, &arguments.server, &arguments.bad];
        let names = names.map(|name| name.trim().to_owned());
        return Ok((
            versions(&names)?,
            RevisionSource::Versions,
            arguments.revisions,
        ));
    };
    let (path, tested) = repository::revision(&arguments.repo, "HEAD")?;
    let mut revisions = Vec::new();
    for (end, option) in [(&arguments.good, "--good"), (&arguments.bad, "--bad")] {
        let (_, found) = repository::revision(&path, end)?;
        if found == tested {
            let why = format!(
                "the checked out commit {} is that of {option}; `git bisect` asks only about commits between the ends",
                tested.name
            );
            return Err(UnfitBisection(why).into());
        }
        revisions.push(found);
    }
    revisions.insert(1, tested);
    let count = repository::count_between(&path, &arguments.good, &arguments.bad)?;
    let source = repository_source(&path, build, &arguments.server, &arguments.limits)?;
    Ok((revisions, RevisionSource::Repository(source), count))
}

/// The plan of a step among `searched` revisions.
///
/// `git bisect` asks ⌈log₂ n⌉ times and never again, so each answer is wrong with at most α / ⌈log₂ n⌉: by the union bound the
/// search is wrong with at most α.
pub fn step_plan(
    file: &ExperimentFile<'_>,
    surroundings: &Surroundings,
    revisions: Vec<Revision>,
    source: RevisionSource,
    searched: u32,
) -> BisectPlan {
    let mut plan = planned(file, surroundings, revisions, source, 1);
    let answers = f64::from(searched.max(2).next_power_of_two().ilog2());
    let alpha = 1.0 - plan.confidence;
    if let Some(of_answer) = error_of_answer(&plan) {
        plan.confidence = 1.0 - alpha * (alpha / answers / of_answer).min(1.0);
    }
    plan
}

/// Conducts the step of a plan in a directory below `results`, and says its answer in the exit code.
///
/// # Errors
/// When the contest or a build of the good or the bad one cannot be conducted.
pub fn conduct(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    plan: BisectPlan,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let mut plan = steps::checked(home, file, plan)?;
    plan.steps.push(BisectStep {
        name: "01".to_owned(),
        role: StepRole::Candidate,
        revisions: vec![0, 2, 1],
        budget_s: plan.budget_s,
        seed: plan.seed,
        skipped: None,
    });
    let answer = begin(home, results, file, plan, options)?.only_step()?;
    Ok(answer.map_or(Exit::Interrupted, |answer| Exit::GitBisect(exit_of(answer))))
}

fn exit_of(answer: StepAnswer) -> GitBisectExit {
    match answer {
        StepAnswer::LikeGood | StepAnswer::NeitherNearerGood => GitBisectExit::Good,
        StepAnswer::LikeBad | StepAnswer::NeitherNearerBad => GitBisectExit::Bad,
        StepAnswer::Skipped => GitBisectExit::Skip,
        StepAnswer::Unsure
        | StepAnswer::Undecided
        | StepAnswer::Void
        | StepAnswer::Differ
        | StepAnswer::Same => GitBisectExit::Undecided,
    }
}
