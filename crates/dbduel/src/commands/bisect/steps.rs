//! Conducts the steps of a bisection, one after the other. What was found is read from their records, so a bisection that was
//! stopped or killed at any moment continues with the step that it was at.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_experiment::Experiment;
use dbduel_experiment::ExperimentFile;
use dbduel_experiment::document::Troubles;
use dbduel_experiment::expand::{StepContest, expand_step};
use dbduel_judge::records::bisect::{
    BisectSummary, NextStep, SearchedPlace, StepAnswer, SummarisedStep, error_of_answer,
    judge_step, next_step, summarise_bisection,
};
use dbduel_lab::contest::{self, NotComparable};
use dbduel_lab::snapshots::Snapshots;
use dbduel_machine::interrupt::{self, Interrupted};
use dbduel_record::bisect::{
    BISECT, BisectPlan, BisectStep, Commit, RevisionSource, Skipped, StepRole, step_dir,
};
use dbduel_record::event::EndReason;
use dbduel_record::seed::named_seed;
use dbduel_record::store::PLAN;
use dbduel_record::{Plan, Record};
use dbduel_report::bisect::FORMATS;
use dbduel_server::{Home, ServerName};
use dbduel_workloads::parameters::ScriptAccess;

use super::UnfitBisection;
use super::builds::{BuildFailed, Builds, FailedBuilds, PLACEHOLDER};
use crate::commands::run::{self, RunOptions};
use crate::commands::{record_reports, record_set};
use crate::console::{self, Console};
use crate::exit::Exit;

/// Budget of a step relative to the load that the contest of the ends took: twice its blocks, with three contenders
/// instead of two.
const BUDGET_FACTOR: f64 = 3.0;
/// Smallest budget of a step, as a share of the experiment's.
const BUDGET_SHARE_MIN: f64 = 0.25;
/// Seeds stay below 2^53, so that every JSON reader keeps all their digits.
const SEED_BITS: u32 = 53;

/// A bisection under way.
pub(super) struct Bisecting<'b> {
    pub home: &'b Home,
    pub dir: PathBuf,
    pub file: ExperimentFile<'b>,
    pub plan: BisectPlan,
    pub options: &'b RunOptions<'b>,
    /// What this process could not build.
    pub failed_builds: FailedBuilds,
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum StepEnd {
    Over,
    /// Its candidate cannot be tested.
    Skipped(String),
    Interrupted,
}

/// Expands both kinds of contests with the whole budget, and refuses contests that are void by their file. The plan gets the
/// horizon and the budget that follow from the experiment.
///
/// # Errors
/// All that is wrong, with line and column; a contest that would be void.
pub(super) fn checked(
    home: &Home,
    file: &ExperimentFile<'_>,
    mut plan: BisectPlan,
) -> Result<BisectPlan> {
    let last = plan.last();
    let budget_s = file.experiment.budget.as_ref();
    plan.budget_s = budget_s.map_or(0.0, |budget| budget.value.as_secs_f64());
    if plan.budget_s <= 0.0 {
        let why = format!(
            "`{}` has no `budget`; a bisection needs one, the time of a step at most",
            file.path.display()
        );
        return Err(UnfitBisection(why).into());
    }
    // Built revisions are checked when they are built.
    let servers = |revisions: &[usize]| -> Vec<String> {
        let names = revisions.iter().map(|&one| &plan.revisions[one].name);
        match &plan.source {
            RevisionSource::Versions => names.cloned().collect(),
            RevisionSource::Repository(repository) => {
                let server = repository.server.replace(PLACEHOLDER, "/build");
                names.map(|_| server.clone()).collect()
            }
        }
    };
    let mut steps = vec![(StepRole::Ends, vec![0, last])];
    let candidates = (1..last).map(|candidate| (StepRole::Candidate, vec![0, last, candidate]));
    match &plan.source {
        RevisionSource::Versions => steps.extend(candidates),
        RevisionSource::Repository(_) => steps.extend(candidates.take(1)),
    }
    let mut horizon = None;
    for (role, revisions) in steps {
        let servers = servers(&revisions);
        let step = step_contest(&plan, role, &servers, plan.budget_s, plan.seed)?;
        let (experiment, expanded) =
            expand_step(file, &step, &run::surroundings(ScriptAccess::Full))?;
        horizon.get_or_insert(expanded.decision.horizon);
        if plan.source == RevisionSource::Versions {
            let own = ExperimentFile {
                experiment: &experiment,
                ..*file
            };
            run::refuse_void(home, &own, &expanded).map_err(with_one_contender)?;
        }
    }
    plan.horizon = horizon.context("a bisection has a first contest")?;
    Ok(plan)
}

