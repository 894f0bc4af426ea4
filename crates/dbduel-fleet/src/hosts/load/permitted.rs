//! Orders that an agent passes to its load process: load on a server that listens on the network, by built-in
//! workloads.
//!
//! Every order is checked, even if the orchestrator checked it: none may name a file, a program or a statement of the
//! author's choice.

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;
use dbduel_load::order::{OpenOrder, Order};
use dbduel_workloads::{captured, completion, script};
use serde_json::Value;

use crate::permitted::foreign_character;

/// Refuses an order that an agent does not pass on, and a line that is not an order.
///
/// # Errors
/// The reason; the order is not quoted, since it may hold a password.
pub fn check(line: &[u8]) -> Result<(), String> {
    let order = serde_json::from_slice(line).map_err(|error| format!("not an order: {error}"))?;
    match order {
        Order::Open(order) => check_open(&order),
        Order::Slice(_)
        | Order::Close { .. }
        | Order::ReportCommitTimes
        | Order::BeginAt { .. }
        | Order::KeepExamples
        | Order::Stop
        | Order::Halt => Ok(()),
    }
}

fn check_open(order: &OpenOrder) -> Result<(), String> {
    if order.dialect.is_in_process() || !matches!(order.address, Address::Tcp { .. }) {
        return Err("load hosts open no files and no sockets of their machine".to_owned());
    }
    if order.tls != TlsMode::Off {
        return Err("load hosts have no certificates for servers".to_owned());
    }
    if order.workload.name == script::NAME {
        return Err(
            "load hosts run no scripts, because a script can do anything a program can".to_owned(),
        );
    }
    if order.workload.name == captured::NAME {
        return Err(
            "load hosts run no captured statements, which are of the author's choice".to_owned(),
        );
    }
    for (what, text) in [("database", &order.database), ("account", &order.user)] {
        check_text(what, text)?;
    }
    for (name, value) in &order.workload.parameters {
        if name == completion::CONFIG {
            return Err("load hosts read no files".to_owned());
        }
        if let Value::String(text) = value {
            check_text(name, text)?;
        }
    }
    Ok(())
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    match foreign_character(text) {
        Some(other) => Err(format!(
            "load hosts do not allow {other:?} in `{what}`: it might be part of a path or of a \
             statement"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn order() -> Value {
        json!({
            "order": "open", "contender": "a", "address": { "transport": "tcp", "host": "10.0.0.1", "port": 3306 },
            "user": "dbduel", "password": "secret", "database": "dbduel", "clients": 4, "retries": 3, "connect_s": 5.0,
            "workload": { "name": "oltp-point-select", "parameters": { "tables": 2, "engine": "InnoDB" } },
        })
    }

    #[test]
    fn load_on_a_server_in_the_network_is_permitted() {
        check(order().to_string().as_bytes()).unwrap();
        check(br#"{"order":"stop"}"#).unwrap();
    }

    #[test]
    fn files_sockets_scripts_and_statements_are_not() {
        let refused = |pointer: &str, value: Value, part: &str| {
            let mut order = order();
            *order.pointer_mut(pointer).unwrap() = value;
            let why = check(order.to_string().as_bytes()).unwrap_err();
            assert!(why.contains(part) && !why.contains("secret"), "{why}");
        };
        refused(
            "/address",
            json!({ "transport": "unix", "path": "/run/mysqld/mysqld.sock" }),
            "no sockets",
        );
        refused(
            "/address",
            json!({ "transport": "file", "path": "/etc/passwd", "settings": {} }),
            "no files",
        );
        refused("/workload/name", json!("script"), "no scripts");
        refused(
            "/workload/name",
            json!("captured"),
            "no captured statements",
        );
        refused(
            "/workload/parameters/engine",
            json!("x; DROP TABLE t"),
            "';'",
        );
        refused("/workload/parameters/engine", json!("/etc/x"), "'/'");
        refused("/workload/parameters", json!({ "config": "x" }), "no files");
        refused("/database", json!("x`y"), "'`'");
        assert!(check(b"rm -rf /").unwrap_err().contains("not an order"));
    }
}
