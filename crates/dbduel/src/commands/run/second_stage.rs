//! The second stage of an attribution: the factors that a record does not show to be within its horizon, with new data.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_experiment::EXPERIMENT_BYTES_MAX;
use dbduel_record::Record;
use dbduel_record::design::DesignFactor;
use dbduel_record::foreign::read_text;
use dbduel_record::store::EXPERIMENT;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use dbduel_judge as judge;
use dbduel_judge::Summary;

/// The experiment of a record's second stage, and its path for messages: beside the record's experiment, so that the
/// files which it names are found.
///
/// # Errors
/// When `record` is not a finished record of a designed contest, or when none or all of its factors are shown to be
/// within the horizon.
pub fn experiment(record: &Path) -> Result<(PathBuf, String)> {
    let past = Record::open(record)?;
    let dir = record.display();
    let Some(design) = &past.plan.design else {
        bail!("`{dir}` is not a record of `dbduel attribute`, so it has no factors");
    };
    if !past.is_over() {
        bail!("the contest in `{dir}` is not over; resume it with `dbduel run {dir}`");
    }
    let (summary, _) = judge::summarise(&past);
    let remaining = remaining(&summary, &design.factors);
    if remaining.len() == design.factors.len() {
        bail!(
            "no factor of `{dir}` is shown to be within the horizon, so all remain; extend it with \
             `dbduel run {dir} --budget TIME`"
        );
    }
    if remaining.is_empty() {
        bail!(
            "every factor of `{dir}` is shown to be within the horizon; no factor remains for a \
             second stage"
        );
    }
    let path = record.join(EXPERIMENT);
    let text = read_text(&path, EXPERIMENT_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    let text = with_factors(&text, &remaining)?;
    Ok((record.join("second-stage.toml"), text))
}

/// The factors that are not shown to be within the horizon at every level.
fn remaining<'f>(summary: &Summary, factors: &'f [DesignFactor]) -> Vec<&'f DesignFactor> {
    let has_left = |number: usize| {
        summary.duels.iter().all(|duel| {
            let attribution = duel.attribution.as_ref();
            let effect = attribution.and_then(|one| one.effects.get(number));
            effect.is_some_and(|effect| effect.is_within_horizon)
        })
    };
    let numbered = factors.iter().enumerate();
    let remaining = numbered.filter(|(number, _)| !has_left(*number));
    remaining.map(|(_, factor)| factor).collect()
}

/// The experiment with these factors; everything else that differs becomes one more. A fixed seed is removed: with it,
/// the second stage could repeat the orders of the first, from which its factors were chosen.
fn with_factors(text: &str, factors: &[&DesignFactor]) -> Result<String> {
    let mut document: DocumentMut = text
        .parse()
        .context("could not read the record's experiment again")?;
    document.remove("seed");
    let written = factors.iter().map(|factor| {
        let mut names = factor.changes.iter().map(|change| change.name.as_str());
        match (names.next(), factor.changes.len()) {
            (Some(only), 1) => Value::from(only),
            (first, _) => Value::Array(first.into_iter().chain(names).collect()),
        }
    });
    let list: Array = written.collect();
    let attribute = document
        .entry("attribute")
        .or_insert_with(|| Item::Table(Table::new()));
    attribute["factors"] = Item::Value(Value::Array(list));
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn factors_within_the_horizon_change_as_one_and_the_others_remain() {
        let record = Scenario::designed().record();
        let (summary, _) = judge::summarise(&record);
        let factors = &record.plan.design.as_ref().unwrap().factors;
        let kept = remaining(&summary, factors);
        // The third factor of the scenario does nothing.
        assert_eq!(kept, [&factors[0], &factors[1]]);
        for text in [
            "seed = 7\nbudget = \"1 min\"\n",
            "budget = \"1 min\"\n[attribute]\nto = \"fast\"\nfactors = [\"a\", [\"b\", \"c\"], \"d\"]\n",
        ] {
            let amended = with_factors(text, &kept).unwrap();
            let document: DocumentMut = amended.parse().unwrap();
            assert!(document.get("seed").is_none());
            assert_eq!(document["budget"].as_str(), Some("1 min"));
            let list = document["attribute"]["factors"].as_array().unwrap();
            assert_eq!(list.len(), 2);
            for (written, factor) in list.iter().zip(&kept) {
                let names = factor.changes.iter().map(|change| change.name.as_str());
                match written.as_array() {
                    Some(group) => assert!(group.iter().filter_map(Value::as_str).eq(names)),
                    None => assert!(written.as_str().into_iter().eq(names)),
                }
            }
        }
    }

    #[test]
    fn what_has_no_second_stage_is_refused() {
        let record = |scenario: Scenario| {
            let record = scenario.record();
            let (summary, _) = judge::summarise(&record);
            let factors = record.plan.design.clone().map(|design| design.factors);
            remaining(&summary, &factors.unwrap_or_default()).len()
        };
        let early = Scenario {
            blocks: 3,
            ..Scenario::designed()
        };
        assert_eq!(record(early), 3);
        let dir = tempfile::tempdir().unwrap();
        assert!(experiment(dir.path()).is_err());
    }
}
