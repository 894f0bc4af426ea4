//! `[hosts]`: separate machines for load and servers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;

use toml::de::DeValue;

use super::document::{Located, Report, Section, describe, string};

/// Limit of load hosts of an experiment.
const HOSTS_MAX: usize = 100;

/// Length limit of an agent's name.
const NAME_CHARACTERS_MAX: usize = 60;

/// Default place of servers, for contenders without `host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServersPlace {
    /// On this machine, at this address for load hosts.
    Here(IpAddr),
    /// On the machine of the agent with this name.
    Host(String),
}

/// `[hosts]`.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Its place.
    pub span: Range<usize>,
    /// Absent where each contender sets its own.
    pub servers: Option<Located<ServersPlace>>,
    /// Unique names of agents; absent where the load comes from this machine.
    pub load: Option<Located<Vec<String>>>,
}

pub(super) fn read_hosts(report: &Report<'_>, section: &Section<'_, '_>) -> Option<Hosts> {
    let servers = section.get("servers", servers_place);
    let load = section.get("load", names);
    let is_empty = ["servers", "load"]
        .into_iter()
        .all(|key| section.value(key).is_none());
    if section.refuse_unknown_keys() && is_empty {
        report.add(
            &section.span(),
            "[hosts] needs `servers`, the place where servers run, or `load`, the names of the agents of load hosts",
        );
    }
    Some(Hosts {
        span: section.span(),
        servers,
        load,
    })
}

fn servers_place(value: &DeValue<'_>) -> Result<ServersPlace, String> {
    let text = string(value)?;
    match text.parse::<IpAddr>() {
        Ok(address) if !address.is_unspecified() => Ok(ServersPlace::Here(address)),
        Err(_) if is_agent_name(&text) => Ok(ServersPlace::Host(text)),
        _ => Err(format!(
            "expected an address of this machine such as \"10.0.0.1\", or the name of an agent, found {text:?}"
        )),
    }
}

fn is_agent_name(name: &str) -> bool {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=NAME_CHARACTERS_MAX).contains(&name.len()) && name.chars().all(is_usable)
}

/// The name of an agent.
pub(super) fn agent_name(value: &DeValue<'_>) -> Result<String, String> {
    let name = string(value)?;
    match is_agent_name(&name) {
        true => Ok(name),
        false => Err(not_an_agent(&name)),
    }
}

fn not_an_agent(name: &str) -> String {
    format!("{name:?} is not an agent's name: use letters, digits, `-` and `_`")
}

fn names(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let Some(list) = value.as_array() else {
        let found = describe(value);
        return Err(format!("expected a list of agents' names, found {found}"));
    };
    let names: Vec<String> = list
        .iter()
        .map(|name| string(name.get_ref()))
        .collect::<Result<_, _>>()?;
    if let Some(odd) = names.iter().find(|name| !is_agent_name(name)) {
        return Err(not_an_agent(odd));
    }
    if !(1..=HOSTS_MAX).contains(&names.len()) {
        return Err(format!("expected 1 to {HOSTS_MAX} agents"));
    }
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        return Err("an agent is listed twice".to_owned());
    }
    Ok(names)
}
