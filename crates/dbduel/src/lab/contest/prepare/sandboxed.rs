//! A contender whose server is ours: fetched, put into a sandbox, given its data, started.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dbduel_load::driver::Dialect;
use dbduel_load::workloads::{self, Workload, parameters};
use dbduel_record::Record;
use dbduel_record::event::{Finding, LoadTime, Severity};
use dbduel_record::plan::{Contender, Plan};

use super::{Origin, is_dataset_known, ready, trouble};
use crate::interrupt;
use crate::lab::contest::ContestConfig;
use crate::lab::contest::arena::{ContenderServer, Place, Sandboxed, run_name};
use crate::lab::contest::journal::Journal;
use crate::lab::contest::measure::finding;
use crate::lab::dataset;
use crate::lab::server::{
    self, DATABASE, Progress as _, RefusedSetting, RunningServer, Sandbox, ServerName,
    ServerProduct, StartError,
};
use crate::lab::snapshots::{self, Description, Snapshots};

/// Room for connections that every server gets; some cap their thread cache by it.
const MAX_CONNECTIONS_MIN: u32 = 151;
/// Characters of a contender's name that its sandbox keeps, for people who look into it.
const FOLDER_CHARACTERS: usize = 40;

/// Fetches the server if need be, makes its sandbox, and lets it check its settings. Returns what the
/// server remarks on them, too.
///
/// # Errors
/// When the server cannot be fetched or refuses a setting.
pub fn create(
    config: &ContestConfig<'_>,
    number: usize,
    contender: &Contender,
    name: &ServerName,
) -> Result<(Sandbox, Vec<Finding>)> {
    let build = server::install::install(name, config.home, config.console)?;
    let product = build.product()?;
    let version = build.version.to_string();
    check_workload(config.plan, contender, product.dialect(), &version)?;
    check_connections(config.plan, contender)
        .map_err(|refused| located(config, contender, refused.into()))?;
    let settings = complete_settings(config.plan, contender, product);
    let created = Sandbox::create(
        config.home,
        &run_name(config),
        &folder(number, contender),
        build,
        settings,
    );
    let mut sandbox = created.map_err(|error| located(config, contender, error))?;
    sandbox.confine(&config.plan.load.server_cores);
    if let Some(limit) = config.plan.load.server_io {
        sandbox.limit_io(limit)?;
    }
    let notices = sandbox
        .check_settings()
        .map_err(|error| located(config, contender, error))?;
    let remarks = notices.into_iter().map(|notice| {
        let claim = format!(
            "`{}` says of `{}`: {}",
            contender.name, notice.name, notice.said
        );
        let remedy = "ask for a value that the server takes as it is";
        finding(
            "server.setting-notice",
            Severity::Note,
            &[&contender.name],
            claim,
            remedy,
        )
    });
    let remarks = remarks.collect();
    Ok((sandbox, remarks))
}

/// What loading the data of a contender depends on, as a name.
pub fn key(sandbox: &Sandbox, contender: &Contender, plan: &Plan) -> String {
    let build = sandbox.build();
    snapshots::key(&build.id, &build.daemon_digests.sha256, contender, plan)
}

/// Refuses a workload that has no statements for what a product speaks, or parameters that mean nothing to it in this version.
pub(super) fn check_workload(
    plan: &Plan,
    contender: &Contender,
    dialect: Dialect,
    version: &str,
) -> Result<()> {
    let mut all = vec![plan.workload_of(contender)];
    if plan.suite.is_some() {
        all.extend((0..plan.levels.len()).map(|level| plan.workload_at(level, contender)));
    }
    let mut silent = None;
    for one in &all {
        let workload = workloads::find(&one.name)?;
        if workload.speaks(dialect) {
            parameters::check_dialect(workload, dialect, &one.parameters)
                .and_then(|()| parameters::check_version(dialect, version, &one.parameters))
                .with_context(|| format!("contender `{}`", contender.name))?;
        } else {
            silent = Some(workload);
        }
    }
    let Some(workload) = silent else {
        return Ok(());
    };
    let others = workloads::WORKLOADS.iter();
    let others: Vec<&str> = others
        .filter(|workload| workload.speaks(dialect))
        .map(|workload| workload.name())
        .collect();
    bail!(
        "contender `{}`: workload `{}` is not written for {}; choose one of {}",
        contender.name,
        workload.name(),
        dialect.product(),
        others.join(", ")
    )
}

/// A folder name: unique by the contender's number, readable by its name.
pub(super) fn folder(number: usize, contender: &Contender) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = contender
        .name
        .chars()
        .map(plain)
        .take(FOLDER_CHARACTERS)
        .collect();
    format!("{number}-{name}")
}

