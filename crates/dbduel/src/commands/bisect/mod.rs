//! `dbduel bisect`: finds the revision of a server that changed its throughput, by one contest after another.

mod builds;
pub mod git_step;
mod reports;
mod repository;
mod steps;
#[cfg(test)]
pub(crate) mod test_repository;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use dbduel_experiment::expand::Surroundings;
use dbduel_experiment::{EXPERIMENT_BYTES_MAX, Experiment, ExperimentFile};
use dbduel_record::FormatVersion;
use dbduel_record::bisect::{BISECT, BisectPlan, Repository, Revision, RevisionSource};
use dbduel_record::foreign::read_text;
use dbduel_server::{Home, ServerName};
use dbduel_workloads::parameters::ScriptAccess;

use super::record_set;
use super::run::{self, RunOptions, Unreadable};
use crate::console;
use crate::exit::Exit;
use crate::home;
use builds::{BuildLimits, FailedBuilds};
pub use reports::{document, page, report};
use steps::Bisecting;

/// Confidence of an experiment without one.
const CONFIDENCE: f64 = 0.95;

/// Options of `dbduel bisect`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An experiment file with one contender, whose server is replaced by each revision; or the directory of a bisection to
    /// resume.
    pub target: PathBuf,
    /// Directory in which the bisection's directory is created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Servers in order, separated by commas: the good one first, the bad one last. Any name that `server` in an experiment
    /// takes.
    #[arg(
        long,
        value_name = "SERVERS",
        value_delimiter = ',',
        conflicts_with_all = ["repo", "good", "bad", "build", "server"]
    )]
    pub versions: Vec<String>,
    /// A git repository. It is only read; commits are built in private clones.
    #[arg(long, value_name = "DIR", requires_all = ["good", "bad", "build", "server"])]
    pub repo: Option<PathBuf>,
    /// The good commit, an ancestor of the bad one.
    #[arg(long, value_name = "REV", requires = "repo")]
    pub good: Option<String>,
    /// The bad commit.
    #[arg(long, value_name = "REV", requires = "repo")]
    pub bad: Option<String>,
    /// Shell command that builds a commit. It runs in a clone that is removed afterwards, and puts what the server needs into the
    /// directory `$DBDUEL_BUILD`.
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    pub build: Option<String>,
    /// The server of a build, such as `path:{build}/bin/mariadbd`; `{build}` stands for `$DBDUEL_BUILD`.
    #[arg(long, value_name = "SERVER", requires = "repo")]
    pub server: Option<String>,
    #[command(flatten)]
    pub limits: BuildLimits,
    /// 2 builds the commits that may be asked next while a contest runs: less waiting, more noise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2), requires = "repo")]
    pub jobs: u32,
    /// Number of changes to look for. After the first, the parts before and after it are searched if their ends differ.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub changes: u32,
    /// Of an experiment with a suite, the workload whose throughput is compared. Repeatable; each has a bisection of its own, which
    /// ends with its first contest where the ends do not differ, and all share the builds. `all` stands for all of them.
    #[arg(long, value_name = "NAME")]
    pub cell: Vec<String>,
    /// Treat the revision under test as one that cannot be tested, when a bisection is resumed.
    #[arg(long)]
    pub skip: bool,
    /// Sample the servers' stacks in the contest of a found change, for a difference flame graph.
    #[arg(long)]
    pub stacks: bool,
}

/// The command line contradicts itself or names what does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnfitBisection(String);

/// True for the directory of a bisection.
#[must_use]
pub fn is_bisection(dir: &Path) -> bool {
    dir.join(BISECT).is_file()
}

/// Starts a bisection or resumes one.
///
/// # Errors
/// When the experiment or the command line is wrong, or a contest or a build cannot be conducted.
pub fn bisect(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let options = RunOptions {
        stacks: arguments.stacks,
        ..RunOptions::default()
    };
    let target = &arguments.target;
    if target.is_dir() {
        if !arguments.versions.is_empty() || arguments.repo.is_some() {
            let why = format!(
                "`{}` is a bisection, whose revisions are set; resume it with `dbduel bisect {0}`",
                target.display()
            );
            return Err(UnfitBisection(why).into());
        }
        return resume(&home::find(home)?, target, &options, arguments.skip);
    }
    if arguments.skip {
        let why = "--skip goes with the directory of a bisection".to_owned();
        return Err(UnfitBisection(why).into());
    }
    let mut text = read_text(target, EXPERIMENT_BYTES_MAX)
        .map_err(|source| Unreadable::new(target.clone(), source))?;
    let mut experiment = Experiment::parse_single(target, &text)?;
    let (revisions, source) = revisions_of(arguments)?;
    if let Some(server) = run::server_dump::server_of(&experiment) {
        text = run::server_dump::with_dump(&home::find(home.clone())?, (target, &text), server)?;
        experiment = Experiment::parse_single(target, &text)?;
    }
    let file = ExperimentFile {
        path: target,
        text: &text,
        experiment: &experiment,
    };
    let surroundings = run::surroundings(ScriptAccess::Full);
    let plan = planned(&file, &surroundings, revisions, source, arguments.changes);
    let plans = plans_of_cells(&file, &plan, &arguments.cell)?;
    start_all(
        &home::find(home)?,
        &arguments.results,
        &file,
        plans,
        &options,
    )
}

