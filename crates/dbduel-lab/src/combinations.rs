//! Settings of a designed contest that cannot be combined. Starts every contender's server on empty data before
//! anything is loaded, and groups incompatible settings so that they change as one factor.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use dbduel_experiment::attribute::WrittenFactor;
use dbduel_experiment::document::Located;
use dbduel_experiment::expand::{Surroundings, expand};
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_record::design::{Design, DesignFactor};
use dbduel_server::Home;

use super::contest::{self, ContestConfig};
use crate::StatusOutput;

/// Reduces a designed contest to a plan whose servers all start, with as many factors as possible.
///
/// # Errors
/// When one of the two compared contenders does not start, or the difference between them cannot be split.
pub fn combinable(
    home: &Home,
    file: &ExperimentFile<'_>,
    plan: Plan,
    surroundings: &Surroundings,
    console: &dyn StatusOutput,
) -> Result<Plan> {
    let mut tried = BTreeMap::new();
    let mut now = Attempt::of(
        home,
        file,
        file.experiment.clone(),
        plan,
        console,
        &mut tried,
    )?;
    // Every pass makes one factor of two.
    while let (Some(design), Some((_, because))) =
        (now.plan.design.clone(), now.refused.first().cloned())
    {
        let mut best: Option<(Attempt, [usize; 2])> = None;
        for pair in candidates(&design, &now.refused) {
            let mut experiment = now.experiment.clone();
            regroup(&mut experiment, &design, pair, &because);
            let own = ExperimentFile {
                experiment: &experiment,
                ..*file
            };
            let plan = expand(&own, surroundings).with_context(|| {
                format!("servers refuse combinations of the settings that differ ({because})")
            })?;
            let attempt = Attempt::of(home, file, experiment, plan, console, &mut tried)?;
            let is_better = |(other, _): &(Attempt, _)| attempt.refused.len() < other.refused.len();
            if best.as_ref().is_none_or(is_better) {
                let is_free = attempt.refused.is_empty();
                best = Some((attempt, pair));
                if is_free {
                    break;
                }
            }
        }
        let Some((attempt, pair)) = best else { break };
        let [one, other] = pair.map(|factor| design.factors[factor].name.as_str());
        console.say(&format!("`{one}` and `{other}` change together: {because}"));
        now = attempt;
    }
    Ok(now.plan)
}

/// A plan, and its runs whose servers do not start, with the error of each.
struct Attempt {
    experiment: Experiment,
    plan: Plan,
    refused: Vec<(usize, String)>,
}

impl Attempt {
    fn of(
        home: &Home,
        file: &ExperimentFile<'_>,
        experiment: Experiment,
        plan: Plan,
        console: &dyn StatusOutput,
        tried: &mut Tried,
    ) -> Result<Self> {
        let refused = match &plan.design {
            Some(design) => {
                contest::without_record("combinations", home, file, &plan, console, |config| {
                    refused(config, design, tried)
                })?
            }
            None => Vec::new(),
        };
        Ok(Self {
            experiment,
            plan,
            refused,
        })
    }
}

/// Error of a server by its settings; `None` when it started.
type Tried = BTreeMap<String, Option<String>>;

/// The runs whose servers do not start, with the error of each.
fn refused(
    config: &ContestConfig<'_>,
    design: &Design,
    tried: &mut Tried,
) -> Result<Vec<(usize, String)>> {
    let plan = &config.plan;
    // The two themselves first: without them there is nothing to divide.
    let ends = [plan.baseline, design.target];
    let others = (0..plan.contenders.len()).filter(|number| !ends.contains(number));
    let mut refused = Vec::new();
    for number in ends.into_iter().chain(others) {
        let contender = &plan.contenders[number];
        let settings = contender.settings.iter();
        let settings = settings.map(|setting| format!("\n{}={}", setting.name, setting.value));
        let key = format!("{}{}", contender.server, settings.collect::<String>());
        let said = match tried.get(&key) {
            Some(said) => said.clone(),
            None => {
                // Twice, since a start can also fail by chance.
                let mut started = contest::rehearse_one(config, number);
                if started.is_err() {
                    interrupt::check()?;
                    started = contest::rehearse_one(config, number);
                }
                interrupt::check()?;
                let said = match started {
                    Ok(_) => None,
                    Err(error) if ends.contains(&number) => return Err(error),
                    Err(error) => Some(without_log(&format!("{error:#}"))),
                };
                tried.insert(key, said.clone());
                said
            }
        };
        refused.extend(said.map(|said| (number, said)));
    }
    Ok(refused)
}

