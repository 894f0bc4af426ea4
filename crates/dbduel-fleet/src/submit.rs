//! Makes the cells of an experiment and puts them into the queue.

use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_experiment::expand::expand_sweep;
use dbduel_experiment::{Experiment, ExperimentFile, SweptTarget};
use dbduel_lab::contest::now_ms;
use dbduel_record::seed::named_seed;
use toml_edit::{DocumentMut, value};

use super::Fleet;
use super::cell::{self, Cell, CellEntry, CellOutcome, CellResult, key};

/// Seeds stay below 2^53, so that every JSON reader keeps all their digits.
const SEED_BITS: u32 = 53;

/// Counts of the cells of a submission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Cells put into the queue.
    pub queued: u64,
    /// Cells already in the queue or with a worker.
    pub waiting: u64,
    /// Cells that already have a record.
    pub done: u64,
    /// Of those queued, cells that had failed.
    pub retried: u64,
}

/// The cells of an experiment: one, or one per combination of a sweep, each `copies` times with its own seed.
///
/// # Errors
/// All that is wrong with the experiment or refused by agents, with line and column.
pub fn cells_of(path: &Path, text: &str, campaign: &str, copies: u32) -> Result<Vec<Cell>> {
    let experiment = Experiment::parse(path, text)?;
    let file = ExperimentFile {
        path,
        text,
        experiment: &experiment,
    };
    let stem = path
        .file_stem()
        .map_or_else(|| "duel".into(), |stem| stem.to_string_lossy());
    let mut cells = Vec::new();
    for (label, seed, text) in without_sweep(&file)? {
        for copy in 1..=copies {
            let seed = match copy {
                1 => seed,
                _ => named_seed(seed, &format!("fleet/copy/{copy}")) >> (u64::BITS - SEED_BITS),
            };
            let number = (copies > 1).then(|| format!("copy {copy}"));
            let labels: Vec<String> = label.clone().into_iter().chain(number).collect();
            let text = amended(&text, |document| {
                document["seed"] = value(seed.cast_signed());
            })?;
            let own = Experiment::parse(path, &text)?;
            let plan = cell::plan_anywhere(&ExperimentFile {
                path,
                text: &text,
                experiment: &own,
            })?;
            cells.push(Cell {
                entry: CellEntry {
                    digest: cell::digest(campaign, &plan)?,
                    campaign: campaign.to_owned(),
                    experiment: dbduel_record::names::file_name(&stem),
                    label: labels.join(", "),
                    submitted_ms: now_ms(),
                },
                text,
                dbduel: env!("CARGO_PKG_VERSION").to_owned(),
            });
        }
    }
    Ok(cells)
}

/// The experiments of a file, each with its label and its seed. If the file has no seed, the seed is derived from the
/// plan, so that the same experiment submitted again has the same cells.
fn without_sweep(file: &ExperimentFile<'_>) -> Result<Vec<(Option<String>, u64, String)>> {
    let own_seed = file.experiment.seed;
    if file.experiment.sweep.is_empty() {
        let plan = cell::plan_anywhere(file)?;
        let seed = own_seed.map_or_else(|| seed_of(&plan), Ok)?;
        return Ok(vec![(None, seed, file.text.to_owned())]);
    }
    super::permitted::check(file)?;
    let (sweep, plans) = expand_sweep(file, &cell::anywhere())?;
    let share_s = (sweep.budget_s / sweep.cells.len() as f64).ceil();
    let mut cells = Vec::new();
    for (cell, plan) in sweep.cells.iter().zip(&plans) {
        let label = sweep.label(cell);
        let text = amended(file.text, |document| {
            document.remove("sweep");
            document["question"] = value(format!("{} ({label})", sweep.question));
            document["budget"] = value(format!("{share_s} s"));
            let chosen = sweep.factors.iter().zip(&cell.levels);
            for ((factor, &level), written) in chosen.zip(&file.experiment.sweep) {
                // Numbers, texts and switches alone are levels of parameters, and texts of settings.
                let level = match &factor.levels[level].value {
                    serde_json::Value::Bool(on) => value(*on),
                    serde_json::Value::String(text) => value(text),
                    number => match number.as_i64() {
                        Some(whole) => value(whole),
                        None => value(number.as_f64().unwrap_or_default()),
                    },
                };
                let SweptTarget::Setting { name, .. } = &written.target else {
                    document["workload"][&factor.name] = level;
                    continue;
                };
                let contenders = file.experiment.contenders.iter();
                for contender in contenders.filter(|one| written.target.is_of(one)) {
                    document["contenders"][&contender.name.value]["settings"][name] = level.clone();
                }
            }
        })?;
        let seed = match own_seed {
            Some(_) => cell.seed,
            None => seed_of(plan)?,
        };
        cells.push((Some(label), seed, text));
    }
    Ok(cells)
}

fn seed_of(plan: &dbduel_record::Plan) -> Result<u64> {
    let digest = cell::digest("", plan)?;
    let digits = digest.get(..16).context("a digest has 64 digits")?;
    Ok(u64::from_str_radix(digits, 16)? >> (u64::BITS - SEED_BITS))
}

