//! Expands an experiment with one contender into the contests of a bisection: the contender once for each revision, with
//! that revision as its server.

use std::time::Duration;

use dbduel_record::Plan;
use dbduel_record::bisect::StepRole;

use super::captured::is_captured;
use super::{Surroundings, expand};
use crate::experiment::document::{Located, Report, Troubles};
use crate::experiment::{Experiment, ExperimentFile, Rates};

/// A contest of a bisection.
#[derive(Debug, Clone)]
pub struct StepContest<'a> {
    /// Its question, which names its contenders.
    pub role: StepRole,
    /// Server of each contender, in the order of the role.
    pub servers: &'a [String],
    /// The workload of the suite that is its load, if the experiment has a suite.
    pub cell: Option<&'a str>,
    /// Time for warm-up and slices, seconds.
    pub budget_s: f64,
    /// Probability of error, at most, of each comparison with the baseline.
    pub error: f64,
    /// Seed of the plan.
    pub seed: u64,
    /// Question of the plan.
    pub question: String,
}

/// The plan of a step, and its experiment.
///
/// # Errors
/// As [`expand`]; keys that a bisection does not support, with line and column.
pub fn expand_step(
    file: &ExperimentFile<'_>,
    step: &StepContest<'_>,
    surroundings: &Surroundings,
) -> Result<(Experiment, Plan), Troubles> {
    refuse_unsupported(file, step.cell)?;
    let own = experiment_of(file.experiment, step);
    let own_file = ExperimentFile {
        experiment: &own,
        ..*file
    };
    let mut plan = expand(&own_file, surroundings)?;
    plan.question.clone_from(&step.question);
    Ok((own, plan))
}

/// The experiment of a step, as if its contenders were written there.
fn experiment_of(experiment: &Experiment, step: &StepContest<'_>) -> Experiment {
    let mut own = experiment.clone();
    let names = step.role.contenders();
    let template = own.contenders.drain(..).next();
    if let Some(template) = template {
        let contenders = names.iter().zip(step.servers).map(|(name, server)| {
            let mut contender = template.clone();
            contender.server = Some(Located {
                value: server.clone(),
                span: template.server_span(),
            });
            contender.name.value = (*name).to_owned();
            contender
        });
        own.contenders = contenders.collect();
        own.baseline = Some(Located {
            value: step.role.baseline().to_owned(),
            span: template.name.span.clone(),
        });
    }
    // Its tables stay those that it shares with the other ones.
    if let (Some(suite), Some(cell)) = (&mut own.suite, step.cell) {
        suite.workloads.retain(|one| one.name.value == cell);
        let mut chosen = suite.workloads.iter().map(|one| &one.workload);
        if !chosen.any(is_captured) {
            own.data = None;
        }
    }
    // What the two or one others have of the error probability.
    own.confidence = Some(1.0 - step.error * (names.len() - 1) as f64);
    own.seed = Some(step.seed);
    own.budget = Some(Located {
        // Bounded by what was parsed, so that the conversion cannot fail.
        value: Duration::from_secs_f64(step.budget_s.max(0.0)),
        span: experiment
            .budget
            .as_ref()
            .map_or(0..0, |budget| budget.span.clone()),
    });
    own
}

