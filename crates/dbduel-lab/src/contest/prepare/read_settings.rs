//! Reads a server's identity and effective settings, and records them.

use std::time::Duration;

use anyhow::Result;
use dbduel_audit::ServerEvidence;
use dbduel_audit::{NotTaken, not_taken};
use dbduel_driver::{Connection, Dialect};
use dbduel_record::event::{Event, Notice, Severity};
use dbduel_record::{Record, facts};
use dbduel_server::last_mention;
use dbduel_text::shortened;
use dbduel_workloads::Workload;

use crate::contest::backend::ContenderServer;
use crate::contest::journal::Journal;
use crate::contest::{ContestConfig, close};
use crate::dataset;
use dbduel_inspect::facts::{Moment, identify, keep, keep_schema, scalar};
use dbduel_inspect::planned::ask_for;

/// Most characters kept of a server's version and of its build comment.
const IDENTITY_CHARACTERS: usize = 300;
/// Most characters shown of a complaint, which has the values asked for and shown.
const COMPLAINT_CHARACTERS: usize = 300;

/// Queries a running server; returns its evidence for the audit. The record keeps the answers of the first start.
///
/// # Errors
/// When the server does not answer or the record cannot be written.
pub fn interview(
    config: &ContestConfig<'_>,
    past: &Record,
    resident: &mut ContenderServer,
    workload: &'static dyn Workload,
    journal: &mut Journal<'_>,
) -> Result<ServerEvidence> {
    let plan = &config.plan;
    let mut connection = resident.connect(Duration::from_secs_f64(plan.limits.statement_s))?;
    let build = describe(resident, &mut connection);
    let name = resident.name.clone();
    config.remark(&format!("{name}: {} {}", build.product, build.version));
    let texts = resident.backend.texts()?;
    let start_s = resident.backend.ready_after_s();
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
    if let (Some(build), Some(texts)) = (resident.backend.build(), &texts) {
        let writer = journal.writer();
        writer.contender_json(&name, "server-build.json", build)?;
        writer.contender_file(&name, "server.cnf", &texts.config)?;
    }
    let mut evidence = dbduel_inspect::live::evidence(&name, &mut connection)?;
    evidence.schema = schema;
    if let Some(contender) = plan.contenders.iter().find(|one| one.name == name) {
        ask_for(contender, &mut evidence);
    }
    for lost in not_taken(&evidence) {
        let texts = texts.as_ref();
        let log_line = texts.and_then(|texts| last_mention(lost.name, &texts.log_since_start));
        journal.notice(ignored(&name, &lost, log_line))?;
    }
    Ok(evidence)
}

fn ignored(contender: &str, lost: &NotTaken<'_>, log_line: Option<String>) -> Notice {
    let words = log_line
        .map(|line| format!(" (its log: {line})"))
        .unwrap_or_default();
    let claim = format!(
        "`{contender}` ignored or changed requested settings: {}{words}",
        shortened(&lost.complaint, COMPLAINT_CHARACTERS)
    );
    Notice::new(
        "server.setting-not-in-effect",
        Severity::Doubt,
        &[contender],
        claim,
        "remove the setting, or use a value that the server accepts",
    )
}

/// Build of this server, from its own answers and its files.
pub fn describe(resident: &ContenderServer, connection: &mut Connection) -> facts::Build {
    let identity = identify(connection);
    // Messages and reports show them, and a server may answer anything.
    let [version, comment] = [&identity.version, &identity.comment]
        .map(|said| shortened(said, IDENTITY_CHARACTERS).into_owned());
    let product = match identity.product {
        Some(product) => product.title().to_owned(),
        None => comment.clone(),
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
        version,
        version_comment: comment,
        machine,
        allocator,
        ..facts::Build::default()
    };
    described.origin = resident.backend.origin();
    described.managed = resident.backend.is_ours();
    if let Some(build) = resident.backend.build() {
        described.daemon = Some(build.daemon.display().to_string());
        described.daemon_sha256 = Some(build.daemon_digests.sha256.clone());
    }
    described
}
