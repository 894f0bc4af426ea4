//! The contenders of a plan before anything is started: recorded defaults with the settings asked for,
//! and servers that run already.

use anyhow::{Context as _, Result, bail};
use dbduel_record::Plan;
use dbduel_record::plan::Contender;

use super::live;
use crate::judge::audit::{Case, Defaults, Product, ServerEvidence, Version, check_value, predict};
use crate::lab::server::{Meaning, ServerName};

/// A setting has a value that its server refuses.
#[derive(Debug, thiserror::Error)]
#[error("contender `{contender}`: {why}")]
pub struct NotAValue {
    /// Whose setting it is.
    pub contender: String,
    /// Its name.
    pub setting: String,
    /// What is wrong with the value.
    pub why: String,
}

/// The case that a plan makes.
///
/// # Errors
/// When a contender's version cannot be told without starting it, a value is none that its server takes
/// ([`NotAValue`]), or a running server does not answer.
pub fn case(plan: &Plan) -> Result<Case> {
    let contenders: Result<Vec<ServerEvidence>> = plan.contenders.iter().map(contender).collect();
    let mut case = Case::of(contenders?);
    about_plan(&mut case, plan);
    Ok(case)
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
    case.declare_what_was_asked();
}

fn contender(contender: &Contender) -> Result<ServerEvidence> {
    let about = || format!("contender `{}`", contender.name);
    let mut evidence = match ServerName::parse(&contender.server)
        .with_context(about)?
        .meaning
    {
        Meaning::Running { address, user } => {
            let mut evidence = live::of_contender(contender, &address, user.as_deref())?;
            ask_for(contender, &mut evidence);
            return Ok(evidence);
        }
        Meaning::Provided {
            known: Some(known), ..
        } => {
            let product =
                Product::named(known.product).context("the audit knows no such product")?;
            let version = Version::parse(known.version)
                .context("its version is not known before it is fetched")?;
            let defaults = Defaults::nearest(product, version)
                .context("no defaults are recorded for this product")?;
            let mut evidence = defaults
                .evidence(&contender.name)
                .context("the recorded defaults have no version")?;
            evidence.source = format!(
                "settings of the experiment over the defaults of {}",
                defaults.server
            );
            evidence
        }
        Meaning::Provided { .. } => {
            bail!(
                "which version `{}` is shows only when it is started; start it and audit it by address, or audit a record",
                contender.server
            )
        }
    };
    for setting in &contender.settings {
        check_value(&evidence, &setting.name, &setting.value).map_err(|why| NotAValue {
            contender: contender.name.clone(),
            setting: setting.name.clone(),
            why,
        })?;
        predict(&mut evidence, &setting.name, &setting.value);
    }
    Ok(evidence)
}