/// What the data directory of a started server holds.
pub enum Content {
    /// Data of an earlier start of this run, which are in use and stay.
    InUse,
    /// A snapshot, or nothing yet, since this instant.
    Fresh {
        restored: Option<Description>,
        begun: Instant,
    },
}

/// Puts the data directory in place and starts the server.
///
/// # Errors
/// When the data directory cannot be made or the server does not start.
pub fn start_on_data(
    config: &ContestConfig<'_>,
    past: &Record,
    contender: &Contender,
    mut sandbox: Sandbox,
) -> Result<(ContenderServer, Content)> {
    // Anything else is created again.
    if sandbox.data().is_dir() {
        // A contender may have begun a block that the others have not, so all begin with their snapshots again.
        let workload = workloads::find(&config.plan.workload.name)?;
        let is_usable = !workload.depends_on_past_work();
        if is_usable && is_dataset_known(past, &contender.name) {
            let server = start(config, contender, &mut sandbox)?;
            return Ok((resident(contender, sandbox, server)?, Content::InUse));
        }
        std::fs::remove_dir_all(sandbox.data())
            .with_context(|| format!("could not clear `{}`", sandbox.data().display()))?;
    }
    let key = key(&sandbox, contender, config.plan);
    let begun = Instant::now();
    let snapshots = Snapshots::new(config.home);
    let restored = snapshots.restore(&key, &sandbox.data(), config.console)?;
    if restored.is_some() {
        sandbox.forget_identity()?;
    } else {
        sandbox
            .initialise(config.home, config.console)
            .map_err(|error| located(config, contender, error))?;
    }
    let server = start(config, contender, &mut sandbox).map_err(|error| {
        match restored.is_some() && error.is::<StartError>() {
            true => error.context(format!(
                "its data are those of the snapshot `{key}`; where these files were changed or are of another server, \
                 `dbduel datasets remove {key}` has them loaded anew"
            )),
            false => error,
        }
    })?;
    let content = Content::Fresh { restored, begun };
    Ok((resident(contender, sandbox, server)?, content))
}