/// An error of a contest, where its contenders are one contender of the experiment.
fn with_one_contender(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<NotComparable>() {
        Ok(refused) => refused.with_one_contender().into(),
        Err(error) => error,
    }
}

/// A contest as the experiment completes it.
fn step_contest<'s>(
    plan: &'s BisectPlan,
    role: StepRole,
    servers: &'s [String],
    budget_s: f64,
    seed: u64,
) -> Result<StepContest<'s>> {
    let error = error_of_answer(plan).context("a bisection needs at least two revisions")?;
    Ok(StepContest {
        role,
        servers,
        cell: plan.cell.as_deref(),
        budget_s,
        error,
        seed,
        question: plan.question.clone(),
    })
}

impl Bisecting<'_> {
    /// Conducts every step that is needed, and shows the report.
    pub(super) fn resume(&mut self) -> Result<Exit> {
        // Builds come before the first contest.
        interrupt::install()
            .context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
        let mut judged: Vec<SummarisedStep> = Vec::new();
        for step in &self.plan.steps {
            judged.push(self.judged(step)?);
        }
        loop {
            let open = judged.iter().position(|step| step.answer.is_none());
            let number = match open {
                Some(number) => number,
                None => match next_step(&self.plan, &judged) {
                    None => break,
                    Some(next) => self.begin(next, &judged)?,
                },
            };
            if self.conducted(number, &mut judged)? == StepEnd::Interrupted {
                return Ok(Exit::Interrupted);
            }
        }
        let summary = summarise_bisection(&self.plan, judged);
        record_set::write_reports(&self.dir, FORMATS, &summary)?;
        record_set::show(&self.dir, FORMATS, &summary)?;
        Ok(exit_of(&summary))
    }

    /// Conducts the only step of the plan and shows its report; `None` when the user stopped it.
    pub(super) fn only_step(&mut self) -> Result<Option<StepAnswer>> {
        interrupt::install()
            .context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
        let mut judged = Vec::new();
        if self.conducted(0, &mut judged)? == StepEnd::Interrupted {
            return Ok(None);
        }
        let answer = judged.first().and_then(|step| step.answer);
        let summary = summarise_bisection(&self.plan, judged);
        record_set::show(&self.dir, FORMATS, &summary)?;
        Ok(answer)
    }

    /// Conducts a step, or the rest of it, and judges it as the last of these; writes the reports on all of them.
    fn conducted(&mut self, number: usize, judged: &mut Vec<SummarisedStep>) -> Result<StepEnd> {
        console::status_line(&self.announcement(number));
        judged.truncate(number);
        let ended = self.conduct(number, judged).with_context(|| {
            format!(
                "the bisection stopped at step {}; resume with `dbduel bisect {1}`, or with `dbduel bisect {1} --skip` \
                 without the revision under test",
                self.plan.steps[number].name,
                self.dir.display()
            )
        });
        if let Ok(StepEnd::Skipped(why)) = &ended {
            self.skip(number, why.clone())?;
        }
        judged.push(self.judged(&self.plan.steps[number])?);
        let summary = summarise_bisection(&self.plan, judged.clone());
        let written = record_set::write_reports(&self.dir, FORMATS, &summary);
        let ended = ended?;
        match ended {
            StepEnd::Over | StepEnd::Skipped(_) => written?,
            StepEnd::Interrupted => console::status_line(&format!(
                "interrupted; resume with `dbduel bisect {}`",
                self.dir.display()
            )),
        }
        Ok(ended)
    }

    /// Marks the revision of the unfinished step as one that cannot be tested.
    ///
    /// # Errors
    /// When no candidate is under test.
    pub(super) fn skip_current(&mut self) -> Result<()> {
        let last = self.plan.steps.len().checked_sub(1);
        let Some(number) = last.filter(|&last| self.plan.steps[last].role == StepRole::Candidate)
        else {
            bail!("no revision is under test in `{}`", self.dir.display());
        };
        let step = &self.plan.steps[number];
        ensure!(
            self.judged(step)?.answer.is_none(),
            "step {} of `{}` is finished",
            step.name,
            self.dir.display()
        );
        self.skip(number, "skipped with --skip".to_owned())
    }

    fn skip(&mut self, number: usize, why: String) -> Result<()> {
        let step = &mut self.plan.steps[number];
        let revision = step.revisions.last().copied().unwrap_or_default();
        console::status_line(&format!(
            "{} is skipped: {why}",
            self.plan.revisions[revision].name
        ));
        step.skipped = Some(Skipped { revision, why });
        self.write_plan()
    }

    fn write_plan(&self) -> Result<()> {
        record_set::write_plan(&self.dir, BISECT, &self.plan)
    }

    fn judged(&self, step: &BisectStep) -> Result<SummarisedStep> {
        let record = step_dir(&self.dir, step);
        let record = match record.join(PLAN).is_file() {
            true => Some(Record::open(&record)?),
            false => None,
        };
        Ok(judge_step(&self.plan, step, record.as_ref()))
    }

    /// Adds a step to the plan; returns its number.
    fn begin(&mut self, next: NextStep, judged: &[SummarisedStep]) -> Result<usize> {
        let number = self.plan.steps.len();
        let budget_s = step_budget_s(&self.plan, judged, &next);
        let seed = named_seed(self.plan.seed, &format!("bisect/step/{number}"));
        self.plan.steps.push(BisectStep {
            name: format!("{:02}", number + 1),
            role: next.role,
            revisions: next.revisions,
            budget_s,
            seed: seed >> (u64::BITS - SEED_BITS),
            skipped: None,
        });
        self.write_plan()?;
        Ok(number)
    }

    /// What a step asks, for the console.
    fn announcement(&self, number: usize) -> String {
        let step = &self.plan.steps[number];
        format!("step {}: {}", step.name, self.question(step))
    }

    fn question(&self, step: &BisectStep) -> String {
        let name = |at: usize| {
            let revision = step.revisions.get(at);
            revision.map_or("", |&one| self.plan.revisions[one].name.as_str())
        };
        match step.role {
            StepRole::Ends => format!("do {} and {} differ?", name(0), name(1)),
            StepRole::Candidate => format!("is {} like {} or like {}?", name(2), name(0), name(1)),
            StepRole::Change => format!("how much did {} change {}?", name(1), name(0)),
        }
    }

    /// Conducts the contest of a step, or the rest of it.
    fn conduct(&self, number: usize, judged: &[SummarisedStep]) -> Result<StepEnd> {
        let step = self.plan.steps[number].clone();
        let is_candidate = step.role == StepRole::Candidate;
        let builds = match &self.plan.source {
            RevisionSource::Versions => None,
            RevisionSource::Repository(repository) => {
                Some(Builds::open(self.home, repository, &self.failed_builds)?)
            }
        };
        let mut servers = Vec::new();
        // Builds in use are kept until the step is over.
        let mut kept = Vec::new();
        for (&revision, contender) in step.revisions.iter().zip(step.role.contenders()) {
            let named = &self.plan.revisions[revision];
            let (Some(builds), Some(commit)) = (&builds, &named.commit) else {
                servers.push(named.name.clone());
                continue;
            };
            match builds.build(commit, &self.dir.join("builds")) {
                Ok(build) => {
                    servers.push(build.server.clone());
                    kept.push(build);
                }
                Err(error)
                    if error.is::<BuildFailed>()
                        && is_candidate
                        && *contender == step.role.baseline() =>
                {
                    let failed = error.downcast::<BuildFailed>()?;
                    return Ok(StepEnd::Skipped(failed.to_string()));
                }
                Err(error) if error.is::<Interrupted>() => return Ok(StepEnd::Interrupted),
                Err(error) => return Err(error),
            }
        }
        let (Some(builds), RevisionSource::Repository(repository)) = (&builds, &self.plan.source)
        else {
            return self.run(&step, &servers);
        };
        let contest = || self.run(&step, &servers);
        let ended = match repository.builds_ahead {
            true => {
                let coming = self.coming(&step, judged);
                let commits = coming
                    .iter()
                    .flat_map(|&one| &self.plan.revisions[one].commit);
                let commits: Vec<&Commit> = commits.collect();
                builds.ahead(&commits, &self.dir.join("builds"), contest)
            }
            false => contest(),
        };
        drop(kept);
        self.prune_snapshots(builds, repository.cache_bytes_max)?;
        ended
    }

    /// Revisions that the step after this one may need, for each of its usual answers; without its own.
    fn coming(&self, step: &BisectStep, judged: &[SummarisedStep]) -> Vec<usize> {
        let answers: &[StepAnswer] = match step.role {
            StepRole::Ends | StepRole::Change => &[StepAnswer::Differ],
            StepRole::Candidate => &[StepAnswer::LikeBad, StepAnswer::LikeGood],
        };
        let mut coming = Vec::new();
        for &answer in answers {
            let answered = SummarisedStep {
                answer: Some(answer),
                ..judge_step(&self.plan, step, None)
            };
            let steps = [judged, &[answered]].concat();
            let next = next_step(&self.plan, &steps).map_or_else(Vec::new, |next| next.revisions);
            for revision in next {
                if !step.revisions.contains(&revision) && !coming.contains(&revision) {
                    coming.push(revision);
                }
            }
        }
        coming
    }

    /// Removes snapshots of the data of this bisection's builds beyond the quota of builds, those first that were not used for
    /// the longest time: each build has snapshots of its own.
    fn prune_snapshots(&self, builds: &Builds<'_>, keep: u64) -> Result<()> {
        let commits = self.plan.revisions.iter().flat_map(|one| &one.commit);
        let names = commits.map(|commit| ServerName::parse(&builds.server(commit)));
        let own: BTreeSet<String> = names.flatten().map(|name| name.id()).collect();
        Snapshots::new(self.home).prune_some(keep, |snapshot| own.contains(&snapshot.build))?;
        Ok(())
    }

    fn run(&self, step: &BisectStep, servers: &[String]) -> Result<StepEnd> {
        let record = step_dir(&self.dir, step);
        let is_candidate = step.role == StepRole::Candidate;
        let (experiment, fresh) = self.expanded(step, servers)?;
        let file = ExperimentFile {
            experiment: &experiment,
            ..self.file
        };
        let plan = if record.join(PLAN).is_file() {
            Record::open(&record)?.plan
        } else {
            let refused = run::refuse_void(self.home, &file, &fresh);
            if let Err(error) = refused.map_err(with_one_contender) {
                return match is_candidate && error.is::<NotComparable>() {
                    true => Ok(StepEnd::Skipped(format!("{error:#}"))),
                    false => Err(error),
                };
            }
            record_set::clear(&self.dir, &record)?;
            run::create_at(self.home, &record, self.file.text, &fresh)?;
            fresh
        };
        let options = RunOptions {
            is_of_candidate: is_candidate,
            stacks: self.options.stacks && step.role == StepRole::Change,
            board: self.options.board.clone(),
            host_access: self.options.host_access.clone(),
            ..*self.options
        };
        let ended = run::run_on_console(self.home, &record, &file, &plan, &options)
            .map_err(with_one_contender);
        // The error is the one to report, not one of the reports.
        let reported = record_reports::write(&record, None);
        match ended {
            Ok(EndReason::Interrupted) => Ok(StepEnd::Interrupted),
            Ok(EndReason::Decided | EndReason::BudgetSpent) => {
                reported?;
                Ok(StepEnd::Over)
            }
            Ok(EndReason::Failed) => bail!("the contest failed; its report says why"),
            Err(error) if error.is::<Interrupted>() || interrupt::gives_up() => {
                Ok(StepEnd::Interrupted)
            }
            Err(error) if is_candidate => match error.is::<NotComparable>() {
                true => Ok(StepEnd::Skipped(format!("{error:#}"))),
                false => match self.does_not_start(&file, &plan) {
                    Some(why) => Ok(StepEnd::Skipped(why)),
                    None => Err(error),
                },
            },
            Err(error) => Err(error),
        }
    }

    /// The experiment and the plan of a step. A budget that is too small for a verdict is doubled, up to the experiment's.
    fn expanded(&self, step: &BisectStep, servers: &[String]) -> Result<(Experiment, Plan)> {
        let mut budget_s = step.budget_s;
        loop {
            let mut contest = step_contest(&self.plan, step.role, servers, budget_s, step.seed)?;
            contest.question = format!(
                "{} Step {}: {}",
                self.plan.question,
                step.name,
                self.question(step)
            );
            let expanded: Result<_, Troubles> =
                expand_step(&self.file, &contest, &run::surroundings(ScriptAccess::Full));
            match expanded {
                Err(_) if budget_s < self.plan.budget_s => {
                    budget_s = (2.0 * budget_s).min(self.plan.budget_s);
                }
                expanded => return Ok(expanded?),
            }
        }
    }

    /// Why the candidate's server does not start by itself; `None` when it does, so that something else made its contest
    /// fail.
    fn does_not_start(&self, file: &ExperimentFile<'_>, plan: &Plan) -> Option<String> {
        let console = Console::new();
        let alone = contest::without_record("bisect", self.home, file, plan, &console, |config| {
            contest::rehearse_one(config, plan.baseline)
        });
        console.finish();
        let error = alone.err().filter(|error| !error.is::<Interrupted>())?;
        Some(format!("it does not start: {error:#}"))
    }
}

