//! A contender whose server is ours and on another machine, where an agent prepares its sandbox.

use anyhow::{Context as _, Result};
use dbduel_record::event::Notice;
use dbduel_record::plan::{Contender, Plan};

use super::super::arena::run_name;
use super::super::observers::bytes_written_by_disk;
use super::sandboxed::{located, remark};
use crate::contest::ContestConfig;
use crate::server_host::{RemoteServer, ServerHosts};
use dbduel_inspect::planned::check_workload;

/// Has the host fetch the server if need be, create its sandbox, and check its settings. Also returns the server's
/// remarks on its settings.
///
/// # Errors
/// When the server cannot be fetched or refuses a setting.
pub fn create(
    config: &ContestConfig<'_>,
    hosts: &ServerHosts,
    number: usize,
    contender: &Contender,
) -> Result<(RemoteServer, Vec<Notice>)> {
    let host = contender.host.as_deref().unwrap_or_default();
    config.step(&format!(
        "{}: preparing its server on {host}",
        contender.name
    ));
    let run = run_on_hosts(config);
    let prepared = RemoteServer::prepare(
        hosts,
        &config.plan,
        number,
        &run,
        config.home,
        config.console,
    );
    let server = prepared.map_err(|error| located(config, contender, error))?;
    let build = server.prepared_build();
    let dialect = build.product()?.dialect();
    check_workload(&config.plan, contender, dialect, &build.version.to_string())
        .with_context(|| format!("contender `{}`", contender.name))?;
    let remarks = server
        .notices()
        .iter()
        .map(|(setting, said)| remark(contender, setting, said));
    let caveat = server
        .overcounts_writes()
        .then(|| bytes_written_by_disk(&[&contender.name]));
    let remarks: Vec<Notice> = remarks.chain(caveat).collect();
    Ok((server, remarks))
}

/// Folder name of a run on hosts; unique, as several machines may have records of the same path.
fn run_on_hosts(config: &ContestConfig<'_>) -> String {
    let Plan { created, seed, .. } = config.plan.as_ref();
    let digest = blake3::hash(format!("{created} {seed}").as_bytes()).to_hex();
    format!("{}-{}", run_name(config), &digest[..8])
}
