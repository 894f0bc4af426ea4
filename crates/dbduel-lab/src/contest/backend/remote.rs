//! A contender whose server is ours and on another machine, where an agent prepares its sandbox.

use anyhow::{Context as _, Result};
use dbduel_record::event::{Notice, Severity};
use dbduel_record::facts::{Host, ServerHost};
use dbduel_record::plan::{Contender, Plan};

use super::super::arena::run_name;
use super::super::journal::Journal;
use super::super::observers::bytes_written_by_disk;
use super::sandboxed::{located, remark};
use crate::contest::ContestConfig;
use crate::server_host::{RemoteServer, ServerHosts};
use dbduel_inspect::planned::check_workload;
use dbduel_text::bytes;

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

/// Journals the note on what a contest between servers on several machines compares, with the differences of the machines.
///
/// # Errors
/// When the record cannot be written.
pub fn announce(machines: &[ServerHost], journal: &mut Journal<'_>) -> Result<()> {
    if machines.len() < 2 {
        return Ok(());
    }
    let names: Vec<String> = machines
        .iter()
        .map(|one| format!("`{}`", one.name))
        .collect();
    Ok(journal.notice(Notice::new(
        "contest.several-machines",
        Severity::Note,
        &[],
        format!(
            "The servers run on {}: the ratios include every difference between these machines and the networks to them, and a \
             disturbance on one machine affects only its contenders. {}.",
            names.join(" and "),
            machine_differences(machines)
        ),
        "To compare servers, run all of them on one machine (`servers` in [hosts]).",
    ))?)
}

/// The facts in which machines differ, as a sentence.
fn machine_differences(machines: &[ServerHost]) -> String {
    type Fact = fn(&Host) -> Option<String>;
    let facts: [(&str, Fact); 6] = [
        ("processors", |host| {
            host.cpus.map(|_| host.processors_label())
        }),
        ("memory", |host| host.memory_bytes.map(bytes)),
        ("kernel", |host| host.kernel.clone()),
        ("virtualisation", |host| host.virtualisation.clone()),
        ("file system", |host| host.file_system.clone()),
        ("disk", |host| host.disk_model.clone()),
    ];
    let mut differences = Vec::new();
    for (title, fact) in facts {
        let each = machines.iter().map(|one| fact(&one.facts));
        let each: Vec<Option<String>> = each.collect();
        if each.windows(2).all(|two| two[0] == two[1]) {
            continue;
        }
        let texts = machines.iter().zip(each).map(|(one, text)| {
            let text = text.unwrap_or_else(|| "not available".to_owned());
            format!("{text} on {}", one.name)
        });
        differences.push(format!("{title}: {}", texts.collect::<Vec<_>>().join(", ")));
    }
    match differences.is_empty() {
        true => "Processors, memory, kernel, virtualisation, file system and disk model are equal"
            .into(),
        false => format!("The machines differ in {}", differences.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_compared_by_their_facts() {
        let host = |name: &str, cpus, kernel: &str| ServerHost {
            name: name.to_owned(),
            facts: Host {
                cpu_model: Some("Model".to_owned()),
                cpus: Some(cpus),
                memory_bytes: Some(8 << 30),
                kernel: Some(kernel.to_owned()),
                ..Host::default()
            },
            ..ServerHost::default()
        };
        let said = machine_differences(&[host("db1", 2, "6.1"), host("db2", 32, "6.1")]);
        assert_eq!(
            said,
            "The machines differ in processors: 2 × Model on db1, 32 × Model on db2"
        );
        let mut unknown = host("db2", 2, "6.9");
        unknown.facts.memory_bytes = None;
        let said = machine_differences(&[host("db1", 2, "6.1"), unknown]);
        let expected =
            "memory: 8.00 GiB on db1, not available on db2; kernel: 6.1 on db1, 6.9 on db2";
        assert!(said.ends_with(expected), "{said}");
        let said = machine_differences(&[host("db1", 2, "6.1"), host("db2", 2, "6.1")]);
        assert!(said.ends_with("are equal"), "{said}");
    }
}
