//! A cell: one contest of a fleet, identified by the digest of its plan, and its result.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use dbduel_experiment::document::Troubles;
use dbduel_experiment::expand::{Surroundings, expand};
use dbduel_experiment::{Experiment, ExperimentFile};
use dbduel_machine::host;
use dbduel_record::{Plan, manifest};
use dbduel_workloads::parameters::ScriptAccess;
use serde::{Deserialize, Serialize};

use super::permitted;

/// Digits of a digest shown to people.
const SHOWN_DIGITS: usize = 10;
/// Characters of a digest.
const DIGEST_DIGITS: usize = 64;
/// Longest name of an experiment in a cell.
const NAME_CHARACTERS_MAX: usize = 160;
/// Processors assumed by the plan whose digest is taken, so that the digest is the same on all machines.
const PLANNED_CPUS: u32 = 2;
/// Most processors that an experiment may name.
const PROCESSORS: u32 = 4096;

/// Entry of a cell, kept from its submission on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellEntry {
    /// Digest of its plan; see [`digest`].
    pub digest: String,
    /// Cells of one campaign are counted together, and the same plan is another cell in another campaign.
    pub campaign: String,
    /// Name of the experiment's file without its ending.
    pub experiment: String,
    /// Label among the cells of the experiment; empty when it is the only one.
    pub label: String,
    /// When it was submitted, milliseconds since 1970-01-01 UTC.
    pub submitted_ms: u64,
}

impl CellEntry {
    /// Name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self.label.as_str() {
            "" => self.experiment.clone(),
            label => format!("{} ({label})", self.experiment),
        }
    }

    /// The beginning of its digest.
    #[must_use]
    pub fn short(&self) -> &str {
        short(&self.digest)
    }
}

/// The beginning of a digest, for people.
#[must_use]
pub fn short(digest: &str) -> &str {
    digest.get(..SHOWN_DIGITS).unwrap_or(digest)
}

/// A cell in the queue: an experiment without `[sweep]`, with its seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Which cell it is.
    #[serde(flatten)]
    pub entry: CellEntry,
    /// The text of its experiment file.
    pub text: String,
    /// Version of dbduel that submitted it.
    pub dbduel: String,
}

impl Cell {
    /// Reads a cell from the queue.
    ///
    /// # Errors
    /// When it cannot be parsed, or its names are not allowed in the names of files and of entries.
    pub fn read(payload: &[u8]) -> Result<Self> {
        let cell: Cell = serde_json::from_slice(payload)?;
        let CellEntry {
            digest, experiment, ..
        } = &cell.entry;
        let is_digest =
            digest.len() == DIGEST_DIGITS && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
        ensure!(is_digest, "`{digest}` is not a digest");
        let is_name = !experiment.starts_with('.')
            && (1..=NAME_CHARACTERS_MAX).contains(&experiment.len())
            && experiment
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b"._-%~".contains(&c));
        ensure!(
            is_name,
            "`{experiment}` is not a valid name for an experiment"
        );
        Ok(cell)
    }
}

/// Result of a cell; the first one counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The agent that delivered it.
    pub agent: String,
    /// When it ended, milliseconds since 1970-01-01 UTC.
    pub ended_ms: u64,
    /// Time since the agent took it, seconds.
    pub took_s: f64,
    /// How it ended.
    pub outcome: CellOutcome,
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellOutcome {
    /// With a record in the archive, under this digest, and its verdicts as sentences.
    Record {
        /// Digest of the packed record.
        digest: String,
        /// One sentence per verdict.
        verdicts: Vec<String>,
    },
    /// Without a record, for this reason.
    Failed {
        /// The reason.
        why: String,
    },
}

/// The failed attempts of a cell: their number and the last one; kept until the cell has a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Attempts that failed, this one included.
    pub count: u32,
    /// The attempt that failed last.
    pub last: CellResult,
}

/// Keys of the fleet's entries.
pub mod key {
    /// Cells as they were submitted.
    pub const CELL: &str = "cell.";
    /// Results of cells.
    pub const RESULT: &str = "result.";
    /// Failed attempts of cells without a result.
    pub const FAILURE: &str = "failure.";
    /// Results of cells that had one already.
    pub const REPEATED: &str = "repeated.";

    /// The key of a cell's entry of one kind.
    #[must_use]
    pub fn of(kind: &str, digest: &str) -> String {
        format!("{kind}{digest}")
    }
}

/// The digest of a plan that is the same on every machine: made for a fixed number of processors, without the time and
/// the version of its maker. Comments and the order of an experiment's text do not matter to it.
///
/// # Errors
/// When the plan cannot be written as JSON.
pub fn digest(campaign: &str, plan: &Plan) -> Result<String> {
    let anywhere = Plan {
        created: String::new(),
        dbduel: String::new(),
        ..plan.clone()
    };
    let text = serde_json::to_string(&(campaign, &anywhere)).context("could not write the plan")?;
    Ok(manifest::digest(text.as_bytes()))
}

/// The plan of an experiment, independent of the machine.
///
/// # Errors
/// All that is wrong with the experiment, and all that agents refuse, with line and column.
pub fn plan_anywhere(file: &ExperimentFile<'_>) -> Result<Plan, Troubles> {
    permitted::check(file)?;
    expand(file, &anywhere())
}

/// Surroundings of a plan that are the same on all machines.
#[must_use]
pub fn anywhere() -> Surroundings {
    Surroundings {
        created: String::new(),
        fresh_seed: 0,
        cpus: PLANNED_CPUS,
        processors: (0..PROCESSORS).collect(),
        runs_here: false,
        scripts: ScriptAccess::Confined,
    }
}

/// The plan of a cell on this machine, from the text of its experiment, which will be written to `path`.
///
/// # Errors
/// As [`plan_anywhere`], and when this machine cannot run it.
pub fn plan_here(path: &Path, text: &str) -> Result<Plan> {
    let experiment = Experiment::parse(path, text)?;
    let file = ExperimentFile {
        path,
        text,
        experiment: &experiment,
    };
    permitted::check(&file)?;
    ensure!(
        experiment.sweep.is_empty(),
        "a cell cannot have a [sweep]; submit the experiment with `dbduel fleet submit`, which \
         makes one cell per combination"
    );
    let here = Surroundings {
        cpus: host::cpus(),
        processors: host::processors(),
        runs_here: true,
        ..anywhere()
    };
    let plan = expand(&file, &here)?;
    permitted::check_plan(&plan).map_err(anyhow::Error::msg)?;
    Ok(plan)
}