/// The error without the path of a log that was removed with its sandbox.
fn without_log(said: &str) -> String {
    let (words, _) = said.split_once("; its log is `").unwrap_or((said, ""));
    words.to_owned()
}

/// The pairs of factors at different levels in most of the refused runs, and among those in the fewest accepted ones:
/// treating such a pair as one factor removes most refused runs and few others. A design may have several candidates,
/// of which one is to blame.
fn candidates(design: &Design, refused: &[(usize, String)]) -> Vec<[usize; 2]> {
    let factors = design.factors.len();
    let is_refused = |run: usize| refused.iter().any(|(bad, _)| *bad == run);
    let merit = |[one, other]: [usize; 2]| {
        let differing =
            (0..design.runs.len()).filter(|run| design.runs[*run][one] != design.runs[*run][other]);
        let (bad, good): (Vec<usize>, Vec<usize>) = differing.partition(|run| is_refused(*run));
        (bad.len(), std::cmp::Reverse(good.len()))
    };
    let pairs = || (0..factors).flat_map(|one| (one + 1..factors).map(move |other| [one, other]));
    let most = pairs().map(merit).max();
    pairs().filter(|pair| Some(merit(*pair)) == most).collect()
}

/// Writes the factors of a design into the experiment, joining two of them.
fn regroup(experiment: &mut Experiment, design: &Design, [one, other]: [usize; 2], because: &str) {
    let Some(attribute) = &mut experiment.attribute else {
        return;
    };
    let span = attribute.span.clone();
    let written = |factor: &DesignFactor| WrittenFactor {
        names: factor
            .changes
            .iter()
            .map(|change| Located {
                value: change.name.clone(),
                span: span.clone(),
            })
            .collect(),
        grouped_because: factor.grouped_because.clone(),
    };
    // What is not listed stays so, unless it is grouped with what is.
    let kept = |number: usize| number == one || design.factors[number].is_listed || number == other;
    let numbered = design.factors.iter().enumerate();
    let mut factors: Vec<(usize, WrittenFactor)> = numbered
        .filter(|(number, _)| kept(*number))
        .map(|(number, factor)| (number, written(factor)))
        .collect();
    if let Some(at) = factors.iter().position(|(number, _)| *number == other) {
        let (_, second) = factors.remove(at);
        for (_, first) in factors.iter_mut().filter(|(number, _)| *number == one) {
            first.names.extend(second.names.iter().cloned());
            first.grouped_because = Some(because.to_owned());
        }
    }
    attribute.factors = factors.into_iter().map(|(_, factor)| factor).collect();
}

#[cfg(test)]
mod tests {
    use dbduel_stats::attribution::FactorialDesign;

    use super::*;

    fn design(factors: usize) -> Design {
        let factor = |number: usize| DesignFactor {
            name: number.to_string(),
            is_listed: true,
            changes: Vec::new(),
            grouped_because: None,
        };
        Design {
            target: 1,
            factors: (0..factors).map(factor).collect(),
            runs: FactorialDesign::new(factors).unwrap().runs().to_vec(),
        }
    }

    #[test]
    fn factors_of_which_one_needs_the_other_are_grouped() {
        for factors in [2, 3, 5] {
            let design = design(factors);
            // The last factor needs the first one.
            let needs = |run: &Vec<bool>| run[factors - 1] && !run[0];
            let runs = design.runs.iter().enumerate().filter(|(_, run)| needs(run));
            let refused: Vec<(usize, String)> =
                runs.map(|(number, _)| (number, "no".to_owned())).collect();
            let found = candidates(&design, &refused);
            assert!(found.contains(&[0, factors - 1]), "{factors}: {found:?}");
            assert!(found.len() <= 2, "{factors}: {found:?}");
        }
    }
}