/// The plan once for each chosen workload of the experiment's suite; without one itself.
///
/// # Errors
/// When there is no such workload, or none is chosen.
pub fn plans_of_cells(
    file: &ExperimentFile<'_>,
    plan: &BisectPlan,
    cells: &[String],
) -> Result<Vec<BisectPlan>> {
    let suite = file.experiment.suite.as_ref();
    let names: Vec<String> = suite.map_or_else(Vec::new, |suite| {
        let names = suite.workloads.iter();
        names.map(|one| one.name.value.clone()).collect()
    });
    let unfit = |why: String| Err(UnfitBisection(why).into());
    let chosen = match cells {
        [] if names.is_empty() => return Ok(vec![plan.clone()]),
        [] => {
            let why = format!(
                "`{}` has a suite: name workloads of it with --cell, or `all`: {}",
                file.path.display(),
                names.join(", ")
            );
            return unfit(why);
        }
        [all] if all == "all" && !names.is_empty() => names,
        some => match some.iter().find(|cell| !names.contains(cell)) {
            Some(unknown) if names.is_empty() => {
                let path = file.path.display();
                return unfit(format!("--cell {unknown}: `{path}` has no [suite]"));
            }
            Some(unknown) => {
                let known = names.join(", ");
                return unfit(format!("--cell {unknown}: the suite has only {known}"));
            }
            None => some.to_vec(),
        },
    };
    let of_cell = |cell: String| BisectPlan {
        question: format!("{} Workload {cell}.", plan.question),
        cell: Some(cell),
        ..plan.clone()
    };
    Ok(chosen.into_iter().map(of_cell).collect())
}

/// Conducts bisections of one experiment, one after the other; the exit code is the first that is not [`Exit::Done`]. An
/// interrupted one is the last.
///
/// # Errors
/// As [`start`].
pub fn start_all(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    plans: Vec<BisectPlan>,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let mut worst = Exit::Done;
    let mut coming = plans.into_iter();
    while let Some(plan) = coming.next() {
        let exit = start(home, results, file, plan, options)?;
        if exit == Exit::Interrupted {
            let rest = coming.filter_map(|plan| plan.cell);
            let rest: Vec<String> = rest.map(|cell| format!("--cell {cell}")).collect();
            if !rest.is_empty() {
                console::status_line(&format!("not begun: {}", rest.join(" ")));
            }
            return Ok(exit);
        }
        if worst == Exit::Done {
            worst = exit;
        }
    }
    Ok(worst)
}

/// The revisions that the command line names, and their origin.
fn revisions_of(arguments: &Arguments) -> Result<(Vec<Revision>, RevisionSource)> {
    let Arguments {
        repo: Some(repo),
        good: Some(good),
        bad: Some(bad),
        build: Some(build),
        server: Some(server),
        ..
    } = arguments
    else {
        return Ok((versions(&arguments.versions)?, RevisionSource::Versions));
    };
    let mut source = repository_source(repo, build, server, &arguments.limits)?;
    let found = repository::revisions(repo, good, bad)?;
    source.path = found.path.display().to_string();
    source.merges = found.merges;
    source.builds_ahead = arguments.jobs > 1;
    Ok((found.revisions, RevisionSource::Repository(source)))
}

/// A repository whose commits are built.
fn repository_source(
    path: &Path,
    build: &str,
    server: &str,
    limits: &BuildLimits,
) -> Result<Repository> {
    if !server.contains(builds::PLACEHOLDER) {
        let why = format!(
            "--server `{server}` does not contain `{}`, so every revision would be the same server",
            builds::PLACEHOLDER
        );
        return Err(UnfitBisection(why).into());
    }
    Ok(Repository {
        path: path.display().to_string(),
        build: build.to_owned(),
        server: server.to_owned(),
        build_limit_s: limits.build_limit.as_secs_f64(),
        cache_bytes_max: limits.cache_size,
        builds_ahead: false,
        merges: 0,
    })
}

/// The revisions that --versions names.
fn versions(names: &[String]) -> Result<Vec<Revision>> {
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    if names.len() < 2 {
        let why =
            "name at least two servers with --versions GOOD,…,BAD, or a repository with --repo"
                .to_owned();
        return Err(UnfitBisection(why).into());
    }
    for (number, name) in names.iter().enumerate() {
        ServerName::parse(name)?;
        if names[..number].contains(name) {
            return Err(UnfitBisection(format!("--versions names `{name}` twice")).into());
        }
    }
    let revision = |name: &&str| Revision {
        name: (*name).to_owned(),
        commit: None,
    };
    Ok(names.iter().map(revision).collect())
}

