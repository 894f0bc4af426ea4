//! Scripts on a real server.

use std::sync::Arc;

use dbduel_driver::{ConnectOptions, Connection, Tls, TlsMode};
use dbduel_lua::{Host, Script, Servers, Settings};

use super::super::harness::skip;
use super::database::Database;
use crate::script_support::{Printed, alone, given};

const INSTALLED: &str = "/usr/share/sysbench";

/// The installed scripts that can be run; none when sysbench is not installed.
pub fn stock_scripts() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(INSTALLED) else {
        skip("sysbench is not installed, so its scripts were not run");
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".lua")
                .map(str::to_owned)
        })
        .filter(|name| name != "oltp_common")
        .collect();
    names.sort();
    names
}

pub fn settings(database: &Database, script: Script, command: &str, printed: &Printed) -> Settings {
    Settings {
        servers: Servers {
            dialect: dbduel_driver::Dialect::MySql,
            addresses: vec![database.address.clone()],
            credentials: database.credentials.clone(),
            database: database.name.clone(),
            tls: Arc::new(Tls::new(TlsMode::Off)),
        },
        ..alone(script, command, printed)
    }
}

pub fn host(
    database: &Database,
    script: &Script,
    command: &str,
    options: &[(&str, &str)],
    printed: &Printed,
) -> Host {
    let mut host = Host::load(settings(database, script.clone(), command, printed)).unwrap();
    host.set_options(&given(options)).unwrap();
    host
}

pub fn connect(database: &Database) -> Connection {
    let options = ConnectOptions {
        database: Some(database.name.clone()),
        ..ConnectOptions::default()
    };
    Connection::connect(&database.address, &database.credentials, &options).unwrap()
}

pub fn number(connection: &mut Connection, sql: &str) -> i64 {
    let answer = connection.query(sql).unwrap();
    answer
        .text(0, 0)
        .and_then(|text| text.parse().ok())
        .unwrap_or(-1)
}

/// Facts about the tables that do not depend on what was drawn.
pub fn contents(database: &Database) -> Vec<String> {
    let mut connection = connect(database);
    let tables = connection.query("SHOW TABLES").unwrap();
    let names: Vec<String> = (0..tables.rows.len())
        .map(|row| tables.text(row, 0).unwrap())
        .collect();
    let mut facts = Vec::new();
    for name in names {
        let columns = connection
            .query(&format!("SHOW COLUMNS FROM {name}"))
            .unwrap();
        let shape: Vec<String> = (0..columns.rows.len())
            .map(|row| {
                format!(
                    "{} {}",
                    columns.text(row, 0).unwrap(),
                    columns.text(row, 1).unwrap()
                )
            })
            .collect();
        let rows = number(&mut connection, &format!("SELECT COUNT(*) FROM {name}"));
        let ids = number(
            &mut connection,
            &format!("SELECT COALESCE(SUM(id), 0) FROM {name}"),
        );
        let texts = match shape.len() {
            4 => number(
                &mut connection,
                &format!("SELECT COALESCE(SUM(LENGTH(c) * 1000 + LENGTH(pad)), 0) FROM {name}"),
            ),
            _ => 0,
        };
        let indexes = number(
            &mut connection,
            &format!(
                "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics \
                 WHERE table_schema = DATABASE() AND table_name = '{name}'"
            ),
        );
        facts.push(format!(
            "{name}({}): {rows} rows, ids {ids}, texts {texts}, {indexes} indexes",
            shape.join(", ")
        ));
    }
    facts
}
