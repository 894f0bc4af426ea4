//! Optional parts of a build, and the errors of a build without them.

use dbduel_experiment::ExperimentFile;
use dbduel_record::Plan;

/// Something that this build cannot do.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what}: this program was built without `{feature}`; `cargo build --release --features {feature}` builds one with it, and \
     packages have it"
)]
pub struct BuiltWithout {
    what: String,
    feature: &'static str,
}

impl BuiltWithout {
    /// `what` needs a feature that this build is without.
    #[cfg(not(all(feature = "crash-test", feature = "fleet", feature = "parquet")))]
    #[must_use]
    pub fn new(what: impl Into<String>, feature: &'static str) -> Self {
        BuiltWithout {
            what: what.into(),
            feature,
        }
    }
}

/// Refuses a contest that this build cannot conduct. `file` is where the plan was written.
///
/// # Errors
/// [`BuiltWithout`], with the key that asks for it and its place.
pub fn check(file: &ExperimentFile<'_>, plan: &Plan) -> Result<(), BuiltWithout> {
    #[cfg(not(feature = "fleet"))]
    if let Some(hosts) = &file.experiment.hosts {
        let what = format!(
            "{}`[hosts]` runs parts of a contest on other machines",
            file.place(&hosts.span)
        );
        return Err(BuiltWithout::new(what, "fleet"));
    }
    #[cfg(not(feature = "fleet"))]
    for contender in &file.experiment.contenders {
        if let Some(host) = &contender.host {
            let what = format!(
                "{}`host` runs contender `{}` on another machine",
                file.place(&host.span),
                contender.name.value
            );
            return Err(BuiltWithout::new(what, "fleet"));
        }
    }
    #[cfg(not(feature = "crash-test"))]
    if plan.limits.prove.is_some() {
        let written = file.experiment.limits.prove.as_ref();
        let place = written.map(|prove| file.place(&prove.span));
        let what = format!(
            "{}`prove` in [limits] cuts the power of contenders",
            place.unwrap_or_default()
        );
        return Err(BuiltWithout::new(what, "crash-test"));
    }
    let _ = (file, plan);
    Ok(())
}

/// Options that reach agents of other machines, which this build lacks.
#[cfg(not(feature = "fleet"))]
#[derive(Debug, clap::Args)]
pub struct AbsentNatsArguments {
    #[arg(long, hide = true)]
    nats: Option<String>,
    #[arg(long, hide = true)]
    creds: Option<String>,
    #[arg(long, hide = true)]
    ca: Option<String>,
}

#[cfg(not(feature = "fleet"))]
impl AbsentNatsArguments {
    /// Refuses them.
    ///
    /// # Errors
    /// [`BuiltWithout`], with the option that was given.
    pub fn check(&self) -> Result<(), BuiltWithout> {
        for (option, given) in [
            ("--nats", &self.nats),
            ("--creds", &self.creds),
            ("--ca", &self.ca),
        ] {
            if given.is_some() {
                return Err(BuiltWithout::new(format!("`{option}`"), "fleet"));
            }
        }
        Ok(())
    }
}

/// Verbs that this build lacks.
#[cfg(not(all(feature = "crash-test", feature = "fleet")))]
#[derive(Debug, clap::Subcommand)]
pub enum AbsentVerb {
    /// Cut the power under load (not in this build).
    #[cfg(not(feature = "crash-test"))]
    #[command(disable_help_flag = true)]
    CrashTest(Words),
    /// Offer this machine to a fleet (not in this build).
    #[cfg(not(feature = "fleet"))]
    #[command(disable_help_flag = true)]
    Agent(Words),
    /// Run contests on many machines (not in this build).
    #[cfg(not(feature = "fleet"))]
    #[command(disable_help_flag = true)]
    Fleet(Words),
    /// Keep records in the object store of a nats-server (not in this build).
    #[cfg(not(feature = "fleet"))]
    #[command(disable_help_flag = true)]
    Archive(Words),
}

/// Arguments of such a verb.
#[cfg(not(all(feature = "crash-test", feature = "fleet")))]
#[derive(Debug, clap::Args)]
pub struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

#[cfg(not(all(feature = "crash-test", feature = "fleet")))]
impl AbsentVerb {
    /// The error for such a verb.
    #[must_use]
    pub fn refusal(&self) -> BuiltWithout {
        let (name, feature) = match self {
            #[cfg(not(feature = "crash-test"))]
            AbsentVerb::CrashTest(_) => ("crash-test", "crash-test"),
            #[cfg(not(feature = "fleet"))]
            AbsentVerb::Agent(_) => ("agent", "fleet"),
            #[cfg(not(feature = "fleet"))]
            AbsentVerb::Fleet(_) => ("fleet", "fleet"),
            #[cfg(not(feature = "fleet"))]
            AbsentVerb::Archive(_) => ("archive", "fleet"),
        };
        BuiltWithout::new(format!("`dbduel {name}`"), feature)
    }
}