fn amended(text: &str, change: impl FnOnce(&mut DocumentMut)) -> Result<String> {
    let mut document: DocumentMut = text
        .parse()
        .context("could not read the experiment again")?;
    change(&mut document);
    Ok(document.to_string())
}

/// Queues the cells that have no record and are not in the queue. Submitting again completes an interrupted submission.
///
/// # Errors
/// When NATS refuses something or does not answer.
pub fn submit(fleet: &Fleet<'_>, cells: &[Cell]) -> Result<Submitted> {
    let mut submitted = Submitted::default();
    for cell in cells {
        let digest = &cell.entry.digest;
        let result_key = key::of(key::RESULT, digest);
        if let Some(result) = fleet.entries.get(&result_key)? {
            let outcome = serde_json::from_slice::<CellResult>(&result).map(|one| one.outcome);
            if matches!(outcome, Ok(CellOutcome::Record { .. })) {
                submitted.done += 1;
                continue;
            }
            // Failed cells are tried again, and those whose result cannot be parsed.
            fleet.entries.remove(&key::of(key::FAILURE, digest))?;
            fleet.entries.remove(&result_key)?;
            submitted.retried += 1;
        }
        let entry = serde_json::to_vec(&cell.entry)?;
        fleet.entries.create(&key::of(key::CELL, digest), entry)?;
        match fleet.queue.put(digest, serde_json::to_vec(cell)?)? {
            true => submitted.queued += 1,
            false => submitted.waiting += 1,
        }
    }
    Ok(submitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUEL: &str = "budget = \"90 s\"\n[contenders.a]\nserver = \"sqlite\"\n[contenders.b]\nlike = \"a\"\n\
                        settings = { synchronous = \"off\" }\n[workload]\nname = \"oltp-point-select\"\n";

    fn digests(text: &str, campaign: &str, copies: u32) -> Vec<String> {
        let cells = cells_of(Path::new("duel.toml"), text, campaign, copies).unwrap();
        cells.into_iter().map(|cell| cell.entry.digest).collect()
    }

    #[test]
    fn a_cell_is_known_by_its_plan_and_its_campaign() {
        let first = digests(DUEL, "x", 1);
        assert_eq!(first, digests(&format!("# note\n{DUEL}"), "x", 1));
        assert_ne!(first, digests(DUEL, "y", 1));
        assert_ne!(first, digests(&DUEL.replace("90 s", "91 s"), "x", 1));
        let three = digests(DUEL, "x", 3);
        assert_eq!(three[0], first[0]);
        assert!(three[0] != three[1] && three[1] != three[2]);
    }

    #[test]
    fn swept_settings_are_written_to_the_contenders_of_each_cell() {
        let text = format!(
            "{}[sweep]\nsettings.cache_size = [-2000, -4000]\ncontenders.a.settings.mmap_size = [0, 4096]\n",
            DUEL.replace("90 s", "180 s")
        );
        let cells = cells_of(Path::new("duel.toml"), &text, "x", 1).unwrap();
        let (_, plans) = {
            let experiment = Experiment::parse(Path::new("duel.toml"), &text).unwrap();
            let file = ExperimentFile {
                path: Path::new("duel.toml"),
                text: &text,
                experiment: &experiment,
            };
            expand_sweep(&file, &cell::anywhere()).unwrap()
        };
        assert_eq!(cells.len(), 4);
        for (cell, plan) in cells.iter().zip(plans) {
            let experiment = Experiment::parse(Path::new("duel.toml"), &cell.text).unwrap();
            let own = cell::plan_anywhere(&ExperimentFile {
                path: Path::new("duel.toml"),
                text: &cell.text,
                experiment: &experiment,
            })
            .unwrap();
            let settings = |plan: &dbduel_record::Plan| {
                let contenders = plan.contenders.iter();
                let settings = contenders.map(|contender| {
                    let settings = contender.settings.iter();
                    settings
                        .map(|one| (one.name.clone(), one.value.clone()))
                        .collect::<std::collections::BTreeMap<String, String>>()
                });
                settings.collect::<Vec<_>>()
            };
            assert_eq!(settings(&own), settings(&plan), "{}", cell.text);
            assert_eq!(settings(&own)[1].len(), 3);
        }
    }

    #[test]
    fn a_sweep_is_a_cell_for_each_combination_without_a_sweep_in_it() {
        let text = format!("{DUEL}[sweep]\ntable_size = [1_000, 2_000, 4_000]\n");
        let cells = cells_of(Path::new("duel.toml"), &text, "x", 2).unwrap();
        assert_eq!(cells.len(), 6);
        for cell in &cells {
            let own = Experiment::parse(Path::new("duel.toml"), &cell.text).unwrap();
            assert!(own.sweep.is_empty() && own.seed.is_some(), "{}", cell.text);
            assert_eq!(own.budget.unwrap().value.as_secs(), 30);
            assert!(
                own.question.unwrap().contains("table_size"),
                "{}",
                cell.text
            );
        }
        let again = cells_of(Path::new("duel.toml"), &text, "x", 2).unwrap();
        let digest = |cell: &Cell| cell.entry.digest.clone();
        assert_eq!(
            cells.iter().map(digest).collect::<Vec<_>>(),
            again.iter().map(digest).collect::<Vec<_>>()
        );
    }
}
