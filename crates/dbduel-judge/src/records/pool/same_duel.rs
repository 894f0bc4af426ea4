//! Checks that records are of the same duel: their plans and servers, without what belongs to a machine or a run.

use std::collections::BTreeSet;

use dbduel_record::{Plan, Record};
use serde_json::{Map, Value, json};

/// Differences that an error names.
const NAMED_MAX: usize = 5;
/// Characters of a value in an error.
const VALUE_CHARACTERS_MAX: usize = 60;

/// Parts of a plan that belong to its run: when, by which build, and what was drawn from its seed.
const OF_THE_RUN: [&str; 6] = ["format", "dbduel", "created", "seed", "blocks", "turns"];
/// Parts of `load` that belong to the machine: how many threads suit its processors, and which processors there are.
const OF_THE_MACHINE: [&str; 3] = ["threads", "cores", "server_cores"];
/// Stands for the name of the only server host: which machine that is belongs to the run.
const ONE_HOST: &str = "one server host";

/// The parts that must be equal in all records of one duel, as a tree.
pub(super) fn duel_of(record: &Record) -> Value {
    let mut duel = match serde_json::to_value(&record.plan) {
        Ok(Value::Object(plan)) => plan,
        Ok(_) | Err(_) => Map::new(),
    };
    duel.retain(|key, _| !OF_THE_RUN.contains(&key.as_str()));
    if let Some(Value::Object(load)) = duel.get_mut("load") {
        load.retain(|key, _| !OF_THE_MACHINE.contains(&key.as_str()));
    }
    // An address or a name of the machine; hosts of servers are in the contenders.
    if let Some(Value::Object(hosts)) = duel.get_mut("hosts") {
        hosts.remove("servers");
    }
    let hosts: BTreeSet<&Option<String>> =
        record.plan.contenders.iter().map(|one| &one.host).collect();
    if let (1, Some(Value::Array(contenders))) = (hosts.len(), duel.get_mut("contenders")) {
        for host in contenders.iter_mut().filter_map(|one| one.get_mut("host")) {
            *host = json!(ONE_HOST);
        }
    }
    // A search chooses its rates by what it sees.
    if record.plan.search.is_some() {
        duel.remove("levels");
    }
    duel.insert("servers".to_owned(), servers(&record.plan, record));
    Value::Object(duel)
}

/// Product and version of every contender whose server was found.
fn servers(plan: &Plan, record: &Record) -> Value {
    let found = plan.contenders.iter().zip(&record.contenders);
    let found = found.filter_map(|(contender, files)| {
        let build = files.build.as_ref()?;
        let server = json!(format!("{} {}", build.product, build.version));
        Some((contender.name.clone(), server))
    });
    Value::Object(found.collect())
}

/// Differences between two duels, each with its path and both values.
pub(super) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(one), Some(other), &mut found);
    let more = found.len().saturating_sub(NAMED_MAX);
    found.truncate(NAMED_MAX);
    if more > 0 {
        found.push(format!("{more} more"));
    }
    found
}

fn compare(path: &str, one: Option<&Value>, other: Option<&Value>, found: &mut Vec<String>) {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                let path = match path {
                    "" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                compare(&path, one.get(key), other.get(key), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, one.get(index), other.get(index), found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("`{path}` is {} and {}", shown(one), shown(other))),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "absent".to_owned(), Value::to_string);
    match text.chars().count() > VALUE_CHARACTERS_MAX {
        true => {
            let start: String = text.chars().take(VALUE_CHARACTERS_MAX).collect();
            format!("{start}…")
        }
        false => text,
    }
}