/// Loads the data that are not there yet, and keeps them as a snapshot.
///
/// # Errors
/// When the data cannot be loaded, copied or read.
pub fn settle(
    config: &ContestConfig<'_>,
    contender: &Contender,
    resident: &mut ContenderServer,
    content: Content,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<()> {
    let Content::Fresh { restored, begun } = content else {
        return Ok(());
    };
    let origin = match restored {
        Some(snapshot) => Origin {
            is_restored: true,
            load: snapshot.load_of(contender),
        },
        None => {
            let load = dataset::fill(config.plan, workload, resident, config.console)?;
            keep_snapshot(config, contender, resident, load)?;
            Origin {
                is_restored: false,
                load: Some(load),
            }
        }
    };
    ready(config, resident, workload, origin, begun, journal)
}

/// Starts the server on data that were never used.
///
/// # Errors
/// When the server cannot be initialised or does not start.
pub fn start_empty(
    config: &ContestConfig<'_>,
    contender: &Contender,
    mut sandbox: Sandbox,
) -> Result<ContenderServer> {
    sandbox
        .initialise(config.home, config.console)
        .map_err(|error| located(config, contender, error))?;
    let server = start(config, contender, &mut sandbox)?;
    resident(contender, sandbox, server)
}

/// The sandbox of a contender, with its data in place and no server running in it.
///
/// # Errors
/// When the server cannot be fetched or started, refuses a setting, or its data cannot be loaded.
pub fn loaded(config: &ContestConfig<'_>, number: usize) -> Result<Sandbox> {
    let contender = &config.plan.contenders[number];
    let name = ServerName::parse(&contender.server)?;
    let (sandbox, _) = create(config, number, contender, &name)?;
    let key = key(&sandbox, contender, config.plan);
    let snapshots = Snapshots::new(config.home);
    let restored = snapshots.restore(&key, &sandbox.data(), config.console)?;
    if restored.is_some() {
        sandbox.forget_identity()?;
        return Ok(sandbox);
    }
    let workload = workloads::find(&config.plan.workload.name)?;
    let mut resident = start_empty(config, contender, sandbox)?;
    let load = dataset::fill(config.plan, workload, &mut resident, config.console)?;
    stop_and_keep(config, contender, &mut resident, load)?;
    match resident.place {
        Place::Sandboxed(own) => Ok(own.sandbox),
        Place::Running { .. } | Place::InProcess(_) => {
            bail!("`{}` is not ours to stop", contender.name)
        }
    }
}

/// Stops the server, keeps its data, starts it again.
fn keep_snapshot(
    config: &ContestConfig<'_>,
    contender: &Contender,
    resident: &mut ContenderServer,
    load: LoadTime,
) -> Result<()> {
    stop_and_keep(config, contender, resident, load)?;
    if let Place::Sandboxed(own) = &mut resident.place {
        own.server = Some(start(config, contender, &mut own.sandbox)?);
    }
    Ok(())
}

/// Stops the server and keeps its data.
fn stop_and_keep(
    config: &ContestConfig<'_>,
    contender: &Contender,
    resident: &mut ContenderServer,
    load: LoadTime,
) -> Result<()> {
    let Place::Sandboxed(own) = &mut resident.place else {
        return Ok(());
    };
    if let Some(server) = own.server.take() {
        config.console.stage(&format!(
            "{}: stopping for a snapshot of its data",
            contender.name
        ));
        let limit_s = config.plan.limits.server_stop_s;
        if server.stop(Duration::from_secs_f64(limit_s))?.killed {
            bail!(
                "`{}` did not end within {limit_s} s after its data were loaded and was killed; its data are not fit \
                 for a snapshot; raise `server_stop` in [limits]",
                contender.name
            );
        }
    }
    let build = &own.sandbox.build().id;
    Snapshots::new(config.home).keep(
        &key(&own.sandbox, contender, config.plan),
        &own.sandbox.data(),
        Description::of(build, contender, config.plan, load),
        config.console,
    )
}

fn resident(
    contender: &Contender,
    sandbox: Sandbox,
    server: RunningServer,
) -> Result<ContenderServer> {
    let dialect = sandbox.build().product()?.dialect();
    let place = Place::Sandboxed(Box::new(Sandboxed {
        sandbox,
        server: Some(server),
    }));
    Ok(ContenderServer {
        name: contender.name.clone(),
        dialect,
        database: DATABASE.to_owned(),
        place,
    })
}

fn start(
    config: &ContestConfig<'_>,
    contender: &Contender,
    sandbox: &mut Sandbox,
) -> Result<RunningServer> {
    interrupt::check()?;
    config.console.stage(&format!(
        "{}: starting {}",
        contender.name,
        sandbox.build().id
    ));
    let limits = &config.plan.limits;
    sandbox.start(limits).map_err(|error| match error {
        StartError::Refused(refused) => located(config, contender, refused.into()),
        other => anyhow::Error::new(other)
            .context(format!("contender `{}` did not start", contender.name)),
    })
}

/// Refuses room for fewer connections than the load has clients: the server would refuse the others when they come.
fn check_connections(plan: &Plan, contender: &Contender) -> Result<(), RefusedSetting> {
    let is_it = |name: &str| {
        name.replace('-', "_")
            .eq_ignore_ascii_case("max_connections")
    };
    let mut own = contender.settings.iter().filter(|one| is_it(&one.name));
    let Some((setting, given)) = own.find_map(|one| Some((one, one.value.parse::<u32>().ok()?)))
    else {
        return Ok(());
    };
    let clients = largest_level(plan);
    // One more asks the server about itself.
    if given > clients {
        return Ok(());
    }
    Err(RefusedSetting {
        setting: server::Setting::new(&setting.name, Some(&setting.value)),
        said: format!(
            "{clients} clients and dbduel itself need {} connections; raise it, or leave it out",
            clients + 1
        ),
        suggestion: None,
    })
}

/// Clients of the level that has most of them.
fn largest_level(plan: &Plan) -> u32 {
    let clients = plan.levels.iter().map(|level| level.clients);
    clients.max().unwrap_or(0)
}

/// The contender's settings after those that the lab needs for the planned load.
fn complete_settings(
    plan: &Plan,
    contender: &Contender,
    product: &dyn ServerProduct,
) -> Vec<server::Setting> {
    let clients = largest_level(plan);
    // Room for the clients and for our own questions.
    let needed = product.needed_settings((clients + 20).max(MAX_CONNECTIONS_MIN));
    let is_written = |name: &str| {
        contender
            .settings
            .iter()
            .any(|setting| setting.name.replace('-', "_").eq_ignore_ascii_case(name))
    };
    let plumbing = needed
        .into_iter()
        .filter(|(name, _)| !is_written(name))
        .map(|(name, value)| server::Setting::new(name, Some(&value.to_string())));
    let own = contender.settings.iter().map(|setting| {
        let value = (!setting.value.is_empty()).then_some(setting.value.as_str());
        server::Setting::new(&setting.name, value)
    });
    plumbing.chain(own).collect()
}

/// A refused setting with its place in the experiment file.
fn located(
    config: &ContestConfig<'_>,
    contender: &Contender,
    error: anyhow::Error,
) -> anyhow::Error {
    let Some(refused) = error.downcast_ref::<RefusedSetting>() else {
        return error.context(format!("contender `{}`", contender.name));
    };
    let message = format!("contender `{}`: {refused}", contender.name);
    let span = config
        .experiment
        .setting_span(&contender.name, &refused.setting.name);
    match trouble(config, span, &message) {
        Some(trouble) => trouble.into(),
        None => error.context(message),
    }
}
