//! Every contender's server with its data in place, started, asked what it is, and frozen.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, Credentials};
use dbduel_load::workloads::{self, Workload};
use dbduel_record::event::{Event, Severity};
use dbduel_record::facts;
use dbduel_record::plan::{Contender, Plan};
use dbduel_record::{Record, names};

use super::arena::{Arena, Place, Private, Stand, run_name};
use super::journal::Journal;
use super::measure::finding;
use super::{Setting, close};
use crate::interrupt;
use crate::lab::dataset::{self, Snapshots};
use crate::lab::experiment::document::{Trouble, Troubles};
use crate::lab::facts::{Moment, keep, keep_schema, scalar};
use crate::lab::server::{
    self, Build, Meaning, NotTaken, Progress as _, RefusedSetting, Sandbox, ServerName, StartError,
    tree_size,
};

/// Prepares all contenders of the plan, one after the other.
///
/// # Errors
/// When a server cannot be had, refuses a setting, does not start, or its data cannot be loaded.
pub fn prepare(
    setting: &Setting<'_>,
    past: &Record,
    arena: &mut Arena,
    journal: &mut Journal,
) -> Result<()> {
    let plan = setting.plan;
    let workload = workloads::find(&plan.workload.name)?;
    for contender in &plan.contenders {
        interrupt::check()?;
        let name = ServerName::parse(&contender.server)?;
        let stand = match &name.meaning {
            Meaning::Running { address, user } => {
                visit(setting, contender, address, user.as_deref())?
            }
            Meaning::Provided { .. } => settle(setting, past, contender, &name, workload, journal)?,
        };
        let stand = interview(setting, past, stand, workload, journal)?;
        arena.add(stand)?;
    }
    Ok(())
}

/// A running server by its address.
fn visit(
    setting: &Setting<'_>,
    contender: &Contender,
    address: &Address,
    user: Option<&str>,
) -> Result<Stand> {
    let password = password(setting, contender)?;
    let credentials = Credentials::new(user.unwrap_or("root"), password);
    let options = ConnectOptions::default();
    let mut connection = Connection::connect(address, &credentials, &options)
        .with_context(|| format!("contender `{}`", contender.name))?;
    connection.execute(&format!(
        "CREATE DATABASE IF NOT EXISTS `{}`",
        server::DATABASE
    ))?;
    let place = Place::Elsewhere {
        address: address.clone(),
        credentials,
    };
    Ok(Stand {
        name: contender.name.clone(),
        database: server::DATABASE.to_owned(),
        place,
    })
}

/// The password of a running server: from its file, or from the environment.
fn password(setting: &Setting<'_>, contender: &Contender) -> Result<String> {
    let written = setting
        .experiment
        .contenders
        .iter()
        .find(|written| written.name.value == contender.name);
    if let Some(file) = written.and_then(|written| written.password_file.as_ref()) {
        let path = setting
            .experiment_path
            .parent()
            .unwrap_or_else(|| "".as_ref())
            .join(&file.value);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "could not read the password file `{}` of `{}`",
                path.display(),
                contender.name
            )
        })?;
        return Ok(text.lines().next().unwrap_or_default().to_owned());
    }
    let own: String = contender
        .name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    let from = |name: &str| std::env::var(name).ok();
    Ok(from(&format!("DBDUEL_PASSWORD_{own}"))
        .or_else(|| from("DBDUEL_PASSWORD"))
        .unwrap_or_default())
}