/// The plan of a bisection before its first step.
pub fn planned(
    file: &ExperimentFile<'_>,
    surroundings: &Surroundings,
    revisions: Vec<Revision>,
    source: RevisionSource,
    changes_max: u32,
) -> BisectPlan {
    let experiment = file.experiment;
    let path = std::path::absolute(file.path).unwrap_or_else(|_| file.path.to_owned());
    BisectPlan {
        format: FormatVersion::CURRENT,
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        created: surroundings.created.clone(),
        experiment: path.display().to_string(),
        question: experiment.question.clone().unwrap_or_else(|| {
            let workload = &experiment.workload.name.value;
            format!("Which revision changed the throughput of {workload}?")
        }),
        seed: experiment.seed.unwrap_or(surroundings.fresh_seed),
        confidence: experiment.confidence.unwrap_or(CONFIDENCE),
        // Both follow from the plan of the first contest.
        horizon: 0.0,
        budget_s: 0.0,
        changes_max,
        cell: None,
        source,
        revisions,
        steps: Vec::new(),
    }
}

/// Starts a bisection below `results`. Everything that can be wrong without a server is checked before.
///
/// # Errors
/// When the experiment is wrong or a contest or a build cannot be conducted.
pub fn start(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    plan: BisectPlan,
    options: &RunOptions<'_>,
) -> Result<Exit> {
    let plan = steps::checked(home, file, plan)?;
    begin(home, results, file, plan, options)?.resume()
}

/// Begins a bisection with a checked plan, in a directory of its own below `results`.
fn begin<'b>(
    home: &'b Home,
    results: &Path,
    file: &ExperimentFile<'b>,
    plan: BisectPlan,
    options: &'b RunOptions<'b>,
) -> Result<Bisecting<'b>> {
    let dir = run::new_place(results, file.path)?;
    record_set::begin(&dir, file.text, BISECT, &plan)?;
    Ok(Bisecting {
        home,
        dir,
        file: *file,
        plan,
        options,
        failed_builds: FailedBuilds::default(),
    })
}

/// Resumes a bisection where it stopped; with `is_skipping` without the revision under test.
///
/// # Errors
/// When it cannot be read, or a contest or a build cannot be conducted.
pub fn resume(
    home: &Home,
    dir: &Path,
    options: &RunOptions<'_>,
    is_skipping: bool,
) -> Result<Exit> {
    let plan = BisectPlan::read(dir)?;
    if plan.dbduel != env!("CARGO_PKG_VERSION") {
        bail!(
            "`{}` was begun by dbduel {}, and another version may plan its steps differently; resume with that version, or \
             begin a new bisection",
            dir.display(),
            plan.dbduel
        );
    }
    let text = record_set::experiment_text(dir)?;
    // Relative paths in it start where it was.
    let path = PathBuf::from(&plan.experiment);
    let experiment = Experiment::parse_single(&path, &text)?;
    let mut bisecting = Bisecting {
        home,
        dir: dir.to_owned(),
        file: ExperimentFile {
            path: &path,
            text: &text,
            experiment: &experiment,
        },
        plan,
        options,
        failed_builds: FailedBuilds::default(),
    };
    if is_skipping {
        bisecting.skip_current()?;
    }
    bisecting.resume()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<(Vec<Revision>, RevisionSource)> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let line = [&["bisect", "duel.toml"][..], words].concat();
        let line = <Line as clap::Parser>::try_parse_from(line)?;
        revisions_of(&line.arguments)
    }

    #[test]
    fn versions_are_servers_that_an_experiment_takes_in_their_order() {
        let (revisions, source) =
            parsed(&["--versions", "mariadb-10.11, mariadb-11.4,mariadb-11.8"]).unwrap();
        let names: Vec<&str> = revisions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["mariadb-10.11", "mariadb-11.4", "mariadb-11.8"]);
        assert_eq!(source, RevisionSource::Versions);
    }

    #[test]
    fn an_incomplete_command_line_is_refused() {
        for (words, part) in [
            (&[][..], "at least two servers"),
            (&["--versions", "mariadb-10.11"], "at least two servers"),
            (
                &["--versions", "mariadb-11.4,mariadb-11.8,mariadb-11.4"],
                "`mariadb-11.4` twice",
            ),
            (&["--versions", "mariadb-10.11,oracel"], "unknown server"),
            (&["--repo", "x", "--good", "a", "--bad", "b"], "--build"),
            (
                &[
                    "--repo",
                    ".",
                    "--good",
                    "a",
                    "--bad",
                    "b",
                    "--build",
                    "make",
                    "--server",
                    "path:bin/mariadbd",
                ],
                "does not contain `{build}`",
            ),
        ] {
            let refused = parsed(words).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