/// Budget of the next step: the experiment's for the first contest, then what its result makes likely to be enough, and twice as
/// much after each contest of the same revisions without an answer.
fn step_budget_s(plan: &BisectPlan, judged: &[SummarisedStep], next: &NextStep) -> f64 {
    let Some(ends) = judged.first() else {
        return plan.budget_s;
    };
    let earlier = judged
        .iter()
        .filter(|step| step.revisions == next.revisions && step.answer == Some(StepAnswer::Unsure));
    let enough_s = earlier.fold(BUDGET_FACTOR * ends.load_s, |budget_s, _| 2.0 * budget_s);
    enough_s.clamp(BUDGET_SHARE_MIN * plan.budget_s, plan.budget_s)
}

/// Exit code of a finished bisection: done when a change is found among tested neighbours or a range of skipped
/// revisions.
fn exit_of(summary: &BisectSummary) -> Exit {
    let Some(whole) = summary.parts.first() else {
        return Exit::Undecided;
    };
    if whole.ends == Some(StepAnswer::Void) {
        return Exit::Void;
    }
    let place = whole.place.as_ref().filter(|place| place.is_found);
    let is_answered = |place: &SearchedPlace| {
        let mut open = whole.unanswered.iter();
        !open.any(|&one| place.after < one && one < place.up_to)
    };
    match place.is_some_and(is_answered) {
        true => Exit::Done,
        false => Exit::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use dbduel_testkit::synthetic::bisection;

    fn summary() -> BisectSummary {
        let (plan, records) = bisection();
        let steps = plan.steps.iter().zip(&records);
        let steps = steps.map(|(step, record)| judge_step(&plan, step, record.as_ref()));
        summarise_bisection(&plan, steps.collect())
    }

    #[test]
    fn versions_that_are_not_comparable_are_refused_with_what_one_contender_can_do() {
        let text = "budget = \"1 min\"\n[contenders.server]\nserver = \"mariadb-10.11\"\n\
                    settings = { character_set_server = \"utf8mb4\", collation_server = \"utf8mb4_bin\" }\n[workload]\nname = \"oltp-insert\"\n\
                    [load]\nclients = 4\n";
        let path = Path::new("bisect.toml");
        let (mut plan, _) = bisection();
        plan.source = RevisionSource::Versions;
        plan.revisions.truncate(2);
        for (revision, version) in plan
            .revisions
            .iter_mut()
            .zip(["mariadb-10.5", "mariadb-11.8"])
        {
            revision.name = version.to_owned();
        }
        let experiment = Experiment::parse_single(path, text).unwrap();
        let file = ExperimentFile {
            path,
            text,
            experiment: &experiment,
        };
        let folder = tempfile::tempdir().unwrap();
        let refused = checked(&Home::new(folder.path()), &file, plan).unwrap_err();
        let refused = refused.to_string();
        for part in ["the server of every revision accepts", "about = [\""] {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(!refused.contains("--fix"), "{refused}");
    }

    #[test]
    fn the_budget_of_a_step_follows_from_the_contest_of_the_ends() {
        let (mut plan, _) = bisection();
        plan.budget_s = 1000.0;
        let next = NextStep {
            role: StepRole::Candidate,
            revisions: vec![0, 4, 2],
        };
        assert!((step_budget_s(&plan, &[], &next) - 1000.0).abs() < 1e-9);
        let mut ends = summary().steps.swap_remove(0);
        for (load_s, budget_s, again_s) in [
            (10.0, 250.0, 250.0),
            (150.0, 450.0, 900.0),
            (200.0, 600.0, 1000.0),
            (900.0, 1000.0, 1000.0),
        ] {
            ends.load_s = load_s;
            let unsure = SummarisedStep {
                role: next.role,
                revisions: next.revisions.clone(),
                answer: Some(StepAnswer::Unsure),
                ..ends.clone()
            };
            let mut judged = vec![ends.clone()];
            for expected in [budget_s, again_s] {
                let found = step_budget_s(&plan, &judged, &next);
                assert!((found - expected).abs() < 1e-9, "{load_s}: {found}");
                judged.push(unsure.clone());
            }
            judged.pop();
            // Of another revision nothing is known yet.
            let other = NextStep {
                revisions: vec![0, 4, 3],
                ..next.clone()
            };
            let found = step_budget_s(&plan, &judged, &other);
            assert!((found - budget_s).abs() < 1e-9, "{load_s}: {found}");
        }
    }

    #[test]
    fn the_revisions_of_both_answers_are_built_ahead() {
        let (mut plan, _) = bisection();
        let last = plan.last();
        plan.steps.truncate(1);
        let text =
            "[contenders.server]\nserver = \"sqlite\"\n[workload]\nname = \"oltp-read-only\"\n";
        let path = Path::new("bisect.toml");
        let bisecting = |plan: &BisectPlan| {
            Experiment::parse_single(path, text).map(|experiment| {
                let judged = [SummarisedStep {
                    answer: Some(StepAnswer::Differ),
                    ..judge_step(plan, &plan.steps[0], None)
                }];
                let file = ExperimentFile {
                    path,
                    text,
                    experiment: &experiment,
                };
                let whole = Bisecting {
                    home: &Home::new("/home-of-a-test"),
                    dir: path.to_owned(),
                    file,
                    plan: plan.clone(),
                    options: &RunOptions::default(),
                    failed_builds: FailedBuilds::default(),
                };
                match plan.steps.get(1) {
                    None => whole.coming(&plan.steps[0], &[]),
                    Some(candidate) => whole.coming(candidate, &judged),
                }
            })
        };
        let first = bisecting(&plan).unwrap();
        assert_eq!(first, [last / 2]);
        plan.steps.push(BisectStep {
            name: "02".to_owned(),
            role: StepRole::Candidate,
            revisions: vec![0, last, first[0]],
            ..plan.steps[0].clone()
        });
        let mut coming = bisecting(&plan).unwrap();
        coming.sort_unstable();
        assert_eq!(coming, [first[0] - 1, first[0] + 1]);
    }

    #[test]
    fn only_a_found_place_without_open_revisions_is_done() {
        let mut summary = summary();
        assert_eq!(exit_of(&summary), Exit::Done);
        let place = summary.parts[0].place.clone().unwrap();
        summary.parts[0].unanswered = vec![place.after + 1];
        assert_eq!(exit_of(&summary), Exit::Undecided);
        summary.parts[0].place = None;
        assert_eq!(exit_of(&summary), Exit::Undecided);
        summary.parts[0].ends = Some(StepAnswer::Void);
        assert_eq!(exit_of(&summary), Exit::Void);
    }
}