/// A server of our own, in a sandbox, with its data.
fn settle(
    setting: &Setting<'_>,
    past: &Record,
    contender: &Contender,
    name: &ServerName,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<Stand> {
    let (plan, console) = (setting.plan, setting.console);
    let build = server::install::install(name, setting.home, console)?;
    let settings = complete_settings(plan, contender);
    let create = |build: Build| {
        let folder = names::file_name(&contender.name)
            .replace('%', "_")
            .replace('~', "-");
        Sandbox::create(
            setting.home,
            &run_name(setting),
            &folder,
            build,
            settings.clone(),
        )
    };
    let mut sandbox = create(build).map_err(|error| located(setting, contender, error))?;
    sandbox.confine(&plan.load.server_cores);
    for notice in sandbox
        .check_settings()
        .map_err(|error| located(setting, contender, error))?
    {
        let claim = format!(
            "`{}` says of `{}`: {}",
            contender.name, notice.name, notice.said
        );
        journal.notice(finding(
            "server.setting-notice",
            Severity::Note,
            &[&contender.name],
            claim,
            "ask for a value that the server takes as it is",
        ))?;
    }
    // Data of an earlier start of this run are in use and stay; anything less than complete is made anew.
    let is_loaded = is_dataset_known(past, &contender.name);
    if is_loaded && sandbox.data().is_dir() {
        let server = start(setting, contender, &mut sandbox)?;
        return Ok(stand(contender, sandbox, server));
    }
    if sandbox.data().is_dir() {
        std::fs::remove_dir_all(sandbox.data())
            .with_context(|| format!("could not clear `{}`", sandbox.data().display()))?;
    }
    let snapshots = Snapshots::new(setting.home);
    let key = dataset::key(sandbox.build(), contender, plan);
    let begun = Instant::now();
    let restored = snapshots.restore(&key, &sandbox, console)?;
    if !restored {
        sandbox
            .initialise(setting.home, console)
            .map_err(|error| located(setting, contender, error))?;
    }
    let mut stand = {
        let server = start(setting, contender, &mut sandbox)?;
        stand(contender, sandbox, server)
    };
    if !restored {
        dataset::fill(plan, workload, &mut stand, console)?;
        stand = snapshot(setting, contender, stand, &snapshots, &key)?;
    }
    ready(setting, &mut stand, workload, restored, begun, journal)?;
    Ok(stand)
}

/// True when an earlier start of this run put the contender's data in place. What it did to them since
/// belongs to the contest, so they are neither loaded nor summed up again.
fn is_dataset_known(past: &Record, contender: &str) -> bool {
    past.events.iter().any(|event| matches!(&event.what, Event::DatasetReady { contender: known, .. } if known == contender))
}

/// Says in the journal what the data are.
fn ready(
    setting: &Setting<'_>,
    stand: &mut Stand,
    workload: &'static dyn Workload,
    restored: bool,
    begun: Instant,
    journal: &mut Journal,
) -> Result<()> {
    let seconds = begun.elapsed().as_secs_f64();
    let digest = dataset::digest(setting.plan, workload, stand, setting.console)?;
    let size = match &stand.place {
        Place::Private(private) => tree_size(&private.sandbox.data())?,
        Place::Elsewhere { .. } => server::TreeSize::default(),
    };
    let verb = if restored { "found" } else { "loaded" };
    setting.console.say(&format!(
        "{}: {} rows {verb} in {seconds:.1} s, {} MiB on disk",
        stand.name,
        digest.rows,
        size.allocated_bytes >> 20
    ));
    journal.event(Event::DatasetReady {
        contender: stand.name.clone(),
        restored,
        rows: digest.rows,
        seconds,
        digest: digest.hex,
        bytes: size.apparent_bytes,
        allocated_bytes: size.allocated_bytes,
    })?;
    Ok(())
}

/// Stops the server, keeps its data, starts it again.
fn snapshot(
    setting: &Setting<'_>,
    contender: &Contender,
    mut stand: Stand,
    snapshots: &Snapshots,
    key: &str,
) -> Result<Stand> {
    let Place::Private(private) = &mut stand.place else {
        return Ok(stand);
    };
    if let Some(server) = private.server.take() {
        setting.console.stage(&format!(
            "{}: stopping for a snapshot of its data",
            contender.name
        ));
        server.stop(Duration::from_secs_f64(setting.plan.limits.server_stop_s))?;
    }
    snapshots.keep(key, &private.sandbox, setting.plan, setting.console)?;
    private.server = Some(start(setting, contender, &mut private.sandbox)?);
    Ok(stand)
}

fn stand(contender: &Contender, sandbox: Sandbox, server: server::RunningServer) -> Stand {
    let place = Place::Private(Box::new(Private {
        sandbox,
        server: Some(server),
    }));
    Stand {
        name: contender.name.clone(),
        database: server::DATABASE.to_owned(),
        place,
    }
}

fn start(
    setting: &Setting<'_>,
    contender: &Contender,
    sandbox: &mut Sandbox,
) -> Result<server::RunningServer> {
    interrupt::check()?;
    setting.console.stage(&format!(
        "{}: starting {}",
        contender.name,
        sandbox.build().id
    ));
    let deadline = Duration::from_secs_f64(setting.plan.limits.server_start_s);
    sandbox.start(deadline).map_err(|error| match error {
        StartError::Refused(refused) => located(setting, contender, refused.into()),
        other => anyhow::Error::new(other)
            .context(format!("contender `{}` did not start", contender.name)),
    })
}

/// The contender's settings after those that the lab needs for the planned load.
fn complete_settings(plan: &Plan, contender: &Contender) -> Vec<server::Setting> {
    let clients = plan
        .levels
        .iter()
        .map(|level| level.clients)
        .max()
        .unwrap_or(0);
    // Room for the clients and for our own questions; and for the statements that each client prepares.
    let needed = [
        ("max_connections", clients + 20),
        ("max_prepared_stmt_count", 1_000_000),
    ];
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
fn located(setting: &Setting<'_>, contender: &Contender, error: anyhow::Error) -> anyhow::Error {
    let Some(refused) = error.downcast_ref::<RefusedSetting>() else {
        return error.context(format!("contender `{}`", contender.name));
    };
    let message = format!("contender `{}`: {refused}", contender.name);
    let text = std::fs::read_to_string(setting.experiment_path).unwrap_or_default();
    match setting
        .experiment
        .setting_span(&contender.name, &refused.setting.name)
    {
        Some(span) if !text.is_empty() => {
            let trouble = Trouble::at(&text, span.start, message);
            Troubles {
                path: setting.experiment_path.to_owned(),
                list: vec![trouble],
            }
            .into()
        }
        _ => error.context(message),
    }
}

/// Asks a running server who it is and what it is set to, and keeps the answers.
fn interview(
    setting: &Setting<'_>,
    past: &Record,
    mut stand: Stand,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<Stand> {
    let plan = setting.plan;
    let is_known = is_dataset_known(past, &stand.name);
    if matches!(stand.place, Place::Elsewhere { .. }) && !is_known {
        let begun = Instant::now();
        let is_ours = dataset::is_absent(plan, workload, &mut stand)?;
        if is_ours {
            dataset::fill(plan, workload, &mut stand, setting.console)?;
        }
        ready(setting, &mut stand, workload, !is_ours, begun, journal)?;
    }
    let mut connection = stand.connect(Duration::from_secs_f64(plan.limits.statement_s))?;
    let build = describe(&stand, &mut connection);
    let start_s = match &stand.place {
        Place::Private(private) => private
            .server
            .as_ref()
            .map(|server| server.ready_after().as_secs_f64()),
        Place::Elsewhere { .. } => None,
    };
    setting.console.say(&format!(
        "{}: {} {}",
        stand.name, build.product, build.version
    ));
    journal.event(Event::ServerReady {
        contender: stand.name.clone(),
        version: build.version.clone(),
        start_s,
    })?;
    let is_first = !past
        .events
        .iter()
        .any(|event| matches!(&event.what, Event::SliceStarted { .. }));
    if is_first {
        journal
            .writer()
            .contender_json(&stand.name, "build.json", &build)?;
        keep(
            journal.writer(),
            &stand.name,
            &mut connection,
            Moment::Before,
        )?;
        keep_schema(
            journal.writer(),
            &stand.name,
            &mut connection,
            &dataset::tables(plan, workload),
        )?;
        close::keep_size(journal, &mut stand, None)?;
    }
    if let Place::Private(private) = &stand.place {
        journal.writer().contender_json(
            &stand.name,
            "server-build.json",
            private.sandbox.build(),
        )?;
        let config = std::fs::read(private.sandbox.config())?;
        journal
            .writer()
            .contender_file(&stand.name, "server.cnf", &config)?;
        if let Some(server) = &private.server {
            for not_taken in server.settings_not_taken()? {
                journal.notice(ignored(&stand.name, &not_taken))?;
            }
        }
    }
    Ok(stand)
}

fn ignored(contender: &str, not_taken: &NotTaken) -> dbduel_record::event::Finding {
    let NotTaken {
        name,
        asked,
        got,
        log_line,
    } = not_taken;
    let shown = got
        .as_ref()
        .map_or("has no such variable".to_owned(), |got| {
            format!("shows `{got}`")
        });
    let words = log_line
        .as_ref()
        .map(|line| format!(" (its log: {line})"))
        .unwrap_or_default();
    let claim = format!("`{contender}` was given `{name} = {asked}` and {shown}{words}");
    finding(
        "server.setting-not-in-effect",
        Severity::Doubt,
        &[contender],
        claim,
        "remove the setting, or ask for a value that the server takes",
    )
}

/// Which server this is, as it says itself and as its files say.
fn describe(stand: &Stand, connection: &mut Connection) -> facts::Build {
    let mut ask = |statement: &str| scalar(connection, statement);
    let version = ask("SELECT VERSION()").unwrap_or_default();
    let version_comment = ask("SELECT @@version_comment").unwrap_or_default();
    let product = if version.to_lowercase().contains("mariadb") {
        "MariaDB"
    } else if version_comment.contains("Percona") {
        "Percona Server"
    } else {
        "MySQL"
    };
    let mut described = facts::Build {
        product: product.to_owned(),
        version,
        version_comment,
        machine: ask("SELECT @@version_compile_machine"),
        allocator: ask("SELECT @@version_malloc_library"),
        ..facts::Build::default()
    };
    match &stand.place {
        Place::Private(private) => {
            let build = private.sandbox.build();
            described.origin = origin(build);
            described.daemon = Some(build.daemon.display().to_string());
            described.daemon_sha256 = Some(build.daemon_digests.sha256.clone());
            described.managed = true;
        }
        Place::Elsewhere { address, .. } => described.origin = address.to_string(),
    }
    described
}

/// Where a server of ours came from: of the fetched packages those that hold the server itself. The
/// libraries that came along are in the server's own description.
fn origin(build: &Build) -> String {
    let is_server = |name: &str| name.contains("mariadb-server") || name.contains("mysql-server");
    let names = || {
        build
            .artifacts
            .iter()
            .map(|artifact| artifact.name.as_str())
    };
    let mut servers: Vec<&str> = names().filter(|name| is_server(name)).collect();
    if servers.is_empty() {
        servers.extend(names().next());
    }
    match servers.as_slice() {
        [] => format!("{}: {}", build.source, build.daemon.display()),
        _ => format!("{}: {}", build.source, servers.join(", ")),
    }
}

/// Refuses to go on when contenders hold different data.
///
/// # Errors
/// When digests differ.
pub fn compare_digests(past: &Record) -> Result<()> {
    let digests = past.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady {
            contender,
            digest,
            rows,
            ..
        } => Some((contender, digest, rows)),
        _ => None,
    });
    let digests: Vec<_> = digests.collect();
    if let Some((first, rest)) = digests.split_first()
        && let Some(other) = rest.iter().find(|other| other.1 != first.1)
    {
        bail!(
            "`{}` and `{}` hold different data ({} rows, digest {}; {} rows, digest {}), so a contest would compare \
             nothing; remove the tables of a running server, or the snapshots with `dbduel datasets remove all`",
            first.0,
            other.0,
            first.2,
            first.1,
            other.2,
            other.1
        );
    }
    Ok(())
}
