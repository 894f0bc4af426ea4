//! Load hosts and server hosts: which contests can use them.

use dbduel_record::plan::{Contender, LoadHosts, LoadLevel, Workload};
use dbduel_server::{Meaning, ServerName};
use dbduel_workloads::{captured, script};

use crate::experiment::document::Report;
use crate::experiment::{self, Experiment, ServersPlace};

/// The agent on whose machine the server of a contender runs; `None` for this machine.
pub(super) fn server_host(
    experiment: &Experiment,
    contender: &experiment::Contender,
) -> Option<String> {
    let own = experiment::resolved(&experiment.contenders, contender);
    let servers = experiment
        .hosts
        .as_ref()
        .and_then(|hosts| hosts.servers.as_ref());
    let of_all = servers.and_then(|servers| match &servers.value {
        ServersPlace::Host(name) => Some(name.clone()),
        ServersPlace::Here(_) => None,
    });
    own.host.map(|host| host.value).or(of_all)
}

/// Why hosts cannot run or drive the server of a contender; `None` for one that dbduel starts.
fn objection(contender: &Contender) -> Option<&'static str> {
    match ServerName::parse(&contender.server).map(|name| name.meaning) {
        Ok(Meaning::InProcess) => Some("runs in the load process"),
        Ok(Meaning::Running(_)) => Some("is a running server"),
        Ok(Meaning::Provided { .. }) | Err(_) => None,
    }
}

/// Refuses features that servers on other machines do not support.
pub(super) fn check_server_hosts(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
    workload: &Workload,
    levels: &[LoadLevel],
) {
    let Some(first) = contenders.iter().position(|one| one.host.is_some()) else {
        return;
    };
    let of_all = experiment.hosts.as_ref().map(|hosts| &hosts.span);
    let span_of = |number: usize| {
        let written = &experiment.contenders[number.min(experiment.contenders.len() - 1)];
        let own = written.host.as_ref().map(|host| &host.span);
        own.or(of_all).unwrap_or(&written.name.span)
    };
    for (number, contender) in contenders.iter().enumerate() {
        if contender.host.is_none() {
            let message = format!(
                "`{}` has no host and `{}` has one; a contest runs all its servers on hosts or none: give each contender a `host`, or \
                 set `servers` in [hosts]",
                contender.name, contenders[first].name
            );
            report.add(span_of(number), message);
        } else if let Some(why) = objection(contender) {
            let message = format!(
                "hosts run only servers that dbduel starts, but `{}` {why}; remove its `host`",
                contender.name
            );
            report.add(span_of(number), message);
        }
    }
    let of_cells = levels.iter().filter_map(|level| level.cell.as_ref());
    for one in of_cells.map(|cell| &cell.workload).chain([workload]) {
        let message = match one.name.as_str() {
            script::NAME => {
                "server hosts run no scripts, since a script may do anything that a program may; remove the host"
            }
            captured::NAME => {
                "server hosts run no captured statements, whose capture and dump are on this machine; remove the host"
            }
            _ => continue,
        };
        report.add(span_of(first), message);
    }
    if let Some(cores) = &experiment.load.server_cores {
        let message = "`server_cores` names processors of this machine, but the servers are on others; remove it";
        report.add(&cores.span, message);
    }
}

/// The load hosts of a plan, after a check that they support the experiment.
pub(super) fn complete_hosts(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
    workload: &Workload,
    levels: &[LoadLevel],
) -> Option<LoadHosts> {
    let written = experiment.hosts.as_ref()?;
    let place = written.servers.as_ref().map(|servers| &servers.value);
    let Some(load) = &written.load else {
        if let Some(ServersPlace::Here(_)) = place {
            let message = "[hosts] with an address of this machine needs `load`, the names of the agents of load hosts";
            report.add(&written.span, message);
        }
        return None;
    };
    let is_here = contenders.iter().any(|one| one.host.is_none());
    if is_here && !matches!(place, Some(ServersPlace::Here(_))) {
        let message = "[hosts] needs `servers`, the address of this machine that load hosts reach, or the name of an agent that runs servers";
        report.add(&written.span, message);
    }
    for contender in contenders.iter().filter(|one| one.host.is_none()) {
        let Some(why) = objection(contender) else {
            continue;
        };
        let message = format!(
            "load hosts drive only servers that dbduel starts, but `{}` {why}; remove [hosts]",
            contender.name
        );
        report.add(&written.span, message);
    }
    let of_cells = levels.iter().filter_map(|level| level.cell.as_ref());
    let all = of_cells.map(|cell| &cell.workload).chain([workload]);
    for one in all {
        let Ok(known) = dbduel_workloads::find(&one.name) else {
            continue;
        };
        let why = if one.name == script::NAME {
            "a script may do anything that a program may"
        } else if one.name == captured::NAME {
            "its capture is on this machine"
        } else if known.depends_on_past_work(&one.parameters)
            || known.has_fixed_work(&one.parameters)
        {
            "its clients share their work within one process"
        } else {
            continue;
        };
        let message = format!(
            "load hosts do not run workload `{}`: {why}; remove [hosts]",
            one.name
        );
        report.add(&written.span, message);
    }
    let hosts = load.value.len() as u32;
    if let Some(level) = levels.iter().find(|level| level.clients < hosts) {
        let message = format!(
            "{} for {hosts} load hosts: each needs a client; use more clients, or name fewer hosts",
            level.label()
        );
        report.add(&load.span, message);
    }
    if let Some(cores) = &experiment.load.cores {
        let message = "`cores` names processors of this machine, but the load is on others; remove it, or [hosts]";
        report.add(&cores.span, message);
    }
    Some(LoadHosts {
        servers: match place {
            Some(ServersPlace::Here(address)) => address.to_string(),
            Some(ServersPlace::Host(name)) => name.clone(),
            None => String::new(),
        },
        load: load.value.clone(),
    })
}
