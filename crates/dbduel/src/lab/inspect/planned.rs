//! The contenders of a plan before anything is started: recorded defaults with the settings asked for,
//! and servers that run already.

use anyhow::{Context as _, Result, bail};
use dbduel_load::address::ServerAddress;
use dbduel_load::driver::sqlite_version;
use dbduel_record::Plan;
use dbduel_record::plan::Contender;

use super::live;
use crate::judge::audit::{Case, Machine, Product, ServerEvidence, Version, expected, set_option};
use crate::lab::experiment::ExperimentFile;
use crate::lab::experiment::document::{Trouble, Troubles};
use crate::lab::host;
use crate::lab::server::{Home, Meaning, SQLITE, ServerName, install};

/// A setting that its server does not take.
#[derive(Debug, thiserror::Error)]
#[error("contender `{contender}`: {why}")]
pub struct RefusedByServer {
    /// Whose setting it is.
    pub contender: String,
    /// Its name.
    pub setting: String,
    /// Why not.
    pub why: String,
}

/// The case that a plan makes on a machine.
///
/// # Errors
/// When a contender's version shows only when it is started, a setting is none that its server takes
/// ([`RefusedByServer`]), or a running server does not answer.
pub fn case(plan: &Plan, machine: Machine) -> Result<Case> {
    let machine = for_servers(plan, machine);
    let contenders = plan.contenders.iter();
    let contenders: Result<Vec<ServerEvidence>> = contenders
        .map(|one| contender(plan, one, machine))
        .collect();
    let mut case = Case::of(contenders?);
    about_plan(&mut case, plan);
    Ok(case)
}

/// The machine as the servers of a plan see it.
fn for_servers(plan: &Plan, machine: Machine) -> Machine {
    let confined = u32::try_from(plan.load.server_cores.len()).ok();
    Machine {
        cpus: confined.filter(|&cores| cores > 0).or(machine.cpus),
        ..machine
    }
}

/// The case that a plan makes as far as it can be foreseen without fetching or starting anything. Contenders of
/// which nothing is known yet are left out; `None` when fewer than two remain.
///
/// # Errors
/// When a setting is none that its server takes ([`RefusedByServer`]).
pub fn foreseen(plan: &Plan, home: &Home) -> Result<Option<Case>> {
    let machine = for_servers(plan, Machine::of(&host::read(home.root())));
    let mut contenders = Vec::new();
    let mut baseline = 0;
    for (index, contender) in plan.contenders.iter().enumerate() {
        let Ok(name) = ServerName::parse(&contender.server) else {
            continue;
        };
        let evidence = match &name.meaning {
            // A server that does not answer now is for the contest to report.
            Meaning::Running(address) => running(plan, contender, address).ok(),
            Meaning::InProcess => known_version(&name)
                .map(|(product, version)| predicted(contender, product, version, machine))
                .transpose()?,
            Meaning::Provided { .. } => {
                let at_hand = install::at_hand(&name, home).and_then(|build| {
                    let version = Version::parse(&build.version.to_string())?;
                    Some((Product::named(&build.product)?, version))
                });
                at_hand
                    .or_else(|| known_version(&name))
                    .map(|(product, version)| predicted(contender, product, version, machine))
                    .transpose()?
            }
        };
        if let Some(evidence) = evidence {
            if index == plan.baseline {
                baseline = contenders.len();
            }
            contenders.push(evidence);
        }
    }
    if contenders.len() < 2 {
        return Ok(None);
    }
    let mut case = Case::of(contenders);
    about_plan(&mut case, plan);
    case.baseline = baseline;
    Ok(Some(case))
}

/// The error with the place of the setting in the experiment, when it is about one.
#[must_use]
pub fn at_its_place(error: anyhow::Error, file: &ExperimentFile<'_>) -> anyhow::Error {
    let place = error.downcast_ref::<RefusedByServer>().and_then(|wrong| {
        file.experiment
            .setting_span(&wrong.contender, &wrong.setting)
    });
    match place {
        Some(span) => anyhow::Error::new(Troubles {
            path: file.path.to_owned(),
            list: vec![Trouble::at(file.text, span.start, error.to_string())],
        }),
        None => error,
    }
}

/// Adds what a plan asks for and claims to evidence of its running servers.
#[must_use]
pub fn case_of_running(plan: &Plan, mut contenders: Vec<ServerEvidence>) -> Case {
    for (evidence, contender) in contenders.iter_mut().zip(&plan.contenders) {
        ask_for(contender, evidence);
    }
    let mut case = Case::of(contenders);
    about_plan(&mut case, plan);
    case
}

/// Adds the settings that a contender is asked for to what its server shows.
pub fn ask_for(contender: &Contender, evidence: &mut ServerEvidence) {
    for setting in &contender.settings {
        evidence.ask(&setting.name, &setting.value);
    }
}

/// What a plan says of its contest.
fn about_plan(case: &mut Case, plan: &Plan) {
    case.baseline = plan.baseline;
    case.clients = plan.levels.iter().map(|level| level.clients).max();
    case.about.clone_from(&plan.about);
    case.waive(&plan.waivers);
    case.declare_design(plan);
    case.declare_tables(plan);
    case.set_sessions(plan);
    case.declare_what_was_asked();
}

fn contender(plan: &Plan, contender: &Contender, machine: Machine) -> Result<ServerEvidence> {
    let about = || format!("contender `{}`", contender.name);
    let name = ServerName::parse(&contender.server).with_context(about)?;
    if let Meaning::Running(address) = &name.meaning {
        return running(plan, contender, address);
    }
    let Some((product, version)) = known_version(&name) else {
        bail!(
            "which version `{}` is shows only when it is started; start it and audit it by address, or audit a record",
            contender.server
        )
    };
    predicted(contender, product, version, machine)
}

/// What a running server shows, with what its contender asks for.
fn running(plan: &Plan, contender: &Contender, address: &ServerAddress) -> Result<ServerEvidence> {
    let mut evidence = live::of_contender(contender, address, plan)?;
    ask_for(contender, &mut evidence);
    Ok(evidence)
}

/// Product and version of a server of the catalogue, or of the SQLite that comes with this program.
fn known_version(name: &ServerName) -> Option<(Product, Version)> {
    if matches!(name.meaning, Meaning::InProcess) {
        let product = Product::named(SQLITE)?;
        return Some((product, product.parse_version(sqlite_version())?));
    }
    let Meaning::Provided {
        known: Some(known), ..
    } = &name.meaning
    else {
        return None;
    };
    let product = Product::named(known.product)?;
    Some((product, product.parse_version(known.version)?))
}

/// What the server of this version would show with the contender's settings.
fn predicted(
    contender: &Contender,
    product: Product,
    version: Version,
    machine: Machine,
) -> Result<ServerEvidence> {
    let mut evidence = expected(&contender.name, product, version, machine)
        .context("no defaults are recorded for this product")?;
    evidence.source = format!("settings of the experiment over {}", evidence.source);
    for setting in &contender.settings {
        set_option(&mut evidence, &setting.name, &setting.value).map_err(|why| {
            RefusedByServer {
                contender: contender.name.clone(),
                setting: setting.name.clone(),
                why,
            }
        })?;
    }
    Ok(evidence)
}