/// Refuses keys with which a step would have more than one question, or none about its revisions.
fn refuse_unsupported(file: &ExperimentFile<'_>, cell: Option<&str>) -> Result<(), Troubles> {
    let ExperimentFile {
        path,
        text,
        experiment,
    } = *file;
    let report = Report::new(path, text);
    let refuse = |span: &std::ops::Range<usize>, what: &str| {
        report.add(
            span,
            format!("a bisection has one workload at one load level and varies the server alone: remove {what}"),
        );
    };
    if let Some(suite) = &experiment.suite {
        let mut names = suite.workloads.iter().map(|one| &one.name.value);
        match cell {
            None => refuse(&suite.span, "the other ones with --cell NAME"),
            Some(cell) if !names.any(|name| name == cell) => {
                report.add(&suite.span, format!("the suite has no workload `{cell}`"));
            }
            Some(_) => {}
        }
    }
    if let Some(factor) = experiment.sweep.first() {
        refuse(&factor.name.span, "[sweep]");
    }
    if let Some(attribute) = &experiment.attribute {
        refuse(&attribute.span, "[attribute]");
    }
    if let Some(injection) = &experiment.injection {
        refuse(&injection.contender.span, "[injection]");
    }
    if let Some(baseline) = &experiment.baseline {
        refuse(&baseline.span, "`baseline`");
    }
    let variants = experiment.contenders.iter();
    if let Some((name, _)) = variants.flat_map(|one| &one.variants).next() {
        refuse(&name.span, "`variants`");
    }
    if let Some(clients) = experiment.load.clients.as_ref()
        && clients.value.len() > 1
    {
        refuse(&clients.span, "all but one number of clients");
    }
    if let Some(rate) = &experiment.load.rate {
        match &rate.value {
            Rates::Searched => refuse(&rate.span, "the search, and name a rate"),
            Rates::These(rates) if rates.len() > 1 => refuse(&rate.span, "all but one rate"),
            Rates::These(_) => {}
        }
    }
    report.finish(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dbduel_workloads::parameters::ScriptAccess;

    use super::*;

    const TEMPLATE: &str = "budget = \"5 min\"\nhorizon = \"3 %\"\n[contenders.server]\nserver = \"sqlite\"\nsettings = { cache_size = -4000 }\n\
                            [workload]\nname = \"oltp-point-select\"\n[load]\nclients = 1\n\
                            [schedule]\nslice = \"500 ms\"\n";

    fn expanded(text: &str, role: StepRole) -> Result<Plan, Troubles> {
        let path = Path::new("bisect.toml");
        let experiment = &Experiment::parse_single(path, text)?;
        let file = ExperimentFile {
            path,
            text,
            experiment,
        };
        let servers = vec!["sqlite".to_owned(); role.contenders().len()];
        let step = StepContest {
            role,
            servers: &servers,
            cell: None,
            budget_s: 120.0,
            error: 0.01,
            seed: 7,
            question: "Step 3".to_owned(),
        };
        let surroundings = Surroundings {
            created: String::new(),
            fresh_seed: 1,
            cpus: 2,
            processors: vec![0, 1],
            runs_here: false,
            scripts: ScriptAccess::Confined,
        };
        Ok(expand_step(&file, &step, &surroundings)?.1)
    }

    #[test]
    fn a_candidate_is_the_baseline_of_two_comparisons_with_their_error() {
        let plan = expanded(TEMPLATE, StepRole::Candidate).unwrap();
        let names: Vec<&str> = plan
            .contenders
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["good", "bad", "candidate"]);
        assert_eq!(plan.baseline, 2);
        assert!((plan.decision.confidence - 0.98).abs() < 1e-12);
        assert!(plan.contenders.iter().all(|one| one.settings.len() == 1));
        assert_eq!((plan.schedule.budget_s, plan.seed), (120.0, 7));
        assert_eq!(plan.question, "Step 3");
        let plan = expanded(TEMPLATE, StepRole::Ends).unwrap();
        assert_eq!((plan.contenders.len(), plan.baseline), (2, 0));
        assert!((plan.decision.confidence - 0.99).abs() < 1e-12);
    }

    #[test]
    fn what_a_bisection_does_not_vary_is_refused_with_its_place() {
        for (text, part) in [
            (
                TEMPLATE.replace("clients = 1", "clients = [1, 4]"),
                "bisect.toml:9:11: a bisection has one workload at one load level",
            ),
            (
                format!("{TEMPLATE}[sweep]\ntable_size = [10, 20]\n"),
                "remove [sweep]",
            ),
            (
                TEMPLATE
                    .replace("settings", "variants")
                    .replace("-4000", "[1, 2]"),
                "remove `variants`",
            ),
            (
                format!("{TEMPLATE}[contenders.other]\nserver = \"sqlite\"\n"),
                "a bisection has one contender, found 2",
            ),
        ] {
            let refused = expanded(&text, StepRole::Ends).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
