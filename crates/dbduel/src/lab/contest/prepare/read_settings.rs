//! Asking a server what it is and what it is really set to, and keeping the answers.

use std::time::Duration;

use anyhow::Result;
use dbduel_load::driver::{Connection, Dialect};
use dbduel_load::workloads::Workload;
use dbduel_record::event::{Event, Finding, Severity};
use dbduel_record::{Record, facts};

use crate::judge::audit::ServerEvidence;
use crate::judge::rules::servers::taken::{NotTaken, not_taken};
use crate::lab::contest::arena::{ContenderServer, Place};
use crate::lab::contest::journal::Journal;
use crate::lab::contest::measure::finding;
use crate::lab::contest::{ContestConfig, close};
use crate::lab::dataset;
use crate::lab::facts::{Moment, identify, keep, keep_schema, scalar};
use crate::lab::inspect;
use crate::lab::inspect::planned::ask_for;
use crate::lab::server::{Build, last_mention};

/// Interviews a server that runs; returns what the audit wants to know. The answers of the first start
/// are the ones of the record.
///
/// # Errors
/// When the server does not answer or the record cannot be written.
pub fn interview(
    config: &ContestConfig<'_>,
    past: &Record,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    journal: &mut Journal,
) -> Result<ServerEvidence> {
    let plan = config.plan;
    let mut connection = resident.connect(Duration::from_secs_f64(plan.limits.statement_s))?;
    let build = describe(resident, &mut connection);
    let name = resident.name.clone();
    config
        .console
        .say(&format!("{name}: {} {}", build.product, build.version));
    let texts = match &mut resident.place {
        Place::Remote(server) => Some(server.texts()?),
        Place::Sandboxed(_) | Place::InProcess(_) | Place::Running { .. } => None,
    };
    let start_s = match &resident.place {
        Place::Sandboxed(own) => own
            .server
            .as_ref()
            .map(|server| server.ready_after().as_secs_f64()),
        Place::Remote(server) => server.ready_after_s(),
        Place::InProcess(_) | Place::Running { .. } => None,
    };
    journal.event(Event::ServerReady {
        contender: name.clone(),
        version: build.version.clone(),
        start_s,
    })?;
    let is_first = !past
        .events
        .iter()
        .any(|event| matches!(event.what, Event::SliceStarted { .. }));
    let mut schema = None;
    if is_first {
        journal
            .writer()
            .contender_json(&name, "build.json", &build)?;
        keep(journal.writer(), &name, &mut connection, Moment::Before)?;
        let tables = dataset::tables(plan, workload, &mut connection)?;
        schema = Some(keep_schema(
            journal.writer(),
            &name,
            &mut connection,
            &tables,
        )?);
        close::keep_size(journal, resident, None)?;
    } else {
        keep(journal.writer(), &name, &mut connection, Moment::Again)?;
    }
    let own = match (&resident.place, &texts) {
        (Place::Sandboxed(own), _) => {
            let config = std::fs::read(own.sandbox.config())?;
            Some((own.sandbox.build(), config))
        }
        (Place::Remote(server), Some(texts)) => {
            Some((server.build(), texts.config.clone().into_bytes()))
        }
        _ => None,
    };
    if let Some((build, config)) = own {
        let writer = journal.writer();
        writer.contender_json(&name, "server-build.json", build)?;
        writer.contender_file(&name, "server.cnf", &config)?;
    }
    let mut evidence = inspect::live::evidence(&name, &mut connection)?;
    evidence.schema = schema;
    if let Some(contender) = plan.contenders.iter().find(|one| one.name == name) {
        ask_for(contender, &mut evidence);
    }
    for lost in not_taken(&evidence) {
        let log_line = match &resident.place {
            Place::Sandboxed(own) => own
                .server
                .as_ref()
                .and_then(|server| server.last_word_on(lost.name)),
            Place::Remote(_) => texts
                .as_ref()
                .and_then(|texts| last_mention(lost.name, &texts.log_since_start)),
            Place::InProcess(_) | Place::Running { .. } => None,
        };
        journal.notice(ignored(&name, &lost, log_line))?;
    }
    Ok(evidence)
}

fn ignored(contender: &str, lost: &NotTaken<'_>, log_line: Option<String>) -> Finding {
    let words = log_line
        .map(|line| format!(" (its log: {line})"))
        .unwrap_or_default();
    let claim = format!(
        "`{contender}` ignored or changed requested settings: {}{words}",
        lost.complaint
    );
    finding(
        "server.setting-not-in-effect",
        Severity::Doubt,
        &[contender],
        claim,
        "remove the setting, or ask for a value that the server takes",
    )
}

/// Which server this is, as it says itself and as its files say.
pub fn describe(resident: &ContenderServer, connection: &mut Connection) -> facts::Build {
    let identity = identify(connection);
    let product = match identity.product {
        Some(product) => product.title().to_owned(),
        None => identity.comment.clone(),
    };
    let (machine, allocator) = match connection.dialect() {
        Dialect::MySql => (
            scalar(connection, "SELECT @@version_compile_machine"),
            scalar(connection, "SELECT @@version_malloc_library"),
        ),
        // `PostgreSQL 16.15 on x86_64-pc-linux-gnu, compiled by …`; it allocates with the C library's functions.
        Dialect::PostgreSql => {
            let after = identity.comment.split_once(" on ");
            let machine = after.and_then(|(_, rest)| rest.split(',').next());
            (machine.map(str::to_owned), None)
        }
        Dialect::Sqlite => (Some(std::env::consts::ARCH.to_owned()), None),
    };
    let mut described = facts::Build {
        product,
        version: identity.version,
        version_comment: identity.comment,
        machine,
        allocator,
        ..facts::Build::default()
    };
    let mut of_ours = |build: &Build| {
        described.origin = origin(build);
        described.daemon = Some(build.daemon.display().to_string());
        described.daemon_sha256 = Some(build.daemon_digests.sha256.clone());
        described.managed = true;
    };
    match &resident.place {
        Place::Sandboxed(own) => of_ours(own.sandbox.build()),
        Place::Remote(server) => of_ours(server.build()),
        Place::InProcess(_) => {
            described.origin = format!("in dbduel {}", env!("CARGO_PKG_VERSION"));
            described.managed = true;
        }
        Place::Running { address, .. } => described.origin = address.to_string(),
    }
    described
}

/// Where a server of ours came from: of the fetched packages those that hold the server itself. The
/// libraries that came along are in the server's own description.
fn origin(build: &Build) -> String {
    let is_server = |name: &str| {
        ["mariadb-server", "mysql-server", "postgres"]
            .iter()
            .any(|server| name.contains(server))
    };
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
